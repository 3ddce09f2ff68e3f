"""From a DiskSpd line to a workload, a job of fio, and what the real fio says that it ran; totals too."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import pytest

from diskbook.design.diskspd_arguments import parse
from diskbook.design.model import TOOLS_OF_SYSTEM, ToolName, Workload
from diskbook.facts import paths
from diskbook.facts.errors import UsageError
from diskbook.tools import fio, registry
from diskbook.tools.protocol import Imported, Tool
from diskbook.tools.record import Direction, Load, Measurement, UnusableError
from support.disturbance import load_sensitive
from support.fio_jobs import assert_keeps_its_queue, run, run_on_memory

MIB = 1024**2
RUN = [tool for tool in registry.TOOLS.values() if not isinstance(tool, Imported)]


@dataclass(frozen=True)
class Target:
    target: str
    engine: str


NBD = Target("@uri@", "nbd")


def workload(line: str, **more: Any) -> Workload:
    """Workload of a line; its keys come from the line alone."""
    return Workload.model_validate({"name": "line", "verbatim": line, "series_s": 0.2, **more})


def ran(folder: Path) -> dict[str, Any]:
    """What fio says in its JSON about the one job that it ran."""
    text = (folder / "stdout").read_text()
    (job,) = json.loads(text[text.index("{") :])["jobs"]
    return job


def result(folder: Path) -> Measurement:
    return fio.parse_output(
        (folder / "stdout").read_text(), "trial.json", messages=(folder / "stderr").read_text()
    )


@pytest.mark.measures
def test_the_article_of_the_shared_disk_shortened(tmp_path: Path) -> None:
    line = "diskspd -c16M -w100 -b8K -F8 -r -o5 -W1 -d1 -Sh -L testfile.dat"
    load = workload(line)
    job = fio.command(load, NBD)
    assert run_on_memory([(job, tmp_path)], delay_ms=5) == [0]
    options, found = ran(tmp_path)["job options"], result(tmp_path)

    asked = parse(line)
    assert int(options["numjobs"]) == asked.threads == 8
    assert int(options["iodepth"]) == asked.depth == 5
    assert (options["rw"], int(options["bs"]), int(options["size"])) == ("randwrite", 8192, 16 * MIB)
    assert (options["ramp_time"], options["runtime"]) == ("1000ms", "1000ms")
    assert set(found.directions) == {"write"}
    write = found.directions["write"]
    assert "no FUA" in job.notes[0] and write.runtime_ms > 950
    assert_keeps_its_queue(found, 40)  # each is held for 5 ms: the totals are those of 8 x 5
    with load_sensitive():
        assert write.runtime_ms < 1120
        assert write.bw_bytes == pytest.approx(write.iops * 8192, rel=0.02)


@pytest.mark.emulator
def test_write_through_on_a_file_is_direct_and_dsync_in_every_thread(tmp_path: Path) -> None:
    target = Target(str(tmp_path / "disk.dat"), "libaio")
    job = fio.command(workload("diskspd -c8M -w100 -b4K -t2 -o2 -r -W0 -d1 -Sh a"), target)
    assert run(job, tmp_path) == 0
    options = ran(tmp_path)["job options"]
    assert (options["direct"], options["sync"], options["numjobs"]) == ("1", "dsync", "2")
    assert not any("FUA" in note for note in job.notes)
    plain = fio.command(workload("diskspd -c8M -w100 -b4K -Su a"), target)
    assert "--direct=1" in plain.argv and not any(word.startswith("--sync") for word in plain.argv)


@pytest.mark.measures
def test_a_mixed_load_at_a_rate_for_each_thread(tmp_path: Path) -> None:
    line = "diskspd -c16M -w30 -b8K -t2 -o4 -r -g1024 -W0 -d2 -Su -L a.dat"
    load = workload(line)
    assert load.rate == pytest.approx(250)
    job = fio.command(load, NBD)
    assert run_on_memory([(job, tmp_path)]) == [0]
    assert (
        ran(tmp_path)["job options"]["rate"] == "716800,307200"
    )  # of one thread: 70 % and 30 % of 1,024,000
    found = result(tmp_path)
    rate = sum(part.iops for part in found.directions.values())
    assert rate < 250 * 1.05
    with load_sensitive():
        assert rate > 250 * 0.88
        assert found.directions["write"].ios / found.ios == pytest.approx(0.3, abs=0.02)


@pytest.mark.measures
def test_several_targets_keep_their_totals_on_the_one_disk(tmp_path: Path) -> None:
    load = workload("diskspd -c8M -b4K -t2 -o3 -r -W0 -d1 -Su -L a.dat b.dat")
    assert (load.threads, load.queue_depth, load.outstanding) == (4, 3, 12)
    assert run_on_memory([(fio.command(load, NBD), tmp_path)], delay_ms=5) == [0]
    assert any("2 targets" in remark for remark in load.remarks)
    assert set(result(tmp_path).directions) == {"read"}
    assert_keeps_its_queue(result(tmp_path), 12)


@pytest.mark.emulator
def test_stride_alignment_and_content(tmp_path: Path) -> None:
    lines = {
        "-s16K -b8K": {"rw": "read:8192"},
        "-s -b8K -t2 -T1M": {"rw": "read", "offset_increment": str(MIB)},
        "-rs60 -r512 -b4K": {"percentage_random": "60", "ba": "512"},
        "-r -b4K -w100 -Z -B1M": {"zero_buffers": "1", "offset": str(MIB), "size": str(7 * MIB)},
        "-r -b4K -w100 -Zr": {"refill_buffers": "1"},
    }
    jobs = []
    for number, flags in enumerate(lines):
        folder = tmp_path / str(number)
        folder.mkdir()
        jobs.append((fio.command(workload(f"diskspd -c8M -W0 -d1 -Su {flags} a"), NBD), folder))
    assert run_on_memory(jobs, delay_ms=1) == [0] * len(jobs)
    for (_, folder), wanted in zip(jobs, lines.values(), strict=True):
        options = ran(folder)["job options"]
        assert {key: options[key] for key in wanted} == wanted
        assert result(folder).ios > 0


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        ("-Sb", "file cache"),
        ("-Sm", "memory mapping"),
        ("-Su -r -rdpct90/10:10/90", "-rd"),
        ("-Su -si -t2", "-si"),
        ("-Su -i4 -j10", "-i and -j"),
        ("-Su -s4K", "overlap"),
    ],
)
def test_what_fio_cannot_do_names_the_argument(flags: str, named: str) -> None:
    with pytest.raises(UsageError, match="DiskSpd line: fio") as caught:
        fio.command(workload(f"diskspd -b8K -c8M {flags} a"), NBD)
    assert named in str(caught.value)


def test_what_fio_leaves_out_is_said() -> None:
    job = fio.command(workload("diskspd -b8K -c8M -Su -n -I2 -C5 a"), NBD)
    assert "-I, -n: left out" in " ".join(job.notes)
    assert "-C5: left out" in " ".join(job.notes)


# --- the tools, whichever there are


@pytest.mark.parametrize("tool", RUN, ids=lambda tool: tool.name)
def test_a_tool_offers_what_the_workbook_asks_of_it(tool: Tool) -> None:
    load = Workload.model_validate({"name": "w", "block_size": "4K", "write_pct": 0, "runtime_s": 2})
    job = tool.command(load, tool.example, seed=1)
    assert job.argv and set(job.logs.values()) < set(tool.raw)
    if tool.fleet:
        assert set(tool.raw) == {"archive"} and tool.main == tool.raw["archive"][0]
    else:
        assert {"stdout", "stderr"} <= set(tool.raw) and tool.main == tool.raw["stdout"][0]
    fill = tool.prefill(MIB, tool.example)
    assert fill is not None and fill.limit_s is not None and fill.limit_s > 60
    done = Direction(ios=2, iops=1.0, bw_bytes=MIB, runtime_ms=2000)
    assert tool.prefill(MIB, tool.example, Measurement("f", "", Load(), {"write": done})) is None
    with pytest.raises(UnusableError, match=r"^a trial"):
        tool.read({}, "a trial")
    assert registry.of_version(tool.version(f"{tool.name}-1.0")) is tool
    assert tool.install.version and (tool.install.packages or tool.install.sha256)


def test_a_tool_that_is_only_imported_is_refused_in_a_scenario() -> None:
    load = Workload.model_validate({"name": "w", "block_size": "4K", "write_pct": 0, "runtime_s": 2})
    for tool in (registry.TOOLS["elbencho"], registry.TOOLS["sysbench"], registry.TOOLS["other"]):
        with pytest.raises(UsageError, match=f"results of {tool.title}, but does not run it; choose"):
            tool.command(load, NBD, seed=1)


def test_machines_have_the_tools_of_the_registry() -> None:
    by_system = {name: system for system, names in TOOLS_OF_SYSTEM.items() for name in names}
    assert by_system == {tool.name: tool.system for tool in RUN}
    assert set(get_args(ToolName)) == set(registry.TOOLS)


def test_no_other_room_asks_which_tool_it_is() -> None:
    """What starts a tool, or plays one, names it as a program, and a reader its format: no questions."""
    names = "|".join(registry.TOOLS)
    asks = re.compile(rf'\b(tool|name|engine)\w* (==|!=|in) \(?"({names})"|get\("(json|xml)"\)')
    rooms = paths.ROOT / "lib" / "diskbook"
    own = {rooms / "tools", *(rooms / "importing" / name for name in ("fio", "diskspd", "perfkit.py"))}
    files = [path for path in sorted(rooms.rglob("*.py")) if not own & {path, *path.parents}]
    assert [path.name for path in files if asks.search(path.read_text("utf-8"))] == []
