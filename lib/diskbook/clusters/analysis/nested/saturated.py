"""Full queues: the ratio to the two-way mirror cell by cell, what counting disk I/Os predicts, what is left.

At saturation a volume does limit / demand (`stats.volume_bound`), so that kinds differ by the I/Os that
a write asks of the disks, before anything is measured. What differs from that is what a measurement adds.
"""

import math
import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from diskbook.clusters.analysis.nested import arms
from diskbook.clusters.stats import ratio_map, volume_bound, volume_setups
from diskbook.clusters.stats.volume_bound import IOS_A_WRITE, Load, Rates, Setup, Shape
from diskbook.design.model import Workload
from diskbook.design.totals import trial_totals
from diskbook.design.vocabulary import CreditState
from diskbook.facts.units import KIB
from diskbook.report.analysis.run import once
from diskbook.report.show.analysed import Analysed
from diskbook.stats import knee

NEAR = 0.05
"""Relative distance from the bound within which a cell is taken for arithmetic."""
COLUMNS = [
    "arm", "kind", "workload", "block_size_bytes", "write_pct", "ratio", "low", "high", "latency_ratio",
    "n_replicates", "n_blocks", "bound", "left", "held",
]  # fmt: skip


def loads(a: Analysed) -> list[Workload]:
    """Closed loops with the most outstanding in each machine: the article's grid."""
    closed = [item for item in a.scenario.workload if item.rate is None]
    depth = max((item.threads * item.queue_depth for item in closed), default=1)
    return [item for item in closed if item.threads * item.queue_depth == depth > 1]


@once
def ratios(a: Analysed) -> pd.DataFrame:
    """Ratios of IOPS of every kind to the two-way mirror, cell by cell, beside the bound.

    Returns `COLUMNS`: `bound` is the ratio of what limits and disk I/Os allow, `left` is ratio / bound,
    `held` says that a limit sets both rates.
    """
    by_name = {item.name: item for item in loads(a)}
    base = arms.base(a)
    totals = trial_totals(a.trials)
    totals = totals[totals["workload"].isin(list(by_name))]
    if base is None or totals.empty:
        return pd.DataFrame(columns=COLUMNS)
    known, held, spent = setups(a), _held(a), _spent(totals)
    rows = []
    for arm in arms.others(a):
        for row in ratio_map.cell_ratios(totals, arm, base).to_dict("records"):
            item = by_name[row["workload"]]
            credit = spent.get((base, item.name), False)
            bound = bound_ratio(known, arm, base, item, credit)
            cells = {(arm, item.name), (base, item.name)}
            rows.append({
                **row, "arm": arm, "kind": arms.kind(a.scenario, arm), "write_pct": item.write_pct,
                "bound": bound, "left": row["ratio"] / bound, "held": cells <= held,
            })  # fmt: skip
    table = pd.DataFrame(rows, columns=COLUMNS)
    order = list(dict.fromkeys(table["arm"]))
    by_arm = table["arm"].map({name: place for place, name in enumerate(order)})
    return table.iloc[np.lexsort((table["write_pct"], table["block_size_bytes"], by_arm))].reset_index(
        drop=True
    )


def setups(a: Analysed) -> dict[str, Setup]:
    """Set-up of each arm with the limits in force; where none are recorded, by drives that are all alike.

    Data that lie inside a mirror tier are written as a nested mirror is.
    """
    replicates = a.manifest["replicates"]
    try:
        known = volume_setups.measured(a.scenario, replicates[0]) if replicates else {}
    except KeyError:  # a run that was handed on without the limits of its disks
        known = {}
    inside = {name: arms.is_inside(a.scenario, name) for name in arms.kinds(a)}
    return {
        name: known.get(name) or _alike("nested-mirror" if inside[name] else of)
        for name, of in arms.kinds(a).items()
    }


def bound_ratio(
    known: Mapping[str, Setup], arm: str, base: str, item: Workload, spent: bool = False
) -> float:
    """Ratio of the rates that limits allow two arms under a load."""
    load = Load(item.block_size, item.write_pct / 100)
    rates = [volume_bound.bound(known[name], load, spent=spent).iops for name in (arm, base)]
    return rates[0] / rates[1] if all(map(math.isfinite, rates)) else math.nan


def ios_a_write(ratio: float, write_share: float) -> float:
    """Disk I/Os that a write takes, by a saturated ratio to the two-way mirror; NaN without writes.

    A volume I/O takes w k + (1 - w) disk I/Os with k of a write; at one limit rates are as their inverses.
    """
    if not write_share:
        return math.nan
    base = write_share * IOS_A_WRITE[arms.BASE] + (1 - write_share)
    return (base / ratio - (1 - write_share)) / write_share


def panels(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The table as maps: measured, by the bound, and what is left, with kinds and shares of writes across."""
    blocks = [f"{size / KIB:.0f}K" for size in table["block_size_bytes"]]
    cells = table.assign(load=blocks, cell=_columns(table), capped=table["held"])
    by_arm = pd.factorize(cells["arm"])[0]
    cells = cells.iloc[np.lexsort((cells["block_size_bytes"], cells["write_pct"], by_arm))]
    shown = {
        "Measured": "ratio",
        "By disk I/Os and limits alone, all parity in place": "bound",
        "What is left: measured / bound": "left",
    }
    return {
        title: cells[["load", "cell", "capped"]].assign(ratio=cells[name]).reset_index(drop=True)
        for title, name in shown.items()
    }


def column_names(a: Analysed, table: pd.DataFrame) -> dict[str, str]:
    """What the columns of the maps are called: shares of writes, the middle one of a kind with its name."""
    columns = (
        table.assign(cell=_columns(table)).drop_duplicates("cell").sort_values("write_pct", kind="stable")
    )
    names = {}
    for arm, part in columns.groupby("arm", sort=False):
        middle = part["cell"].iloc[(len(part) - 1) // 2]
        label = textwrap.fill(arms.words(a, str(arm)), 8 * len(part))
        for row in part.to_dict("records"):
            names[row["cell"]] = f"{row['write_pct']} %" + f"\n{label}" * (row["cell"] == middle)
    return names


def _columns(table: pd.DataFrame) -> list[str]:
    return [f"{row['arm']}, {row['write_pct']} %" for row in table.to_dict("records")]


def words(a: Analysed, table: pd.DataFrame) -> list[str]:
    """Say how many findings the table holds, what of it is arithmetic, and what is left."""
    if table.empty:
        return [_nothing(a)]
    lines = [_counted_once(table)]
    held = table[table["held"] & table["bound"].notna()]
    near = held[(held["left"] - 1.0).abs() <= NEAR]
    if len(held):
        lines.append(
            f"a limit holds both sides of {len(held)} cells; counting disk I/Os predicts {len(near)} of "
            f"them within {100 * NEAR:.0f} %: these are arithmetic, whatever the volume is made of"
        )
    lines += [_left(a, arm, part) for arm, part in held.drop(near.index).groupby("arm", sort=False)]
    free = table[~table["held"]]
    if len(free):
        lines.append(f"not shown to be held by a limit on both sides: {_named(a, free)}")
    return [*lines, *_residence(a, table)]


def _counted_once(table: pd.DataFrame) -> str:
    """Say that a cell is one finding; or that queues were not kept full, where Little's law does not hold."""
    number, error = len(table), float((table["ratio"] * table["latency_ratio"] - 1.0).abs().max())
    if error > NEAR:
        return (
            f"IOPS ratio x latency ratio is off 1 by up to {100 * error:.0f} %: queues were not kept full, "
            "or latencies are not what they seem (see the gates)"
        )
    return (
        f"{number} cells are {number} findings: IOPS ratio x latency ratio is 1 within {100 * error:.1f} %, "
        "and MB/s are IOPS x block size"
    )


def _nothing(a: Analysed) -> str:
    if arms.base(a) is None:
        return "no two-way mirror was measured with full queues, so nothing can be compared with it"
    return "no other kind of volume was measured with the loads of the two-way mirror"


def _left(a: Analysed, arm: Any, part: pd.DataFrame) -> str:
    low, high = part["left"].min(), part["left"].max()
    times = f"{low:.2f}" if math.isclose(low, high, rel_tol=0.005) else f"{low:.2f} to {high:.2f}"
    return f"{arms.words(a, arm)} does {times} times what counting predicts in {_cells(part)}"


def _named(a: Analysed, part: pd.DataFrame) -> str:
    return "; ".join(f"{arms.words(a, str(arm))} {_cells(of)}" for arm, of in part.groupby("arm", sort=False))


def _cells(part: pd.DataFrame) -> str:
    return ", ".join(
        f"{row['block_size_bytes'] / KIB:.0f}K {row['write_pct']} % writes" for row in part.to_dict("records")
    )


def _residence(a: Analysed, table: pd.DataFrame) -> Iterable[str]:
    """Say of accelerated parity how many disk I/Os its writes took: 4 in the mirror tier, 8 in place."""
    place = IOS_A_WRITE["nested-parity"]
    tier = IOS_A_WRITE["nested-mirror"]
    rows = table[(table["kind"] == "nested-parity") & table["held"] & (table["write_pct"] == 100)]
    for arm, part in rows.groupby("arm", sort=False):
        took = [ios_a_write(ratio, 1.0) for ratio in part["ratio"]]
        low, high = min(took), max(took)
        times = f"{low:.1f}" if high - low < 0.05 else f"{low:.1f} to {high:.1f}"
        yield (
            f"a write to {arms.words(a, str(arm))} took {times} disk I/Os by these rates: {tier} are a write "
            f"into the mirror tier, {place} one in place in parity, and what rotates comes on top"
        )


def _held(a: Analysed) -> set[tuple[str, str]]:
    """Cells that a limit holds, and mixed ones whose reads and writes alone are held at the same depth.

    Nothing shows of a mixed load by itself that it queues, where no single I/O of its mix was measured.
    """
    rows = a.cells[knee.on_a_limit(a.cells)]
    held = set(rows[["arm", "workload"]].itertuples(index=False, name=None))
    pure: dict[tuple[str, int, int], int] = {}
    for item in loads(a):
        if item.write_pct in (0, 100):
            for arm in (name for name, load in held if load == item.name):
                key = arm, item.block_size, item.outstanding
                pure[key] = pure.get(key, 0) + 1
    mixed = [item for item in loads(a) if item.write_pct not in (0, 100)]
    return held | {
        (arm, item.name)
        for item in mixed
        for (arm, block, depth), number in pure.items()
        if number == 2 and (block, depth) == (item.block_size, item.outstanding)
    }


def _spent(totals: pd.DataFrame) -> dict[Any, bool]:
    """Cells whose every trial ran on base limits."""
    empty = totals["credit_state"] == CreditState.EMPTY
    return empty.groupby([totals["arm"], totals["workload"]]).all().to_dict()


def _alike(of: str) -> Setup:
    """Drives that are all alike, whose limit alone binds: ratios need no more."""
    nodes = {"simple": 1, "three-way": 3}.get(of, 2)
    return Setup(Shape(of, 4, 1, nodes), Rates(1.0), Rates())  # type: ignore[arg-type]
