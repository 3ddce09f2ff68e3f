"""Which emulator a run has, and how it is."""

import hashlib
from pathlib import Path

from diskbook.results.run import Run
from diskbook_emulator import lifecycle


def emulator_state(name: str) -> str:
    """Return "running", "kept" (stopped, its state kept), "dead" (killed) or "absent"."""
    return next((row.state for row in lifecycle.status() if row.name == name), "absent")


def own_emulator_name(folder: Path) -> str:
    """Name of the own emulator of the run in a folder.

    Short, since the paths of an emulator's sockets are limited; the folder makes it unique on the machine.
    """
    return "run-" + hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:8]


def emulator_name(run: Run) -> str | None:
    """Name of a run's emulator, None for a run on Azure; a manifest can name none as its own but its own."""
    emulator = run.manifest.get("emulator")
    if emulator is None:
        return None
    return own_emulator_name(run.folder) if emulator["own"] else str(emulator["name"])
