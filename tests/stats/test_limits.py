"""Which limit a trial sits on, and Little's law."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from diskbook.stats import limits
from diskbook.stats.gates.limits import cap_gate
from support import synthetic

BIG_VM = {"cap_vm_iops": 51200.0, "cap_vm_burst_iops": 64000.0}


def one_trial(**changes) -> pd.DataFrame:
    trials, _, _ = synthetic.tables(n_blocks=1, loads=(synthetic.WRITE,))
    return trials.iloc[:1].assign(**changes)


def test_little_holds_for_published_figures() -> None:
    # 5099.82/s x 7.830 ms = 39.93 of 40; the article measured for 10 s.
    totals = limits.trial_totals(one_trial(iops=5099.82, lat_mean_ms=7.830, outstanding=40, runtime_s=10.0))
    assert totals["in_flight"].iloc[0] == pytest.approx(39.93, abs=0.005)
    assert limits.little_ok(totals).all()


@pytest.mark.parametrize(("in_flight", "seconds"), [(249.0, 1.0), (252.7, 2.0), (255.4, 10.0)])
def test_little_allows_for_the_drain_of_a_short_trial(in_flight: float, seconds: float) -> None:
    latency_ms = 1000 * in_flight / 5100
    trial = one_trial(iops=5100.0, lat_mean_ms=latency_ms, outstanding=256, runtime_s=seconds)
    assert limits.little_ok(limits.trial_totals(trial)).all()


def test_little_fails_where_the_queue_was_not_kept_full() -> None:
    trial = one_trial(iops=5000.0, lat_mean_ms=7.0, outstanding=40)  # 35 in flight
    totals = limits.trial_totals(trial)
    assert not limits.little_ok(totals).any()
    assert limits.little_error(totals).iloc[0] == pytest.approx(-0.125)


def test_the_client_may_take_its_own_time_at_depth_one() -> None:
    """1,530 us of a commit and 20 us of the client: 1.3 % short. In a queue of 40 as much is a fault."""
    commits = synthetic.tables(n_blocks=1, loads=(synthetic.COMMIT,))[0].iloc[:3]
    short = commits.assign(lat_mean_ms=[1.1, 0.43, 1.53], iops=1000 / 1.55)
    assert limits.little_ok(limits.trial_totals(short)).all()
    queue = one_trial(iops=0.987 * 40 / 0.00783, lat_mean_ms=7.83, outstanding=40)
    assert not limits.little_ok(limits.trial_totals(queue)).any()


@pytest.mark.parametrize(("iops", "kept"), [(4000.0, True), (3990.0, True), (3970.0, False)])
def test_a_rate_limited_trial_must_reach_its_rate(iops: float, kept: bool) -> None:
    trial = one_trial(iops=iops, lat_mean_ms=2.0, outstanding=32, rate_offered=4000.0)
    assert limits.little_ok(limits.trial_totals(trial)).iloc[0] == kept


def test_a_rate_limited_trial_at_full_depth_was_a_closed_loop() -> None:
    trial = one_trial(iops=4000.0, lat_mean_ms=8.0, outstanding=32, rate_offered=4000.0)
    assert not limits.little_ok(limits.trial_totals(trial)).any()


def test_reads_and_writes_are_added() -> None:
    mixed = pd.concat([one_trial(direction="read", iops=3400.0), one_trial(direction="write", iops=1500.0)])
    totals = limits.trial_totals(mixed.assign(throughput_mb_s=np.nan))
    assert totals["iops"].tolist() == [4900.0]
    assert totals["mb_s"].iloc[0] == pytest.approx(4900 * 4096 / 1e6)
    assert limits.binding_limit(totals)["limit"].tolist() == ["cap_disk_iops"]


@pytest.mark.parametrize("runtime_s", [0.0, -1.0, np.nan])
def test_a_trial_without_a_runtime_agrees_with_nothing(runtime_s: float) -> None:
    assert not limits.little_ok(limits.trial_totals(one_trial(runtime_s=runtime_s))).any()


def test_a_missing_direction_is_not_taken_for_zero() -> None:
    mixed = pd.concat([one_trial(direction="read"), one_trial(direction="write", iops=np.nan)])
    assert limits.trial_totals(mixed)["iops"].isna().all()


def test_of_a_commit_trial_the_commit_row_alone_counts() -> None:
    trials, _, _ = synthetic.tables(n_blocks=1, loads=(synthetic.COMMIT,))
    totals = limits.trial_totals(trials)
    assert len(totals) == 5 and set(totals["kind"]) == {"commit"}
    assert np.allclose(totals["in_flight"], 1.0)


@pytest.mark.parametrize(
    ("iops", "caps", "limit"),
    [
        (4749.0, {}, ""),
        (4750.0, {}, "cap_disk_iops"),
        (5100.0, {}, "cap_disk_iops"),
        # A burst limit above the base: beyond the base plus 5 % only the burst can bind.
        (5400.0, {"cap_disk_burst_iops": 30000.0}, ""),
        (29500.0, {"cap_disk_burst_iops": 30000.0, **BIG_VM}, "cap_disk_burst_iops"),
        (5240.0, {"cap_disk_burst_iops": 30000.0}, "cap_disk_iops"),
        (5260.0, {"cap_disk_burst_iops": 30000.0}, ""),
        (5400.0, {"cap_disk_burst_iops": 5000.0}, "cap_disk_iops"),  # no burst above the base
        # Beyond the limit plus 5 % a host cache answered, which has a limit of its own.
        (5240.0, {"cap_vm_cached_iops": 9000.0, "cap_vm_iops": np.nan}, "cap_disk_iops"),
        (5260.0, {"cap_vm_cached_iops": 9000.0, "cap_vm_iops": np.nan}, ""),
        (9000.0, {"cap_vm_cached_iops": 9000.0, "cap_vm_iops": np.nan}, "cap_vm_cached_iops"),
        (6500.0, {"cap_disk_iops": 20000.0}, "cap_vm_iops"),
        (7900.0, {"cap_disk_iops": 20000.0}, "cap_vm_burst_iops"),
        (7000.0, {"cap_disk_iops": 20000.0}, ""),
    ],
)
def test_which_limit_binds(iops: float, caps: dict[str, float], limit: str) -> None:
    totals = limits.trial_totals(one_trial(iops=iops, throughput_mb_s=10.0, **caps))
    assert limits.binding_limit(totals)["limit"].tolist() == [limit]


@pytest.mark.parametrize(
    ("mb_s", "credit", "limit"),
    [
        (796.0, "full", "cap_disk_mb_s"),
        (783.0, "full", "cap_disk_mb_s"),
        (783.0, "empty", "cap_vm_mb_s"),
        (765.0, "full", "cap_vm_mb_s"),
    ],
)
def test_a_base_limit_that_full_credit_lifts_gives_way_to_one_that_explains_the_rate(
    mb_s: float, credit: str, limit: str
) -> None:
    near = {"cap_disk_mb_s": 800.0, "cap_vm_mb_s": 768.0, "cap_vm_burst_mb_s": 1600.0, **BIG_VM}
    trial = one_trial(iops=100.0, throughput_mb_s=mb_s, credit_state=credit, **near)
    assert limits.binding_limit(limits.trial_totals(trial))["limit"].tolist() == [limit]


def test_a_limit_that_a_burst_lifts_is_a_rival_once_the_credit_is_gone() -> None:
    caps = {"cap_disk_mb_s": 800.0, "cap_disk_burst_mb_s": 1000.0, "cap_vm_mb_s": 768.0}
    near = {**BIG_VM, **caps, "cap_vm_burst_mb_s": np.nan}
    trial = one_trial(iops=100.0, throughput_mb_s=783.0, **near)
    cells = {state: limits.label_cells(trial.assign(credit_state=state)) for state in ("full", "empty")}
    assert set(cells["empty"]["limit"]) == {"cap_vm_mb_s"} == set(cells["full"]["limit"])
    named = {
        state: [rival.limit.column for rival in found["rivals"].iloc[0]] for state, found in cells.items()
    }
    assert named == {"full": [], "empty": ["cap_disk_mb_s"]}


def test_throughput_binds_as_well() -> None:
    trial = one_trial(iops=1500.0, throughput_mb_s=196.6, block_size_bytes=131072, cap_vm_mb_s=384.0)
    found = limits.binding_limit(limits.trial_totals(trial)).iloc[0]
    assert (found["limit"], found["share"]) == ("cap_disk_mb_s", pytest.approx(0.983))


def test_nothing_binds_where_no_limit_is_known() -> None:
    unknown = {limit.column: np.nan for limit in limits.LIMITS}
    for value in (np.nan, 0.0):
        found = limits.binding_limit(limits.trial_totals(one_trial(**dict.fromkeys(unknown, value)))).iloc[0]
        assert found["limit"] == "" and np.isnan(found["share"])


def test_cells_are_labelled_by_depth_without_long_series() -> None:
    """3 s at depth 256 are too short for a flat rate, but depth 1 shows that depth buys nothing."""
    trials, _, series = synthetic.tables(samples=3)
    cells = limits.label_cells(trials, series).set_index(["arm", "workload"])
    assert cells.loc[("lrs-z1", "randwrite-qd256"), "label"] == "capped"
    assert "give no more" in cells.loc[("lrs-z1", "randwrite-qd256"), "evidence"]
    assert set(cells.xs("randwrite-qd1", level="workload")["label"]) == {"below cap"}
    assert cells.loc[("zrs-z1", "randread-qd256"), "predicted_lat_ms"] == pytest.approx(51.2)


def test_a_flat_rate_corroborates_a_cap() -> None:
    trials, _, series = synthetic.tables(loads=(synthetic.DEEP_READ,), samples=30)
    cells = limits.label_cells(trials, series)
    assert set(cells["label"]) == {"capped"} and cells["evidence"].str.contains("varies by less").all()


def test_without_corroboration_a_cell_is_only_near_a_cap() -> None:
    trials, _, _ = synthetic.tables(loads=(synthetic.DEEP_READ,))
    assert set(limits.label_cells(trials)["label"]) == {"near a cap"}
    told = {("lrs-z1", "randread-qd256", "cap_disk_iops"): 99.0}
    cells = limits.label_cells(trials, consumed_pct=told).set_index("arm")
    assert cells.loc["lrs-z1", "label"] == "capped" and cells.loc["zrs-z1", "label"] == "near a cap"


def test_the_platform_counts_a_burst_against_the_base_limit() -> None:
    """420 % of 5,000 IOPS are 70 % of a burst limit of 30,000: no sign that this one is reached."""
    shallow = synthetic.tables(loads=(synthetic.DEEP_READ,))[0]
    of_the_vm = dict.fromkeys([name for name in shallow if name.startswith("cap_vm")], np.nan)
    bursting = shallow.assign(cap_disk_burst_iops=30_000.0, iops=30_200.0, **of_the_vm)
    for told, label in ((420.0, "near a cap"), (606.0, "capped")):
        consumed = {("lrs-z1", "randread-qd256", "cap_disk_iops"): told}
        cell = limits.label_cells(bursting, consumed_pct=consumed).set_index("arm").loc["lrs-z1"]
        assert (cell["limit"], cell["label"]) == ("cap_disk_burst_iops", label)
    assert cell["evidence"] == "the platform reports 101 % of the limit as consumed"


def test_below_a_machine_without_known_limits_is_said() -> None:
    """A size that Azure names no uncached limit of: the disk's limits alone tell nothing of the machine."""
    deep = synthetic.tables(n_blocks=2, loads=(synthetic.READ,))[0]
    unknown = dict.fromkeys([name for name in deep if name.startswith("cap_vm")], np.nan)
    known, bare = limits.label_cells(deep), limits.label_cells(deep.assign(**unknown))
    below = known["label"] == "below cap"
    assert below.any() and set(bare.loc[below, "label"]) == {"limit not known"}
    assert (bare.loc[~below, "label"] == known.loc[~below, "label"]).all()
    assert list(bare.columns) == list(known.columns)
    nothing = dict.fromkeys([name for name in deep if name.startswith("cap_")], np.nan)
    assert "limit not known" not in set(limits.label_cells(deep.assign(**nothing))["label"])
    gate = cap_gate(["a", "b"], bare[below].to_dict("records")[:1] * 2, ["", ""])
    assert (gate.status, gate.decides) == ("not assessable", None)
    assert gate.cause.startswith("no limit of the machine is known; at most ")


def test_depth_that_just_suffices_is_no_evidence() -> None:
    """A rate near a cap at little more than the depth it needs may be the disk's own."""
    shallow = synthetic.tables(n_blocks=2, loads=(synthetic.WRITE,))[0]
    deep = shallow.assign(trial=shallow["trial"] + "-8", workload="randwrite-qd8", outstanding=8)
    deep = deep[deep["arm"] == "lrs-z1"].assign(iops=4800.0, lat_mean_ms=8 / 4.8)
    cells = limits.label_cells(pd.concat([shallow, deep])).set_index(["arm", "workload"])
    assert cells.loc[("lrs-z1", "randwrite-qd8"), "label"] == "near a cap"  # needs 6.2, offered 8


def test_the_second_attempt_replaces_the_first() -> None:
    twice = pd.concat([one_trial(attempt=1, iops=1.0), one_trial(attempt=2, iops=700.0)])
    assert limits.trial_totals(twice)["iops"].tolist() == [700.0]


def test_made_up_tables_have_the_schema_of_real_ones() -> None:
    synthetic.checked(synthetic.tables()[0])


def test_predicted_latency() -> None:
    assert limits.predicted_latency_ms(40, 5099.82) == pytest.approx(7.843, abs=0.001)
    assert np.isnan(limits.predicted_latency_ms(40, 0))


@pytest.mark.parametrize(
    ("lat_mean_ms", "words"),
    [
        (1.5, "not known: the tool's own concurrency"),
        (1500.0, "rate times latency is 998 I/Os in flight, for a queue of 1; check the units"),
        (0.75, "not known: the queue was not kept full"),
    ],
)
def test_latencies_of_another_unit_are_not_an_idle_queue(lat_mean_ms: float, words: str) -> None:
    unknown = dict.fromkeys([limit.column for limit in limits.LIMITS], np.nan)
    trial = one_trial(iops=665.0, lat_mean_ms=lat_mean_ms, outstanding=1, **unknown)
    (cell,) = limits.label_cells(trial).to_dict("records")
    assert words in cell["binds"]
