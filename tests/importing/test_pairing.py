"""Logs go with the result that they are of, wherever they lie; a file is compared with itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from diskbook.importing import contradictions, run as importer, terminal
from diskbook.importing.run import Planned
from support.results import Result, later, write


def plan(base: Path) -> Planned:
    return importer.plan([str(base)], f"{base}-run")


def log(folder: Path, name: str, value: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("".join(f"{1000 * k}, {value}, 0, 0\n" for k in range(1, 31)))


def sequential(path: Path, iops: float = 5000.0) -> Path:
    """A result of sequential reads."""
    written = write(path, "fio-json", "3.36", Result(iops=iops, began=later(minutes=iops)))
    written.write_text(written.read_text().replace("randread", "read"))
    return written


LAYOUTS = {
    "folder named as the result": ("job.json", "job", "x_iops.1.log", "x_lat.1.log"),
    "a prefix for each kind": ("job.json", "job", "iops_iops.1.log", "lat_lat.1.log"),
    "beside, named as the file": ("job.json", "", "job_iops.1.log", "job_lat.1.log"),
    "in logs/, named as the file": ("job.json", "logs", "job_iops.log", "job_lat.log"),
    "in logs/, named as the job": ("any.json", "logs", "job_iops.1.log", "job_lat.1.log"),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_logs_below_their_result_count_once(tmp_path: Path, layout: str) -> None:
    result, folder, iops, latency = LAYOUTS[layout]
    sequential(tmp_path / "in" / result)
    log(tmp_path / "in" / folder, iops, 5000)
    log(tmp_path / "in" / folder, latency, 800_000)
    (entry,) = plan(tmp_path / "in").entries
    assert entry.workload["name"] == "read-4k-qd4" and set(entry.logs) == {"iops", "lat"}
    assert len(entry.measurement.series["read"].iops) == 30


def test_logs_of_two_results_are_not_mixed(tmp_path: Path) -> None:
    for name, iops in (("a", 4000), ("b", 5000)):
        sequential(tmp_path / "in" / f"{name}.json", iops)
        log(tmp_path / "in" / name, "x_iops.1.log", iops)
    planned = plan(tmp_path / "in")
    series = {round(entry.measurement.series["read"].iops.mean()) for entry in planned.entries}
    assert len(planned.entries) == 2 and series == {4000, 5000}


@pytest.mark.long
@pytest.mark.parametrize("factor", [0.5, 2.0, 1.0])
@pytest.mark.parametrize("of_series", [False, True])
def test_a_file_that_contradicts_itself_stands_first(tmp_path: Path, factor: float, of_series: bool) -> None:
    path = write(tmp_path / "in" / "job.json", "fio-json", "3.36", Result(iops=5000))
    if of_series:
        log(tmp_path / "in", "job_iops.1.log", round(5000 * factor))
        log(tmp_path / "in", "job_lat.1.log", 800_000)
    else:
        document = json.loads(path.read_text())
        document["jobs"][0]["read"]["total_ios"] *= factor
        document["jobs"][0]["read"]["io_bytes"] *= factor
        path.write_text(json.dumps(document))
    made = importer.make([str(tmp_path / "in")], f"{tmp_path}/run")
    text = terminal.text(made)
    assert (contradictions.CONTRADICTS in text) == (factor != 1.0)
    if factor != 1.0:
        assert text.index("before any number") < text.index(contradictions.CONTRADICTS)
