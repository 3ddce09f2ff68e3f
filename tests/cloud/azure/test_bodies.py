"""The strict look at bodies notices what the SDK lets pass: mistakes, each planted in a lawful body."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from diskbook.cloud.azure import requests
from diskbook.design.model import Disk
from support import strict

DISK = requests.disk(Disk(name="d", sku="Premium_ZRS", size_gib=64), "westeurope", {"run": "x"})
GROUP = "/subscriptions/s/resourceGroups/g"
URL = f"https://a{GROUP}/providers/Microsoft.Compute"
ATTACH = {"dataDisksToAttach": [{"diskId": "d", "lun": 0, "caching": "None", "deleteOption": "Delete"}]}
RULES = {"location": "westeurope", "properties": {"securityRules": [requests.ssh_only("10.0.0.0/8")]}}
PUT_DISK, PUT_GROUP = ("PUT", f"{URL}/disks/d"), ("PUT", f"https://a{GROUP}")
POST_ATTACH = ("POST", f"{URL}/virtualMachines/vm/attachDetachDataDisks")
PUT_RULES = ("PUT", f"https://a{GROUP}/providers/Microsoft.Network/networkSecurityGroups/n")
PATCH_VM = ("PATCH", f"{URL}/virtualMachines/vm")

Change = Callable[[Any], Any]


def _wrong(call: tuple[str, str], sent: Any, got: Any = None, status: int = 200) -> list[str]:
    method, url = call
    wire = [None if body is None else strict.json.dumps(body) for body in (sent, got)]
    return list(strict.exchange(method, f"{url}?api-version=1", wire[0], status, wire[1] or ""))


@pytest.mark.long
@pytest.mark.parametrize(
    ("call", "body"), [(PUT_DISK, DISK), (POST_ATTACH, ATTACH), (PUT_RULES, RULES), (PATCH_VM, {"tags": {}})]
)
def test_lawful_bodies_pass(call: tuple[str, str], body: Any) -> None:
    assert _wrong(call, body) == []


MISTAKES: list[tuple[str, tuple[str, str], Any, Change, str]] = [
    ("misspelt", PUT_DISK, DISK, lambda b: b["properties"].update(diskSizeGb=64),
     ".properties.diskSizeGb: DiskProperties has no such property"),
    ("one level too high", PUT_DISK, DISK, lambda b: b.update(diskSizeGB=64),
     ".diskSizeGB: Disk has no such property"),
    ("missing", PUT_DISK, DISK, lambda b: b.pop("location"), ".location: is missing"),
    ("missing within", PUT_DISK, DISK, lambda b: b["properties"]["creationData"].pop("createOption"),
     ".properties.creationData.createOption: is missing"),
    ("read-only", PUT_DISK, DISK, lambda b: b["properties"].update(provisioningState="Succeeded"),
     ".properties.provisioningState: may not be sent"),
    ("read-only within", PUT_DISK, DISK, lambda b: b["sku"].update(tier="Premium"), ".sku.tier: may not be"),
    ("unknown value", PUT_DISK, DISK, lambda b: b["sku"].update(name="Premium_GRS"), "none of DiskStorage"),
    ("value in another case", POST_ATTACH, ATTACH,
     lambda b: b["dataDisksToAttach"][0].update(caching="none"), "'none' is none of CachingTypes"),
    ("text for a number", POST_ATTACH, ATTACH, lambda b: b["dataDisksToAttach"][0].update(lun="0"),
     ".dataDisksToAttach[0].lun: '0' is no int"),
    ("truth for a number", POST_ATTACH, ATTACH, lambda b: b["dataDisksToAttach"][0].update(lun=True),
     ".dataDisksToAttach[0].lun: True is no int"),
    ("null", PUT_DISK, DISK, lambda b: b["properties"].update(tier=None), ".properties.tier: is null"),
    ("object for a list", POST_ATTACH, ATTACH, lambda b: b.update(dataDisksToAttach={}),
     ".dataDisksToAttach: is not a list"),
    ("number for a tag", PUT_DISK, DISK, lambda b: b["tags"].update(n=1), ".tags.n: 1 is no str"),
    ("unknown value of the network", PUT_RULES, RULES,
     lambda b: b["properties"]["securityRules"][0]["properties"].update(protocol="SSH"), "'SSH' is none of"),
    ("only at creation", PATCH_VM, {"tags": {}}, lambda b: b.update(location="westeurope"), ".location"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "body", "change", "line"), [row[1:] for row in MISTAKES],
                         ids=[row[0] for row in MISTAKES])  # fmt: skip
def test_a_planted_mistake_is_noticed(call: tuple[str, str], body: Any, change: Change, line: str) -> None:
    mistaken = copy.deepcopy(body)
    change(mistaken)
    (wrong,) = _wrong(call, mistaken)
    assert line in wrong
    assert _wrong(call, mistaken, status=400) == []  # what is refused is what a test is about


_POLL = ("GET", "https://a/subscriptions/s/providers/Microsoft.Compute/locations/l/operations/1")


@pytest.mark.parametrize(
    ("call", "status", "got", "line"),
    [
        (PUT_DISK, 202, {**DISK, "properties": {"isArmResource": True}}, "isArmResource"),
        (PUT_DISK, 200, {**DISK, "properties": {}}, ".properties.creationData: is missing"),
        (PUT_DISK, 200, {**DISK, "managedBy": ["vm"]}, ".managedBy: ['vm'] is no str"),
        (_POLL, 200, {"status": "Running", "name": "1"}, "not a state of an operation"),
        (_POLL, 200, {"status": "InProgress", "startTime": "soon"}, ".startTime: 'soon' is not a time"),
        (_POLL, 200, {"status": "Failed", "name": "1"}, ".error"),
        (PUT_DISK, 409, {"code": "Conflict", "message": "No."}, "no envelope"),
        (PUT_DISK, 409, {"error": {"message": "No."}}, ".error.code: is missing"),
        (("PUT", f"{URL}/galleries/g"), 200, {}, "no model is known"),
    ],
)
def test_a_mistake_in_an_answer_is_noticed(call: tuple[str, str], status: int, got: Any, line: str) -> None:
    wrong = _wrong(call, None, got, status)
    assert len(wrong) == 1 and line in wrong[0]
