"""Attacks on what a user trusts: each a real one, beside its lawful neighbour.

`make attack` plays them alone. A second user of the computer takes part where this one is root.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import signal
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from diskbook.cli import main
from diskbook.cloud.azure import keys
from diskbook.cloud.azure.clients import Clients
from diskbook.design import scenario_file
from diskbook.facts import paths
from diskbook.facts.errors import DiskbookError
from diskbook.facts.units import MIB
from diskbook.hosts.ssh import Connection, Host
from diskbook.measure.runs import notebook_process, refused, stages
from diskbook.results import run as runs
from diskbook.results.run import Run
from diskbook_emulator import lifecycle
from diskbook_emulator.server import make_ca_and_cert
from support import SCENARIOS, identity_endpoint
from support.arm_plane import SUBSCRIPTION
from support.emulated import soon
from support.own_hosts import OWN, begun, disk_folder, held, written
from support.real_path import loop_device
from support.standing import (
    EMULATOR,
    REGION,
    a_cloud,
    a_group,
    a_place,
    a_run,
    diskbook,
    groups,
    in_hours,
    name_of,
    tags_of,
)

pytestmark = pytest.mark.whole

TINY = str(SCENARIOS / "tiny.toml")
NOT_OURS = "was not begun by you on this computer"
ATTACKER = "127.83.6.6"


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    with a_place() as folder:
        yield folder


@pytest.fixture(scope="module")
def cloud(place: Path) -> Clients:
    return a_cloud()


@pytest.fixture(scope="module")
def standing(cloud: Clients) -> Iterator[Run]:
    """A run of this user whose machines stand, not measured yet."""
    run = stages.begin("standing", TINY, "emulator", "quick", emulator={"name": EMULATOR})
    stages.provision(run)
    yield run
    stages.teardown(run)


def said(*words: str, status: int, **environment: str) -> str:
    """Run the command line to its end in this process; what it said. A traceback is nobody's refusal."""
    output = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"MPLCONFIGDIR": "", **environment}.items():  # `main` sets the first
            patch.setenv(name, value)
        patch.setattr(sys, "argv", ["diskbook", *words])
        with redirect_stdout(output), redirect_stderr(output), pytest.raises(SystemExit) as ended:
            main()
    assert (ended.value.code or 0) == status, output.getvalue()
    return output.getvalue()


def as_another_user(*command: str) -> None:
    """Run a command as a second user of this computer, or as this one where only root could."""
    other = {"user": 65534, "group": 65534, "extra_groups": []} if os.getuid() == 0 else {}
    subprocess.run(command, check=True, **other)  # type: ignore[call-overload]


# --- groups of others


def test_a_group_that_exists_is_neither_adopted_nor_deleted(cloud: Clients, place: Path) -> None:
    """The group that a run of this name would have made first, once; then Ctrl-C."""
    a_group(cloud, "diskbook-test-1", {"team": "payments"})
    process = diskbook("run", TINY, "--preset", "full", "--name", "test", "--emulator", EMULATOR)
    ledger = runs.folder_of("test") / "ledger.jsonl"
    assert soon(lambda: ledger.exists() and '"create machine"' in ledger.read_text())
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=240)
    assert "no resources are left" in output
    assert "diskbook-test-1" in groups(cloud)
    assert [disk.name for disk in cloud.compute.disks.list_by_resource_group("diskbook-test-1")] == ["disk0"]
    assert not [name for name in groups(cloud) if name.startswith("diskbook-test-1-")]
    cloud.resource.resource_groups.begin_delete("diskbook-test-1").result()


def test_a_manifest_cannot_name_groups_to_delete(cloud: Clients, standing: Run) -> None:
    tags = tags_of("planted", client=runs.runs_root())
    a_group(cloud, "production", tags)
    folder = plant("planted", {"resource_groups": [group_row("production")]}, standing)
    for words in (("teardown", "planted"), ("run", "--resume", "planted")):
        assert NOT_OURS in said(*words, status=1)
    assert "run planted was not begun" in said("sweep", "--delete", "--cloud", "emulator", status=0)
    assert "production" in groups(cloud)
    shutil.rmtree(folder)
    cloud.resource.resource_groups.begin_delete("production").result()


def test_tags_alone_delete_nothing(cloud: Clients, standing: Run) -> None:
    """Somebody who may write tags has put those of a run on a group, expired, for a sweep to find."""
    own = dict(cloud.resource.resource_groups.get(standing.manifest["resource_groups"][0]["name"]).tags)
    tags = {**own, "diskbook-expires": in_hours(-2)}
    cloud.resource.resource_groups.create_or_update("theirs", {"location": REGION, "tags": tags})
    sweep = ("sweep", "--delete", "--emulator", EMULATOR)
    assert "not made by you on this computer" in said(*sweep, status=0) and "theirs" in groups(cloud)
    assert "theirs is gone" in said(*sweep, "--group", "theirs", status=0)
    assert "theirs" not in groups(cloud)


# --- sign-ins, keys, emulators


@contextlib.contextmanager
def a_listener(place: Path) -> Iterator[tuple[str, Path, list[str]]]:
    """Serve TLS as the attacker would: address, the CA that a client would trust, sign-ins received."""
    received: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            received.append(str(self.headers.get("Authorization")))
            self.send_error(404)

        do_PUT = do_POST = do_DELETE = do_HEAD = do_GET

        def log_message(self, format: str, *arguments: object) -> None:
            """Say nothing."""

    ca, certificate, key = make_ca_and_cert(place / "attacker", ATTACKER)
    server = ThreadingHTTPServer((ATTACKER, 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"https://{ATTACKER}:{server.server_address[1]}", ca, received
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


@pytest.mark.parametrize("signed", [False, True])
def test_a_sign_in_goes_to_no_endpoint_of_a_manifest(
    place: Path, monkeypatch: pytest.MonkeyPatch, signed: bool
) -> None:
    with identity_endpoint.serve("a-token-of-the-user") as identity, a_listener(place) as listener:
        url, ca, received = listener
        identity_endpoint.use(monkeypatch, identity)
        used = {"subscription": SUBSCRIPTION, "endpoint": url, "ssh_source": "203.0.113.7/32"}
        name = f"azure-{signed}".lower()
        scenario = scenario_file.load(TINY, "quick").model_dump(mode="json")
        more = {"scenario": scenario, "site": "zone-disks", "kept": False}
        run = a_run(name, name_of(name), cloud="azure", emulator=None, azure=used, **more)
        if not signed:
            change(run, {"note": "by another hand"})
        environment = {"DISKBOOK_ARM_CA": str(ca), "AZURE_CONFIG_DIR": str(place / "no-profile")}
        refusal = "no sign-in is sent there" if signed else NOT_OURS
        for words in (("teardown", name), ("run", "--resume", name)):
            assert refusal in said(*words, status=1, **environment)
        assert refusal in said("sweep", status=0, **environment)
        assert received == []
        if signed:  # its lawful neighbour: the endpoint is the user's own word, today
            environment["DISKBOOK_ARM_ENDPOINT"] = url
            said("teardown", name, status=1, **environment)
            assert "Bearer a-token-of-the-user" in received
        shutil.rmtree(run.folder)


def test_a_key_that_was_planted_opens_nothing(standing: Run) -> None:
    own = standing.folder / "keys"
    kept = own.with_name("kept-keys")
    shutil.copytree(own, kept)
    pair = keys.new_pair("diskbook")
    (own / "id_ed25519").write_text(pair.private)
    (own / "id_ed25519.pub").write_text(pair.public + "\n")
    with pytest.raises(DiskbookError, match="not made here for run standing, so it is not used"):
        stages.benchmark(standing)
    shutil.rmtree(own)
    kept.rename(own)
    (row,) = standing.manifest["replicates"]
    for machine in row["machines"].values():
        with Connection(Host(**machine["host"], private_key=keys.run_key(standing.folder))) as connection:
            assert connection.run("true").status == 0


def test_a_manifest_stops_no_emulator_but_the_run_s_own(cloud: Clients, standing: Run) -> None:
    own = {"name": EMULATOR, "own": True, "profile": "quiet", "seed": 1, "time_scale": 0.01}
    folder = plant("stopper", {"emulator": own}, standing)
    assert NOT_OURS in said("teardown", "stopper", status=1)
    run = a_run("stopper-signed", emulator=own, kept=False)  # even if this client had signed it
    said("teardown", run.name, status=0)
    said("sweep", "--delete", "--cloud", "emulator", status=0)
    assert "running" in [row.state for row in lifecycle.status() if row.name == EMULATOR]
    for path in (folder, run.folder):
        shutil.rmtree(path)


# --- files of others


@pytest.mark.parametrize(
    ("linked", "command"),
    [("ledger.jsonl", ("run", "--resume")), ("report.html", ("report",)), ("figures", ("tables",))],
)
def test_links_in_a_run_folder_lead_nowhere(place: Path, linked: str, command: tuple[str, ...]) -> None:
    victim = place / "victim"
    victim.mkdir(exist_ok=True)
    (victim / "profile").write_text("export PATH")
    folder = runs.folder_of("linked")
    shutil.copytree(paths.RUNS / "sample-zone-disks", folder)
    path = folder / linked
    if path.is_dir():
        shutil.rmtree(path)
        path.symlink_to(victim)
    else:
        path.unlink(missing_ok=True)
        path.symlink_to(victim / "profile")
    assert f"has a link in it ('{linked}'), so it is not opened" in said(*command, "linked", status=1)
    assert [entry.name for entry in victim.iterdir()] == ["profile"]
    assert (victim / "profile").read_text() == "export PATH"
    shutil.rmtree(folder)


def test_the_folder_of_emulators_may_not_be_another_user_s(place: Path) -> None:
    """It lies where everybody may make folders: another user was there first, with a link to a third."""
    shared, stranger = place / "shared", place / "stranger"
    shared.mkdir()
    shared.chmod(0o1777)
    place.chmod(0o755)
    dead = stranger / "dead"
    dead.mkdir(parents=True)
    (dead / "thesis").write_text("years of work")
    (dead / "config.json").write_text(json.dumps({"name": "dead", "profile": "quiet", "seed": 1}))
    os.utime(dead / "config.json", (0, 0))
    stranger.chmod(0o700)
    as_another_user("ln", "-s", str(stranger), str(shared / f"diskbook-{os.getuid()}"))
    output = said("sweep", "--delete", "--cloud", "emulator", status=2, TMPDIR=str(shared))
    assert "is not yours alone" in output
    assert (dead / "thesis").read_text() == "years of work"


def test_only_emulators_with_marks_of_their_own_are_deleted(place: Path) -> None:
    """A folder that lies among this user's emulators, or a link to one, but is none."""
    temporary = place / "other"
    home, stranger = temporary / f"diskbook-{os.getuid()}", temporary / "stranger"
    for folder in (home / "photos", stranger):
        folder.mkdir(parents=True)
        (folder / "thesis").write_text("years of work")
        os.utime(folder, (0, 0))
    home.chmod(0o700)
    (home / "linked").symlink_to(stranger)
    said("sweep", "--delete", "--cloud", "emulator", status=0, TMPDIR=str(temporary))
    assert (home / "photos" / "thesis").exists() and (stranger / "thesis").exists()


# --- a colleague's folder


def test_a_colleague_s_folder_is_read_and_nothing_is_done_on_its_word(
    standing: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = runs.folder_of("of-a-colleague")
    shutil.copytree(paths.RUNS / "sample-zone-disks", folder)
    monkeypatch.setattr(notebook_process, "spawn", lambda *given: subprocess.Popen(["true"]))
    for word in ("tables", "why", "report"):  # `figures` writes into the clone
        said(word, "of-a-colleague", status=0)
    for words in (("teardown", "of-a-colleague"), ("run", "--resume", "of-a-colleague")):
        assert NOT_OURS in said(*words, status=1)
    shutil.rmtree(folder)


# --- devices of others


def test_a_device_that_is_held_or_holds_data_is_refused_and_no_run_is_left(place: Path) -> None:
    """A blank one that a database holds, and one whose data lie in the middle; then it is free and empty."""
    with disk_folder() as folder:
        image = folder / "image"
        image.write_bytes(bytes(32 * MIB))
        with loop_device(image) as device:
            hosts = written(folder, {"name": "here", "folder": str(folder), "devices": [device]})
            with held(device):
                output = refused_output(
                    "run", OWN, "--cloud", "inventory", "--hosts", hosts, "--name", "device"
                )
            assert f"{device} is in use: another program has opened it exclusively" in output
            write(device, b"data", 5 * MIB)
            with pytest.raises(DiskbookError) as refusal:
                stages.provision(begun("full", hosts=hosts))
            found = f"{device} holds data 5.0 MiB from its start (looked at: signatures"
            assert found in str(refusal.value)
            assert image.read_bytes().strip(b"\0") == b"data"
            write(device, bytes(4), 5 * MIB)
            empty = begun("empty", hosts=hosts)
            stages.provision(empty)
            notices = [event["text"] for event in empty.ledger() if event["event"] == "notice"]
            assert any(f"{device}: is empty (looked at: signatures" in text for text in notices)
            stages.teardown(empty)


def refused_output(*words: str) -> str:
    """Run a command that is refused before it makes anything; no run is left by it."""
    before = set(runs.runs_root().iterdir())
    output = said(*words, status=1)
    assert refused.ADVICE in output and "--resume" not in output
    assert set(runs.runs_root().iterdir()) == before
    return output


def write(device: str, content: bytes, offset: int) -> None:
    """Write to a device at an offset, and through to its file."""
    with Path(device).open("r+b") as file:
        file.seek(offset)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


# --- how an attacker writes a folder


def change(run: Run, changes: dict[str, object]) -> None:
    """Change a manifest by another hand than this client's."""
    path = run.folder / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def plant(name: str, changes: dict[str, object], source: Run) -> Path:
    """Put a copy of a run into the folder of runs, under another name and with another content."""
    folder = runs.folder_of(name)
    shutil.copytree(source.folder, folder)
    change(Run(folder), {"run": name, "kept": False, **changes})
    return folder


def group_row(name: str) -> dict[str, object]:
    return {"name": name, "deleted_utc": None, "expires_utc": in_hours(-1)}
