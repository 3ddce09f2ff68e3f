"""Which zone a disk answers from, and whether a workload sits there."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result

import synthetic
from diskbook import cli, zone_affinity
from diskbook.errors import DiskbookError, UsageError
from diskbook.stats.zone_probe import probe
from diskbook.zone_affinity import HOME, REMOTE, UNCLEAR, Baseline

KNOWN = Baseline(2.0, 3.0, "test")


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
    ("latencies", "verdict", "code"),
    [
        ([2.0, 2.1, 1.95, 2.05, 2.0], HOME, 0),
        ([3.0, 3.1, 2.9, 3.05, 3.0], REMOTE, 10),
        ([2.0, 3.0, 2.4, 2.6, 2.2], UNCLEAR, 11),
        ([1.0, 1.0, 1.0, 1.0, 1.01], HOME, 0),
    ],
)
def test_the_whole_interval_must_lie_on_one_side(latencies, verdict: str, code: int) -> None:
    found = zone_affinity.judge(latencies, KNOWN, "d")
    assert (found.verdict, found.exit_code) == (verdict, code)
    assert found.ci_low_ms < found.lat_ms < found.ci_high_ms
    assert json.loads(found.as_json)["exit_code"] == code and "\n" not in found.as_json


def test_a_move_is_told_and_an_unclear_look_is_forgotten(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    told = []
    for latency in (2.0, 3.1, math.nan, 2.0):
        around = [2.0, 3.0, 2.4, 2.6, 2.2] if math.isnan(latency) else [latency * f for f in (1, 1.01, 0.99)]
        found = zone_affinity.judge(around, KNOWN, "d", zone_affinity.last_verdict(state))
        zone_affinity.keep(state, found)
        told.append((found.verdict, found.changed))
    assert told == [(HOME, ""), (REMOTE, "it moved away"), (UNCLEAR, ""), (HOME, "it moved back")]


def test_a_foreign_state_file_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("mine\n")
    with pytest.raises(DiskbookError, match="no state of zone-affinity"):
        zone_affinity.last_verdict(tmp_path / "state")


def test_the_baseline_comes_from_a_run() -> None:
    found = zone_affinity.of_run("sample-zone-disks")
    assert 1.5 < found.near_ms < found.far_ms < 5 and "disk zrs (emulated)" in found.source
    with pytest.raises(UsageError, match="no disk 'lrs'"):
        zone_affinity.of_run("sample-zone-disks", "lrs")


def command(*arguments: str) -> Result:
    return CliRunner().invoke(cli.cli, ["zone-affinity", *arguments])


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "device"
    path.write_bytes(bytes(1 << 20))
    return str(path)


def test_a_device_is_read_with_fio_and_left_as_it_is(file: str) -> None:
    size = ("--size-gib", str(1 / 1024), "--seconds", "0.2")
    near = command("--device", file, "--near-ms", "1000", "--far-ms", "2000", *size)
    assert near.exit_code == 0 and near.output.startswith("nearest zone: reads take 0.")
    far = command("--device", file, "--near-ms", "1e-9", "--far-ms", "2e-9", "--json", *size)
    assert far.exit_code == 10 and json.loads(far.output)["verdict"] == REMOTE
    assert Path(file).read_bytes() == bytes(1 << 20) and len(list(Path(file).parent.iterdir())) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--near-ms", "2", "--far-ms", "1"], "the first must be above 0"),
        (["--near-ms", "2"], "give --baseline RUN"),
        (["--near-ms", "1", "--far-ms", "2", "--baseline", "sample-zone-disks"], "give --baseline RUN"),
        (["--baseline", "nix"], "there is no run 'nix'"),
    ],
)
def test_a_wrong_baseline_is_refused(file: str, arguments: list[str], words: str) -> None:
    error = command("--device", file, *arguments).exception
    assert isinstance(error, UsageError) and words in str(error)


def test_a_device_that_is_not_there_or_cannot_be_read(tmp_path: Path) -> None:
    known = ("--near-ms", "1", "--far-ms", "2", "--seconds", "0.2")
    error = command("--device", str(tmp_path / "nix"), *known).exception
    assert isinstance(error, UsageError) and "there is no device" in str(error)
    error = command("--device", str(tmp_path), *known).exception
    assert isinstance(error, DiskbookError) and "cannot be read: fio says" in str(error)
