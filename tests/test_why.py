"""Am I throttled, and by which limit: one finding a cell, in words."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import synthetic
from diskbook import cli, why
from diskbook.errors import UsageError

CAPS = [column for column in synthetic.tables(n_blocks=1)[0] if column.startswith("cap_")]


@pytest.fixture(scope="module")
def tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    trials, _, series = synthetic.tables(3)
    return trials, series


def of(found: list[why.Finding], arm: str, workload: str) -> why.Finding:
    return next(one for one in found if (one.arm, one.workload) == (arm, workload))


def test_deep_cells_are_throttled_by_the_disk_and_single_ones_are_not(tables) -> None:
    found = why.findings(*tables)
    deep, single = (of(found, "lrs-z1", name) for name in ("randwrite-qd256", "randwrite-qd1"))
    assert deep.verdict == why.THROTTLED and "disk limit of 5,000 IOPS" in deep.cause
    assert "larger disk" in deep.remedy
    assert single.verdict == why.FREE and "15 % of the lowest limit" in single.cause
    assert "1 outstanding" in single.cause
    assert [one.verdict for one in found] == [why.THROTTLED] * 10 + [why.FREE] * 15


def test_a_disk_that_its_machine_cannot_use(tables) -> None:
    trials, series = tables
    paid = {"cap_disk_iops": 80_000.0, "cap_vm_iops": 5000.0, "cap_vm_burst_iops": np.nan}
    deep = of(why.findings(trials.assign(**paid), series), "lrs-z1", "randread-qd256")
    assert "VM uncached limit of 5,000 IOPS" in deep.cause and deep.remedy == "a larger VM size"
    assert "the disk itself may do 80,000 IOPS, which this VM cannot use" in deep.cause


def test_a_burst_that_ends_within_a_trial(tables) -> None:
    trials, series = tables
    bursts = trials.assign(cap_disk_burst_iops=30_000.0)
    name = trials.loc[trials["workload"] == "randread-qd256", "trial"].iloc[0]
    early = (series["trial"] == name) & (series["second"] <= series["second"].median())
    falling = series.assign(iops=np.where(early, 30_000.0, series["iops"]))
    drained = [one for one in why.findings(bursts, falling) if one.verdict == why.DRAINED]
    assert len(drained) == 1 and name in drained[0].cause
    assert "from 30,000 to 5," in drained[0].cause


def test_without_limits_nothing_is_claimed(tables) -> None:
    trials, _ = tables
    found = why.findings(trials.assign(**dict.fromkeys(CAPS, np.nan)))
    assert {one.verdict for one in found} == {why.UNKNOWN}
    assert "no limit of this disk or machine is known" in found[0].cause


def test_near_a_limit_is_called_perhaps(tables) -> None:
    trials, _ = tables
    alone = trials[(trials["arm"] == "lrs-z1") & (trials["workload"] == "randread-qd256")]
    assert [one.verdict for one in why.findings(alone)] == [why.PERHAPS]


def test_the_text_says_the_remedy_once(tables) -> None:
    text = why.text(why.findings(*tables))
    assert text.startswith("throttled: 10 of 25 cells\n") and text.count("what helps: a larger disk") == 1
    assert why.text([]) == "nothing was measured yet"


def test_the_command_names_run_and_provenance() -> None:
    said = CliRunner().invoke(cli.cli, ["why", "sample-zone-disks", "--arm", "zrs-z2"]).output
    assert said.startswith("emulated: run sample-zone-disks\n") and "lrs-z1" not in said
    error = CliRunner().invoke(cli.cli, ["why", "sample-zone-disks", "--arm", "zrs-z4"]).exception
    assert isinstance(error, UsageError) and "no arm 'zrs-z4'" in str(error)
