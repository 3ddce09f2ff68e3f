"""Lock a run while a process works on it, and tell which client a resource group belongs to.

A second tag of every group, `diskbook-signature`, signs the group's name, its subscription and its run with
the secret of this user. A signed group is a run's own when the signed manifest of that run names it. Groups
that no manifest here names are told by the tag `diskbook-client`: a client is a folder of runs of one user on
one computer.

Only on the computer where a process works on a run can it be seen whether that process still lives. So the
process notes its computer, and a sweep from another one leaves the group alone.
"""

import contextlib
import hashlib
import secrets
import socket
import time
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path

from diskbook.facts import client, files
from diskbook.facts.errors import DiskbookError
from diskbook.results.run import Run, now_utc

RUN_TAG, CLIENT_TAG, CREATED_TAG = "diskbook-run", "diskbook-client", "diskbook-created"
SIGNATURE_TAG = "diskbook-signature"
_CLIENT = ".client"  # in the folder of runs: a random id
_ID_BYTES = 16
_SESSION = ".session"  # in a run's folder: locked for as long as `diskbook run` works on it
_KEYS = "keys"  # in a run's folder: keys of its machines, which never leave it
HELD = ".held"  # in a run's folder: locked for as long as this client owns the run in a store


class RunState(Enum):
    """What this client knows of the run that a resource group is tagged with."""

    LIVE = "live"  # a process works on it
    KEPT = "kept"  # its machines were left standing on purpose, or are used from notebooks by hand
    ENDED = "ended"  # it was to tear itself down, and no process is left that would
    UNREADABLE = "unreadable"  # its manifest is damaged, was not written here, or is older than the newest
    ABSENT = "absent"  # no run here has such a group


def client_id(runs: Path) -> str:
    """Id of this client, made on first use.

    - `runs`: the folder of runs. The computer's name is part of the id: on a shared folder locks of other
      computers cannot be relied on.

    Raises DiskbookError when the file that holds it is damaged.
    """
    path = runs / _CLIENT
    with contextlib.suppress(FileExistsError):
        files.write_once(path, secrets.token_hex(_ID_BYTES))
    for _ in range(20):
        known = known_client_id(runs)
        if known is not None:
            return known
        time.sleep(0.05)  # another process may be about to write it
    raise DiskbookError(f"{path} is damaged: delete it; groups made so far then stay until they expire")


def known_client_id(runs: Path) -> str | None:
    """Id of this client, None where it has none yet; nothing is written."""
    try:
        own = (runs / _CLIENT).read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    if len(own) != 2 * _ID_BYTES:
        return None
    return hashlib.sha256(f"{own}@{socket.gethostname()}".encode()).hexdigest()[:16]


def tags(run: Run, subscription: str, group: str, prefix: str = "") -> dict[str, str]:
    """Tags of a group, that let a sweep tell this client's groups from others', and their age.

    With a prefix they are those of resources in a group that is not the run's own: nobody could take such a
    group for a run's by them, even if they were copied to it.
    """
    return {
        CLIENT_TAG: client_id(run.folder.parent),
        CREATED_TAG: now_utc()[:19] + "+00:00",
        SIGNATURE_TAG: client.sign(*_words(subscription, group, run.name, prefix)),
    }


def _words(subscription: str, group: str, run: str, prefix: str) -> tuple[str, ...]:
    """What a signature is for, and over."""
    words = (subscription, group.lower(), run)
    return ("resource", *words, prefix) if prefix else ("group", *words)


def is_own_group(
    tags: Mapping[str, str], runs: Path, subscription: str, group: str, prefix: str = ""
) -> bool:
    """Whether a group is one that a sweep from here decides about.

    It was made for the run that it is tagged with, and no process on another computer has that run, as far as
    the folder of runs tells.
    """
    run = Run(runs / tags.get(RUN_TAG, ""))
    return is_group_of(run, tags, subscription, group, prefix) and not _is_elsewhere(run)


def is_group_of(run: Run, tags: Mapping[str, str], subscription: str, group: str, prefix: str = "") -> bool:
    """Whether a group was made for a run: signed by this user, and of this run by one of three signs.

    Its signed manifest names the group, whatever this computer is called by now; or this client owns the run
    in a store, so that no other works on it; or the group carries the tag of this client.
    """
    if not is_signed(tags, subscription, group, prefix):
        return False
    if _names(run, group) or files.is_locked(run.folder / HELD):
        return True
    own = known_client_id(run.folder.parent)
    return own is not None and tags.get(CLIENT_TAG) == own


def _names(run: Run, group: str) -> bool:
    """Whether a run that was begun in this folder names a group in its signed manifest.

    Only there are its keys: a copy, which another client with the same secret may work on, has none.
    """
    if not (run.folder / _KEYS).is_dir():
        return False
    with contextlib.suppress(DiskbookError):
        names = (row["name"].lower() for row in run.manifest["resource_groups"])
        return run.is_signed and group.lower() in names
    return False


def is_signed(tags: Mapping[str, str], subscription: str, group: str, prefix: str = "") -> bool:
    """Whether this user signed tags for a group, or with a prefix for resources in a group."""
    words = _words(subscription, group, tags.get(RUN_TAG, ""), prefix)
    return client.is_signed(tags.get(SIGNATURE_TAG), *words)


@contextlib.contextmanager
def held(run: Run) -> Iterator[None]:
    """Note that this client owns a run in a store, for the length of a with block."""
    busy = DiskbookError(f"run {run.name} is being worked on by another process")
    with files.locked(run.folder / HELD, busy):
        try:
            yield
        finally:
            (run.folder / HELD).unlink(missing_ok=True)


@contextlib.contextmanager
def session(run: Run) -> Iterator[None]:
    """Lock a run for the length of a with block: a process works on it, also between its stages.

    Raises DiskbookError when another process works on it.
    """
    busy = DiskbookError(f"run {run.name} is being worked on by another process")
    with files.locked(run.folder / _SESSION, busy) as file:
        with contextlib.suppress(OSError):  # a full disk is told by what cannot do without it
            file.truncate(0)
            file.write(" ".join(_computer()).encode())
            file.flush()
        try:
            yield
        finally:
            file.truncate(0)


def _computer() -> list[str]:
    """Ids of this computer that stay when its name changes: of the installed system, and of the boot."""
    ids = []
    for path in ("/etc/machine-id", "/proc/sys/kernel/random/boot_id"):
        with contextlib.suppress(OSError):
            ids += Path(path).read_text("ascii").split()
    return ids


def _is_elsewhere(run: Run) -> bool:
    """Whether a process on another computer has noted that it works on a run, and not that it has ended.

    Containers on one computer share its boot, and a computer keeps its installed system when it boots again.
    """
    try:
        noted = (run.folder / _SESSION).read_text("ascii").split()
    except (OSError, UnicodeDecodeError):
        return False
    return bool(noted) and not set(noted) & set(_computer())


def record_kept(run: Run, keep: bool) -> None:
    """Record whether machines are to be left standing; a sweep asks for it should the process be killed."""
    manifest = run.manifest
    stand = any(not row["deleted_utc"] for row in manifest["resource_groups"])
    if stand or not run.done("benchmark"):  # a finished run, sample runs among them, stays as it is
        run.update_manifest(kept=keep)


def is_worked_on(run: Run) -> bool:
    """Whether a process works on a run: `diskbook run`, or one of its stages."""
    return any(files.is_locked(run.folder / name) for name in (_SESSION, ".lock"))


def run_state(run: Run, group: str) -> RunState:
    """Say what is known here of the run that a resource group is tagged with.

    - `run`: where the run would be.
    - `group`: name of the group; an earlier run of the same name does not speak for it.
    """
    if not (run.folder / "manifest.json").exists():
        return RunState.ABSENT
    try:
        manifest, signed = run.manifest, run.is_signed
    except DiskbookError:
        return RunState.UNREADABLE
    named = (row["name"].lower() for row in manifest["resource_groups"])
    if signed and group.lower() not in named:
        return RunState.ABSENT
    if is_worked_on(run):
        return RunState.LIVE
    if not signed:
        return RunState.UNREADABLE
    # Only `diskbook run` writes `kept`. Without it the notebooks are used by hand, and nobody says when
    # that has ended.
    return RunState.KEPT if manifest.get("kept", True) else RunState.ENDED
