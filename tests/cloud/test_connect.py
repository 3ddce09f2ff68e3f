"""From a manifest to clients: what a recorded endpoint, SSH source and emulator may be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from diskbook.cloud import connect
from diskbook.facts.errors import DiskbookError, UsageError
from diskbook.results import run as runs
from diskbook.results.run import Run
from support.manifests import MINIMAL

USED = {"subscription": "11111111-2222-3333-4444-555555555555", "ssh_source": "203.0.113.7/32"}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DISKBOOK_RUNS", str(tmp_path))
    monkeypatch.delenv("DISKBOOK_ARM_ENDPOINT", raising=False)
    return tmp_path


def a_run(name: str = "one", **manifest: Any) -> Run:
    run = runs.create(name)
    base = {**MINIMAL, "run": name, "cloud": "azure", "emulator": None, "azure": USED}
    run.write_manifest(base | manifest)
    return run


@pytest.mark.parametrize(
    "endpoint",
    [
        None,
        "https://management.azure.com",
        "https://management.chinacloudapi.cn",
        "https://management.usgovcloudapi.net",
    ],
)
def test_azure_s_own_clouds_are_trusted(place: Path, endpoint: str | None) -> None:
    clients = connect.clients_of(a_run(azure={**USED, "endpoint": endpoint}))
    assert clients.cloud.endpoint == endpoint


@pytest.mark.parametrize(
    "endpoint",
    [
        "https://management.azure.com.example.org",
        "https://management.azure.com@example.org",
        "https://management.azure.com:444",
        "http://management.azure.com",
        "https://127.0.0.1:1",
        "",
    ],
)
def test_another_endpoint_counts_only_if_the_environment_names_it_now(
    place: Path, monkeypatch: pytest.MonkeyPatch, endpoint: str
) -> None:
    run = a_run(azure={**USED, "endpoint": endpoint})
    with pytest.raises(DiskbookError, match="not a known cloud of Azure: no sign-in is sent there; if"):
        connect.clients_of(run)
    monkeypatch.setenv("DISKBOOK_ARM_ENDPOINT", "https://127.0.0.1:1")
    if endpoint == "https://127.0.0.1:1":
        assert connect.clients_of(run).cloud.endpoint == endpoint
    else:
        with pytest.raises(DiskbookError, match="no sign-in is sent there"):
            connect.clients_of(run)


@pytest.mark.parametrize("source", ["0.0.0.0/0", "203.0.0.0/15", "*", "2001::/16", "None"])
def test_a_recorded_ssh_source_is_checked_again(place: Path, source: str) -> None:
    with pytest.raises(UsageError, match="the run's manifest: "):
        connect.clients_of(a_run(azure={**USED, "ssh_source": source}))


def test_a_run_that_is_not_signed_gets_no_clients(place: Path) -> None:
    run = a_run()
    path = run.folder / "manifest.json"
    path.write_text(path.read_text().replace("203.0.113.7", "203.0.113.8"))
    with pytest.raises(DiskbookError, match="was not begun by you on this computer"):
        connect.clients_of(run)
