"""Start, find and stop emulators; several run side by side, each with a name and a state folder.

Where an emulator keeps its state, and how it is seen to run, is in `folders.py`; its process is `server.py`.
"""

import contextlib
import json
import os
import secrets
import select
import signal
import ssl
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from diskbook.facts.errors import DiskbookError, UsageError
from diskbook_emulator import folders, processes
from diskbook_emulator.profile import load_profile
from diskbook_emulator.types import Json

START_S = 60.0
STOP_S = 20.0
DEFAULT_SEED = 1
DEFAULT_TIME_SCALE = 0.01
TRUTH_PATH, FAULTS_PATH, BLOCK_PATH = "/diskbook/truth", "/diskbook/faults", "/diskbook/block"


@dataclass(frozen=True)
class Connection:
    """All a client needs: where the control plane is, how to trust it and who may log in to machines.

    `hours_between_blocks` is how far the noise clock is to be set on from block to block, `metrics_grain_s`
    the grain of the platform's metrics, both by its profile.
    """

    name: str
    endpoint: str
    ca_path: Path
    token: str = field(repr=False)
    subscription_id: str
    tenant_id: str
    time_scale: float
    profile: str
    seed: int
    pid: int
    started: float
    folder: Path
    # Emulators started by an earlier version say nothing about the first two, and let in one user alone.
    hours_between_blocks: float = 0.0
    metrics_grain_s: int = 60
    admin_user: str = "diskbook"


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

    - `name`: lower-case letters, digits and hyphens, at most 32.
    - `profile`, `seed`: the truth it plays; "default" and 1, or those of the state that is resumed.
    - `time_scale`: share of Azure's waiting times that is really slept.
    - `owner`: the emulator ends, and its folder goes, when this process ends, however it ends.
    - `folder`: state folder instead of the usual one; at most 90 bytes long.
    - `faults`: faults to inject into the control plane (see `arm/faults.py`).
    - `port`: port of the control plane; a free one when not given.

    Raises UsageError: the name is in use or cannot be a name, a program is missing, the port is in use, the
    profile is wrong, or the state to resume was made with another profile or seed.
    """
    if not folders.NAME.fullmatch(name):
        raise UsageError(f"'{name}' cannot be an emulator's name: use up to 32 of a-z, 0-9 and -.")
    with folders.made_to_start(name, folder, START_S) as state:
        if folders.is_running(state):
            raise UsageError(
                f"an emulator '{name}' is running already: stop it first, or choose another name."
            )
        fresh = not (state / folders.CONFIG).exists()
        if not fresh:
            processes.clear(state)  # a watchdog still at work would end the new machines' jobs
        try:
            _write_config(state, name, profile, seed, time_scale, tuple(faults), port)
            _launch(state, name, owner)
        except BaseException:
            if fresh and not folders.is_running(state):
                folders.remove(name, state)
            raise
        return connect(name)


def stop(name: str, keep_state: bool = False) -> None:
    """Stop an emulator and remove its state, also of one that was killed.

    - `keep_state`: keep its folder, so that `start` resumes it.

    Raises UsageError: there is no such emulator.
    """
    state = folders.find(name)
    if folders.is_running(state):
        if keep_state:
            (state / folders.KEEP).touch()
        _end(state)
    _reap(name)
    processes.clear(state)
    if not keep_state:
        folders.remove(name, state)


def status() -> list[Status]:
    emulators = []
    for name in folders.names():
        state = (folders.home() / name).resolve()
        config = folders.read(state / folders.CONFIG)
        running = folders.is_running(state)
        connection = folders.read(state / folders.CONNECTION) if running else {}
        emulators.append(
            Status(
                name=name,
                state="running" if running else "kept" if (state / folders.KEEP).exists() else "dead",
                folder=state,
                profile=str(config.get("profile", "?")),
                seed=int(config.get("seed", 0)),
                endpoint=connection.get("endpoint"),
                pid=connection.get("pid"),
            )
        )
    return emulators


def connect(name: str) -> Connection:
    """Return how to reach a running emulator.

    Raises UsageError: there is no such emulator, or it is dead.
    """
    state = folders.find(name)
    if not folders.is_running(state):
        raise UsageError(
            f"the emulator '{name}' does not run, it was killed or its state was kept: "
            f"start it again to go on, or stop it to remove what is left in {state}."
        )
    document = folders.read(state / folders.CONNECTION)
    if not document:
        raise UsageError(f"the emulator '{name}' is still starting: try again in a moment.")
    return Connection(**{**document, "ca_path": Path(document["ca_path"]), "folder": state})


def read_truth(connection: Connection) -> Json:
    """Ask a running emulator for the truth it plays and has played. No analysis may use it."""
    return _ask(connection, TRUTH_PATH)


def begin_block(connection: Connection, machine_ids: Sequence[str], block: int) -> None:
    """Set the noise clock of machines at a running emulator to a block of their run, counted from 1."""
    _ask(connection, BLOCK_PATH, "PUT", {"machines": list(machine_ids), "block": block})


def plant(connection: Connection, faults: Sequence[Json]) -> None:
    """Put another list of faults in place at a running emulator (see `arm/faults.py`)."""
    _ask(connection, FAULTS_PATH, "PUT", list(faults))


def planted(connection: Connection) -> list[Json]:
    """Return the faults in place at a running emulator, each with `seen`, the number of matches so far."""
    faults: list[Json] = _ask(connection, FAULTS_PATH)["value"]
    return faults


def _ask(connection: Connection, path: str, method: str = "GET", body: object = None) -> Json:
    request = urllib.request.Request(
        connection.endpoint + path,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {connection.token}"},
        method=method,
    )
    context = ssl.create_default_context(cafile=str(connection.ca_path))
    with urllib.request.urlopen(request, context=context, timeout=30.0) as answer:
        document: Json = json.load(answer)
    return document


def _write_config(
    state: Path,
    name: str,
    profile: str | None,
    seed: int | None,
    time_scale: float | None,
    faults: tuple[Json, ...],
    port: int | None,
) -> None:
    before = folders.read(state / folders.CONFIG)
    wanted_profile = str(Path(profile).resolve()) if profile and profile.endswith(".toml") else profile
    for key, asked in (("profile", wanted_profile), ("seed", seed)):
        if before and asked is not None and before[key] != asked:
            raise UsageError(
                f"the emulator '{name}' has kept its state, made with {key} {before[key]}: "
                "start it without another, or stop it first to begin again."
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
        "link": str(folders.home() / name),
    }
    if port is not None:
        config["port"] = port
    load_profile(config["profile"])  # a mistake in it is told here
    folders.write_private(state / folders.CONFIG, config)


def _launch(state: Path, name: str, owner: bool) -> None:
    """Start the server process and wait for its word that all is ready."""
    (state / folders.KEEP).unlink(missing_ok=True)
    (state / folders.CONNECTION).unlink(missing_ok=True)
    ready_read, ready_write = os.pipe()
    fds = [ready_write]
    command = [sys.executable, "-m", "diskbook_emulator.server", str(state), str(ready_write)]
    if owner:
        owner_read, _owner_pipes[name] = os.pipe()
        fds.append(owner_read)
        command.append(str(owner_read))
    with (state / folders.LOG).open("ab") as log:
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
        _children[name].terminate()
        _reap(name)
        raise
    finally:
        os.close(ready_read)


def _await_ready(ready: int, state: Path) -> None:
    if not select.select([ready], [], [], START_S)[0]:
        raise DiskbookError(f"the emulator did not start within {START_S:.0f} s: see {state / folders.LOG}.")
    word = os.read(ready, 65536)
    if not word:
        raise DiskbookError(f"the emulator ended while starting: {_last_line(state / folders.LOG)}")
    message = json.loads(word)
    if "error" in message:
        raise (UsageError if message["usage"] else DiskbookError)(message["error"])


def _reap(name: str) -> None:
    """Wait for a server that this process started, if it did; kill it when it takes too long."""
    if name in _owner_pipes:
        os.close(_owner_pipes.pop(name))
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
        server = psutil.Process(int((state / folders.LOCK).read_text() or "0"))
        server.send_signal(signal.SIGTERM)
    except (psutil.Error, OSError):
        return  # it has just ended
    deadline = time.monotonic() + STOP_S
    while processes.is_alive(server) and time.monotonic() < deadline:
        time.sleep(0.01)
    if processes.is_alive(server):
        processes.kill([server])


def _last_line(path: Path) -> str:
    lines = [line for line in path.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"
