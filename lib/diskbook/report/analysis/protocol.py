"""Which comparisons of a run are closed by the protocol, and what the open ones lack.

Gates decide most of it; here is what manifest, ledger and tables tell besides. The points are
in docs/reference/protocol.md.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from diskbook.design import held_rate, schema
from diskbook.design.model import Arm, Comparison, Record, Scenario, Workload
from diskbook.design.vocabulary import Provenance, Scope
from diskbook.report.show.analysed import Analysed
from diskbook.results.run import Run
from diskbook.results.tables import read_csv
from diskbook.stats import protocol
from diskbook.stats.gates import guests
from diskbook.stats.gates.attachment import Conditioning
from diskbook.stats.gates.plan import Plan
from diskbook.stats.plausibility import Asked
from diskbook.tools import record

OF_FLEETS = "fleets write their files in full before each block"


def of_arms(scenario: Scenario, ledger: Iterable[Mapping[str, Any]]) -> dict[str, Conditioning]:
    """Say for every arm with finished trials how its disks were when the first of them began.

    Several replicates are what the least of them is.
    """
    steps: dict[str, set[str]] = {}
    first: dict[tuple[str, str], set[str]] = {}
    for event in ledger:
        what, place = event["event"], event.get("disk_id")
        if place is None:
            continue
        if what == "marked":
            steps[place] = set()
        elif what in ("prefill", "overwrite"):
            steps.setdefault(place, set()).add(what)
        elif what == "trial" and event["status"] == "ok":
            first.setdefault((event["arm"], place), set(steps.get(place, ())))
    return {arm.name: _of_arm(scenario, arm.name, first) for arm in scenario.arm}


def _of_arm(scenario: Scenario, name: str, first: Mapping[tuple[str, str], set[str]]) -> Conditioning:
    done = [steps for (arm, _), steps in first.items() if arm == name]
    common = set.intersection(*done) if done else set()
    fleet = any(load.is_fleet for arm, load in scenario.cells if arm.name == name)
    reason = OF_FLEETS if fleet else scenario.design.no_overwrite or ""
    return Conditioning("prefill" in common, "overwrite" in common, reason)


FILE = "protocol.csv"
FILLED, OVERWRITTEN = "prefill", "overwrite"
"""Events of the ledger: what was filled, and what was written over after that, each with its `disk_id`."""


def conformances(a: Analysed, plan: Plan | None) -> tuple[protocol.Conformance, ...]:
    """Judge every comparison of an analysed run by the protocol, headline comparisons first.

    - `plan`: what was planned; None where nobody says.
    """
    recorded, gates = _recorded(a, plan), _by_comparison(a.gates)
    families = protocol.FAMILIES
    ordered = sorted(a.scenario.comparison, key=lambda item: families.index(item.family))
    return tuple(
        protocol.Conformance(
            *_key(item),
            item.family,
            a.provenance,
            protocol.judge(_facts(a, recorded, item), gates.get(_key(item), ())),
        )
        for item in ordered
    )


def exempt(scenario: Scenario, provenance: str) -> dict[tuple[str, str], dict[str, str]]:
    """Name by arm and base arm the gates, and facts of guests, that do not apply to them, with reasons."""
    return {
        (item.arm, item.base_arm): {
            **protocol.exempt(provenance, is_attached=_is_attached(scenario, provenance, item)),
            **_set_apart(scenario, item),
        }
        for item in scenario.comparison
    }


def _set_apart(scenario: Scenario, item: Comparison) -> dict[str, str]:
    """Name the facts of guests in which a scenario sets two arms apart by machine size or kind of device."""
    arms = [scenario.arm_named(name) for name in (item.arm, item.base_arm)]
    sizes = {scenario.machine_named(arm.machine).size for arm in arms}
    kinds = {_kind(scenario, arm) for arm in arms}
    facts = ("cpu_model",) * (len(sizes) > 1) + guests.OF_DEVICE * (len(sizes) > 1 or len(kinds) > 1)
    return dict.fromkeys(facts, "the scenario compares machines or devices that differ in it")


def _kind(scenario: Scenario, arm: Arm) -> tuple[Record, ...]:
    """What an arm measures, but for names and places: a disk, or a volume and the disks of its pool."""
    disk = scenario.disk_of(arm).model_copy(update={"name": "x", "zone": None})
    if not arm.volume:
        return (disk,)
    unnamed = {"name": "x", "disk": "x", "cluster": None, "machine": None}
    return scenario.volume_named(arm.volume).model_copy(update=unnamed), disk


def write(a: Analysed) -> Path:
    """Write protocol.csv into a run's folder, every comparison with every point; return its path."""
    a.run.write(FILE, protocol.table(a.protocol).to_csv(index=False))
    return a.run.folder / FILE


def read(run: Run) -> list[protocol.Conformance]:
    """Read protocol.csv of an analysed run; nothing where its analysis wrote none.

    Raises DiskbookError when it is damaged.
    """
    path = run.folder / FILE
    return protocol.of_table(read_csv(schema.PROTOCOL, path)) if path.exists() else []


@dataclass(frozen=True)
class _Recorded:
    """What a run records for all its comparisons: its trials, what was done to its disks, its plan."""

    trials: pd.DataFrame
    numbers: dict[tuple[str, ...], tuple[int, bool]]
    filled: frozenset[str]
    overwritten: frozenset[str]
    read: frozenset[str]
    has_raw: bool
    plan: Plan | None


def _recorded(a: Analysed, plan: Plan | None) -> _Recorded:
    events: dict[str, set[str]] = {FILLED: set(), OVERWRITTEN: set()}
    for event in a.ledger:
        if event["event"] in events and event.get("disk_id"):
            events[event["event"]].add(event["disk_id"])
    trials = a.trials
    return _Recorded(
        trials[trials["status"] == "ok"],
        _numbers(a.comparisons),
        frozenset(events[FILLED]),
        frozenset(events[OVERWRITTEN]),
        frozenset(a.tables.guest["trial"]),
        (a.run.folder / "raw").is_dir(),
        plan,
    )


def _facts(a: Analysed, recorded: _Recorded, item: Comparison) -> protocol.Facts:
    # Long: the facts, one after another.
    load = a.scenario.workload_named(item.workload)
    rows = recorded.trials
    rows = rows[rows["arm"].isin([item.arm, item.base_arm]) & (rows["workload"] == item.workload)]
    disks, trials = set(rows["disk_id"]), set(rows["trial"])
    plan = recorded.plan
    n_replicates, is_general = recorded.numbers.get(_key(item), (0, False))
    is_latency = item.metric.startswith("lat")
    return protocol.Facts(
        provenance=a.provenance,
        is_plan_written=None if plan is None else plan.written,
        is_plan_changed=plan is not None and plan.changed,
        is_raw_kept=recorded.has_raw and bool(len(rows)) and bool(rows["raw_sha256"].notna().all()),
        is_attached=_is_attached(a.scenario, a.provenance, item),
        is_filled=bool(disks) and disks <= recorded.filled,
        is_overwritten=bool(disks) and disks <= recorded.overwritten,
        no_overwrite=OF_FLEETS if load.is_fleet else a.scenario.design.no_overwrite or "",
        is_unwritten=load.region == "unwritten",
        n_replicates=n_replicates,
        is_general=is_general,
        is_rate_held=load.rate is not None,
        is_latency=is_latency,
        is_from_intended=_is_from_intended(rows),
        n_trials=len(trials),
        n_guest=len(trials & recorded.read),
    )


def _is_attached(scenario: Scenario, provenance: str, item: Comparison) -> bool:
    """Whether any arm measures a disk that is attached for it; of what others measured nobody knows."""
    if provenance == Provenance.INVENTORY:
        return False
    arms = [scenario.arm_named(name) for name in (item.arm, item.base_arm)]
    return any(not arm.volume and not scenario.disk_of(arm).ephemeral for arm in arms)


def _is_from_intended(rows: pd.DataFrame) -> bool:
    """Whether latencies of all trials are known from when each I/O was due, and no percentile is a bound."""
    waited = rows[rows["direction"].isin(["read", "write"])]
    is_bound = waited["lat_bound"].eq("lower").any()
    return bool(len(waited) and held_rate.is_told(waited).all() and not is_bound)


def _numbers(comparisons: pd.DataFrame) -> dict[tuple[str, ...], tuple[int, bool]]:
    """Replicates of each comparison, and whether all its directions have an interval for disks like these."""
    general = comparisons[comparisons["scope"] == Scope.LIKE_THESE]
    numbers: dict[tuple[str, ...], tuple[int, bool]] = {}
    for row in general.to_dict("records"):
        key = tuple(row[name] for name in protocol.KEYS)
        fewest, is_general = numbers.get(key, (row["n_replicates"], True))
        known = not math.isnan(row["ci_low"])
        numbers[key] = min(fewest, int(row["n_replicates"])), is_general and known
    return numbers


def _by_comparison(gates: pd.DataFrame) -> Mapping[tuple[str, ...], list[dict[Any, Any]]]:
    rows: dict[tuple[str, ...], list[dict[Any, Any]]] = {}
    for row in gates.to_dict("records"):
        rows.setdefault(tuple(row[key] for key in protocol.KEYS), []).append(row)
    return rows


def _key(item: Comparison) -> tuple[str, str, str, str]:
    return item.arm, item.base_arm, item.workload, item.metric


def by_trial(
    trials: pd.DataFrame, scenario: Scenario, ledger: Iterable[Mapping[str, Any]]
) -> dict[str, Asked]:
    """Say what each trial was asked to do.

    Of an import every file tells its own: its scenario has one workload for all that are alike, and fills in
    what no file tells.
    """
    loads = {item.name: _of_workload(item) for item in scenario.workload}
    pairs = trials[["trial", "workload"]].drop_duplicates().itertuples(index=False, name=None)
    asked = {str(trial): loads[workload] for trial, workload in pairs}
    return asked | {
        event["trial"]: _of_files(event)
        for event in ledger
        if event["event"] == "trial" and "imported" in event
    }


def _of_workload(item: Workload) -> Asked:
    """What a run of the workbook asks for; a trial that is cut short fails there, as it is measured."""
    return Asked(item.outstanding, item.block_size_bytes, item.write_pct)


def _of_files(event: Mapping[str, Any]) -> Asked:
    """What the files of an imported trial tell; nothing is compared with one of an older import."""
    flags = event.get("flags") or ()
    numbers = event["imported"].get("asked") or {}
    return Asked(**numbers, paced=record.is_paced(flags), doubts=record.doubtful(flags))
