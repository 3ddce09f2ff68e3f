"""Lock a run while a process works on it, and tell which client a resource group belongs to.

A client is a folder of runs of one user on one computer: only there can it be seen whether the process of a
run still lives. Its id goes into the tag `diskbook-client` of every group. Whoever may write tags can copy
that, so a second tag, `diskbook-signature`, signs the group's name, its subscription and its run with the
secret of this user: a sweep from anywhere else leaves the group alone.
"""

from __future__ import annotations

import contextlib
import hashlib
import secrets
import socket
import time
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path

from diskbook.base import client, files
from diskbook.base.errors import DiskbookError
from diskbook.store.run import Run, now_utc

RUN_TAG, CLIENT_TAG, CREATED_TAG = "diskbook-run", "diskbook-client", "diskbook-created"
SIGNATURE_TAG = "diskbook-signature"
_CLIENT = ".client"  # in the folder of runs: a random id
_ID_BYTES = 16
_SESSION = ".session"  # in a run's folder: locked for as long as `diskbook run` works on it
_HELD = ".held"  # in a run's folder: locked for as long as this client owns the run in a store


class RunState(Enum):
    """What this client knows of the run that a resource group is tagged with."""

    LIVE = "live"  # a process works on it
    KEPT = "kept"  # its machines were left standing on purpose, or are used from notebooks by hand
    ENDED = "ended"  # it was to tear itself down, and no process is left that would
    UNREADABLE = "unreadable"  # its manifest is damaged, or was not written here
    ABSENT = "absent"  # no run here has such a group


def client_id(runs: Path) -> str:
    """Id of this client, made on first use.

    Parameters
    ----------
    runs
        The folder of runs. The computer's name is part of the id: on a shared folder locks of other
        computers cannot be relied on.

    Raises
    ------
    DiskbookError
        When the file that holds it is damaged.
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


def tags(run: Run, subscription: str, group: str) -> dict[str, str]:
    """Tags of a group, that let a sweep tell this client's groups from others', and their age."""
    return {
        CLIENT_TAG: client_id(run.folder.parent),
        CREATED_TAG: now_utc()[:19] + "+00:00",
        SIGNATURE_TAG: client.sign("group", subscription, group.lower(), run.name),
    }


def is_own_group(tags: Mapping[str, str], runs: Path, subscription: str, group: str) -> bool:
    """Whether a group was made by this client, for the run that it is tagged with."""
    own = known_client_id(runs)
    return own is not None and tags.get(CLIENT_TAG) == own and _is_signed(tags, subscription, group)


def is_group_of(run: Run, tags: Mapping[str, str], subscription: str, group: str) -> bool:
    """Whether a group was made for a run by this client, or by one with its secret that owned the run before.

    The latter only while this client owns the run in a store: then no other works on it.
    """
    if files.is_locked(run.folder / _HELD):
        return _is_signed(tags, subscription, group)
    return is_own_group(tags, run.folder.parent, subscription, group)


def _is_signed(tags: Mapping[str, str], subscription: str, group: str) -> bool:
    words = (subscription, group.lower(), tags.get(RUN_TAG, ""))
    return client.is_signed(tags.get(SIGNATURE_TAG), "group", *words)


@contextlib.contextmanager
def held(run: Run) -> Iterator[None]:
    """Note that this client owns a run in a store, for the length of a with block."""
    busy = DiskbookError(f"run {run.name} is being worked on by another process")
    with files.locked(run.folder / _HELD, busy):
        yield


@contextlib.contextmanager
def session(run: Run) -> Iterator[None]:
    """Lock a run for the length of a with block: a process works on it, also between its stages.

    Raises
    ------
    DiskbookError
        When another process works on it.
    """
    busy = DiskbookError(f"run {run.name} is being worked on by another process")
    with files.locked(run.folder / _SESSION, busy):
        yield


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

    Parameters
    ----------
    run
        Where the run would be.
    group
        Name of the group; an earlier run of the same name does not speak for it.
    """
    if not (run.folder / "manifest.json").exists():
        return RunState.ABSENT
    try:
        manifest, signed = run.manifest, run.is_signed
    except DiskbookError:
        return RunState.UNREADABLE
    if group.lower() not in (row["name"].lower() for row in manifest["resource_groups"]):
        return RunState.ABSENT
    if is_worked_on(run):
        return RunState.LIVE
    if not signed:
        return RunState.UNREADABLE
    # Only `diskbook run` writes `kept`. Without it the notebooks are used by hand, and nobody says when
    # that has ended.
    return RunState.KEPT if manifest.get("kept", True) else RunState.ENDED
