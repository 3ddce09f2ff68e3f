"""Documented limits of the sizes that scenarios and published set-ups need, as their pages have them."""

from __future__ import annotations

from datetime import date

import pytest

from diskbook.facts import catalog
from diskbook.facts.catalog import VmSize
from diskbook.facts.prices import Meter, table


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


def test_each_size_says_where_it_was_read() -> None:
    sizes = catalog.vm_sizes().values()
    assert len(sizes) == 847
    assert {key for size in sizes for key in size.source} == set(catalog.size_sources())
    bare = catalog.vm_size("Standard_E2bs_v6")  # in no row of Azure's that anybody took down
    assert bare.family == ""
    assert all(
        set(source.columns) <= set(VmSize.__annotations__) for source in catalog.size_sources().values()
    )


def test_sizes_are_possible() -> None:
    for size in catalog.vm_sizes().values():
        assert set(size.disk_controllers) <= {catalog.SCSI, catalog.NVME}
        assert set(size.hyperv_generations) <= {"V1", "V2"} and size.architecture in ("x64", "Arm64")
        assert not size.nvme_only or "V2" in size.hyperv_generations
        assert not size.retires_on or date.fromisoformat(size.retires_on).year < 2100
        for burst, base in (
            (size.uncached_burst_iops, size.uncached_iops),
            (size.uncached_burst_mb_s, size.uncached_mb_s),
        ):
            assert burst is None or burst >= base > 0


def test_where_sources_differ_the_table_has_the_one_that_was_judged_right() -> None:
    """A slip of the API's row, data disks that two copies of it have, a limit that was raised."""
    assert catalog.vm_size("Standard_E2pds_v6").uncached_iops == 3_750
    assert catalog.vm_size("Standard_E8-4s_v5").max_data_disks == 32
    assert catalog.vm_size("Standard_D4s_v3").cached_mb_s == 64
    assert catalog.flexible_skus()["PremiumV2_LRS"].mb_s_range(80_000) == (125, 2_000)
    assert [catalog.region(name).premium_v2 for name in ("westus", "norwaywest")] == [True, True]


@pytest.mark.parametrize(
    ("name", "place"),
    [("D16ds_v6", "NvmeDisk"), ("E4ads_v5", "ResourceDisk"), ("L8s_v3", "ResourceDisk"), ("D2s_v6", None)],
)
def test_an_ephemeral_os_disk_lies_where_the_local_disks_are(name: str, place: str | None) -> None:
    assert catalog.vm_size(f"Standard_{name}").placement(30) == place
