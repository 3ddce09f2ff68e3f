"""Bounds of volumes: limit / demand over disks, machines and networks, with the copies of each write."""

from __future__ import annotations

import math
from dataclasses import replace

import pandas as pd
import pytest

from diskbook.clusters.stats import volume_bound
from diskbook.clusters.stats.volume_bound import Load, Rates, Setup, Shape
from diskbook.design.model import VolumeKind
from diskbook.facts import catalog
from diskbook.facts.units import KIB
from diskbook.stats import diagnosis, expected, limits
from diskbook.stats.diagnosis import Diagnosis

READ, WRITE = 0.0, 1.0
NO_LIMIT = Rates(1e9, 1e9)


def tier(name: str) -> Rates:
    row = catalog.tier_named(name)
    return Rates(row.iops, row.mb_s)


def vm(name: str, bursting: bool = True) -> Rates:
    size = catalog.vm_size(name)
    burst = (size.uncached_burst_iops, size.uncached_burst_mb_s) if bursting else (None, None)
    return Rates(size.uncached_iops, size.uncached_mb_s, *burst)


def simple(disks: int = 4, size: str = "Standard_D32s_v3", disk: str = "P30") -> Setup:
    return Setup(Shape("simple", disks, min(disks, 8)), tier(disk), vm(size))


def mirror(local_share: float | None = None, size: str = "Standard_D16s_v5", **changes: object) -> Setup:
    return Setup(Shape("three-way", 4, 4, nodes=3), tier("P30"), vm(size), local_share=local_share, **changes)


def load(kib: int = 4, write_share: float = WRITE, outstanding: int | None = None) -> Load:
    return Load(kib * KIB, write_share, outstanding)


def saturated(kind: VolumeKind, nodes: int, write_share: float = WRITE, own: float | None = None) -> float:
    """Rate of a volume on 4 disks a node of 1,000 IOPS each, as a share of one disk's."""
    setup = Setup(Shape(kind, 4, 2, nodes=nodes), Rates(1000, 1e6), NO_LIMIT, local_share=own)
    return volume_bound.bound(setup, load(write_share=write_share)).iops / 1000


@pytest.mark.parametrize(
    ("kind", "nodes", "share"),
    [
        ("simple", 1, 4.0),
        ("two-way", 2, 4.0),
        ("two-way", 3, 6.0),
        ("three-way", 3, 4.0),
        ("nested-mirror", 2, 2.0),
        ("nested-parity", 2, 1.0),
    ],
)
def test_a_write_asks_disks_for_all_its_copies(kind: VolumeKind, nodes: int, share: float) -> None:
    assert saturated(kind, nodes) == pytest.approx(share)


def test_saturated_ratios_that_follow_before_anything_is_measured() -> None:
    two_way = saturated("two-way", 2)
    assert saturated("nested-mirror", 2) / two_way == pytest.approx(0.50)
    assert saturated("nested-parity", 2) / two_way == pytest.approx(0.25)
    assert saturated("nested-parity", 2, READ) == saturated("two-way", 2, READ) == 8  # reads do not differ


@pytest.mark.parametrize(("own", "iops"), [(1.0, 20_000), (0.6, 33_333), (1 / 3, 60_000), (None, 60_000)])
def test_a_read_plateau_reveals_the_share_that_is_read_locally(own: float | None, iops: int) -> None:
    setup = Setup(Shape("three-way", 4, 4, nodes=3), tier("P30"), NO_LIMIT, local_share=own)
    assert volume_bound.bound(setup, load(write_share=READ)).iops == pytest.approx(iops, rel=1e-4)
    assert volume_bound.bound(setup, load(write_share=WRITE)).iops == pytest.approx(20_000)


def test_reads_and_writes_together_add_their_demands() -> None:
    """A half written, all read locally: each of 4 disks gives 1/8 of an I/O to reads and 1/8 to writes."""
    assert saturated("three-way", 3, 0.5, own=1.0) == pytest.approx(4.0)
    assert saturated("nested-mirror", 2, 0.5, own=0.5) == pytest.approx(1 / (2 * 0.5 / 4 + 0.5 * 0.5 / 4))


def test_machines_of_the_copies_count_bytes_as_well() -> None:
    setup = Setup(Shape("two-way", 2, 2, nodes=2), tier("P20"), vm("Standard_DS1_v2"))
    small, large = (volume_bound.bound(setup, load(kib)) for kib in (4, 64))
    assert (small.iops, small.words) == (3200, "VM uncached limit of 3,200 IOPS")
    assert large.words == "VM uncached limit of 48 MB/s" and large.iops == pytest.approx(48e6 / 65536)
    disks = volume_bound.bound(Setup(setup.shape, setup.disk, NO_LIMIT), load())
    assert (disks.iops, disks.words) == (4600, "disk limit of 4,600 IOPS")


def test_what_is_paid_for_and_not_usable() -> None:
    """9 x P60 in a Standard_E32s_v3: 144,000 IOPS and 4,500 MB/s are paid for, 36 and 17 % usable."""
    setup = simple(9, "Standard_E32s_v3", "P60")
    own = volume_bound.caps(setup, load())
    assert (own["cap_disk_iops"], own["cap_disk_mb_s"]) == (144_000, 4500)
    assert own["cap_vm_iops"] / own["cap_disk_iops"] == pytest.approx(0.356, abs=1e-3)
    assert own["cap_vm_mb_s"] / own["cap_disk_mb_s"] == pytest.approx(0.171, abs=1e-3)
    assert volume_bound.knee(setup, load(), 4.0, spent=True) == pytest.approx(204.8)


@pytest.mark.parametrize(
    ("setup", "first", "lasting", "hours"),
    [
        (simple(4), "disk limit of 800 MB/s", "VM uncached limit of 768 MB/s", 13.0),
        (
            simple(8),
            "disk limit and the VM burst limit of 1,600 MB/s",
            "VM uncached limit of 768 MB/s",
            0.5,
        ),
        (mirror(), "disk limit of 800 MB/s", "VM uncached limit of 600 MB/s", 1.5),
        (
            mirror(size="Standard_L16s"),
            "VM uncached limit of 500 MB/s",
            "VM uncached limit of 500 MB/s",
            math.inf,
        ),
    ],
)
def test_burst_then_base(setup: Setup, first: str, lasting: str, hours: float) -> None:
    """Four P30 draw 32 MB/s of the D32s_v3's credit, eight all of it, a D16s_v5 200 MB/s."""
    large = load(64)
    assert volume_bound.bound(setup, large).words == first
    assert volume_bound.bound(setup, large, spent=True).words == lasting
    assert volume_bound.burst_lasts_s(setup, large) / 3600 == pytest.approx(hours)


def test_each_bound_says_whether_burst_or_base_binds() -> None:
    eight = simple(8)
    assert volume_bound.bound(eight, load(64)).binds == "burst"
    assert volume_bound.bound(eight, load(64), spent=True).binds == "base"
    few = volume_bound.bound(eight, load(4, outstanding=8), latency_ms=4.0)
    assert (few.iops, few.binds, few.words) == (2000, "concurrency", "the I/Os in flight")
    assert volume_bound.burst_lasts_s(eight, load(4)) == math.inf
    assert volume_bound.bound(Setup(eight.shape, Rates(), Rates()), load()).iops == math.inf


@pytest.mark.parametrize(("kib", "threads"), [(4, 10.1), (8, 10.1), (64, 5.9)])
def test_knees_of_the_article(kib: int, threads: float) -> None:
    """Threads of 8 at which 4 x P30 on the base of a D32s_v3 meet their limit, at 4.03 ms."""
    assert volume_bound.knee(simple(), load(kib), 8 / 1.985, spent=True) / 8 == pytest.approx(
        threads, abs=0.05
    )


def test_networks_carry_copies_out_and_reads_in() -> None:
    nic = {"nic_out_mb_s": 1000.0, "nic_in_mb_s": 1000.0}
    writes, reads = (volume_bound.caps(mirror(0.0, **nic), load(64, w)) for w in (WRITE, READ))
    assert (writes["cap_nic_out_mb_s"], writes["cap_nic_in_mb_s"]) == (500, 1000)
    assert (reads["cap_nic_out_mb_s"], reads["cap_nic_in_mb_s"]) == (2000, 1000)
    local = volume_bound.caps(mirror(1.0, **nic), load(64, READ))
    assert math.isnan(local["cap_nic_out_mb_s"]) and math.isnan(local["cap_nic_in_mb_s"])
    bound = volume_bound.bound(mirror(nic_out_mb_s=500.0), load(64))
    assert bound.words == "network limit for what is sent of 250 MB/s" and bound.binds == "base"


def test_an_owner_elsewhere_is_one_hop_more() -> None:
    nic = {"nic_out_mb_s": 1000.0, "nic_in_mb_s": 1000.0, "remote": True}
    writes, reads = (volume_bound.caps(mirror(1.0, **nic), load(64, w)) for w in (WRITE, READ))
    assert (writes["cap_nic_out_mb_s"], writes["cap_nic_in_mb_s"]) == (500, 1000)
    assert (reads["cap_nic_out_mb_s"], reads["cap_nic_in_mb_s"]) == (1000, 1000)


def test_nested_copies_and_parity_on_the_wire() -> None:
    for kind, sent in (("nested-mirror", 2), ("nested-parity", 1), ("two-way", 1)):
        shape = Shape(kind, 4, 2, nodes=2)
        values = volume_bound.caps(Setup(shape, NO_LIMIT, NO_LIMIT, nic_out_mb_s=100.0), load(64))
        assert values["cap_nic_out_mb_s"] == pytest.approx(100 / sent)


def test_a_block_longer_than_the_interleave_meets_several_columns() -> None:
    setup = simple(4)
    assert volume_bound.caps(setup, load(256))["cap_disk_iops"] == 20_000
    assert volume_bound.caps(setup, load(512))["cap_disk_iops"] == 10_000
    assert volume_bound.caps(setup, load(4096))["cap_disk_iops"] == 5000  # four columns
    assert volume_bound.caps(setup, load(4096))["cap_disk_mb_s"] == 800


def trial(arm: str, name: str, depth: int, iops: float, **changes: object) -> dict[str, object]:
    row = {
        "trial": f"{arm}-{name}", "arm": arm, "workload": name, "direction": "write", "status": "ok",
        "attempt": 1, "replicate": 1, "block": 1, "position": 1, "machine_id": "m", "disk_id": "d",
        "physical_zone": "z", "credit_state": "full", "runtime_s": 30.0, "outstanding": depth,
        "block_size_bytes": 4096, "rate_offered": math.nan, "iops": iops, "lat_mean_ms": 1000 * depth / iops,
        "throughput_mb_s": math.nan, "cap_disk_iops": 5000.0,
        "tool": "fio", "ramp_s": 0.0,
    }  # fmt: skip
    return {**row, **changes}


@pytest.fixture
def trials() -> pd.DataFrame:
    large = {"block_size_bytes": 65536}
    rows = [
        trial("s2d", "write-12", 96, 20_360.0),
        trial("s2d", "write-18", 144, 20_400.0),
        trial("s2d", "write-1", 8, 1700.0),
        trial("s2d", "large-18", 144, 12_200.0, **large),
        trial("s2d", "large-12", 96, 12_150.0, **large),
        trial("s2d", "spent-12", 96, 9_320.0, **large, credit_state="empty"),
        trial("disk", "write-18", 144, 5100.0),
        trial("disk", "write-12", 96, 5090.0),
    ]
    return pd.DataFrame(rows)


def test_a_cell_at_its_bound_is_capped_whoever_made_the_volume(trials: pd.DataFrame) -> None:
    table = volume_bound.on_volumes(trials, {"s2d": mirror()})
    cells = limits.label_cells(table).set_index(["arm", "workload"])
    for place, words in {
        ("s2d", "write-12"): "disk limit of 20,000 IOPS",
        ("s2d", "large-18"): "disk limit of 800 MB/s",
        ("disk", "write-18"): "disk limit of 5,000 IOPS",
    }.items():
        assert (cells.loc[place, "label"], cells.loc[place, "binds"]) == ("capped", words)
    assert cells.loc[("s2d", "write-1"), "label"] != "capped"
    assert "VM uncached limit of 600 MB/s" in cells.loc[("s2d", "spent-12"), "binds"]
    plain = limits.label_cells(trials).set_index(["arm", "workload"])
    assert plain.loc[("s2d", "write-12"), "binds"] != "disk limit of 20,000 IOPS"


def test_prediction_and_diagnosis_of_a_volume(trials: pd.DataFrame) -> None:
    table = volume_bound.on_volumes(trials, {"s2d": mirror()})
    rows = expected.predicted(table).set_index(["arm", "workload"])
    assert rows.loc[("s2d", "write-12"), ["by", "predicted_iops"]].tolist() == ["cap_disk_iops", 20_000]
    assert rows.loc[("s2d", "large-12"), ["by", "predicted_mb_s"]].tolist() == ["cap_disk_mb_s", 800]
    assert rows.loc[("s2d", "spent-12"), ["by", "predicted_mb_s"]].tolist() == ["cap_vm_mb_s", 600]
    assert rows.loc[("disk", "write-12"), "predicted_iops"] == 5000
    findings = {(item.arm, item.workload): item for item in diagnosis.findings(table)}
    held = findings["s2d", "write-12"]
    assert held.verdict == Diagnosis.THROTTLED and "102 % of the disk limit of 20,000 IOPS" in held.cause


def test_a_mixed_load_is_bound_by_what_it_writes() -> None:
    mixed = [
        trial("s2d", "mixed", 96, 14_000.0, direction="read"),
        trial("s2d", "mixed", 96, 6_000.0, direction="write"),
    ]
    table = volume_bound.on_volumes(pd.DataFrame(mixed), {"s2d": mirror(1.0)})
    assert set(table["cap_disk_iops"]) == {20_000.0}
    spread = volume_bound.on_volumes(pd.DataFrame(mixed), {"s2d": mirror()})
    assert spread["cap_disk_iops"].iloc[0] == pytest.approx(20_000 / (0.3 + 0.7 / 3))


@pytest.mark.long
def test_a_network_that_binds_is_named_with_what_helps(trials: pd.DataFrame) -> None:
    table = volume_bound.on_volumes(trials, {"s2d": mirror(nic_out_mb_s=1600.0)})
    findings = {(item.arm, item.workload): item for item in diagnosis.findings(table)}
    assert "network limit for what is sent" not in findings["disk", "write-18"].cause
    rows = expected.predicted(volume_bound.on_volumes(trials, {"s2d": mirror(nic_out_mb_s=1000.0)}))
    assert set(rows.loc[rows["workload"].str.startswith("large"), "by"]) == {"cap_nic_out_mb_s"}
    slow = trials.assign(iops=trials["iops"] * 500 / 800)
    slow["lat_mean_ms"] = 1000 * slow["outstanding"] / slow["iops"]
    nic = volume_bound.on_volumes(slow, {"s2d": mirror(nic_out_mb_s=1000.0)})
    held = {(item.arm, item.workload): item for item in diagnosis.findings(nic)}["s2d", "large-18"]
    assert held.verdict == Diagnosis.THROTTLED and held.remedy.startswith("a larger VM size, whose network")


def test_trials_without_volumes_stay_as_they_are(trials: pd.DataFrame) -> None:
    assert volume_bound.on_volumes(trials, {}) is trials


@pytest.mark.parametrize("own", [0.0, 0.5, 1.0])
def test_reads_of_volumes_that_every_node_owns_one_of_meet_all_disks_alike(own: float) -> None:
    shape = Shape("two-way", 4, 4, nodes=2)
    both = Setup(shape, tier("P30"), vm("Standard_D32s_v5"), local_share=own, volumes=2)
    assert volume_bound.bound(both, load(write_share=0.0)).iops == 40_000
    assert volume_bound.bound(both, load()).iops == 20_000
    alone = replace(both, volumes=1)
    assert volume_bound.bound(alone, load(write_share=0.0)).iops == 20_000 / max(own, 1 - own)
    # Of three volumes one node owns two: it answers two thirds of the reads.
    three = replace(both, volumes=3, local_share=1.0)
    assert volume_bound.bound(three, load(write_share=0.0)).iops == pytest.approx(30_000)


def test_networks_of_volumes_that_every_node_owns_one_of_carry_half_each_way() -> None:
    shape = Shape("two-way", 4, 4, nodes=2)
    setup = Setup(shape, Rates(), Rates(), nic_out_mb_s=1000, nic_in_mb_s=1000, local_share=1.0)
    alone, both = (volume_bound.caps(replace(setup, volumes=count), load()) for count in (1, 2))
    assert (alone["cap_nic_out_mb_s"], both["cap_nic_out_mb_s"]) == (1000, 2000)
