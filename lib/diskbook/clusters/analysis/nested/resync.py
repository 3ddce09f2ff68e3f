"""What came back after a loss: how long it took, how many bytes, and what was left to the load meanwhile.

Volumes of a pool lose the same members at the same moment, and a loss ends when all of them are whole. So
there is one time per pool and loss, and no rate per kind of volume.
"""

import math

import pandas as pd

from diskbook.clusters.analysis.nested import losses
from diskbook.clusters.design import survival
from diskbook.facts.units import MB, duration
from diskbook.report.show.analysed import Analysed

_KEYS = ["pool", "lost"]
_MINUTE_S = 60.0


def played(a: Analysed) -> pd.DataFrame:
    """Losses that were played to their end, one row each (`schema.LOSSES`); empty where none were."""
    rows = losses.losses(a)
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
    table = pd.DataFrame([
        {**dict(zip([*_KEYS, "replicate"], key, strict=True)), **_of_pool(part)}
        for key, part in groups
        if (part["online"] == "yes").any()
    ], columns=[*_KEYS, "replicate", "seconds", "mb", "mb_s", "during", "resync"])  # fmt: skip
    return table


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


def table(a: Analysed) -> pd.DataFrame:
    """Resync of pools, medians over replicates, and the load's rate compared with that before."""
    rows = by_pool(a)
    if rows.empty:
        return pd.DataFrame()
    groups = rows.groupby(_KEYS, sort=False)
    medians = groups[["seconds", "mb", "mb_s", "during", "resync"]].median().reset_index()
    return pd.DataFrame({
        "Pool": medians["pool"],
        "Lost": medians["lost"].map(survival.WORDS),
        "Until all volumes were whole": medians["seconds"].map(_time),
        "Copied back, MB": medians["mb"],
        "MB/s": medians["mb_s"],
        "Load while parts are missing, % of before": medians["during"],
        "Load while they resync, % of before": medians["resync"],
        "Played": groups.size().to_numpy(),
    })  # fmt: skip


def _time(seconds: float) -> str:
    return f"{seconds:.2g} s" if seconds < _MINUTE_S else duration(seconds, _MINUTE_S)


def words(a: Analysed) -> list[str]:
    """Say what the load keeps while what was lost comes back, by pool."""
    lines = []
    for pool, part in by_pool(a).dropna(subset="resync").groupby("pool", sort=False):
        low, high = part["resync"].min(), part["resync"].max()
        lines.append(
            f"pool {pool}: a load of one block at a time on each volume keeps {low:.0f} to {high:.0f} % "
            f"of its rate while what was lost resyncs (losses: {len(part)})"
        )
    return lines
