"""Begin and end a run on your own hosts: check all, make what is measured, and remove it.

The manifest's `places` are what the run makes, each recorded before it is made. The machines stay, so what
is gone in between (a teardown, a restart) is made again for the same replicate.

Hosts are reached over SSH, or this very machine without it. Commands run in a folder of the run's own there,
since a home is its user's, and in the C locale.
"""

import contextlib
import hashlib
import os
import shlex
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import paramiko

from diskbook.facts.catalog import OWN_DISK, OWN_HOST
from diskbook.facts.errors import DiskbookError
from diskbook.facts.units import KIB
from diskbook.hosts import ssh, targets
from diskbook.hosts.ssh import Connection, Host
from diskbook.results.run import Run, now_utc
from diskbook.tools import registry

KEY = "inventory"
"""Of the manifest: the hosts, as `hosts_file.placed` found them. Only a run on hosts of one's own has it."""
REPLICATE = 1
FULL_BYTES = 64 * KIB
"""Less than this is left on a disk that is full: not what a tool prints of a trial."""
_NO_LIMITS = dict.fromkeys(("iops", "mb_s", "burst_iops", "burst_mb_s"))
_UNKNOWN: dict[str, Any] = {"logical_zone": None, "physical_zone": None, "limits": _NO_LIMITS}
_FACTS = "uname -sr; {version} 2>&1 | head -n 1; cat /etc/machine-id 2>/dev/null || hostname"

Say = Callable[[str], None]


@dataclass
class _Session:
    """A host while a run is begun on it: its connection, and what was found out there."""

    machine: str
    entry: Mapping[str, Any]
    connection: Connection
    software: dict[str, str]
    work: str = ""
    folders: tuple[str, ...] = ()
    places: tuple[tuple[targets.Place, dict[str, Any]], ...] = ()


def is_own(manifest: Mapping[str, Any]) -> bool:
    """Whether a run is measured on hosts of the user's own."""
    return manifest.get("cloud") == KEY


def connection(manifest: Mapping[str, Any], machine: str, folder: str = "/") -> Connection:
    """Make the connection to a machine of a run, working in a folder there; connects when first needed."""
    entry = manifest[KEY]["hosts"][machine]
    if entry["address"] is None:
        return LocalConnection(entry["name"], folder)
    return OwnHostConnection(_host(entry), folder)


def provision(run: Run) -> None:
    """Check every host and place, and only then make what is measured; what stands already is taken.

    Raises DiskbookError with the first thing that does not fit; unless something was made, nothing was
    written.
    """
    with contextlib.ExitStack() as stack:
        sessions = [_checked(run, machine, stack) for machine in run.manifest[KEY]["hosts"]]
        _check_apart(sessions)
        _record(run, sessions)
        for session in sessions:
            for folder in session.folders:
                targets.make_folder(session.connection, session.entry["name"], folder)
            for place, read_back in session.places:
                _make(run, session, place, read_back)


def teardown(run: Run, say: Say) -> None:
    """Remove what the run has made on its hosts, and nothing else; say what is left, and why.

    A host that does not answer keeps what it has, to be removed once it answers.
    """
    for machine in dict.fromkeys(row["machine"] for row in standing(run.manifest)):
        entry = run.manifest[KEY]["hosts"][machine]
        try:
            if entry["address"] is not None:
                try_once(_host(entry))
            with connection(run.manifest, machine) as link:
                _remove_all(run, machine, link, say)
        except DiskbookError as error:
            say(f"left: {error}; 'diskbook teardown {run.name}' removes what is there once that is mended")


def check_room(run: Run, error: DiskbookError) -> None:
    """Raise DiskbookError, from the error that led here, when the disk of a host is full."""
    for machine, entry in run.manifest[KEY]["hosts"].items():
        with contextlib.suppress(DiskbookError, ValueError):
            if entry["address"] is not None:
                try_once(_host(entry))
            work = work_folder(run.manifest, machine)
            with connection(run.manifest, machine, work) as link:
                room = int(link.check("df --output=avail -B1 . | tail -n 1"))
            if room < FULL_BYTES:
                break
    else:
        return
    raise DiskbookError(f"host {entry['name']}: the disk of {work} is full; make room there") from error


def standing(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Places of a run that are not removed, as its manifest has them."""
    return [row for row in manifest.get("places", ()) if not row["removed_utc"]]


def standing_text(manifest: Mapping[str, Any]) -> str:
    """Say what of a run stands on hosts of the user's own; "" where nothing does."""
    listed = [f"{row['path']} on {row['host']}" for row in standing(manifest)]
    return f"not torn down: {', '.join(listed)}" if listed else ""


def work_folder(manifest: Mapping[str, Any], machine: str) -> str:
    """Folder of a machine in which tools run."""
    row: Mapping[str, Any] = manifest["replicates"][0]["machines"][machine]
    return str(row["work"])


def place_of(manifest: Mapping[str, Any], disk: str) -> targets.Place:
    """Place of a disk, as it was made."""
    row = manifest["replicates"][0]["disks"][disk]
    return targets.Place(**row["place"])


# --- before anything is written


def _checked(run: Run, machine: str, stack: contextlib.ExitStack) -> _Session:
    """Look at a host and at its places; nothing is written."""
    manifest = run.manifest
    entry = manifest[KEY]["hosts"][machine]
    if entry["address"] is not None:
        try_once(_host(entry))
    link = stack.enter_context(connection(manifest, machine))
    session = _Session(machine, entry, link, _software(run, machine, link))
    needed = max(load.working_set_bytes for load in run.scenario.workload)
    token, folders, listed = manifest[KEY]["token"], [], []
    for disk, asked in entry["places"].items():
        place, read_back = _looked_at(session, run, disk, asked, needed)
        listed.append((place, read_back))
        folders += [place.folder] if place.folder else []
    if entry["folder"] is not None:
        folders.insert(0, _work_folder(session, entry["folder"], token))
    if not folders:
        raise DiskbookError(
            f"host {entry['name']}: what the tools print needs a folder there, and only a device or new file "
            'is named; write folder = "/..." for it'
        )
    session.work, session.places = folders[0], tuple(listed)
    session.folders = tuple(dict.fromkeys(folders))
    return session


def _looked_at(
    session: _Session, run: Run, disk: str, asked: dict[str, Any], needed: int
) -> tuple[targets.Place, dict[str, Any]]:
    """Place of a disk, and what is recorded of it, if it may be written; that of an earlier session may."""
    name, token = session.entry["name"], run.manifest[KEY]["token"]
    path = asked.get("device") or asked["path"]
    facts = targets.look(session.connection, path)
    place = targets.of(asked, disk, token, facts["kind"] == "folder", needed)
    earlier = _earlier(run, disk)
    if earlier is not None and earlier["place"] == vars(place):
        with contextlib.suppress(DiskbookError):
            targets.known(session.connection, name, place, earlier["read_back"])
            return place, earlier["read_back"]
    if place.is_device:
        read_back = targets.check_device(session.connection, name, place, facts)
        run.append(
            "notice",
            text=f"host {name}: {path}: {read_back['held_before'] or 'is empty'} "
            f"(looked at: {read_back['looked_at']})",
        )
        return place, read_back
    targets.check_folder(name, path, facts)
    return place, targets.check_file(name, place, facts)


def _earlier(run: Run, disk: str) -> dict[str, Any] | None:
    rows = run.manifest["replicates"]
    entry: dict[str, Any] | None = rows[0]["disks"].get(disk) if rows else None
    return entry


def _work_folder(session: _Session, path: str, token: str) -> str:
    facts = targets.look(session.connection, path)
    targets.check_folder(session.entry["name"], path, facts)
    if facts["kind"] != "folder":
        raise DiskbookError(f"host {session.entry['name']}: folder {path} is not there; make it first")
    return targets.own_folder(path, token)


def _software(run: Run, machine: str, link: Connection) -> dict[str, str]:
    """Ask a host for its system, its tool, and which machine it is."""
    tool = registry.TOOLS[run.scenario.machine_named(machine).tools[0]]
    lines = link.check(_FACTS.format(version=tool.install.version)).decode(errors="replace").splitlines()
    name = link.host.name
    if len(lines) < 3 or not lines[1].startswith(tool.name):
        packages = " ".join(tool.install.packages)
        raise DiskbookError(
            f"host {name} has no {tool.title}; install it there, as by 'apt install {packages}'"
        )
    if not lines[0].startswith("Linux"):
        raise DiskbookError(f"host {name} runs {lines[0]}, and hosts of your own are measured on Linux")
    identity = hashlib.sha256(lines[2].encode()).hexdigest()[:12]
    rows = run.manifest["replicates"]
    began = rows[0]["machines"][machine]["identity"] if rows else identity
    if began != identity:
        raise DiskbookError(f"host {name} is another machine than the run began on; begin a new run")
    return {"kernel": lines[0], "tool_version": tool.version(lines[1].strip()), "identity": identity}


def _check_apart(sessions: list[_Session]) -> None:
    """No two disks may be one file or device, by whatever names."""
    seen: dict[tuple[str, str], str] = {}
    for session in sessions:
        for place, read_back in session.places:
            target = read_back.get("real") or place.target
            other = seen.setdefault((session.software["identity"], target), place.disk)
            if other != place.disk:
                raise DiskbookError(
                    f"disks {other} and {place.disk} are both {target} of one machine; name two"
                )


# --- what is made


def _record(run: Run, sessions: list[_Session]) -> None:
    """Write down what is about to be made: what is on record can always be found and removed."""
    rows = {(row["machine"], row["path"]): row for row in run.manifest.get("places", [])}
    for session in sessions:
        named: list[tuple[str, str, str | None]] = [(folder, "folder", None) for folder in session.folders]
        named += [(place.target, read_back["kind"], place.disk) for place, read_back in session.places]
        for path, kind, disk in named:
            host = {"machine": session.machine, "host": session.entry["name"]}
            new = {**host, "path": path, "kind": kind, "disk": disk, "made_utc": now_utc()}
            rows.setdefault((session.machine, path), new)["removed_utc"] = None
    replicate = {
        "origin": REPLICATE,
        "replicate": REPLICATE,
        "resource_group": "",
        "machines": {session.machine: _machine(session) for session in sessions},
        "disks": {
            place.disk: _disk(session, place, back) for session in sessions for place, back in session.places
        },
        "round_trips": [],
    }
    run.update_manifest(places=list(rows.values()), replicates=[replicate])


def _machine(session: _Session) -> dict[str, Any]:
    return {
        "id": _machine_id(session),
        "size": OWN_HOST,
        "os": "linux",
        **_UNKNOWN,
        "where": "this machine" if session.entry["address"] is None else "over SSH",
        "work": session.work,
        **session.software,
    }


def _disk(session: _Session, place: targets.Place, read_back: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": f"{_machine_id(session)}/{place.disk}",
        "unique_id": place.unique_id,
        "sku": OWN_DISK,
        **_UNKNOWN,
        "where": read_back["where"],
        "place": vars(place),
        "read_back": read_back,
    }


def _machine_id(session: _Session) -> str:
    return f"own/{session.entry['name']}-{session.software['identity']}"


def _make(run: Run, session: _Session, place: targets.Place, read_back: dict[str, Any]) -> None:
    """Make a place, unless it stands; a new one has to be filled, also where one before it was."""
    name = session.entry["name"]
    with contextlib.suppress(DiskbookError):
        targets.known(session.connection, name, place, read_back)
        return
    targets.make(session.connection, name, place, read_back)
    disk_id = run.manifest["replicates"][0]["disks"][place.disk]["id"]
    run.append("marked", replicate=REPLICATE, disk=place.disk, disk_id=disk_id)


# --- and removed


def _remove_all(run: Run, machine: str, link: Connection, say: Say) -> None:
    """Remove a machine's places, folders last, and record each that is gone."""
    rows = [row for row in standing(run.manifest) if row["machine"] == machine]
    work = work_folder(run.manifest, machine)
    if link.run(f"[ -d {shlex.quote(work)} ]").status == 0:
        with connection(run.manifest, machine, work) as inside:
            inside.end_jobs()
    for row in sorted(rows, key=lambda row: row["kind"] == "folder"):
        why_not = _remove(run, link, row)
        if why_not:
            say(f"left: host {row['host']}: {why_not}")
            continue
        say(f"{'released' if row['kind'] == 'device' else 'removed'} {row['path']} on {row['host']}")
        _mark_removed(run, row)


def _remove(run: Run, link: Connection, row: Mapping[str, Any]) -> str:
    if row["kind"] == "folder":
        return targets.remove_folder(link, row["path"])
    entry = run.manifest["replicates"][0]["disks"][row["disk"]]
    filled = any(event["event"] == "prefill" and event["disk_id"] == entry["id"] for event in run.ledger())
    return targets.remove(link, targets.Place(**entry["place"]), entry["read_back"], filled)


def _mark_removed(run: Run, gone: Mapping[str, Any]) -> None:
    removed = {**gone, "removed_utc": now_utc()}
    run.update_manifest(places=[removed if row == gone else row for row in run.manifest["places"]])


def _host(entry: Mapping[str, Any]) -> Host:
    names = ("name", "address", "port", "user", "host_key")
    return Host(**{name: entry[name] for name in names}, private_key=Path(entry["identity_file"]))


HERE = "this machine"
"""Address of a host that is reached without SSH."""
_ENVIRONMENT = 'PATH="$PATH:/usr/sbin:/sbin" LC_ALL=C; export PATH LC_ALL; umask 077'
_KEPT = ("PATH", "HOME", "USER", "LOGNAME", "TMPDIR")
_UNKNOWN_KIND = "not found in known_hosts"  # paramiko's words for a host key of a kind that is not on record


def this_machine(name: str) -> ssh.Host:
    """Return this machine as a host, by its name in the scenario."""
    return ssh.Host(name, HERE, 0, os.environ.get("USER", ""), "", Path())


def in_folder(command: str, folder: str) -> str:
    """Write a command so that any login shell has `sh` run it in a folder."""
    return f"exec sh -c {shlex.quote(f'{_ENVIRONMENT}; cd {shlex.quote(folder)} || exit 1; {command}')}"


class OwnHostConnection(ssh.Connection):
    """An SSH connection to a host of the user's own; see `ssh.Connection`. `folder` must be there."""

    stranger = "it is not the one that the hosts file has; find out why before you trust it"

    def __init__(self, host: ssh.Host, folder: str = "/") -> None:
        super().__init__(host)
        self.folder = folder

    def _run_once(self, command: str, stdin: bytes, timeout_s: float) -> ssh.Output:
        return super()._run_once(in_folder(command, self.folder), stdin, timeout_s)


class LocalConnection(ssh.Connection):
    """This machine in place of one behind SSH: commands run as this user. `folder` must be there."""

    def __init__(self, name: str, folder: str = "/") -> None:
        super().__init__(this_machine(name))
        self.folder = folder

    def run(self, command: str, *, stdin: bytes = b"", timeout_s: float = 60.0) -> ssh.Output:
        """Run a command; nothing breaks here, so it is run once."""
        words = ["sh", "-c", in_folder(command, self.folder)]
        environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
        try:
            done = subprocess.run(
                words,
                input=stdin,
                capture_output=True,
                timeout=timeout_s,
                env=environment,
                start_new_session=True,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise DiskbookError(
                f"machine {self.host.name}: '{command[:40]}' took more than {timeout_s:.0f} s"
            ) from None
        return ssh.Output(done.returncode, done.stdout, done.stderr)

    def follow(self, command: str, *, stdin: bytes = b"", silence_s: float = 60.0) -> Iterator[str]:
        """Run a command and yield its lines once it has ended."""
        output = self.run(command, stdin=stdin, timeout_s=silence_s)
        yield from output.stdout.decode(errors="replace").splitlines()


def try_once(host: ssh.Host) -> None:
    """Connect to a host once, to say what is wrong with it before anything is begun.

    Raises DiskbookError: address, host key, user or key do not fit; no password is ever asked.
    """
    where = f"host {host.name} ({host.user}@{host.address}:{host.port})"
    key = f"identity_file {host.private_key}"
    try:
        ssh.connect(host).close()
    except paramiko.BadHostKeyException:
        raise DiskbookError(
            f"{where} shows another host key than host_key has: {OwnHostConnection.stranger}"
        ) from None
    except paramiko.PasswordRequiredException:
        raise DiskbookError(
            f"{where}: {key} is locked by a passphrase, and none is asked here; name a key without one"
        ) from None
    except paramiko.AuthenticationException:
        raise DiskbookError(
            f"{where} does not let {host.user} in with {key}; add its public half to authorized_keys there"
        ) from None
    except (paramiko.SSHException, EOFError, OSError, ValueError) as error:
        raise DiskbookError(_unreachable(where, error)) from None


def _unreachable(where: str, error: Exception) -> str:
    if _UNKNOWN_KIND in str(error):
        return f"{where} shows a host key of another kind than host_key has; write the line of that kind"
    return f"{where} does not answer ({str(error) or type(error).__name__}); see whether it runs"
