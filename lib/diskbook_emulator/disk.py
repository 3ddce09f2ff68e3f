"""Emulated disks: one nbdkit process with our plugin for each attached disk, on a Unix socket.

Volumes are served alike by another plugin (`diskbook_emulator.volume_host`): `Server` is what both are.
"""

import hashlib
import os
import shutil
import signal
import socket
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from diskbook.facts.errors import DiskbookError, UsageError
from diskbook.facts.files import replacing
from diskbook_emulator.shm import LimitsFile, ModelFile
from diskbook_emulator.types import ExportModel, Session

__all__ = ["Export", "LimitsFile", "Server", "build_plugin"]

PLUGIN_SOURCE = Path(__file__).with_name("plugin.c")
HEADER = Path(__file__).with_name("played.h")
SOCKET_PATH_MAX = 107  # bytes; sun_path of unix(7) less the final zero
THREADS = 256  # I/Os that a connection to a disk can have under way, unless a run says how many it needs
START_TIMEOUT_S = 10.0
STOP_TIMEOUT_S = 3.0

# nbdkit ends with the *thread* that started it (PR_SET_PDEATHSIG), so one thread that lives as long as this
# process starts them all.
_starter = ThreadPoolExecutor(max_workers=1, thread_name_prefix="nbdkit-starter")


def build_plugin(cache_dir: Path, source: Path | None = None) -> Path:
    """Compile a plugin, unless this source is already compiled for this nbdkit.

    - `cache_dir`: folder for the result; made when missing. Several processes may build at once.
    - `source`: its C source, by default that of disks; the header beside it is part of it.

    Returns the shared object.

    Raises UsageError when gcc, nbdkit or its header is missing.
    """
    nbdkit, gcc = _program("nbdkit", "nbdkit"), _program("gcc", "gcc")
    version = subprocess.run([nbdkit, "--version"], capture_output=True, text=True, check=True).stdout
    source = source or PLUGIN_SOURCE
    text = source.read_bytes() + HEADER.read_bytes() + version.encode()
    built = cache_dir / f"diskbook-{source.stem}-{hashlib.sha256(text).hexdigest()[:16]}.so"
    if built.exists():
        return built
    cache_dir.mkdir(parents=True, exist_ok=True)
    with replacing(built, 0o755) as part:
        command = [gcc, "-O2", "-Wall", "-shared", "-fPIC", "-o", str(part), str(source), "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise _compile_error(done.stderr)
    return built


def _program(name: str, package: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise UsageError(f"{name} is missing; install the Debian package '{package}'.")
    return path


def _compile_error(stderr: str) -> DiskbookError:
    if "nbdkit-plugin.h" in stderr:
        return UsageError("nbdkit-plugin.h is missing; install the Debian package 'nbdkit-plugin-dev'.")
    if "stdlib.h" in stderr or "errno.h" in stderr:
        return UsageError("the C library's headers are missing; install the Debian package 'libc6-dev'.")
    return DiskbookError(f"the emulated disk's plugin does not compile: {stderr.strip().splitlines()[0]}")


class Server:
    """An nbdkit process with a plugin of ours on a Unix socket, and the file of what it plays and did.

    - `socket`: unix socket to listen on, at most 107 bytes long.
    - `plugin`: what `build_plugin` returned.
    - `work_dir`: folder for its own files (model, log); made when missing. Sessions of an earlier server in
      the same folder are kept.
    - `model`: latencies, host cache and noise.
    - `epoch_s`: `time.monotonic()` when the emulator began, for `second_log`; now when not given.
    - `threads`: I/Os that one connection can have under way: no load needs more than its queue depth. nbdkit
      starts all threads of a connection when it is made, so 64 connections of 256 took 2.4 s of processor.

    Raises UsageError when the path of the socket is too long.
    """

    def __init__(
        self,
        socket: Path,
        plugin: Path,
        work_dir: Path,
        model: ExportModel,
        epoch_s: float | None = None,
        threads: int = THREADS,
    ) -> None:
        length = len(os.fsencode(socket))
        if length > SOCKET_PATH_MAX:
            raise UsageError(
                f"the path of the disk's socket {socket} has {length} bytes; Linux allows {SOCKET_PATH_MAX}: "
                "keep the emulator's files in a folder with a shorter path."
            )
        self.socket = socket
        self.plugin = plugin
        self.work_dir = work_dir
        self.threads = threads
        self._process: subprocess.Popen[bytes] | None = None
        work_dir.mkdir(parents=True, exist_ok=True)
        self._model = ModelFile(self._model_path, time.monotonic() if epoch_s is None else epoch_s)
        self._model.update(model)

    def _settings(self) -> dict[str, object]:
        """Parameters of the plugin besides its model."""
        return {}

    @property
    def _model_path(self) -> Path:
        return self.work_dir / "model"

    @property
    def _log_path(self) -> Path:
        return self.work_dir / "nbdkit.log"

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Start serving; return once the socket answers. Does nothing while it is alive.

        Raises DiskbookError when nbdkit ends at once or does not answer in time; with its own message.
        """
        if self.alive():
            return
        self.stop()
        self._process = _starter.submit(self._spawn).result()
        deadline = time.monotonic() + START_TIMEOUT_S
        while not _answers(self.socket):
            if not self.alive() or time.monotonic() > deadline:
                self.stop()
                raise DiskbookError(
                    f"the emulated disk at {self.socket} did not start: {self._last_message()}"
                )
            time.sleep(0.01)

    def _spawn(self) -> subprocess.Popen[bytes]:
        command = [_program("nbdkit", "nbdkit"), "--exit-with-parent", "--foreground"]
        command += ["--threads", str(self.threads), "--unix", str(self.socket), str(self.plugin)]
        command += [f"model={self._model_path.absolute()}"]
        command += [f"{key}={value}" for key, value in self._settings().items()]
        with self._log_path.open("wb") as log:
            return subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def _last_message(self) -> str:
        lines = self._log_path.read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it said nothing"

    def stop(self) -> None:
        """End the process and remove its socket; clients are cut off, the data stay."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            self._model.end_session()
        self.socket.unlink(missing_ok=True)

    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def uri(self, unthrottled: bool = False) -> str:
        """Return the NBD URI; with `unthrottled` the one without latency and caps, for prefilling."""
        name = "unthrottled" if unthrottled else "data"
        return f"nbd+unix:///{name}?socket={quote(str(self.socket.absolute()))}"

    def set_model(self, model: ExportModel) -> None:
        """Play other numbers from now on (a host cache's size only from the next start on)."""
        self._model.update(model)

    def sessions(self) -> list[Session]:
        """Return what the disk saw, a record for each time it was opened and used, the oldest first."""
        return self._model.sessions()

    def activity(self) -> NDArray[np.int64]:
        """Return what the disk did second by second (see `ModelFile.activity`)."""
        return self._model.activity()


class Export(Server):
    """An emulated disk attached to one machine.

    - `socket`, `plugin`, `work_dir`, `model`, `epoch_s`, `threads`: as of a `Server`.
    - `backing`: file with the disk's data; made, sparse, when missing. Other exports may use it at the same
      time.
    - `disk_limits`: limits file of the disk, shared by all the machines that share it.
    - `vm_uncached`, `vm_cached`: limits files of the VM's two paths. Without a host cache in `model` all I/O
      takes the uncached one.
    - `reservations`, `nexus`: reservations file of the disk, shared by all the machines that share it, and
      this attachment's number there; without them everyone may write.

    Raises UsageError when the path of the socket is too long. Raises DiskbookError when the backing file
    cannot be made.
    """

    def __init__(
        self,
        socket: Path,
        backing: Path,
        size_bytes: int,
        model: ExportModel,
        disk_limits: Path,
        vm_uncached: Path | None,
        vm_cached: Path | None,
        plugin: Path,
        work_dir: Path,
        epoch_s: float | None = None,
        reservations: Path | None = None,
        nexus: int = 0,
        threads: int = THREADS,
    ) -> None:
        super().__init__(socket, plugin, work_dir, model, epoch_s, threads)
        self.backing = backing
        self._limits = {"disk_limits": disk_limits, "vm_uncached": vm_uncached, "vm_cached": vm_cached}
        self._reservations, self._nexus = reservations, nexus
        make_sparse(backing, size_bytes)

    def _settings(self) -> dict[str, object]:
        settings: dict[str, object] = {"backing": self.backing.absolute()}
        settings |= {key: path.absolute() for key, path in self._limits.items() if path}
        if self._reservations is not None:
            settings |= {"reservations": self._reservations.absolute(), "nexus": self._nexus}
        return settings


def make_sparse(backing: Path, size_bytes: int) -> None:
    """Make the file of a disk at least this long, sparse; raises DiskbookError when it cannot be made."""
    try:
        backing.parent.mkdir(parents=True, exist_ok=True)
        with backing.open("ab") as file:
            if file.tell() < size_bytes:
                file.truncate(size_bytes)
    except OSError as error:
        raise DiskbookError(
            f"the file {backing} for an emulated disk of {size_bytes} bytes cannot be made: {error.strerror}."
        ) from error


def _answers(path: Path) -> bool:
    """Tell whether an NBD server greets on the socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(1.0)
        try:
            client.connect(str(path))
            return client.recv(8) == b"NBDMAGIC"
        except OSError:
            return False
