"""The gate on plausibility: what it says of two cells, and what it decides."""

from __future__ import annotations

import pandas as pd
import pytest

from diskbook.design.model import Comparison
from diskbook.stats.compare import Compared, compare
from diskbook.stats.gates.data import PLAUSIBLE, plausible_gate
from diskbook.stats.plausibility import Asked, Doubt, Kind
from support import synthetic

WRITE = Comparison(
    arm="zrs-z1", base_arm="lrs-z1", workload="randwrite-qd1", pairing="same-machine", family="headline"
)
ARMS = ("zrs-z1", "lrs-z1")


def doubt(kind: Kind, words: str = "something", grave: bool = False) -> Doubt:
    return Doubt("zrs-z1", "w", kind, words, grave, "t1")


def gate(compared: Compared, name: str) -> pd.Series:
    return compared.gates[compared.gates["gate"] == name].iloc[0]


def asked(trials: pd.DataFrame, **changed: float) -> dict[str, Asked]:
    told = {"outstanding": 1.0, "block_size": 4096.0, "write_pct": 100.0} | changed
    return {name: Asked(**told) for name in trials["trial"].unique()}


@pytest.mark.parametrize(
    ("kind", "grave", "metric", "verdict"),
    [
        (Kind.WRITES, True, "lat_mean_ms", "invalid"),
        (Kind.TIME, False, "lat_mean_ms", None),
        (Kind.MEDIAN, False, "lat_mean_ms", None),
        (Kind.MEDIAN, False, "lat_p99_ms", "invalid"),
    ],
)
def test_what_spoils_a_comparison_and_what_only_warns(kind, grave, metric, verdict) -> None:
    result = plausible_gate(ARMS, [[doubt(kind, grave=grave)], []], metric)
    assert (result.status, result.decides) == ("failed", verdict) and result.remedy == kind.remedy


def test_each_kind_is_said_once_with_its_number() -> None:
    many = [doubt(Kind.TIME, "30 s were asked for, 10 s measured")] * 3 + [doubt(Kind.TAIL, "p99 is low")]
    result = plausible_gate(ARMS, [many, []], "iops")
    assert result.cause == ("zrs-z1: 30 s were asked for, 10 s measured (3 trials), p99 is low (1 trial)")
    assert plausible_gate(ARMS, [[], []], "iops").status == "passed"


def test_a_run_is_judged_by_what_its_trials_were_asked() -> None:
    trials, _, series = synthetic.tables(loads=(synthetic.WRITE,), n_replicates=2, n_blocks=3)
    good = compare(trials, [WRITE], series, {}, asked=asked(trials))
    assert gate(good, PLAUSIBLE)["status"] == "passed" and not good.doubts
    other = compare(trials, [WRITE], series, {}, asked=asked(trials, bytes_an_io=8192.0))
    assert set(other.table["verdict"]) == {"invalid"}
    assert "4,096 bytes an I/O were asked for, 8,192 done" in gate(other, PLAUSIBLE)["cause"]
    assert {item.kind for item in other.doubts} == {Kind.BYTES}


def test_littles_law_is_told_by_its_own_gate_with_the_remedy_of_a_wrong_unit() -> None:
    trials, _, series = synthetic.tables(loads=(synthetic.WRITE,), n_replicates=2, n_blocks=3)
    wrong = trials.assign(**{name: trials[name] * 1000 for name in trials if name.startswith("lat_")})
    result = compare(wrong, [WRITE], series, {}, asked=asked(trials))
    assert gate(result, PLAUSIBLE)["status"] == "passed"
    assert gate(result, "Little's law")["remedy"] == Kind.IN_FLIGHT.remedy
    slightly = compare(trials.assign(iops=trials["iops"] * 0.9), [WRITE], series, {}, asked=asked(trials))
    assert "more CPU" in gate(slightly, "Little's law")["remedy"]


def test_a_load_that_pauses_is_no_closed_loop() -> None:
    trials, _, series = synthetic.tables(loads=(synthetic.WRITE,), n_replicates=2, n_blocks=3)
    idle = trials.assign(iops=trials["iops"] * 0.3, throughput_mb_s=trials["throughput_mb_s"] * 0.3)
    paced = {name: Asked(1.0, 4096.0, 100.0, paced=True) for name in trials["trial"].unique()}
    assert gate(compare(idle, [WRITE], series, {}, asked=paced), "Little's law")["status"] == "passed"
    assert gate(compare(idle, [WRITE], series, {}), "Little's law")["status"] == "failed"
