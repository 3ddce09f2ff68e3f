"""`diskbook import`: files and folders of other tools become a run that every analysis works on."""

from __future__ import annotations

import errno
import gzip
import hashlib
import itertools
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pandas as pd
import pytest
from matplotlib.text import Text

from diskbook.cli import main
from diskbook.facts import files
from diskbook.facts.errors import LINES, DiskbookError, UsageError, is_visible
from diskbook.importing import names, run as importer, terminal as import_text, write
from diskbook.importing.run import Imported
from diskbook.importing.scenario import Settings
from diskbook.report import show
from diskbook.report.analysis import run as analysis_run, why_text
from diskbook.report.figures.export import export
from diskbook.results import tables
from diskbook.results.run import open_run
from diskbook.tools.fio import latency as fio_latency
from support import SAMPLES

FIO = SAMPLES / "fio" / "json-group_reporting.json"
COPIES = itertools.count()
JSON_PLUS = SAMPLES / "fio-logs" / "each.json"


def make(tmp_path: Path, *paths: Path, **settings: object) -> Imported:
    return importer.make([str(path) for path in paths], f"{tmp_path}/run", Settings(**settings))


def put(folder: Path, sample: Path, name: str | None = None) -> Path:
    """Copy a sample; a line's end more or less lets copies differ, as results of several runs do."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / (name or sample.name)
    path.write_bytes(sample.read_bytes() + b"\n" * (path.suffix != ".log") * next(COPIES))
    return path


def rows(made: Imported) -> pd.DataFrame:
    return tables.read(made.run.folder).trials


@pytest.fixture
def diskbook(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Call the command line here; what it ends with, its output, its errors."""

    def called(*arguments: str, runs: Path) -> tuple[int, str, str]:
        monkeypatch.setenv("DISKBOOK_RUNS", str(runs))
        monkeypatch.setattr(sys, "argv", ["diskbook", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0), *capsys.readouterr()

    return called


# --- folders of other tools


def test_a_folder_of_bench_fio(tmp_path: Path) -> None:
    base = tmp_path / "out"
    for device in ("nvme0n1", "sdc"):
        put(base / device / "4k", JSON_PLUS, "randrw-2-2.json")
        put(base / device / "randrw70" / "4k", FIO, "randrw-4-2.json")
    for clone in (1, 2):  # bench_fio's logs, named by the job's options
        put(base / "sdc" / "4k", SAMPLES / "fio-logs" / f"each_lat.{clone}.log")
    made = make(tmp_path, base)
    assert set(made.arms) == {"nvme0n1", "sdc"}
    assert not made.refused
    trials = rows(made)
    assert set(trials["provenance"]) == {"imported"}
    assert set(trials["tool_version"]) == {"3.33"}
    series = tables.read(made.run.folder).series
    with_series = set(trials.loc[trials["trial"].isin(series["trial"]), "arm"])
    assert with_series == {"sdc"}


def test_a_folder_of_vmfleet(tmp_path: Path) -> None:
    base = tmp_path / "result"
    for machine in ("vm-base-n1-001", "vm-base-n1-002"):
        put(base / "9d1c", SAMPLES / "diskspd" / "v2.2-rand-w30-L-D.xml", f"result-qos0-{machine}.xml")
    put(base / "9d1c", SAMPLES / "vmfleet" / "result-vm-qos0.tsv")
    put(base, SAMPLES / "vmfleet" / "result.tsv")
    (base / "9d1c" / "perfctr-qos0-n1.blg").write_bytes(b"PDH\x00rest")
    made = make(tmp_path, base)
    assert made.arms == {"arm-9d1c": 1}  # one trial of two machines
    assert sum("made from XML files that are here too" in sentence for sentence in made.refused) == 2
    assert any("Windows performance counters" in sentence for sentence in made.refused)
    trials = rows(made)
    assert set(trials["tool"]) == {"vmfleet"} and trials["trial"].nunique() == 1
    assert set(tables.read(made.run.folder).fleet["vm"]) == {"vm-base-n1-001", "vm-base-n1-002"}


def test_vmfleets_tables_alone(tmp_path: Path) -> None:
    made = make(tmp_path, put(tmp_path / "x", SAMPLES / "vmfleet" / "result.tsv"))
    trials = rows(made)
    assert trials["iops"].max() == 18000
    assert trials["ios"].isna().all() and trials["block_size_bytes"].eq(4096).all()


def test_samples_of_perfkitbenchmarker(tmp_path: Path) -> None:
    base = tmp_path / "5f3c91aa"
    put(base, SAMPLES / "pkb" / "fio.json", "perfkitbenchmarker_results.json")
    made = make(tmp_path, base)
    assert list(made.arms) == ["sdc"]
    assert made.n_trials == 3


# --- what is kept


def test_originals_are_kept_untouched_and_the_tables_follow_from_them(tmp_path: Path) -> None:
    made = make(tmp_path, SAMPLES / "diskspd", SAMPLES / "fio")
    manifest = made.run.manifest
    hashes = {hashlib.sha256(path.read_bytes()).hexdigest() for path in SAMPLES.glob("*/*")}
    assert {row["sha256"] for row in manifest["imported"]["files"]} <= hashes
    for row in manifest["imported"]["files"]:
        packed = made.run.folder / row["raw"] if "raw" in row else made.run.folder / row["path"]
        assert hashlib.sha256(gzip.decompress(packed.read_bytes())).hexdigest() == row["sha256"]
    before = rows(made)
    for name in ("trials", "bins", "series"):
        (made.run.folder / f"{name}.parquet").unlink()
    pd.testing.assert_frame_equal(tables.build(open_run(made.run.folder)).trials, before)


def test_a_changed_original_is_named(tmp_path: Path) -> None:
    made = make(tmp_path, FIO)
    (raw,) = (made.run.folder / "raw").iterdir()
    raw.write_bytes(gzip.compress(gzip.decompress(raw.read_bytes()).replace(b"190878", b"190879")))
    with pytest.raises(DiskbookError, match=f"{raw.name} was changed"):
        tables.build(made.run)


def test_a_changed_log_is_named(tmp_path: Path) -> None:
    base = tmp_path / "x"
    for sample in SAMPLES.glob("fio-logs/each*"):
        put(base, sample)
    made = make(tmp_path, base)
    raw = next(path for path in (made.run.folder / "raw").iterdir() if "lat-1" in path.name)
    raw.write_bytes(gzip.compress(gzip.decompress(raw.read_bytes()) + b"1, 1, 0, 4096, 0\n"))
    with pytest.raises(DiskbookError, match=f"{raw.name} was changed"):
        tables.build(made.run)


# --- what is distinguished


def test_versions_and_tools_are_never_pooled(tmp_path: Path) -> None:
    base = tmp_path / "disk"
    for sample in ("v2.0.17-rand-w30-L-D.xml", "v2.1-rand-w30-L-D.xml", "v2.1-rand-w30-L-D.txt"):
        put(base, SAMPLES / "diskspd" / sample)
    put(base, SAMPLES / "fio" / "json-and-normal.txt")
    made = make(tmp_path, base, arms_by="folder")
    assert len(made.arms) == 4
    trials = rows(made)
    assert trials.groupby("arm")["tool"].nunique().max() == 1
    assert trials.groupby("arm")["tool_version"].nunique(dropna=False).max() == 1
    assert made.run.manifest["scenario"]["comparison"] == []


def test_repeats_are_blocks_in_order_of_time(tmp_path: Path) -> None:
    document = json.loads(FIO.read_text())
    base = tmp_path / "lrs"
    base.mkdir()
    for number, later in enumerate((200, 0, 100)):
        changed = {**document, "timestamp": document["timestamp"] + later}
        (base / f"run{number}.json").write_text(json.dumps(changed, indent=1).replace('{\n "fio', '{"fio', 1))
    trials = rows(make(tmp_path, base)).drop_duplicates("trial")
    of_read = trials[trials["workload"] == "randread-4k-t2-qd4"].sort_values("block")
    assert of_read["block"].tolist() == [1, 2, 3]
    assert of_read["started_utc"].is_monotonic_increasing
    assert set(trials["status"]) == {"ok"}


@pytest.mark.long
def test_arms_by_what_the_user_says(tmp_path: Path) -> None:
    one = put(tmp_path / "a", SAMPLES / "diskspd" / "v2.2-rand-w30-L-D.xml", "lrs.xml")
    two = put(tmp_path / "b", SAMPLES / "diskspd" / "v2.2-rand-w30-L-D.xml", "zrs.xml")
    ways = {"file": {"a-lrs", "b-zrs"}, "folder": {"a", "b"}, "target": {"t-dat"}}
    for way, expected in ways.items():
        paths = [tmp_path / "a", tmp_path / "b"]
        made = importer.make([str(path) for path in paths], f"{tmp_path}/run-{way}", Settings(arms_by=way))
        assert set(made.arms) == expected
    by_path = importer.make([str(one), str(two)], f"{tmp_path}/run-path")
    assert set(by_path.arms) == {"lrs", "zrs"}


def test_names_of_arms_are_allowed_and_different() -> None:
    words = ["C:\\тест.dat", "9 lives", "A", "a", "x" * 90, "x" * 91]
    found = names.slugs(words, "arm")
    assert len(set(found.values())) == len(words)
    assert all(len(name) <= 40 and name[0].isalpha() and name.isascii() for name in found.values())


def test_a_copy_of_a_result_counts_once(tmp_path: Path) -> None:
    base = tmp_path / "in"
    (base / "backup").mkdir(parents=True)
    for path in (base / "a.json", base / "backup" / "a.json"):
        path.write_bytes(FIO.read_bytes())
    made = importer.make([str(base), str(base / "a.json")], f"{tmp_path}/run")
    assert made.n_trials == 3
    (sentence,) = made.refused
    assert "the same, byte by byte, as" in sentence


# --- analyses


def two_arms(folder: Path, depths: tuple[int, ...]) -> list[str]:
    """Files of two disks, measured three times each at every depth; the second takes 1.5 times as long."""
    for arm, factor, spread in (("lrs", 1.0, 0.01), ("zrs", 1.5, 0.012)):
        for number, depth in itertools.product(range(3), depths):
            document = json.loads(JSON_PLUS.read_text())
            document["timestamp"] += 100 * number + depth
            for job in document["jobs"]:
                job["job options"].pop("rate_iops")
                job["job options"] |= {"iodepth": str(depth), "numjobs": "1"}
                for name in ("read", "write"):
                    part = job[name]
                    scale = factor * (1 + spread * number)
                    part["iops"] = depth / 2 / (part["lat_ns"]["mean"] * scale / 1e9)
                    for key in ("mean", "min", "max"):
                        part["lat_ns"][key] *= scale
            (folder / arm).mkdir(parents=True, exist_ok=True)
            (folder / arm / f"{depth}-{number}.json").write_text(json.dumps(document))
    return [str(folder)]


@pytest.fixture(scope="module")
def two_disks(tmp_path_factory: pytest.TempPathFactory) -> Imported:
    """Two disks at depths 1 and 4."""
    base = tmp_path_factory.mktemp("two")
    return importer.make(two_arms(base / "in", (1, 4)), f"{base}/run", Settings(arms_by="folder"))


@pytest.mark.long
def test_arms_are_compared_and_littles_law_is_checked(two_disks: Imported) -> None:
    found = analysis_run.analyse(two_disks.run)
    table = found.comparisons
    these = table[table["scope"] == "these disks"]
    assert set(these["direction"]) == {"read", "write"}
    assert these["ratio"].tolist() == pytest.approx([1.5] * 4, rel=0.01)
    assert set(these["family"]) == {"exploratory"} and set(these["provenance"]) == {"imported"}
    assert set(found.gates.loc[found.gates["gate"] == "Little's law", "status"]) == {"passed"}
    assert set(table["verdict"]) == {"inconclusive"} and set(table["pairing"]) == {"replicate"}
    assert these["warnings"].str.contains("nothing says that the arms shared a machine").all()
    assert found.labels == {"lrs": "lrs", "zrs": "zrs"}
    assert len(found.percentiles)


@pytest.mark.long
def test_arms_that_are_said_to_share_a_machine_are_judged(two_disks: Imported, tmp_path: Path) -> None:
    paths_ = [str(Path(two_disks.run.folder).parent / "in")]
    made = importer.make(paths_, f"{tmp_path}/run", Settings(arms_by="folder", same_machine=True))
    table = analysis_run.analyse(made.run).comparisons
    these = table[table["scope"] == "these disks"]
    assert set(these["pairing"]) == {"same-machine"} and set(these["verdict"]) == {"difference"}


@pytest.mark.long
def test_a_deep_load_alone_says_nothing_about_latency(tmp_path: Path) -> None:
    """Whether a disk is behind 1.5 times the latency, or a limit, takes a single I/O to tell."""
    settings = Settings(arms_by="folder", same_machine=True)
    made = importer.make(two_arms(tmp_path / "in", (4,)), f"{tmp_path}/run", settings)
    analysis = analysis_run.analyse(made.run)
    table = analysis.comparisons
    assert set(table["verdict"]) == {"inconclusive"} and table["ratio"].isna().all()
    assert table["warnings"].str.contains("measure the same load at queue depth 1 as well").all()
    assert analysis.percentile_ratios.empty and len(analysis.percentiles)
    assert "<td" not in show.percentiles(analysis)  # no latency is printed that may be a limit's


def test_machines_that_files_name_decide_the_pairing(tmp_path: Path) -> None:
    def pairing(hosts: tuple[str, str], name: str, **options: Any) -> str:
        for arm, host in zip(("lrs", "zrs"), hosts, strict=True):
            document = json.loads(JSON_PLUS.read_text())
            for job in document["jobs"]:
                job["hostname"] = host
            folder = tmp_path / name / arm
            folder.mkdir(parents=True)
            document["timestamp"] += sum(map(ord, arm))  # of a file twice one is used
            (folder / "0.json").write_text(json.dumps(document))
        settings = Settings(arms_by="folder", **options)
        made = importer.make([str(tmp_path / name)], f"{tmp_path}/run-{name}", settings)
        (found,) = {item["pairing"] for item in made.run.manifest["scenario"]["comparison"]}
        return found

    assert pairing(("vm1", "vm1"), "one") == "same-machine"
    assert pairing(("vm1", "vm2"), "two") == "replicate"
    assert pairing(("localhost", "localhost"), "unknown") == "replicate"
    with pytest.raises(UsageError, match=r"--same-machine: the files name several machines \(vm1, vm2\)"):
        pairing(("vm1", "vm2"), "said", same_machine=True)
    assert not (tmp_path / "run-said").exists()


@pytest.mark.long
def test_without_limits_it_is_not_known_which_binds(two_disks: Imported) -> None:
    text = why_text.of_run(str(two_disks.run.folder))
    assert "unknown: 4 of 4 cells" in text
    assert "imported" in text


def test_with_limits_named_they_are_in_force(tmp_path: Path) -> None:
    made = make(tmp_path, FIO, disk_sku="Premium_LRS", size_gib=1024, vm_size="standard_d4as_v4")
    trials = rows(made)
    assert trials["cap_disk_iops"].eq(5000).all() and trials["cap_disk_mb_s"].eq(200).all()
    assert trials["cap_vm_iops"].eq(6400).all()
    assert set(trials["vm_size"]) == {"standard_d4as_v4"}


@pytest.mark.long
def test_a_size_that_no_table_has_stops_nothing(tmp_path: Path) -> None:
    made = make(tmp_path, FIO, disk_sku="Premium_LRS", size_gib=1024, vm_size="Standard_D4as_v44")
    assert "did you mean 'Standard_D4as_v4'? The machine's limits are not taken" in made.flags[0]
    assert "--vm-iops" in made.flags[0]
    trials = rows(made)
    assert trials["cap_vm_iops"].isna().all() and trials["cap_disk_iops"].eq(5000).all()
    assert set(trials["vm_size"]) == {"Standard_D4as_v44"}
    text = why_text.of_run(str(made.run.folder))
    assert "it lacks --vm-iops and --vm-mb-s" in text


@pytest.mark.long
@pytest.mark.parametrize("options", [{"bs": "4k"}, {"bssplit": "4k/90:8k/10"}, {"bs": "4k", "verify": "0"}])
def test_the_rate_in_bytes_is_that_of_the_file(tmp_path: Path, options: dict[str, str]) -> None:
    """Never IOPS x the block size asked for."""
    document = json.loads(JSON_PLUS.read_text())
    (job,) = document["jobs"]
    job["job options"] = {"rw": "randrw", "iodepth": "4", "ioengine": "libaio", "direct": "1", **options}
    for name in ("read", "write"):
        job[name]["io_bytes"] = job[name]["total_ios"] * 4500
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "x.json").write_text(json.dumps(document))
    trials = rows(make(tmp_path, tmp_path / "in"))
    bytes_s = trials["ios"] * 4500 / trials["runtime_s"]
    assert trials["throughput_mb_s"].tolist() == pytest.approx((bytes_s / 1e6).tolist())


def test_histogram_logs_give_bins_to_the_job_that_wrote_them(tmp_path: Path) -> None:
    base = tmp_path / "in"
    for sample in sorted(SAMPLES.glob("fio-logs/hist*")):
        put(base, sample)
    made = make(tmp_path, base)
    assert made.n_trials == 1 and not made.refused
    bins = tables.read(made.run.folder).bins
    assert 300 < bins["count"].sum() <= 600  # 200 a second for 3 s, whole intervals
    assert len(tables.read(made.run.folder).series) >= 4


def test_percentiles_that_a_log_mends_are_no_longer_said_to_be_missing(tmp_path: Path) -> None:
    base = tmp_path / "in"
    for clone in (1, 2):
        put(base, SAMPLES / "fio-logs" / f"each_lat.{clone}.log")
    told = json.loads(JSON_PLUS.read_text())
    for name in ("read", "write"):
        del told["jobs"][0][name]["lat_ns"]["bins"]
    told["jobs"] *= 2  # as without group_reporting
    (base / "each.json").write_text(json.dumps(told))
    alone = make(tmp_path, base / "each.json")
    assert any(fio_latency.NOT_JOINED in flag for flag in alone.flags)
    made = importer.make([str(base)], f"{tmp_path}/with-logs")
    assert not any(fio_latency.NOT_JOINED in flag for flag in made.flags)
    assert rows(made)["lat_p99_ms"].notna().all()


def test_logs_alone_are_a_measurement(tmp_path: Path) -> None:
    base = tmp_path / "in"
    for clone in (1, 2):
        put(base, SAMPLES / "fio-logs" / f"each_lat.{clone}.log")
    put(base, SAMPLES / "fio-logs" / "each_bw.1.log", "other_bw.1.log")
    made = make(tmp_path, base)
    trials = rows(made)
    assert set(trials["direction"]) == {"read", "write"} and trials["ios"].eq(240).all()
    assert any("latencies are taken for nanoseconds" in flag for flag in made.flags)
    assert made.refused == (
        "other_bw.1.log: alone it tells no IOPS: the job's latency or IOPS log is needed",
    )


def test_logs_that_say_nothing_are_one_sentence_and_no_reason_of_a_failure(tmp_path: Path) -> None:
    base = tmp_path / "in"
    lines = [f"{500 * k}, 1000, 0, 0\n" for k in range(1, 9)]
    for name in ("a_slat.1.log", "a_slat.2.log", "a_lat.1.log"):
        put(base, JSON_PLUS, name).write_text("".join(lines))
    with pytest.raises(DiskbookError, match=r"imported: a_lat\.1\.log: alone"):
        make(tmp_path, base)
    put(base, JSON_PLUS, "a_iops.1.log").write_text("".join(lines))
    put(base, JSON_PLUS, "a_bw.1.log").write_text("".join(line.replace(" 1000,", " 4000,") for line in lines))
    made = make(tmp_path, base)
    assert made.refused == ("a_slat.1.log and 1 more: a log of slat is not used",)
    assert rows(made)["iops"].tolist() == [1000.0]


# --- mistakes


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"disk_sku": "Premium_LRS"}, "--disk-sku and --size-gib go together"),
        ({"disk_sku": "Premium_LSR", "size_gib": 64}, "did you mean 'Premium_LRS'"),
        ({"arms_by": "colour"}, "way to tell arms apart 'colour'"),
        ({"base": "nvme"}, "there is no arm 'nvme'"),
    ],
)
def test_wrong_settings_are_refused_before_anything_is_written(
    tmp_path: Path, settings: dict[str, object], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        make(tmp_path, FIO, **settings)
    assert list(tmp_path.iterdir()) == []


def test_a_load_that_no_scenario_can_tell_is_named_by_its_cause(tmp_path: Path) -> None:
    text = (SAMPLES / "fio" / "json-group_reporting.json").read_text()
    (tmp_path / "x.json").write_text(text.replace('"iodepth" : "4"', '"iodepth" : "4099"'))
    with pytest.raises(DiskbookError, match=r"x\.json: 8,198 outstanding I/Os are more than .* \('rr'\)"):
        make(tmp_path, tmp_path / "x.json")


def test_a_run_is_never_overwritten(tmp_path: Path) -> None:
    make(tmp_path, FIO)
    with pytest.raises(UsageError, match="exists already"):
        make(tmp_path, FIO)


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(write, "_pack", full)
    with pytest.raises(
        DiskbookError, match=r"cannot write to .*: No space left on device; nothing was imported"
    ):
        make(tmp_path, FIO)
    assert not (tmp_path / "run").exists()
    with pytest.raises(DiskbookError, match="cannot write to /proc/nowhere/run"):
        importer.make([str(FIO)], "/proc/nowhere/run")


def test_a_packed_file_and_one_that_is_cut(tmp_path: Path) -> None:
    base = tmp_path / "in"
    base.mkdir()
    packed = gzip.compress(FIO.read_bytes())
    (base / "whole.json.gz").write_bytes(packed)
    (base / "cut.json.gz").write_bytes(packed[:500])
    made = make(tmp_path, base)
    assert made.n_trials == 3
    assert made.refused[0].startswith("cut.json.gz: it cannot be read (Compressed file ended")
    sha256 = made.run.manifest["imported"]["files"][0]["sha256"]
    assert sha256 == hashlib.sha256(FIO.read_bytes()).hexdigest()


@pytest.mark.long
def test_on_the_command_line(tmp_path: Path, diskbook: Callable[..., tuple[int, str, str]]) -> None:
    base = tmp_path / "in"
    put(base, FIO)
    (base / "notes.md").write_text("slow on Tuesdays\n")
    (base / "cut.json").write_text('{\n  "fio version" : "fio-3.33",\n  "jobs" : [\n')
    runs = tmp_path / "runs"
    runs.mkdir()
    code, output, errors = diskbook("import", str(base), "--name", "mine", runs=runs)
    assert code == 0, errors
    assert "3 measurements of 1 arms" in output
    assert "notes.md: no format that is known here" in output
    assert "cut.json, line " in output
    assert "imported, not analysed" in diskbook("list", runs=runs)[1]
    code, _, errors = diskbook("run", "--resume", "mine", runs=runs)
    assert code == 2 and "run mine was imported" in errors
    code, _, errors = diskbook("import", str(base / "notes.md"), runs=runs)
    assert code == 1
    assert errors.startswith("diskbook: nothing can be imported: notes.md: no format")
    assert diskbook("import", str(tmp_path / "nowhere"), runs=runs)[0] == 2
    assert sorted(path.name for path in runs.iterdir()) == ["mine"]


# --- names and files of somebody else's making


HOSTILE_NAMES = (
    b"\x1b]0;owned\x07",
    b"\x9b31m",
    "\u202egnp.exe\u2066".encode(),
    b"\xff\xfe\x80",
    b"two\nlines\r",
    b"$\\frac{1}{0}$",
    b"$$",
    b"=cmd|'-c calc'!A1",
    "1\u00b23".encode(),
    b"-rf",
    b"%s%n{0}{}",
    b" ",
    b"'\"`;&|$(touch x)",
    b"<img src=x onerror=alert(1)>",
    b"x" * 240,
)


def imported_as(base: Path, names_: Sequence[bytes]) -> Imported:
    """A file of each name in a folder of that name, whose job, disk and machine have such names as well."""
    document = json.loads(JSON_PLUS.read_text())
    for number, name in enumerate(names_):
        folder = base / "in" / os.fsdecode(name)
        folder.mkdir(parents=True)
        document["timestamp"] += 1
        text = name.decode("utf-8", "surrogateescape")
        for job in document["jobs"]:
            job["jobname"], job["hostname"] = f"job {text}", text
            job["job options"]["filename"] = f"/dev/{text}"
        (folder / f"{os.fsdecode(name[:200])}.json").write_text(json.dumps(document))
        document["fio version"] = f"fio-3.{number % 2}\x1b[2J"
    return importer.make([str(base / "in")], f"{base}/run", Settings(arms_by="folder"))


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Imported:
    return imported_as(tmp_path_factory.mktemp("hostile"), HOSTILE_NAMES)


@pytest.mark.long
def test_names_of_any_bytes_are_imported_and_steer_nothing(hostile: Imported) -> None:
    assert len(hostile.arms) == len(HOSTILE_NAMES) and not hostile.refused
    assert is_visible(import_text.text(hostile), LINES)
    manifest = (hostile.run.folder / "manifest.json").read_text()
    assert all(is_visible(text) for text in texts_of(json.loads(manifest)))
    table = rows(hostile)
    assert all(is_visible(text) for text in texts_of(table.to_dict("records")))
    assert {"<U+001B>]0;owned<U+0007>", "<FF><FE><80>", "$$"} <= set(table["machine_id"])


def texts_of(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        for key, value in node.items():
            yield str(key)
            yield from texts_of(value)
    elif isinstance(node, list):
        for value in node:
            yield from texts_of(value)
    elif isinstance(node, str):
        yield node


@pytest.mark.long
def test_names_of_any_bytes_are_drawn_as_they_are(hostile: Imported, tmp_path: Path) -> None:
    analysis = analysis_run.analyse(hostile.run)
    picture = import_text.tail(analysis)
    assert picture is not None
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # the font has not every letter
        paths_ = export(picture, tmp_path)
    ElementTree.parse(paths_[0])  # well-formed
    drawn = {text.get_text() for text in picture.figure.findobj(Text) if not text.get_parse_math()}
    assert {"$\\frac{1}{0}$", "$$", "<U+001B>]0;owned<U+0007>", "<FF><FE><80>"} <= drawn
    assert {"caption", "alt"} <= json.loads(paths_[2].read_text()).keys()


@pytest.mark.emulator
def test_the_notebook_makes_the_report_whatever_the_names(
    hostile: Imported, tmp_path: Path, diskbook: Callable[..., tuple[int, str, str]]
) -> None:
    """With the names that a page, a terminal or a formula would take for its own."""
    few = [name for name in HOSTILE_NAMES if any(sign in name for sign in (b"\x1b", b"\xff", b"$$", b"<"))]
    few.append("\u202egnp.exe\u2066".encode())
    page = import_text.report(imported_as(tmp_path, few).run).read_text("utf-8")
    assert "What do imported results say?" in page and "EMULATED" not in page
    assert "No limit of this disk or machine is known" in page and '<figure id="percentiles">' in page
    assert "<img src=x" not in page and "&lt;img src=x onerror=alert(1)&gt;" in page
    assert "\x1b" not in page and "\u202e" not in page and "&lt;FF&gt;&lt;FE&gt;" in page
    runs = hostile.run.folder.parent
    for words in (["why", str(hostile.run.folder)], ["list"], ["import", str(runs / "in")]):
        code, output, errors = diskbook(*words, runs=runs)
        assert code == 0, errors
        assert is_visible(output, LINES), words


def test_a_run_that_no_text_can_name_is_refused(tmp_path: Path) -> None:
    for name in (os.fsdecode(b"\xff"), "a\x1b[2Jb"):
        with pytest.raises(UsageError, match=r"a run cannot be called .*/a?<.*; choose another --name"):
            importer.make([str(FIO)], f"{tmp_path}/{name}")
    assert list(tmp_path.iterdir()) == []


LIMIT = 1_000_000


def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits a hundredth of a percent of what they are, so that a test need not unpack as much."""
    monkeypatch.setattr(files, "WHOLE", LIMIT)
    monkeypatch.setattr(files, "STREAMED", LIMIT)


def test_what_unpacks_to_too_much_is_refused_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = tmp_path / "in"
    put(base, FIO)
    (base / "bomb.json.gz").write_bytes(gzip.compress(FIO.read_bytes() + b" " * LIMIT))
    lines = b"".join(b"%d, 1000, 0, 4096\n" % n for n in range(60_000))
    assert len(lines) > LIMIT
    (base / "bomb_lat.1.log.gz").write_bytes(gzip.compress(lines))
    averages = b"".join(b"%d, 1000, 0, 0\n" % (500 * n) for n in range(60_000))
    (base / "whole_iops.1.log").write_bytes(averages + b"\n" * LIMIT)
    small(monkeypatch)
    made = make(tmp_path, base)
    assert made.n_trials == 3
    first, *logs = made.refused
    assert first == "bomb.json.gz: more than 0.953674 MiB unpacked, which is too large to be a result"
    assert len(logs) == 2 and all("large" in text or "of this size" in text for text in logs)


def test_what_unpacks_to_too_much_in_a_run_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = tmp_path / "in"
    for sample in SAMPLES.glob("fio-logs/each*"):
        put(base, sample)
    made = make(tmp_path, base)
    small(monkeypatch)
    for kind in ("json", "lat-1"):
        raw = next(path for path in (made.run.folder / "raw").iterdir() if kind in path.name)
        before = raw.read_bytes()
        raw.write_bytes(before + gzip.compress(b"\n" * LIMIT))
        with pytest.raises(
            DiskbookError, match=f"{raw.name}: more than .* which is too large to be a result"
        ):
            tables.build(made.run)
        raw.write_bytes(before)
    tables.build(made.run)


@pytest.mark.parametrize("kind", ["lat", "iops", "bw"])
def test_a_packed_log_that_is_cut_is_named(tmp_path: Path, kind: str) -> None:
    base = tmp_path / "in"
    for sample in SAMPLES.glob("fio-logs/mean*"):
        put(base, sample)
    whole = (base / f"mean_{kind}.1.log").read_bytes() * 8000
    (base / f"mean_{kind}.1.log").unlink()
    (base / f"mean_{kind}.1.log.gz").write_bytes(gzip.compress(whole)[:-9])
    try:
        assert any(
            f"mean_{kind}.1.log.gz: it cannot be read" in text for text in make(tmp_path, base).refused
        )
    except DiskbookError as error:
        assert f"mean_{kind}.1.log.gz: it cannot be read" in str(error)
        assert not (tmp_path / "run").exists()
