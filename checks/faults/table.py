"""The table of faults: what goes wrong, where, and what a person does before going on."""

from pathlib import Path
from signal import SIGHUP, SIGINT, SIGKILL, SIGSTOP, SIGTERM
from typing import Any

import yaml

from checks import store_proxy
from checks.faults import inject, own_host, spoil, stores
from checks.faults.moments import (
    analysing,
    creating,
    ending_block,
    measured_first,
    measuring,
    tearing_down,
)
from checks.faults.play import Fault
from checks.faults.scene import LEASE_S, OWN, VOLUMES
from diskbook_emulator.types import Json

PROVISION, BENCHMARK, ANALYSE, TEARDOWN = "1-provision", "2-benchmark", "3-analyse", "4-teardown"
ALL = "1 to 4"
PLANTED = Path(__file__).with_name("control-plane.yaml")


def request(method: str, path_regex: str, action: Json) -> tuple[Json, ...]:
    """Have a request always meet with an action."""
    return ({"match": {"method": method, "path_regex": path_regex}, "times": 0, "action": action},)


def step_killed(step: str, changes: int = 1) -> tuple[Json, ...]:
    """Have a step of a cluster be killed once, after some of its changes."""
    return ({"match": {"step": step}, "times": 1, "action": {"killed_after": changes}},)


def refusal(code: str, message: str, status: int = 409) -> Json:
    """Answer with an error."""
    return {"status": status, "code": code, "message": message}


def _planted(row: dict[str, Any]) -> Fault:
    """Make a fault of a row of the file, whose lists become tuples."""
    values: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in row.items()
    }
    return Fault(kind="control plane", **values)


_CONTROL_PLANE = (
    *map(_planted, yaml.safe_load(PLANTED.read_text("utf-8"))),
    Fault(
        "plane-restarts", "control plane", "the control plane restarts, machines reboot", BENCHMARK,
        inject=inject.restart_emulator(measuring), proof="failed",
    ),
)  # fmt: skip

_SSH_AND_MACHINES = (
    Fault(
        "ssh-late", "SSH", "a new machine's sshd does not answer for 5 s", PROVISION,
        inject=inject.late_ssh(5),
    ),
    Fault(
        "ssh-never", "SSH", "a new machine's sshd never answers; kept for a look", PROVISION,
        inject=inject.never_ssh, asked=("--debug-minutes", "10"), proof="stop",
    ),
    Fault(
        "ssh-cut", "SSH", "cut for 4 s during a trial", BENCHMARK,
        inject=inject.cut_ssh(measuring, 4),
    ),
    Fault(
        "ssh-hung", "SSH", "sshd hangs for good", BENCHMARK,
        inject=inject.hang_ssh(measuring), proof="recovery",
    ),
    Fault(
        "lid-closed", "SSH", "client suspended past the trial's end, SSH cut", BENCHMARK,
        inject=inject.close_lid(measuring), named=False,
    ),
    Fault(
        "machine-restarted", "machine", "restarted during a trial", BENCHMARK,
        inject=inject.power("restart", measuring), proof="failed",
    ),
    Fault(
        "machine-evicted", "machine", "deallocated during a trial", BENCHMARK,
        inject=inject.power("deallocate", measuring), proof="recovery",
    ),
    Fault(
        "machine-evicted-for-good", "machine", "deallocated, and no room to start it", BENCHMARK,
        inject=inject.power("deallocate", measuring, refusal("AllocationFailed", "Allocation failed.")),
        mend=inject.pardon, proof="stop",
    ),
    Fault(
        "machine-deleted", "machine", "deleted during a trial", BENCHMARK,
        inject=inject.power("delete", measuring), proof="stop",
    ),
)  # fmt: skip

_LEFT_STANDING = (
    Fault(
        "foreign-disk", "left standing", "somebody's disk in the run's group; its owner deletes it", TEARDOWN,
        inject=inject.foreign_disk(measuring), mend=inject.take_back_foreign, stands=(inject.FOREIGN,),
        proof="stop",
    ),
    Fault(
        "expired", "left standing", "machines expire during a trial: Azure deallocates them", BENCHMARK,
        inject=inject.expire(measuring), mend=inject.found("deallocated"), proof="stop",
    ),
    Fault(
        "expired-without-schedule", "left standing", "the same, no right to write schedules", BENCHMARK,
        planted=request("PUT", "/schedules/", refusal("AuthorizationFailed", "No right.", 403)),
        inject=inject.expire(measuring), mend=inject.found("stopped"), proof="stop",
    ),
)  # fmt: skip

_TOOLS_AND_DISKS = (
    Fault(
        "fio-fails", "tool", "fio ends with an error", BENCHMARK,
        inject=spoil.bad_fio("echo 'fio: io_u error on file: Input/output error' >&2; exit 5"),
        proof="failed",
    ),
    Fault(
        "fio-garbage", "tool", "fio prints garbage", BENCHMARK,
        inject=spoil.bad_fio("head -c 4096 /dev/urandom; exit 0"), proof="failed",
    ),
    Fault(
        "fio-cut", "tool", "fio's output is cut", BENCHMARK,
        inject=spoil.bad_fio('FIO "$@" | head -c 900; exit 0'), proof="failed",
    ),
    Fault(
        "fio-killed", "tool", "fio is killed -9", BENCHMARK,
        inject=spoil.strike_fio(measuring, SIGKILL), proof="failed",
    ),
    Fault(
        "fio-hangs", "tool", "fio hangs", BENCHMARK,
        inject=spoil.strike_fio(measuring, SIGSTOP), proof="failed",
    ),
    Fault(
        "run-folder-full", "disk full", "no room for results during a trial", BENCHMARK,
        prepare=spoil.small_runs, inject=spoil.fill_run_folder, mend=spoil.make_room, root=True,
        proof="stop",
    ),
    Fault(
        "machine-full", "disk full", "no room on the machine for a trial's output", BENCHMARK,
        inject=spoil.fill_machines, root=True, proof="failed",
    ),
)  # fmt: skip

_PROCESSES = (
    Fault(
        "client-killed-creating", "kill -9", "diskbook run; then swept", PROVISION,
        inject=inject.kill_client(creating), mend=inject.sweep, cut=True, proof="stop",
    ),
    Fault(
        "client-killed-measuring", "kill -9", "diskbook run; machines stand on", BENCHMARK,
        inject=inject.kill_client(measuring), cut=True, proof="stop",
    ),
    Fault(
        "client-killed-at-the-end-of-a-block", "kill -9", "diskbook run, in a block's last trial", BENCHMARK,
        inject=inject.kill_client(ending_block), cut=True, proof="stop",
    ),
    Fault(
        "client-killed-swept", "kill -9", "diskbook run; then swept", BENCHMARK,
        inject=inject.kill_client(measuring), mend=inject.sweep, cut=True, proof="stop",
    ),
    Fault(
        "client-killed-own", "kill -9", "diskbook run with its own emulator", BENCHMARK,
        inject=inject.kill_client(measuring), named=False, cut=True, proof="stop",
    ),
    Fault(
        "client-killed-analysing", "kill -9", "diskbook run; then swept", ANALYSE,
        inject=inject.kill_client(analysing), mend=inject.sweep, cut=True, proof="stop",
    ),
    Fault(
        "kernel-killed-creating", "kill -9", "kernel", PROVISION,
        inject=inject.kill_kernel(creating), proof="stop",
    ),
    Fault(
        "kernel-killed-measuring", "kill -9", "kernel", BENCHMARK,
        inject=inject.kill_kernel(measuring), proof="stop",
    ),
    Fault(
        "kernel-killed-analysing", "kill -9", "kernel", ANALYSE,
        inject=inject.kill_kernel(analysing), proof="stop",
    ),
    Fault(
        "kernel-killed-at-teardown", "kill -9", "kernel", TEARDOWN,
        inject=inject.kill_kernel(tearing_down), proof="stop",
    ),
    Fault(
        "stage-killed", "kill -9", "papermill's process", BENCHMARK,
        inject=inject.kill_stage(measuring), named=False, proof="stop",
    ),
    Fault(
        "emulator-killed-creating", "kill -9", "the run's own emulator", PROVISION,
        inject=inject.kill_emulator(creating), named=False, proof="stop",
    ),
    Fault(
        "emulator-killed-measuring", "kill -9", "the run's own emulator", BENCHMARK,
        inject=inject.kill_emulator(measuring), named=False, proof="stop",
    ),
    Fault(
        "sshd-killed", "kill -9", "the machines' sshd", BENCHMARK,
        inject=inject.kill_emulated("sshd", measuring),
    ),
    Fault(
        "nbdkit-killed", "kill -9", "the disk's nbdkit", BENCHMARK,
        inject=inject.kill_emulated("nbdkit", measuring), proof="failed",
    ),
    Fault(
        "interrupted", "signal", "SIGINT (Ctrl-C)", PROVISION,
        inject=inject.send(SIGINT, creating), named=False, proof="stop",
    ),
    Fault(
        "terminated", "signal", "SIGTERM", BENCHMARK,
        inject=inject.send(SIGTERM, measured_first), named=False, proof="stop",
    ),
    Fault(
        "hung-up", "signal", "SIGHUP (terminal closed)", ANALYSE,
        inject=inject.send(SIGHUP, analysing), proof="stop",
    ),
)  # fmt: skip

_VOLUMES = (
    Fault(
        "step-killed", "volumes", "the step that makes the volume is killed half-way", BENCHMARK,
        planted=step_killed("volume"), proof="stop", scenario=VOLUMES,
    ),
    Fault(
        "node-lost", "volumes", "a node is deallocated in a trial on its volume", BENCHMARK,
        inject=inject.lose_node("n2", measured_first), proof="recovery", scenario=VOLUMES,
    ),
    Fault(
        "disk-lost", "volumes", "a disk of the pool is detached in a trial", BENCHMARK,
        inject=inject.lose_disk("p10-n2-1", "n2", measured_first), proof="stop", scenario=VOLUMES,
    ),
    Fault(
        "cluster-restarts", "volumes", "the emulator restarts in a trial, and with it all nodes", BENCHMARK,
        inject=inject.restart_emulator(measuring), proof="failed", scenario=VOLUMES,
    ),
)  # fmt: skip

_OWN_HOSTS = (
    Fault(
        "host-vanishes", "own hosts", "a host is switched off during a trial, and on again", BENCHMARK,
        prepare=own_host.over_ssh, inject=own_host.vanish, mend=own_host.come_back, named=False, away=True,
        proof="stop", scenario=OWN,
    ),
    Fault(
        "host-full", "own hosts", "its disk is full before the file is written", BENCHMARK,
        prepare=own_host.small_disk, inject=own_host.fill_it, mend=own_host.make_room, named=False,
        root=True, proof="stop", scenario=OWN,
    ),
    Fault(
        "device-with-data", "own hosts", "a device with a file system on it is refused", PROVISION,
        prepare=own_host.device_with_data, mend=own_host.wipe, named=False, root=True, proof="stop",
        scenario=OWN,
    ),
)  # fmt: skip

_STORE = (
    Fault(
        "store-busy", "store", "503, 500 or 429, the first time for each object", ALL,
        prepare=stores.by_object("503, 500 or 429"), azurite=True,
    ),
    Fault(
        "store-conflict", "store", "409 for each object, and nothing is there", ALL,
        prepare=stores.by_object("409 and nothing there"), azurite=True,
    ),
    Fault(
        "store-upload-cut", "store", "each upload is cut half-way, once", ALL,
        prepare=stores.by_object("cut upload"), azurite=True,
    ),
    Fault(
        "store-closed", "store", "each first request gets no answer", ALL,
        prepare=stores.by_object("closed at once"), azurite=True,
    ),
    Fault(
        "store-answer-lost", "store", "each object is stored, and nobody is told", ALL,
        prepare=stores.by_object("lost answer"), azurite=True,
    ),
    Fault(
        "store-slow", "store", "each answer takes half a second", ALL,
        prepare=stores.always(store_proxy.slow(0.5)), azurite=True,
    ),
    Fault(
        "store-answer-cut", "store", "each object that is read is cut, once", ALL,
        prepare=stores.by_object("short answer"), azurite=True,
    ),
    Fault(
        "store-damaged", "store", "each file that is read has a wrong byte, once", ALL,
        prepare=stores.by_object("damaged on the way"), azurite=True,
    ),
    Fault(
        "store-away", "store", "away for half a lease", BENCHMARK,
        prepare=stores.served, inject=stores.away(LEASE_S / 2), azurite=True,
    ),
    Fault(
        "store-gone", "store", "away for good", BENCHMARK,
        prepare=stores.served, inject=stores.away_for_good, mend=stores.back, proof="stop", azurite=True,
    ),
    Fault(
        "store-lease-lost", "store", "client suspended, another owned the run meanwhile", BENCHMARK,
        prepare=stores.served, inject=stores.taken_over, proof="stop", azurite=True,
    ),
    Fault(
        "second-machine", "store", "kill -9; then on a second machine", BENCHMARK,
        prepare=stores.first_machine, inject=stores.to_the_second, mend=stores.refuse_a_stranger, cut=True,
        proof="stop",
    ),
)  # fmt: skip

FAULTS = (
    *_CONTROL_PLANE,
    *_SSH_AND_MACHINES,
    *_LEFT_STANDING,
    *_TOOLS_AND_DISKS,
    *_VOLUMES,
    *_OWN_HOSTS,
    *_PROCESSES,
    *_STORE,
)
