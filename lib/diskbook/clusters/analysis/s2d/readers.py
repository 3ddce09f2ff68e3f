"""Readers' questions below the article, answered by the bound of a volume alone."""

import pandas as pd

from diskbook.clusters.analysis.claims_s2d import CLUSTER_RULE, disk_rates, no_host_cache
from diskbook.clusters.stats import volume_bound, volume_setups
from diskbook.clusters.stats.volume_bound import Load, Rates, Setup, Shape
from diskbook.facts.units import KIB

LATENCY_MS = 4.0
"""What the article's own rate comes to: 8 / 1,985 IOPS."""


def table() -> pd.DataFrame:
    """Questions and answers, one row each."""
    rows = [_two_small_nodes(), _nine_disks(), _rule(), _other_disks(), _no_host_cache(), _file_server()]
    return pd.DataFrame(rows, columns=["Question", "Answer", "By"])


def _two_small_nodes() -> tuple[str, str, str]:
    size = volume_setups.size_rates("Standard_DS1_v2")
    setup = Setup(Shape("two-way", 2, 2, nodes=2), disk_rates("P20"), size)
    small, large = (volume_bound.bound(setup, Load(kib * KIB, 1.0)) for kib in (4, 64))
    caps = volume_bound.caps(setup, Load(64 * KIB, 1.0))
    return (
        "2 x DS1_v2 with 2 P20 each are slow: change what first?",
        f"the VM size: writes stop at the {small.words}, and large ones at the {large.words}, "
        f"{100 * caps['cap_vm_mb_s'] / caps['cap_disk_mb_s']:.0f} % of the {caps['cap_disk_mb_s']:,.0f} "
        "MB/s that the disks are paid for; one vCPU runs the copies and the load as well",
        "limit / demand",
    )


def _nine_disks() -> tuple[str, str, str]:
    size = volume_setups.size_rates("Standard_E32s_v3")
    setup = Setup(Shape("two-way", 9, 8, nodes=2), disk_rates("P60"), size)
    small, large = Load(4 * KIB, 1.0), Load(64 * KIB, 1.0)
    caps, bytes_ = volume_bound.caps(setup, small), volume_bound.caps(setup, large)
    needed = volume_bound.knee(setup, small, LATENCY_MS, spent=True)
    return (
        "2 x E32s_v3 with 9 P60 each have latency: more threads or a bigger VM?",
        f"paid for are {caps['cap_disk_iops']:,.0f} IOPS and {bytes_['cap_disk_mb_s']:,.0f} MB/s a node, "
        f"usable {caps['cap_vm_iops']:,.0f} and {bytes_['cap_vm_mb_s']:,.0f} "
        f"({100 * caps['cap_vm_iops'] / caps['cap_disk_iops']:.0f} and "
        f"{100 * bytes_['cap_vm_mb_s'] / bytes_['cap_disk_mb_s']:.0f} %); latency is the disks' and the "
        f"copies', and does not fall with a bigger VM; at {LATENCY_MS:g} ms that rate takes {needed:.0f} "
        "I/Os in flight",
        "limit / demand, and Little's law",
    )


def _rule() -> tuple[str, str, str]:
    nodes, drives, iops, share = CLUSTER_RULE
    setup = Setup(Shape("three-way", drives, 8, nodes=nodes), Rates(iops), Rates())
    reads, writes = (volume_bound.bound(setup, Load(4 * KIB, w)).iops / 1e6 for w in (0.0, 1.0))
    return (
        f"a rule for {nodes} nodes of {drives} drives: drives x IOPS x nodes x {100 * share:.0f} %?",
        f"{100 * share:.0f} % rest on nothing: by drives alone a three-way mirror reads at most {reads:.1f} "
        f"and writes at most {writes:.1f} million IOPS, and the nodes' own limits, processors and network, "
        "which bind long before, are not in it; it is a bound, and VMFleet measures what is below it",
        "limit / demand",
    )


def _other_disks() -> tuple[str, str, str]:
    return (
        "Ultra or shared disks instead?",
        "a shared disk needs no copies between nodes, so that a write waits for one disk and no hop: the "
        "table of the decision has shared ZRS and Premium SSD v2; Ultra was not measured",
        "what was measured",
    )


def _no_host_cache() -> tuple[str, str, str]:
    return (
        "do L-series machines limit their durable disks, since they have no host cache?",
        no_host_cache(),
        "documentation",
    )


def _file_server() -> tuple[str, str, str]:
    return (
        "is the service level of one machine enough for a file server?",
        "it is a question of what has to survive, not of speed: see the table of the decision; the SMB "
        "share, which "
        "clients of a file server wait for, was not measured: a workgroup cluster cannot serve one",
        "documentation",
    )
