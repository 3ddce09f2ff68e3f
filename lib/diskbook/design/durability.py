"""What made a write durable, by what was asked of the tool and how the device caches writes. Pure.

Linux drops flushes, and the FUA bit of a write, on their way to a device whose queue reports no volatile
cache: `write_cache` is then "write through" (Documentation/block/writeback_cache_control.rst,
Documentation/ABI/stable/sysfs-block). The write is then a plain one, however it was asked for. Whether such a
device loses power safely is its maker's word, and nothing that is measured here.
"""

from __future__ import annotations

import pandas as pd

PLAIN = "plain"
NBD, KERNEL = "nbd", ("libaio", "io_uring")
PLAIN_WRITE = "plain write"
_WHY = {
    "fdatasync": "the device reports write-through, so Linux sends no flush",
    "dsync": "the device reports write-through, so Linux sends neither flush nor FUA",
}
_WHY_NBD = "fio's nbd engine sends no FUA"


def of(sync: str | None, engine: str | None, write_cache: str | None) -> str:
    """Name what made a trial's writes durable (`schema.DURABILITIES`).

    Parameters
    ----------
    sync
        Of the workload: fdatasync after each write, dsync with it, or None.
    engine
        How the tool reached the device: "nbd", "libaio" or "io_uring"; None where that was not recorded.
    write_cache
        As the device's queue reports it: "write back" or "write through"; None where nobody could read it.
    """
    if sync is None:
        return ""
    if engine == NBD:  # its flush goes to the server as it is; writes carry no FUA
        return "flushed" if sync == "fdatasync" else PLAIN
    if engine not in KERNEL or write_cache not in ("write back", "write through"):
        return "unknown"
    if write_cache == "write through":
        return PLAIN
    # Without FUA of the device's own Linux flushes after the write, which then is written through as well.
    return "flushed" if sync == "fdatasync" else "written-through"


def plain_words(sync: str | None, engine: str | None) -> str:
    """Say that writes were plain ones although durable ones were asked for, and why."""
    return f"{PLAIN_WRITE} ({_WHY_NBD if engine == NBD else _WHY.get(sync or '', _WHY['fdatasync'])})"


def plain_cells(trials: pd.DataFrame, guest: pd.DataFrame) -> dict[tuple[str, str], str | None]:
    """Cells (arm, workload) whose trials were all to be durable and were all plain, each with its engine."""
    if "durability" not in trials:  # nothing that a run has; tables made by hand
        return {}
    asked = trials[(trials["status"] == "ok") & (trials["durability"] != "")]
    engines = dict(zip(guest["trial"], guest["ioengine"], strict=True))
    return {
        (str(arm), str(load)): engines.get(rows["trial"].iloc[0])
        for (arm, load), rows in asked.groupby(["arm", "workload"], sort=False)
        if (rows["durability"] == PLAIN).all()
    }
