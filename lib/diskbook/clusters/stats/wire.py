"""Bytes on the wire of a cluster's nodes a byte that a load moved, and who answers reads by them. Pure.

What a volume's owner receives while only reads run is what other nodes answered. Headers and the tool's ramp
are in such counts too, as they are while only writes run, where the owner sends each other node a copy: the
ratio of both is free of them.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from diskbook.clusters.stats import volume_setups
from diskbook.clusters.stats.volume_bound import IOS_A_WRITE, Shape
from diskbook.design.model import Scenario
from diskbook.stats import knee

SENT, RECEIVED = r"Network Interface\Bytes Sent/sec", r"Network Interface\Bytes Received/sec"
PLACE = ["arm", "block_size_bytes"]
HEADERS = (0.9, 1.25)
"""Bytes on the wire a byte of a copy beyond which the counts hold something else."""


class Holder(NamedTuple):
    """Of an arm on a clustered volume: the node that owns it, the node that runs the load, and its shape."""

    owner: str
    machine: str
    shape: Shape


def holders(scenario: Scenario) -> dict[str, Holder]:
    """Arms on one clustered volume, with owner, machine of the load, and shape; several have no owner."""
    arms = [(arm, scenario.volume_named(arm.volume)) for arm in scenario.arm if arm.volume]
    return {
        arm.name: Holder(arm.owner or arm.machine, arm.machine, volume_setups.shape(scenario, volume))
        for arm, volume in arms
        if volume.cluster and volume.count == 1 and arm.aligned
    }


def on_the_wire(totals: pd.DataFrame, counters: pd.DataFrame, holders: Mapping[str, Holder]) -> pd.DataFrame:
    """Bytes on the wire of the owning node, a byte that the load read or wrote.

    - `totals`: from `totals.trial_totals`.
    - `counters`: table of a run: running totals of each machine before and after a trial.
    - `holders`: arms on clustered volumes.

    Returns one row a trial: `arm, block_size_bytes, workload, kind, replicate, block, sent, received,
    others_sent`. What the ramp moved is counted at the rate after it.
    """
    rows = totals[totals["arm"].isin(list(holders))]
    columns = [*PLACE, "workload", "kind", "replicate", "block", "sent", "received", "others_sent"]
    if counters.empty or rows.empty:
        return pd.DataFrame(columns=columns)
    moved = counters.assign(bytes=counters["after"] - counters["before"])
    by_node = moved.groupby(["trial", "counter", "machine"])["bytes"].sum()
    seconds = rows["runtime_s"] + rows.get("ramp_s", 0.0)
    data = (rows["iops"] * rows["block_size_bytes"] * seconds).to_numpy(float)
    owners = rows["arm"].map(lambda arm: holders[arm].owner)
    sent, received = (_of(by_node, rows["trial"], name, owners) for name in (SENT, RECEIVED))
    every = by_node.groupby(["trial", "counter"]).sum()
    all_sent = every.reindex(pd.MultiIndex.from_product([rows["trial"], [SENT]])).to_numpy(float)
    shares = {"sent": sent / data, "received": received / data, "others_sent": (all_sent - sent) / data}
    return rows.assign(**shares)[columns].dropna(subset=["sent"]).reset_index(drop=True)


def headers(wire: pd.DataFrame, shape: Shape) -> float:
    """Bytes on the wire a byte of a copy, by the writes of an arm and block size; NaN without writes."""
    away = (shape.nodes - 1) * IOS_A_WRITE[shape.kind] / shape.nodes
    return float(wire.loc[wire["kind"] == "write", "sent"].median()) / away


def own_shares(wire: pd.DataFrame, arms: Mapping[str, Holder]) -> dict[str, float]:
    """Share of reads that the owner answers itself, by arm, where counts can tell: medians over trials."""
    shares: dict[str, list[float]] = {}
    for place, part in wire.groupby(PLACE, sort=False):
        arm = str(place[0])
        factor, reads = headers(part, arms[arm].shape), part[part["kind"] == "read"]
        if HEADERS[0] <= factor <= HEADERS[1] and len(reads):
            shares.setdefault(arm, []).append(1.0 - float(reads["received"].median()) / factor)
    return {arm: float(np.clip(np.median(of), 0.0, 1.0)) for arm, of in shares.items()}


def _of(by_node: pd.Series, trials: pd.Series, counter: str, nodes: pd.Series) -> np.ndarray:
    place = pd.MultiIndex.from_arrays([trials, [counter] * len(trials), nodes])
    return by_node.reindex(place).to_numpy(float)


NO_COUNTERS = "no counters of the nodes' networks were kept"
NO_WRITES = "no writes of this size to hold the counts against"
NO_PLATEAU = "reads and writes do not both reach a limit"


def by_counters(wire: pd.DataFrame, holders: Mapping[str, Holder]) -> pd.DataFrame:
    """Estimate the share of reads that the owner answers itself, from the bytes it received from other nodes.

    Returns one row an arm and block size: `arm, block_size_bytes, share, low, high, n_blocks, headers,
    reason`; `headers` are bytes on the wire a byte of a copy.
    """
    rows = []
    for place, part in wire.groupby(PLACE, sort=False):
        shape = holders[str(place[0])].shape
        own = headers(part, shape)
        reads = part[part["kind"] == "read"]
        if reads.empty:
            continue
        usable = HEADERS[0] <= own <= HEADERS[1]
        shares = 1.0 - reads["received"] / own if usable else reads["received"] * np.nan
        rows.append({**dict(zip(PLACE, place, strict=True)), **_mean(shares, reads), "headers": own,
                     "reason": "" if usable else NO_WRITES})  # fmt: skip
    return pd.DataFrame(rows, columns=[*PLACE, "share", "low", "high", "n_blocks", "headers", "reason"])


def by_plateaus(totals: pd.DataFrame, cells: pd.DataFrame, holders: Mapping[str, Holder]) -> pd.DataFrame:
    """Share of reads that the owner answers, by where reads and writes stop.

    Returns one row an arm and block size: `arm, block_size_bytes, share, low, high, n_blocks, reason`. A
    share below 1 / n cannot be distinguished from one above it by a plateau, and is not given.
    """
    rows = []
    for place, part in totals[totals["arm"].isin(list(holders))].groupby(PLACE, sort=False):
        caps = {kind: knee.caps_by_block(part[part["kind"] == kind], cells) for kind in ("read", "write")}
        shape = holders[str(place[0])].shape
        ratio = IOS_A_WRITE[shape.kind] / shape.nodes * caps["write"] / caps["read"]
        known = ratio.dropna()
        is_clear = len(known) > 0 and float(known.median()) > 1.0 / shape.nodes
        shares = known if is_clear else known * np.nan
        of_blocks = known.index.to_frame(index=False)
        numbers = _mean(shares.reset_index(drop=True), of_blocks)
        rows.append(
            {**dict(zip(PLACE, place, strict=True)), **numbers, "reason": "" if is_clear else NO_PLATEAU}
        )
    return pd.DataFrame(rows, columns=[*PLACE, "share", "low", "high", "n_blocks", "reason"])


def _mean(shares: pd.Series, of: pd.DataFrame) -> dict[str, float]:
    """Mean of shares over the means of blocks, with its interval over blocks."""
    by_block = shares.groupby([of["replicate"], of["block"]]).mean()
    blocks = by_block.unstack().to_numpy(float) if len(by_block) else np.full((1, 1), np.nan)
    bounds = knee.interval(blocks)
    low, high = (float(np.clip(bound, 0.0, 1.0)) for bound in (bounds.low, bounds.high))
    return {"share": float(bounds.mean), "low": low, "high": high, "n_blocks": int((~np.isnan(blocks)).sum())}
