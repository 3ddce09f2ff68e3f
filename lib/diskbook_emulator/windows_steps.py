"""Scripts that lie on an emulated Windows machine: put there as files, and the steps of clusters among them.

A step is known by the text of its file. It is carried out by the emulator's control plane, which knows all
machines, and which this machine shows its own secret.
"""

import json
import os
import ssl
import sys
import urllib.error
import urllib.request
from pathlib import Path, PureWindowsPath
from typing import Any

from diskbook.clusters.powershell import scripts
from diskbook_emulator import FOLDER_VARIABLE, windows_verify

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
        return _printed(windows_verify.answer(request))
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
