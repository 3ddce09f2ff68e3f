"""The harm that is done: to processes, sessions, machines, tools and disks. Each waits for its moment."""

import contextlib
import os
import signal
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
from azure.core.rest import HttpRequest

from checks.faults.aftermath import groups
from checks.faults.moments import Moment, Trial, creating, hold, kernel, release
from checks.faults.play import Act
from checks.faults.scene import EMULATOR, PLAYED, NotStruck, Scene, line_of
from diskbook.cloud.azure import expiry
from diskbook.cloud.azure.attach import group_and_name
from diskbook.emulated import cloud as emulated
from diskbook_emulator import lifecycle
from diskbook_emulator.types import Json

FOREIGN = "payroll"  # the name of a disk that is not the run's

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
        scene.family("diskbook.measure.runs.execute_notebook")[-1].kill()

    return act


def send(number: signal.Signals, moment: Moment) -> Act:
    """Send the command a signal."""

    def act(scene: Scene) -> None:
        moment(scene)
        assert scene.process is not None
        scene.process.send_signal(number)

    return act


def kill_emulated(name: str, moment: Trial) -> Act:
    """Kill -9 the emulator's processes of a name: its sshd listeners, its disks."""

    def act(scene: Scene) -> None:
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

    return act


def kill_emulator(moment: Moment) -> Act:
    """Kill -9 the emulator itself: all machines and disks are gone with it."""

    def act(scene: Scene) -> None:
        moment(scene)
        os.kill(scene.emulator.pid, signal.SIGKILL)

    return act


def restart_emulator(moment: Trial) -> Act:
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


def cut_ssh(moment: Trial, seconds: float) -> Act:
    """Cut all sessions of the machine that measures, and let nobody in for a while."""

    def act(scene: Scene) -> None:
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


def never_ssh(scene: Scene) -> None:
    """Have a new machine's sshd never answer."""
    creating(scene)
    sshd = _listener(next(scene.emulator.folder.glob("vms/*/sshd.pid")).parent)
    scene.until(lambda: [row for row in sshd.net_connections() if row.status == "LISTEN"], "sshd listened")
    sshd.suspend()


def hang_ssh(moment: Trial) -> Act:
    """Hang the machine's sshd for good."""

    def act(scene: Scene) -> None:
        job = moment(scene)
        listener = _listener(_machine_of(job))
        hold(scene, job)
        listener.suspend()
        for session in listener.children():
            session.kill()

    return act


def close_lid(moment: Trial) -> Act:
    """Suspend the client until its trial has ended and its connection is gone; then wake it."""

    def act(scene: Scene) -> None:
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

    return act


# --- machines


def power(action: str, moment: Trial, refuse_start: Json | None = None) -> Act:
    """Do something through Azure to the machine that measures: "deallocate", "restart", "delete"."""

    def act(scene: Scene) -> None:
        # Takes a second; a trial is not longer.
        machines = emulated.clients(EMULATOR).compute.virtual_machines
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


def foreign_disk(moment: Trial) -> Act:
    """Put a disk that is not the run's into its group, as a policy or a colleague may."""

    def act(scene: Scene) -> None:
        hold_up = hold(scene, moment(scene))
        (group,) = groups(scene)
        body = {"location": scene.run.scenario.region, "sku": {"name": "Premium_LRS"}}
        body["properties"] = {"creationData": {"createOption": "Empty"}, "diskSizeGB": 64}
        disks = emulated.clients(EMULATOR).compute.disks
        disks.begin_create_or_update(group, FOREIGN, body).result()
        release(hold_up)

    return act


def take_back_foreign(scene: Scene) -> None:
    """Delete the foreign disk, as its owner does, and tear down what it has kept."""
    (group,) = groups(scene)
    emulated.clients(EMULATOR).compute.disks.begin_delete(group, FOREIGN).result()
    scene.diskbook("teardown", scene.run.name)


def expire(moment: Trial) -> Act:
    """Let the time pass at which the machines expire, and twenty minutes more."""

    def act(scene: Scene) -> None:
        held = hold(scene, moment(scene))
        past = (datetime.now(UTC) - timedelta(seconds=1)).isoformat("T", "seconds")
        rows = scene.run.manifest["resource_groups"]
        scene.run.update_manifest(resource_groups=[{**row, "expires_utc": past} for row in rows])
        _set_clock((expiry.DEFAULT_H * 60 + 20) * 60)
        scene.until(lambda: not any(map(psutil.Process.is_running, held)), "the machines were shut down")

    return act


def _set_clock(ahead_s: float) -> None:
    request = HttpRequest("PUT", "/diskbook/clock", json={"ahead_s": ahead_s})
    emulated.clients(EMULATOR).resource.send_request(request).raise_for_status()


def found(power: str) -> Act:
    """Check in which power state the ledger says that expired machines were; then set the clock right."""

    def act(scene: Scene) -> None:
        if not scene.events("expired", power=power, billed=power != "deallocated"):
            raise NotStruck(f"no machine was found {power}")
        _set_clock(0)

    return act


def lose_node(name: str, moment: Trial) -> Act:
    """Deallocate a node of a cluster, by its name in the scenario, while another one measures."""

    def act(scene: Scene) -> None:
        machines = emulated.clients(EMULATOR).compute.virtual_machines
        fio = hold(scene, moment(scene))
        row = scene.run.manifest["replicates"][-1]["machines"][name]
        machines.begin_deallocate(*group_and_name(row["id"])).result()
        release(fio)

    return act


def lose_disk(name: str, node: str, moment: Trial) -> Act:
    """Detach a disk of a pool from its node, by their names in the scenario."""

    def act(scene: Scene) -> None:
        machines = emulated.clients(EMULATOR).compute.virtual_machines
        fio = hold(scene, moment(scene))
        replicate = scene.run.manifest["replicates"][-1]
        place = group_and_name(replicate["machines"][node]["id"])
        body = {"dataDisksToDetach": [{"diskId": replicate["disks"][name]["id"]}]}
        machines.begin_attach_detach_data_disks(*place, body).result()
        release(fio)

    return act


def pardon(scene: Scene) -> None:
    """Take back what the control plane was told to refuse."""
    lifecycle.plant(scene.emulator, [])
