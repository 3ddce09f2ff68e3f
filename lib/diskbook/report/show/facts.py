"""What an analysed run was made with, and what was seen besides its trials, as small tables."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from diskbook.design.model import Scenario
from diskbook.design.series import diagnose
from diskbook.design.vocabulary import Provenance
from diskbook.facts import disk_options, quantities
from diskbook.facts.table_writers import capital
from diskbook.report.show.analysed import Analysed
from diskbook.report.show.html import Html, escaped, folded, table
from diskbook.report.show.sentences import of_workload
from diskbook.report.show.tables import bullets
from diskbook.results import plan as plans
from diskbook.stats.drift import COMMON, DriftVerdict, drift
from diskbook.stats.gates.guests import GUEST_FACTS, CellGuest, guests_by_arm

MACHINE = ("size", "where", "physical_zone", "kernel", "tool_version")
DISK = ("sku", "where", "physical_zone")


def environment(a: Analysed) -> Html:
    """Show versions, machines, zones, disks and dates, one row a fact."""
    replicates, when = a.manifest["replicates"], "nothing measured"
    if len(a.trials):
        first, last = a.trials["started_utc"].min(), a.trials["started_utc"].max()
        when = f"{first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M}"
    rows = [*_run_facts(a), ("date (UTC)", when)]
    if a.provenance != Provenance.INVENTORY:
        rows.append(("region", a.scenario.region))
    rows += _resource_facts("machine", replicates, "machines", MACHINE)
    rows += _resource_facts("disk", replicates, "disks", DISK)
    rows += _tool_facts(a.scenario, a.run.ledger())
    rows += [(name, str(version)) for name, version in a.manifest.get("versions", {}).items()]
    shown = table(pd.DataFrame(rows, columns=["What", "Value"]), "Environment")
    return folded("Run, machines, disks and versions", shown)


def findings(a: Analysed) -> Html:
    """Show what the scenario's checks showed: refusals that must happen, data that must be intact."""
    rows = [event for event in a.run.ledger() if event["event"] == "finding"]
    columns = {"name": "Check", "ok": "As expected", "expected": "Expected", "observed": "Observed"}
    columns |= {"text": "What was seen"}
    frame = pd.DataFrame(rows, columns=list(columns)).rename(columns=columns)
    as_expected = frame["As expected"].map({True: "yes", False: "no"})
    return table(frame.assign(**{"As expected": as_expected}), f"Checks ({a.provenance})")


def n_trials(a: Analysed) -> int:
    """Finished trials of the run."""
    return int(a.trials.loc[a.trials["status"] == "ok", "trial"].nunique())


def operations(a: Analysed) -> Html:
    """Show the times of control-plane operations."""
    rows = [event for event in a.run.ledger() if event["event"] == "operation"]
    times = pd.DataFrame(rows, columns=["name", "real_s", "unscaled_s"])
    numbers = times.astype({"real_s": float, "unscaled_s": float}).groupby("name", sort=False)
    names = {"size": "Number", "real_s": "Median, s (as run)", "unscaled_s": "Median, s (unscaled)"}
    medians = numbers[["real_s", "unscaled_s"]].median().assign(size=numbers.size())
    shown = medians[list(names)].rename(columns=names).reset_index(names="Operation")
    return table(shown, f"Control-plane operations, medians in seconds ({a.provenance})")


def attachments(a: Analysed) -> Html:
    """Show how long ago, and how often, each arm's disk was attached when its trials began; medians."""
    trials = a.trials[a.trials["status"] == "ok"].drop_duplicates("trial")
    columns = {
        "since_attach_s": "Since the attach, s",
        "since_create_s": "Since the disk was created, s",
        "attaches_in_block": "Attaches a block",
    }
    known = trials.dropna(subset=["since_attach_s"])
    medians = known.groupby("arm", sort=False)[list(columns)].median().round(1)
    named = medians.reindex([arm.name for arm in a.scenario.arm if arm.name in medians.index])
    frame = named.rename(index=a.labels, columns=columns).rename_axis("Arm").reset_index()
    if frame.empty:
        return Html("<p>No disk was attached in this run, or nothing of it was recorded.</p>")
    frame = frame.map(lambda value: value if isinstance(value, str) else f"{value:,.1f}".removesuffix(".0"))
    settle_s = a.scenario.design.settle_s
    settled = f"{settle_s:g} s to settle" if settle_s else "no time to settle"
    return table(frame, f"From attach to trial, with {settled} after an attach ({a.provenance})")


def _run_facts(a: Analysed) -> list[tuple[str, str]]:
    """Name, provenance, cloud, preset and overrides of the run, and what its emulator played."""
    rows = [("run", a.run.name), ("provenance", a.provenance)]
    rows += [("cloud", str(a.manifest.get("cloud", ""))), ("preset", a.scenario.preset)]
    overrides = a.manifest.get("overrides") or {}
    if overrides:
        changes = ", ".join(f"{key} = {value}" for key, value in overrides.items())
        rows.append(("changed by hand", changes))
    if early := plans.early_stop(a.run):
        rows.append(("stopped early", early))
    emulator = a.manifest.get("emulator") or {}
    if emulator:
        rows.append(("emulator profile", f"{emulator.get('profile')}, seed {emulator.get('seed')}"))
    return rows


def _resource_facts(
    what: str, replicates: list[dict[str, Any]], kind: str, keys: tuple[str, ...]
) -> list[tuple[str, str]]:
    """Each machine or disk once, with what is known of it."""
    facts: dict[tuple[str, str], None] = {}
    for row in replicates:
        for name, item in row[kind].items():
            read_back = item.get("read_back") or {}
            chosen = [
                option.text(True)
                for option in disk_options.OPTIONS  # options that make a disk another object
                if option.name == "frequent_attach" and read_back.get(option.name)
            ]
            known = ", ".join([str(item[key]) for key in keys if item.get(key)] + chosen)
            facts.setdefault((f"{what} {name}", known), None)
    return list(facts)


def over_time(a: Analysed) -> Html:
    """Say how rates and latencies moved within trials and over the run."""
    return bullets([*within(diagnose(a.tables.series)), *over_run(drift(a.trials), a.labels, a.words)])


def within(trials: pd.DataFrame) -> list[str]:
    """Say how many trials fell for good, as when credit runs out, and how many MSER-5 calls unsettled."""
    if trials.empty:
        return ["no trial kept a series: what happened within trials is not known"]
    fell, assessable = trials[trials["fell_at_s"].notna()], trials[trials["mser_cut_s"].notna()]
    unsettled = int(assessable["mser_unsettled"].sum())
    lines = [f"in none of {len(trials)} trials did the rate fall for good (a credit that runs out would)"]
    if len(fell):
        first = fell.sort_values("fell_at_s").iloc[0]
        lines = [
            f"in {len(fell)} of {len(trials)} trials the rate fell for good, soonest after "
            f"{first['fell_at_s']:.0f} s, from {first['rate_before']:,.0f} to {first['rate_after']:,.0f} "
            "IOPS: a credit may have run out"
        ]
    if unsettled:
        lines.append(
            f"{unsettled} of the {len(assessable)} trials long enough to judge look unsettled for half of "
            "their time (MSER-5, a diagnostic of warm-up); nothing is dropped for it"
        )
    return lines


def over_run(slopes: pd.DataFrame, labels: Mapping[str, str], words: Mapping[str, str]) -> list[str]:
    """Say what drifted from block to block: with all arms, which does no harm, or alone."""
    known = slopes[slopes["verdict"] != DriftVerdict.NOT_ASSESSABLE]
    if known.empty:
        return ["drift over the run is not assessable: that takes 3 blocks"]
    common, own = known[known["arm"] == COMMON], known[known["arm"] != COMMON]
    lines = [
        f"{words[row['workload']]}: all arms together {_slope(row)}" for row in common.to_dict("records")
    ]
    moved = own[own["verdict"] == DriftVerdict.DRIFTS].to_dict("records")
    names = "; ".join(f"{labels[row['arm']]}, {words[row['workload']]} {_slope(row)}" for row in moved)
    lines.append(
        f"{len(moved)} of {len(own)} slopes of single arms exclude zero (5 in 100 do by chance)"
        + (f": {names}" if names else "")
    )
    return lines


def _slope(row: Mapping[Any, Any]) -> str:
    """Change a block with its interval, e.g. "+0.3 % a block, 95 % CI -1.6 to +2.3"."""
    change, low, high = (100 * row[name] for name in ("change_per_block", "ci_low", "ci_high"))
    return quantities.with_interval(f"{change:+.1f} % a block", low, high, "+.1f")


_UNREAD = "What the machines and their block devices were was not read in this run."
_EMULATED = (
    "Emulated machines have kernel and processor of the computer that emulates them, and share them; their "
    "image is the one that was asked for, and nothing of it runs. fio reaches their disks by NBD: there is "
    "no block device, and so no queue, scheduler or write cache."
)


def guests(a: Analysed) -> Html:
    """Show by arm kernel, image, driver, queue and write cache, worst steal and busiest core of any trial."""
    of_arms = guests_by_arm(a.trials, a.tables.guest)
    if not of_arms:
        return Html(f"<p>{escaped(_UNREAD)}</p>")
    rows = [_row(a.labels[arm], of_arms[arm]) for arm in a.labels if arm in of_arms]
    emulated = Provenance.EMULATED in a.provenance
    note = f"<p>{escaped(_EMULATED)}</p>" if emulated else ""
    return folded(
        "Arm by arm", table(rows, f"The guests, by arm ({a.provenance})", optional=list(rows[0])) + note
    )


def _row(arm: str, guest: CellGuest) -> dict[str, str]:
    heads = {name: words if words == "nr_requests" else capital(words) for name, words in GUEST_FACTS.items()}
    facts = {heads[name]: "; ".join(guest.facts.get(name, ())) for name in GUEST_FACTS}
    worst = {"Worst steal": _percent(guest.steal_worst), "Busiest core": _percent(guest.core_worst)}
    return {"Arm": arm, **facts, **worst}


def _percent(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.1f} %"


_STEPS = {"prefill": "filled in order with", "overwrite": "written over at random with"}


def _tool_facts(scenario: Scenario, ledger: Iterable[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Rows for the table of the environment: lines, remarks, notes of tools, and what was written."""
    rows = [(f"load {load.name}", words) for load in scenario.workload for words in of_workload(load)]
    counts: dict[tuple[str, str], int] = {}
    steps: dict[str, None] = {}
    for event in ledger:
        trial = event["event"] == "trial"
        if event.get("evidence_s"):
            continue
        written = [f"writes {event['content']}"] if event.get("content") else []
        if not trial and written:
            steps[f"{_STEPS[event['event']]} {event['content']}"] = None
        for note in [*(event.get("notes") or ()), *written] if trial else ():
            key = (str(event["workload"]), str(note))
            counts[key] = counts.get(key, 0) + 1
    rows += [("before the first trial", words) for words in steps]
    return rows + [(f"load {name}", f"{note} ({n} trials)") for (name, note), n in counts.items()]
