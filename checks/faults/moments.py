"""The moments at which harm is done: by what the run has recorded and what runs, never by the clock."""

import contextlib
from collections.abc import Callable
from pathlib import Path

import psutil

from checks.faults.scene import Scene
from diskbook.design import scenario_file
from diskbook_emulator import processes

SOME_IO = 50
Moment = Callable[[Scene], object]
Trial = Callable[[Scene], Path]  # a moment in a trial; gives the folder of its job on the machine


def creating(scene: Scene) -> object:
    """Machines are being created."""
    return scene.until(lambda: list(scene.emulator.folder.glob("vms/*/sshd.pid")), "a machine was created")


def measuring(scene: Scene) -> Path:
    """The first trial of the second block runs; the folder of its job is returned."""
    folders: list[Path] = scene.until(lambda: scene.jobs("r*-b02-p001-*"), "the second block began")
    return folders[0]


def ending_block(scene: Scene) -> Path:
    """The last trial of the last block runs."""
    folders: list[Path] = scene.until(lambda: scene.jobs("r*-b02-p002-*"), "the last trial began")
    return folders[0]


def measured_first(scene: Scene) -> Path:
    """The first trial runs; the folder of its job is returned."""
    folders: list[Path] = scene.until(lambda: scene.jobs("r*-b01-p001-*"), "the first trial began")
    return folders[0]


def analysing(scene: Scene) -> object:
    """The notebook that analyses has a kernel."""
    notebook = scenario_file.load(str(scene.scenario)).analysis_notebook
    scene.until(lambda: scene.said(f"{notebook} ..."), "the analysis began")
    return kernel(scene)


def tearing_down(scene: Scene) -> object:
    """The last notebook has a kernel."""
    scene.until(lambda: scene.said("4-teardown ..."), "the teardown began")
    return kernel(scene)


def kernel(scene: Scene) -> psutil.Process:
    """Return the kernel of the notebook that is being executed, once it is there."""
    module = "diskbook.measure.runs.kernel"
    kernels: list[psutil.Process] = scene.until(lambda: scene.family(module), "a kernel ran")
    return kernels[0]


def tool_of(job: Path) -> psutil.Process:
    """Return the fio that measures: below the job's shell, or by a stand-in in the folder of its machine."""
    shell = psutil.Process(int((job / "pid").read_text()))
    candidates = [*shell.children(recursive=True), *processes.marked(job.parents[2])]
    return next(process for process in candidates if process.name() == "fio")


def hold(scene: Scene, job: Path) -> list[psutil.Process]:
    """Suspend the fio of a trial amid its I/O, so that the trial is not over before the harm is done."""
    fio: list[psutil.Process] = scene.until(lambda: _at_work(job), "fio read and wrote")
    for process in fio:
        process.suspend()
    return fio


def _at_work(job: Path) -> list[psutil.Process]:
    """Return fio and its worker, once that has waited for some I/O; nothing before."""
    fio = tool_of(job)
    every = [fio, *fio.children()]
    busy = any(process.num_ctx_switches().voluntary >= SOME_IO for process in every[1:] or every)
    return every if busy else []


def release(suspended: list[psutil.Process]) -> None:
    """Let suspended processes go on, where they still are."""
    for process in suspended:
        with contextlib.suppress(psutil.Error):
            process.resume()
