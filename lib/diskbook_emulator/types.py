"""What the parts of the emulator tell one another: plain numbers and records, no behaviour."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from diskbook.facts.nan_equal import NanEqual


@dataclass(frozen=True)
class Limits:
    """The caps of a disk, or of one path (uncached, cached) of a VM.

    None means no limit. With `burst_*` above the base, I/O runs at the burst rate until the credit
    (`credit_ios`, `credit_mb`; full at the start) is used up, and refills while demand is below the base.
    MB are 10^6 bytes.
    """

    iops: float | None = None
    mb_s: float | None = None
    burst_iops: float | None = None
    burst_mb_s: float | None = None
    credit_ios: float = 0.0
    credit_mb: float = 0.0


@dataclass(frozen=True)
class Latency:
    """Latency of one kind of I/O: lognormal; `parallelism` internal servers, 0 for unlimited.

    `offset_ms` is added to what was drawn, after all factors; no I/O takes less than no time.
    """

    mean_ms: float
    sigma: float = 0.0
    parallelism: int = 0
    offset_ms: float = 0.0


@dataclass(frozen=True)
class Cache:
    """A host cache: reads of blocks already read or written through this attachment cost `hit`.

    With `writes` set (read/write caching) writes cost `hit` as well. Hits are counted against the VM's
    cached limits, misses against the uncached ones and the disk's.
    """

    hit: Latency
    size_bytes: int
    writes: bool = False


@dataclass(frozen=True)
class ExportModel:
    """The numbers one attached disk plays.

    `log_factor` multiplies every latency by exp(log_factor) (machine, disk and session noise that stay
    constant while attached). `second_log[i]` does so during second i since the emulator began (wrapping),
    `trial_log[k]` during the k-th session (wrapping): from the first I/O after everyone had closed the
    export to the last close. `fresh_log` does so for a freshly attached disk, until `fresh_until_s`
    (`time.monotonic()`).
    """

    read: Latency
    write: Latency
    flush: Latency
    cache: Cache | None = None
    log_factor: float = 0.0
    second_log: tuple[float, ...] = (0.0,)
    trial_log: tuple[float, ...] = (0.0,)
    fresh_log: float = 0.0
    fresh_until_s: float = 0.0


@dataclass(frozen=True, eq=False)
class Session(NanEqual):
    """One stretch of time in which an export was open: a trial, as the disk saw it.

    Times are seconds since the Unix epoch. `ended` is None while open. The means are those of the modelled
    latencies drawn for the I/Os of the session (no queueing, no caps), NaN without I/O.
    """

    index: int
    started: float
    ended: float | None
    trial_log: float
    reads: int
    writes: int
    flushes: int
    read_mean_ms: float
    write_mean_ms: float
    flush_mean_ms: float


@dataclass(frozen=True)
class DiskSpec:
    """A managed disk, as the control plane hands it to the machines' side.

    `id` is the ARM id in lower case, `zone` "1".."3" or None (regional or ZRS).
    """

    id: str
    name: str
    sku: str
    size_gib: int
    zone: str | None
    max_shares: int
    iops: int
    mb_s: int
    bursting: bool
    performance_plus: bool
    tier: str | None
    tags: dict[str, str] = field(default_factory=dict)
    unique_id: str = ""


@dataclass(frozen=True)
class VmSpec:
    """A virtual machine as the control plane hands it over.

    `custom_data` is decoded text (cloud-init), `local_os_gib` the size of an ephemeral OS disk, `image`
    the SKU of its image, `controller` how its disks are presented to it: SCSI or NVMe.
    """

    id: str
    name: str
    size: str
    zone: str | None
    os: str  # "linux" | "windows"
    admin_username: str
    authorized_keys: tuple[str, ...]
    custom_data: str = field(repr=False)  # holds the machine's private host key
    local_os_gib: int | None = None
    tags: dict[str, str] = field(default_factory=dict)
    image: str = ""
    controller: str = "SCSI"


@dataclass(frozen=True)
class VmAddress:
    """Where an emulated machine's sshd listens."""

    address: str
    port: int


@dataclass(frozen=True)
class Activity:
    """What a disk did while it was attached to a machine.

    `counts` has a row a second in which anything ended: second since the Unix epoch; I/Os and bytes of the
    disk; I/Os and bytes that the machine's host cache answered. Limits are those that are played; times are
    seconds since the Unix epoch, `detached` None while attached.
    """

    vm: VmSpec
    disk: DiskSpec
    lun: int
    attached: float
    detached: float | None
    disk_limits: Limits
    vm_uncached: Limits
    vm_cached: Limits
    counts: NDArray[np.int64]


class Backend(Protocol):
    """The machines' side of the emulator, called by the control plane when an operation completes.

    Calls are made from worker threads, one at a time for one VM. They raise OSError or RuntimeError with a
    message when they cannot do it; the control plane turns that into an operation that ends Failed.
    """

    def start_vm(self, vm: VmSpec) -> VmAddress:
        """Start the machine (idempotent); a restarted one keeps its address and host key."""

    def stop_vm(self, vm_id: str, notice: bool = False) -> None:
        """End the machine and everything it runs; its attachments stay known to the control plane.

        With `notice` what runs is told to end first, as in a shutdown; else it is a power cut.
        """

    def delete_vm(self, vm_id: str) -> None:
        """End the machine and remove its files."""

    def set_up(self, vm_id: str, host_key: str, authorized_keys: tuple[str, ...]) -> None:
        """Give a running machine its private host key (OpenSSH's format) and the keys that may sign in."""

    def reached_privately(self, vm_id: str, private: str, at: VmAddress) -> None:
        """Know that a machine has this address in a company's subnet, and listens at that one."""

    def attach(self, vm_id: str, lun: int, disk: DiskSpec, caching: str) -> None:
        """Make the disk reachable from the machine at this LUN. `caching`: None | ReadOnly | ReadWrite."""

    def detach(self, vm_id: str, lun: int) -> None:
        """Take the disk away from the machine; its data stay."""

    def update_disk(self, disk: DiskSpec) -> None:
        """The disk's settings changed (tier, IOPS, MB/s, bursting): apply the new limits at once."""

    def delete_disk(self, disk_id: str) -> None:
        """Delete the disk's data."""

    def activity(self) -> list[Activity]:
        """What all disks did, attachment by attachment, the oldest first."""


Json = dict[str, Any]
