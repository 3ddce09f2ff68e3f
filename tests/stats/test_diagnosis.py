"""Am I throttled, and by which limit: one finding a cell, in words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from diskbook import cli
from diskbook.facts.errors import UsageError
from diskbook.stats import diagnosis
from diskbook.stats.diagnosis import Diagnosis
from support import synthetic
from support.shared import one_replicate

LOAD = "randwrite-qd1"
CAPS = [column for column in synthetic.tables(n_blocks=1)[0] if column.startswith("cap_")]


@pytest.fixture(scope="module")
def tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    trials, _, series = synthetic.tables(3)
    return trials, series


def of(found: list[diagnosis.Finding], arm: str, workload: str) -> diagnosis.Finding:
    return next(one for one in found if (one.arm, one.workload) == (arm, workload))


def test_deep_cells_are_throttled_by_the_disk_and_single_ones_are_not(tables) -> None:
    found = diagnosis.findings(*tables)
    deep, single = (of(found, "lrs-z1", name) for name in ("randwrite-qd256", "randwrite-qd1"))
    assert deep.verdict == Diagnosis.THROTTLED and "disk limit of 5,000 IOPS" in deep.cause
    assert "larger disk" in deep.remedy
    assert single.verdict == Diagnosis.FREE and "15 % of the lowest limit" in single.cause
    assert "1 outstanding" in single.cause
    commit = of(found, "lrs-z1", "commit-qd1")  # no deeper commits show that more are let through
    assert commit.verdict == Diagnosis.UNKNOWN and "own concurrency" not in commit.cause.partition(" or ")[2]
    verdicts = [Diagnosis.THROTTLED] * 10 + [Diagnosis.UNKNOWN] * 5 + [Diagnosis.FREE] * 10
    assert [one.verdict for one in found] == verdicts


@pytest.mark.parametrize(
    ("tool", "ramp_s", "runtime_s", "words"),
    [
        ("fio", 1.0, 2.0, "up to 2.5 % too low"),
        ("fio", 5.0, 30.0, ""),
        ("fio", 0.0, 2.0, ""),
        ("diskspd", 1.0, 2.0, ""),
    ],
)
def test_what_fio_leaves_out_after_a_ramp_is_said(tables, tool, ramp_s, runtime_s, words: str) -> None:
    trials = tables[0].assign(tool=tool, ramp_s=ramp_s, runtime_s=runtime_s)
    trials = trials[trials["arm"] == "lrs-z1"]
    deep = of(diagnosis.findings(trials, tables[1]), "lrs-z1", "randwrite-qd256")
    assert ("too low" in deep.cause) == bool(words) and words in deep.cause


def test_a_disk_that_its_machine_cannot_use(tables) -> None:
    trials, series = tables
    paid = {"cap_disk_iops": 80_000.0, "cap_vm_iops": 5000.0, "cap_vm_burst_iops": np.nan}
    deep = of(diagnosis.findings(trials.assign(**paid), series), "lrs-z1", "randread-qd256")
    assert "VM uncached limit of 5,000 IOPS" in deep.cause and deep.remedy == "a larger VM size"
    assert "the disk itself may do 80,000 IOPS, which this VM cannot use" in deep.cause


def falling(tables: tuple[pd.DataFrame, pd.DataFrame], after: float) -> tuple[str, pd.DataFrame]:
    """A trial at depth 256, and series in which it falls from 30,000 IOPS to some others half-way."""
    trials, series = tables
    name = trials.loc[trials["workload"] == "randread-qd256", "trial"].iloc[0]
    mine, early = series["trial"] == name, series["second"] <= series["second"].median()
    late = np.where(mine, after, series["iops"])
    return name, series.assign(iops=np.where(mine & early, 30_000.0, late))


def test_a_burst_that_ends_within_a_trial(tables) -> None:
    name, series = falling(tables, 5050.0)
    found = diagnosis.findings(tables[0].assign(cap_disk_burst_iops=30_000.0), series)
    (drained,) = [one for one in found if one.verdict == Diagnosis.DRAINED]
    assert name in drained.cause and "from 30,000 to 5,050 IOPS" in drained.cause
    assert "burst credit is used up and the disk limit of 5,000 IOPS holds" in drained.cause


@pytest.mark.long
@pytest.mark.parametrize(("after", "on_demand"), [(9000.0, False), (2000.0, False), (5050.0, True)])
def test_a_fall_that_no_base_limit_explains_is_not_blamed_on_credit(tables, after, on_demand) -> None:
    name, series = falling(tables, after)
    trials = tables[0].assign(cap_disk_burst_iops=30_000.0)
    arms = set(trials["arm"]) if on_demand else ()
    found = diagnosis.findings(trials, series, on_demand=arms)
    assert Diagnosis.DRAINED not in {one.verdict for one in found}
    (told,) = [one for one in found if name in one.cause]
    assert f"the rate fell from 30,000 to {after:,.0f} IOPS" in told.cause
    assert told.cause.endswith("which no limit explains")


def test_the_rate_of_a_burst_comes_with_what_is_left_without_credit(tables) -> None:
    trials, series = tables
    bursts = trials.assign(cap_disk_iops=3000.0, cap_disk_burst_iops=5000.0)
    credit = of(diagnosis.findings(bursts, series), "lrs-z1", "randread-qd256")
    assert "of the disk burst limit of 5,000 IOPS (3,000 without credit)" in credit.cause
    assert "as long as its credit" in credit.remedy
    paid = of(diagnosis.findings(bursts, series, on_demand=["lrs-z1"]), "lrs-z1", "randread-qd256")
    assert "without credit" not in paid.cause and "on-demand bursting already" in paid.remedy


def test_a_limit_that_is_far_exceeded_did_not_hold(tables) -> None:
    trials, series = tables
    found = diagnosis.findings(trials.assign(cap_disk_iops=500.0, cap_vm_iops=600.0), series)
    deep = of(found, "lrs-z1", "randread-qd256")
    assert (
        deep.verdict == Diagnosis.UNKNOWN
        and "of the disk limit of 500 IOPS, so it did not apply" in deep.cause
    )
    assert Diagnosis.THROTTLED not in {one.verdict for one in found}


BURST_IOPS = {"cap_disk_burst_iops": 30_000.0}
BURST_MB_S = {"cap_disk_iops": 40_000.0, "cap_disk_mb_s": 20.0, "cap_disk_burst_mb_s": 120.0}
"""20 MB/s are 4,883 I/Os of 4 KiB a second."""


@pytest.mark.parametrize(
    ("load", "caps", "after", "on_demand", "drained"),
    [
        ("randread-qd1", BURST_IOPS, 5_450.0, (), 1),
        ("randread-qd1", BURST_IOPS, 4_550.0, (), 1),
        # Over 10 % from every base limit: a busy machine slows down as well.
        ("randread-qd1", BURST_IOPS, 5_550.0, (), 0),
        ("randread-qd1", BURST_IOPS, 4_450.0, (), 0),
        ("randread-qd1", BURST_MB_S, 4_883.0, (), 1),
        ("randread-qd1", BURST_MB_S, 6_000.0, (), 0),
        ("randread-qd1", {"cap_disk_burst_iops": 5000.0}, 5_100.0, (), 0),  # no burst above the base
        ("randread-qd1", BURST_IOPS, 5_100.0, ("lrs-z1",), 0),
        ("randread-qd1", {**BURST_IOPS, "cap_vm_cached_iops": 32_000.0}, 5_100.0, (), 0),
        ("randwrite-qd1", {**BURST_IOPS, "cap_vm_cached_iops": 32_000.0}, 5_100.0, (), 1),
    ],
)
def test_only_a_fall_that_credit_explains_is_one(
    tables, load: str, caps: dict[str, float], after: float, on_demand: tuple[str, ...], drained: int
) -> None:
    """No credit is behind a burst on demand, nor behind reads that the host cache answers."""
    trials, series = tables
    trials = trials[(trials["workload"] == load) & (trials["arm"] == "lrs-z1")]
    series = series[series["trial"] == trials["trial"].iloc[0]]
    rates = np.where(series["second"] <= series["second"].median(), 29_700.0, after)
    caps = {"cap_vm_iops": 40_000.0, "cap_vm_burst_iops": 40_000.0, "cap_vm_mb_s": 800.0, **caps}
    caps |= {"cap_vm_burst_mb_s": 800.0}
    found = diagnosis.findings(trials.assign(**caps), series.assign(iops=rates), on_demand=on_demand)
    assert sum(one.verdict == Diagnosis.DRAINED for one in found) == drained


def test_without_limits_nothing_is_claimed(tables) -> None:
    trials, _ = tables
    found = diagnosis.findings(trials.assign(**dict.fromkeys(CAPS, np.nan)))
    assert [one.verdict for one in found] == [Diagnosis.SATURATED] * 10 + [Diagnosis.UNKNOWN] * 15
    assert "no limit of this disk or machine is known" in found[-1].cause
    assert all("--disk-sku, --size-gib and --vm-size" in one.remedy for one in found)


def test_near_a_limit_is_called_perhaps(tables) -> None:
    trials, _ = tables
    alone = trials[(trials["arm"] == "lrs-z1") & (trials["workload"] == "randread-qd256")]
    assert [one.verdict for one in diagnosis.findings(alone)] == [Diagnosis.PERHAPS]


def test_the_text_says_the_remedy_once(tables) -> None:
    text = diagnosis.text(diagnosis.findings(*tables))
    assert text.startswith("throttled: 10 of 25 cells\n") and text.count("what helps: a larger disk") == 1
    assert diagnosis.text([]) == "nothing was measured yet"


def test_each_remedy_stands_below_its_own_cells(tables) -> None:
    first, second = diagnosis.findings(*tables)[:2]
    both = [replace(first, remedy="a"), replace(second, verdict=first.verdict, remedy="b")]
    _, *lines = diagnosis.text(both).splitlines()
    assert lines[1::2] == ["    what helps: a", "    what helps: b"]
    assert all(f"{one.arm}, {one.workload}: " in line for one, line in zip(both, lines[::2], strict=True))


@pytest.mark.long
def test_the_command_names_run_and_provenance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one_replicate(tmp_path / "sample-zone-disks", load=LOAD)
    monkeypatch.setenv("DISKBOOK_RUNS", str(tmp_path))
    said = CliRunner().invoke(cli.cli, ["why", "sample-zone-disks", "--arm", "zrs-z2"]).output
    assert said.startswith("emulated: run sample-zone-disks; a cell is one arm") and "lrs-z1" not in said
    error = CliRunner().invoke(cli.cli, ["why", "sample-zone-disks", "--arm", "zrs-z4"]).exception
    assert isinstance(error, UsageError) and "no arm 'zrs-z4'" in str(error)


TWO_LIMITS = {
    "cap_disk_iops": np.nan,
    "cap_disk_mb_s": 800.0,
    "cap_vm_iops": np.nan,
    "cap_vm_mb_s": 768.0,
    "cap_vm_burst_mb_s": 1600.0,
}


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({}, "96 % of the VM uncached limit of 768 MB/s and 92 % of the disk limit of 800 MB/s, too close"),
        ({"cap_disk_mb_s": 820.0}, "736 MB/s, 96 % of the VM uncached limit of 768 MB/s;"),
        (
            {"cap_vm_mb_s": 738.0, "credit_state": "full"},
            "100 % of the VM uncached limit of 738 MB/s;",
        ),
    ],
    ids=["within 5 %", "7 % apart", "alone"],
)
def test_limits_that_the_measurement_cannot_tell_apart_are_both_named(tables, changes, named: str) -> None:
    rates = {"throughput_mb_s": 736.0, "iops": 100.0, "credit_state": "unknown"}
    trials = tables[0].assign(**{**dict.fromkeys(CAPS, np.nan), **TWO_LIMITS, **rates, **changes})
    deep = of(diagnosis.findings(trials[trials["direction"] != "commit"]), "lrs-z1", "randread-qd256")
    assert named in deep.cause


def test_both_limits_come_with_their_remedies(tables) -> None:
    trials, series = tables
    both = {"cap_disk_iops": 5000.0, "cap_vm_iops": 5100.0, "cap_vm_burst_iops": np.nan}
    deep = of(diagnosis.findings(trials.assign(**both), series), "lrs-z1", "randread-qd256")
    assert deep.verdict == Diagnosis.THROTTLED
    assert "larger disk" in deep.remedy and "larger VM size" in deep.remedy
