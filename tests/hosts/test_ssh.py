"""SSH against a real sshd: known keys only, detached jobs, lost connections."""

from __future__ import annotations

import bz2
import getpass
import gzip
import io
import lzma
import socket
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from diskbook.cloud.azure import keys
from diskbook.facts.errors import DiskbookError
from diskbook.hosts import private_access
from diskbook.hosts.jobs import JobLost
from diskbook.hosts.private_access import Jump, Reconnect
from diskbook.hosts.ssh import Connection, Host, untar
from diskbook_emulator.machine import Machine
from diskbook_emulator.types import VmAddress, VmSpec
from support.emulated import soon

pytestmark = pytest.mark.emulator


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    host_key = keys.new_pair("host")
    private = keys.run_key(tmp_path)
    spec = VmSpec(
        id="/vm1",
        name="vm1",
        size="Standard_D4as_v4",
        zone="1",
        os="linux",
        admin_username="diskbook",
        authorized_keys=(private.with_suffix(".pub").read_text().strip(),),
        custom_data=keys.cloud_init(host_key),
    )
    machine = Machine(tmp_path / "vm1", "test/vm1", VmAddress("127.0.0.1", port))
    machine.prepare(spec)
    machine.start()
    yield Host("vm1", "127.0.0.1", port, "diskbook", " ".join(host_key.public.split()[:2]), private)
    machine.delete()


def test_whoever_runs_this_needs_no_name(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    def nameless() -> str:
        raise KeyError("getpwuid(): uid not found")

    monkeypatch.setattr(getpass, "getuser", nameless)
    with Connection(host) as connection:
        assert connection.check("echo here") == b"here\n"


def test_another_host_key_is_refused(host: Host) -> None:
    other = " ".join(keys.new_pair("other").public.split()[:2])
    with (
        Connection(replace(host, host_key=other)) as connection,
        pytest.raises(DiskbookError, match="not the one"),
    ):
        connection.run("true")


def test_a_command_gives_bytes_and_status(host: Host) -> None:
    with Connection(host) as connection:
        output = connection.run("cat; echo no >&2; exit 3", stdin=b"\x00\xff")
        assert (output.status, output.stdout, output.stderr) == (3, b"\x00\xff", b"no\n")
        with pytest.raises(DiskbookError, match="ended with 3: no"):
            connection.check("echo no >&2; exit 3")


def test_a_job_survives_a_lost_connection_and_runs_once(host: Host) -> None:
    with Connection(host) as connection:
        command = ["sh", "-c", "echo once >>../log; sleep 0.5; echo out; echo err >&2; echo x >extra; exit 4"]
        connection.start_job("j1", command)
        connection._transport().close()  # as when the network goes
        connection.start_job("j1", command)
        files = connection.finish_job("j1", ["extra", "absent"], limit_s=20)
        cores = {name: files.pop(name) for name in ("cpu_before", "cpu_after")}
        assert all(text.startswith(b"cpu ") for text in cores.values())
        assert files == {"status": b"4\n", "stdout": b"out\n", "stderr": b"err\n", "extra": b"x\n"}
        assert connection.run("cat jobs/log").stdout == b"once\n"
        connection.start_job("j2", ["true"])
        assert connection.run("ls jobs").stdout == b"j2\nlog\n"


def test_a_job_that_vanishes_or_hangs_is_told(host: Host) -> None:
    with Connection(host) as connection:
        connection.start_job("gone", ["sleep", "618"])
        connection.run('kill -s KILL -- "-$(cat jobs/gone/pid)"')
        with pytest.raises(JobLost, match="ended without a status"):
            connection.finish_job("gone", [], limit_s=20)
        connection.start_job("hung", ["sleep", "618"])
        with pytest.raises(JobLost, match="took more than 1 s"):
            connection.finish_job("hung", [], limit_s=1)
        assert soon(lambda: connection.run("pgrep -f '^sleep 618$' >/dev/null").status != 0)


def test_a_worker_with_a_session_of_its_own_ends_with_its_job(host: Host) -> None:
    """As fio's workers have; one that went on would load the disk beside the next trial."""
    worker = ["sh", "-c", "setsid sh -c 'sleep 617; true' & wait"]
    with Connection(host) as connection:

        def runs() -> bool:
            return connection.run("pgrep -f '^sleep 617$' >/dev/null").status == 0

        connection.start_job("hung", worker)
        assert soon(runs)
        with pytest.raises(JobLost, match="took more than 1 s"):
            connection.finish_job("hung", [], limit_s=1)
        assert soon(lambda: not runs())
        connection.start_job("left", worker)
        assert soon(runs)
        connection.end_jobs()
        assert soon(lambda: not runs())


def test_a_job_that_has_ended_is_not_waited_for(host: Host) -> None:
    with Connection(host) as connection:
        connection.start_job("short", ["true"])
        assert soon(lambda: connection.run("test -e jobs/short/status").status == 0)
        # It was to take as long as the test may: a client that comes back late must not wait once more.
        assert connection.finish_job("short", [], limit_s=1000)["status"] == b"0\n"
        assert connection.job_names() == ["short"]
        began, ended = connection.job_times("short")
        assert began <= ended < datetime.now(UTC).isoformat()


def test_time_asleep_is_no_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("diskbook.hosts.private_access.time.monotonic", lambda: clock[0])
    outage = Reconnect()

    def attempt(took_s: float, answered: bool = False) -> float:
        outage.trying()
        clock[0] += took_s
        outage.failed(answered)
        return outage.away_s

    assert [attempt(1), attempt(1), attempt(2)] == [0, 1, 3]
    assert attempt(600) == 3 + 2 * private_access.CONNECT_S  # the lid was closed for ten minutes
    assert attempt(600, answered=True) == 0  # this one had a connection when it began


def test_a_machine_that_ends_no_command_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = [0.0]
    monkeypatch.setattr("diskbook.hosts.private_access.time.monotonic", lambda: clock[0])
    outage = Reconnect()
    for _ in range(100):
        outage.trying()
        clock[0] += 60
        outage.failed(answered=True)
    assert outage.away_s > private_access.RECONNECT_S


def test_a_machine_that_is_away_is_named(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("diskbook.hosts.private_access.RECONNECT_S", 0.1)
    with (
        Connection(replace(host, port=1)) as connection,
        pytest.raises(
            DiskbookError, match=r"cannot be reached at 127.0.0.1:1 \(Connection refused\); see whether"
        ),
    ):
        connection.run("true")
    away = replace(host, route=Jump("127.0.0.1", "me", 1))
    with Connection(away) as connection, pytest.raises(DiskbookError) as told:
        connection.run("true")
    assert str(told.value) == (
        f"jump host me@127.0.0.1:1 cannot be reached (Connection refused), so machine {host.name} cannot be "
        "reached; mend that, then resume"
    )


def test_what_a_machine_sends_does_not_grow_when_it_is_read() -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:") as archive:
        entry = tarfile.TarInfo("status")
        entry.size = 2
        archive.addfile(entry, io.BytesIO(b"0\n"))
        link = tarfile.TarInfo("stdout")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/hostname"
        archive.addfile(link)
        sparse = tarfile.TarInfo("stderr")  # as GNU tar writes a file of a terabyte without a block
        sparse.pax_headers = {"GNU.sparse.map": "0,0", "GNU.sparse.size": str(1024**4)}
        archive.addfile(sparse)
    assert untar(buffer.getvalue()) == {"status": b"0\n"}
    for pack in (gzip.compress, bz2.compress, lzma.compress):
        with pytest.raises(DiskbookError, match="what the machine sent is not an archive"):
            untar(pack(buffer.getvalue()))
