"""The line that VMFleet runs in each machine: its own flags, and what a total rate becomes."""

from __future__ import annotations

from typing import Any

import pytest

from diskbook.clusters.vmfleet import TOOL, line
from diskbook.design.diskspd_arguments import parse_words
from diskbook.design.model import Workload
from diskbook.facts.errors import UsageError
from diskbook.tools.record import Direction, Instance, Load, Measurement

GIB = 2**30


def workload(**keys: Any) -> Workload:
    load = {
        "name": "w",
        "block_size": "4K",
        "write_pct": 30,
        "threads": 10,
        "queue_depth": 8,
        "instances": 28,
    }
    return Workload.model_validate({**load, "ramp_s": 60, "runtime_s": 30, "working_set_gib": 10, **keys})


def test_the_line_is_vmfleets_own() -> None:
    job = TOOL.command(workload(), TOOL.example, seed=5)
    own = "-Z20M -z -h -t10 -o8 -b4k -r4k -w30 -W60 -C30 -d30 -f10G -D -L -Rxml"
    assert " ".join(job.argv) == own
    assert any("clock" in note for note in job.notes)
    asked = parse_words(list(job.argv))
    assert line.words(asked) == list(job.argv)
    assert line.result_file(asked, "t7", "vm-base-n1-001") == "result-b4t10o8w30pr-t7-vm-base-n1-001.xml"


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"rate": 11200}, {"-g164"}),  # 11,200 / 28 / 10 x 4,096 bytes, a millisecond
        ({"series_s": 0.5, "ramp_s": 1}, {"-D500", "-W1", "-C1"}),
        ({"pattern": "sequential", "threads": 1, "block_size": "64K"}, {"-b64k", "-s64k"}),
        ({"sync": "dsync"}, {"-h"}),
    ],
)
def test_what_a_load_becomes(keys: dict[str, Any], words: set[str]) -> None:
    argv = line.command(workload(**keys)).argv
    assert words <= set(argv)
    assert "-C0" not in line.command(workload(ramp_s=0)).argv
    parse_words(list(argv))


@pytest.mark.parametrize(
    ("keys", "named"),
    [
        ({"sync": "fdatasync", "write_pct": 100}, "cannot flush"),
        ({"rate": 10}, "rate = 10 is"),
        ({"runtime_s": 2.5}, "whole seconds"),
        ({"block_size": 512}, "whole KiB"),
        ({"pattern": "sequential"}, "share one offset"),
    ],
)
def test_what_it_cannot_do_is_said(keys: dict[str, Any], named: str) -> None:
    with pytest.raises(UsageError, match=named):
        line.command(workload(**keys))


def verbatim(text: str) -> Workload:
    return Workload.model_validate({"name": "v", "verbatim": text, "instances": 4, "working_set_gib": 1.0})


def test_a_line_word_for_word_loses_its_target_and_c() -> None:
    load = Workload.model_validate(
        {"name": "v", "verbatim": "diskspd -z -h -c1G -r -b8K a.dat", "instances": 4}
    )
    job = line.command(load)
    assert "a.dat" not in job.argv and "-f1G" in job.argv and "-z" in job.argv and "-Rxml" in job.argv
    assert len(job.notes) == 2
    with pytest.raises(UsageError, match="one file, not 2"):
        line.command(verbatim("diskspd -h -b8K -f1G a.dat b.dat"))
    with pytest.raises(UsageError, match="cut at its spaces"):
        line.command(verbatim('diskspd -h -b8K -f1G "-Z1M,c d.bin" a.dat'))


def wrote(*counts: int) -> Measurement:
    parts = [{"write": Direction(count, count / 2.0, 1.0, 2000.0)} for count in counts]
    machines = tuple(Instance(f"vm-{n}", "v", "n", 0.0, 2.0, part) for n, part in enumerate(parts))
    return Measurement(
        "f", "", Load(), {"write": Direction(sum(counts), 1.0, 1.0, 2000.0)}, instances=machines
    )


def test_filling_goes_on_until_the_slowest_machine_has_written_its_file() -> None:
    first = line.prefill(GIB, TOOL.example)
    assert first is not None and first.argv[0] != "diskspd" and TOOL.example.target not in first.argv
    assert {"-c1G", "-w100"} <= set(first.argv) and first.limit_s is not None
    assert line.prefill(GIB, TOOL.example, wrote(1024, 1024)) is None
    again = line.prefill(GIB, TOOL.example, wrote(4096, 512))  # 2 s for half of it, and 30 % more
    assert again is not None and "-d6" in again.argv
