"""A scenario on hosts of one's own: what of it needs Azure, and which place stands for which disk."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from typing import Any

from diskbook.design.model import Disk, Scenario
from diskbook.facts.catalog import OWN_DISK, OWN_HOST
from diskbook.facts.disk_options import OPTIONS
from diskbook.facts.errors import UsageError, unknown
from diskbook.hosts.hosts_file import BlockDevice, Folder, OwnHost

TOKEN_BYTES = 4


def as_own(scenario: Scenario) -> Scenario:
    """Return the scenario as it is on hosts of one's own: without sizes, SKUs, zones and options of Azure.

    Raises
    ------
    UsageError
        When it needs something that only Azure has; the first such thing is named.
    """
    needs = next(_needs_of_azure(scenario), None)
    if needs:
        raise UsageError(
            f"scenario {scenario.name} cannot be measured on hosts of your own: {needs}; "
            "take local-disk, or a scenario of your own with plain disks"
        )
    bare: dict[str, Any] = {"zone": None}
    machines = tuple(
        item.model_copy(update={**bare, "size": OWN_HOST, "substitute": None}) for item in scenario.machine
    )
    disks = tuple(
        item.model_copy(update={**bare, "sku": OWN_DISK, "max_shares": 1}) for item in scenario.disk
    )
    return scenario.model_copy(update={"machine": machines, "disk": disks})


def _needs_of_azure(scenario: Scenario) -> Iterator[str]:
    for kind, what in (
        ("volume", "is a volume on a pool of disks"),
        ("cluster", "is a cluster"),
        ("check", "is a check of what Azure attaches, keeps or fences"),
        ("drill", "is a failover test, which moves a disk"),
    ):
        for item in getattr(scenario, kind):
            yield f"[[{kind}]] {item.name} {what}"
    for machine in scenario.machine:
        if machine.os != "linux":
            yield f"[[machine]] {machine.name} runs {machine.os.title()}, and hosts of your own run Linux"
    for disk in scenario.disk:
        yield from _of_disk(scenario, disk)
    for load in scenario.workload:
        if load.region != "filled" or load.cache_state != "any":
            yield f"[[workload]] {load.name} asks for a state that only a managed disk can be brought into"
    if scenario.design.replicates > 1:
        yield (
            f"{scenario.design.replicates} replicates take fresh machines and disks each time, and yours "
            "stay the same (--set design.replicates=1 leaves one)"
        )


def _of_disk(scenario: Scenario, disk: Disk) -> Iterator[str]:
    where = f"[[disk]] {disk.name}"
    if disk.ephemeral:
        yield f"{where} is the OS disk of an Azure machine"
    if disk.cache != "None":
        yield f"{where} has a host cache ({disk.cache}), which is Azure's"
    for option in OPTIONS:  # how many machines may share a disk does not matter to one host
        if option.name != "max_shares" and getattr(disk, option.name) != option.default:
            yield f"{where} has the option {option.name}, which is Azure's"
    users = list(dict.fromkeys(arm.machine for arm in scenario.arm if arm.disk == disk.name))
    if len(users) > 1:
        yield f"{where} is seen from {' and '.join(users)}, and a disk of your own stays on its host"


def placed(scenario: Scenario, hosts: Sequence[OwnHost], where: str) -> dict[str, Any]:
    """Find the host of each machine, and the place of each disk.

    Parameters
    ----------
    scenario
        From `as_own`.
    hosts
        As the file names them; those that the scenario does not need are left alone.
    where
        The file, for messages.

    Returns
    -------
    dict
        For the manifest: `token` of what the run makes, and by machine how it is reached and its places.

    Raises
    ------
    UsageError
        When a machine has no host, or a disk no place of its own.
    """
    needed = list(dict.fromkeys(arm.machine for arm in scenario.arm))
    by_machine = {host.machine: host for host in hosts}
    missing = [name for name in needed if name not in by_machine]
    if missing:
        raise UsageError(
            f"{where}: no [[host]] stands for {' and '.join(missing)} of scenario {scenario.name}; "
            "give a host that name, or that role"
        )
    return {
        "file": where,
        "token": secrets.token_hex(TOKEN_BYTES),
        "hosts": {name: _entry(scenario, name, by_machine[name], where) for name in needed},
    }


def _entry(scenario: Scenario, machine: str, host: OwnHost, where: str) -> dict[str, Any]:
    disks = list(dict.fromkeys(arm.disk for arm in scenario.arm if arm.machine == machine))
    places = _places(host, disks, f"{where}: [[host]] {host.name}")
    over_ssh = {"port": host.port, "user": host.user, "host_key": host.host_key}
    return {
        "name": host.name,
        "address": host.address,
        **(over_ssh if host.address else {}),
        "identity_file": host.identity_file,
        "folder": host.folder,
        "places": {disk: _place(place) for disk, place in places.items()},
    }


def _places(host: OwnHost, disks: Sequence[str], where: str) -> dict[str, Folder | BlockDevice]:
    """Place of each disk: by its name, or the only one for the only one."""
    listed: list[Folder | BlockDevice] = [*host.paths, *host.devices]
    if len(disks) == len(listed) == 1 and listed[0].disk is None:
        return {disks[0]: listed[0]}
    chosen: dict[str, Folder | BlockDevice] = {}
    for place in listed:
        if place.disk is None:
            raise UsageError(
                f'{where}: {place.path} does not say which disk it stands for; write {{ disk = "{disks[0]}", '
                f'path = "{place.path}" }}'
            )
        if place.disk not in disks:
            raise unknown("disk", place.disk, disks, where)
        if place.disk in chosen:
            raise UsageError(f"{where}: two places stand for disk {place.disk}; leave one out")
        chosen[place.disk] = place
    missing = [disk for disk in disks if disk not in chosen]
    if missing:
        raise UsageError(
            f"{where}: nothing stands for disk {' and '.join(missing)}; add it to paths or devices"
        )
    return chosen


def _place(place: Folder | BlockDevice) -> dict[str, Any]:
    if isinstance(place, BlockDevice):
        return {"device": place.path, "allow_destroy": place.allow_destroy}
    return {"path": place.path}
