"""Gates on the design: were arms interleaved, in one zone, paired as said, and set up as asked?

The counts per cell that the gates judge are computed once, vectorised over trials.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from diskbook.design import held_rate
from diskbook.design.series import Samples, falls, samples
from diskbook.design.totals import little_error, little_ok, paced, trial_keys, trial_totals
from diskbook.design.vocabulary import GateStatus, Scope, Verdict
from diskbook.stats import limits
from diskbook.stats.gates import Cell, Gate, distinct, failed, not_assessable, passed
from diskbook.stats.stationarity import rate_changed
from diskbook.stats.strata import INFERRED, Strata

KEYS = ["arm", "workload"]
SETS = {
    "credit": "credit_state",
    "zones": "physical_zone",
    "machines": "machine_id",
    "disks": "disk_id",
    "tools": "tool_version",
}

_COUNTED = (
    "rated",
    "paced",
    "rate_bad",
    "windows_low",
    "windows_unknown",
    "lower",
    "little_bad",
    "little_unknown",
    "assessable",
    "moved",
    "far",
    "above_base",
)

_WORST = {
    "rate_worst": "rate_error",
    "little_worst": "little_error",
    "change_worst": "change",
    "change_together": "cell_change",
}

Places = dict[tuple[str, str], dict[int, tuple[int, int, int]]]
"""By cell and replicate: first and last place in time, number of trials."""


def cell_checks(
    trials: pd.DataFrame,
    series: pd.DataFrame | list[Samples] | None = None,
    totals: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Count, for each cell, what its gates need.

    - `totals`: `trial_totals(trials)`, where it is known already.

    Returns by arm and workload: counts of trials (`n_trials`, `n_failed`, `n_lost` without a later success,
    `n_repeated` with one, of `n_places` planned, `n_repeated_rows`), `n_paced` that the tool itself held back
    without a rate (`totals.paced`), `n_rated` with an offered rate and `rate_worst` (achieved / offered - 1),
    `n_rate_bad`, windows of the rate (`window_worst`, `windows_low_share`: see `rate_windows.windows`;
    `n_windows_low` trials that have low ones, `n_windows_unknown` without any, `n_lower` whose latencies are
    lower bounds), of the others `n_little_bad`, `n_little_unknown` and `little_worst`, `n_assessable`,
    `n_moved`, `n_far`, `change_worst`, `change_together` (mean over the cell's trials, where they changed
    together), `fell` (in words, when the rate of a trial that moved fell for good), and tuples of words:
    `credit`, `zones`, `machines`, `disks`, `tools`; `draws_credit` when a trial went above a base limit that
    has a burst limit over it. Medians over trials of `since_attach_s` and of `attaches` of the disk in the
    trial's block, NaN where not known; `since_attach_least_s` is the least time, NaN for volumes as well.
    """
    parts = samples(series)
    totals = _judged(trial_totals(trials) if totals is None else totals, parts)
    code, names = limits.cell_codes(totals)
    n_cells = len(names)
    counts = {f"n_{name}": np.bincount(code, totals[name], n_cells).astype(int) for name in _COUNTED}
    draws_credit = counts.pop("n_above_base") > 0
    worst = {name: _worst(code, totals[column].to_numpy(float), n_cells) for name, column in _WORST.items()}
    window = totals["rate_window_worst"].clip(upper=1.0).to_numpy()
    since = {
        name: _median(code, totals[column].to_numpy(float, na_value=np.nan), n_cells)
        for name, column in (("since_attach_s", "since_attach_s"), ("attaches", "attaches_in_block"))
    }
    columns = {
        "n_trials": np.bincount(code, minlength=n_cells),
        **counts,
        "draws_credit": draws_credit,
        **worst,
        "window_worst": 1.0 - _worst(code, 1.0 - window, n_cells),
        "windows_low_share": _worst(code, totals["rate_windows_low_share"].to_numpy(), n_cells),
        **{name: _distinct(code, totals[column], n_cells) for name, column in SETS.items()},
        **since,
        "since_attach_least_s": _since_least(totals).groupby(code).min().to_numpy(),
        "fell": _falls(totals, code, parts, n_cells),
    }
    return _with_losses(pd.DataFrame(columns, index=pd.MultiIndex.from_frame(names)), trials)


def interleaving(trials: pd.DataFrame, totals: pd.DataFrame | None = None) -> Places:
    """First and last place in time, and number, of each cell's trials, by replicate."""
    rows = trial_totals(trials) if totals is None else totals
    by_clock = "started_utc" in rows and rows["started_utc"].notna().all()
    order = rows.sort_values(
        ["started_utc"] if by_clock else ["replicate", "block", "position"], kind="stable"
    )
    code, names = limits.cell_codes(order)
    place = pd.DataFrame({"replicate": order["replicate"].to_numpy(), "cell": code})
    grouped = place.assign(place=np.arange(len(order))).groupby(["replicate", "cell"])["place"]
    pairs = list(names.itertuples(index=False, name=None))
    places: Places = {}
    summary = grouped.agg(["min", "max", "size"])
    for (replicate, cell), numbers in zip(summary.index, summary.to_numpy().tolist(), strict=True):
        places.setdefault(pairs[cell], {})[replicate] = (numbers[0], numbers[1], numbers[2])
    return places


def _judged(totals: pd.DataFrame, parts: list[Samples]) -> pd.DataFrame:
    """Add to every trial what was found of it."""
    rated, ok = totals["rate_offered"].notna(), little_ok(totals)
    held_back = paced(totals) & ~rated
    closed = ~rated & ~held_back
    windows = {name: _number(totals, name) for name in ("rate_window_worst", "rate_windows_low_share")}
    judged = totals.assign(
        **windows,
        rated=rated,
        paced=held_back,
        rate_bad=rated & ~ok,
        windows_low=rated & (windows["rate_windows_low_share"] > 0),
        windows_unknown=rated & windows["rate_windows_low_share"].isna(),
        lower=rated & ~held_rate.is_told(totals),
        little_bad=closed & ~ok & totals["in_flight"].notna(),
        little_unknown=closed & totals["in_flight"].isna(),
        rate_error=totals["iops"] / totals["rate_offered"] - 1.0,
        little_error=little_error(totals).where(closed),
        above_base=_above_base(totals),
    )
    if not parts:
        return judged.assign(change=np.nan, cell_change=np.nan, moved=False, far=False, assessable=False)
    cells = pd.Series(limits.cell_codes(judged)[0], index=judged["trial"])
    judged = judged.join(rate_changed(parts, cells), on="trial")
    return judged.assign(
        assessable=judged["change"].notna(), moved=judged["moved"].eq(True), far=judged["far"].eq(True)
    )


def _number(totals: pd.DataFrame, name: str) -> pd.Series:
    """Column of numbers, missing where older tables have no such column."""
    return totals[name].astype(float) if name in totals else pd.Series(np.nan, index=totals.index)


def _distinct(code: np.ndarray, values: pd.Series, n_cells: int) -> list[tuple[str, ...]]:
    """Distinct values of a column as a sorted tuple of words, by cell."""
    by_cell: list[set[str]] = [set() for _ in range(n_cells)]
    value, names = pd.factorize(values)
    for pair in np.unique(code[value >= 0] * (len(names) + 1) + value[value >= 0]).tolist():
        by_cell[pair // (len(names) + 1)].add(str(names[pair % (len(names) + 1)]))
    return [tuple(sorted(words)) for words in by_cell]


def _above_base(totals: pd.DataFrame) -> np.ndarray:
    """Whether a trial ran above a base limit over which there is a burst limit, and so drew credit."""
    above = np.zeros(len(totals), dtype=bool)
    for limit in limits.LIMITS:
        if limit.burst_column is not None:
            base, burst = (limits.limit_values(totals, name) for name in (limit.column, limit.burst_column))
            above |= (burst > base) & (totals[limit.counts].to_numpy(float) > base)
    return above


def _worst(code: np.ndarray, values: np.ndarray, n_cells: int) -> np.ndarray:
    """Value farthest from zero, by cell; NaN where none is known."""
    worst = np.full(n_cells, np.nan)
    order = np.argsort(np.abs(values), kind="stable")
    known = order[~np.isnan(values[order])]
    worst[code[known]] = values[known]
    return worst


def _median(code: np.ndarray, values: np.ndarray, n_cells: int) -> np.ndarray:
    """Median by cell of what is known; NaN where nothing is."""
    known = ~np.isnan(values)
    by_cell = pd.Series(values[known]).groupby(code[known]).median()
    medians: np.ndarray = by_cell.reindex(range(n_cells)).to_numpy(float)
    return medians


def _since_least(totals: pd.DataFrame) -> pd.Series:
    """Times since the attach of the disks that trials measure; volumes are not attached for any."""
    since = totals["since_attach_s"].astype(float)
    return since.mask(totals["volume"].fillna("") != "") if "volume" in totals else since


def _falls(totals: pd.DataFrame, code: np.ndarray, parts: list[Samples], n_cells: int) -> list[str]:
    """For each cell, when the rate fell for good in the first of its trials that moved; "" if in none."""
    words = [""] * n_cells
    moved = totals["moved"].to_numpy(bool)
    if not moved.any():
        return words
    cell_of = dict(zip(totals.loc[moved, "trial"], code[moved], strict=True))
    fell = []
    for part in parts:
        chosen = np.array([name in cell_of for name in part.trial])
        of_moved = Samples(part.trial[chosen], part.second[chosen], part.iops[chosen])
        fell += list(falls(of_moved).dropna().itertuples(name=None))
    for trial, at_s, before, after in sorted(fell):
        cell = cell_of[trial]
        words[cell] = words[cell] or f"from {before:,.0f} to {after:,.0f} IOPS after {at_s:g} s in {trial}"
    return words


def _with_losses(checks: pd.DataFrame, trials: pd.DataFrame) -> pd.DataFrame:
    """Add failed attempts, places without a finished trial, and rows that occur twice."""
    trial = trial_keys(trials)
    place = [*trial[:-1], *KEYS, "replicate", "block", "repeat"]
    code, names = limits.cell_codes(trials)
    ok = (trials["status"] == "ok").to_numpy()
    failed = np.flatnonzero(trials["status"] == "failed")
    failed = failed[~trials.iloc[failed].duplicated(trial).to_numpy()]
    broken = failed[~trials.iloc[failed].duplicated(place).to_numpy()]
    finished = np.zeros(len(broken), dtype=bool)
    if len(broken):
        places = pd.MultiIndex.from_frame(trials[place])
        finished = places[broken].isin(places[ok])
    counted = {
        "n_failed": failed,
        "n_lost": broken[~finished],
        "n_repeated": broken[finished],
        "n_places": np.flatnonzero(~trials.duplicated(place)),
        "n_repeated_rows": np.flatnonzero(ok & trials.duplicated([*trial, "direction"])),
    }
    every = pd.MultiIndex.from_frame(names)
    counts = {name: np.bincount(code[rows], minlength=len(names)) for name, rows in counted.items()}
    if len(every) > len(checks):
        checks = checks.reindex(checks.index.union(every, sort=False))
        numbers = [name for name in checks.columns if name.startswith("n_")]
        checks[numbers] = checks[numbers].fillna(0).astype(int)
    return checks.join(pd.DataFrame(counts, index=every))


ORDER, ZONE, NEAREST_ZONE, SETTINGS, PAIRING = "order", "zone", "nearest zone", "settings", "pairing"
UNKNOWN_MACHINE = "unknown"
SAME_MACHINE = "same-machine"
MACHINES_APART = "the arms are on different machines, whose own difference is part of the ratio"


def order_gate(places: Places, arm: str, base_arm: str, workload: str) -> Gate:
    """Arms must be interleaved: "all A, then all B" takes a drift of the hour for a difference."""
    arm_places, base_places = (places.get((name, workload), {}) for name in (arm, base_arm))
    apart = []
    for replicate in arm_places.keys() & base_places.keys():
        (first, last, n), (base_first, base_last, base_n) = arm_places[replicate], base_places[replicate]
        if min(n, base_n) > 1:
            apart.append(last < base_first or base_last < first)
    if not apart:
        return not_assessable(ORDER, "each arm was measured once", "measure 2 blocks or more")
    if any(apart):
        cause = "one arm was measured wholly before the other"
        return failed(ORDER, cause, "interleave the arms in blocks of random order")
    return passed(ORDER, "arms were interleaved")


def zone_gate(arms: Sequence[str], cells: Sequence[Cell]) -> Gate:
    """A physical zone is a stratum: an arm that was measured from several is not pooled."""
    mixed = [arm for arm, cell in zip(arms, cells, strict=True) if len(distinct(cell["zones"])) > 1]
    if mixed:
        cause = f"{' and '.join(mixed)} was measured from more than one physical zone"
        return failed(ZONE, cause, "compare each physical zone apart")
    if not all(distinct(cell["zones"]) for cell in cells):
        remedy = "measure again with 'diskbook run', machines in a zone ([[machine]] zone), which it records"
        return not_assessable(ZONE, "physical zones were not recorded", remedy)
    return passed(ZONE, "each arm was measured from one physical zone")


def nearest_gate(strata: Strata, n_replicates: int) -> Gate:
    """Replicates whose disks answer nearest from different zones are a mixture; each stratum stands apart.

    Where a zone-redundant disk was not read from all zones the mixture cannot be seen, and a general claim
    from few replicates covers far less than it says (`make coverage`).
    """
    if strata.unprobed:
        disks = f"the zone-redundant disk of {' and '.join(strata.unprobed)}"
        cause = f"{disks} was not read from all zones, so its nearest one is hidden"
        remedy = "read the disk from a machine in each zone, at queue depth 1, to speak of disks like these"
        return not_assessable(NEAREST_ZONE, cause, remedy)
    if not strata.inferred:
        return passed(NEAREST_ZONE, "no disk was read from several zones, so none is inferred")
    counts = Counter(strata.of_replicate.values())
    if not strata.mixed or n_replicates < 2:
        return passed(NEAREST_ZONE, f"{next(iter(counts))} ({INFERRED})")
    parts = "; ".join(f"{words}: {n} replicate{'s' * (n != 1)}" for words, n in counts.items())
    cause = f"replicates are a mixture of nearest zones ({INFERRED}): {parts}"
    return failed(NEAREST_ZONE, cause, "read the estimate of each stratum, with 2 replicates or more", None)


def hides_general(findings: Iterable[Gate]) -> str:
    """Say why a comparison has no interval for disks like these, whatever its replicates; empty if it has."""
    return next((gate.words for gate in findings if _is_open(gate, NEAREST_ZONE)), "")


def of_machines(findings: Iterable[Gate], pairing: str, scope: str) -> list[str]:
    """Say that a ratio holds what sets two machines apart, where it does; that holds whatever the verdict."""
    words = [gate.words for gate in findings if _is_open(gate, PAIRING)]
    if words or not unpaired(pairing, scope):
        return words
    return [f"{MACHINES_APART}: read that for disks like these, which allows for it"]


def _is_open(gate: Gate, name: str) -> bool:
    return gate.name == name and gate.status is GateStatus.NOT_ASSESSABLE


def settings_gate(arms: Sequence[str], mismatches: Mapping[str, str] | None) -> Gate:
    """What was read back from the cloud must be what was asked for."""
    if mismatches is None:
        return not_assessable(SETTINGS, "settings were not read back")
    wrong = [mismatches[arm] for arm in arms if arm in mismatches]
    if wrong:
        return failed(SETTINGS, "; ".join(wrong), "provision again with the right setting")
    return passed(SETTINGS, "settings read back are those asked for")


def pairing_gate(pairing: str, cells: Sequence[Cell], n_replicates: int) -> Gate:
    """Pairs must share what the pairing says; different machines need replicates.

    Two arms on two machines, each measured once, differ by their machines as well: blocks repeat that
    difference faithfully and make its interval narrow, so none of it is a finding about disks, nor about
    zones, one disk or two. (One disk from two machines, 4,000 simulated runs of 4 blocks: machines with a
    standard deviation of 0.5, 1 and 5 % made 8, 15 and 67 % of them a difference.)
    """
    machines, disks = ([distinct(cell[name]) for cell in cells] for name in ("machines", "disks"))
    for kind, names in (("machine", machines), ("disk", disks)):
        if pairing == f"same-{kind}" and set(names[0]) != set(names[1]):
            cause = f"the arms were to share a {kind} and did not"
            return failed(PAIRING, cause, "correct the scenario's pairing")
    if pairing_of(pairing, cells) == SAME_MACHINE:
        return passed(PAIRING, "both arms on the same machine")
    if n_replicates < 2:
        return not_assessable(PAIRING, *_unpaired(machines), Verdict.INCONCLUSIVE)
    return passed(PAIRING, f"different machines, {n_replicates} replicates")


def pairing_of(pairing: str, cells: Sequence[Cell]) -> str:
    """How arms are paired, as their trials have it: one disk on one machine is paired by that machine too."""
    machines = [distinct(cell["machines"]) for cell in cells]
    shared = set(machines[0]) == set(machines[1]) and UNKNOWN_MACHINE not in machines[0]
    return SAME_MACHINE if pairing == "same-disk" and shared else pairing


def unpaired(pairing: str, scope: str) -> bool:
    """Whether nothing tells the arms from their machines, so that no ratio of theirs is a finding.

    Replicates, on fresh machines each, turn what sets machines apart into spread, which the interval for
    disks like these allows for. That for these disks, over blocks, never does.

    - `pairing`: as the trials have it (`pairing_of`), which is what a table of comparisons holds.
    - `scope`: of the estimate.
    """
    return pairing != SAME_MACHINE and scope == Scope.THESE


def _unpaired(machines: Sequence[tuple[str, ...]]) -> tuple[str, str]:
    """Cause and remedy where what sets machines apart does not cancel, by what is known of the machines."""
    remedy = "measure 2 replicates or more"
    if UNKNOWN_MACHINE in machines[0] + machines[1]:
        cause = "nothing says that the arms shared a machine, whose own difference may be part of the ratio"
        return cause, f"if they did, say so (diskbook import --same-machine); else {remedy}"
    if set(machines[0]) == set(machines[1]):
        cause = "the pairing is by replicates, of which there is one"
        return cause, f"{remedy}, or pair the arms by the machine they share"
    return MACHINES_APART, remedy
