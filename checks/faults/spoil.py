"""Tools that fail, and disks that are full."""

import contextlib
import os
import shutil
import signal
import subprocess
from pathlib import Path

from checks.faults.moments import Trial, measuring, tool_of
from checks.faults.play import acting
from checks.faults.scene import NotStruck, Scene

FILLER = "filler"

# Fails the first time as a fault says, and is fio from then on. Each machine has its own.
BAD_FIO = """#!/bin/sh
case "$*" in *--name=trial*) ;; *) exec {fio} "$@" ;; esac
[ -e "$HOME/failed" ] && exec {fio} "$@"
touch "$HOME/failed"
{how}
"""


@acting
def bad_fio(scene: Scene, how: str) -> None:
    """Put a fio on all machines that fails once: a line of shell in its place."""
    scene.until(lambda: scene.events("stage", stage="provision"), "the machines stood")
    script = BAD_FIO.format(fio=shutil.which("fio"), how=how.replace("FIO", str(shutil.which("fio"))))
    for machine in scene.emulator.folder.glob("vms/*"):
        path = machine / "bin" / "fio"
        path.write_text(script)
        path.chmod(0o700)


@acting
def strike_fio(scene: Scene, moment: Trial, number: signal.Signals) -> None:
    """Send the running fio a signal."""
    job = moment(scene)
    scene.until(lambda: tool_of(job), "fio ran").send_signal(number)


# --- full disks


def can_mount() -> bool:
    """Whether this user may mount a small disk to fill."""
    return os.geteuid() == 0 and shutil.which("mount") is not None


def _mount(folder: Path, size: str) -> None:
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise NotStruck(f"no small disk can be mounted: {done.stderr.strip()}")


def fill(folder: Path) -> None:
    """Take all room that is left where a folder lies."""
    state = os.statvfs(folder)
    with contextlib.suppress(OSError):
        (folder / FILLER).write_bytes(b"\0" * (state.f_bavail * state.f_frsize))


def small_runs(scene: Scene) -> None:
    """Have the folder of runs on a small disk of its own."""
    _mount(scene.folder / "runs", "8m")


def fill_run_folder(scene: Scene) -> None:
    """Fill that disk in the middle of a trial."""
    measuring(scene)
    fill(scene.folder / "runs")


def make_room(scene: Scene) -> None:
    """Make room again."""
    (scene.folder / "runs" / FILLER).unlink()


def fill_machines(scene: Scene) -> None:
    """Let the machines' own disks be full until a trial has failed of it."""
    scene.until(lambda: scene.events("stage", stage="provision"), "the machines stood")
    homes = list(scene.emulator.folder.glob("vms/*/home"))
    for home in homes:
        _mount(home, "256k")
    try:
        scene.until(lambda: scene.events("overwrite"), "the disk was filled and overwritten")
        for home in homes:
            fill(home)
        scene.until(lambda: scene.events("trial", status="failed"), "a trial failed")
        for home in homes:
            (home / FILLER).unlink()
        scene.until(lambda: scene.events("stage", stage="benchmark"), "all was measured")
    finally:
        for home in homes:
            subprocess.run(["umount", "-l", str(home)], check=False)
