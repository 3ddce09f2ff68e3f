"""Read the file that names your own hosts: `[[host]]` tables, strict about their keys.

Fit a scenario to these hosts: name what of it needs Azure, and which place serves as which disk.
"""

import base64
import binascii
import posixpath
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from diskbook.design.model import Disk, Name, Scenario
from diskbook.facts import files
from diskbook.facts.catalog import OWN_DISK, OWN_HOST
from diskbook.facts.disk_options import OPTIONS
from diskbook.facts.errors import UsageError, is_visible, unknown
from diskbook.facts.validation import Wording, mistakes, refusal

KEY_KINDS = ("ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521", "ssh-rsa")
HOW_TO_GET_A_KEY = (
    "on the host itself 'cat /etc/ssh/ssh_host_ed25519_key.pub' prints it; what ssh-keyscan prints holds "
    "only once you have compared it with that"
)


def _listed(raw: Any) -> Any:
    """Turn the short form of a place, a string, into its table."""
    return {"path": raw} if isinstance(raw, str) else raw


def _absolute(path: Any) -> Any:
    if not isinstance(path, str) or not is_visible(path):
        raise ValueError("write a path in one line of text")
    if not path.startswith("/"):
        raise ValueError(f"'{path}' is relative; write the whole path, from / on")
    if posixpath.normpath(path) != path.rstrip("/") and path != "/":
        raise ValueError(f"'{path}' has . or .. or // in it; write {posixpath.normpath(path)}")
    return path.rstrip("/") or "/"


AbsolutePath = Annotated[str, BeforeValidator(_absolute)]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Folder(_Record):
    """A folder to measure in, or a file that is not there yet; a host with one place may omit its `disk`."""

    path: AbsolutePath
    disk: Name | None = None


class BlockDevice(_Record):
    """A block device to measure; one that holds anything is written only with `allow_destroy`."""

    path: AbsolutePath
    disk: Name | None = None
    allow_destroy: bool = False


class OwnHost(_Record):
    """A host of the user's own; without `address` it is this machine.

    `name` or `role` is that of the scenario's machine. Tools print in `folder`, by default the first measured
    one.
    """

    name: Name
    role: Name | None = None
    address: Annotated[str, Field(pattern=r"^[A-Za-z0-9._:%-]{1,253}$")] | None = None
    port: Annotated[int, Field(ge=1, le=65535, strict=True)] = 22
    user: Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.@\\-]{0,63}$")] | None = None
    identity_file: str | None = None
    host_key: str | None = None
    os: Literal["linux"] = "linux"
    folder: AbsolutePath | None = None
    paths: tuple[Annotated[Folder, BeforeValidator(_listed)], ...] = ()
    devices: tuple[Annotated[BlockDevice, BeforeValidator(_listed)], ...] = ()

    model_config = ConfigDict(frozen=True, extra="forbid", strict=False)

    @field_validator("host_key")
    @classmethod
    def _is_a_key(cls, line: str | None) -> str | None:
        return None if line is None else _checked_key(line)

    @field_validator("os", mode="before")
    @classmethod
    def _is_linux(cls, system: Any) -> Any:
        if system != "linux":
            raise ValueError(f"hosts of your own run Linux, with fio; {system!r} is not measured there")
        return system

    @model_validator(mode="after")
    def _fits(self) -> "OwnHost":
        over_ssh = ("user", "identity_file", "host_key")
        if self.address is None:
            given = [key for key in (*over_ssh, "port") if key in self.model_fields_set]
            if given:
                raise ValueError(f"{given[0]} goes with an address; without one it is this machine")
        else:
            missing = [key for key in over_ssh if getattr(self, key) is None]
            if missing:
                how = f": {HOW_TO_GET_A_KEY}" if missing[0] == "host_key" else ""
                raise ValueError(f"the key '{missing[0]}' is missing, which an address needs{how}")
        if not self.paths and not self.devices:
            raise ValueError("it names nothing to measure; give paths or devices")
        return self

    @property
    def machine(self) -> str:
        """Name of the scenario's machine that this host is used as."""
        return self.role or self.name


class HostsFile(_Record):
    """The file as a whole."""

    host: Annotated[tuple[OwnHost, ...], Field(min_length=1)]

    model_config = ConfigDict(frozen=True, extra="forbid", strict=False)


WORDING = Wording(
    sentences={
        "missing": "{place}: the key '{key}' is missing",
        "missing host": "write one [[host]] for each host",
        "too_short": "write at least one [[{key}]]",
        "value_error": "{at}: {message}",
        "string_pattern_mismatch": "{place}: {key} = {value} cannot be one",
        "string_pattern_mismatch name": "{place}: {value} is not a name; use small letters, digits and "
        "hyphens, a letter first",
    }
)


def read(path: str | Path) -> tuple[OwnHost, ...]:
    """Read a file of hosts. UsageError with a line per mistake: what is wrong, and what to do."""
    file = Path(path)
    raw = files.read_toml(file, f"there is no file of hosts {file}")
    try:
        hosts = HostsFile.model_validate(raw).host
    except ValidationError as error:
        texts = [mistake.text for mistake in mistakes(error, HostsFile, raw, WORDING)]
        raise refusal(file.name, texts, raw) from None
    if texts := [*_twins(hosts), *_without_key(hosts, file)]:
        raise refusal(file.name, texts, raw)
    return tuple(_with_key(host, file) for host in hosts)


def _twins(hosts: Sequence[OwnHost]) -> Iterator[str]:
    """Say which names and roles several hosts have."""
    for key, what in (("name", "name"), ("machine", "role")):
        names = [getattr(host, key) for host in hosts]
        for name in sorted({name for name in names if names.count(name) > 1}):
            yield f"two hosts have the {what} '{name}'; {what}s must differ"


def this_machine(machine: str, folder: str) -> OwnHost:
    """Make the host that stands for this machine where no file names any."""
    return OwnHost(name=machine, paths=(Folder(path=_absolute(folder)),))


def _key_of(host: OwnHost, file: Path) -> Path | None:
    """Path of the identity file: from the user's home, or beside the file of hosts."""
    named = host.identity_file
    return (file.resolve().parent / Path(named).expanduser()).resolve() if named is not None else None


def _without_key(hosts: Sequence[OwnHost], file: Path) -> Iterator[str]:
    """Say which identity files do not exist."""
    for host in hosts:
        key = _key_of(host, file)
        if key is not None and not key.is_file():
            yield (
                f"[[host]] {host.name}: there is no identity_file {host.identity_file}; name the private key "
                "that signs in there"
            )


def _with_key(host: OwnHost, file: Path) -> OwnHost:
    key = _key_of(host, file)
    return host if key is None else host.model_copy(update={"identity_file": str(key)})


def _checked_key(line: str) -> str:
    """Return kind and key of a public key's line; raises ValueError for anything else."""
    kind, _, rest = line.strip().partition(" ")
    blob = rest.split(" ")[0]
    try:
        content = base64.b64decode(blob, validate=True)
    except binascii.Error:
        content = b""
    length = int.from_bytes(content[:4], "big")
    if kind not in KEY_KINDS or content[4 : 4 + length] != kind.encode() or len(content) <= 4 + length:
        raise ValueError(
            'this is not a line of a public host key; write for example "ssh-ed25519 AAAAC3Nz...": '
            f"{HOW_TO_GET_A_KEY}"
        )
    return f"{kind} {blob}"


TOKEN_BYTES = 4


def as_own(scenario: Scenario) -> Scenario:
    """Return the scenario as it is on hosts of one's own: without sizes, SKUs, zones and options of Azure.

    Raises UsageError with the first thing it needs that only Azure has.
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
    """Find the host of each machine, and the place of each disk, for a scenario from `as_own`.

    Returns for the manifest: `token` of what the run makes, and by machine how it is reached and its places.
    Hosts that are not needed are left alone; `where` is the file, for messages. Raises UsageError when a
    machine has no host, or a disk no place of its own.
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
