"""What a run's answer holds for, when it was measured, and what it ran on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from diskbook.design.vocabulary import Provenance, Scope
from diskbook.report.show import locations, sentences
from diskbook.report.show.analysed import Analysed
from diskbook.report.show.sentences import Row


def _with_zones(text: str, a: Analysed) -> str:
    return locations.with_physical_zones(text, a.trials)


def scope(row: Row | None, a: Analysed) -> str:
    """Say in plain words what the leading headline speaks of."""
    if row is None:
        return "No headline was named before the run: what stands below is to explore, not to conclude from."
    where = f", in {region(a)}" if region(a) else ""
    words = _with_zones(sentences.scope_words(row, a.scenario), a)
    if row["scope"] == Scope.LIKE_THESE:
        return (
            f"It holds for {words}, by {row['n_replicates']} replicates of fresh machines and disks{where}; "
            "not for other sizes, loads or regions."
        )
    if row["n_replicates"] > 1:
        return f"It holds for {words}{where}: there is no interval for other disks of the kind."
    return f"It holds for {words}{where}: with one replicate nothing is known of other disks of the kind."


def region(a: Analysed) -> str:
    """Name the region of a run; empty where it is not known, and for hosts of the user's own."""
    named = a.scenario.region
    return "" if a.provenance == Provenance.INVENTORY or named == "unknown" else named


def ran_on(a: Analysed) -> str:
    """Say what a run ran on: the emulator with its profile, Azure's machines, or hosts of others."""
    played = a.manifest.get("emulator") or {}
    if a.provenance == Provenance.EMULATED:
        return (
            f"emulated: profile {played.get('profile', 'not known')}, seed {played.get('seed', 'not known')}"
        )
    if a.provenance == Provenance.INVENTORY:
        return "hosts of the user's own"
    if a.provenance == Provenance.IMPORTED:
        source = data_set(a)
        return f"measured by others: {source['attribution']}" if source else "machines of others (imported)"
    return f"Azure: {', '.join(dict.fromkeys(machine.size for machine in a.scenario.machine))}"


def data_set(a: Analysed) -> Mapping[str, Any]:
    """Return what the source of a public data set says of it; empty for all other runs."""
    source: Mapping[str, Any] = a.manifest.get("imported", {}).get("dataset", {})
    return source


def dates(a: Analysed) -> str:
    """Say when a run was measured, first to last trial, the day once where it is one."""
    if a.trials.empty:
        return "nothing measured"
    first, last = a.trials["started_utc"].min(), a.trials["started_utc"].max()
    day = "" if first.date() == last.date() else f"{last:%Y-%m-%d} "
    return f"{first:%Y-%m-%d %H:%M} to {day}{last:%H:%M}"
