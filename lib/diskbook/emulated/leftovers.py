"""Find what killed runs have left of their emulators: the emulators, and records with a key."""

import contextlib
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from diskbook.cloud.azure import expiry
from diskbook.cloud.kinds import Leftover
from diskbook.emulated.state import emulator_name, emulator_state
from diskbook.measure.runs.sweep import close, has_ended, local_runs
from diskbook.results.run import Run
from diskbook_emulator import folders, lifecycle


def find() -> Iterator[Leftover]:
    """Find records first: closing one also removes its emulator."""
    yield from _records()
    yield from _dead_emulators()


def _records() -> Iterator[Leftover]:
    """Runs that were killed and whose own emulator has ended with them: a record of groups, and a key."""
    for run in local_runs():
        manifest = run.manifest
        own = (manifest.get("emulator") or {}).get("own", False)
        name = emulator_name(run) or ""
        if not own or emulator_state(name) == "running" or not has_ended(run):
            continue
        stand = any(not row["deleted_utc"] for row in manifest["resource_groups"])
        if stand or (run.folder / "keys").exists():
            yield Leftover(
                f"key and open record of run {run.name}, which was killed", True, partial(close, run)
            )


def _dead_emulators() -> Iterator[Leftover]:
    users: dict[str | None, list[Run]] = {}
    for run in local_runs():
        users.setdefault(emulator_name(run), []).append(run)
    for row in lifecycle.status():
        if row.state != "dead":
            continue
        needed = [run.name for run in users.get(row.name, []) if not has_ended(run)]
        text = f"emulator {row.name}, which was killed, with its folder {row.folder}"
        remove = partial(_stop, row.name)
        if needed:
            yield Leftover(f"{text}: run {needed[0]} may resume it", False, remove)
        elif row.name not in users and _age_s(row.folder) < expiry.LONGEST_H * 3600:
            yield Leftover(f"{text}: no run here uses it, one elsewhere may", False, remove)
        else:
            yield Leftover(text, True, remove)


def _stop(emulator: str) -> None:
    """Remove a killed emulator, unless that has been done with its run's record."""
    if emulator_state(emulator) == "dead":
        lifecycle.stop(emulator)


def _age_s(state: Path) -> float:
    with contextlib.suppress(OSError):
        return time.time() - (state / folders.CONFIG).stat().st_mtime
    return 0.0
