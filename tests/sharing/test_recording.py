"""The record of a run: its exchanges with Azure, in which nothing names or opens anything any more."""

from __future__ import annotations

import base64
import contextlib
import gzip
import json
import re
import socket
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from azure.core.exceptions import AzureError
from azure.core.rest import HttpRequest

from diskbook.cloud.azure.clients import Clients
from diskbook.cloud.azure.retry import ScaledTransport
from diskbook.cloud.connect import clients_of
from diskbook.facts.errors import DiskbookError, UsageError
from diskbook.measure.runs import stages
from diskbook.results.run import Run
from diskbook.sharing import recording
from diskbook.sharing.pseudonyms import spellings
from diskbook.sharing.recording import scrubbed
from diskbook_emulator import lifecycle
from support import SCENARIOS
from support.emulated import leftovers
from support.manifests import MINIMAL
from support.replay import recorded

PLANTED = ("S3cr3t/pass&word=", "AccountKey0123456789abcdef", "anna.s@contoso.example", "2a02:1234::beef")
_LEAST = 5  # characters; a host may be called "vm"
EMPTY: dict[str, Any] = {**MINIMAL, "run": "r1"}


def contents(path: Path) -> str:
    """All that is in a pack, and how the files are named."""
    with zipfile.ZipFile(path) as file:
        return "\n".join(text for name in file.namelist() for text in (name, file.read(name).decode()))


def _plant(clients: Clients, secret: str) -> None:
    """Send a secret wherever a request may have one; what Azure says to it does not matter."""
    blob = [base64.b64encode(b"xyz"[:before] + secret.encode() + b"end").decode() for before in range(3)]
    url = f"{clients.cloud.endpoint}/subscriptions/s/resourceGroups/{quote(secret, safe='')}"
    body = {"tags": {secret: secret}, "properties": {"customData": blob[0], "any": blob, secret: [secret]}}
    packed = gzip.compress(json.dumps(body).encode())
    headers = {"x-ms-any": secret, "x-any": blob[1], "Content-Type": "application/json"}
    parameters = {"api-version": "2025-04-01", "sig": secret, "t": blob[2], "$filter": f"name eq '{secret}'"}
    for content in (json.dumps(body).encode(), packed, secret.encode()):
        request = HttpRequest("PUT", url, params=parameters, headers=headers, content=content)
        with contextlib.suppress(AzureError):
            clients.resource.send_request(request)


def _originals(sent: list[Any], run: Run) -> set[str]:
    """What the requests of a run held that names or opens something."""
    found = {run.name, socket.gethostname(), *(row["name"] for row in run.manifest["resource_groups"])}
    for request in sent:
        found |= {request.headers["Authorization"].removeprefix("Bearer ")}
        if place := re.search(r"/subscriptions/([^/?]+)(?:/resource[gG]roups/([^/?]+))?", request.url):
            found |= {part for part in place.groups() if part}
        secret = r'"(?:customData|keyData|adminPassword)": ?"([^"]+)"'
        found |= set(re.findall(secret, str(request.content or "")))
    for machine in run.manifest["replicates"][0]["machines"].values():
        found |= {machine["id"].rpartition("/")[2], machine["vm_id"]}
    return {text for text in found if len(text) >= _LEAST}


@pytest.mark.emulator
def test_a_provisioning_run_is_recorded_and_nothing_of_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []
    send = ScaledTransport.send

    lists: list[Any] = []

    def seen(self: Any, request: Any, **kwargs: Any) -> Any:
        sent.append(request)
        answer = send(self, request, **kwargs)
        if "/Microsoft.Compute/skus" in request.url:
            lists.append(json.loads(answer.read()))
        return answer

    monkeypatch.setattr(ScaledTransport, "send", seen)
    with tempfile.TemporaryDirectory(prefix="diskbook-test-", dir="/tmp") as name:
        monkeypatch.setenv("TMPDIR", name)
        monkeypatch.setenv("DISKBOOK_RUNS", f"{name}/runs")
        lifecycle.start("recorded", profile="quiet", time_scale=0.0, owner=True)
        scenario, emulator = str(SCENARIOS / "small.toml"), {"name": "recorded"}
        run = stages.begin("contoso-secret", scenario, "emulator", "quick", emulator=emulator)
        recording.begin(run)
        stages.provision(run)
        for secret in PLANTED:
            _plant(clients_of(run), secret)
        originals = {*_originals(sent, run), *PLANTED}
        stages.teardown(run)
        lifecycle.stop("recorded")
        packed = recording.pack(run)
        text = contents(packed.path) + packed.words.partition("\n")[2]
        written = gzip.decompress((run.folder / "arm.jsonl.gz").read_bytes()).decode()
        assert leftovers(Path(name)) == []
    assert len(originals) > 12 and len(written.splitlines()) == len(sent) > 30
    told = written.casefold(), text.casefold()
    for original in originals:
        for spelling in spellings(original):
            assert all(spelling.casefold() not in part for part in told), original
    rows = [json.loads(line) for line in written.splitlines()]
    assert {"PUT", "GET", "DELETE"} <= {row["method"] for row in rows}
    assert "Microsoft.Compute/virtualMachines" in text and '"provisioningState": "Succeeded"' in text
    packed_rows = [json.loads(line) for line in text.splitlines() if line.startswith('{"time_utc"')]
    for kept in (rows, packed_rows):
        assert [row["answer"] for row in kept if "/Microsoft.Compute/skus" in row["url"]] == lists
    assert len(lists[0]["value"]) > 500
    machine = next(row for row in rows if row["method"] == "PUT" and "/virtualMachines/" in row["url"])
    assert machine["body"]["properties"]["hardwareProfile"] == {"vmSize": "Standard_D4as_v4"}
    assert "replaced.csv" in packed.words and f"{len(sent)} exchanges" in packed.words


def test_a_list_of_sizes_as_azure_writes_it_is_recorded_as_it_came(run: Run) -> None:
    (exchange,) = recorded("skus")[:1]
    url = (
        "https://management.azure.com/subscriptions/s/providers/Microsoft.Compute/skus?api-version=2021-07-01"
    )
    body = exchange["body"]
    row = {"method": "GET", "url": url, "answer": json.dumps(body).encode()}
    scrubber = recording.scrubber_of(run)
    clean = scrubbed(row, scrubber)
    assert clean["answer"] == body and len(body["value"]) > 1
    assert scrubbed(clean, scrubber) == clean


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "r1").mkdir()
    made = Run(tmp_path / "r1")
    made.write_manifest({**EMPTY, "cloud": "azure"})
    yield made


def test_a_run_without_a_record_says_so(run: Run) -> None:
    with pytest.raises(UsageError, match=r"run r1 has no arm\.jsonl\.gz: begin a run with --record"):
        recording.pack(run)


def test_a_record_that_is_damaged_says_so(run: Run) -> None:
    run.append_bytes("arm.jsonl.gz", gzip.compress(b"{}\n")[:-3])
    with pytest.raises(DiskbookError, match=r"arm\.jsonl\.gz is damaged"):
        recording.pack(run)


def test_a_run_of_somebody_else_is_not_packed(run: Run) -> None:
    run.append_bytes("arm.jsonl.gz", gzip.compress(b"{}\n"))
    path = run.folder / "manifest.json"
    path.write_text(path.read_text().replace('"azure"', '"emulator"'))
    with pytest.raises(DiskbookError, match="was not begun by you on this computer"):
        recording.pack(run)


def test_a_run_on_own_hosts_has_nothing_to_record(run: Run) -> None:
    run.update_manifest(cloud="inventory")
    with pytest.raises(UsageError, match="a run on hosts of your own has none"):
        recording.begin(run)


def test_a_name_that_is_learned_late_is_replaced_in_earlier_messages(run: Run) -> None:
    recording.begin(run)
    rows = [
        {"method": "GET", "message": "fabrikam is locked", "replaced": {}, "names": []},
        {"method": "GET", "message": "fine", "url": "/subscriptions/s/resourceGroups/fabrikam"},
    ]
    for row in rows:
        run.append_bytes("arm.jsonl.gz", gzip.compress(json.dumps(row).encode() + b"\n"))
    run.update_manifest(resource_groups=[{"name": "fabrikam", "deleted_utc": None}])
    text = contents(recording.pack(run).path)
    assert "fabrikam" not in text and "is locked" in text


def test_what_one_exchange_teaches_is_replaced_in_all_and_no_kind_names_anybody(run: Run) -> None:
    """Also of a record whose kinds are what they were before there was a closed list of them."""
    tenant, name = "9b2d7a3c-0000-4f00-a000-123456789abc", "anna"
    run.update_manifest(scenario={**run.manifest["scenario"], "title": f"asked by {name}"})
    recording.begin(run)
    made = recording.scrubber_of(run).names.give(name, "userName")
    rows: list[dict[str, Any]] = [
        {"method": "GET", "message": f"the disk is locked by {name}"},
        {"method": "GET", "answer": {"userName": made}, "replaced": {made: tenant}, "names": []},
        {
            "method": "GET",
            "replaced": {"x-0123456789": "x-contoso-proxy"},
            "url": f"/a/{tenant}/x-0123456789",
        },
        {"method": "GET", "message": f"{name.title()} has no quota"},
    ]
    for row in rows:
        run.append_bytes("arm.jsonl.gz", gzip.compress(json.dumps(row).encode() + b"\n"))
    pack = recording.pack(run)
    text = contents(pack.path) + pack.words.partition("\n")[2]
    assert not [each for each in (name, tenant, "contoso") if each in text.casefold()]
    assert "the disk is locked by" in text and "has no quota" in text


def test_names_of_a_company_network_are_replaced(run: Run) -> None:
    of = "/subscriptions/s-1/resourceGroups/northwind/providers/Microsoft.Network/virtualNetworks"
    network = {
        "subnet": f"{of}/contoso-net/subnets/lab-seven",
        "resource_group": "",
        "jump_host": "erika@gate.example.org:2222",
        "bastion": "contoso-bastion",
        "bastion_group": "fabrikam-hub",
    }
    run.update_manifest(scenario={**run.manifest["scenario"], "network": network})
    recording.begin(run)
    names = (
        "northwind",
        "contoso-net",
        "lab-seven",
        "erika",
        "gate.example.org",
        "contoso-bastion",
        "fabrikam-hub",
    )
    row = {"method": "GET", "message": f"no way to {', '.join(names)} from {network['subnet']}"}
    run.append_bytes("arm.jsonl.gz", gzip.compress(json.dumps(row).encode() + b"\n"))
    text = contents(recording.pack(run).path)
    assert not [name for name in names if name in text]
    assert "Microsoft.Network" in text
