"""Which zone a disk answers from, and whether a workload sits there."""

from __future__ import annotations

import json
import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result

from diskbook import cli
from diskbook.facts.errors import DiskbookError, UsageError
from diskbook.stats.zone_probe import probe
from diskbook.tools import fio
from diskbook.zone_affinity import baseline, probe as zone_affinity_probe, verdict as zone_affinity_verdict
from diskbook.zone_affinity.baseline import Baseline
from diskbook.zone_affinity.probe import Probe
from diskbook.zone_affinity.verdict import HOME, REMOTE, UNCLEAR
from support import synthetic

KNOWN = Baseline(2.0, 3.0, "test", 4.3)
DISK = Probe("disk")


def read_from_zones(**latency_ms: float) -> pd.DataFrame:
    """Reads of one disk from zones 1, 2 and 3, and of another from zone 1 only."""
    arms = {f"zrs-z{zone[-1]}": {"read": value} for zone, value in latency_ms.items()}
    truth = synthetic.Truth(latency_ms={**arms, "lrs-z1": {"read": 2.2}})
    return synthetic.tables(2, truth, n_blocks=5, loads=(synthetic.READ,), samples=1, draws=5)[0]


def test_the_nearest_zone_comes_with_an_interval_of_each_other() -> None:
    found = probe(read_from_zones(z1=4.3, z2=2.2, z3=3.2)).set_index("zone")
    assert list(found["verdict"]) == ["nearest", "farther", "farther"]
    assert found.index[0] == "westeurope-az2" and set(found["disk_id"]) == {"zrs-1"}
    for zone, planted in (("westeurope-az1", 4.3 / 2.2), ("westeurope-az3", 3.2 / 2.2)):
        row = found.loc[zone]
        assert row["ci_low"] < planted < row["ci_high"] < 1.1 * planted
    assert found.loc["westeurope-az2", "lat_ms"] == pytest.approx(2.2, rel=0.05)


def test_zones_that_are_alike_are_not_told_apart() -> None:
    found = probe(read_from_zones(z1=2.2, z2=2.2, z3=3.2))
    assert set(found["verdict"]) == {"not clear"}


def test_only_blocks_that_all_zones_have_count() -> None:
    trials = read_from_zones(z1=4.3, z2=2.2, z3=3.2)
    gap = (trials["arm"] == "zrs-z3") & (trials["block"] == 2)
    found = probe(trials.assign(status=np.where(gap, "failed", trials["status"])))
    assert set(found["n_blocks"]) == {4}
    one = probe(trials[trials["block"] == 1])
    assert one["ci_low"].isna().all() and set(one["verdict"]) == {"not clear"}


@pytest.mark.parametrize(
    ("latencies", "verdict", "code", "why"),
    [
        ([2.0, 2.1, 1.95, 2.05, 2.0], HOME, 0, ""),
        ([3.0, 3.1, 2.9, 3.05, 3.0], REMOTE, 10, ""),
        ([4.4, 4.5, 4.3, 4.4, 4.4], REMOTE, 10, ""),
        ([2.0, 3.0, 2.4, 2.6, 2.2], UNCLEAR, 11, "do not tell the zones apart"),
        ([1.0, 1.0, 1.0, 1.0, 1.01], UNCLEAR, 11, "faster than from any zone"),
        ([8.0, 9.0, 8.5, 8.2, 8.7], UNCLEAR, 11, "slower than from any zone"),
        ([2.0], UNCLEAR, 11, "do not tell the zones apart"),
    ],
)
def test_the_whole_interval_must_lie_on_one_side(latencies, verdict: str, code: int, why: str) -> None:
    found = zone_affinity_verdict.judge(latencies, KNOWN, DISK, "zone 1")
    assert (found.verdict, found.exit_code) == (verdict, code)
    assert why in found.why and bool(why) == bool(found.why) and found.why in found.line
    if len(latencies) > 1:
        assert found.ci_low_ms < found.lat_ms < found.ci_high_ms
    else:
        assert found.ci_low_ms is None and "no interval" in found.line
    assert json.loads(found.as_json)["exit_code"] == code
    assert "NaN" not in found.as_json and "\n" not in found.as_json + found.line


def test_slow_reads_are_a_remote_zone_where_the_farthest_is_not_known() -> None:
    known = baseline.by_hand(2.0, 3.0)
    assert zone_affinity_verdict.judge([8.0, 9.0, 8.5], known, DISK, "zone 1").verdict == REMOTE


def looks(state: Path, *seen: tuple[str, float]) -> list[str]:
    """What changed with each look, from a place at a latency; not a number: one that is not clear."""
    told = []
    for place, latency in seen:
        around = [2.0, 3.0, 2.4, 2.6, 2.2] if math.isnan(latency) else [latency * f for f in (1, 1.01, 0.99)]
        found = zone_affinity_verdict.judge(
            around, KNOWN, DISK, place, zone_affinity_verdict.last_clear(state)
        )
        zone_affinity_verdict.keep(state, found)
        told.append(found.changed)
    return told


def test_a_move_is_told_once_and_an_unclear_look_is_forgotten(tmp_path: Path) -> None:
    told = looks(
        tmp_path / "state", ("2", 2.0), ("1", 3.1), ("2", math.nan), ("2", 2.0), ("2", 2.0), ("3", 2.9)
    )
    assert told == ["", "it moved away", "", "it moved back", "", "it moved away"]


def test_a_change_without_a_move_is_not_called_one(tmp_path: Path) -> None:
    told = looks(tmp_path / "state", ("2", 2.0), ("2", 3.1), ("2", 2.0))
    assert told == ["", "remote now, without having moved", "near again, without having moved"]


@pytest.mark.parametrize("content", [b"mine\n", b"\xff\xfe", b"{}"])
def test_a_foreign_state_file_is_not_overwritten(tmp_path: Path, content: bytes) -> None:
    state = tmp_path / "state"
    state.write_bytes(content)
    with pytest.raises(DiskbookError, match="not a state of zone-affinity"):
        zone_affinity_verdict.last_clear(state)
    assert state.read_bytes() == content


def test_a_state_file_that_was_cut_off_counts_as_none(tmp_path: Path) -> None:
    state = tmp_path / "state"
    looks(state, ("1", 3.1))
    whole = state.read_text()
    for length in range(len(whole) - 1):
        state.write_text(whole[:length])
        assert zone_affinity_verdict.last_clear(state) == {}
    assert looks(state, ("1", 3.1), ("2", 2.0)) == ["", "it moved back"]


@pytest.mark.emulator
def test_two_looks_at_once_tell_a_move_once(file: str, tmp_path: Path) -> None:
    state = tmp_path / "state"
    looks(state, ("zone 1", 3.1))
    slow = baseline.by_hand(*around(file))
    probe = Probe(file, 0.2, 1 / 1024)
    with ThreadPoolExecutor() as pool:
        both = [pool.submit(zone_affinity_verdict.look, probe, slow, "2", state) for _ in range(2)]
        told = sorted(one.result().changed for one in both)
    assert told == ["", "it moved back"]
    assert json.loads(state.read_text())["verdict"] == HOME


def test_a_state_that_cannot_be_written_is_told_before_the_reads(file: str, tmp_path: Path) -> None:
    with pytest.raises(DiskbookError, match="cannot be written: No such file or directory"):
        zone_affinity_verdict.look(Probe(file, 600), KNOWN, "1", tmp_path / "nix" / "state")


@pytest.mark.long
def test_the_baseline_comes_from_a_run() -> None:
    found = baseline.of_run("sample-zone-disks")
    assert 1.5 < found.near_ms < found.far_ms <= found.farthest_ms < 5
    assert "disk zrs (emulated)" in found.source and not found.zone
    with pytest.raises(UsageError, match="no disk 'lrs'"):
        baseline.of_run("sample-zone-disks", "lrs")


def test_zones_are_learned_one_after_another(tmp_path: Path) -> None:
    file = tmp_path / "zones.json"
    seen = {"1": [4.3, 4.4, 4.2], "2": [2.2, 2.21, 2.19], "3": [3.2, 3.1, 3.3]}
    baseline.learn(file, "1", DISK, seen["1"])
    with pytest.raises(UsageError, match="knows one zone only"):
        baseline.of_file(file)
    for zone in ("3", "2", "3"):
        rows = baseline.learn(file, zone, DISK, seen[zone])
    assert list(rows["zone"]) == ["2", "3", "1"]
    found = baseline.of_file(file)
    assert found.zone == "2" and found.source.startswith("zones.json of 20")
    assert (found.near_ms, found.far_ms, found.farthest_ms) == pytest.approx((2.2, 3.2, 4.3), rel=0.01)
    baseline.learn(file, "2", DISK, [2.0, 3.0, 4.0])
    with pytest.raises(UsageError, match="the nearest zone is not clear"):
        baseline.of_file(file)


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", '{"schema": "diskbook zones 1"}', '{"schema": "diskbook zones 1", "zones": {"1": 5}}'],
)
def test_a_foreign_file_is_neither_read_nor_written(tmp_path: Path, content: str) -> None:
    file = tmp_path / "zones.json"
    file.write_text(content)
    for attempt in (lambda: baseline.of_file(file), lambda: baseline.learn(file, "1", DISK, [2.0])):
        with pytest.raises(UsageError, match="was not written by --learn, or is damaged"):
            attempt()
    assert file.read_text() == content


def command(*arguments: str) -> Result:
    return CliRunner().invoke(cli.cli, ["zone-affinity", *arguments])


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A device that is read less often than others, for time's sake."""
    monkeypatch.setattr(zone_affinity_probe, "READS", 3)
    path = tmp_path / "device"
    path.write_bytes(bytes(1 << 20))
    return str(path)


def around(file: str) -> tuple[float, float]:
    """Latencies of a nearest zone and the next, very far apart, of which the file's own is the first."""
    found = float(np.median(zone_affinity_probe.measure(Probe(file, 0.2, 1 / 1024))))
    return found, 1e6 * found


@pytest.mark.emulator
def test_a_device_is_read_with_fio_and_left_as_it_is(file: str) -> None:
    size = ("--size-gib", str(1 / 1024), "--seconds", "0.2")
    near, far = around(file)
    found = command("--device", file, "--near-ms", str(near), "--far-ms", str(far), "--zone", "2", *size)
    assert found.exit_code == 0 and found.output.startswith("nearest zone: reads from zone 2 take ")
    found = command("--device", file, "--near-ms", "1e-9", "--far-ms", "2e-9", "--json", *size)
    assert found.exit_code == 10 and json.loads(found.output)["verdict"] == REMOTE
    assert Path(file).read_bytes() == bytes(1 << 20) and len(list(Path(file).parent.iterdir())) == 1


@pytest.mark.emulator
def test_reads_are_few_and_leave_nothing_where_they_run(file: str, tmp_path: Path) -> None:
    said = tmp_path / "said"
    via = f"""sh -c 'echo "$0" "$@" >>{said}; exec "$0" "$@"'"""
    Path(file).rename(tmp_path / "elsewhere")  # where it is there need not be here
    zone_affinity_probe.measure(Probe(str(tmp_path / "elsewhere"), 0.2, 1 / 1024, via))
    lines = said.read_text().splitlines()
    assert len(lines) == zone_affinity_probe.READS
    assert zone_affinity_probe._argv(fio.Job(("fio", "a b")), "ssh node2 sudo")[-2:] == [
        "sudo",
        "fio 'a b' --readonly",
    ]
    assert all("--readonly" in line and "--rate=409600" in line and "_log=" not in line for line in lines)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--near-ms", "2", "--far-ms", "1"], "the first must be above 0"),
        (["--near-ms", "nan", "--far-ms", "1"], "the first must be above 0"),
        (["--near-ms", "1", "--far-ms", "inf"], "the first must be above 0"),
        (["--near-ms", "2"], "give --baseline with"),
        (["--near-ms", "1", "--far-ms", "2", "--baseline", "sample-zone-disks"], "give --baseline with"),
        (["--baseline", "nix"], "there is no run 'nix'"),
        (["--learn", "zones.json"], "--learn needs --zone"),
        (["--learn", "zones.json", "--zone", "1", "--state", "s"], "leave out --state and the baseline"),
        (["--near-ms", "1", "--far-ms", "2", "--size-gib", "nan"], "must be numbers above 0"),
        (["--near-ms", "1", "--far-ms", "2", "--seconds", "nan"], "must be numbers above 0"),
        (
            ["--near-ms", "1", "--far-ms", "2", "--via", "ssh 'node2"],
            "is not a command: No closing quotation",
        ),
    ],
)
def test_what_was_asked_for_wrongly_is_refused(file: str, arguments: list[str], words: str) -> None:
    error = command("--device", file, *arguments).exception
    assert isinstance(error, UsageError) and words in str(error)


@pytest.mark.emulator
def test_a_device_that_is_not_there_or_cannot_be_read(tmp_path: Path) -> None:
    known = ("--near-ms", "1", "--far-ms", "2", "--seconds", "0.2")
    error = command("--device", str(tmp_path / "nix"), *known).exception
    assert isinstance(error, UsageError) and "there is no device" in str(error)
    for device, via in ((tmp_path, ""), (tmp_path / "nix", "env"), (tmp_path, "sh -c 'exit 255'")):
        error = command("--device", str(device), "--via", via, *known).exception
        assert isinstance(error, DiskbookError) and "cannot be read: " in str(error)
        assert "\n" not in str(error)
    error = command("--device", str(tmp_path), "--via", "no-such-program", *known).exception
    assert "no-such-program cannot be run (No such file or directory); see --via" in str(error)
