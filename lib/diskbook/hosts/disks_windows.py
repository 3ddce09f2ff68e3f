"""Disks of a Windows machine: physical drives by LUN, and what stands on them."""

import base64
from collections.abc import Mapping
from typing import Any

from diskbook.design.layout import MARK_ROOM
from diskbook.facts.errors import DiskbookError
from diskbook.hosts.device import Device, Facts, data_at_edges
from diskbook.hosts.ssh_windows import WindowsConnection


def by_lun(connection: WindowsConnection) -> dict[int, Device]:
    """Disks that the machine sees now, by LUN; raises as `disks.by_lun` does."""
    return devices(connection.disks(), connection.host.name)


def devices(rows: list[dict[str, Any]], machine: str) -> dict[int, Device]:
    """Turn what `WindowsConnection.disks` says into devices by LUN; raises as `by_lun` does."""
    at_lun: dict[int, Device] = {}
    for row in rows:
        target = f"#{row['number']}"
        if row["lun"] in at_lun:
            raise DiskbookError(
                f"machine {machine}: {at_lun[row['lun']].target} and {target} both claim LUN {row['lun']}; "
                "nothing was written"
            )
        fill = row.get("prefill_target", target)
        at_lun[row["lun"]] = Device("windows", target, fill, int(row["size_bytes"]))
    return at_lun


def facts(connection: WindowsConnection, device: Device) -> Facts:
    """Ask a machine what is on a disk."""
    return parse_facts(connection.disk_facts(_drive(device)))


def parse_facts(answer: Mapping[str, Any]) -> Facts:
    """Parse the output of `WindowsConnection.disk_facts`."""
    foreign = [f"has a partition table ({answer['style']})"] if answer["style"] != "RAW" else []
    foreign += data_at_edges({"first": answer["head"], "last": answer["tail"]})
    in_use = ["is the machine's own disk"] if answer["own"] else []
    if answer["partitions"]:
        in_use.append("has partitions")
    mark = base64.b64decode(answer["mark"])
    return Facts(tuple(foreign), tuple(in_use), mark, answer["serial"], None, answer.get("unique_id"))


def write_mark(connection: WindowsConnection, device: Device, content: bytes) -> None:
    """Write a block to the beginning of the last MiB of a disk."""
    connection.write_mark(_drive(device), device.size_bytes - MARK_ROOM, content)


def _drive(device: Device) -> int:
    """Number of a physical drive."""
    return int(device.target.removeprefix("#"))
