"""`powershell` on an emulated Windows machine: it knows the workbook's own scripts, and nothing else.

    powershell -NoProfile -NonInteractive -EncodedCommand JABwACAAPQ...
    powershell -NoProfile -NonInteractive -File "C:\\ProgramData\\diskbook\\cluster\\volume.ps1"

A script is known by its text; what it would do on Windows is done on the machine's own files and disks, and,
for the steps of clusters, on the emulator's own state (`windows_steps`). It is called several times a trial,
so it imports little; what a new machine is asked is answered by `windows_facts`.
"""

import base64
import contextlib
import hashlib
import json
import os
import select
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from diskbook.facts.units import GIB, MIB
from diskbook.hosts.powershell import SCRIPTS
from diskbook_emulator import windows_steps

Parameters = Mapping[str, Any]
_STREAMS_S = 5.0  # a shell that has not begun by then does not begin
_FACTS = "diskbook_emulator.windows_facts"
_TEMPORARY = 99  # number of the temporary disk; 0 is the system's, others are their LUN and 1


def main(words: Sequence[str] | None = None) -> int:
    """Answer one script; returns its exit status."""
    given = list(sys.argv[1:] if words is None else words)
    if "-File" in given[:-1]:
        return windows_steps.run(given[given.index("-File") + 1])
    text = base64.b64decode(given[-1]).decode("utf-16-le") if given else ""
    name, parameters = recognise(text)
    if name is None:
        return subprocess.run([sys.executable, "-I", "-m", _FACTS, text], check=False).returncode
    return _ANSWERS[name](parameters)


def recognise(text: str) -> tuple[str | None, Parameters]:
    """Name of a script and its parameters; None for one that is none of `SCRIPTS`."""
    first, _, body = text.partition("\n")
    for name, script in SCRIPTS.items():
        if body.strip() == script.strip():
            quoted = first.partition("$p = '")[2].rpartition("' | ConvertFrom-Json")[0]
            return name, json.loads(quoted.replace("''", "'"))
    return None, {}


def _home() -> Path:
    return Path(os.environ["HOME"])


def _start(parameters: Parameters) -> int:
    jobs = _home() / "jobs"
    folder = jobs / parameters["name"]
    for status in jobs.glob("*/status"):
        if status.parent != folder:
            shutil.rmtree(status.parent, ignore_errors=True)
    if folder.exists():
        return 0
    folder.mkdir(parents=True)
    line = shlex.join(_words(parameters["command"]))
    script = f"echo $$ >p; mv p pid; {line} >stdout 2>stderr; echo $? >s; mv s status"
    null = subprocess.DEVNULL
    # The shell leads a session of its own, so that its number names the whole job.
    subprocess.Popen(
        ["sh", "-c", script], cwd=folder, stdin=null, stdout=null, stderr=null, start_new_session=True
    )
    deadline = time.monotonic() + _STREAMS_S
    while not (folder / "pid").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    return 0


def _words(line: str) -> list[str]:
    """Take a command line apart as Windows does: a backslash is no escape, and only double quotes quote."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=False)
    lexer.whitespace_split, lexer.escape, lexer.quotes, lexer.commenters = True, "", '"', ""
    return list(lexer)


def _finish(parameters: Parameters) -> int:
    folder = _home() / "jobs" / parameters["name"]
    if not folder.exists():
        return 9
    if not (folder / "status").exists() and not _ended(folder, parameters["patience_ms"]):
        _end_job(folder)
        return 7
    if not (folder / "status").exists():
        time.sleep(0.3)
        if not (folder / "status").exists():
            return 8
    for file in parameters["files"]:
        if (folder / file).exists():
            print(file, base64.b64encode((folder / file).read_bytes()).decode())
    return 0


def _ended(folder: Path, patience_ms: int) -> bool:
    """Wait for the end of the shell that leads a job, as WaitForExit does; tell whether it came."""
    if not _runs(folder):
        return True
    try:
        shell = os.pidfd_open(int((folder / "pid").read_text()))
    except ProcessLookupError:
        return True
    try:
        waiting = select.poll()
        waiting.register(shell, select.POLLIN)
        return bool(waiting.poll(patience_ms))
    finally:
        os.close(shell)


def _runs(folder: Path) -> bool:
    """Whether the shell that leads a job still runs; its number may be another's by now."""
    try:
        return Path(f"/proc/{(folder / 'pid').read_text().strip()}/cwd").samefile(folder)
    except OSError:
        return False


def _end_job(folder: Path) -> None:
    with contextlib.suppress(OSError, ValueError):
        os.killpg(int((folder / "pid").read_text()), signal.SIGKILL)


def _jobs(_: Parameters) -> int:
    for folder in sorted((_home() / "jobs").glob("*")):
        print(folder.name)
    return 0


def _times(parameters: Parameters) -> int:
    for file in ("pid", "status"):
        seconds = (_home() / "jobs" / parameters["name"] / file).stat().st_mtime
        print(datetime.fromtimestamp(seconds, UTC).isoformat())
    return 0


def _end(_: Parameters) -> int:
    for folder in (_home() / "jobs").glob("*"):
        if _runs(folder):
            _end_job(folder)
    shutil.rmtree(_home() / "jobs", ignore_errors=True)
    return 0


def _disks(_: Parameters) -> int:
    rows = [_drive(0, 0, 0, own=True, partitions=4), _drive(_TEMPORARY, 0, 1, partitions=1)]
    for lun, row in _own_disks().items():
        number = int(lun) + 1
        named = {"unique_id": row["unique_id"], "serial": row["unique_id"]}
        fill = {"size_bytes": row["size_bytes"], "prefill_target": f"#{number}:fill"}
        rows.append({**_drive(number, 1, int(lun)), **fill, **named})
    print(json.dumps(rows))
    return 0


def _drive(number: int, adapter: int, lun: int, *, own: bool = False, partitions: int = 0) -> dict[str, Any]:
    """A drive as Get-Disk lists it: the system's, the temporary one at LUN 1 beside it, or a data disk."""
    place = f"Integrated : Bus 0 : Device 63667 : Function 30747 : Adapter {adapter} : Port 0 : Target 0"
    system = {"size_bytes": 127 * GIB, "style": "GPT" if partitions else "RAW", "unique_id": "", "serial": ""}
    return {
        "location": f"{place} : LUN {lun}", "number": number, "own": own, "partitions": partitions, **system
    }  # fmt: skip


def _own_disks() -> dict[str, dict[str, Any]]:
    disks: dict[str, dict[str, Any]] = json.loads(_run(["diskbook-disks"]))
    return disks


def _facts(parameters: Parameters) -> int:
    facts = json.loads(_run(["diskbook-disk", "show", str(parameters["number"] - 1)]))
    empty = {edge: facts[f"{edge}_mib_empty"] for edge in ("first", "last")}
    digest = {True: hashlib.sha256(bytes(MIB)).hexdigest(), False: hashlib.sha256(b"data").hexdigest()}
    shown = {"style": "RAW", "partitions": 0, "own": False, "serial": facts["unique_id"]}
    edges = {"head": digest[empty["first"]], "tail": digest[empty["last"]]}
    print(json.dumps({**shown, **edges, "mark": facts["mark"], "unique_id": facts["unique_id"]}))
    return 0


def _mark(parameters: Parameters) -> int:
    content = base64.b64decode(parameters["mark"]).ljust(parameters["size"], b"\0")
    _run(["diskbook-disk", "mark", str(parameters["number"] - 1)], content)
    return 0


def _guest(_: Parameters) -> int:
    """Kernel and processor of the computer that emulates; a drive without cache, bus and sectors."""
    lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    kernel = f"Windows Server, emulated on {os.uname().sysname} {os.uname().release}"
    print(json.dumps({"kernel": kernel, "cpu_model": next(models, None), "power_plan": None}))
    return 0


def _put(parameters: Parameters) -> int:
    windows_steps.put(parameters["path"], base64.b64decode(sys.stdin.buffer.read()))
    return 0


def _run(command: list[str], content: bytes = b"") -> bytes:
    return subprocess.run(command, input=content, stdout=subprocess.PIPE, check=True).stdout


_ANSWERS: dict[str, Callable[[Parameters], int]] = {
    "start": _start,
    "finish": _finish,
    "jobs": _jobs,
    "times": _times,
    "end": _end,
    "disks": _disks,
    "facts": _facts,
    "mark": _mark,
    "guest": _guest,
    "put": _put,
}

if __name__ == "__main__":
    sys.exit(main())
