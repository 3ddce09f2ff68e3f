"""Nothing secret is written down: not in a run's folder, in no message, in no readable form of an object."""

from __future__ import annotations

import base64
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from diskbook.cloud.azure import keys, requests, witness
from diskbook.cloud.azure.clients import Clients, Cloud, StaticToken
from diskbook.cloud.azure.create import Maker, Place
from diskbook.clusters.powershell import steps as cluster_steps
from diskbook.design.model import Machine
from diskbook.facts import redact
from diskbook.facts.errors import UsageError
from diskbook.hosts.ssh import Host
from diskbook.measure.runs import stages
from diskbook.results import run as runs
from diskbook_emulator.arm import Settings
from support import SCENARIOS
from support.arm_plane import SUBSCRIPTION, TOKEN, world
from support.secrets import JWT, PLANTED, contents, spilt

TINY = str(SCENARIOS / "tiny.toml")


def _cli(*words: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-c", "from diskbook.cli import main; main()", *words]
    return subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=600)


def test_the_search_finds_what_it_looks_for() -> None:
    secret = b"planted-secret-of-some-length"
    for before in (b"", b"a", b"ab"):
        coded = base64.b64encode(before + secret + b" and more")
        assert spilt([("x", coded)], {"it": secret}) == ["it in x"]
    assert not spilt([("x", b"nothing")], {"it": secret})


def test_what_a_traceback_could_show_has_no_secret(tmp_path: Path) -> None:
    token = "planted-token-of-the-tests"
    cloud = Cloud("azure", "s", StaticToken(token), "https://127.83.0.9:9", tmp_path / "ca.pem", 0.0)
    clients = Clients(cloud)
    pair = keys.new_pair("test")
    host = Host("vm", "127.0.0.1", 22, "me", pair.public, keys.run_key(tmp_path))
    settings = Settings("s", "t", token)
    secrets = {"token": token.encode(), "key": pair.private.splitlines()[2].encode()}
    shown = [cloud, cloud.credential, clients, clients.compute, clients.options(), pair, host, settings]
    texts = [(type(thing).__name__, (repr(thing) + str(thing)).encode()) for thing in shown]
    assert not spilt(texts, secrets)
    # The one body that carries a private key carries it where Azure never gives it back.
    body = requests.machine(
        Machine(name="vm", size="Standard_D4as_v4", zone="1"), "westeurope", {}, name="vm", nic_id="nic",
        user="me", public_key=pair.public, host_key=pair, image_version="1.0.10",
    )  # fmt: skip
    body["properties"]["osProfile"].pop("customData")
    assert not spilt([("body", repr(body).encode())], secrets)


def test_the_key_of_a_witness_is_in_no_file_and_no_readable_form(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    folder.mkdir()
    with world(tmp_path / "plane") as plane:
        plane.group("g")
        cloud = Cloud("emulator", SUBSCRIPTION, StaticToken(TOKEN), plane.url, plane.ca, 0.0)
        maker = Maker(Clients(cloud), runs.Run(folder), Place("g", "westeurope", {}), {})
        entry = {"resource_group": "g", "witness": maker.witness(1, "LRS")}
        key = witness.key(maker.clients, entry)
        shown = [maker, maker.clients, maker.clients.storage, maker.run, entry]
        account = maker.clients.storage.storage_accounts.get_properties("g", entry["witness"]["account"])
        shown += [account, cluster_steps.Cluster(**CLUSTER, witness_key=key)]
        texts = [(type(thing).__name__, (repr(thing) + str(thing)).encode()) for thing in shown]
    assert len(key) > 80 and (folder / "ledger.jsonl").exists()
    assert not spilt([*contents(folder), *texts], {"the witness's key": key.encode()})


CLUSTER: dict[str, Any] = {"account": "a", "password": "p", "nodes": ("n1", "n2"), "name": "c"}


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"password": "x"}, "password looks like a secret, by its name"),
        ({"design.api_key": 1}, "design.api_key looks like a secret, by its name"),
        ({"client-secret": "x"}, "looks like a secret, by its name"),
        ({"scenario": JWT}, "scenario looks like an access token"),
        ({"scenario": "https://x.blob.core.windows.net/c?sv=1&sig=" + "a" * 43 + "%3D"}, "access signature"),
        ({"overrides": {"a": ["AccountKey=" + "b" * 86 + "=="]}}, "overrides.a looks like an account key"),
        ({"x": PLANTED["AZURE_CLIENT_SECRET"]}, "x looks like a client secret"),
        ({"x": "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl"}, "x looks like a private key"),
        ({"x": "before-in-the-environment-after"}, "x looks like the value of AZURE_PASSWORD"),
    ],
)
def test_a_parameter_that_looks_like_a_secret_is_refused(
    parameters: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_PASSWORD", "in-the-environment")
    with pytest.raises(UsageError) as caught:
        redact.refuse(parameters)
    message = str(caught.value)
    assert said in message and "az login" in message and "\n" not in message
    assert not re.search(r"eyJ|sig=|AccountKey=|8Q~|BEGIN|environment-after", message)


def test_ordinary_parameters_are_not_refused() -> None:
    redact.refuse(
        {
            "design.replicates": 2,
            "workload.randwrite-qd1.blocks": 8,
            "scenario": "data/scenarios/zone-disks.toml",
            "subscription": "11111111-2222-3333-4444-555555555555",
            "all_workloads.compass": True,
            "note": None,
        }
    )


@pytest.mark.emulator
def test_a_refused_parameter_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISKBOOK_RUNS", str(tmp_path / "runs"))
    with pytest.raises(UsageError, match="looks like an access token"):
        stages.begin("one", TINY, overrides={"design.seed": JWT})
    with pytest.raises(UsageError, match="looks like a secret, by its name"):
        stages.begin("one", TINY, overrides={"secret": 1})
    assert not (tmp_path / "runs").exists()
    done = _cli("run", TINY, "--set", f"design.seed={JWT}")
    assert done.returncode == 2 and JWT.encode() not in done.stderr
    assert done.stderr.startswith(b"diskbook: --set design.seed looks like an access token")
    assert not (tmp_path / "runs").exists()


def test_secrets_are_hidden_in_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_CLIENT_SECRET", "in-the-environment")
    pair = keys.new_pair("x")
    text = f"a {JWT} b in-the-environment c\n{pair.private}d ?sv=1&sig={'s' * 43} e"
    hidden = redact.hide(text)
    assert hidden == "a (hidden) b (hidden) c\n(hidden)\nd ?sv=1(hidden) e"
    monkeypatch.setenv("AZURE_CLIENT_SECRET", "a")  # too short to be one: it would hide every a
    assert redact.hide("banana") == "banana"
    assert os.environ["AZURE_CLIENT_SECRET"] == "a"
