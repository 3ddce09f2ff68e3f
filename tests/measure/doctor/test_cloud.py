"""What the doctor says of a subscription: all ok, and each line made to fail once on the emulated plane."""

from __future__ import annotations

import json
import re
import socket
import sys
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from diskbook.cli import main
from diskbook.cloud.azure import offers, signin
from diskbook.cloud.kinds import Check, State
from diskbook.cost import retail
from diskbook.design import scenario_file
from diskbook.facts import catalog, prices
from diskbook.measure import doctor
from support import identity_endpoint
from support.arm_plane import SUBSCRIPTION, TOKEN, World

TODAY = date(2026, 11, 22)
SOURCE = "203.0.113.7"
SCENARIO = scenario_file.load("zone-disks", "quick")


@pytest.fixture
def signed_in(plane: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[World]:
    """The emulated control plane as Azure Resource Manager, and a managed identity that it knows."""
    plane.faults()
    with identity_endpoint.serve(TOKEN) as endpoint:
        identity_endpoint.use(monkeypatch, endpoint)
        monkeypatch.setenv("DISKBOOK_ARM_ENDPOINT", plane.url)
        monkeypatch.setenv("DISKBOOK_ARM_CA", str(plane.ca))
        monkeypatch.setenv("AZURE_SUBSCRIPTION_ID", SUBSCRIPTION)
        monkeypatch.setenv("DISKBOOK_SSH_SOURCE", SOURCE)
        monkeypatch.setenv("DISKBOOK_RUNS", str(tmp_path))
        monkeypatch.delenv(retail.ENDPOINT, raising=False)
        # Where another region has to be found few are asked: their lists are long.
        few = {name: catalog.regions()[name] for name in prices.table()}
        monkeypatch.setattr(catalog, "regions", lambda: few)
        yield plane
    plane.raw("PUT", "/diskbook/offer", json={})
    plane.faults()
    signin.credential.cache_clear()


def _lines(**asked: Any) -> dict[str, Check]:
    return {row.name: row for row in doctor.checks(SCENARIO, doctor.Asked(**asked), TODAY)}


@pytest.mark.long
def test_a_subscription_that_lacks_nothing(signed_in: World) -> None:
    rows = _lines()
    assert [row.state for row in rows.values()] == [State.OK] * len(rows), rows
    assert list(rows) == [
        "folder of runs", "SSH source", "subscription", "Resource Manager", "sign-in", "role", "providers",
        "sizes and disks", "quota", "images", "stays behind", "prices", "cost",
    ]  # fmt: skip
    assert rows["SSH source"].text == f"{SOURCE}/32"
    assert "from the Azure Retail Prices API, 2026-11-22" in rows["prices"].text
    assert "the limit is 50 USD" in rows["cost"].text
    assert signed_in.raw("GET", "/diskbook/operations").json()["value"] == []  # nothing was begun


def _offer(**offer: Any) -> Callable[[World, pytest.MonkeyPatch], None]:
    def set_up(plane: World, patch: pytest.MonkeyPatch) -> None:
        assert plane.raw("PUT", "/diskbook/offer", json=offer).status_code == 200

    return set_up


def _variable(name: str, value: str) -> Callable[[World, pytest.MonkeyPatch], None]:
    return lambda plane, patch: patch.setenv(name, value)


def _refuse(path: str, status: int, code: str) -> Callable[[World, pytest.MonkeyPatch], None]:
    action = {"status": status, "code": code, "message": "No."}
    return lambda plane, patch: plane.faults({"match": {"path_regex": path}, "times": 0, "action": action})


def _closed(plane: World, patch: pytest.MonkeyPatch) -> None:
    """No such size for this subscription."""
    _offer(restrictions=[{"sku": "Standard_D4as_v4", "location": "westeurope"}])(plane, patch)


FAILURES: dict[str, tuple[str, Callable[[World, pytest.MonkeyPatch], None], tuple[str, ...]]] = {
    "no folder": ("folder of runs", lambda plane, patch: patch.setattr("os.access", lambda *_: False),
                  ("cannot be written", "DISKBOOK_RUNS")),
    "no source": ("SSH source", lambda plane, patch: patch.delenv("DISKBOOK_SSH_SOURCE"), ("--ssh-source",)),
    "everybody": ("SSH source", _variable("DISKBOOK_SSH_SOURCE", "0.0.0.0/0"), ("open the machines",)),
    "no subscription": ("subscription", _variable("AZURE_SUBSCRIPTION_ID", "mine"), ("az account list",)),
    "nobody there": ("Resource Manager", _variable("DISKBOOK_ARM_ENDPOINT", "https://127.0.0.1:9"),
                     ("cannot be reached", "HTTPS_PROXY")),
    "expired": ("sign-in", _refuse(f"/subscriptions/{SUBSCRIPTION}$", 401, "ExpiredAuthenticationToken"),
                ("az login",)),
    "no role at all": ("sign-in", _offer(role="none"), ("role Contributor",)),
    "Reader": ("role", _offer(role="Reader"), (
        "may not Microsoft.Resources/subscriptions/resourceGroups/write", "az role assignment create",
    )),
    "providers": ("providers", _offer(unregistered=["Microsoft.Compute", "Microsoft.DevTestLab"]),
                  ("az provider register --namespace Microsoft.Compute --wait && az provider register",)),
    "size": ("sizes and disks", _closed, ("does not offer this subscription", "take ")),
    "lists": ("sizes and disks", _refuse("/skus$", 409, "Conflict"), ("Conflict: No.",)),
    "quota": ("quota", _offer(quotas={"cores": 10}), ("needs 12 vCPUs (cores)", "ask for 12")),
    "images": ("images", lambda plane, patch: patch.setattr(offers, "newest_version", lambda names: None),
               ("lists no version of the image", "take another region")),
    "prices": ("prices", _variable(retail.ENDPOINT, "http://127.0.0.1:9/prices"),
               ("gave no prices", "let this machine out to http://127.0.0.1:9/prices")),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("name", FAILURES)
def test_a_line_that_fails_says_what_to_do(
    signed_in: World, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    line, set_up, words = FAILURES[name]
    set_up(signed_in, monkeypatch)
    rows = _lines()
    assert rows[line].state == State.FAILS
    assert all(word in rows[line].text for word in words), rows[line].text
    assert not doctor.all_ok(list(rows.values()))
    assert [row.name for row in rows.values() if row.state == State.FAILS] == [line]


@pytest.mark.long
def test_port_22_of_a_host_is_tried_only_when_asked_for(
    signed_in: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setattr(doctor, "SSH_PORT", server.getsockname()[1])
        row = _lines(try_ssh="127.0.0.1")["way to port 22"]
        assert row.state == State.OK and row.text == "127.0.0.1 takes connections at port 22"
    row = _lines(try_ssh="127.0.0.1")["way to port 22"]
    assert row.state == State.FAILS and "let this machine out to port 22" in row.text
    assert "way to port 22" not in _lines()


@pytest.mark.long
def test_a_limit_that_is_too_low_fails(signed_in: World) -> None:
    row = _lines(max_cost_usd=0.01)["cost"]
    assert row.state == State.FAILS and "--max-cost-usd" in row.text


def test_what_rests_on_a_failure_is_not_asked(signed_in: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_SUBSCRIPTION_ID", "mine")
    rows = _lines()
    assert {rows[name].state for name in (*doctor._OF_SUBSCRIPTION, "prices")} == {State.NOT_ASKED}
    assert rows["cost"].state == State.OK  # by the dated table


def test_the_sign_in_service_is_asked_where_no_identity_is_at_hand(
    signed_in: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("IDENTITY_ENDPOINT")
    monkeypatch.setenv("AZURE_AUTHORITY_HOST", "127.0.0.1:9")
    row = _lines()["sign-in service"]
    assert row.state == State.FAILS and row.text.startswith("https://127.0.0.1:9 cannot be reached")


@pytest.mark.long
@pytest.mark.parametrize(("words", "status"), [((), 0), (("--max-cost-usd", "0.01"), 1)])
def test_the_command_ends_with_0_or_1(
    signed_in: World,
    words: tuple[str, ...],
    status: int,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for more in ((), ("--json",)):
        monkeypatch.setattr(sys, "argv", ["diskbook", "doctor", "--cloud", "azure", *words, *more])
        with pytest.raises(SystemExit) as ended:
            main()
        assert (ended.value.code or 0) == status
        out = capsys.readouterr().out
        if more:
            document = json.loads(out)
            assert document["ok"] is (status == 0) and len(document["checks"]) == 13
        else:
            assert out.splitlines()[-1].startswith("all is there" if not status else "1 of 13 lines")


@pytest.mark.parametrize(
    ("rows", "missing"),
    [
        ([{"actions": ["*"], "notActions": []}], 0),
        ([{"actions": ["*"], "notActions": ["Microsoft.Compute/*/delete"]}], 2),
        ([{"actions": ["*"], "notActions": ["*/join/action"]}], 4),
        ([{"actions": ["*"], "notActions": ["*/delete"]}, {"actions": ["*/DELETE"], "notActions": None}], 0),
        ([{"actions": ["*"], "notActions": ["*/attachDetachDataDisks/*", "*/restart/*"]}], 2),
        ([{"actions": ["*/read"], "notActions": []}], 25),
        ([], 33),
    ],
)
def test_what_one_role_takes_another_may_give(rows: list[dict[str, Any]], missing: int) -> None:
    (need,) = signin.needs(SCENARIO, SUBSCRIPTION)
    assert len(signin.not_granted(rows, need.actions)) == missing


def test_actions_are_asked_for_where_a_run_takes_them() -> None:
    settings = {"resource_group": "theirs"}, {"kind": "private", "resource_group": "corp", "subnet": "a/b"}
    company, network = settings
    chosen = {f"azure.{key}": value for key, value in company.items()}
    chosen |= {f"network.{key}": value for key, value in network.items()} | {"network.jump_host": "j"}
    group, subnet = signin.needs(scenario_file.load("zone-disks", "quick", chosen), SUBSCRIPTION)
    assert group.scope == f"/subscriptions/{SUBSCRIPTION}/resourceGroups/theirs"
    assert subnet.scope.endswith("/corp/providers/Microsoft.Network/virtualNetworks/a/subnets/b")
    assert subnet.actions == ("Microsoft.Network/virtualNetworks/subnets/join/action",)
    assert not [action for action in group.actions if "resourceGroups" in action or "publicIP" in action]
    (windows,) = signin.needs(scenario_file.load("s2d-azure", "quick"), SUBSCRIPTION)
    assert "Microsoft.Compute/virtualMachines/extensions/write" in windows.actions


def test_a_witness_needs_storage() -> None:
    two = scenario_file.load("nested-resiliency", "quick")
    assert ("Microsoft.Storage" in signin.providers(two)) is bool(
        [item for item in two.cluster if item.witness == "cloud"]
    )
    assert "Microsoft.Storage" not in signin.providers(SCENARIO)


@pytest.mark.long
def test_a_size_that_is_in_no_table_is_looked_up_as_plan_does(
    signed_in: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("doctor", "first-run", "--cloud", "azure", "--set", "machine.vm1.size=Standard_D4as_v99")
    monkeypatch.setattr(sys, "argv", ["diskbook", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    text = capsys.readouterr().out
    assert re.search(r"fails +sizes and disks .*Standard_D4as_v99", text)
    assert re.search(r"fails +cost +no price is known of machine Standard_D4as_v99", text)
