"""Where a run was, as text, for pages and tables that show runs of many places together."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from diskbook.design.vocabulary import Provenance, Scope
from diskbook.facts.quantities import many
from diskbook.report.show import sentences
from diskbook.report.show.analysed import Analysed

_LOGICAL = re.compile(r"\bzone ([123])\b(?! \(az)")


def words(cloud: str, region: str, profile: str | None) -> str:
    """Name a place: the region, on Azure; elsewhere there is none, and its name is only what was asked for.

    - `cloud`, `region`: as the run was asked for.
    - `profile`: what the emulator plays.
    """
    if cloud == "emulator":
        return f"profile {profile or 'default'}, as in {region}"
    return "hosts of your own" if cloud == "inventory" else region


def zones(trials: pd.DataFrame) -> dict[str, str]:
    """Physical zones of a run with their logical numbers, e.g. "westeurope-az3" as "zone 1 (az3)".

    A subscription numbers the zones of a region in an order of its own. Scenarios, and so the names of arms,
    have its numbers; what Azure tells of a place is the physical zone.
    """
    known = trials[["physical_zone", "logical_zone"]].dropna().drop_duplicates()
    known = known[
        ~known["physical_zone"].duplicated(keep=False) & ~known["logical_zone"].duplicated(keep=False)
    ]
    return {
        str(physical): f"zone {logical} ({str(physical).rpartition('-')[2]})"
        for physical, logical in known.itertuples(index=False, name=None)
    }


def with_physical_zones(text: str, trials: pd.DataFrame) -> str:
    """Write every zone in a text with both of its names: "zone 1 (az3)"."""
    named = zones(trials)
    for physical, name in named.items():
        text = text.replace(physical, name)
    numbers = {name.split()[1]: name for name in named.values()}
    return _LOGICAL.sub(lambda zone: numbers.get(zone[1], zone[0]), text)


def scope(row: sentences.Row | None, a: Analysed) -> str:
    """Say in plain words what the leading headline speaks of."""
    if row is None:
        return "No headline was named before the run: what stands below is to explore, not to conclude from."
    where = f", in {region(a)}" if region(a) else ""
    words = with_physical_zones(sentences.scope_words(row, a.scenario), a.trials)
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
    return f"Azure: {', '.join(_machines_and_disks(a))}"


def _machines_and_disks(a: Analysed) -> Iterator[str]:
    """Machines and disks that were measured: how many of each size, and of each kind and size."""
    sizes = ", ".join(dict.fromkeys(machine.size for machine in a.scenario.machine))
    yield f"{many(a.trials['machine_id'].nunique(), 'machine')} ({sizes})"
    disks = {arm.name: a.scenario.disk_named(arm.disk) for arm in a.scenario.arm if arm.disk}
    measured = a.trials.drop_duplicates("disk_id")["arm"].map(disks).dropna()
    kinds = Counter((disk.sku, disk.size_gib) for disk in measured)
    for (sku, size_gib), number in sorted(kinds.items()):
        yield f"{many(number, 'disk')} {sku} of {size_gib:,} GiB"


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
