"""Where the cluster's reads are answered: bytes on the wire, from table `counters`, and plateaus."""

import math
from typing import Any

import pandas as pd

from diskbook.clusters.analysis.s2d import sweep
from diskbook.clusters.stats import local_share, wire
from diskbook.design.totals import trial_totals
from diskbook.facts import quantities
from diskbook.facts.units import KIB
from diskbook.report.show.analysed import Analysed


def on_the_wire(a: Analysed) -> pd.DataFrame:
    """Bytes on the wire of the owner, a byte that the load read or wrote, one row a trial."""
    return wire.on_the_wire(trial_totals(a.trials), a.tables.counters, wire.holders(a.scenario))


def table(a: Analysed) -> pd.DataFrame:
    """Bytes on the wire a byte read and written, medians over trials by arm and block size."""
    counted = on_the_wire(a)
    if counted.empty:
        return pd.DataFrame()
    medians = counted.groupby(["arm", "kind", "block_size_bytes"], sort=False)[
        ["sent", "received", "others_sent"]
    ].median()
    return pd.DataFrame(
        {
            "Arm": a.labels[row["arm"]],
            "Load": f"{_size(row)} {row['kind']}",
            "Owner sends": row["sent"],
            "Owner receives": row["received"],
            "Other nodes send": row["others_sent"],
        }
        for row in medians.reset_index().to_dict("records")
    )


def shares(a: Analysed) -> pd.DataFrame:
    """Share of reads that the owner answers, by counters and by plateaus."""
    places = wire.holders(a.scenario)
    counted = local_share.by_counters(on_the_wire(a), places).assign(by="counters")
    plateaus = local_share.by_plateaus(sweep.totals(a), sweep.cells(a), places).assign(by="plateau")
    parts = [part for part in (counted, plateaus) if len(part)]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=["by"])


def words(a: Analysed) -> list[str]:
    """Say where reads are answered, and how that is known."""
    rows = shares(a)
    if rows.empty:
        return ["no arm is on a clustered volume, so no read can be answered elsewhere"]
    lines = [_sentence(a, row) for row in rows[rows["share"].notna()].to_dict("records")]
    if "counters" not in set(rows["by"]):
        lines.append(f"{local_share.NO_COUNTERS}, so that only a plateau can tell")
    silent = rows[rows["share"].isna()]
    for reason in dict.fromkeys(silent["reason"]):
        names = [
            f"{a.labels[row['arm']]} at {_size(row)}"
            for row in silent[silent["reason"] == reason].to_dict("records")
        ]
        lines.append(f"nothing is told by {', '.join(dict.fromkeys(names))}: {reason}")
    return lines


def _sentence(a: Analysed, row: dict[Any, Any]) -> str:
    without = "no interval, " * math.isnan(row["low"])
    blocks = f"{row['n_blocks']} block{'s' * (row['n_blocks'] != 1)}"
    how = (
        "by counters of the nodes' networks" if row["by"] == "counters" else "by where reads and writes stop"
    )
    return (
        f"{a.labels[row['arm']]}, {_size(row)}: share of reads that the owner answers itself: "
        f"{quantities.share(row['share'], row['low'], row['high'])} ({without}{blocks}; {how})"
    )


def _size(row: dict[Any, Any]) -> str:
    return f"{int(row['block_size_bytes']) // KIB}K"
