"""Gates on noise, rates, zones and limits; differences in ms; strata of replicates; more hostile data."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from diskbook.design import schema
from diskbook.design.model import Comparison
from diskbook.design.totals import measured_rows
from diskbook.design.vocabulary import GateStatus, Scope, Verdict
from diskbook.facts import quantities
from diskbook.stats import limits, outliers, ratios, strata
from diskbook.stats.compare import Compared, compare
from diskbook.stats.gates import data
from diskbook.stats.gates.design import cell_checks
from diskbook.stats.ratios import Estimate
from support import synthetic

WRITE = Comparison(
    arm="zrs-z1", base_arm="lrs-z1", workload="randwrite-qd1", pairing="same-machine", family="headline"
)
READ = WRITE.model_copy(update={"workload": "randread-qd1"})


@pytest.fixture(scope="module")
def run() -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    return synthetic.tables(loads=(synthetic.WRITE, synthetic.READ), n_replicates=3, n_blocks=3)


def gate(found: Compared, name: str) -> pd.Series:
    return found.gates[found.gates["gate"] == name].iloc[0]


def by_scope(found: Compared) -> dict[str, pd.Series]:
    return {row["scope"]: row for _, row in found.table.iterrows()}


# --- differences in ms


def test_differences_in_ms_by_hand(run) -> None:
    """From geometric means of both arms; an interval keeps their common level."""
    trials = run[0]
    mine = trials[(trials["workload"] == "randwrite-qd1")]
    wide = np.log(mine.pivot_table(index=["replicate", "block"], columns="arm", values="lat_mean_ms"))
    arm, base = (np.exp(wide[name].groupby(level=0).mean().mean()) for name in ("zrs-z1", "lrs-z1"))
    means = (wide["zrs-z1"] - wide["lrs-z1"]).groupby(level=0).mean()
    low, high = np.exp(stats.ttest_1samp(means, 0).confidence_interval(0.95))
    rows = by_scope(compare(trials, [WRITE], run[2], {}))
    general, these = rows["disks like these"], rows["these disks"]
    level = math.sqrt(arm * base)
    bounds = [level * (math.sqrt(end) - 1 / math.sqrt(end)) for end in (low, high)]
    assert general[["diff_ms", "diff_low_ms", "diff_high_ms"]].tolist() == pytest.approx(
        [arm - base, *bounds]
    )
    assert these["diff_ms"] == pytest.approx(arm - base) and these["diff_low_ms"] < these["diff_ms"]


@pytest.mark.long
@pytest.mark.parametrize("seed", range(6))
def test_a_difference_in_ms_never_contradicts_its_ratio(seed: int) -> None:
    """Also where one arm is a mixture, of which arithmetic and geometric means differ."""
    trials, _, _ = synthetic.tables(seed, n_replicates=3, loads=(synthetic.WRITE,), samples=1, draws=5)
    bursts = np.random.default_rng(seed).choice([0.5, 1.0, 4.0], len(trials))
    mixed = np.where(trials["arm"] == "zrs-z1", bursts / 2.4, 1.0)
    rows = compare(trials.assign(lat_mean_ms=trials["lat_mean_ms"] * mixed), [WRITE], None, {}).table
    rows = rows[rows["ci_low"].notna()]
    assert len(rows)
    for ratio, difference in (("ratio", "diff_ms"), ("ci_low", "diff_low_ms"), ("ci_high", "diff_high_ms")):
        assert (np.sign(rows[ratio] - 1) == np.sign(rows[difference])).all()


@pytest.mark.long
def test_differences_follow_the_ratio_in_what_is_refused(run) -> None:
    one = run[0][run[0]["replicate"] == 1]
    rows = by_scope(compare(one, [WRITE], run[2], {}))
    assert math.isnan(rows["disks like these"]["diff_ms"])
    assert rows["these disks"]["diff_low_ms"] < 3.2 - 1.3 + 0.2
    rates = compare(run[0], [WRITE.model_copy(update={"metric": "iops"})], run[2], {}).table
    assert rates["diff_ms"].isna().all() and rates["ratio"].notna().all()
    capped, _, series = synthetic.tables(loads=(synthetic.DEEP_WRITE,))
    deep = WRITE.model_copy(update={"workload": "randwrite-qd256"})
    assert compare(capped, [deep], series, {}).table["diff_ms"].isna().all()


def test_swapping_arms_mirrors_everything(run) -> None:
    swapped = WRITE.model_copy(update={"arm": WRITE.base_arm, "base_arm": WRITE.arm})
    one, other = (compare(run[0], [item], run[2], {}).table for item in (WRITE, swapped))
    assert np.allclose(one["ratio"], 1 / other["ratio"])
    assert np.allclose(one["ci_low"], 1 / other["ci_high"])
    assert np.allclose(one["diff_low_ms"], -other["diff_high_ms"])
    assert np.allclose(one["p_adjusted"], other["p_adjusted"])
    assert one["verdict"].tolist() == other["verdict"].tolist()


def test_the_unit_scales_the_difference_and_not_the_ratio(run) -> None:
    free = {limit.column: np.nan for limit in limits.LIMITS}
    ten = {"lat_mean_ms": run[0]["lat_mean_ms"] * 10, "iops": run[0]["iops"] / 10}
    one, other = (compare(run[0].assign(**free, **part), [WRITE], None, {}).table for part in ({}, ten))
    assert np.allclose(one["ratio"], other["ratio"]) and np.allclose(one["ci_high"], other["ci_high"])
    assert np.allclose(10 * one["diff_ms"], other["diff_ms"])


# --- one-sided noise


def runs(seed: int, shape: tuple[int, ...] = (3, 4, 2)) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 0.01, shape)


def test_far_runs_are_counted_by_arm() -> None:
    arm, base = runs(1), runs(2)
    assert [int(count) for count in outliers.count(arm, base)] == [0, 0]
    arm[1, 2, 0] += math.log(1.5)
    found = outliers.count(arm + 0.5, base)
    assert (int(found.arm), int(found.base), bool(found.one_sided)) == (1, 0, True)
    base[0, 0, 0] -= math.log(1.5)
    assert not outliers.count(arm, base).one_sided


def test_many_comparisons_at_once_and_missing_runs() -> None:
    arm, base = runs(3, (4, 2, 3, 2)), runs(4, (4, 2, 3, 2))
    arm[2, 0, 0, 0], arm[3], base[1, 1] = 1.0, np.nan, np.nan
    assert outliers.count(arm, base).arm.tolist() == [0, 0, 1, 0]
    alone = [int(outliers.count(a, b).arm) for a, b in zip(arm, base, strict=True)]
    assert alone == [0, 0, 1, 0]


def test_differences_between_replicates_are_no_noise() -> None:
    levels = np.array([0.0, 1.0, 2.0])[:, None, None]
    assert int(outliers.count(runs(5) + levels, runs(6)).arm) == 0


def test_one_sided_noise_is_said_with_its_remedy(run) -> None:
    trials = run[0].copy()
    slow = trials["trial"] == "r2-b1-1-zrs-z1-randwrite-qd1"
    trials.loc[slow, "lat_mean_ms"] *= 2
    trials.loc[slow, "iops"] /= 2
    found = compare(trials, [WRITE], run[2], {})
    line = gate(found, "one-sided noise")
    assert (
        line["status"] == "failed" and "1 run of zrs-z1" in line["cause"] and "rule of thumb" in line["cause"]
    )
    assert line["remedy"] == "measure 5 replicates x 10 blocks or more"
    assert found.table["warnings"].str.contains("rule of thumb").all()
    assert gate(compare(run[0], [WRITE], run[2], {}), "one-sided noise")["status"] == "passed"


def test_enough_measuring_bears_one_sided_noise() -> None:
    trials, _, _ = synthetic.tables(n_replicates=5, n_blocks=10, loads=(synthetic.WRITE,), samples=1, draws=5)
    slow = trials["trial"] == "r2-b1-1-zrs-z1-randwrite-qd1"
    trials.loc[slow, ["lat_mean_ms", "iops"]] *= [2.0, 0.5]
    line = gate(compare(trials, [WRITE], None, {}), "one-sided noise")
    assert line["status"] == "passed" and "enough replicates" in line["cause"]


# --- rates, limits and what binds


def rated(trials: pd.DataFrame, rate: float) -> pd.DataFrame:
    return trials.assign(rate_offered=rate, outstanding=32, iops=rate * 1.001, throughput_mb_s=np.nan)


def test_an_offered_rate_has_its_own_gate_and_binds(run) -> None:
    windows = {"rate_window_worst": 0.97, "rate_windows_low_share": 0.0}
    found = compare(rated(run[0], 100.0).assign(**windows), [WRITE], None, {})
    assert gate(found, "offered rate")["status"] == "passed"
    assert "every trial was rate-limited" in gate(found, "Little's law")["cause"]
    assert set(found.cells["binds"]) == {"the offered rate of 100/s"}
    counts = cell_checks(rated(run[0], 100.0).assign(**windows))
    assert counts["window_worst"].tolist() == pytest.approx([0.97] * len(counts))
    missed = rated(run[0], 100.0).assign(iops=90.0)
    line = gate(compare(missed, [WRITE], None, {}), "offered rate")
    assert line["status"] == "failed" and "-10.0 %" in line["cause"] and "fio rounds" in line["remedy"]


STALL = {"rate_window_worst": 0.0, "rate_windows_low_share": 0.033}
TOLD = {"lat_mean_intended_ms": 20.0, "lat_mean_least_ms": 20.0, "lat_p99_intended_ms": 40.0}
INTENDED = {**TOLD, "lat_p99_least_ms": 40.0, "lat_p99_rise": 1.1, "outstanding": 40, "lat_bound": ""}


@pytest.mark.long
@pytest.mark.parametrize(
    ("recorded", "provenance", "status", "verdict", "words"),
    [
        ({}, "azure", "not assessable", None, "nobody recorded whether in every 0.1 s or longer"),
        (STALL, "azure", "failed", "invalid", "0 % of what was due was sent in the worst"),
        ({**STALL, "rate_windows_low_share": 0.005}, "azure", "failed", None, "and are lower bounds"),
        (STALL, "emulated", "failed", None, "the computer that emulates may be the cause"),
        ({**STALL, **INTENDED}, "azure", "passed", None, "less than 90 % in up to 3.3 % of all"),
    ],
)
def test_a_stall_that_the_mean_hides_fails_unless_latencies_count_from_when_it_was_due(
    run, recorded: dict, provenance: str, status: str, verdict: str | None, words: str
) -> None:
    held = rated(run[0], 100.0).assign(provenance=provenance, **recorded)
    found = compare(held, [WRITE], None, {})
    line = gate(found, "offered rate")
    assert line["status"] == status and words in line["cause"]
    assert (verdict is None) == (set(found.table["verdict"]) != {"invalid"})


@pytest.mark.parametrize(
    ("recorded", "provenance", "status", "decides", "words"),
    [
        ({}, "azure", GateStatus.FAILED, Verdict.INVALID, "20 % of what was due was sent in the worst"),
        ({"windows_low_share": 0.01}, "azure", GateStatus.FAILED, None, "less than 90 % in up to 1.0 %"),
        ({}, "emulated", GateStatus.FAILED, None, "the computer that emulates may be the cause"),
        ({"n_lower": 0}, "azure", GateStatus.PASSED, None, "less than 90 % in up to 1.1 %"),
        ({"n_windows_unknown": 2}, "azure", GateStatus.FAILED, Verdict.INVALID, "are lower bounds"),
        ({"n_windows_low": 0, "n_windows_unknown": 4}, "azure", GateStatus.NOT_ASSESSABLE, None, "nobody"),
        ({"n_windows_low": 0}, "azure", GateStatus.PASSED, None, "at least 90 % of it"),
    ],
)
def test_lower_bounds_are_invalid_where_over_one_percent_of_windows_lack_ios(
    recorded: dict[str, float], provenance: str, status: GateStatus, decides: Verdict | None, words: str
) -> None:
    """The 99th percentile is then among what was left out. On the emulator the computer may be the cause."""
    closed = {"n_rate_bad": 0, "n_rated": 0, "rate_worst": math.nan}
    held = {"n_rate_bad": 0, "n_rated": 4, "rate_worst": 0.001, "n_windows_low": 2, "n_lower": 4}
    held |= {"windows_low_share": 0.011, "window_worst": 0.2}
    found = data.rate_gate([closed, {**held, **recorded}], provenance)
    assert (found.status, found.decides) == (status, decides) and words in found.cause


@pytest.mark.long
def test_a_held_rate_is_compared_from_the_intended_start_where_both_arms_have_it(run) -> None:
    held = rated(run[0], 100.0)
    factor = np.where(held["arm"] == WRITE.arm, 3.0, 1.0)
    whole = held.assign(**{**STALL, **INTENDED, "lat_mean_intended_ms": 7.0 * factor})
    whole["lat_mean_least_ms"] = whole["lat_mean_intended_ms"]
    table = compare(whole, [WRITE], None, {}).table
    assert table["ratio"].tolist() == pytest.approx([3.0, 3.0])
    assert set(table["lat_start"]) == {"from the intended start"}
    # One arm without: both count from when an I/O was sent, and it is said.
    half = whole.assign(lat_mean_intended_ms=np.where(held["arm"] == WRITE.arm, 21.0, np.nan))
    bound, own = (compare(rows, [WRITE], None, {}).table for rows in (half, held))
    assert bound["ratio"].tolist() == own["ratio"].tolist()
    assert set(bound["lat_start"]) == {"lower bound"}


def test_a_closed_loop_below_every_limit_is_bound_by_the_tool(run) -> None:
    cells = limits.label_cells(run[0], run[2]).set_index(["arm", "workload"])
    read = run[0]["workload"].eq("randread-qd1")
    deeper = run[0][read].assign(workload="qd2", outstanding=2, iops=2 * run[0]["iops"])
    probed = pd.concat([run[0], deeper.assign(trial="2-" + deeper["trial"])])
    probed = limits.label_cells(probed).set_index(["arm", "workload"])
    assert probed.loc[("lrs-z1", "randread-qd1"), "binds"].startswith("the tool's own concurrency: 1 outst")
    alone = cells.loc[("lrs-z1", "randwrite-qd1"), "binds"]
    assert alone == "not known: the tool's own concurrency, or a limit that no table names"
    broken = limits.label_cells(run[0].assign(iops=run[0]["iops"] * 0.8))
    assert broken["binds"].str.startswith("not known").all()
    capped, _, series = synthetic.tables(loads=(synthetic.DEEP_WRITE,))
    assert set(limits.label_cells(capped, series)["binds"]) == {"disk limit of 5,000 IOPS"}


def test_the_cached_limit_of_the_vm_binds_where_a_cache_is_on() -> None:
    trials, _, series = synthetic.tables(loads=(synthetic.DEEP_READ,))
    cached = trials.assign(cap_disk_iops=np.nan, cap_vm_iops=np.nan, cap_vm_burst_iops=np.nan)
    cells = limits.label_cells(cached.assign(cap_vm_cached_iops=5100.0), series)
    assert set(cells["binds"]) == {"VM cached/local limit of 5,100 IOPS"}


def test_a_credit_that_ran_out_is_named_with_its_second(run) -> None:
    series = run[2].copy()
    trial = "r1-b2-1-zrs-z1-randwrite-qd1"
    series.loc[(series["trial"] == trial) & (series["second"] > 17), "iops"] *= 0.4
    line = gate(compare(run[0], [WRITE], series, {}), "stationarity")
    assert f"IOPS after 17 s in {trial}, as when a burst credit runs out" in line["cause"]
    assert "burst and base apart" in line["remedy"]


# --- strata

ZONES = ("1", "2", "3")


def read_from_zones(nearest: list[str], near: float = 2.2, far: float = 4.3) -> pd.DataFrame:
    """Reads of a ZRS disk from three zones and of an LRS disk from zone 1; the nearest zone by replicate."""
    arms = {f"zrs-z{zone}": {"read": far} for zone in ZONES} | {"lrs-z1": {"read": 2.2}}
    truth, options = (
        synthetic.Truth(latency_ms=arms),
        {"n_blocks": 3, "loads": (synthetic.READ,), "samples": 1},
    )
    trials, _, _ = synthetic.tables(6, truth, n_replicates=len(nearest), **options)
    place = trials["arm"].isin([f"zrs-z{zone}" for zone in ZONES])
    mine = trials["replicate"].map(dict(enumerate(nearest, 1))) == trials["logical_zone"]
    scale = np.where(place & mine, near / far, 1.0)
    return trials.assign(lat_mean_ms=trials["lat_mean_ms"] * scale, iops=trials["iops"] / scale)


def test_the_nearest_zone_is_inferred_by_replicate() -> None:
    found = strata.nearest_zones(measured_rows(read_from_zones(["1", "3"])))
    assert found == {(1, "zrs-1"): "westeurope-az1", (2, "zrs-2"): "westeurope-az3"}
    alike = strata.nearest_zones(measured_rows(read_from_zones(["1"], near=4.25)))
    assert alike == {(1, "zrs-1"): "not clear"}


def test_mixed_strata_are_said_and_estimated_apart() -> None:
    found = compare(read_from_zones(["1", "2", "1", "3", "1"]), [READ], None, {})
    line = gate(found, "nearest zone")
    assert line["status"] == "failed" and "not told by Azure" in line["cause"]
    near = found.strata[found.strata["stratum"].str.contains("nearest to westeurope-az1")].iloc[0]
    assert (near["n_replicates"], near["ci_low"] < 1.0 < near["ci_high"]) == (3, True)
    others = found.strata[found.strata["stratum"] != near["stratum"]]
    assert len(others) == 2 and others["ratio"].isna().all() and others["reason"].str.len().min() > 0
    general = by_scope(found)["disks like these"]
    change = quantities.change(near["ratio"], near["ci_low"], near["ci_high"])
    assert f"{change}, 3 replicates" in general["warnings"]
    assert list(found.strata.columns) == schema.STRATA.names
    assert len(schema.validate(schema.STRATA, found.strata)) == len(found.strata)


def test_replicates_in_several_physical_zones_are_not_pooled_but_estimated_apart() -> None:
    trials, _, _ = synthetic.tables(n_replicates=4, n_blocks=3, loads=(synthetic.WRITE,), samples=1, draws=5)
    moved = np.where(trials["replicate"] > 2, "westeurope-az9", trials["physical_zone"])
    found = compare(trials.assign(physical_zone=moved), [WRITE], None, {})
    assert set(found.table["verdict"]) == {"invalid"}
    assert found.strata["n_replicates"].tolist() == [2, 2] and found.strata["ci_low"].notna().all()
    assert found.strata["stratum"].str.contains("az9").tolist() == [False, True]


def test_replicates_of_one_stratum_speak_for_disks_of_that_stratum() -> None:
    """Plain "disks like these", which answer from any zone, was held in 32 % of such runs of 2 replicates."""
    found = compare(read_from_zones(["1", "1", "1"]), [READ], None, {})
    line = gate(found, "nearest zone")
    assert line["status"] == "passed" and "nearest to westeurope-az1" in line["cause"]
    nearest = found.cells.set_index("arm")["nearest_zone"]
    assert (nearest["zrs-z2"], nearest["lrs-z1"]) == ("westeurope-az1", "")
    general, these = (by_scope(found)[scope] for scope in ("disks like these", "these disks"))
    assert (general["nearest_zone"], these["nearest_zone"]) == ("westeurope-az1", "")
    assert "interval for disks like these whose nearest zone is westeurope-az1 is ±" in general["warnings"]
    assert found.strata.empty and these["warnings"].startswith("nothing shows whether these single I/Os")
    mixed = compare(read_from_zones(["1", "2", "1"]), [READ], None, {})
    assert set(mixed.table["nearest_zone"]) == {""}


def test_two_zone_redundant_disks_are_named_by_both_zones() -> None:
    assert Scope.LIKE_THESE.words("az1+az3") == "disks like these whose nearest zones are az1 and az3"
    places = {
        ("a", 1): ("az1", "one"),
        ("b", 1): ("az1", "two"),
        ("a", 2): ("az1", "x"),
        ("b", 2): ("az1", "y"),
    }
    nearest = {(1, "one"): "az1", (1, "two"): "az3", (2, "x"): "az1", (2, "y"): "az3"}
    assert strata.strata_of("a", "b", places, nearest).nearest == "az1+az3"
    assert strata.strata_of("a", "b", places, {**nearest, (2, "y"): "az2"}).nearest == ""
    assert strata.strata_of("a", "b", places, {}).nearest == ""


def test_a_disk_read_from_one_zone_tells_nothing(run) -> None:
    one_zone = run[0][run[0]["arm"].isin(["zrs-z1", "lrs-z1"])]
    assert strata.nearest_zones(measured_rows(one_zone)) == {}
    assert gate(compare(one_zone, [READ], None, {}), "nearest zone")["status"] == "passed"


ZRS_ARMS = {f"zrs-z{zone}" for zone in ZONES}


@pytest.mark.long
@pytest.mark.parametrize("zones", [("1",), ("1", "3")])
def test_a_zone_redundant_disk_not_read_from_all_zones_gives_no_general_interval(zones) -> None:
    trials = read_from_zones(["1", "2", "1", "1"])
    seen = trials[trials["arm"].isin(["lrs-z1", *(f"zrs-z{zone}" for zone in zones)])]
    untold = by_scope(compare(seen, [READ], None, {}))
    found = compare(seen, [READ], None, {}, zone_redundant=ZRS_ARMS)
    line, rows = gate(found, "nearest zone"), by_scope(found)
    assert line["status"] == "not assessable" and "zrs-z1" in line["cause"]
    general = rows["disks like these"]
    assert general[["ci_low", "ci_high", "diff_low_ms", "p_adjusted"]].isna().all()
    assert (general["method"], general["verdict"]) == ("refused", "inconclusive")
    assert general["ratio"] == pytest.approx(untold["disks like these"]["ratio"])
    assert "was not read from all zones" in general["warnings"]
    these = rows["these disks"]
    assert these["ci_low"] == untold["these disks"]["ci_low"] and found.strata.empty


def test_read_from_all_zones_the_general_interval_stands() -> None:
    trials = read_from_zones(["1", "1", "1"])
    told = by_scope(compare(trials, [READ], None, {}, zone_redundant=ZRS_ARMS))
    untold = by_scope(compare(trials, [READ], None, {}))
    assert told["disks like these"]["ci_low"] == untold["disks like these"]["ci_low"] > 0


# --- hostile data


def every(column: str, value: float):
    return lambda trials: trials.assign(**{column: value})


DAMAGE = {
    "all latencies missing": every("lat_mean_ms", np.nan),
    "all rates zero": every("iops", 0.0),
    "all rates missing": every("iops", np.nan),
    "negative rates": every("iops", -5.0),
    "absurd latencies": every("lat_mean_ms", 1e300),
    "tiny latencies": every("lat_mean_ms", 1e-300),
    "infinite rates": every("iops", np.inf),
    "no runtime": every("runtime_s", 0.0),
    "runtime missing": every("runtime_s", np.nan),
    "zero outstanding": every("outstanding", 0),
    "negative limit": every("cap_disk_iops", -1.0),
    "zero limit": every("cap_disk_iops", 0.0),
    "rate of zero offered": every("rate_offered", 0.0),
    "one arm alone": lambda trials: trials[trials["arm"] == "lrs-z1"],
    "one block": lambda trials: trials[(trials["block"] == 1) & (trials["replicate"] == 1)],
    "one trial": lambda trials: trials.iloc[:1],
    "nothing": lambda trials: trials.iloc[:0],
    "all rows twice": lambda trials: pd.concat([trials, trials]),
    "zones missing": every("physical_zone", None),
    "limits of one arm missing": lambda trials: trials.assign(
        **{
            name: trials[name].where(trials["arm"] == "zrs-z1", np.nan)
            for name in trials.columns
            if name.startswith("cap_")
        }
    ),
    "latencies of one arm missing": lambda trials: trials.assign(
        lat_mean_ms=trials["lat_mean_ms"].where(trials["arm"] == "zrs-z1", np.nan)
    ),
    "depth of one arm missing": lambda trials: trials.assign(
        outstanding=trials["outstanding"].where(trials["arm"] == "zrs-z1", np.nan)
    ),
    "bursts of what does not burst": lambda trials: trials.assign(
        credit_state="none", cap_disk_iops=10.0, cap_disk_burst_iops=1e5
    ),
    "no state of credit": lambda trials: trials.assign(
        credit_state=None, cap_disk_iops=10.0, cap_disk_burst_iops=1e5
    ),
    "no names of machines, disks and tools": lambda trials: trials.assign(
        **{name: None for name in ("machine_id", "disk_id", "tool_version") if name in trials}
    ),
    "arms in different replicates": lambda trials: trials[
        (trials["arm"] == "lrs-z1") == (trials["replicate"] == 1)
    ],
    "one arm a thousandfold": lambda trials: trials.assign(
        lat_mean_ms=trials["lat_mean_ms"] * np.where(trials["replicate"] == 2, 1e200, 1e-200)
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("name", DAMAGE)
def test_whatever_comes_there_is_a_verdict_with_a_reason(run, name: str) -> None:
    with_series = list(DAMAGE).index(name) % 2 == 0  # every other damage comes without one-second samples
    trials = DAMAGE[name](run[0][run[0]["workload"] == "randwrite-qd1"])
    directions = {"randwrite-qd1": ["write"]}
    found = compare(trials, [WRITE], run[2] if with_series else None, {}, directions=directions)
    table = found.table.assign(provenance="emulated")
    assert list(found.table.columns) == schema.COMPARISONS.names
    assert list(found.gates.columns) == schema.GATES.names
    assert len(schema.validate(schema.GATES, found.gates)) == len(found.gates)
    assert len(schema.validate(schema.COMPARISONS, table)) == 2
    assert (table["verdict"] != "").all()
    silent = table["ci_low"].isna() & (table["warnings"] == "")
    assert not silent.any()
    failed = found.gates[found.gates["status"] == "failed"]
    assert (failed["cause"].str.len() > 10).all() and (failed["remedy"].str.len() > 10).all()
    assert not found.gates["cause"].str.contains("nan").any()
    # A list that came out empty: nothing in brackets, before a comma, or on one side of "and".
    assert not found.gates["cause"].str.contains(r"\(\)|: ;|, ,|^ | and (?:and|,|;)|  |: $").any()


@pytest.mark.long
@pytest.mark.parametrize("value", [np.nan, 0.0, -3.0, 1e300])
def test_hostile_series_are_borne(run, value: float) -> None:
    series = run[2].copy()
    series.loc[series["trial"].str.contains("zrs-z1") & (series["second"] > 15), "iops"] = value
    found = compare(run[0], [WRITE], series, {})
    assert (found.table["verdict"] != "").all()
    assert not found.gates["cause"].str.contains("nan").any()


# --- losses by arm


def with_losses(trials: pd.DataFrame, arm: str, places: list[int], *, repeated: bool) -> pd.DataFrame:
    """Fail trials of an arm, by their number; where repeated, each has a second attempt that finished."""
    mine = trials[(trials["arm"] == arm) & (trials["workload"] == "randwrite-qd1")].iloc[places]
    numbers = ["iops", "lat_mean_ms", "throughput_mb_s", "ios", "runtime_s"]
    broken = mine.assign(status="failed", direction="none", **dict.fromkeys(numbers, np.nan))
    kept = trials.assign(attempt=trials["attempt"].where(~trials.index.isin(mine.index), 2))
    if not repeated:
        kept = kept.drop(index=mine.index)
    return pd.concat([kept, broken.assign(trial=broken["trial"] + "-failed")], ignore_index=True)


@pytest.mark.long
@pytest.mark.parametrize("repeated", [True, False])
def test_losses_of_one_arm_are_told_with_their_bound(run, repeated: bool) -> None:
    trials = with_losses(run[0], "zrs-z1", [0, 4], repeated=repeated)
    found = compare(trials, [WRITE], None, {})
    line = gate(found, "losses by arm")
    assert line["status"] == "failed"
    assert "2 of 9 trials of zrs-z1 and 0 of 9 trials of lrs-z1 were lost" in line["cause"]
    assert "the ratio would be 2.4" in line["cause"] and "measure both arms again" in line["remedy"]
    # More than twice as slow: no loss of two trials makes that of chance.
    assert set(found.table["verdict"]) == {"difference"}
    assert found.table["warnings"].str.contains("were lost, or failed and were repeated").all()


@pytest.mark.long
def test_a_difference_that_losses_may_have_made_is_inconclusive() -> None:
    truth = synthetic.Truth(latency_ms={"lrs-z1": {"write": 1.3}, "zrs-z1": {"write": 1.312}}, trial=0.01)
    trials, _, _ = synthetic.tables(
        2, truth, n_replicates=1, n_blocks=12, loads=(synthetic.WRITE,), samples=1
    )
    item = WRITE.model_copy(update={"margin": 0.001})
    assert by_scope(compare(trials, [item], None, {}))["these disks"]["verdict"] == "difference"
    lost = compare(with_losses(trials, "lrs-z1", [2, 6, 9], repeated=True), [item], None, {})
    assert by_scope(lost)["these disks"]["verdict"] == "inconclusive"
    alike = with_losses(
        with_losses(trials, "lrs-z1", [2, 6, 9], repeated=True), "zrs-z1", [1, 3, 7], repeated=True
    )
    both = compare(alike, [item], None, {})
    line = gate(both, "losses by arm")
    assert line["status"] == "passed" and line["cause"].endswith("about as many of both")
    assert by_scope(both)["these disks"]["verdict"] == "difference"


def estimate(ratio: float, half_width: float) -> Estimate:
    """Estimate from ten blocks with this half-width on the log scale."""
    low, high = (ratio * math.exp(sign * half_width) for sign in (-1, 1))
    log_se = half_width / float(stats.t.ppf(0.975, 9))
    return Estimate(Scope.THESE, ratio, low, high, 0.95, "t over blocks", log_se, 9.0, 1, 10)


@pytest.mark.parametrize(
    ("ratio", "half_width", "shift", "status", "decides"),
    [
        (1.0, 0.02, 0.0039, GateStatus.PASSED, None),  # a fifth of the half-width is small
        (1.1, 0.02, 0.05, GateStatus.FAILED, None),  # log 1.1 is 0.0953: the lower end stays above 0.025
        (1.1, 0.02, 0.08, GateStatus.FAILED, Verdict.INCONCLUSIVE),
        (1 / 1.1, 0.02, 0.05, GateStatus.FAILED, None),
        (1 / 1.1, 0.02, 0.08, GateStatus.FAILED, Verdict.INCONCLUSIVE),
        (1.0, 0.02, 0.01, GateStatus.FAILED, None),  # the margin of 5 % is 0.0488
        (1.0, 0.02, 0.04, GateStatus.FAILED, Verdict.INCONCLUSIVE),
        (1.0, 0.1, 0.05, GateStatus.FAILED, None),  # nothing is lost that was not open before
    ],
)
def test_losses_decide_where_they_may_have_made_the_verdict(
    ratio: float, half_width: float, shift: float, status: GateStatus, decides: Verdict | None
) -> None:
    cells = [{"n_lost": 2, "n_repeated": 1, "n_places": 12}, {"n_lost": 0, "n_repeated": 0, "n_places": 12}]
    refused = ratios.refused(estimate(ratio, half_width), "one replicate")
    estimates = [refused, estimate(ratio, half_width)]
    found = data.losses_by_arm_gate(("zrs", "lrs"), cells, shift, estimates, 0.05)
    assert (found.status, found.decides) == (status, decides)
    bound = f"{math.exp(math.log(ratio) - shift):.3f} to {math.exp(math.log(ratio) + shift):.3f}"
    assert found.cause.startswith("3 of 12 trials of zrs and 0 of 12") and bound in found.cause
    alike = data.losses_by_arm_gate(("zrs", "lrs"), cells, 0.0, estimates, 0.05)
    assert alike.status is GateStatus.PASSED and alike.cause.endswith("about as many of both")


@pytest.mark.parametrize(
    ("n_blocks", "status", "blocks"),
    [
        (8, GateStatus.PASSED, ""),
        (6, GateStatus.PASSED, "; 6 of 8 blocks have both arms"),
        (5, GateStatus.FAILED, "; 5 of 8 blocks have both arms"),
    ],
)
def test_over_a_quarter_of_the_blocks_lost_is_a_selection(
    n_blocks: int, status: GateStatus, blocks: str
) -> None:
    none = {"n_failed": 0, "n_repeated_rows": 0, "n_lost": 0}
    found = data.losses_gate([none, {**none, "n_failed": 2, "n_lost": 1}], n_blocks, 8)
    assert (found.status, found.cause) == (status, f"2 trials failed, 1 without a later success{blocks}")


@pytest.mark.parametrize(
    ("moved", "assessable", "more", "status", "words"),
    [
        (5, 100, {}, GateStatus.PASSED, "5 of 100 trials moved"),
        (6, 100, {}, GateStatus.FAILED, "6 of 100 trials moved"),
        (2, 8, {}, GateStatus.PASSED, "2 of 8"),
        (3, 8, {}, GateStatus.FAILED, "3 of 8"),
        (0, 8, {"n_far": 1}, GateStatus.FAILED, "0 of 8"),
        (0, 8, {"change_together": -0.06}, GateStatus.FAILED, "all trials of an arm together by -6 %"),
        (3, 8, {"fell": "after 12 s"}, GateStatus.FAILED, "as when a burst credit runs out"),
        (0, 0, {}, GateStatus.NOT_ASSESSABLE, "fewer than 20 samples"),
    ],
)
def test_rates_moved_where_chance_moves_fewer_in_999_of_1000_comparisons(
    moved: int, assessable: int, more: dict[str, object], status: GateStatus, words: str
) -> None:
    """Of steady trials 1 in 100 moves: of 100 at most 5, of 8 at most 2."""
    steady = {"change_worst": math.nan, "change_together": math.nan, "fell": "", "n_far": 0}
    cells = [steady | {"n_moved": 0, "n_assessable": 0}]
    cells.append(steady | {"n_moved": moved, "n_assessable": assessable, "change_worst": 0.07} | more)
    found = data.stationarity_gate(cells)
    assert found.status is status and words in found.cause


def test_without_losses_nothing_is_said(run) -> None:
    assert (
        gate(compare(run[0], [WRITE], None, {}), "losses by arm")["cause"] == "no trial was lost or repeated"
    )
