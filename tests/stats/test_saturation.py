"""Saturation without a known limit: what shows a queue, what does not, and where nothing can tell."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from diskbook.design.model import Comparison
from diskbook.design.vocabulary import Label
from diskbook.facts import paths
from diskbook.results import tables
from diskbook.stats import diagnosis, limits, saturation
from diskbook.stats.compare import compare
from diskbook.stats.diagnosis import Diagnosis
from diskbook.stats.gates import limits as gates_on_limits
from support import synthetic

HIDDEN = 4000.0
"""A limit 20 % under the nominal 5,000 IOPS."""
DEEP = Comparison(
    arm="zrs-z1", base_arm="lrs-z1", workload="d256", pairing="same-machine", family="exploratory"
)


def measured(
    depths: dict[str, list[tuple[int, float]]], blocks: int = 4, noise: float = 0.01, rate: float = math.nan
) -> pd.DataFrame:
    """Reads of some arms at depths with these mean latencies in ms; workloads are named d1, d8 ..."""
    rng = np.random.default_rng(7)
    one = synthetic.tables(n_blocks=1, loads=(synthetic.READ,))[0].iloc[:1]
    rows = []
    for arm, points in depths.items():
        for block in range(1, blocks + 1):
            for position, (depth, lat_ms) in enumerate(points, 1):
                latency = lat_ms * math.exp(rng.normal(0, noise))
                offered = rate if depth > 1 else math.nan
                iops = offered if offered > 0 else 1000 * depth / latency
                rows.append(
                    one.assign(
                        trial=f"{block}-{arm}-{depth}",
                        arm=arm,
                        workload=f"d{depth}",
                        block=block,
                        position=position,
                        disk_id=arm,
                        machine_id="vm",
                        physical_zone="az1",
                        outstanding=depth,
                        lat_mean_ms=latency,
                        iops=iops,
                        throughput_mb_s=iops * 4096 / 1e6,
                        rate_offered=offered,
                        started_utc=one["started_utc"] + pd.Timedelta(minutes=10 * block + position),
                    )
                )
    return pd.concat(rows, ignore_index=True)


def at(depth: int, rate: float) -> tuple[int, float]:
    """A depth, and the latency of a closed loop at that rate."""
    return depth, 1000 * depth / rate


def labels(trials: pd.DataFrame) -> pd.Series:
    return limits.label_cells(trials).set_index(["arm", "workload"])["label"]


def capless(trials: pd.DataFrame) -> pd.DataFrame:
    return trials.assign(**{name: np.nan for name in trials if name.startswith("cap_")})


BOTH = {"lrs-z1": [(1, 2.2), at(256, HIDDEN)], "zrs-z1": [(1, 3.1), at(256, HIDDEN)]}


@pytest.mark.long
@pytest.mark.parametrize("known", [True, False])
def test_a_limit_below_nominal_gets_no_latency_verdict(known: bool) -> None:
    """The planted ratio is 1.41, the two deep latencies are equal to the digit: never "equivalent"."""
    trials = measured(BOTH, noise=0.0005)
    trials = trials if known else capless(trials)
    compared = compare(trials, [DEEP], None, {})
    row = compared.table[compared.table["scope"] == "these disks"].iloc[0]
    assert row["verdict"] == "saturated" and row[["ratio", "ci_low", "diff_ms"]].isna().all()
    assert "lrs-z1 (this rate needs 8.8 I/Os in flight at the 2.20 ms of depth 1; 256 give" in row["warnings"]
    assert "zrs-z1 (this rate needs 12.4" in row["warnings"]
    assert set(compared.cells.set_index("workload").loc["d256", "label"]) == {Label.SATURATED}


def test_the_ratio_of_rates_stays_and_is_no_verdict_on_disks() -> None:
    item = DEEP.model_copy(update={"metric": "iops"})
    trials = measured({"lrs-z1": BOTH["lrs-z1"], "zrs-z1": [(1, 3.1), at(256, 2000)]}, noise=0.001)
    table = compare(trials, [item], None, {}).table
    row = table[table["scope"] == "these disks"].iloc[0]
    assert row["verdict"] == "saturated" and row["ratio"] == pytest.approx(0.5, abs=0.01)
    assert row["ci_low"] < 0.5 < row["ci_high"]


def test_a_rate_as_it_is_delivered_is_judged_also_where_a_limit_sets_it() -> None:
    item = DEEP.model_copy(update={"metric": "iops", "as_delivered": True})
    trials = measured({"lrs-z1": BOTH["lrs-z1"], "zrs-z1": [(1, 3.1), at(256, 2000)]}, noise=0.001)
    table = compare(trials, [item], None, {}).table
    row = table[table["scope"] == "these disks"].iloc[0]
    assert row["verdict"] == "difference" and row["ratio"] == pytest.approx(0.5, rel=0.01)


def test_one_saturated_arm_is_enough() -> None:
    trials = measured({"lrs-z1": BOTH["lrs-z1"], "zrs-z1": [(1, 40.0), (256, 70.0)]})
    row = compare(trials, [DEEP], None, {}).table.iloc[1]
    assert row["verdict"] == "saturated" and "zrs-z1 (" not in row["warnings"]


@pytest.mark.parametrize("times", [1.0, 1.3, 1.5])
def test_latency_that_grows_with_depth_is_the_disks(times: float) -> None:
    trials = measured({"lrs-z1": [(1, 2.2), (8, 2.2 * times)]}, noise=0.03)
    assert set(labels(trials)) == {Label.BELOW_CAP}


@pytest.mark.long
@pytest.mark.parametrize(("times", "label"), [(1.85, Label.UNASSESSED), (2.1, Label.SATURATED)])
def test_between_the_two_nothing_is_decided(times: float, label: str) -> None:
    trials = measured({"lrs-z1": [(1, 2.2), (8, 2.2 * times)], "zrs-z1": [(1, 3.1), (8, 3.1)]}, noise=0.002)
    assert labels(trials)["lrs-z1", "d8"] == label
    row = compare(trials, [DEEP.model_copy(update={"workload": "d8"})], None, {}).table.iloc[1]
    assert row["verdict"] == ("inconclusive" if label == Label.UNASSESSED else "saturated")
    assert math.isnan(row["ratio"])


def test_without_a_shallow_cell_nothing_can_tell() -> None:
    """One deep cell an arm, as many imports have: no verdict on latencies, with the remedy; rates stay."""
    trials = measured({"lrs-z1": [(32, 9.0)], "zrs-z1": [(32, 14.0)]})
    items = [DEEP.model_copy(update={"workload": "d32", "metric": name}) for name in ("lat_mean_ms", "iops")]
    compared = compare(trials, items, None, {})
    assert set(labels(trials)) == {Label.UNASSESSED}
    rows = compared.table[compared.table["scope"] == "these disks"].set_index("metric")
    assert set(rows["verdict"]) == {"inconclusive"}
    assert math.isnan(rows.loc["lat_mean_ms", "ratio"])
    assert rows.loc["iops", "ci_low"] < 9 / 14 < rows.loc["iops", "ci_high"]
    assert rows["warnings"].str.contains("no cell at depth 1").all()
    assert rows["warnings"].str.contains("measure the same load at queue depth 1 as well").all()


def test_the_shallowest_cell_shows_a_queue_and_a_growing_rate_shows_none() -> None:
    held_by_4000 = labels(measured({"lrs-z1": [at(8, 3600), at(64, HIDDEN)]}))
    assert held_by_4000.tolist() == [Label.UNASSESSED, Label.SATURATED]
    growing = labels(measured({"lrs-z1": [(2, 2.2), (4, 2.3), (8, 2.4)]}, noise=0.002))
    assert set(growing) == {Label.BELOW_CAP}
    slower = labels(measured({"lrs-z1": [(16, 6.0), (32, 9.0)]}, noise=0.002))
    assert set(slower) == {Label.UNASSESSED}


def test_a_rate_that_more_depth_does_not_raise() -> None:
    trials = measured({"lrs-z1": [at(16, HIDDEN), at(20, HIDDEN)]}, noise=0.001)
    assert set(labels(trials)) == {Label.SATURATED}
    noisy = measured({"lrs-z1": [at(16, HIDDEN), at(20, HIDDEN)]}, noise=0.03)
    assert set(labels(noisy)) == {Label.UNASSESSED}  # by chance such rates may be alike


def test_single_ios_on_a_limit_of_bytes() -> None:
    """1 MiB at 150 MB/s: a single I/O waits for the limit already, or for a disk that does one at a time."""
    trials = measured({"lrs-z1": [at(1, 143), at(2, 143), at(8, 143)]}, noise=0.001)
    large = trials.assign(block_size_bytes=2**20, throughput_mb_s=150.0)
    assert labels(large).tolist() == [Label.UNASSESSED, Label.SATURATED, Label.SATURATED]


def test_arms_that_differ_alone_and_not_at_depth() -> None:
    """Neither waits twice its single latency, and yet one limit sets both rates."""
    depths = {"lrs-z1": [(1, 2.2), at(12, HIDDEN)], "zrs-z1": [(1, 3.0), at(12, HIDDEN)]}
    assert set(labels(measured(depths, noise=0.0005)).xs("d12", level=1)) == {Label.SATURATED}
    chance = {"lrs-z1": [(1, 2.2), (12, 3.0)], "zrs-z1": [(1, 3.0), (12, 3.0)]}
    assert set(labels(measured(chance, noise=0.02))) == {Label.BELOW_CAP}


def test_a_held_rate_is_judged_by_what_is_in_flight() -> None:
    """64 may be outstanding, 3.6 are in flight: no queue. At 10 ms in place of 2.2 there is one."""
    fine = labels(measured({"lrs-z1": [(1, 2.2), (64, 2.4)]}, rate=1500.0))
    queue = labels(measured({"lrs-z1": [(1, 2.2), (64, 10.0)]}, rate=1500.0))
    assert (fine["lrs-z1", "d64"], queue["lrs-z1", "d64"]) == (Label.BELOW_CAP, Label.SATURATED)


def test_equal_held_rates_are_no_limit() -> None:
    depths = {"lrs-z1": [(1, 2.2), (64, 2.4)], "zrs-z1": [(1, 3.1), (64, 3.3)]}
    assert set(labels(measured(depths, rate=1500.0, noise=0.0005))) == {Label.BELOW_CAP}


def test_a_known_limit_keeps_its_name() -> None:
    trials = measured({"lrs-z1": [(1, 2.2), at(256, 5100)]})
    assert labels(trials)["lrs-z1", "d256"] == Label.CAPPED


def test_replicates_are_judged_by_their_own_single_ios() -> None:
    """A disk that answers from afar and waits no longer at depth is none behind a limit."""
    near, far = (measured({"zrs-z1": [(1, lat), (8, 1.1 * lat)]}) for lat in (2.2, 6.6))
    both = pd.concat([near, far.assign(replicate=2, trial="r2-" + far["trial"])])
    assert set(labels(both)) == {Label.BELOW_CAP}
    queued = measured({"zrs-z1": [(1, 2.2), (8, 6.0)]})
    some = [near.assign(replicate=number, trial=f"r{number}-" + near["trial"]) for number in (2, 3)]
    deep = limits.label_cells(pd.concat([queued, *some])).set_index("workload").loc["d8"]
    assert deep["label"] == Label.UNASSESSED
    assert deep["evidence"] == "twice the latency of a single I/O in some replicates, 1.1 times over all"


def test_without_latencies_the_depth_stands_for_what_is_in_flight() -> None:
    trials = measured(BOTH).assign(lat_mean_ms=np.nan)
    assert labels(trials)["lrs-z1", "d256"] == Label.SATURATED


def test_why_names_it_and_lists_suspects() -> None:
    trials = measured({"lrs-z1": [(1, 2.2), at(256, 4080)]}, noise=0.0005)
    deep, single = diagnosis.findings(trials)
    assert (deep.verdict, single.verdict) == (Diagnosis.SATURATED, Diagnosis.FREE)
    assert "set by a limit that is not known; 82 % of the lowest limit" in deep.cause
    assert "its 62.7 ms are those of a queue, not of the disk" in deep.cause
    assert "throttling by the host or the account" in deep.cause and "are 1.02 x 4,000" in deep.cause
    assert "queue depth 1" in deep.remedy and "concurrency" not in deep.cause
    unround = diagnosis.findings(measured({"lrs-z1": [(1, 2.2), at(256, 4300)]}, noise=0.0005))[0]
    assert unround.verdict == Diagnosis.SATURATED and "1.02 x" not in unround.cause
    unnamed = diagnosis.findings(capless(trials))[0]
    assert unnamed.verdict == Diagnosis.SATURATED and "--disk-sku" in unnamed.remedy


def test_why_does_not_know_of_a_deep_cell_alone() -> None:
    (found,) = diagnosis.findings(measured({"lrs-z1": [(32, 9.0)]}))
    assert found.verdict == Diagnosis.UNKNOWN and "no cell at depth 1" in found.cause
    assert found.remedy == "the same load at queue depth 1 beside it would tell"


@pytest.mark.long
def test_single_ios_that_stand_still_cannot_be_told_from_a_limit_until_a_probe_shows_it() -> None:
    still = {"lrs-z1": [(1, 2.2)], "zrs-z1": [(1, 2.2)]}
    item = DEEP.model_copy(update={"workload": "d1"})
    compared = compare(measured(still, noise=0.0005), [item], None, {})
    row = compared.table.iloc[1]
    assert row["verdict"] == "inconclusive" and "cannot be distinguished from a limit" in row["warnings"]
    assert "measure the same load at twice the depth as well" in row["warnings"] and math.isnan(row["ratio"])
    probed = {arm: [(1, 2.2), (2, 2.25)] for arm in still}
    row = compare(measured(probed, noise=0.0005), [item], None, {}).table.iloc[1]
    assert row["verdict"] == "equivalent within 5 %" and row["warnings"] == ""
    moving = compare(measured(still, noise=0.01), [item], None, {}).table.iloc[1]
    assert moving["verdict"] == "equivalent within 5 %"
    assert moving["warnings"].startswith("nothing shows whether these single I/Os sit on a limit")


@pytest.mark.parametrize(
    ("of_single", "verdict", "note"),
    [(0.01, "difference", ""), (0.15, "inconclusive", "single I/Os do not show the same")],
)
def test_a_difference_at_depth_needs_one_of_single_ios(of_single: float, verdict: str, note: str) -> None:
    """10 % at depths 1 and 10. No other load shows that no limit holds the deep cells."""
    trials = measured({"lrs-z1": [(1, 2.2), (10, 2.4)], "zrs-z1": [(1, 2.42), (10, 2.64)]})
    single = (trials["outstanding"] == 1) & (trials["arm"] == "zrs-z1")
    factor = np.exp(of_single * np.where(single, np.where(trials["block"] % 2, 1, -1), 0))
    trials = trials.assign(lat_mean_ms=trials["lat_mean_ms"] * factor, iops=trials["iops"] / factor)
    row = compare(trials, [DEEP.model_copy(update={"workload": "d10"})], None, {}).table.iloc[1]
    assert row["scope"] == "these disks" and row["verdict"] == verdict and note in row["warnings"]


@pytest.mark.parametrize(
    ("closed", "outstanding", "shown", "is_open"),
    [(True, 2, False, True), (True, 1, False, False), (True, 2, True, False), (False, 2, False, False)],
)
def test_only_a_deep_closed_loop_that_no_other_load_outran_is_open(
    closed: bool, outstanding: int, shown: bool, is_open: bool
) -> None:
    cell = {"closed": closed, "outstanding": outstanding, "shown": shown}
    assert saturation.is_open(pd.DataFrame([cell])).tolist() == [is_open]
    assert gates_on_limits.is_open({**cell, "label": Label.BELOW_CAP}) is is_open
    assert gates_on_limits.is_open({**cell, "label": Label.NEAR_A_CAP}) is False


def test_a_probe_on_the_same_rate_shows_the_limit_on_one_machine_of_two() -> None:
    held = measured({"lrs-z1": [at(1, 300), at(2, 300)]}, noise=0.001)
    free = measured({"lrs-z1": [(1, 2.2), (2, 2.2)]}, noise=0.01).assign(replicate=2)
    both = pd.concat([held, free.assign(trial="2-" + free["trial"])])
    assert labels(both)["lrs-z1", "d1"] == Label.UNASSESSED


@pytest.mark.parametrize(
    ("of_single", "label", "why"),
    [
        (0.02, Label.UNASSESSED, "varies by 0.10% from trial to trial, that of its single I/Os by 2.31%"),
        (0.0045, Label.BELOW_CAP, ""),
    ],
)
def test_a_deep_rate_looks_like_a_limits_where_it_varies_far_less_than_its_single_ios(
    of_single: float, label: str, why: str
) -> None:
    """Four rates at mean x exp(+-0.0009): s.d. 0.0009 x sqrt(4 / 3). An F-test at 1 % needs 29.5 = 5.4^2."""
    trials = measured({"lrs-z1": [(1, 2.2), at(12, HIDDEN)]}, noise=0)
    spread = trials["outstanding"].map({1: of_single, 12: 0.0009})
    trials["iops"] *= np.exp(spread * np.where(trials["block"] % 2, 1, -1))
    cell = limits.label_cells(trials).set_index("workload").loc["d12"]
    assert cell["label"] == label and cell["evidence"].endswith(why) and bool(cell["evidence"]) == bool(why)


def test_why_does_not_call_a_hidden_cap_the_tools_own_concurrency() -> None:
    """12 in flight, of which 8.8 would do: no queue of twice the latency, and no other load shows more."""
    trials = measured({"lrs-z1": [(1, 2.2), at(12, HIDDEN)]}, noise=0.002)
    cells = limits.label_cells(trials)
    found = {item.workload: item for item in diagnosis.findings(trials, None, cells)}
    assert found["d12"].verdict == Diagnosis.UNKNOWN and "set by the tool" not in found["d12"].cause
    assert "set by the tool's own concurrency" in found["d1"].cause
    assert found["d1"].verdict == Diagnosis.FREE


def test_a_trial_that_moves_within_itself_stands_on_no_cap() -> None:
    trials = measured({"lrs-z1": [(1, 2.2)]}, noise=0.0005).assign(iops=4545.0)
    rng = np.random.default_rng(1)

    def series(spread: float) -> pd.DataFrame:
        rates = 4545 * np.exp(rng.normal(0, spread, 30))
        rows = {"direction": "read", "second": np.arange(1.0, 31), "iops": rates}
        return pd.concat([pd.DataFrame(rows).assign(trial=name) for name in trials["trial"]])

    assert set(limits.label_cells(trials, series(0.001))["label"]) == {Label.UNASSESSED}
    assert set(limits.label_cells(trials, series(0.01))["label"]) == {Label.BELOW_CAP}


@pytest.mark.long
@pytest.mark.parametrize("sample", sorted(path.name for path in paths.RUNS.glob("sample-*")))
def test_no_sample_has_a_cell_that_looks_serialised(sample: str) -> None:
    """The emulator serves I/Os side by side, so that the sentence would be a false alarm there."""
    measured = tables.read(paths.RUNS / sample)
    cells = limits.label_cells(measured.trials, measured.series)
    assert len(cells) > 20 and not cells["evidence"].str.contains(saturation.SERIALISED).any()


@pytest.mark.parametrize(
    ("spread", "named", "unnamed"),
    [
        (0.001, "a cap lies below", "the guest"),
        (0.02, "the guest serialises", "or a cap"),
        (None, ", or a cap", "since"),
    ],
)
def test_one_io_at_a_time_is_a_cap_if_flat_and_a_lock_if_it_wanders(
    spread: float | None, named: str, unnamed: str
) -> None:
    """4,000 IOPS at depths 1, 4 and 16, by their one-second rates."""
    trials = measured({"lrs-z1": [at(1, 4000), at(4, 4000), at(16, 4000)]})
    rng = np.random.default_rng(1)
    series = None
    if spread is not None:
        rates = 4000 * np.exp(rng.normal(0, spread, 40))
        rows = {"direction": "read", "second": np.arange(1.0, 41), "iops": rates}
        series = pd.concat([pd.DataFrame(rows).assign(trial=name) for name in trials["trial"]])
    cells = limits.label_cells(trials, series).set_index("workload")
    for load in ("d4", "d16"):
        evidence = cells.loc[load, "evidence"]
        assert "one I/O is worked on at a time" in evidence and named in evidence and unnamed not in evidence


def test_a_rate_stands_still_by_the_degrees_of_freedom_that_it_has() -> None:
    quiet = saturation.OF_A_CAP**2
    assert saturation.stands_still(np.array([quiet, quiet, 20 * quiet]), np.array([0, 1, 1])).tolist() == [
        False,
        True,
        False,
    ]
