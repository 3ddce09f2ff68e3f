"""What came back after a loss: how long it took, how many bytes, and what was left to the load meanwhile."""

from __future__ import annotations

import pandas as pd

from diskbook.analysis.nested import losses
from diskbook.base.units import MB
from diskbook.scenario import survival
from diskbook.show.analysed import Analysed

_KEYS = ["kind", "lost"]


def played(a: Analysed) -> pd.DataFrame:
    """Losses that were played to their end, one row each (`schema.LOSSES`); empty where none were."""
    rows = losses.losses(a)
    return rows[rows["online"].notna()]


def table(a: Analysed) -> pd.DataFrame:
    """Losses that a volume outlived, medians by kind: resync, and the load's rate beside that before."""
    rows = played(a)
    rows = rows[rows["online"] == "yes"]
    if rows.empty:
        return pd.DataFrame()
    shares = rows.assign(
        during=100 * rows["iops_during"] / rows["iops_before"],
        resync=100 * rows["iops_resync"] / rows["iops_before"],
        hours=rows["resync_s"] / 3600,
        mb=rows["resync_bytes"] / MB,
        mb_s=rows["resync_bytes"] / MB / rows["resync_s"].where(rows["resync_s"] > 0),
    )
    names = {
        "hours": "Resync, h",
        "mb": "Resync, MB",
        "mb_s": "MB/s",
        "during": "Load while parts are missing, % of before",
        "resync": "Load while they resync, % of before",
    }
    medians = shares.groupby(_KEYS, sort=False)[list(names)].median().reset_index()
    number = shares.groupby(_KEYS, sort=False).size().to_numpy()
    return pd.DataFrame({
        "Volume": medians["kind"].map(lambda kind: losses.KINDS.get(kind, kind)),
        "Lost": medians["lost"].map(survival.WORDS),
        **{words: medians[name] for name, words in names.items()},
        "Played": number,
    })  # fmt: skip


def words(a: Analysed) -> list[str]:
    """Say what the load keeps while what was lost comes back."""
    rows, lines = played(a), []
    for kind, part in rows[rows["online"] == "yes"].groupby("kind", sort=False):
        shares = (part["iops_resync"] / part["iops_before"]).dropna()
        if len(shares):
            low, high = 100 * shares.min(), 100 * shares.max()
            lines.append(
                f"{losses.KINDS.get(str(kind), str(kind))}: the load keeps {low:.0f} to {high:.0f} % of its "
                f"rate while what was lost resyncs ({len(shares)} losses)"
            )
    return lines
