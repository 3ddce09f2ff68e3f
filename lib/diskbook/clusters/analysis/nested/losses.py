"""What volumes outlive: the losses that were played, and the rule of each kind."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from diskbook.clusters.design import volume_rules
from diskbook.design import schema
from diskbook.design.model import Scenario, Volume
from diskbook.facts.units import MB, duration
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
_ONLINE = {"yes": "online", "no": "offline"}
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


def matrix(a: Analysed) -> pd.DataFrame:
    """Every kind of volume with every loss that it can have: as played, and by the rule.

    Returns `kind` (in words), `lost`, `expected` and `online` ("yes", "no" or empty), `blocks_written`,
    `blocks_verified`, `n` replicates played, and `failed`, whether it was tried and has no outcome. Kinds
    that no run makes have a rule alone. Volumes of one kind are added up; where they differ, the one that is
    offline counts.
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
        for lost in volume_rules.LOST:
            if volume_rules.is_possible(lost, nodes, drives):
                expected = _yes(volume_rules.of_volume(scenario, volume, lost))
                played = rows[(rows["kind"] == kind) & (rows["lost"] == lost)]
                yield {"kind": _words(kind, nodes), "lost": lost, "expected": expected, **_played(played)}
    for kind, nodes in volume_rules.BOUNDS.items():
        for lost in volume_rules.LOST:
            expected = _yes(volume_rules.survives(kind, nodes, BOUND_DRIVES, lost))
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


def matrix_table(a: Analysed) -> pd.DataFrame:
    """Kinds of volumes against what is lost, a column a loss; a loss that a kind cannot have has no cell."""
    cells = matrix(a)
    cells["shown"] = [_outcome(row) for row in cells.to_dict("records")]
    wide = cells.pivot(index="kind", columns="lost", values="shown")
    lost = [name for name in volume_rules.WORDS if name in wide]
    wide = wide.reindex(index=list(dict.fromkeys(cells["kind"])), columns=lost).fillna("")
    return wide.rename(columns=volume_rules.WORDS).reset_index(names="Volume")


def _outcome(row: Mapping[Any, Any]) -> str:
    """One cell in words: what was played with its blocks, else the rule in brackets."""
    if not row["online"]:
        return "failed" if row["failed"] else f"({_ONLINE[row['expected']]})"
    written, verified = row["blocks_written"], row["blocks_verified"]
    blocks = f"all {written:,}" if verified == written else f"{verified:,} of {written:,}"
    when = " once its members were back" * (row["online"] == "no")
    against = f"; the rule: {_ONLINE[row['expected']]}" * (row["online"] != row["expected"])
    return f"{_ONLINE[row['online']]}; {blocks} blocks read back{when}{against}"


def loss_table(a: Analysed) -> pd.DataFrame:
    """Every loss that was played: outcome, blocks, and the load's rates; failed ones last."""
    rows = losses(a)
    if rows.empty:
        return pd.DataFrame()
    rows = rows.sort_values(["replicate", "error"], na_position="first", kind="stable")
    return pd.DataFrame({
        "Volume": rows["volume"],
        "Lost": rows["lost"].map(volume_rules.WORDS),
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
        f"{row['kind']} without {volume_rules.WORDS[row['lost']]}: played {row['online']}, by the rule "
        f"{row['expected']}"
        for row in wrong.to_dict("records")
    ]
    failed = cells[cells["failed"]]
    if len(failed):
        lines.append(f"{len(failed)} cells were tried and failed; the table has their sentences")
    return lines


_KEYS = ["pool", "lost"]
_MINUTE_S = 60.0


def played(a: Analysed) -> pd.DataFrame:
    """Losses that were played to their end, one row each (`schema.LOSSES`); empty where none were."""
    rows = losses(a)
    return rows[rows["online"].notna()]


def by_pool(a: Analysed) -> pd.DataFrame:
    """Resync of each pool and loss that a volume of the pool outlived, one row per replicate.

    Returns `pool`, `lost`, `replicate`, `seconds` until all volumes were whole, `mb` copied back to all of
    them (NaN where that of one is unknown), `mb_s`; `during` and `resync`, the load on the volumes that
    stayed online, in percent of its rate before.
    """
    pools = {volume.name: f"{volume.cluster}, {volume.disk}" for volume in a.scenario.volume}
    rows = played(a)
    rows = rows.assign(pool=rows["volume"].map(pools))
    groups = rows.groupby([*_KEYS, "replicate"], sort=False)
    resync_table = pd.DataFrame([
        {**dict(zip([*_KEYS, "replicate"], key, strict=True)), **_of_pool(part)}
        for key, part in groups
        if (part["online"] == "yes").any()
    ], columns=[*_KEYS, "replicate", "seconds", "mb", "mb_s", "during", "resync"])  # fmt: skip
    return resync_table


def _of_pool(rows: pd.DataFrame) -> dict[str, float]:
    online = rows[rows["online"] == "yes"]
    before = online["iops_before"].sum(skipna=False)
    seconds, mb = rows["resync_s"].max(), rows["resync_bytes"].sum(skipna=False) / MB
    during, resync = (online[name].sum(skipna=False) for name in ("iops_during", "iops_resync"))
    return {
        "seconds": seconds,
        "mb": mb,
        "mb_s": mb / seconds if seconds > 0 else math.nan,
        "during": 100 * during / before if before > 0 else math.nan,
        "resync": 100 * resync / before if before > 0 else math.nan,
    }


def resync_table(a: Analysed) -> pd.DataFrame:
    """Resync of pools, medians over replicates, and the load's rate compared with that before."""
    rows = by_pool(a)
    if rows.empty:
        return pd.DataFrame()
    groups = rows.groupby(_KEYS, sort=False)
    medians = groups[["seconds", "mb", "mb_s", "during", "resync"]].median().reset_index()
    return pd.DataFrame({
        "Pool": medians["pool"],
        "Lost": medians["lost"].map(volume_rules.WORDS),
        "Until all volumes were whole": medians["seconds"].map(_time),
        "Copied back, MB": medians["mb"],
        "MB/s": medians["mb_s"],
        "Load while parts are missing, % of before": medians["during"],
        "Load while they resync, % of before": medians["resync"],
        "Played": groups.size().to_numpy(),
    })  # fmt: skip


def _time(seconds: float) -> str:
    return f"{seconds:.2g} s" if seconds < _MINUTE_S else duration(seconds, _MINUTE_S)


def resync_words(a: Analysed) -> list[str]:
    """Say what the load keeps while what was lost comes back, by pool."""
    lines = []
    for pool, part in by_pool(a).dropna(subset="resync").groupby("pool", sort=False):
        low, high = part["resync"].min(), part["resync"].max()
        lines.append(
            f"pool {pool}: a load of one block at a time on each volume keeps {low:.0f} to {high:.0f} % "
            f"of its rate while what was lost resyncs (losses: {len(part)})"
        )
    return lines
