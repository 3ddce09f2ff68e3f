"""The harm that is done: to processes, sessions, machines, tools and disks. Each waits for its moment."""

import contextlib
import os
import signal
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
from azure.core.rest import HttpRequest

from checks.faults.aftermath import clients, groups
from checks.faults.moments import Moment, Trial, creating, hold, kernel, release
from checks.faults.play import acting
from checks.faults.scene import EMULATOR, PLAYED, NotStruck, Scene, line_of
from diskbook.cloud.azure import expiry
from diskbook.cloud.azure.attach import group_and_name
from diskbook_emulator import lifecycle
from diskbook_emulator.types import Json

FOREIGN = "payroll"  # the name of a disk that is not the run's

# --- processes


@acting
def kill_client(scene: Scene, moment: Moment) -> None:
    """Kill -9 the command, as when its machine loses power."""
    moment(scene)
    family = scene.family()
    assert scene.process is not None
    scene.process.kill()
    scene.process.wait()
    psutil.wait_procs(family, 20)  # what it started ends by itself


@acting
def kill_kernel(scene: Scene, moment: Moment) -> None:
    """Kill -9 the kernel of a notebook."""
    moment(scene)
    kernel(scene).kill()


@acting
def kill_stage(scene: Scene, moment: Moment) -> None:
    """Kill -9 the process that executes a notebook."""
    moment(scene)
    scene.family("diskbook.measure.runs.execute_notebook")[-1].kill()


@acting
def send(scene: Scene, number: signal.Signals, moment: Moment) -> None:
    """Send the command a signal."""
    moment(scene)
    assert scene.process is not None
    scene.process.send_signal(number)


@acting
def kill_emulated(scene: Scene, name: str, moment: Trial) -> None:
    """Kill -9 the emulator's processes of a name: its sshd listeners, its disks."""
    fio = hold(scene, moment(scene))
    folder = str(scene.emulator.folder)
    killed = 0
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.name() == name and folder in line_of(process):
                process.kill()
                killed += 1
    release(fio)
    if not killed:
        raise NotStruck(f"no {name} ran")


@acting
def kill_emulator(scene: Scene, moment: Moment) -> None:
    """Kill -9 the emulator itself: all machines and disks are gone with it."""
    moment(scene)
    os.kill(scene.emulator.pid, signal.SIGKILL)


@acting
def restart_emulator(scene: Scene, moment: Trial) -> None:
    """Stop the emulator and start it again with its state: machines reboot, the control plane was away."""
    hold(scene, moment(scene))
    lifecycle.stop(EMULATOR, keep_state=True)
    lifecycle.start(EMULATOR, **PLAYED, owner=True)


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


@acting
def cut_ssh(scene: Scene, moment: Trial, seconds: float) -> None:
    """Cut all sessions of the machine that measures, and let nobody in for a while."""
    job = moment(scene)
    listener = _listener(_machine_of(job))
    fio = hold(scene, job)
    listener.suspend()
    sessions = listener.children()
    for session in sessions:
        session.kill()
    release(fio)
    time.sleep(seconds)
    listener.resume()
    if not sessions:
        raise NotStruck("there was no session to cut")


@acting
def late_ssh(scene: Scene, seconds: float) -> None:
    """Have a new machine's sshd not answer at first."""
    creating(scene)
    machine = next(scene.emulator.folder.glob("vms/*/sshd.pid")).parent
    listener = _listener(machine)
    listener.suspend()
    time.sleep(seconds)
    listener.resume()


def never_ssh(scene: Scene) -> None:
    """Have a new machine's sshd never answer."""
    creating(scene)
    sshd = _listener(next(scene.emulator.folder.glob("vms/*/sshd.pid")).parent)
    scene.until(lambda: [row for row in sshd.net_connections() if row.status == "LISTEN"], "sshd listened")
    sshd.suspend()


@acting
def hang_ssh(scene: Scene, moment: Trial) -> None:
    """Hang the machine's sshd for good."""
    job = moment(scene)
    listener = _listener(_machine_of(job))
    hold(scene, job)
    listener.suspend()
    for session in listener.children():
        session.kill()


@acting
def close_lid(scene: Scene, moment: Trial) -> None:
    """Suspend the client until its trial has ended and its connection is gone; then wake it."""
    job = moment(scene)
    fio = hold(scene, job)
    family = scene.family()
    for process in family:
        with contextlib.suppress(psutil.Error):
            process.suspend()
    for session in _listener(_machine_of(job)).children():
        session.kill()
    release(fio)
    deadline = time.monotonic() + 30
    while not (job / "status").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(3.0)
    release(family[::-1])


# --- machines


@acting
def power(scene: Scene, action: str, moment: Trial, refuse_start: Json | None = None) -> None:
    """Do something through Azure to the machine that measures: "deallocate", "restart", "delete"."""
    # Takes a second; a trial is not longer.
    machines = clients().compute.virtual_machines
    job = moment(scene)
    hold(scene, job)
    rows = scene.run.manifest["replicates"][-1]["machines"].values()
    places = [group_and_name(row["id"]) for row in rows]
    place = next(place for place in places if _machine_of(job).name.startswith(f"{place[1]}-"))
    if refuse_start is not None:
        match = {"method": "POST", "path_regex": "/start$"}
        lifecycle.plant(scene.emulator, [{"match": match, "times": 0, "action": refuse_start}])
    getattr(machines, f"begin_{action}")(*place).result()


@acting
def foreign_disk(scene: Scene, moment: Trial) -> None:
    """Put a disk that is not the run's into its group, as a policy or a colleague may."""
    hold_up = hold(scene, moment(scene))
    (group,) = groups(scene)
    body = {"location": scene.run.scenario.region, "sku": {"name": "Premium_LRS"}}
    body["properties"] = {"creationData": {"createOption": "Empty"}, "diskSizeGB": 64}
    disks = clients().compute.disks
    disks.begin_create_or_update(group, FOREIGN, body).result()
    release(hold_up)


def take_back_foreign(scene: Scene) -> None:
    """Delete the foreign disk, as its owner does, and tear down what it has kept."""
    (group,) = groups(scene)
    clients().compute.disks.begin_delete(group, FOREIGN).result()
    scene.diskbook("teardown", scene.run.name)


@acting
def expire(scene: Scene, moment: Trial) -> None:
    """Let the time pass at which the machines expire, and twenty minutes more."""
    held = hold(scene, moment(scene))
    past = (datetime.now(UTC) - timedelta(seconds=1)).isoformat("T", "seconds")
    rows = scene.run.manifest["resource_groups"]
    scene.run.update_manifest(resource_groups=[{**row, "expires_utc": past} for row in rows])
    _set_clock((expiry.DEFAULT_H * 60 + 20) * 60)
    scene.until(lambda: not any(map(psutil.Process.is_running, held)), "the machines were shut down")


def _set_clock(ahead_s: float) -> None:
    request = HttpRequest("PUT", "/diskbook/clock", json={"ahead_s": ahead_s})
    clients().resource.send_request(request).raise_for_status()


@acting
def found(scene: Scene, power: str) -> None:
    """Check in which power state the ledger says that expired machines were; then set the clock right."""
    if not scene.events("expired", power=power, billed=power != "deallocated"):
        raise NotStruck(f"no machine was found {power}")
    _set_clock(0)


@acting
def lose_node(scene: Scene, name: str, moment: Trial) -> None:
    """Deallocate a node of a cluster, by its name in the scenario, while another one measures."""
    machines = clients().compute.virtual_machines
    fio = hold(scene, moment(scene))
    row = scene.run.manifest["replicates"][-1]["machines"][name]
    machines.begin_deallocate(*group_and_name(row["id"])).result()
    release(fio)


@acting
def lose_disk(scene: Scene, name: str, node: str, moment: Trial) -> None:
    """Detach a disk of a pool from its node, by their names in the scenario."""
    machines = clients().compute.virtual_machines
    fio = hold(scene, moment(scene))
    replicate = scene.run.manifest["replicates"][-1]
    place = group_and_name(replicate["machines"][node]["id"])
    body = {"dataDisksToDetach": [{"diskId": replicate["disks"][name]["id"]}]}
    machines.begin_attach_detach_data_disks(*place, body).result()
    release(fio)


def pardon(scene: Scene) -> None:
    """Take back what the control plane was told to refuse."""
    lifecycle.plant(scene.emulator, [])
