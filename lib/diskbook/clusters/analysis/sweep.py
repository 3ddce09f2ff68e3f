"""The sweep over threads of a run on volumes: its trials, cells, knees, and the limits of each curve."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from diskbook.clusters.analysis import claims_s2d
from diskbook.clusters.stats import volume_setups, wire
from diskbook.clusters.stats.ratio_map import LOAD, log_ratios, ratio_map
from diskbook.clusters.stats.volume_bound import Load, Setup
from diskbook.design.model import Workload
from diskbook.design.totals import trial_totals
from diskbook.design.vocabulary import Verdict
from diskbook.facts import quantities
from diskbook.facts.units import KIB, MB
from diskbook.report.analysis.run import once
from diskbook.report.show import sentences
from diskbook.report.show.analysed import Analysed
from diskbook.stats import expected, knee
from diskbook.stats.limits import LIMITS

CURVE = knee.CURVE


def queue_depth(a: Analysed) -> int:
    """Outstanding a thread of the loads that run in several threads."""
    depths = [item.queue_depth for item in a.scenario.workload if item.threads > 1] or [1]
    return max(set(depths), key=depths.count)


def loads(a: Analysed) -> list[str]:
    """Closed loops of the sweep; of two alike the shorter, since a long one is to see credit run out."""
    kept: dict[tuple[object, ...], Workload] = {}
    for item in sorted(a.scenario.workload, key=lambda load: load.runtime_s):
        if item.rate is None and item.queue_depth == queue_depth(a) and item.sync != "fdatasync":
            arms = tuple(arm.name for arm in a.scenario.arm if item.meets(arm.name))
            for arm in arms:
                kept.setdefault((arm, item.block_size, item.write_pct, item.outstanding), item)
    return list(dict.fromkeys(item.name for item in kept.values()))


@once
def totals(a: Analysed) -> pd.DataFrame:
    every = trial_totals(a.trials)
    return every[every["workload"].isin(loads(a))]


@once
def cells(a: Analysed) -> pd.DataFrame:
    return a.cells[a.cells["workload"].isin(loads(a))]


@once
def knees(a: Analysed) -> pd.DataFrame:
    """Knee of every curve, one row a scope (`knee.knees`)."""
    return knee.knees(totals(a), cells(a), pooled=True)


def chosen_knees(a: Analysed) -> pd.DataFrame:
    """One row a curve: of disks like these where that has an interval, else of these disks."""
    every = knees(a)
    if every.empty:
        return every
    ranked = every.assign(known=every["low"].notna()).iloc[::-1]
    return ranked.sort_values("known", ascending=False, kind="stable").drop_duplicates(CURVE).sort_index()


def caps(a: Analysed) -> pd.DataFrame:
    """Lowest limit in force of each curve, nominal, as IOPS and MB/s."""
    rows = expected.predicted(a.trials).merge(cells(a)[["arm", "workload", "kind", "block_size_bytes"]])
    rows = rows[rows["limit_iops"].notna()].drop_duplicates(CURVE)
    mb_s = rows["limit_iops"] * rows["block_size_bytes"] / MB
    named = {limit.column: limit for limit in LIMITS}
    pairs = zip(rows["limit"], rows["limit_value"], strict=True)
    words = [named[column].words(value) for column, value in pairs]
    return rows.assign(iops=rows["limit_iops"], mb_s=mb_s, words=words)[[*CURVE, "iops", "mb_s", "words"]]


def single_ios(a: Analysed) -> pd.DataFrame:
    """Latency of single I/Os by arm, kind and block size, in ms: medians over trials."""
    every = a.cells
    return every[(every["outstanding"] == 1) & every["rate_offered"].isna()]


def findings_counted(a: Analysed) -> list[str]:
    """Count comparisons by finding: all metrics of one closed-loop cell are one finding."""
    rows = sentences.chosen(a.comparisons)
    held = {item.name for item in a.scenario.workload if item.rate is not None}
    of_cell = rows[~rows["workload"].isin(held)].drop_duplicates(["arm", "base_arm", "workload"])
    others = rows[rows["workload"].isin(held)]
    counted = pd.concat([of_cell, others])
    verdicts = counted["verdict"].map(lambda words: str(Verdict.of(words))).value_counts()
    listed = ", ".join(f"{verdict} {number}" for verdict, number in verdicts.items())
    double = len(rows) - len(counted)
    why = (
        f" ({double} of the comparisons are of a cell that is counted already: in a closed loop latency is "
        "outstanding / IOPS, and MB/s are IOPS x block size)"
    )
    return [f"{len(rows)} comparisons are {len(counted)} findings{why * bool(double)}: {listed}"]


def on_the_wire(a: Analysed) -> pd.DataFrame:
    """Bytes on the wire of the owner, a byte that the load read or wrote, one row a trial."""
    return wire.on_the_wire(trial_totals(a.trials), a.tables.counters, wire.holders(a.scenario))


def wire_table(a: Analysed) -> pd.DataFrame:
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


def wire_shares(a: Analysed) -> pd.DataFrame:
    """Share of reads that the owner answers, by counters and by plateaus."""
    places = wire.holders(a.scenario)
    counted = wire.by_counters(on_the_wire(a), places).assign(by="counters")
    plateaus = wire.by_plateaus(totals(a), cells(a), places).assign(by="plateau")
    parts = [part for part in (counted, plateaus) if len(part)]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=["by"])


def wire_words(a: Analysed) -> list[str]:
    """Say where reads are answered, and how that is known."""
    rows = wire_shares(a)
    if rows.empty:
        return ["no arm is on a clustered volume, so no read can be answered elsewhere"]
    lines = [_sentence(a, row) for row in rows[rows["share"].notna()].to_dict("records")]
    if "counters" not in set(rows["by"]):
        lines.append(f"{wire.NO_COUNTERS}, so that only a plateau can tell")
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


CLUSTER, SERVER = "s2d-3", "ss-4"
ARTICLES_MS = 4.03
"""Latency that follows from the article's one rate: 8 / 1,985 IOPS."""
SUBSTITUTE = "Standard_D16s_v5"
NEAR = 0.05


def measured(a: Analysed) -> pd.DataFrame:
    """Ratio of IOPS of every cell that both arms have: geometric mean over blocks, paired.

    Returns `load, threads, ratio, capped, latency_ratio, workload`; `capped`: a limit sets one rate or both.
    """
    logs = log_ratios(totals(a), CLUSTER, SERVER)
    if logs.empty:
        return pd.DataFrame(columns=["load", "threads", "ratio", "latency_ratio", "capped", "workload"])
    means = logs.groupby(LOAD).mean().apply(np.exp).reset_index()
    held = set(cells(a).loc[knee.on_a_limit(cells(a)), ["arm", "workload"]].itertuples(index=False))
    capped = [any((arm, load) in held for arm in (CLUSTER, SERVER)) for load in means["workload"]]
    shown = pd.DataFrame(
        {
            "load": [_load(*place) for place in zip(means["block_size_bytes"], means["kind"], strict=True)],
            "threads": means["outstanding"] / queue_depth(a),
            "ratio": means["ratio"],
            "capped": capped,
            "latency_ratio": means["latency_ratio"],
            "workload": means["workload"],
        }
    )
    order = (
        means["block_size_bytes"].astype(float) * 10 + (means["kind"] == "write") + means["outstanding"] / 1e6
    )
    return shown.iloc[np.argsort(order, kind="stable")].reset_index(drop=True)


def setups(a: Analysed) -> tuple[Setup, Setup] | None:
    """Cluster, whose owner answers reads, and server with this run's limits; None where one was not made."""
    replicates = a.manifest["replicates"]
    known = volume_setups.measured(a.scenario, replicates[0]) if replicates else {}
    if CLUSTER not in known or SERVER not in known:
        return None
    return replace(known[CLUSTER], local_share=1.0), known[SERVER]


def predicted(
    a: Analysed, other: Setup, base: Setup, *, spent: bool = False, own_latency: bool = True
) -> pd.DataFrame:
    """Map that documented limits alone predict for two set-ups, over the loads of this run."""
    rows, latencies = [], _latencies(a) if own_latency else {}
    for place, load in _loads(a):
        latency = latencies.get(place, ARTICLES_MS)
        (cell,) = ratio_map(other, base, [load], latency, spent=spent)
        held = cell.other.limit is not None or cell.base.limit is not None
        threads = (load.outstanding or 0) / queue_depth(a)
        rows.append((_load(place[1], place[0]), threads, cell.ratio, held))
    return pd.DataFrame(rows, columns=["load", "threads", "ratio", "capped"])


def beside(a: Analysed) -> dict[str, pd.DataFrame]:
    """The measured map and the predicted one, by title."""
    panels = {f"Measured ({a.provenance})": measured(a)}
    both = setups(a)
    if both is not None:
        panels["Predicted by documented limits alone"] = predicted(a, *both)
    return panels


def of_sizes(a: Analysed) -> dict[str, pd.DataFrame]:
    """Predicted maps for the article's sizes, and for the substitute on burst and on base."""
    today = claims_s2d.cluster(SUBSTITUTE, bursting=True), claims_s2d.server(bursting=True)
    return {
        "The article's sizes in 2019: L16s nodes, D32s_v3, no bursts": predicted(
            a, claims_s2d.cluster(), claims_s2d.server(), own_latency=False
        ),
        "D16s_v5 nodes today, on burst credit": predicted(a, *today, own_latency=False),
        "D16s_v5 nodes today, credit spent": predicted(a, *today, spent=True, own_latency=False),
    }


def sizes_table(a: Analysed) -> pd.DataFrame:
    """The maps of `of_sizes` beside each other; a ratio that a limit sets is marked with a star."""
    keys = ["load", "threads"]
    columns = {
        title: frame.set_index(keys).apply(
            lambda row: f"{row['ratio']:.2f}{' *' * bool(row['capped'])}", axis="columns"
        )
        for title, frame in of_sizes(a).items()
    }
    names = {"load": "Load", "threads": "Threads"}
    return pd.DataFrame(columns).reset_index().rename(columns=names).astype({"Threads": int})


def words(a: Analysed) -> list[str]:
    """Say how many findings the map holds, and what of it the limits alone predict."""
    cells = measured(a)
    if cells.empty:
        return ["no load was measured on both the cluster and one server, so there is no map"]
    error = (cells["ratio"] * cells["latency_ratio"] - 1.0).abs()
    lines = [
        f"{len(cells)} cells are {len(cells)} findings: IOPS ratio x latency ratio is 1 within "
        f"{100 * error.max():.1f} % in all of them, and MB/s are IOPS x block size, so that three tables of "
        "ratios would say one thing three times"
    ]
    both = setups(a)
    if both is not None:
        joined = cells.merge(predicted(a, *both), on=["load", "threads"], suffixes=("", "_predicted"))
        lines += _held_words(joined[joined["capped"]]) + _free_words(joined[~joined["capped"]])
    if len(a.manifest["replicates"]) < 2:
        lines.append(
            "one replicate: what sets the machines apart is part of every ratio, so that none of them has "
            "a verdict"
        )
    return lines


def _held_words(held: pd.DataFrame) -> list[str]:
    """Say of the cells on limits what documented limits predict, and which reads they do not."""
    if held.empty:
        return []
    near = (held["ratio"] / held["ratio_predicted"] - 1.0).abs() <= NEAR
    others = held[~near & held["load"].str.endswith("read")].to_dict("records")
    return [
        f"{len(held)} cells sit on a limit, and documented limits alone predict {int(near.sum())} of their "
        f"ratios within {100 * NEAR:.0f} %: there the map compares VM sizes, not storage",
        *(
            f"{row['load']} with {row['threads']:g} threads is not as they predict ({row['ratio']:.2f}, not "
            f"{row['ratio_predicted']:.2f}, which has the owner answer all reads)"
            for row in others
        ),
    ]


def _free_words(free: pd.DataFrame) -> list[str]:
    """Say of the cells below all limits what the cluster costs there."""
    if free.empty:
        return []
    return [
        f"{len(free)} cells sit on no limit; there the cluster's IOPS differ by "
        f"{quantities.change(free['ratio'].min())} to {quantities.change(free['ratio'].max())} from those of "
        "one server: what copies, network and software cost"
    ]


def _loads(a: Analysed) -> Iterator[tuple[tuple[str, int], Load]]:
    """Loads of the map with their curve: kind and block size."""
    meets = [item for item in a.scenario.workload if item.meets(CLUSTER) and item.meets(SERVER)]
    names = set(loads(a))
    listed = [item for item in meets if item.name in names and item.write_pct in (0, 100)]
    for item in sorted(listed, key=lambda load: (load.block_size, load.write_pct, load.threads)):
        kind = "write" if item.write_pct else "read"
        yield (kind, item.block_size), Load(item.block_size, item.write_pct / 100, item.outstanding)


def _latencies(a: Analysed) -> Mapping[tuple[str, int], float]:
    """Latency of one server that does not wait, by kind and block size, in ms."""
    rows = knees(a)
    if rows.empty:
        return {}
    own = rows[(rows["arm"] == SERVER) & rows["latency_ms"].notna()]
    return {
        (str(row["kind"]), int(row["block_size_bytes"])): float(row["latency_ms"])
        for row in own.to_dict("records")
        if not math.isnan(row["latency_ms"])
    }


def names(a: Analysed) -> str:
    """The two sides of the ratio, e.g. "cluster / server"."""
    return " / ".join(a.labels.get(name, name) for name in (CLUSTER, SERVER))


def _load(block_bytes: float, kind: str) -> str:
    return f"{block_bytes / KIB:.0f}K {kind}"
