"""What an analysed run was made with, and what was seen besides its trials, as small tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from diskbook.design.vocabulary import Provenance
from diskbook.facts import disk_options
from diskbook.report.show import tool as show_tool
from diskbook.report.show.analysed import Analysed

MACHINE = ("size", "where", "physical_zone", "kernel", "tool_version")
DISK = ("sku", "where", "physical_zone")


def environment(a: Analysed) -> pd.DataFrame:
    """Versions, machines, zones, disks and dates, one row a fact."""
    replicates = a.manifest["replicates"]
    rows = [*_run_facts(a), ("date (UTC)", _dates(a.trials))]
    if a.provenance != Provenance.INVENTORY:
        rows.append(("region", a.scenario.region))
    rows += _resource_facts("machine", replicates, "machines", MACHINE)
    rows += _resource_facts("disk", replicates, "disks", DISK)
    rows += show_tool.facts(a.scenario, a.run.ledger())
    rows += [(name, str(version)) for name, version in a.manifest.get("versions", {}).items()]
    return pd.DataFrame(rows, columns=["What", "Value"])


def findings(a: Analysed) -> pd.DataFrame:
    """What the scenario's checks showed: refusals that must happen, data that must be intact."""
    rows = [event for event in a.run.ledger() if event["event"] == "finding"]
    columns = {"name": "Check", "ok": "As expected", "expected": "Expected", "observed": "Observed"}
    columns |= {"text": "What was seen"}
    table = pd.DataFrame(rows, columns=list(columns)).rename(columns=columns)
    return table.assign(**{"As expected": table["As expected"].map({True: "yes", False: "no"})})


def n_trials(a: Analysed) -> int:
    """Finished trials of the run."""
    return int(a.trials.loc[a.trials["status"] == "ok", "trial"].nunique())


def operations(a: Analysed) -> pd.DataFrame:
    """Times of control-plane operations, in seconds."""
    rows = [event for event in a.run.ledger() if event["event"] == "operation"]
    table = pd.DataFrame(rows, columns=["name", "real_s", "unscaled_s"])
    numbers = table.astype({"real_s": float, "unscaled_s": float}).groupby("name", sort=False)
    names = {"size": "Number", "real_s": "Median, s (as run)", "unscaled_s": "Median, s (unscaled)"}
    medians = numbers[["real_s", "unscaled_s"]].median().assign(size=numbers.size())
    return medians[list(names)].rename(columns=names).reset_index(names="Operation")


def attachments(a: Analysed) -> pd.DataFrame:
    """How long ago, and how often, each arm's disk was attached when its trials began; medians."""
    trials = a.trials[a.trials["status"] == "ok"].drop_duplicates("trial")
    columns = {
        "since_attach_s": "Since the attach, s",
        "since_create_s": "Since the disk was created, s",
        "attaches_in_block": "Attaches a block",
    }
    known = trials.dropna(subset=["since_attach_s"])
    medians = known.groupby("arm", sort=False)[list(columns)].median().round(1)
    named = medians.reindex([arm.name for arm in a.scenario.arm if arm.name in medians.index])
    table = named.rename(index=a.labels, columns=columns).rename_axis("Arm").reset_index()
    return table.map(lambda value: value if isinstance(value, str) else f"{value:,.1f}".removesuffix(".0"))


def _run_facts(a: Analysed) -> list[tuple[str, str]]:
    """Name, provenance, cloud, preset and overrides of the run, and what its emulator played."""
    rows = [("run", a.run.name), ("provenance", a.provenance)]
    rows += [("cloud", str(a.manifest.get("cloud", ""))), ("preset", a.scenario.preset)]
    overrides = a.manifest.get("overrides") or {}
    if overrides:
        changes = ", ".join(f"{key} = {value}" for key, value in overrides.items())
        rows.append(("changed by hand", changes))
    emulator = a.manifest.get("emulator") or {}
    if emulator:
        rows.append(("emulator profile", f"{emulator.get('profile')}, seed {emulator.get('seed')}"))
    return rows


def _dates(trials: pd.DataFrame) -> str:
    if trials.empty:
        return "nothing measured"
    first, last = trials["started_utc"].min(), trials["started_utc"].max()
    return f"{first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M}"


def _resource_facts(
    what: str, replicates: list[dict[str, Any]], kind: str, keys: tuple[str, ...]
) -> list[tuple[str, str]]:
    """Each machine or disk once, with what is known of it."""
    facts: dict[tuple[str, str], None] = {}
    for row in replicates:
        for name, item in row[kind].items():
            known = ", ".join([str(item[key]) for key in keys if item.get(key)] + _options(item))
            facts.setdefault((f"{what} {name}", known), None)
    return list(facts)


def _options(item: Mapping[str, Any]) -> list[str]:
    """Options that make a disk another object, as they were read back."""
    read_back = item.get("read_back") or {}
    return [
        option.text(True)
        for option in disk_options.OPTIONS
        if option.name == "frequent_attach" and read_back.get(option.name)
    ]
