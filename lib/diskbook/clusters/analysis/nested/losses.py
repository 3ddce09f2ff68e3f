"""What volumes outlive: where copies lie, the losses that were played, and the rule of each kind."""

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from diskbook.clusters import figures
from diskbook.clusters.design import copies, survival
from diskbook.clusters.design.copies import Arrangement
from diskbook.clusters.figures.copies import COLUMNS, PARITY
from diskbook.design import schema
from diskbook.design.model import Scenario, Volume
from diskbook.report.analysis.cache import once
from diskbook.report.figures import Picture
from diskbook.report.show.analysed import Analysed

KINDS: Mapping[str, str] = {
    "two-way": "two-way mirror",
    "three-way": "three-way mirror",
    "nested-mirror": "nested mirror",
    "nested-parity": "accelerated parity",
    "single-parity": "single parity",
    "dual-parity": "dual parity",
}
"""Kinds of volumes of clusters as a reader knows them."""
BANDS = 3
"""Stretches of a volume that are drawn."""
BOUND_DRIVES = 4
"""Drives of each node where the rule alone speaks of kinds that no run makes."""


def losses(a: Analysed) -> pd.DataFrame:
    """Losses that were played, a row a replicate and volume; without rows in runs that had none."""
    rows: pd.DataFrame = getattr(a.tables, schema.LOSSES.name, schema.empty(schema.LOSSES))
    return rows


def _volumes(scenario: Scenario) -> dict[str, Volume]:
    """The first volume of each kind that a cluster has; those that are lost come first."""
    named = [scenario.volume_named(loss.volume) for loss in scenario.loss]
    of_clusters = [*named, *(item for item in scenario.volume if item.cluster is not None)]
    first: dict[str, Volume] = {}
    for volume in of_clusters:
        first.setdefault(volume.kind, volume)
    return {kind: first[kind] for kind in KINDS if kind in first}


# ---- the matrix --------------------------------------------------------------------------------------------


def matrix(a: Analysed) -> pd.DataFrame:
    """Every kind of volume with every loss that it can have: as played, and by the rule.

    Returns
    -------
    pandas.DataFrame
        `kind` (in words), `lost`, `expected` and `online` ("yes", "no" or empty), `blocks_written`,
        `blocks_verified`, `n` replicates played, and `failed`, whether it was tried and has no outcome. Kinds
        that no run makes have a rule alone. Volumes of one kind are added up; where they differ, the one that
        is offline counts.
    """
    return pd.DataFrame(list(_cells(a)), columns=_CELLS)


_CELLS = [
    "kind",
    "lost",
    "expected",
    "online",
    "blocks_written",
    "blocks_verified",
    "n",
    "failed",
]


def _cells(a: Analysed) -> Iterator[dict[str, Any]]:
    rows, scenario = losses(a), a.scenario
    for kind, volume in _volumes(scenario).items():
        nodes, drives = len(scenario.nodes_of(volume)), scenario.disk_named(volume.disk).count
        for lost in survival.LOST:
            if survival.is_possible(lost, nodes, drives):
                expected = _yes(survival.of_volume(scenario, volume, lost))
                played = rows[(rows["kind"] == kind) & (rows["lost"] == lost)]
                yield {"kind": _words(kind, nodes), "lost": lost, "expected": expected, **_played(played)}
    for kind, nodes in survival.BOUNDS.items():
        for lost in survival.LOST:
            expected = _yes(survival.survives(kind, nodes, BOUND_DRIVES, lost))
            yield {"kind": _words(kind, nodes), "lost": lost, "expected": expected, **_played(rows[:0])}


def _words(kind: str, nodes: int) -> str:
    return f"{KINDS[kind]}, {nodes} nodes"


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _played(rows: pd.DataFrame) -> dict[str, Any]:
    done = rows[rows["online"].notna()]
    online = _yes(bool((done["online"] == "yes").all())) if len(done) else ""
    blocks = {name: int(done[name].sum()) for name in ("blocks_written", "blocks_verified")}
    failed = len(rows) > 0 and done.empty
    return {"online": online, **blocks, "n": int(done["replicate"].nunique()), "failed": failed}


@once
def matrix_picture(a: Analysed) -> Picture:
    """Figure: kinds of volumes against what is lost (`clusters.figures.loss_matrix`)."""
    cells = matrix(a)
    return figures.loss_matrix(cells, survival.WORDS, _title(cells), a.run.name, a.provenance)


def _title(cells: pd.DataFrame) -> str:
    played = cells[cells["online"] != ""]
    if played.empty:
        return "No loss was played: what volumes outlive by their copies and the pool's quorum"
    per_kind = played.groupby("kind", sort=False)["online"].agg(lambda online: bool((online == "yes").all()))
    whole = [str(kind).partition(",")[0] for kind, outlives in per_kind.items() if outlives]
    count = int((played["online"] == "yes").sum())
    if whole:
        return f"Online after every loss played: {' and '.join(whole)}"
    return f"Online after {count} of {len(played)} losses played; no kind after all of them"


def loss_table(a: Analysed) -> pd.DataFrame:
    """Every loss that was played: outcome, blocks, and the load's rates; failed ones last."""
    rows = losses(a)
    if rows.empty:
        return pd.DataFrame()
    rows = rows.sort_values(["replicate", "error"], na_position="first", kind="stable")
    return pd.DataFrame({
        "Volume": rows["volume"],
        "Lost": rows["lost"].map(survival.WORDS),
        "Replicate": rows["replicate"],
        "Online": rows["online"].fillna("failed"),
        "By the rule": rows["expected_online"],
        "Blocks written": rows["blocks_written"],
        "Verified": rows["blocks_verified"],
        "Noticed, s": rows["noticed_s"],
        "Resync, MB": rows["resync_bytes"] / 1e6,
        "IOPS before": rows["iops_before"],
        "during": rows["iops_during"],
        "Error": rows["error"].fillna(""),
    })  # fmt: skip


def words(a: Analysed) -> list[str]:
    """Say what was played, what was lost, and where the rule and what was played differ."""
    cells = matrix(a)
    played = cells[cells["online"] != ""]
    if played.empty:
        return [f"{a.provenance}: no loss was played, so that what volumes outlive is told by the rule alone"]
    blocks, there = int(played["blocks_written"].sum()), int(played["blocks_verified"].sum())
    gone = f"{blocks - there:,} of them were not there" if blocks > there else "all of them were there"
    lines = [f"{a.provenance}: {len(played)} cells were played, with {blocks:,} acknowledged blocks; {gone}"]
    wrong = played[played["online"] != played["expected"]]
    lines += [
        f"{row['kind']} without {survival.WORDS[row['lost']]}: played {row['online']}, by the rule "
        f"{row['expected']}"
        for row in wrong.to_dict("records")
    ]
    failed = cells[cells["failed"]]
    if len(failed):
        lines.append(f"{len(failed)} cells were tried and failed; the table has their sentences")
    return lines


# ---- where copies lie --------------------------------------------------------------------------------------


def arrangements(a: Analysed) -> dict[str, Arrangement]:
    """Where the first stretches of a volume of each kind lie, as an emulated machine told, else by rule."""
    layouts: dict[str, Any] = {}
    for replicate in a.manifest.get("replicates", ()):
        layouts |= {
            name: entry["layout"]
            for name, entry in (replicate.get("volumes") or {}).items()
            if entry.get("layout")
        }
    made = {}
    for kind, volume in _volumes(a.scenario).items():
        layout = layouts.get(a.scenario.members_of(volume)[0])
        nodes, drives = len(a.scenario.nodes_of(volume)), a.scenario.disk_named(volume.disk).count
        by_rule = copies.by_rule(volume, nodes, drives, BANDS)
        made[kind] = copies.of_layout(layout, BANDS) if layout else by_rule
    return made


def places(a: Analysed) -> pd.DataFrame:
    """What each drive holds of the first stretches of each kind, as `clusters.figures.copies` takes it."""
    rows = [
        row
        for kind, arrangement in arrangements(a).items()
        for number in range(len(arrangement.tiers))
        for row in _places(kind, arrangement, number)
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _places(kind: str, arrangement: Arrangement, number: int) -> Iterator[tuple[str, int, int, int, str]]:
    """Rows of one tier: of every drive, also those that hold nothing of a stretch."""
    tier, nodes = arrangement.tiers[number], arrangement.nodes
    drives = len(nodes) // len(set(nodes))
    several = len(arrangement.tiers) > 1
    panel = KINDS[kind] + (f", {'parity' if tier.parity else 'mirror'} tier" if several else "")
    for band, rows in enumerate(tier.members):
        held = {
            member: PARITY if tier.parity and column == len(row) - 1 else chr(ord("A") + column)
            for row in rows
            for column, member in enumerate(row)
        }
        for member, node in enumerate(nodes):
            yield panel, node, member - node * drives, band, held.get(member, "")


@once
def copies_picture(a: Analysed) -> Picture:
    """Figure: where the copies of each kind lie (`clusters.figures.copies`)."""
    shown = arrangements(a)
    by_rule = any(arrangement.by_rule for arrangement in shown.values())
    title = "No volume of a cluster to draw"
    if "two-way" in shown and "nested-mirror" in shown:
        title = "A two-way mirror writes to two drives, a nested mirror to four: two on each node"
    elif shown:
        title = f"Where the copies lie: {', '.join(KINDS[kind] for kind in shown)}"
    return figures.copies(places(a), by_rule, title, a.run.name, a.provenance)
