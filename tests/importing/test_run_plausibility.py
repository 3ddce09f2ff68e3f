"""Results that cannot be true, or are not of what was asked for, are named first; neighbours are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from diskbook import cli
from diskbook.importing import run as importer, terminal as import_text
from diskbook.importing.run import Imported
from diskbook.importing.scenario import Settings
from diskbook.report import show
from diskbook.report.analysis import why_text
from diskbook.report.analysis.run import analyse
from diskbook.report.show.caveats import HEAD
from support.fio_documents import entry, write


def imported(tmp_path: Path, *files: Path, **settings: Any) -> Imported:
    return importer.make([str(path) for path in files], f"{tmp_path}/run", Settings(**settings))


CLONES = [entry(iops=1000.0)] * 4
WRONG = {
    "latencies a thousand times too long": (
        [entry(mean_ms=8000.0)],
        {},
        "I/Os in flight: IOPS x mean latency is 1,000 times",
    ),
    "latencies a thousand times too short": (
        [entry(mean_ms=0.008)],
        {},
        "I/Os in flight: IOPS x mean latency is 0.001 times",
    ),
    "an idle queue": ([entry(mean_ms=2.0)], {}, "the queue was idle"),
    "one clone of four, with a depth that fits it": (
        [entry(iops=1000.0)],
        {"numjobs": "4", "iodepth": "8"},
        "as many I/Os were in flight as 1 of 4 clones",
    ),
    "three clones of four": (CLONES[:3], {"numjobs": "4", "iodepth": "8"}, "some clones are missing: 3 of 4"),
    "writes in a load of reads": (
        [entry(iops=2000.0, written=0.3)] * 2,
        {"numjobs": "2", "iodepth": "16"},
        "share of writes: 0 % writes were asked for, 30 %",
    ),
    "another mix": (
        [entry(iops=2000.0, written=0.3)] * 2,
        {"rw": "randrw", "rwmixread": "30", "numjobs": "2", "iodepth": "16"},
        "share of writes: 70 % writes were asked for, 30 %",
    ),
    "blocks of another size": (
        [entry(iops=2000.0, block=16384)] * 2,
        {"numjobs": "2", "iodepth": "16"},
        "bytes an I/O: 4,096 bytes an I/O were asked for, 16,384",
    ),
    "a third of the time": ([entry(runtime_s=10.0)], {}, "time: 30 s were asked for, 10 s measured"),
    "p99 below the mean": ([entry(p50=0.5, p99=0.7)], {}, "p99 below the mean: p99 is 0.7 times"),
    "p50 far above the mean": ([entry(p50=900.0, p99=950.0)], {}, "p50 above the mean: p50 is 900 times"),
    "a rate with too much in flight": (
        [entry(mean_ms=12.0)],
        {"rate_iops": "4000"},
        "I/Os in flight: IOPS x mean latency is 1.5 times",
    ),
    "a rate that was not kept": (
        [entry(iops=3000.0)],
        {"rate_iops": "4000"},
        "rate kept: 3,000 of the 4,000",
    ),
}
RIGHT = {
    "a closed loop": ([entry()], {}),
    "clones": (CLONES, {"numjobs": "4", "iodepth": "8"}),
    "clones summed up": ([entry()], {"numjobs": "4", "iodepth": "8", "group_reporting": "1"}),
    "a synchronous engine with a depth that it ignores": ([entry(iops=125.0)], {"ioengine": "psync"}),
    "jobs of a synchronous engine": ([entry(iops=500.0)], {"ioengine": "psync", "numjobs": "4"}),
    "pauses": ([entry(iops=100.0, mean_ms=1.0)], {"thinktime": "9000"}),
    "a target of latency": ([entry(iops=900.0, mean_ms=1.0)], {"latency_target": "1ms"}),
    "a rate that was kept": ([entry(mean_ms=0.5)], {"rate_iops": "4000"}),
    "a mix as asked": ([entry(written=0.31)], {"rw": "randrw", "rwmixread": "70"}),
    "most of the time": ([entry(runtime_s=28.0)], {}),
    "a sharp cap": ([entry(p50=1.0, p99=1.01)], {}),
    "a cache that answers half": ([entry(p50=1.9, p99=2.1)], {}),
}


@pytest.fixture(scope="module")
def by_case(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Doubts of every case, each an arm of one import."""
    folder = tmp_path_factory.mktemp("cases")
    cases = {**WRONG, **RIGHT}
    for number, (jobs, options, *_) in enumerate(cases.values()):
        write(folder / "in" / f"case-{number}.json", *jobs, stamp=1_700_000_000 + 100 * number, **options)
    made = importer.make([str(folder / "in")], f"{folder}/run", Settings(arms_by="file"))
    by_arm: dict[str, list[str]] = {f"case-{number}": [] for number in range(len(cases))}
    for doubt in analyse(made.run).compared.doubts:
        by_arm[doubt.arm].append(f"{doubt.kind}: {doubt.words}")
    return dict(zip(cases, by_arm.values(), strict=True))


@pytest.mark.long
@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_named(by_case: dict[str, list[str]], case: str) -> None:
    words = WRONG[case][2]
    assert any(words in doubt for doubt in by_case[case]), by_case[case]


@pytest.mark.long
@pytest.mark.parametrize("case", RIGHT)
def test_what_only_looks_odd_is_not(by_case: dict[str, list[str]], case: str) -> None:
    assert by_case[case] == []


@pytest.mark.long
def test_doubts_come_first_wherever_a_run_is_shown(tmp_path: Path) -> None:
    made = imported(tmp_path, write(tmp_path / "x.json", entry(mean_ms=0.008)))
    text = import_text.text(made).splitlines()
    assert text[1] == f"{HEAD}:" and text[2].startswith("  I/Os in flight, 1 of 1 measurement: ")
    assert HEAD in "\n".join(why_text.of_run(str(made.run.folder)).splitlines()[:3])
    page = show.doubts(analyse(made.run))
    assert "Look at these before any number below" in page and "wrong unit" in page
    assert "own concurrency" not in why_text.of_run(str(made.run.folder))


@pytest.mark.long
def test_a_sound_import_says_nothing_first_and_its_report_that_all_agrees(tmp_path: Path) -> None:
    made = imported(tmp_path, write(tmp_path / "x.json", entry()))
    assert HEAD not in import_text.text(made) and HEAD not in why_text.of_run(str(made.run.folder))
    assert show.doubts(analyse(made.run)) == ""


# --- causes, and limits that somebody names


def at_depths(tmp_path: Path, rates: dict[int, float]) -> list[Path]:
    """A file a depth, each a closed loop at its rate."""
    return [
        write(tmp_path / f"qd{depth}.json", entry(iops=rate, mean_ms=1000 * depth / rate), stamp=depth,
              iodepth=str(depth))
        for depth, rate in rates.items()
    ]  # fmt: skip


@pytest.mark.long
def test_equal_rates_at_depth_1_and_128_are_a_likely_cap_and_no_concurrency(tmp_path: Path) -> None:
    made = imported(tmp_path, *at_depths(tmp_path, {1: 5000.0, 128: 5010.0}), arms_by="target")
    words = why_text.of_run(str(made.run.folder))
    assert "equal rates over depths, 2 cells: " in words and "likely a cap that nobody named" in words
    assert "own concurrency" not in words


@pytest.mark.long
def test_rates_that_grow_with_depth_are_no_cap(tmp_path: Path) -> None:
    made = imported(tmp_path, *at_depths(tmp_path, {1: 700.0, 8: 5000.0}), arms_by="target")
    words = why_text.of_run(str(made.run.folder))
    assert "likely a cap" not in words and HEAD not in words
    assert "700 IOPS, set by the tool's own concurrency" in words


@pytest.mark.long
def test_no_cause_is_said_of_a_single_load_whose_limits_nobody_knows(tmp_path: Path) -> None:
    made = imported(tmp_path, *at_depths(tmp_path, {1: 700.0}), arms_by="target")
    words = why_text.of_run(str(made.run.folder))
    assert "set by the tool's own concurrency" not in words and "what sets it is not known" in words
    (line,) = [line for line in words.splitlines() if "it lacks" in line]
    assert "--disk-sku" in line and "--size-gib" in line and "--vm-size" in line


@pytest.mark.long
def test_limits_given_to_the_import_are_kept(tmp_path: Path) -> None:
    files = at_depths(tmp_path, {1: 700.0, 128: 5010.0})
    made = imported(tmp_path, *files, arms_by="target", disk_iops=5000.0, disk_mb_s=200.0, vm_iops=6400.0)
    named = {"vm_iops": 6400.0, "disk_iops": 5000.0, "disk_mb_s": 200.0}
    assert made.run.manifest["imported"]["named"] == named
    words = why_text.of_run(str(made.run.folder))
    assert "limits by --vm-iops 6400 --disk-iops 5000 --disk-mb-s 200, named at the import" in words
    assert "throttled: 1 of 2 cells" in words and "disk limit of 5,000 IOPS" in words
    assert "it lacks" not in words


@pytest.mark.long
def test_limits_given_to_why_hold_for_that_answer_alone(tmp_path: Path) -> None:
    made = imported(tmp_path, *at_depths(tmp_path, {1: 700.0, 128: 5010.0}), arms_by="target")
    kept = {path.name: path.read_bytes() for path in made.run.folder.iterdir() if path.is_file()}
    name = str(made.run.folder)
    limits = ["--disk-sku", "Premium_LRS", "--size-gib", "1024", "--vm-mb-s", "96"]
    done = CliRunner(env={"COLUMNS": "1000"}).invoke(cli.cli, ["why", name, *limits])
    assert done.exit_code == 0, done.output
    assert "--disk-sku Premium_LRS --size-gib 1024 --vm-mb-s 96, for this answer alone" in done.output
    assert "disk limit of 5,000 IOPS" in done.output and "it lacks" not in done.output
    assert {path.name: path.read_bytes() for path in made.run.folder.iterdir() if path.is_file()} == kept
    assert "it lacks" in CliRunner().invoke(cli.cli, ["why", name]).output


def test_limits_that_cannot_be_are_refused_in_one_sentence(tmp_path: Path) -> None:
    made = imported(tmp_path, *at_depths(tmp_path, {1: 700.0}), arms_by="target")
    for options, words in (
        (["--size-gib", "64"], "--disk-sku and --size-gib go together"),
        (["--vm-size", "Standard_D4as_v44"], "did you mean 'Standard_D4as_v4'"),
        (["--disk-iops", "-5"], "a limit is more than 0"),
        (["--protocol", "--disk-iops", "5"], "--protocol is about comparisons"),
    ):
        done = CliRunner().invoke(cli.cli, ["why", str(made.run.folder), *options])
        assert done.exit_code and words in f"{done.output}{done.exception}", (options, done.output)
