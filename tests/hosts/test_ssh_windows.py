"""Windows machines over SSH, played by the emulator: jobs, disks, marks, and DiskSpd on them."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator

import pytest

from diskbook.cloud.azure import keys
from diskbook.design.model import Workload
from diskbook.facts.errors import DiskbookError
from diskbook.hosts import disks as machine_disks, powershell
from diskbook.hosts.device import Device
from diskbook.hosts.jobs import JobLost
from diskbook.hosts.powershell import SCRIPTS, script
from diskbook.hosts.ssh import Host
from diskbook.hosts.ssh_windows import WindowsConnection, command_line
from diskbook.tools.diskspd import command as diskspd, xml as diskspd_xml
from diskbook_emulator import stand_ins
from diskbook_emulator.machine import Machine
from diskbook_emulator.stand_in_call import SOCKET
from diskbook_emulator.types import VmAddress, VmSpec
from support.emulated import soon

MIB = 1024**2
OURS = "cf8c35db-1111-4222-8333-444455556666"


@pytest.mark.parametrize(
    "word",
    ["-e&calc.exe&rem", "a|b", "a>b", "%PATH%", "a %PATH%", 'a"b', "a\nb", "a b\r\ncalc", "^", "(x)", "!x!"],
)
def test_an_argument_that_cmd_would_read_itself_is_not_run(word: str) -> None:
    with pytest.raises(DiskbookError, match=r"^diskspd is not run: cmd\.exe would read a part of '"):
        command_line(["diskspd", "-b8K", word])


def test_arguments_with_spaces_are_quoted_and_plain_ones_are_as_they_are() -> None:
    assert command_line(["diskspd", "-b8K", "#1:fill"]) == "diskspd -b8K #1:fill"
    assert command_line(["sh", "-c", "echo a & b"]) == 'sh -c "echo a & b"'  # in quotation marks it is a text


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Machine, Host]]:
    folder = tmp_path_factory.mktemp("windows")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    host_key, private = keys.new_pair("host"), keys.run_key(folder)
    spec = VmSpec(
        id="/win",
        name="win",
        size="Standard_D4as_v4",
        zone="1",
        os="windows",
        admin_username="diskbook",
        authorized_keys=(private.with_suffix(".pub").read_text().strip(),),
        custom_data=keys.cloud_init(host_key),
    )
    warm = stand_ins.start(folder)
    assert soon((folder / SOCKET).exists)
    made = Machine(folder / "win", "test/win", VmAddress("127.0.0.1", port), folder)
    made.prepare(spec)
    try:
        made.start()
        yield made, Host("win", "127.0.0.1", port, "diskbook", " ".join(host_key.public.split()[:2]), private)
    finally:
        made.delete()
        warm.kill()
        warm.wait()


@pytest.fixture
def connection(machine: tuple[Machine, Host]) -> Iterator[WindowsConnection]:
    with WindowsConnection(machine[1]) as found:
        yield found
        found.end_jobs()


@pytest.fixture(scope="module")
def disk(machine: tuple[Machine, Host], tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """An empty disk of 64 MiB at LUN 3."""
    nbdkit = shutil.which("nbdkit")
    assert nbdkit
    folder = tmp_path_factory.mktemp("nbd")
    uri = f"nbd+unix:///?socket={folder / 's'}"
    server = subprocess.Popen([nbdkit, "-f", "-U", str(folder / "s"), "memory", "64M"])
    assert soon((folder / "s").exists)
    row = {"engine": "nbd", "uri": uri, "prefill_uri": uri, "size_bytes": 64 * MIB, "unique_id": OURS}
    machine[0].write_disks({"3": row})
    yield
    machine[0].write_disks({})
    server.kill()
    server.wait()


def test_a_script_is_short_enough_for_a_command_prompt() -> None:
    longest = {"name": "r01-b01-p001-" + "x" * 60, "command": "diskspd " + "-x1234567 " * 25}
    for name in SCRIPTS:
        assert len(powershell.encoded(script(name, **longest))) < 8191  # cmd.exe's limit


@pytest.mark.emulator
def test_a_job_leaves_its_streams_and_status(connection: WindowsConnection) -> None:
    connection.start_job("one", ["sh", "-c", "echo out; echo 'it''s' err >&2; exit 3"])
    connection.start_job("one", ["sh", "-c", "echo twice"])  # done twice, it starts once
    output = connection.finish_job("one", ["nothing"], limit_s=10)
    assert output == {"status": b"3\n", "stdout": b"out\n", "stderr": b"its err\n"}
    began, ended = connection.job_times("one")
    assert began <= ended
    connection.start_job("two", ["true"])
    assert connection.job_names() == ["two"]  # finished ones go when the next starts


@pytest.mark.emulator
def test_a_job_that_hangs_is_ended_and_one_that_is_gone_is_told(connection: WindowsConnection) -> None:
    connection.start_job("slow", ["sleep", "60"])
    with pytest.raises(JobLost, match="took more than 0 s"):
        connection.finish_job("slow", [], limit_s=0.2)
    with pytest.raises(JobLost, match="ended without a status"):
        connection.finish_job("slow", [], limit_s=5)
    with pytest.raises(JobLost, match="not there any more"):
        connection.finish_job("never", [], limit_s=1)
    connection.start_job("left", ["sleep", "60"])
    connection.end_jobs()
    assert connection.job_names() == []


@pytest.mark.emulator
def test_only_our_own_scripts_are_answered(connection: WindowsConnection) -> None:
    output = connection.run(powershell.encoded("Get-Process"))
    assert output.status == 1
    assert b"only the scripts of diskbook" in output.stderr


@pytest.mark.emulator
def test_the_machine_says_that_its_diskspd_is_emulated(connection: WindowsConnection) -> None:
    lines = connection.check(powershell.encoded(powershell.SETUP_FACTS)).decode().splitlines()
    assert "emulated" in lines[0]
    assert lines[1].startswith("2.0.21 (emulated by fio-")


@pytest.mark.emulator
@pytest.mark.usefixtures("disk")
def test_a_disk_is_found_by_lun_marked_and_measured(connection: WindowsConnection) -> None:
    seen = machine_disks.ours(connection, 3, size_bytes=64 * MIB, unique_id=OURS)
    assert seen.first
    assert seen.device == Device("windows", "#4", "#4:fill", 64 * MIB, 3)
    assert not machine_disks.ours(connection, 3, size_bytes=64 * MIB, unique_id=OURS).first
    with pytest.raises(DiskbookError, match="nothing was written"):
        machine_disks.ours(connection, 3, size_bytes=64 * MIB, unique_id=OURS.replace("1111", "2222"))

    load = Workload(name="w", block_size=8192, write_pct=100, runtime_s=1, working_set_gib=1 / 32)
    job = diskspd.command(load, seen.device)
    connection.start_job("trial", list(job.argv))
    output = connection.finish_job("trial", [], limit_s=30)
    text = {name: content.decode() for name, content in output.items()}
    result = diskspd_xml.parse_output(text, "trial.xml", runtime_s=1)
    assert "emulated" in result.version
    assert result.directions["write"].iops > 0


@pytest.mark.emulator
@pytest.mark.usefixtures("disk")
def test_the_temporary_disk_at_lun_1_is_no_data_disk(connection: WindowsConnection) -> None:
    assert [(row["lun"], row["number"]) for row in connection.disks()] == [(3, 4)]


BOOT = "Integrated : Bus 0 : Device 63667 : Function 30747 : Adapter 0 : Port 0 : Target 0 : LUN 0"
DATA = "Integrated : Bus 0 : Device 63668 : Function 30747 : Adapter 1 : Port 0 : Target 0 : LUN 1"


@pytest.mark.parametrize(
    ("location", "partitions", "luns"),
    [
        (BOOT.replace("LUN 0", "LUN 1"), 1, [1]),  # generation 2, as Azure's agent leaves it
        (BOOT.replace("LUN 0", "LUN 1"), 0, [1]),  # before the agent has formatted it
        (DATA.replace("Adapter 1", "Adapter 2"), 1, [1]),  # generation 1: an adapter of its own
        ("PCI Slot 1", 0, [1]),  # no LUN: a local NVMe disk
        (DATA.replace("LUN 1", "LUN 11"), 0, [11, 1]),  # another data disk
    ],
)
def test_data_disks_are_told_by_adapter_and_partitions(
    location: str, partitions: int, luns: list[int]
) -> None:
    rows = [
        {"number": 0, "location": BOOT, "own": True, "partitions": 4},
        {"number": 1, "location": location, "own": False, "partitions": partitions},
        {"number": 2, "location": DATA, "own": False, "partitions": 0},
    ]
    assert [row["lun"] for row in powershell.data_disks(rows)] == luns


def test_two_disks_that_claim_one_lun_are_refused() -> None:
    rows = [{"lun": 0, "number": number, "size_bytes": MIB} for number in (1, 2)]
    with pytest.raises(DiskbookError, match="#1 and #2 both claim LUN 0"):
        machine_disks.windows_drives(rows, "win")


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({}, None),
        ({"style": "GPT"}, "has a partition table (GPT)"),
        ({"partitions": 1}, "has partitions"),
        ({"own": True}, "is the machine's own disk"),
        ({"head": "0" * 64}, "holds data in its first MiB"),
    ],
)
def test_what_a_windows_machine_says_of_a_disk(said: dict[str, object], why: str | None) -> None:
    empty = "30e14955ebf1352266dc2ff8067e68104607e750abb9d3b36582b8af909fcb58"  # SHA-256 of 1 MiB of zeros
    whole = {
        "style": "RAW",
        "partitions": 0,
        "own": False,
        "serial": "s",
        "head": empty,
        "tail": empty,
        "mark": "",
    }
    assert machine_disks.refusal(machine_disks.windows_facts({**whole, **said}), OURS) == why
