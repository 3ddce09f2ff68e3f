"""Rate and latency that a run measured of a load on a disk, for who chooses disks."""

from collections.abc import Callable
from typing import Any

from diskbook.design.model import Workload
from diskbook.design.totals import trial_totals
from diskbook.design.vocabulary import Provenance
from diskbook.facts.errors import unknown
from diskbook.facts.rules import DiskAsk
from diskbook.report.analysis.run import analyse

NOTHING = "p99 not measured"


def rate(run: str, arm: str, workload: str) -> tuple[float, Workload]:
    """Return the median IOPS of a cell's trials, and its load; UsageError where there is no such cell."""
    analysis = analyse(run)
    totals = trial_totals(analysis.trials)
    cell = totals[(totals["arm"] == arm) & (totals["workload"] == workload)]
    if cell.empty:
        cells = {f"{a}:{load}" for a, load in zip(totals["arm"], totals["workload"], strict=True)}
        raise unknown("cell", f"{arm}:{workload}", cells, run)
    return float(cell["iops"].median()), analysis.scenario.workload_named(workload)


def p99(run: str) -> Callable[[DiskAsk, str, float], str]:
    """Return what says the p99 of a disk with a host cache under blocks of a size; never an emulated one."""
    analysis = analyse(run)
    scenario, table = analysis.scenario, analysis.percentiles
    blocks = {load.name: load.block_size_bytes for load in scenario.workload}

    def words(disk: DiskAsk, cache: str, block_bytes: float) -> str:
        if analysis.provenance == Provenance.EMULATED:
            return f"{NOTHING} ({run} is emulated)"
        arms = [
            arm for arm in scenario.arm if not arm.volume and _is_disk(scenario.disk_of(arm), disk, cache)
        ]
        near = {load for load, size in blocks.items() if 0.5 <= size / block_bytes <= 2}
        rows = table[(table["quantile"] == 0.99) & table["arm"].isin([arm.name for arm in arms])]
        rows = rows[rows["workload"].isin(list(near)) & rows["lat_ms"].notna()].sort_values("lat_ms")
        if rows.empty:
            return NOTHING
        row = rows.iloc[0]
        return (
            f"p99 of {row['lat_ms']:.3g} ms (95 % CI {row['ci_low_ms']:.3g} to {row['ci_high_ms']:.3g}) in "
            f"{run}, {row['workload']}, {row['direction']}"
        )

    return words


def _is_disk(own: Any, asked: DiskAsk, cache: str) -> bool:
    names = ("sku", "size_gib", "tier", "bursting", "performance_plus", "iops", "mb_s")
    return own.cache == cache and all(getattr(own, name) == getattr(asked, name) for name in names)
