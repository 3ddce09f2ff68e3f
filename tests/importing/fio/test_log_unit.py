"""Which unit logs of fio are in: by what lies beside them, by the job's latency, or by what is possible."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest

from diskbook.importing import run as importer
from diskbook.importing.fio import json_files, log_unit, logs_of_a_job
from diskbook.importing.fio.logs_of_a_job import LogFile
from diskbook.results import tables
from diskbook.tools.record import UnusableError

US, NS = 1000, 1


def lines(latency: int, per_s: int, seconds: int = 3, size: int = 4096) -> str:
    """A log of reads, each of so many ns or us."""
    step = 1000 / per_s
    return "".join(
        f"{round(k * step)}, {latency + k % 3}, 0, {size}\n" for k in range(1, per_s * seconds + 1)
    )


def logs(latency: int, per_s: int, clones: int = 1, kind: str = "lat") -> dict[str, list[LogFile]]:
    content = lines(latency, per_s).encode()
    names = [f"a_{kind}.{number}.log" for number in range(1, clones + 1)]
    return {kind: [LogFile(name, lambda: io.BytesIO(content)) for name in names]}


@pytest.mark.parametrize(
    ("latency", "per_s", "clones", "unit", "words"),
    [
        (1_000_000, 990, 1, NS, r"0\.99 I/Os in flight a thread then, and 990 as micro"),  # depth 1
        (3_600_000, 20, 2, NS, r"as microseconds they would be 3\.6 s"),  # held at a rate
        (64_000_000, 500, 2, NS, "32 I/Os in flight"),
        (3_000_000_000, 20, 1, NS, "60 I/Os in flight"),
        (1_000, 990, 1, US, r"0\.991 I/Os in flight a thread then, and 0\.000991 as nanoseconds"),
        (2_000, 490, 4, US, r"0\.98 I/Os in flight"),
        (64_000, 496, 1, US, r"31\.7 I/Os in flight"),  # depth 32 at 64 ms
        (2_100, 20, 1, None, None),  # held at a rate: 0.042 in flight, or 0.000042
        (640_000, 100, 1, None, None),  # 64 in flight, or 0.064
        (48_000, 496, 1, None, None),  # 24 in flight, or an idle local disk
    ],
)
def test_units_of_logs_alone(
    latency: int, per_s: int, clones: int, unit: int | None, words: str | None
) -> None:
    if unit is None:
        with pytest.raises(UnusableError, match="put the job's JSON or text output beside it"):
            log_unit.read(logs(latency, per_s, clones), None, None)
        return
    read, decided = log_unit.read(logs(latency, per_s, clones), None, None)
    assert decided == unit
    assert read.directions["read"].lat_mean_ms == pytest.approx(latency * unit / 1e6, rel=0.01)
    assert words is not None and re.search(words, read.flags[-1])
    assert read.flags[-1].startswith("latencies are taken for")


def result(mean_us: float, version: str = "unknown", jobs: int = 1) -> str:
    latency = {"min": 1, "max": 10**7, "mean": mean_us, "stddev": 1.0}
    read = {"total_ios": 60, "iops": 20, "runtime": 3000, "io_bytes": 240, "lat": latency, "bw_min": 1}
    options = {"name": "a", "rw": "randread", "numjobs": str(jobs), "write_lat_log": "a", "direct": "1"}
    job = {"jobname": "a", "error": 0, "job options": options, "read": read}
    return json.dumps({"fio version": f"fio-{version}", "jobs": [job] * jobs})


def test_a_version_beside_them_or_the_jobs_own_latency_decide() -> None:
    (job,) = json_files.parse(result(2101), "x").measurements
    read, unit = log_unit.read(logs(2_100, 20), None, job)
    assert (unit, read.directions["read"].lat_mean_ms) == (US, pytest.approx(2.1, rel=0.01))
    assert log_unit.read(logs(2_100, 20), US, None)[1] == US
    assert log_unit.of_versions([US, None, US]) == US
    assert log_unit.of_versions([US, NS]) is None


def put(folder: Path, name: str, content: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(content)


@pytest.mark.long
@pytest.mark.parametrize(("version", "name"), [("2.16", "a.json"), ("2.1.3", "other.json")])
def test_logs_beside_a_result_of_fio_2_are_microseconds(tmp_path: Path, version: str, name: str) -> None:
    content = result(2100, version)
    put(tmp_path / "in", name, content if name == "a.json" else content.replace('"a"', '"b"'))
    put(tmp_path / "in", "a_lat.1.log", lines(2_100, 20))
    made = importer.make([str(tmp_path / "in")], str(tmp_path / "run"))
    means = tables.read(made.run.folder).trials["lat_mean_ms"]
    assert means.tolist() == pytest.approx([2.1] * len(means), rel=0.01)
    alone = "latencies are taken for microseconds, as of the fio 2 beside them"
    assert any(alone in flag for flag in made.flags) == (name == "other.json")


def test_logs_of_some_clones_make_no_series_of_the_whole(tmp_path: Path) -> None:
    put(tmp_path / "in", "a.json", result(2100, "2.16", jobs=4))
    for clone in (1, 2, 4):
        put(tmp_path / "in", f"a_lat.{clone}.log", lines(2_100, 20))
    made = importer.make([str(tmp_path / "in")], str(tmp_path / "run"))
    assert any("logs of lat of 3 of 4 clones: no series" in flag for flag in made.flags)
    assert not len(tables.read(made.run.folder).series)
    assert len(tables.read(made.run.folder).trials) == 1


def test_a_gap_among_logs_alone_is_a_clone_that_lacks() -> None:
    some = logs(1_000, 990, 4)
    del some["lat"][1]
    assert logs_of_a_job.whole_kinds(some, None)[0] == set()
    both = {**logs(1_000, 990, 2), **logs(1, 1, 1, "bw")}
    assert logs_of_a_job.whole_kinds(both, None) == (
        {"lat"},
        ["logs of bw of 1 of 2 clones: no series or histogram of the whole is made of them"],
    )
    for_all = {"lat": [LogFile("a_lat.log", lambda: io.BytesIO(b""))]}
    assert logs_of_a_job.whole_kinds(for_all, 4) == ({"lat"}, [])
