"""The emulator's process: ``python -m diskbook_emulator.server FOLDER READY_FD [OWNER_FD]``.

It serves the control plane, holds the machines and disks, and ends all of them when it ends: asked by a
signal, or when its owner is gone (the owner's pipe closes). Machines and disks also end by themselves when it
is killed. `lifecycle` starts it.
"""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import trustme
import uvicorn
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from diskbook.facts import paths
from diskbook.facts.errors import UsageError
from diskbook.facts.files import write_atomic
from diskbook_emulator import folders, lifecycle, machine, processes
from diskbook_emulator.arm import company, create_app
from diskbook_emulator.arm.gateway import STEPS
from diskbook_emulator.arm.plane import ControlPlane
from diskbook_emulator.arm.settings import Settings
from diskbook_emulator.backend import LocalBackend
from diskbook_emulator.disk import build_plugin
from diskbook_emulator.model import Model
from diskbook_emulator.profile import Profile, load_profile
from diskbook_emulator.records import without_nan
from diskbook_emulator.types import Json

HEAL_EVERY_S = 0.25
MAX_BLOCK = 100_000  # of a run; far more than any plan has
KEEP_TLS_S = 20 * 24 * 3600  # certificates are valid for 30 days


def main(arguments: list[str]) -> int:
    """Run one emulator until it is told to end; the exit code is 0 after a clean end."""
    _on_signal(_raise_exit)  # until the control plane takes over
    folder, ready = Path(arguments[0]), int(arguments[1])
    owner = int(arguments[2]) if len(arguments) > 2 else None
    try:
        with folders.held(folder):
            _run(folder, ready, owner)
    except Exception as error:
        traceback.print_exc()
        _say(ready, {"error": str(error), "usage": isinstance(error, UsageError)})
        return getattr(error, "exit_code", 1)
    return 0


def _raise_exit(*_: object) -> None:
    raise SystemExit(0)


def _say(ready: int, word: Json) -> None:
    """Tell the starter how it went; it may be gone, or have been told before."""
    with contextlib.suppress(OSError):
        os.write(ready, json.dumps(word).encode())
        os.close(ready)


def _run(folder: Path, ready: int, owner: int | None) -> None:
    config: dict[str, Any] = json.loads((folder / folders.CONFIG).read_text(encoding="utf-8"))
    machine.check_programs()
    profile = load_profile(config["profile"])
    backend = LocalBackend(
        folder, config["name"], Model(profile, config["seed"]), build_plugin(_cache(folder))
    )
    watchdog = processes.start_watchdog(folder)
    try:
        if profile.network.existing:
            backend.start_jump_host()
        with _listener(folder, config) as listener:
            server, ca = _control_plane(folder, config, profile, backend, listener)
            connection = _connection(config, profile, listener, ca)
            announce = partial(_announce, folder, connection, ready)
            asyncio.run(_serve(server, listener, owner, announce, backend))
    finally:
        _on_signal(signal.SIG_IGN)  # what follows takes a moment and must not be cut short
        backend.close()
        processes.kill(processes.marked(folder))
        processes.end_watchdog(watchdog)
    _clear(folder, config)


def _cache(folder: Path) -> Path:
    """Folder of the compiled plugin: the clone's, or the emulator's own where that cannot be written."""
    try:
        paths.CACHE.mkdir(parents=True, exist_ok=True)
    except OSError:
        return folder / "cache"
    return paths.CACHE if os.access(paths.CACHE, os.W_OK) else folder / "cache"


def _listener(folder: Path, config: dict[str, Any]) -> socket.socket:
    """Bind the control plane's address; a restarted emulator takes the same port again."""
    address = f"{machine.network_of(folder)}.1"
    if config["port"] is None:
        config["port"] = machine.free_port(address)
        folders.write_private(folder / folders.CONFIG, config)
    # With the protocol named asyncio switches TCP_NODELAY on; without it every answer waits some 40 ms.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((address, config["port"]))
    except OSError as error:
        listener.close()
        raise UsageError(
            f"the control plane of emulator '{config['name']}' cannot listen on {address}:{config['port']} "
            f"({error.strerror}): end what uses that port, or start the emulator with another one."
        ) from None
    return listener


def _control_plane(
    folder: Path, config: dict[str, Any], profile: Profile, backend: LocalBackend, listener: socket.socket
) -> tuple[uvicorn.Server, Path]:
    """Build the web server of the control plane, and tell the CA that its clients are to trust."""
    settings = Settings(
        subscription_id=config["subscription_id"],
        tenant_id=config["tenant_id"],
        token=config["token"],
        time_scale=config["time_scale"],
        delays_s=profile.delays_s,
        drives={site: (int(drive.iops), int(drive.mb_s)) for site, drive in profile.drives.items()},
        seed=config["seed"],
        faults=tuple(config["faults"]),
        public_addresses=profile.network.public_addresses,
        metrics_grain_s=profile.metrics_grain_s,
        schedules=profile.schedules,
    )
    address, port = listener.getsockname()
    ca, certificate, key = _certificates(folder / "tls", address)
    backend.reached_at(f"https://{address}:{port}", ca)
    app = create_app(settings, backend, folder / "arm.sqlite")  # starts again what ran before
    plane: ControlPlane = app.state.plane
    if profile.network.existing:
        company.furnish(plane)
    backend.ask_about_keys(partial(_takes_key, plane))
    routes = [_truth_route(config, profile, backend), _block_route(backend), _steps_route(plane, backend)]
    app.router.routes += routes
    # Without the limit, a client that keeps its connection open would keep the server from ending.
    options = uvicorn.Config(
        app, ssl_certfile=certificate, ssl_keyfile=key, log_level="warning", timeout_graceful_shutdown=0
    )
    return uvicorn.Server(options), ca


def _takes_key(plane: ControlPlane, account: str, key: str) -> bool:
    """Tell whether there is a storage account of a name, and a key is one of its own."""
    accounts = plane.store.of_type("Microsoft.Storage/storageAccounts")
    keys = [row.hidden.get("keys", {}) for row in accounts if row.name == account]
    return any(key in own.values() for own in keys)


def _certificates(folder: Path, address: str) -> tuple[Path, Path, Path]:
    """Return CA, certificate and key; those of an earlier start while fresh: clients keep their CA."""
    kept = folder / "ca.pem", folder / "cert.pem", folder / "key.pem"
    fresh = all(path.exists() for path in kept) and time.time() - kept[0].stat().st_mtime < KEEP_TLS_S
    return kept if fresh else make_ca_and_cert(folder, address)


def _truth_route(config: dict[str, Any], profile: Profile, backend: LocalBackend) -> Route:
    """Serve what the emulator plays and has played. Like all of the app it asks for the token."""
    emulator = {
        "name": config["name"],
        "profile": profile.name,
        "seed": config["seed"],
        "home_zone": profile.home_zone or "seed",
        "noise": asdict(profile.noise),
        "caps": asdict(profile.caps),
        "attach": asdict(profile.attach),
        "disks": {pattern: asdict(single) for pattern, single in profile.disks.items()},
    }

    def truth(request: Request) -> JSONResponse:
        return JSONResponse(without_nan({"emulator": emulator, **backend.truth()}))

    return Route(lifecycle.TRUTH_PATH, truth)


def _block_route(backend: LocalBackend) -> Route:
    """Set the noise clock of machines to a block of their run: `{"machines": [ids], "block": 2}`."""

    async def begin_block(request: Request) -> JSONResponse:
        try:
            asked = await request.json()
            machines, block = [str(name) for name in asked["machines"]], int(asked["block"])
            if not 1 <= block <= MAX_BLOCK:
                raise ValueError(f"there is no block {block}")
            await asyncio.to_thread(backend.begin_block, machines, block)
        except (ValueError, KeyError, TypeError, RuntimeError) as error:
            return JSONResponse({"error": f"no block begins: {error}"}, 400)
        return JSONResponse(asked)

    return Route(lifecycle.BLOCK_PATH, begin_block, methods=["PUT"])


def _steps_route(plane: ControlPlane, backend: LocalBackend) -> Route:
    """Carry the steps of clusters out for scripts on machines, which show their machine's secret."""

    async def answer(request: Request) -> JSONResponse:
        try:
            asked = await request.json()
            planted = plane.faults.step(_innermost(asked), str(asked["machine"]))
            machine, secret, step, inner = (
                str(asked[name]) for name in ("machine", "secret", "step", "inner")
            )
            printed = await run_in_threadpool(
                backend.step, machine, secret, step, dict(asked["request"]), inner, planted
            )
        except PermissionError as error:
            return JSONResponse({"error": str(error)}, 403)
        except (ValueError, KeyError, TypeError, RuntimeError) as error:
            return JSONResponse({"error": f"the step is not carried out: {error}"}, 400)
        return JSONResponse({"answer": printed})

    return Route(STEPS, answer, methods=["POST"])


def _innermost(asked: Json) -> str:
    """Name of a step, or of that within `task`."""
    return str(asked["request"].get("step", "")) if asked["step"] == "task" else str(asked["step"])


async def _serve(
    server: uvicorn.Server,
    listener: socket.socket,
    owner: int | None,
    announce: Callable[[], None],
    backend: LocalBackend,
) -> None:
    """Serve until a signal comes or the owner is gone."""
    _on_signal(lambda *_: None)  # uvicorn passes signals on when it has ended
    if owner is not None:
        loop = asyncio.get_running_loop()

        def owner_gone() -> None:
            loop.remove_reader(owner)
            server.should_exit = True

        loop.add_reader(owner, owner_gone)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    while not server.started and not serving.done():
        await asyncio.sleep(0.005)
    announce()
    healing = asyncio.create_task(_heal(backend))
    await serving
    healing.cancel()


async def _heal(backend: LocalBackend) -> None:
    """Keep what runs on machines running, as systemd and Azure's storage do."""
    while True:
        await asyncio.sleep(HEAL_EVERY_S)
        with contextlib.suppress(OSError, RuntimeError):  # it is tried again in a moment
            await asyncio.to_thread(backend.heal)


def _connection(config: dict[str, Any], profile: Profile, listener: socket.socket, ca: Path) -> Json:
    address, port = listener.getsockname()
    kept = ("name", "token", "subscription_id", "tenant_id", "time_scale", "profile", "seed")
    return {
        **{key: config[key] for key in kept},
        "endpoint": f"https://{address}:{port}",
        "ca_path": str(ca),
        "pid": os.getpid(),
        "started": time.time(),
        "hours_between_blocks": profile.noise.hours_between_blocks,
        "metrics_grain_s": profile.metrics_grain_s,
    }


def _announce(folder: Path, connection: Json, ready: int) -> None:
    folders.write_private(folder / folders.CONNECTION, connection)
    _say(ready, {"ready": True})


def _clear(folder: Path, config: dict[str, Any]) -> None:
    """Remove the emulator's folder, unless its state is to be kept."""
    (folder / folders.CONNECTION).unlink(missing_ok=True)
    if (folder / folders.KEEP).exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    link = Path(config["link"])
    if link.is_symlink():
        link.unlink()
    with contextlib.suppress(OSError):
        link.parent.rmdir()  # only when it was the last


def _on_signal(handler: Any) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handler)


# ---- a throw-away certificate authority, and a server certificate for one loopback address


VALID = timedelta(days=30)
_NAME = "diskbook emulator, throw-away"


def make_ca_and_cert(folder: Path, host: str) -> tuple[Path, Path, Path]:
    """Make a CA and a certificate for `host` and localhost.

    The CA's key is not kept: nothing else can be signed with it.

    - `folder`: where the three files go; made if missing.
    - `host`: loopback address or name that clients connect to.

    Returns `ca.pem`, `cert.pem`, `key.pem`; the key file has mode 0600.
    """
    folder.mkdir(parents=True, exist_ok=True)
    authority = trustme.CA(organization_name=_NAME)
    names = dict.fromkeys(("localhost", host))
    until = datetime.now(UTC) + VALID
    server = authority.issue_cert(*names, common_name=host, organization_name=_NAME, not_after=until)
    ca, cert, key = folder / "ca.pem", folder / "cert.pem", folder / "key.pem"
    write_atomic(ca, authority.cert_pem.bytes())
    write_atomic(cert, b"".join(part.bytes() for part in server.cert_chain_pems))
    write_atomic(key, server.private_key_pem.bytes(), 0o600)
    return ca, cert, key


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
