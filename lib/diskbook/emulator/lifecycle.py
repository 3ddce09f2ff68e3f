"""Start, find and stop emulators; several run side by side, each with a name and a state folder.

An emulator lives as long as its server process holds the lock in its folder. Its folder lies in a short place
of its own (`/tmp/diskbook-<user id>/<name>`), since the paths of Unix sockets are limited.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import secrets
import select
import shutil
import signal
import ssl
import stat
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from diskbook.emulator import processes
from diskbook.emulator.profile import load_profile
from diskbook.emulator.types import Json
from diskbook.errors import DiskbookError, UsageError, unknown

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
FOLDER_MAX = 90  # bytes; leaves room for a socket's name below it
START_S = 60.0
STOP_S = 20.0
DEFAULT_SEED = 1
DEFAULT_TIME_SCALE = 0.01
TRUTH_PATH = "/diskbook/truth"

CONFIG, CONNECTION, LOCK, KEEP, LOG = "config.json", "connection.json", "lock", "keep", "server.log"


@dataclass(frozen=True)
class Connection:
    """All a client needs: where the control plane is, how to trust it and who may log in to machines."""

    name: str
    endpoint: str
    ca_path: Path
    token: str = field(repr=False)
    subscription_id: str
    tenant_id: str
    time_scale: float
    profile: str
    seed: int
    admin_user: str
    pid: int
    started: float
    folder: Path


@dataclass(frozen=True)
class Status:
    """One emulator as `status` shows it.

    `state` is "running", "kept" (stopped, its state kept) or "dead" (it ended without being stopped).
    """

    name: str
    state: str
    folder: Path
    profile: str
    seed: int
    endpoint: str | None
    pid: int | None


_children: dict[str, subprocess.Popen[bytes]] = {}  # servers started by this process, to reap them
_owner_pipes: dict[str, int] = {}  # open for as long as an owned emulator is to live


def home() -> Path:
    """Return the folder of this user's emulators, which need not exist; it is closed to others.

    Raises
    ------
    UsageError
        The folder belongs to somebody else.
    """
    name = f"diskbook-{os.getuid()}"
    short = [Path(place) / name for place in (os.environ.get("TMPDIR") or "/tmp", "/tmp")]
    folder = next((path for path in short if len(os.fsencode(path)) <= FOLDER_MAX - 33), short[-1]).resolve()
    if not folder.exists():
        return folder
    info = folder.stat()
    if info.st_uid != os.getuid() or stat.S_IMODE(info.st_mode) & 0o077:
        raise UsageError(f"{folder} is not yours alone: remove it, or set TMPDIR to a folder of your own.")
    return folder


def start(
    name: str,
    *,
    profile: str | None = None,
    seed: int | None = None,
    time_scale: float | None = None,
    owner: bool = False,
    folder: Path | None = None,
    faults: Sequence[Json] = (),
    port: int | None = None,
) -> Connection:
    """Start an emulator and return once it answers.

    The state of one that was killed, or stopped with its state kept, is resumed: same endpoint, machines,
    disks and data.

    Parameters
    ----------
    name
        Lower-case letters, digits and hyphens, at most 32.
    profile, seed
        The truth it plays; "default" and 1, or those of the state that is resumed.
    time_scale
        Share of Azure's waiting times that is really slept.
    owner
        The emulator ends, and its folder goes, when this process ends, however it ends.
    folder
        State folder instead of the usual one; at most 90 bytes long.
    faults
        Faults to inject into the control plane (see `arm/faults.py`).
    port
        Port of the control plane; a free one when not given.

    Raises
    ------
    UsageError
        The name is in use or cannot be a name, a program is missing, the port is in use, the profile is
        wrong, or the state to resume was made with another profile or seed.
    """
    if not NAME.fullmatch(name):
        raise UsageError(f"'{name}' cannot be an emulator's name: use up to 32 of a-z, 0-9 and -.")
    state = _state_folder(name, folder)
    if is_running(state):
        raise UsageError(f"an emulator '{name}' is running already: stop it first, or choose another name.")
    fresh = not (state / CONFIG).exists()
    if not fresh:
        processes.clear(state)  # a watchdog still at work would end the new machines' jobs
    try:
        _write_config(state, name, profile, seed, time_scale, tuple(faults), port)
        _launch(state, name, owner)
    except BaseException:
        if fresh:
            _remove(name, state)
        raise
    return connect(name)


def stop(name: str, keep_state: bool = False) -> None:
    """Stop an emulator and remove its state, also of one that was killed.

    Parameters
    ----------
    name
        The emulator.
    keep_state
        Keep its folder, so that `start` resumes it.

    Raises
    ------
    UsageError
        There is no such emulator.
    """
    state = _find(name)
    pipe = _owner_pipes.pop(name, None)
    if is_running(state):
        if keep_state:
            (state / KEEP).touch()
        _end(state)
    if pipe is not None:
        os.close(pipe)
    _reap(name)
    processes.clear(state)
    if not keep_state:
        _remove(name, state)


def status() -> list[Status]:
    """Return this user's emulators, by name."""
    found = []
    for name in _names():
        state = (home() / name).resolve()
        config = _read(state / CONFIG)
        running = is_running(state)
        connection = _read(state / CONNECTION) if running else {}
        found.append(
            Status(
                name=name,
                state="running" if running else "kept" if (state / KEEP).exists() else "dead",
                folder=state,
                profile=str(config.get("profile", "?")),
                seed=int(config.get("seed", 0)),
                endpoint=connection.get("endpoint"),
                pid=connection.get("pid"),
            )
        )
    return found


def connect(name: str) -> Connection:
    """Return how to reach a running emulator.

    Raises
    ------
    UsageError
        There is no such emulator, or it is dead.
    """
    state = _find(name)
    if not is_running(state):
        raise UsageError(
            f"the emulator '{name}' does not run, it was killed or its state was kept: "
            f"start it again to go on, or stop it to remove what is left in {state}."
        )
    document = _read(state / CONNECTION)
    if not document:
        raise UsageError(f"the emulator '{name}' is still starting: try again in a moment.")
    return Connection(**{**document, "ca_path": Path(document["ca_path"]), "folder": state})


def read_truth(connection: Connection) -> Json:
    """Ask a running emulator for the truth it plays and has played. No analysis may use it."""
    request = urllib.request.Request(
        connection.endpoint + TRUTH_PATH, headers={"Authorization": f"Bearer {connection.token}"}
    )
    context = ssl.create_default_context(cafile=str(connection.ca_path))
    with urllib.request.urlopen(request, context=context, timeout=30.0) as answer:
        document: Json = json.load(answer)
    return document


def is_running(state: Path) -> bool:
    """Tell whether a server holds the lock of this state folder."""
    try:
        with (state / LOCK).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def _names() -> list[str]:
    return sorted(path.name for path in home().glob("*") if NAME.fullmatch(path.name))


def _find(name: str) -> Path:
    if name not in _names():
        raise unknown("emulator", name, _names())
    return (home() / name).resolve()


def _state_folder(name: str, folder: Path | None) -> Path:
    """Return the state folder, made when missing; one elsewhere is linked from the usual place."""
    usual = home() / name
    usual.parent.mkdir(mode=0o700, exist_ok=True)
    if folder is None:
        state = usual.resolve()
    else:
        state = folder.resolve()
        if usual.exists() and usual.resolve() != state:
            raise UsageError(f"the emulator '{name}' has its state in {usual.resolve()}: stop it first.")
    if len(os.fsencode(state)) > FOLDER_MAX:
        raise UsageError(
            f"the folder {state} has a path longer than {FOLDER_MAX} bytes, too long for the sockets in it."
        )
    if state.exists() and any(state.iterdir()) and not (state / CONFIG).exists():
        raise UsageError(f"{state} is not empty and holds no emulator's state: choose another folder.")
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    if state != usual.resolve():
        usual.unlink(missing_ok=True)
        usual.symlink_to(state)
    return state


def _write_config(
    state: Path,
    name: str,
    profile: str | None,
    seed: int | None,
    time_scale: float | None,
    faults: tuple[Json, ...],
    port: int | None,
) -> None:
    before = _read(state / CONFIG)
    wanted_profile = str(Path(profile).resolve()) if profile and profile.endswith(".toml") else profile
    for key, wanted in (("profile", wanted_profile), ("seed", seed)):
        if before and wanted is not None and before[key] != wanted:
            raise UsageError(
                f"the emulator '{name}' has kept its state, made with {key} {before[key]}: "
                "start it without another, or stop it first to begin anew."
            )
    config = {
        "profile": wanted_profile or "default",
        "seed": DEFAULT_SEED if seed is None else seed,
        "token": secrets.token_urlsafe(24),
        "subscription_id": str(uuid.uuid4()),
        "tenant_id": str(uuid.uuid4()),
        "port": None,
        **before,
        "name": name,
        "time_scale": before.get("time_scale", DEFAULT_TIME_SCALE) if time_scale is None else time_scale,
        "faults": list(faults),
        "link": str(home() / name),
    }
    if port is not None:
        config["port"] = port
    load_profile(config["profile"])  # a mistake in it is told here
    write_private(state / CONFIG, config)


def _launch(state: Path, name: str, owner: bool) -> None:
    """Start the server process and wait for its word that all is ready."""
    (state / KEEP).unlink(missing_ok=True)
    (state / CONNECTION).unlink(missing_ok=True)
    ready_read, ready_write = os.pipe()
    fds, command = (
        [ready_write],
        [sys.executable, "-m", "diskbook.emulator.server", str(state), str(ready_write)],
    )
    if owner:
        owner_read, _owner_pipes[name] = os.pipe()
        fds.append(owner_read)
        command.append(str(owner_read))
    with (state / LOG).open("ab") as log:
        _children[name] = subprocess.Popen(
            command,
            pass_fds=fds,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd="/",
        )
    for fd in fds:
        os.close(fd)
    try:
        _await_ready(ready_read, state)
    except BaseException:
        _abandon(name)
        raise
    finally:
        os.close(ready_read)


def _await_ready(ready: int, state: Path) -> None:
    if not select.select([ready], [], [], START_S)[0]:
        raise DiskbookError(f"the emulator did not start within {START_S:.0f} s: see {state / LOG}.")
    word = os.read(ready, 65536)
    if not word:
        raise DiskbookError(f"the emulator ended while starting: {_last_line(state / LOG)}")
    message = json.loads(word)
    if "error" in message:
        raise (UsageError if message["usage"] else DiskbookError)(message["error"])


def _abandon(name: str) -> None:
    """End a server that did not get ready."""
    _children[name].terminate()
    _reap(name)
    pipe = _owner_pipes.pop(name, None)
    if pipe is not None:
        os.close(pipe)


def _reap(name: str) -> None:
    """Wait for a server that this process started, if it did; kill it when it takes too long."""
    child = _children.pop(name, None)
    if child is None:
        return
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(STOP_S)
    child.kill()
    child.wait()


def _end(state: Path) -> None:
    """Ask the server to end and wait for it; kill it when it does not."""
    try:
        server = psutil.Process(int((state / LOCK).read_text() or "0"))
        server.send_signal(signal.SIGTERM)
    except (psutil.Error, OSError):
        return  # it has just ended
    deadline = time.monotonic() + STOP_S
    while processes.is_alive(server) and time.monotonic() < deadline:
        time.sleep(0.01)
    if processes.is_alive(server):
        processes.kill([server])


def _remove(name: str, state: Path) -> None:
    link = home() / name
    shutil.rmtree(state, ignore_errors=True)
    if link.is_symlink():
        link.unlink()
    with contextlib.suppress(OSError):
        home().rmdir()  # only when it was the last


def _last_line(path: Path) -> str:
    lines = [line for line in path.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"


def write_private(path: Path, document: Json) -> None:
    """Write a JSON file that only this user can read, whole or not at all."""
    fresh = path.with_name(f".{path.name}.new")
    fresh.touch(mode=0o600)
    fresh.write_text(json.dumps(document, indent=1), encoding="utf-8")
    fresh.replace(path)


def _read(path: Path) -> dict[str, Any]:
    try:
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise DiskbookError(f"{path} cannot be read ({error}): stop the emulator to remove it.") from error
    return document
