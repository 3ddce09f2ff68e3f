"""The harm that is done: to processes, sessions, machines, tools and disks. Each waits for its moment."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from diskbook import clouds
from diskbook.azure.attach import group_and_name
from diskbook.emulator import lifecycle
from diskbook.emulator.types import Json
from diskbook.faults.aftermath import groups
from diskbook.faults.play import Act
from diskbook.faults.scene import EMULATOR, PLAYED, NotStruck, Scene, line_of

_NAMED = {"cloud": "emulator", "emulator": {"name": EMULATOR}}
Moment = Callable[[Scene], object]
FILLER = "filler"

# Fails the first time as a fault says, and is fio from then on. Each machine has its own.
BAD_FIO = """#!/bin/sh
case "$*" in *--name=trial*) ;; *) exec {fio} "$@" ;; esac
[ -e "$HOME/failed" ] && exec {fio} "$@"
touch "$HOME/failed"
{how}
"""


# --- moments


def creating(scene: Scene) -> object:
    """Machines are being created."""
    return scene.until(lambda: list(scene.emulator.folder.glob("vms/*/sshd.pid")), "a machine was created")


def measuring(scene: Scene) -> Path:
    """The first trial of the second block runs; the folder of its job is returned."""
    found: list[Path] = scene.until(lambda: scene.jobs("r*-b02-p001-*"), "the second block began")
    return found[0]


def ending_block(scene: Scene) -> Path:
    """The last trial of the last block runs."""
    found: list[Path] = scene.until(lambda: scene.jobs("r*-b02-p002-*"), "the last trial began")
    return found[0]


def measured_first(scene: Scene) -> object:
    """The first trial runs."""
    return scene.until(lambda: scene.jobs("r*-b01-p001-*"), "the first trial began")


def analysing(scene: Scene) -> object:
    """The notebook that analyses has a kernel."""
    scene.until(lambda: scene.said("3-analyse-zone-disks ..."), "the analysis began")
    return kernel(scene)


def tearing_down(scene: Scene) -> object:
    """The last notebook has a kernel."""
    scene.until(lambda: scene.said("4-teardown ..."), "the teardown began")
    return kernel(scene)


def kernel(scene: Scene) -> psutil.Process:
    """Return the kernel of the notebook that is being executed, once it is there."""
    found: list[psutil.Process] = scene.until(lambda: scene.family("ipykernel_launcher"), "a kernel ran")
    return found[0]


# --- processes


def kill_client(moment: Moment) -> Act:
    """Kill -9 the command, as when its machine loses power."""

    def act(scene: Scene) -> None:
        moment(scene)
        family = scene.family()
        assert scene.process is not None
        scene.process.kill()
        scene.process.wait()
        psutil.wait_procs(family, 20)  # what it started ends by itself

    return act


def kill_kernel(moment: Moment) -> Act:
    """Kill -9 the kernel of a notebook."""

    def act(scene: Scene) -> None:
        moment(scene)
        kernel(scene).kill()

    return act


def kill_stage(moment: Moment) -> Act:
    """Kill -9 the process that executes a notebook."""

    def act(scene: Scene) -> None:
        moment(scene)
        scene.family("diskbook.notebook_stage")[-1].kill()

    return act


def send(number: signal.Signals, moment: Moment) -> Act:
    """Send the command a signal."""

    def act(scene: Scene) -> None:
        moment(scene)
        assert scene.process is not None
        scene.process.send_signal(number)

    return act


def kill_emulated(name: str, moment: Callable[[Scene], Path]) -> Act:
    """Kill -9 the emulator's processes of a name: its sshd listeners, its disks."""

    def act(scene: Scene) -> None:
        tool = hold(scene, moment(scene))
        folder = str(scene.emulator.folder)
        killed = 0
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.name() == name and folder in line_of(process):
                    process.kill()
                    killed += 1
        tool.resume()
        if not killed:
            raise NotStruck(f"no {name} ran")

    return act


def kill_emulator(moment: Moment) -> Act:
    """Kill -9 the emulator itself: all machines and disks are gone with it."""

    def act(scene: Scene) -> None:
        moment(scene)
        os.kill(scene.emulator.pid, signal.SIGKILL)

    return act


def restart_emulator(moment: Callable[[Scene], Path]) -> Act:
    """Stop the emulator and start it again with its state: machines reboot, the control plane was away."""

    def act(scene: Scene) -> None:
        hold(scene, moment(scene))
        lifecycle.stop(EMULATOR, keep_state=True)
        lifecycle.start(EMULATOR, **PLAYED, owner=True)

    return act


def sweep(scene: Scene) -> None:
    """Have leftovers deleted, as a person does after a lost run."""
    if not groups(scene):
        raise NotStruck("the killed run left nothing to sweep")
    scene.diskbook("sweep", "--delete", "--cloud", "emulator", "--emulator", EMULATOR)
    if left := groups(scene):
        raise NotStruck(f"the sweep left {left}")


# --- SSH


def _machine_of(job: Path) -> Path:
    return job.parents[2]


def _listener(machine: Path) -> psutil.Process:
    return psutil.Process(int((machine / "sshd.pid").read_text()))


def cut_ssh(moment: Callable[[Scene], Path], seconds: float) -> Act:
    """Cut all sessions of the machine that measures, and let nobody in for a while."""

    def act(scene: Scene) -> None:
        job = moment(scene)
        listener = _listener(_machine_of(job))
        tool = hold(scene, job)
        listener.suspend()
        sessions = listener.children()
        for session in sessions:
            session.kill()
        tool.resume()
        time.sleep(seconds)
        listener.resume()
        if not sessions:
            raise NotStruck("there was no session to cut")

    return act


def late_ssh(seconds: float) -> Act:
    """Have a new machine's sshd not answer at first."""

    def act(scene: Scene) -> None:
        creating(scene)
        machine = next(scene.emulator.folder.glob("vms/*/sshd.pid")).parent
        listener = _listener(machine)
        listener.suspend()
        time.sleep(seconds)
        listener.resume()

    return act


def hang_ssh(moment: Callable[[Scene], Path]) -> Act:
    """Hang the machine's sshd for good."""

    def act(scene: Scene) -> None:
        job = moment(scene)
        listener = _listener(_machine_of(job))
        hold(scene, job)
        listener.suspend()
        for session in listener.children():
            session.kill()

    return act


def close_lid(moment: Callable[[Scene], Path]) -> Act:
    """Suspend the client until its trial has ended and its connection is gone; then wake it."""

    def act(scene: Scene) -> None:
        job = moment(scene)
        tool = hold(scene, job)
        family = scene.family()
        for process in family:
            process.suspend()
        for session in _listener(_machine_of(job)).children():
            session.kill()
        tool.resume()
        deadline = time.monotonic() + 30
        while not (job / "status").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(3.0)
        for process in reversed(family):
            process.resume()

    return act


# --- machines


def power(action: str, moment: Callable[[Scene], Path], refuse_start: Json | None = None) -> Act:
    """Do something through Azure to the machine that measures: "deallocate", "restart", "delete"."""

    def act(scene: Scene) -> None:
        machines = clouds.clients_of(_NAMED).compute.virtual_machines  # takes a second; a trial is not longer
        job = moment(scene)
        hold(scene, job)
        rows = scene.run.manifest["replicates"][-1]["machines"].values()
        places = [group_and_name(row["id"]) for row in rows]
        place = next(place for place in places if _machine_of(job).name.startswith(f"{place[1]}-"))
        if refuse_start is not None:
            match = {"method": "POST", "path_regex": "/start$"}
            lifecycle.plant(scene.emulator, [{"match": match, "times": 0, "action": refuse_start}])
        getattr(machines, f"begin_{action}")(*place).result()

    return act


def hold(scene: Scene, job: Path) -> psutil.Process:
    """Suspend the fio of a trial, so that the trial is not over before the harm is done."""
    tool: psutil.Process = scene.until(lambda: _tool(job), "fio ran")
    tool.suspend()
    return tool


def pardon(scene: Scene) -> None:
    """Take back what the control plane was told to refuse."""
    lifecycle.plant(scene.emulator, [])


# --- tools


def bad_fio(how: str) -> Act:
    """Put a fio on all machines that fails once: a line of shell in its place."""

    def act(scene: Scene) -> None:
        scene.until(lambda: scene.events("stage", stage="provision"), "the machines stood")
        script = BAD_FIO.format(fio=shutil.which("fio"), how=how.replace("FIO", str(shutil.which("fio"))))
        for machine in scene.emulator.folder.glob("vms/*"):
            path = machine / "bin" / "fio"
            path.write_text(script)
            path.chmod(0o700)

    return act


def _tool(job: Path) -> psutil.Process:
    """Return the fio that measures."""
    shell = psutil.Process(int((job / "pid").read_text()))
    return next(child for child in shell.children(recursive=True) if child.name() == "fio")


def strike_fio(moment: Callable[[Scene], Path], number: signal.Signals) -> Act:
    """Send the running fio a signal."""

    def act(scene: Scene) -> None:
        job = moment(scene)
        scene.until(lambda: _tool(job), "fio ran").send_signal(number)

    return act


# --- full disks


def can_mount() -> bool:
    """Whether this user may mount a small disk to fill."""
    return os.geteuid() == 0 and shutil.which("mount") is not None


def _mount(folder: Path, size: str) -> None:
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise NotStruck(f"no small disk can be mounted: {done.stderr.strip()}")


def _fill(folder: Path) -> None:
    state = os.statvfs(folder)
    with contextlib.suppress(OSError):
        (folder / FILLER).write_bytes(b"\0" * (state.f_bavail * state.f_frsize))


def small_runs(scene: Scene) -> None:
    """Have the folder of runs on a small disk of its own."""
    _mount(scene.folder / "runs", "8m")


def fill_run_folder(scene: Scene) -> None:
    """Fill that disk in the middle of a trial."""
    measuring(scene)
    _fill(scene.folder / "runs")


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
        scene.until(lambda: scene.events("prefill"), "the disk was filled")
        for home in homes:
            _fill(home)
        scene.until(lambda: scene.events("trial", status="failed"), "a trial failed")
        for home in homes:
            (home / FILLER).unlink()
        scene.until(lambda: scene.events("stage", stage="benchmark"), "all was measured")
    finally:
        for home in homes:
            subprocess.run(["umount", "-l", str(home)], check=False)
