"""Scripts that lie on an emulated Windows machine: put there as files, and the steps of clusters among them.

A step is known by the text of its file. It is carried out by the emulator's control plane, which knows all
machines, and which this machine shows its own secret.
"""

import json
import os
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PureWindowsPath
from typing import Any

from diskbook.clusters.powershell import scripts
from diskbook.facts.files import write_atomic
from diskbook.facts.units import MIB
from diskbook_emulator import FOLDER_VARIABLE

CONTROL = "control.json"
PATH = "/diskbook/steps"
LIMIT_S = 3600.0
"""Longer than any step waits."""
_MISSING = (
    "The argument '{path}' to the -File parameter does not exist. Provide the path to an existing "
    "'.ps1' file as an argument to the -File parameter."
)


def file_of(path: str) -> Path:
    """Return the file that plays one of the machine's drive C:; Windows' names differ in no capitals."""
    folder = Path(os.environ[FOLDER_VARIABLE]) / "drives"
    parts = PureWindowsPath(path.lower())
    return folder / parts.drive.rstrip(":") / Path(*parts.parts[1:])


def put(path: str, content: bytes) -> None:
    file = file_of(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)


def kind(path: str, step: str) -> str:
    """Tell whether a file is a step's script: "ours", "missing", or "other"."""
    file = file_of(path)
    if not file.exists():
        return "missing"
    return "ours" if _text(file.read_bytes()) == _text(scripts.script(step).encode()) else "other"


def _text(content: bytes) -> str:
    return content.decode("utf-8-sig", errors="replace").replace("\r\n", "\n").strip()


def run(path: str) -> int:
    """Run a script with a request on standard input, as `powershell -File` does; returns its exit status."""
    step = PureWindowsPath(path).stem.lower()
    which = kind(path, step) if step in scripts.NAMES else "other"
    if which == "missing" or not file_of(path).exists():
        print(_MISSING.format(path=path), file=sys.stderr)
        return 1
    if which == "other":
        print(
            f"the emulated PowerShell knows only the scripts of diskbook, and {path} is none", file=sys.stderr
        )
        return 1
    request = json.loads(sys.stdin.read())
    if step == "verify":  # what loads do, this machine does itself
        return _printed(answer(request))
    inner = str(request.get("step", "")) if step == "task" else ""
    inner_kind = kind(scripts.path(inner), inner) if inner in scripts.NAMES else "missing"
    return _carried_out(step, request, inner_kind)


def _carried_out(step: str, request: dict[str, Any], inner: str) -> int:
    control = json.loads((Path(os.environ[FOLDER_VARIABLE]) / CONTROL).read_text("utf-8"))
    asked = {name: control[name] for name in ("machine", "secret")}
    body = json.dumps({**asked, "step": step, "request": request, "inner": inner}).encode()
    call = urllib.request.Request(
        control["endpoint"] + PATH, body, {"Content-Type": "application/json"}, method="POST"
    )
    trust = ssl.create_default_context(cafile=control["ca"])
    try:
        with urllib.request.urlopen(call, timeout=LIMIT_S, context=trust) as reply:
            answer = json.load(reply)["answer"]
    except urllib.error.HTTPError as error:
        print(f"emulated: {error.read().decode(errors='replace')}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"emulated: the control plane cannot be reached: {error}", file=sys.stderr)
        return 1
    if answer is None:  # killed: nothing is printed
        return 1
    return _printed(answer)


def _printed(answer: dict[str, Any]) -> int:
    print(json.dumps(answer, separators=(",", ":")))
    return 0 if answer["ok"] else 1


Json = dict[str, Any]
FILES = ("resync", "loss")
"""Files of a volume, from its end on."""
POLL_S = 0.05
PAUSE_S = 0.3  # before a block that failed is tried again
END_S = 10.0  # fio ends within this, or is ended
READ_DEPTH = 8


class VerifyError(Exception):
    """The step failed; the sentence is what the machine would say."""


def answer(request: Mapping[str, Any]) -> Json:
    """Carry the step out; returns what it prints."""
    try:
        state = _write(request) if request["action"] == "write" else _end(request)
        return {"step": "verify", "ok": True, "changed": [], "state": state}
    except VerifyError as error:
        failure = {"message": str(error), "id": str(error), "where": ""}
        return {"step": "verify", "ok": False, "changed": [], "error": failure}


def _home(request: Mapping[str, Any]) -> Path:
    folder = Path(os.environ[FOLDER_VARIABLE]) / "verify"
    folder.mkdir(exist_ok=True)
    return folder / f"{request['file']}-{request['tag']}"


def _write(request: Mapping[str, Any]) -> Json:
    """Write to all volumes until the file that stops it is there; leave what was acknowledged."""
    home = _home(request)
    left, stop = home.with_suffix(".json"), home.with_suffix(".stop")
    for file in (left, stop):
        file.unlink(missing_ok=True)
    began = time.time()
    until = began + float(request["wait_s"])
    writers = [_Writer(request, volume, began) for volume in request["volumes"]]
    for writer in writers:
        writer.start()
    while not stop.exists() and time.time() < until and any(writer.is_alive() for writer in writers):
        time.sleep(POLL_S)
    for writer in writers:
        writer.end()
    state: Json = {"now_s": time.time(), "volumes": [writer.row() for writer in writers]}
    write_atomic(left, json.dumps(state))
    return state


def _end(request: Mapping[str, Any]) -> Json:
    """End the writing, and read back where that is asked."""
    home = _home(request)
    left = home.with_suffix(".json")
    home.with_suffix(".stop").touch()
    until = time.monotonic() + float(request["wait_s"])
    while not left.exists():
        if time.monotonic() > until:
            raise VerifyError(
                f"the end of the writing was waited for, but did not come about in {request['wait_s']} s"
            )
        time.sleep(POLL_S)
    state: Json = json.loads(left.read_text("utf-8"))
    volumes = {volume["name"]: volume for volume in request["volumes"] if request["action"] == "read"}
    rows = state["volumes"]
    for row in rows:
        row["verified"] = None
    read = [row for row in rows if row["volume"] in volumes]
    with ThreadPoolExecutor(max(1, len(read))) as side_by_side:
        side_by_side.map(lambda row: _read(request, volumes[row["volume"]], row), read)
    return {"now_s": time.time(), "volumes": rows}


class _Writer(threading.Thread):
    """Writes to one volume, with as many fios as it has errors, plus one."""

    def __init__(self, request: Mapping[str, Any], volume: Mapping[str, str], began: float) -> None:
        super().__init__(daemon=True)
        self._request, self._name, self._began = request, volume["name"], began
        self._uri, self._offset = _extent(request, volume)
        self._acked = 0  # blocks from the beginning of the file
        self._counts: list[int] = []
        self._errors, self._last_error = 0, ""
        self._ended = threading.Event()
        self._fio: subprocess.Popen[str] | None = None
        self._starting = threading.Lock()

    def run(self) -> None:
        while not self._ended.is_set():
            with tempfile.TemporaryDirectory() as folder:
                failed = self._once(Path(folder))
            if failed and not self._ended.is_set():
                self._errors, self._last_error = self._errors + 1, failed
                self._ended.wait(PAUSE_S)

    def _once(self, folder: Path) -> str:
        """Write from the first block on that is not acknowledged; return why it ended."""
        size, blocks = int(self._request["block_bytes"]), int(self._request["blocks"])
        done = self._acked % blocks
        argv = [*_fio(self._request, self._uri, self._offset + done * size, (blocks - done) * size)]
        argv += ["--rw=write", "--iodepth=1", "--do_verify=0", "--time_based", "--runtime=86400"]
        argv += ["--write_lat_log=acked", "--log_offset=1", "--log_unix_epoch=1"]
        with self._starting:
            if self._ended.is_set():
                return ""
            pipe, null = subprocess.PIPE, subprocess.DEVNULL
            self._fio = subprocess.Popen(argv, cwd=folder, stdout=null, stderr=pipe, text=True)
        errors = self._fio.communicate()[1]
        self._count(folder / "acked_lat.1.log", size)
        return (errors.strip().splitlines() or ["fio ended"])[-1]

    def _count(self, log: Path, size: int) -> None:
        """Take over what fio logged: milliseconds since 1970, latency, direction, size, offset, priority."""
        for line in log.read_text("ascii").splitlines() if log.exists() else ():
            milliseconds, _, _, _, offset = (int(word) for word in line.split(",")[:5])
            seconds = max(0.0, milliseconds / 1000 - self._began)
            place = int(seconds / float(self._request["bin_s"]))
            self._counts += [0] * (place + 1 - len(self._counts))
            self._counts[place] += 1
            self._acked = max(self._acked, (offset - self._offset) // size + 1)

    def end(self) -> None:
        """Have it end, with the block in hand."""
        with self._starting:
            self._ended.set()
        if self._fio is not None and self._fio.poll() is None:
            self._fio.send_signal(signal.SIGINT)
        self.join(END_S)
        if self.is_alive() and self._fio is not None:
            self._fio.kill()
            self.join(END_S)

    def row(self) -> Json:
        errors = {"errors": self._errors, "last_error": self._last_error}
        began = {"began_s": self._began, "counts": self._counts}
        return {"volume": self._name, **began, "written": self._acked, **errors}


def _read(request: Mapping[str, Any], volume: Mapping[str, str], row: Json) -> None:
    """Have fio verify the blocks that were acknowledged; it counts those that are not what was written."""
    row["verified"] = 0
    if not row["written"]:
        return
    uri, offset = _extent(request, volume)
    argv = _fio(request, uri, offset, row["written"] * int(request["block_bytes"]))
    argv += ["--rw=read", f"--iodepth={READ_DEPTH}", "--verify_fatal=0", "--continue_on_error=all"]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(argv, check=False, cwd=folder, capture_output=True, text=True)
    if "{" not in done.stdout:
        row["last_error"] = (done.stderr.strip().splitlines() or ["fio said nothing"])[-1]
        return
    (job,) = json.loads(done.stdout[done.stdout.index("{") :])["jobs"]
    read = int(job["read"]["total_ios"])
    row["verified"] = max(0, min(row["written"], read) - int(job.get("total_err", 0)))


def _fio(request: Mapping[str, Any], uri: str, offset: int, size: int) -> list[str]:
    pattern = f"--verify_pattern=0x{request['tag']}%o"
    argv = ["fio", f"--name={request['file']}", "--ioengine=nbd", f"--uri={uri}", "--output-format=json"]
    argv += [f"--bs={request['block_bytes']}", f"--offset={offset}", f"--size={size}"]
    return [*argv, "--verify=pattern", pattern, "--verify_state_save=0", "--randrepeat=0"]


def _extent(request: Mapping[str, Any], volume: Mapping[str, str]) -> tuple[str, int]:
    """Where a file lies on its volume: counted from the volume's end, behind what else is there."""
    path = PureWindowsPath(volume["path"])
    table = Path(os.environ[FOLDER_VARIABLE]) / "volumes.json"
    rows = json.loads(table.read_text("utf-8")) if table.exists() else []
    row = next((row for row in rows if PureWindowsPath(row["path"]) == path), None)
    if row is None:
        raise VerifyError(f"Could not find a part of the path '{path}'.")
    size = int(request["blocks"]) * int(request["block_bytes"])
    from_end = (FILES.index(request["file"]) + 1) * size
    offset = (int(row["size_bytes"]) - from_end) // MIB * MIB
    if offset < _used(Path(row["files"])):
        raise VerifyError("There is not enough space on the disk.")
    return str(row["uri"]), offset


def _used(files: Path) -> int:
    """Where the last file of loads on a volume ends; read as `windows_diskspd` does, without its imports."""
    index = files / "extents.json"
    extents = json.loads(index.read_text("utf-8")).values() if index.exists() else ()
    return max((int(extent["offset"]) + int(extent["size"]) for extent in extents), default=0)
