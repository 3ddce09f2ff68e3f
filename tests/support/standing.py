"""For tests of what runs leave: an emulator, resource groups with little in them, run folders."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from azure.core.rest import HttpRequest

from diskbook.cloud.azure import requests
from diskbook.cloud.azure.clients import Clients
from diskbook.design.model import Disk
from diskbook.emulated import cloud as emulated
from diskbook.facts import client
from diskbook.results import run as runs, session
from diskbook.results.run import Run
from diskbook_emulator import lifecycle
from support.emulated import leftovers, soon
from support.manifests import MINIMAL

REGION = "westeurope"
EMULATOR = "mine"


@contextlib.contextmanager
def a_place() -> Iterator[Path]:
    """A short folder for runs and emulators of a test module; nothing is left of them."""
    with (
        tempfile.TemporaryDirectory(prefix="diskbook-test-", dir="/tmp") as name,
        pytest.MonkeyPatch.context() as patch,
    ):
        folder = Path(name)
        (folder / "runs").mkdir()
        patch.setenv("TMPDIR", name)
        patch.setattr("diskbook.measure.runs.execute_notebook.temporary_places", lambda: [folder])
        patch.setenv("DISKBOOK_RUNS", str(folder / "runs"))
        yield folder
        for one in lifecycle.status():
            lifecycle.stop(one.name)
        assert soon(lambda: not leftovers(folder))


def a_cloud(name: str = EMULATOR) -> Clients:
    """Start an emulator as a user would, and return clients for it."""
    lifecycle.start(name, profile="quiet", time_scale=0.001, owner=True)
    return emulated.clients(name)


def manifest_of(emulator: str) -> dict[str, Any]:
    """What of a manifest says where its groups are."""
    return {"cloud": "emulator", "emulator": {"name": emulator, "own": False}}


def faults(clients: Clients, *planted: dict[str, Any]) -> None:
    """Inject faults into the emulator, in place of earlier ones."""
    answer = clients.resource.send_request(HttpRequest("PUT", "/diskbook/faults", json=list(planted)))
    answer.raise_for_status()


def a_run(name: str, *groups: str, **manifest: Any) -> Run:
    """A run folder whose manifest says that it made these groups."""
    folder = runs.create(name)
    rows = [{"name": group, "deleted_utc": None, "expires_utc": in_hours(12)} for group in groups]
    minimal = {**MINIMAL, "run": name, "scenario": {"name": "tests"}, "preset": "quick"}
    folder.write_manifest(
        {
            **minimal,
            **manifest_of(EMULATOR),
            "provenance": "emulated",
            "resource_groups": rows,
            "replicates": [],
            **manifest,
        }
    )
    return folder


def diskbook(*words: str, **environment: str) -> subprocess.Popen[str]:
    """Start the command line; what it says on both streams comes by one pipe."""
    return started("-c", "from diskbook.cli import main; main()", *words, **environment)


def started(*words: str, **environment: str) -> subprocess.Popen[str]:
    """Start Python; what it says on both streams comes by one pipe."""
    command, pipe, env = [sys.executable, *words], subprocess.PIPE, {**os.environ, **environment}
    return subprocess.Popen(
        command, stdout=pipe, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, env=env
    )


def in_hours(hours: float) -> str:
    """A time from now, as tags have it."""
    return (datetime.now(UTC) + timedelta(hours=hours)).isoformat("T", "seconds")


def tags_of(
    run: str, hours: float = 12.0, client: Path | None = None, **changed: str | None
) -> dict[str, str]:
    """Tags of a group; `client` is the folder of runs it was made from, `changed` without "diskbook-"."""
    tags: dict[str, str | None] = {
        "run": run, "owner": "somebody", "scenario": "tests", "expires": in_hours(hours),
        "created": in_hours(-1), **changed,
    }  # fmt: skip
    if client is not None:
        tags["client"] = session.client_id(client)
    return {f"diskbook-{key}": value for key, value in tags.items() if value is not None}


def a_group(clients: Clients, name: str, tags: dict[str, str], disks: int = 1) -> str:
    """Make a resource group with some disks, as a run does; where the tags name this client it signs them."""
    made_by, run = tags.get("diskbook-client"), tags.get("diskbook-run", "")
    if made_by and made_by == session.known_client_id(runs.runs_root()):
        tags = tags | signed(clients.cloud.subscription, name, run)
    clients.resource.resource_groups.create_or_update(name, {"location": REGION, "tags": tags})
    for number in range(disks):
        spec = Disk(name=f"disk{number}", sku="Premium_LRS", size_gib=64, zone="1")
        body = requests.disk(spec, REGION, tags)
        clients.compute.disks.begin_create_or_update(name, spec.name, body).result()
    return name


def name_of(run: str, number: int = 1) -> str:
    """A name that a run may give to a group of its own."""
    return f"diskbook-{run}-{number}-{number:08x}"


def signed(subscription: str, group: str, run: str) -> dict[str, str]:
    """The tag by which this client knows a group of its own again."""
    word = client.sign("group", subscription, group.lower(), run)
    return {session.SIGNATURE_TAG: word}


def groups(clients: Clients) -> list[str]:
    """Names of the groups that there are."""
    return sorted(one.name for one in clients.resource.resource_groups.list())
