"""Ratio maps from limits alone: the article's sizes, and those that replace them."""

from __future__ import annotations

import pytest

from diskbook.clusters.stats.ratio_map import Predicted, ratio_map
from diskbook.clusters.stats.volume_bound import Load, Rates, Setup, Shape
from diskbook.facts import catalog
from diskbook.facts.units import KIB

ARTICLE_MS = 8 / 1.985
"""8 outstanding / 1,985 IOPS."""


def setup(size: str, nodes: int, local_share: float = 1.0) -> Setup:
    shape = Shape("three-way" if nodes == 3 else "simple", 4, 4, nodes=nodes)
    row, p30 = catalog.vm_size(size), catalog.tier_named("P30")
    bursting = (row.uncached_burst_iops, row.uncached_burst_mb_s)
    vm = Rates(row.uncached_iops, row.uncached_mb_s, *bursting)
    return Setup(shape, Rates(p30.iops, p30.mb_s), vm, local_share=local_share)


def predicted(size: str, write_share: float = 1.0, threads: int = 12, spent: bool = True) -> list[Predicted]:
    loads = [Load(kib * KIB, write_share, 8 * threads) for kib in (4, 8, 64)]
    return ratio_map(setup(size, 3), setup("Standard_D32s_v3", 1), loads, ARTICLE_MS, spent=spent)


@pytest.mark.parametrize("write_share", [0.0, 1.0])
def test_limits_alone_give_the_articles_table(write_share: float) -> None:
    """12 threads of 8: 1.00, 1.00 and 500 / 768; base limits, as all there were in 2019."""
    cells = predicted("Standard_L16s", write_share)
    assert [round(cell.ratio, 2) for cell in cells] == [1.00, 1.00, 0.65]
    assert all(cell.limits_only for cell in cells)
    assert [(round(cell.other.iops), round(cell.base.iops)) for cell in cells] == [
        (20_000, 20_000),
        (20_000, 20_000),
        (7_629, 11_719),
    ]
    assert cells[2].mb_s == pytest.approx((500, 768))


def test_latency_is_outstanding_by_iops_on_both_sides() -> None:
    small = predicted("Standard_L16s")[0]
    assert small.latencies_ms == pytest.approx((4.80, 4.80))
    for cell in predicted("Standard_L16s"):
        other, base = cell.latencies_ms
        assert base / other == pytest.approx(cell.ratio)  # one finding, not two


def test_the_article_names_the_limits_that_coincide() -> None:
    small, _, large = predicted("Standard_L16s")
    assert small.other.words == "disk limit and the VM uncached limit of 20,000 IOPS"
    assert small.base.words == "disk limit of 20,000 IOPS"
    assert (large.other.words, large.base.words) == (
        "VM uncached limit of 500 MB/s",
        "VM uncached limit of 768 MB/s",
    )


def test_few_threads_leave_the_disks_to_differ() -> None:
    """Below the limits the map says 1.00 by assumption, and that it is no limit that says so."""
    for cell in predicted("Standard_L16s", threads=1):
        assert cell.ratio == 1 and not cell.limits_only and cell.base.iops == pytest.approx(1985)


@pytest.mark.parametrize(("spent", "ratio"), [(False, 1.00), (True, 0.78)])
def test_the_substitute_changes_the_map(spent: bool, ratio: float) -> None:
    """Standard_D16s_v5 at 64K: 800 of 800 MB/s on burst, 600 of 768 on base; not 500 / 768."""
    small, _, large = predicted("Standard_D16s_v5", spent=spent)
    assert (small.ratio, round(large.ratio, 2)) == (1, ratio)
