"""Documented limits of the sizes that scenarios and published set-ups need, as their pages have them."""

from __future__ import annotations

import pytest

from diskbook.reference import catalog
from diskbook.reference.prices import Meter, table


@pytest.mark.parametrize(
    ("name", "base", "burst"),
    [
        ("Standard_D32s_v3", (51_200, 768), (64_000, 1600)),
        ("Standard_L16s", (20_000, 500), (None, None)),
        ("Standard_L16s_v3", (25_600, 600), (40_000, 1600)),
        ("Standard_D16s_v5", (25_600, 600), (40_000, 1200)),
        ("Standard_DS1_v2", (3_200, 48), (None, None)),
        ("Standard_E32s_v3", (51_200, 768), (64_000, 1600)),
    ],
)
def test_uncached_limits(name: str, base: tuple[int, int], burst: tuple[int | None, int | None]) -> None:
    size = catalog.vm_size(name)
    assert (size.uncached_iops, size.uncached_mb_s) == base
    assert (size.uncached_burst_iops, size.uncached_burst_mb_s) == burst


def test_storage_optimised_sizes_have_no_host_cache() -> None:
    for name in ("Standard_L16s", "Standard_L16s_v3"):
        size = catalog.vm_size(name)
        assert not size.host_cache and size.cached_iops is None and size.cache_gib == 0
    assert not catalog.vm_size("Standard_L16s").accelerated_networking


def test_memory_may_be_a_fraction() -> None:
    assert catalog.vm_size("Standard_DS1_v2").memory_gib == 3.5
    assert f"{catalog.vm_size('Standard_DS3_v2').memory_gib:g}" == "14"


@pytest.mark.parametrize(
    ("name", "linux", "windows"),
    [
        ("Standard_D16s_v5", 0.92, 1.656),
        ("Standard_DS1_v2", 0.0679, 0.121),
        ("Standard_D32s_v3", 1.92, 3.392),
    ],
)
def test_they_have_prices(name: str, linux: float, windows: float) -> None:
    prices = table()["westeurope"]
    assert prices[Meter("vm-linux", name)].usd == linux and prices[Meter("vm-linux", name)].quality == "read"
    assert prices[Meter("vm-windows", name)].usd == windows


def test_three_nodes_of_the_substitute_by_the_hour() -> None:
    """3 x D16s_v5 with 4 P30 each, Windows: 7.41 USD an hour."""
    prices = table()["westeurope"]
    disks = 12 * prices[Meter("disk", "P30 LRS")].usd / 730
    assert 3 * prices[Meter("vm-windows", "Standard_D16s_v5")].usd + disks == pytest.approx(7.41, abs=0.005)
