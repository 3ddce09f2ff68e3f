"""Where reads of a volume are answered: the share that its owner answers from its own disks. Pure.

Two ways that are independent of each other. Counters: what the owner receives while only reads run is what
other nodes answered. Headers and the tool's ramp are in such counts too, as they are while only writes run,
where the owner sends each other node a copy: the ratio of both is free of them. Plateaus: an owner that
answers a share l of all reads meets its limit at limit / l, and writes meet the same limit at limit x n / k
with k copies on n nodes.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from diskbook.clusters.stats import wire as wire_counts
from diskbook.clusters.stats.volume_bound import IOS_A_WRITE
from diskbook.clusters.stats.wire import HEADERS, PLACE, Holder
from diskbook.stats import knee

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
        headers = wire_counts.headers(part, shape)
        reads = part[part["kind"] == "read"]
        if reads.empty:
            continue
        usable = HEADERS[0] <= headers <= HEADERS[1]
        shares = 1.0 - reads["received"] / headers if usable else reads["received"] * np.nan
        rows.append({**dict(zip(PLACE, place, strict=True)), **_mean(shares, reads), "headers": headers,
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
