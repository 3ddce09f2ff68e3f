"""DiskSpd as a tool: workloads in its terms, its results, and the emulated DiskSpd, which is a real fio."""

from __future__ import annotations

import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st
from pydantic import ValidationError

from diskbook.design import scenario_file as scenarios, scenario_tables
from diskbook.design.diskspd_arguments import parse_words
from diskbook.design.model import Workload
from diskbook.facts.errors import UsageError
from diskbook.hosts.device import Device
from diskbook.measure.plan import terminal as plan_text
from diskbook.report.show import facts, sentences
from diskbook.tools.diskspd import command, command as diskspd, xml as diskspd_xml
from diskbook.tools.record import Direction, Load, Measurement, UnusableError
from support import SAMPLES
from support.disturbance import load_sensitive
from support.fio_jobs import assert_keeps_its_queue

MIB = 1024**2
FOLDER = SAMPLES / "diskspd"
ARTICLE = "diskspd -c200G -w100 -b8K -F8 -r -o5 -W30 -d10 -Sh -L testfile.dat"


@dataclass(frozen=True)
class Drive:
    target: str = "#1"
    engine: str = "windows"


def workload(**changes: Any) -> Workload:
    small = {"name": "w", "block_size": "8K", "write_pct": 100, "working_set_gib": 1 / 32, "runtime_s": 1}
    return Workload.model_validate({**small, **changes})


def asked(load: Workload) -> Any:
    """What the command of a workload asks for, read back."""
    argv = diskspd.command(load, Drive(), seed=7).argv
    assert argv[0] == "diskspd"
    return parse_words(list(argv[1:]))


# --- workload -> command


CMDS_OWN = set("&|<>()^%!\"`;'$*?~\n\r\t\0")
VALUES = st.text("0123456789KMGTbirsdqvuhmwxn,.:/\\ &|<>()^%!\"`;'$*\n", max_size=8)
FLAGS = st.sampled_from("abcdefghijklmnopqrstuvwxyzZFTBWISNPRDLO")
LINES = st.lists(st.tuples(FLAGS, VALUES).map("-{0[0]}{0[1]}".format), max_size=6).map(" ".join)


@pytest.mark.long
@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(line=LINES)
@example(line="-e&calc.exe&rem")
@example(line='-Z1M,"a&calc"')
def test_a_line_from_a_file_is_refused_or_has_nothing_of_cmds_own(line: str) -> None:
    """Arguments of a trial hold none of the characters that cmd.exe or PowerShell read themselves."""
    try:
        load = Workload.model_validate({"name": "w", "verbatim": f"diskspd -c1G {line} x.dat"})
        argv = diskspd.command(load, Drive()).argv
    except (UsageError, ValidationError):
        return
    assert not CMDS_OWN & set("".join(argv))


def test_an_argument_that_is_not_plain_is_refused_whatever_let_it_through() -> None:
    with pytest.raises(UsageError, match="DiskSpd argument #1&calc: it may hold letters"):
        diskspd.command(workload(), Drive(target="#1&calc"))


def test_a_workload_in_diskspds_terms() -> None:
    line = asked(workload(threads=8, queue_depth=5, sync="dsync", ramp_s=30, runtime_s=10, series_s=0.5))
    assert (line.threads, line.depth, line.block_size, line.write_pct) == (8, 5, 8192, 100)
    assert (line.cache, line.write_through, line.random_pct) == ("off", True, 100)
    assert (line.warmup_s, line.duration_s, line.iops_interval_ms) == (30, 10, 500)
    assert (line.latency, line.output, line.seed) == (True, "xml", 7)
    assert (line.max_offset, line.create_bytes, line.targets) == (32 * MIB, None, ("#1",))
    assert asked(workload()).write_through is False


def test_sequential_threads_begin_at_their_own_parts() -> None:
    assert asked(workload(pattern="sequential", threads=4)).thread_stride == 8 * MIB
    assert asked(workload(pattern="sequential")).thread_stride is None


def test_a_rate_is_told_to_each_thread_in_bytes_a_millisecond() -> None:
    line = asked(workload(threads=8, rate=2500))
    assert (line.rate, line.rate_unit) == (2560, "bytes/ms")
    assert line.rate_iops == pytest.approx(2500)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"sync": "fdatasync"}, "dsync"),
        ({"runtime_s": 1.5}, "whole seconds"),
        ({"ramp_s": 0.5}, "whole seconds"),
        ({"rate": 10, "block_size": 512, "threads": 64}, "the next rate is 125"),
        ({"verbatim": "diskspd -b8K -c1G -rs50 a"}, "need DiskSpd 2.1"),
    ],
)
def test_what_diskspd_cannot_do_is_refused(changes: dict[str, Any], named: str) -> None:
    load = workload(**changes) if "verbatim" not in changes else Workload(name="w", **changes)
    with pytest.raises(UsageError) as caught:
        diskspd.command(load, Drive())
    assert named in str(caught.value)


def test_a_mixed_rate_is_taken_at_the_next_one_that_the_message_names() -> None:
    asked = {"write_pct": 30, "block_size": "4K", "threads": 7}
    with pytest.raises(UsageError, match=r"the next rate is 49\.5605469, or") as caught:
        diskspd.command(workload(rate=48, **asked), Drive())
    following = float(str(caught.value).partition("next rate is ")[2].partition(",")[0])
    diskspd.command(workload(rate=following, **asked), Drive())


def test_a_line_keeps_all_but_its_target() -> None:
    job = diskspd.command(Workload(name="line", verbatim=ARTICLE), Drive())
    line = parse_words(list(job.argv[1:]))
    assert (line.threads, line.depth, line.block_size, line.write_pct) == (8, 5, 8192, 100)
    assert (line.warmup_s, line.duration_s, line.latency, line.seed) == (30, 10, True, None)
    assert (line.targets, line.max_offset, line.output) == (("#1",), 200 * 1024**3, "xml")
    assert "-c became -f" in job.notes[0]


def test_a_rate_in_iops_is_told_in_bytes_where_the_release_would_misread_it() -> None:
    job = diskspd.command(Workload(name="line", verbatim="diskspd -b8K -c1G -t2 -g500i -L a"), Drive())
    assert "-g4096" in job.argv
    assert "misreads -g with i" in job.notes[0]


def test_the_release_is_the_one_that_machines_get() -> None:
    assert command.RELEASE.startswith(diskspd.VERSION)


def test_a_file_on_a_volume_is_made_by_its_prefilling_and_measured_as_it_is() -> None:
    file = Device("windows", r"C:\ClusterStorage\v\diskbook.dat", r"S:\diskbook.dat", 1024 * MIB)
    made = parse_words(list(diskspd.prefill_command(64 * MIB, file).argv[1:]))
    assert (made.create_bytes, made.max_offset, made.targets) == (64 * MIB, 64 * MIB, (file.target,))
    line = Workload.model_validate({"name": "x", "verbatim": "-c1G -b8K -w100 -d5 x.dat"})
    job = diskspd.command(line, file)
    assert "-c1G" in job.argv and job.argv[-1] == file.target and not job.notes


def test_prefilling_writes_the_part_from_its_beginning_in_one_thread() -> None:
    line = parse_words(list(diskspd.prefill_command(1024 * MIB, Drive()).argv[1:]))
    assert (line.threads, line.random_pct, line.write_pct, line.thread_stride) == (1, 0, 100, None)
    assert (line.max_offset, line.warmup_s, line.buffers) == (1024 * MIB, 0, "random")
    assert line.duration_s == 3  # at 400 MB/s


def test_an_overwrite_draws_as_many_bytes_as_there_are_and_says_what_that_meets() -> None:
    job = diskspd.overwrite_command(1024 * MIB, Drive())
    line = parse_words(list(job.argv[1:]))
    assert (line.random_pct, line.block_size, line.write_pct, line.max_offset) == (
        100,
        65536,
        100,
        1024 * MIB,
    )
    assert line.create_bytes is None and "63 % of its blocks" in job.notes[0]
    done = Direction(ios=16 * 1024, iops=1.0, bw_bytes=MIB, runtime_ms=2000)
    measured = Measurement("d", "", Load(), {"write": done})
    assert diskspd.overwrite_command(1024 * MIB, Drive(), measured) is None


def test_a_part_of_the_disk_and_data_that_compress_are_in_the_line() -> None:
    values = {"name": "w", "block_size": "4K", "write_pct": 100, "working_set_gib": 1, "runtime_s": 5}
    load = Workload.model_validate({**values, "region": "unwritten", "data": "compressible"})
    job = diskspd.command(load, Drive(), offset=2048 * MIB)
    line = parse_words(list(job.argv[1:]))
    assert (line.base_offset, line.max_offset, line.buffers) == (2048 * MIB, 3072 * MIB, "pattern")
    assert "0 to 255" in job.content and "not the first to their block" in job.notes[0]
    assert "from a buffer made once" in diskspd.command(Workload.model_validate(values), Drive()).content


# --- scenarios

SCENARIO = """
[scenario]
title = "t"
article = "shared-zrs"
question = "q"
region = "westeurope"
[[machine]]
name = "win"
size = "Standard_D4as_v4"
zone = "1"
os = "windows"
[[disk]]
name = "d"
sku = "Premium_LRS"
size_gib = 1024
zone = "1"
[[arm]]
name = "d-win"
disk = "d"
machine = "win"
[[workload]]
name = "line"
verbatim = "LINE"
[design]
seed = 1
"""


def scenario(tmp_path: Path, line: str = ARTICLE, **overrides: Any) -> Any:
    path = tmp_path / "lines.toml"
    path.write_text(SCENARIO.replace("LINE", line))
    return scenarios.load(str(path), overrides=overrides)


def test_a_line_is_a_whole_workload_with_its_remarks(tmp_path: Path) -> None:
    found = scenario(tmp_path, "diskspd -c1G -w30 -b8K -F8 -r -o5 -W3 -d10 -Sh t.dat")
    (load,) = found.workload
    assert (load.threads, load.queue_depth, load.block_size, load.sync) == (8, 5, 8192, "dsync")
    assert (load.ramp_s, load.runtime_s, load.working_set_gib) == (3, 10, 1)
    assert "reads may hit unwritten blocks" in load.remarks[0]
    assert "no latencies" in load.remarks[1]
    assert load.prefill_bytes == 0
    assert found.tool_of(found.arm[0]) == "diskspd"


def test_a_manifest_gives_the_same_workload_back(tmp_path: Path) -> None:
    found = scenario(tmp_path)
    assert scenario_tables.from_dict(found.model_dump(mode="json"), "manifest.json") == found


@pytest.mark.parametrize(
    ("overrides", "named"),
    [
        ({"workload.line.threads": 3}, "'threads' cannot be set beside it (it means 8)"),
        ({"workload.line.runtime_s": 3}, "'runtime_s' cannot be set"),
        ({"workload.line.verbatim": "diskspd -q3 a"}, "argument -q3"),
        ({"workload.line.verbatim": "diskspd -b4K a"}, "set working_set_gib"),
        ({"workload.line.tool": "fio"}, "has diskspd and vmfleet, not fio"),
    ],
)
def test_a_line_says_all_of_the_load(tmp_path: Path, overrides: dict[str, Any], named: str) -> None:
    with pytest.raises(UsageError) as caught:
        scenario(tmp_path, **overrides)
    assert str(caught.value).startswith("lines.toml: [[workload]] line: ")
    assert named in str(caught.value)


def test_what_a_tool_cannot_do_is_found_before_anything_is_created(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"lines\.toml: \[\[workload\]\] line on d-win: DiskSpd line: -rs"):
        scenario(tmp_path, "diskspd -c1G -b8K -rs40 a")


# --- results


def test_iops_of_intervals_are_rates_whatever_the_interval() -> None:
    text = (FOLDER / "v2.2-3targets-F-Sh.xml").read_text()  # -D500
    result = diskspd_xml.parse_output({"stdout": text}, "sample.xml")
    for name, part in result.directions.items():
        assert result.series[name].iops.mean() == pytest.approx(part.iops, rel=0.001)


@pytest.mark.parametrize(
    ("streams", "named"),
    [
        ({"stdout": "", "stderr": "ERROR: invalid option: '-q'\n"}, 'DiskSpd failed with "invalid option'),
        ({"stdout": "Error opening file: #9 [2]\n"}, 'DiskSpd failed with "Error opening file: #9'),
        ({}, "no <Results>"),
    ],
)
def test_diskspds_own_message_is_told(streams: dict[str, str], named: str) -> None:
    with pytest.raises(UnusableError, match=r"trial\.xml") as caught:
        diskspd_xml.parse_output(streams, "trial.xml")
    assert named in str(caught.value)


def test_a_trial_cut_short_is_refused() -> None:
    text = (FOLDER / "v2.2-rand-w30-L-D.xml").read_text()
    with pytest.raises(UnusableError, match="interrupted"):
        diskspd_xml.parse_output({"stdout": text}, "trial.xml", runtime_s=60)


# --- the emulated DiskSpd

_STAND_IN = """
import sys
from diskbook_emulator import windows_diskspd
uri = sys.argv[1]
disks = {"0": {"uri": uri, "prefill_uri": uri, "size_bytes": 64 * 1024**2}}
sys.stdout.write(windows_diskspd.run(sys.argv[2:], disks))
"""


def stand_in(*argv: str, delay_ms: int = 5) -> str:
    """Run the emulated DiskSpd on a memory disk; its XML."""
    line = shlex.join([sys.executable, "-c", _STAND_IN])
    call = f'{line} "$uri" {shlex.join(argv)}'
    delay = ["--filter=delay", f"rdelay={delay_ms}ms", f"wdelay={delay_ms}ms"]
    command = ["nbdkit", "-U", "-", "memory", "64M", *delay, "--run", call]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.measures
def test_the_emulated_diskspd_tells_what_a_real_fio_measured() -> None:
    load = workload(threads=2, queue_depth=5, write_pct=30, sync="dsync", runtime_s=2, series_s=0.5)
    job = diskspd.command(load, Drive(), seed=3)
    text = stand_in(*job.argv[1:])
    result = diskspd_xml.parse_output({"stdout": text}, "trial.xml", runtime_s=2)

    assert "emulated by fio-" in result.version
    wanted = Load("random", 8192, 30, 2, 5, None, "dsync", 64 * MIB, 0.0, 2.0)
    assert result.load == wanted
    parts = result.directions
    assert text.count("<Thread>") == 2
    for part in parts.values():
        assert 5 <= part.lat_min_ms <= part.lat_p50_ms <= part.lat_p99_ms <= part.lat_p999_ms
    assert_keeps_its_queue(result, 10)
    with load_sensitive():
        assert parts["write"].ios / sum(part.ios for part in parts.values()) == pytest.approx(0.3, abs=0.04)
        in_flight = sum(series.iops * series.lat_mean_ms for series in result.series.values()) / 1000
        assert in_flight == pytest.approx(10, rel=0.05)  # by Little's law, in each interval


@pytest.mark.emulator
def test_a_line_without_latencies_has_none() -> None:
    job = diskspd.command(Workload(name="l", verbatim="diskspd -c8M -b4K -r -W0 -d1 -Su a"), Drive())
    read = diskspd_xml.parse_output({"stdout": stand_in(*job.argv[1:])}, "t.xml").directions["read"]
    assert read.iops > 0
    assert read.lat_mean_ms != read.lat_mean_ms
    assert not read.bins


def test_the_emulated_diskspd_names_what_it_does_not_take() -> None:
    from diskbook_emulator import windows_diskspd

    disks = {"0": {"uri": "", "prefill_uri": "", "size_bytes": MIB}}
    for words, named in ((["-b8K", "-Rxml", "#4"], "#4"), (["-b8K", "#1"], "-Rxml"), (["-q", "#1"], "-q")):
        with pytest.raises(UsageError) as caught:
            windows_diskspd.run(words, disks)
        assert named in str(caught.value)


# --- what readers are told


def test_remarks_stand_in_the_plan_and_beside_every_comparison(tmp_path: Path) -> None:
    found = scenario(tmp_path, "diskspd -c1G -w30 -b8K -r -Sh -L t.dat")
    plan = plan_text.plan_text(found, plan_text.Target(), plan_text.Sources(), "diskbook run")
    assert "the line: diskspd -c1G -w30 -b8K -r -Sh -L t.dat" in plan
    assert "reads may hit unwritten blocks" in plan
    table = pd.DataFrame({"workload": ["line", "other"], "warnings": ["first", None]})
    flagged = sentences.flagged(table, found)
    assert flagged["warnings"][0].startswith("first; -c re-creates the file: reads may hit unwritten blocks")
    assert flagged["warnings"][1] == ""


def test_notes_of_trials_are_facts_of_the_run(tmp_path: Path) -> None:
    trial = {"event": "trial", "workload": "line", "notes": ["no FUA"]}
    rows = facts._tool_facts(scenario(tmp_path), [trial, trial, {"event": "block"}])
    assert ("load line", "no FUA (2 trials)") in rows
    assert ("load line", f"the line: {ARTICLE}") in rows
