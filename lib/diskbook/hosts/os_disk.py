"""The ephemeral OS disk of a machine, as something to measure: a file on it.

A system disk cannot be written as a whole, so trials use a file of ours, written once in full (prefill) and
read and written around the page cache. On an emulated machine it is an NBD export, as every disk there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from diskbook.facts.errors import DiskbookError
from diskbook.facts.linux import OS_DISK
from diskbook.facts.units import GIB
from diskbook.hosts import disks_emulated
from diskbook.hosts.device import Device
from diskbook.hosts.ssh import Connection

FOLDER = "/var/lib/diskbook"
FILE = "measured"
SPARE_BYTES = GIB
"""Left to the system beside the file."""

# One line a fact, its name first. `room` counts what a file of an earlier trial holds.
FACTS = """set -e; sudo -n mkdir -p {folder}
echo "folder $(findmnt -n -o SOURCE -T {folder})"
echo "root $(findmnt -n -o SOURCE -T {system})"
held=$(sudo -n stat -c %s {folder}/{file} 2>/dev/null || echo 0)
echo "held $held"
echo "room $(($(df --output=avail -B1 {folder} | tail -n 1) + held))"
"""


@dataclass(frozen=True)
class OsDisk:
    """An OS disk: how to address what is measured of it, and how much of that is written already, in bytes.

    `held_bytes` is None where it is not known: on an emulated machine, whose disk loses nothing.
    """

    device: Device
    held_bytes: int | None


def find(connection: Connection, needed_bytes: int, folder: str = FOLDER, system: str = "/") -> OsDisk:
    """Return the ephemeral OS disk of a machine.

    Parameters
    ----------
    connection
        To the machine.
    needed_bytes
        Size of the file that is to be measured.
    folder
        Where the file lies.
    system
        A place on the OS disk.

    Raises
    ------
    DiskbookError
        When the machine does not tell, or has no room for the file. Nothing has been written then.
    """
    rows = disks_emulated.listing(connection)
    if rows is not None:
        return _emulated(connection, rows)
    answer = connection.check(FACTS.format(folder=folder, file=FILE, system=system)).decode()
    facts = dict(line.partition(" ")[::2] for line in answer.splitlines())
    name = connection.host.name
    try:
        held, room = int(facts["held"]), int(facts["room"])
        elsewhere = facts["folder"] != facts["root"]
    except (KeyError, ValueError) as error:
        raise DiskbookError(f"machine {name} does not say how much room {folder} has ({error})") from error
    if elsewhere:
        raise DiskbookError(f"machine {name}: {folder} lies on {facts['folder']}, not on the OS disk")
    if room < needed_bytes + SPARE_BYTES:
        raise DiskbookError(
            f"machine {name}: {folder} has room for {room / GIB:.1f} GiB and the trials need "
            f"{needed_bytes / GIB:.1f} GiB besides the system; make the OS disk larger"
        )
    path = f"{folder}/{FILE}"
    return OsDisk(Device("libaio", path, path, needed_bytes), held)


def _emulated(connection: Connection, rows: dict[str, Any]) -> OsDisk:
    row = rows.get(OS_DISK)
    if row is None:
        raise DiskbookError(f"machine {connection.host.name} was made without an ephemeral OS disk")
    return OsDisk(disks_emulated.device(row), None)
