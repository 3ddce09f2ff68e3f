"""Tables of a run: rebuilt from raw files that fio wrote, checked against their schemas."""

from __future__ import annotations

import gzip
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from diskbook.design import schema
from diskbook.design.model import Workload
from diskbook.facts.errors import DiskbookError
from diskbook.results import tables as store_tables
from diskbook.results.run import Run
from diskbook.tools import fio
from support.fio_jobs import run_on_memory
from support.manifests import MINIMAL

pytestmark = pytest.mark.emulator

WORKLOADS = (
    {"name": "mixed", "block_size": 4096, "write_pct": 50, "queue_depth": 2, "rate": 1000.0},
    {"name": "commit", "block_size": 4096, "write_pct": 100, "sync": "fdatasync"},
)
SHORT = {"working_set_gib": 1 / 64, "runtime_s": 0.4, "series_s": 0.1}
KINDS = {"json": "json", "lat_log": "lat.log", "iops_log": "iops.log"}


@dataclass(frozen=True)
class Nbd:
    engine: str = "nbd"
    target: str = "@uri@"


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, bytes]]:
    """What fio leaves for each workload on a memory disk that answers after 1 ms."""
    found = {}
    for item in WORKLOADS:
        folder = tmp_path_factory.mktemp(item["name"])
        job = fio.command(Workload.model_validate({**item, **SHORT}), Nbd())
        assert run_on_memory([(job, folder)], size_mib=16) == [0]
        files = {"json": "stdout", **job.logs}
        found[item["name"]] = {kind: (folder / files[kind]).read_bytes() for kind in KINDS}
    return found


def manifest() -> dict[str, Any]:
    none = dict.fromkeys(("iops", "mb_s", "burst_iops", "burst_mb_s"))
    machine = {"id": "/vm1", "size": "Standard_D4as_v4", "logical_zone": "1", "physical_zone": "3"}
    limits = {**none, "iops": 5000, "mb_s": 200}
    return {
        **MINIMAL,
        "run": "small",
        "provenance": "emulated",
        "site": "default",
        "scenario": {"name": "tiny", "workload": [{**item, **SHORT} for item in WORKLOADS]},
        "replicates": [
            {
                "replicate": 1,
                "machines": {"vm1": {**machine, "limits": {**none, "burst_iops": 9000, "cached_iops": 8000}}},
                "disks": {"zrs": {"id": "/zrs", "limits": limits}},
            }
        ],
    }


def add_trial(run: Run, content: dict[str, bytes], workload: str, block: int, **changes: Any) -> str:
    """Keep a trial's output and its ledger line; return its name."""
    trial = changes.pop("trial", f"r1-b{block:02d}-{workload}-a1")
    files = {kind: run.write_raw(f"{trial}.{end}", content[kind]) for kind, end in KINDS.items() if content}
    started = "2026-11-20T10:00:00.000000+00:00"
    place = {"replicate": 1, "block": block, "repeat": 1, "position": 1, "arm": "zrs-z1", "attempt": 1}
    where = {"machine": "vm1", "machine_id": "/vm1", "disk": "zrs", "disk_id": "/zrs"}
    line = {"status": "ok", "error": None, "started_utc": started, "ended_utc": started, "files": files}
    run.append("trial", trial=trial, workload=workload, **{**place, **where, **line, **changes})
    return trial


@pytest.fixture
def run(tmp_path: Path, outputs: dict[str, dict[str, bytes]]) -> Run:
    """One complete block (a failed attempt, its repetition, a commit trial) and the beginning of another."""
    made = Run(tmp_path / "small")
    made.folder.mkdir()
    made.write_manifest(manifest())
    failure = {"status": "failed", "error": "fio did no I/O", "trial": "r1-b01-mixed-a0"}
    add_trial(made, {}, "mixed", 1, **failure)
    add_trial(made, outputs["mixed"], "mixed", 1, attempt=2)
    add_trial(made, outputs["commit"], "commit", 1)
    made.append("block", replicate=1, block=1, status="complete")
    add_trial(made, outputs["commit"], "commit", 2)
    return made


def row(tables: store_tables.Tables, trial: str, direction: str) -> pd.Series:
    found = tables.trials.query("trial == @trial and direction == @direction")
    assert len(found) == 1
    return found.iloc[0]


# --- building


def test_each_direction_has_a_row_with_what_was_measured_and_where(run: Run, outputs: dict) -> None:
    tables = store_tables.build(run)
    read = row(tables, "r1-b01-mixed-a1", "read")
    told = fio.parse_output(outputs["mixed"]["json"].decode(), "mixed").directions["read"]
    assert read.ios == told.ios > 0
    assert (read.iops, read.lat_mean_ms, read.lat_p99_ms) == (told.iops, told.lat_mean_ms, told.lat_p99_ms)
    assert read.throughput_mb_s == pytest.approx(read.iops * 4096 / 1e6)
    assert read.runtime_s == told.runtime_ms / 1000 >= 0.4
    assert (read.arm, read.vm_size, read.logical_zone, read.physical_zone) == (
        "zrs-z1",
        "Standard_D4as_v4",
        "1",
        "3",
    )
    assert (read.outstanding, read.rate_offered, read.attempt, read.status) == (2, 1000, 2, "ok")
    assert read.lat_bound == "lower" and pd.isna(read.lat_p99_intended_ms)  # its log is averaged
    assert (read.cap_disk_iops, read.cap_disk_mb_s, read.cap_vm_burst_iops) == (5000, 200, 9000)
    assert pd.isna(read.cap_vm_iops)
    assert read.credit_state == "unknown"  # the VM can burst, and nobody said how much credit it has
    assert read.raw_path == "raw/r1-b01-mixed-a1.json.gz"
    assert read.started_utc == pd.Timestamp("2026-11-20T10:00:00Z")
    assert row(tables, "r1-b01-mixed-a1", "write").ios > 0


@pytest.mark.parametrize(("cache", "limit"), [("None", None), ("ReadOnly", 8000), ("ReadWrite", 8000)])
def test_the_cached_limit_is_in_force_with_a_host_cache_only(
    run: Run, cache: str, limit: float | None
) -> None:
    told = run.manifest
    told["scenario"]["disk"] = [{"name": "zrs", "cache": cache}]
    run.write_manifest(told)
    found = store_tables.build(run).trials["cap_vm_cached_iops"].unique().tolist()
    assert found == [limit] if limit else pd.isna(found).all()


def test_a_commit_is_the_write_and_its_sync(run: Run) -> None:
    tables = store_tables.build(run)
    write, sync, commit = (row(tables, "r1-b01-commit-a1", name) for name in ("write", "sync", "commit"))
    assert commit.lat_mean_ms == pytest.approx(write.lat_mean_ms + sync.lat_mean_ms)
    assert (commit.ios, commit.iops) == (write.ios, write.iops)
    assert commit[["lat_p50_ms", "lat_p99_ms", "lat_p999_ms"]].isna().all()
    assert pd.isna(sync.throughput_mb_s)
    assert set(tables.bins.query("trial == 'r1-b01-commit-a1'").direction) == {"write", "sync"}


def test_a_failed_attempt_keeps_one_row_and_its_error(run: Run) -> None:
    failed = row(store_tables.build(run), "r1-b01-mixed-a0", "none")
    assert (failed.status, failed.error) == ("failed", "fio did no I/O")
    assert failed[["ios", "iops", "lat_mean_ms", "runtime_s", "raw_path"]].isna().all()


def test_an_incomplete_block_is_flagged(run: Run) -> None:
    trials = store_tables.build(run).trials
    assert set(trials[trials.block == 2].status) == {"incomplete_block"}
    assert set(trials[trials.block == 1].status) == {"ok", "failed"}


def test_a_block_begun_anew_counts_only_from_there(run: Run, outputs: dict) -> None:
    run.append("block", replicate=1, block=2, status="started")
    add_trial(run, outputs["commit"], "commit", 2, trial="again")
    run.append("block", replicate=1, block=2, status="complete")
    trials = store_tables.build(run).trials
    status = trials[trials.block == 2].groupby("trial").status.first()
    assert status.to_dict() == {"r1-b02-commit-a1": "incomplete_block", "again": "ok"}


def test_bins_and_series_belong_to_their_trials(run: Run, outputs: dict[str, dict[str, bytes]]) -> None:
    tables = store_tables.build(run)
    counts = tables.bins.groupby(["trial", "direction"])["count"].sum()
    for trial, direction in (("r1-b01-mixed-a1", "read"), ("r1-b02-commit-a1", "sync")):
        assert abs(counts[trial, direction] - row(tables, trial, direction).ios) <= 2
    found = tables.series.query("trial == 'r1-b01-mixed-a1' and direction == 'read'")
    read = fio.TOOL.read(outputs["mixed"], "mixed", runtime_s=0.4, series_s=0.1).series["read"]
    for name in ("second", "iops", "lat_mean_ms"):
        assert found[name].tolist() == getattr(read, name).tolist()
    assert found.second.is_monotonic_increasing


def test_a_run_without_trials_gives_empty_tables(run: Run) -> None:
    (run.folder / "ledger.jsonl").unlink()
    tables = store_tables.build(run)
    assert [len(part) for part in (tables.trials, tables.bins, tables.series)] == [0, 0, 0]
    store_tables.write(tables, run.folder)
    assert list(store_tables.read(run.folder).trials.columns) == [item.name for item in schema.TRIALS.columns]


# --- what is damaged is named


def test_a_changed_raw_file_is_named(run: Run) -> None:
    path = run.folder / "raw" / "r1-b01-mixed-a1.json.gz"
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()).replace(b"4", b"5")))
    with pytest.raises(DiskbookError, match=r"r1-b01-mixed-a1\.json\.gz was changed after the trial"):
        store_tables.build(run)


@pytest.mark.parametrize("content", [b"no gzip", b"\x1f\x8b\x08\x00cut"])
def test_a_damaged_raw_file_is_named(run: Run, content: bytes) -> None:
    (run.folder / "raw" / "r1-b01-mixed-a1.lat.log.gz").write_bytes(content)
    with pytest.raises(DiskbookError, match=r"r1-b01-mixed-a1\.lat\.log\.gz cannot be unpacked"):
        store_tables.build(run)


def test_a_missing_raw_file_is_named(run: Run) -> None:
    (run.folder / "raw" / "r1-b01-mixed-a1.json.gz").unlink()
    with pytest.raises(DiskbookError, match=r"r1-b01-mixed-a1\.json\.gz is missing"):
        store_tables.build(run)


def test_a_finished_trial_without_output_is_refused(run: Run) -> None:
    add_trial(run, {}, "mixed", 2, trial="bare")
    with pytest.raises(DiskbookError, match="no raw file for the finished trial bare"):
        store_tables.build(run)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("replicates", [], r"line 1 of ledger\.jsonl lacks 'replicate 1'"),
        ("scenario", {"name": "tiny", "workload": []}, r"line 1 of ledger\.jsonl lacks 'mixed'"),
        ("scenario", {"name": "x", "workload": [{"name": "mixed"}]}, r"does not fit line 1 of ledger"),
    ],
)
def test_a_manifest_that_does_not_fit_is_named(run: Run, key: str, value: Any, message: str) -> None:
    run.update_manifest(**{key: value})
    with pytest.raises(DiskbookError, match=rf"run small: manifest\.json .*{message}"):
        store_tables.build(run)


def test_a_foreign_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps({"schema": 7, "run": "other"}))
    with pytest.raises(DiskbookError, match="has schema 7"):
        store_tables.build(Run(tmp_path))


# --- files


def test_tables_survive_writing_and_equal_tables_give_equal_bytes(run: Run, tmp_path: Path) -> None:
    tables = store_tables.build(run)
    store_tables.write(tables, run.folder)
    again = store_tables.read(run.folder)
    for name in ("trials", "bins", "series"):
        pd.testing.assert_frame_equal(getattr(tables, name), getattr(again, name))
    other = tmp_path / "other"
    other.mkdir()
    store_tables.write(store_tables.build(run), other)
    for name in ("trials.parquet", "bins.parquet", "series.parquet"):
        assert (other / name).read_bytes() == (run.folder / name).read_bytes()


def test_a_damaged_table_is_named(run: Run) -> None:
    store_tables.write(store_tables.build(run), run.folder)
    (run.folder / "bins.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(DiskbookError, match=r"bins\.parquet cannot be read as parquet .*rebuild"):
        store_tables.read(run.folder)
    (run.folder / "bins.parquet").unlink()
    with pytest.raises(DiskbookError, match=r"bins\.parquet is missing; rebuild"):
        store_tables.read(run.folder)


def test_what_breaks_its_schema_is_neither_written_nor_read(run: Run) -> None:
    tables = store_tables.build(run)
    wrong = store_tables.Tables(tables.trials.assign(direction="up"), tables.bins, tables.series)
    with pytest.raises(
        DiskbookError, match=r"trials\.parquet: table trials, column 'direction', row 0: 'up'"
    ):
        store_tables.write(wrong, run.folder)
    assert not (run.folder / "trials.parquet").exists()
    store_tables.write(tables, run.folder)
    tables.bins.drop(columns="count").to_parquet(run.folder / "bins.parquet")
    with pytest.raises(DiskbookError, match=r"bins\.parquet: table bins: column 'count' is missing"):
        store_tables.read(run.folder)


# --- schema


def bins(**changes: list) -> pd.DataFrame:
    good = {"trial": ["a", "a"], "direction": ["read", "read"], "lat_ns": [10, 20], "count": [1, 2]}
    return pd.DataFrame({**good, **changes})


def test_a_good_table_passes_with_its_types() -> None:
    checked = schema.validate(schema.BINS, bins(count=["1", 2.0])[["count", "lat_ns", "direction", "trial"]])
    assert [str(kind) for kind in checked.dtypes] == ["str", "str", "int64", "int64"]
    assert list(checked.columns) == ["trial", "direction", "lat_ns", "count"]


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (bins(extra=[1, 2]), "there is a column 'extra' that does not belong"),
        (bins(trial=["a", None]), "column 'trial', row 1: .* is empty"),
        (bins(trial=["a", 7]), "column 'trial', row 1: 7 is not text"),
        (bins(direction=["read", "trim"]), "column 'direction', row 1: 'trim' is none of read, write"),
        (bins(count=[1, 2.5]), "column 'count', row 1: .*2.5.* is not a whole number"),
        (bins(count=["many", 1]), "column 'count', row 0: 'many' is not a whole number"),
        (bins(count=[0, 1]), "column 'count', row 0: .*0.* is less than 1"),
        (bins(lat_ns=[10, 10]), "row 1: trial a, direction read, lat_ns 10 is there twice"),
    ],
)
def test_a_bad_table_is_refused_with_place_and_remedy(frame: pd.DataFrame, message: str) -> None:
    with pytest.raises(DiskbookError, match=f"table bins.*{message}.*; rebuild the tables"):
        schema.validate(schema.BINS, frame)


def test_endless_numbers_and_bad_times_are_refused(run: Run) -> None:
    trials = store_tables.build(run).trials
    with pytest.raises(DiskbookError, match="column 'iops', row 1: inf is not a finite number"):
        schema.validate(schema.TRIALS, trials.assign(iops=[None, *[float("inf")] * (len(trials) - 1)]))
    with pytest.raises(DiskbookError, match="column 'started_utc', row 0: 'noon' is not a time in UTC"):
        schema.validate(schema.TRIALS, trials.assign(started_utc="noon"))


@pytest.mark.parametrize(
    ("iops", "message"),
    [
        (math.nan, "nan is empty, but a value is needed"),
        (-0.5, "-0.5 is less than 0"),
        (math.inf, "inf is not a finite number"),
    ],
)
def test_a_number_that_its_column_may_not_hold_is_refused(iops: float, message: str) -> None:
    series = {"trial": "a", "direction": "read", "second": [1.0, 2.0, 3.0], "lat_mean_ms": math.nan}
    good = pd.DataFrame({**series, "iops": [1.0, 2.0, 0.0]})
    pd.testing.assert_frame_equal(schema.validate(schema.SERIES, good), good[schema.SERIES.names])
    with pytest.raises(DiskbookError, match=f"table series, column 'iops', row 1: {message}"):
        schema.validate(schema.SERIES, good.assign(iops=[1.0, iops, 3.0]))


def test_comparisons_may_lack_numbers_but_not_a_verdict() -> None:
    text = dict.fromkeys(("arm", "base_arm", "workload", "metric", "method", "pairing"), "x")
    capped = {
        "direction": "read",
        "verdict": "capped",
        "provenance": "emulated",
        "n_replicates": 1,
        "n_blocks": 4,
        "scope": "these disks",
        "family": "headline",
        "nearest_zone": "",
    }
    checked = schema.from_rows(schema.COMPARISONS, [{**text, **capped}])
    assert checked.ratio.isna().all()
    with pytest.raises(DiskbookError, match=r"'verdict', row 0: .* is empty.*; run the analysis again"):
        schema.from_rows(schema.COMPARISONS, [{**text, **capped, "verdict": None}])


# --- the platform's metrics


def answer(value: float) -> bytes:
    point = {"timeStamp": "2026-11-20T10:00:00Z", "average": value, "maximum": value}
    lun = {"name": {"value": "LUN"}, "value": "0"}
    series = {"metadatavalues": [lun], "data": [point, {"timeStamp": "2026-11-20T10:01:00Z"}]}
    metric = {"name": {"value": "Data Disk IOPS Consumed Percentage"}, "timeseries": [series]}
    return json.dumps({"values": [{"resourceid": "/VM1", "interval": "PT1M", "value": [metric]}]}).encode()


def test_metrics_are_rebuilt_from_what_the_platform_answered(run: Run) -> None:
    for number, value in enumerate((40.0, 99.5), 1):
        run.append("metrics", status="ok", files=[run.write_raw(f"metrics-{number}.json", answer(value))])
    run.append("metrics", status="failed", error="the platform's metrics were not fetched: away")
    tables = store_tables.build(run)
    (only,) = tables.metrics.to_dict("records")
    assert (only["machine_id"], only["lun"], only["maximum"], only["grain_s"]) == ("/vm1", "0", 99.5, 60)
    assert only["provenance"] == "emulated"
    store_tables.write(tables, run.folder)
    pd.testing.assert_frame_equal(store_tables.read(run.folder).metrics, tables.metrics)


def test_a_run_without_metrics_has_no_file_of_them(run: Run) -> None:
    store_tables.write(store_tables.build(run), run.folder)
    assert not (run.folder / "metrics.parquet").exists()
    assert store_tables.read(run.folder).metrics.empty


def test_a_trial_for_evidence_is_in_a_table_of_its_own_and_in_no_other(run: Run, outputs: dict) -> None:
    plain = store_tables.build(run)
    name = add_trial(run, outputs["mixed"], "mixed", 3, evidence_s=SHORT["runtime_s"])
    run.append("block", replicate=1, block=3, status="complete")
    tables = store_tables.build(run)
    assert set(tables.evidence["trial"]) == {name} and set(tables.evidence["status"]) == {"ok"}
    assert list(tables.evidence.columns) == schema.TRIALS.names
    for table in ("trials", "bins", "series", "guest"):
        pd.testing.assert_frame_equal(getattr(tables, table), getattr(plain, table))
    store_tables.write(tables, run.folder)
    pd.testing.assert_frame_equal(store_tables.read(run.folder).evidence, tables.evidence)


def test_metrics_that_were_changed_are_refused(run: Run) -> None:
    run.append("metrics", status="ok", files=[run.write_raw("metrics-1.json", answer(1.0))])
    path = run.folder / "raw" / "metrics-1.json.gz"
    path.write_bytes(gzip.compress(answer(2.0)))
    with pytest.raises(DiskbookError, match=r"metrics-1\.json\.gz was changed"):
        store_tables.build(run)


def test_the_lun_of_a_trial_is_kept(run: Run, outputs: dict) -> None:
    add_trial(run, outputs["commit"], "commit", 3, lun=1)
    found = store_tables.build(run).trials.set_index("trial")["lun"]
    assert set(found["r1-b03-commit-a1"]) == {"1"} and pd.isna(found["r1-b01-mixed-a1"]).all()
