"""Disks as a machine sees them, by LUN.

This is the only place that knows whether a machine is an Azure one (block devices) or an emulated one
(NBD exports).
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from typing import Any

from diskbook.errors import DiskbookError
from diskbook.hosts import Connection

# Azure's udev rules; NVMe machines have data/by-lun. Read in Azure's documentation, unverified here.
_AZURE_DISKS = """for d in /dev/disk/azure/scsi1/lun* /dev/disk/azure/data/by-lun/*; do
[ -b "$d" ] && case "$d" in *-part*) ;; *) echo "${d##*/} $d $(sudo -n blockdev --getsize64 "$d")";; esac
done; true"""


@dataclass(frozen=True)
class Device:
    """A disk as a tool addresses it: fio's engine and target.

    `prefill_target` is the same disk for filling it: on the emulator an export with caps and latencies
    lifted, on Azure the device itself. `lun` is where it was found.
    """

    engine: str
    target: str
    prefill_target: str
    size_bytes: int
    lun: int | None = None

    @property
    def for_prefill(self) -> Device:
        """The same disk as it is filled."""
        return replace(self, target=self.prefill_target)

    @property
    def needs_root(self) -> bool:
        """Whether the target is a block device, which only root may write."""
        return self.engine != "nbd"


def by_lun(connection: Connection) -> dict[int, Device]:
    """Disks that the machine sees now, by LUN."""
    listing = connection.run("command -v diskbook-disks >/dev/null && diskbook-disks")
    if listing.status == 0:
        return {int(lun): _nbd(row) for lun, row in json.loads(listing.stdout).items()}
    rows = [line.split() for line in connection.check(_AZURE_DISKS).decode().splitlines()]
    return {
        int(name.removeprefix("lun")): Device("libaio", path, path, int(size)) for name, path, size in rows
    }


def at_lun(connection: Connection, lun: int, *, size_bytes: int, patience_s: float = 30.0) -> Device:
    """Return the disk at a LUN, waiting until the machine has noticed it.

    Raises
    ------
    DiskbookError
        When it does not appear, or is not of the size that was created.
    """
    deadline = time.monotonic() + patience_s
    while (found := by_lun(connection).get(lun)) is None:
        if time.monotonic() > deadline:
            raise DiskbookError(f"machine {connection.host.name} does not see the disk at LUN {lun}")
        time.sleep(0.2)
    if found.size_bytes != size_bytes:
        raise DiskbookError(
            f"machine {connection.host.name}: the disk at LUN {lun} has {found.size_bytes} bytes, "
            f"not the {size_bytes} of the one created for this run; nothing was written"
        )
    return replace(found, lun=lun)


def _nbd(row: dict[str, Any]) -> Device:
    return Device(row["engine"], row["uri"], row["prefill_uri"], int(row["size_bytes"]))
