"""Bodies held strictly against the SDK's own models: known, writable, whole and of the right type.

The SDK lets everything pass: a plain dict is sent as it is, and an answer with strange properties is read.
Its models know better (names on the wire, visibility, types, known values), so they judge here. `Watch` does
that for all that a transport sends and gets.
"""

from __future__ import annotations

import enum
import functools
import importlib
import json
import re
import threading
import types
import typing
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, Union
from urllib.parse import urlsplit

import pytest
from azure.core.pipeline.transport import RequestsTransport

from diskbook.cloud.azure import clients

SENT = {"PUT": "create", "PATCH": "update", "POST": "create"}
GOT, ACCEPTED = "read", "accepted"  # an answer of 202 is a request's echo, which need not be whole
COMPUTE, NETWORK = "azure.mgmt.compute.models", "azure.mgmt.network.models"
RESOURCE, STORAGE = "azure.mgmt.resource.resources.models", "azure.mgmt.storage.models"

# by kind of resource: its model, and others where PATCH, PUT or an action sends or gets another one
MODELS: dict[str, tuple[str, str]] = {
    "microsoft.compute/disks": (COMPUTE, "Disk"),
    "microsoft.compute/virtualmachines": (COMPUTE, "VirtualMachine"),
    "microsoft.compute/virtualmachines/instanceview": (COMPUTE, "VirtualMachineInstanceView"),
    "microsoft.compute/virtualmachines/extensions": (COMPUTE, "VirtualMachineExtension"),
    "microsoft.compute/virtualmachines/attachdetachdatadisks": (COMPUTE, "StorageProfile"),
    "microsoft.compute/skus": (COMPUTE, "ResourceSku"),
    "microsoft.compute/locations/usages": (COMPUTE, "Usage"),
    "microsoft.compute/locations/publishers/artifacttypes/offers/skus/versions": (
        COMPUTE,
        "VirtualMachineImageResource",
    ),
    "microsoft.network/virtualnetworks": (NETWORK, "VirtualNetwork"),
    "microsoft.network/virtualnetworks/subnets": (NETWORK, "Subnet"),
    "microsoft.network/networkinterfaces": (NETWORK, "NetworkInterface"),
    "microsoft.network/networksecuritygroups": (NETWORK, "NetworkSecurityGroup"),
    "microsoft.network/networksecuritygroups/securityrules": (NETWORK, "SecurityRule"),
    "microsoft.network/publicipaddresses": (NETWORK, "PublicIPAddress"),
    "microsoft.network/bastionhosts": (NETWORK, "BastionHost"),
    "microsoft.network/natgateways": (NETWORK, "NatGateway"),
    "microsoft.network/locations/usages": (NETWORK, "Usage"),
    "microsoft.network/virtualnetworks/usages": (NETWORK, "VirtualNetworkUsage"),
    "microsoft.storage/storageaccounts": (STORAGE, "StorageAccount"),
    "microsoft.storage/storageaccounts/listkeys": (STORAGE, "StorageAccountListKeysResult"),
    "resourcegroups": (RESOURCE, "ResourceGroup"),
    "resources": (RESOURCE, "GenericResourceExpanded"),
}
SENDS: dict[tuple[str, str], tuple[str, str]] = {
    ("PATCH", "microsoft.compute/disks"): (COMPUTE, "DiskUpdate"),
    ("PATCH", "microsoft.compute/virtualmachines"): (COMPUTE, "VirtualMachineUpdate"),
    ("PATCH", "resourcegroups"): (RESOURCE, "ResourceGroupPatchable"),
    ("PUT", "microsoft.storage/storageaccounts"): (STORAGE, "StorageAccountCreateParameters"),
    ("POST", "microsoft.compute/virtualmachines/attachdetachdatadisks"): (
        COMPUTE,
        "AttachDetachDataDisksRequest",
    ),
}
# Microsoft calls this list deprecated and incomplete; sizes are judged by their own table.
OPEN = {"VirtualMachineSizeTypes"}
# Nothing here has a model in the SDK's packages that the workbook has.
WITHOUT_MODEL = {
    "microsoft.authorization/permissions",
    "microsoft.devtestlab/schedules",
    "microsoft.policyinsights/checkpolicyrestrictions",
    "locations",
    "subscriptions",
    "microsoft.compute/operations",
    "metrics:getbatch",
}
_OPERATION = re.compile(r"/(locations/[^/]+/\w*operations|operationresults)/[^/]+$", re.IGNORECASE)
_PROVIDER = re.compile(r"microsoft\.\w+(/register)?")
_OPERATION_FIELDS = {"id", "name", "status", "startTime", "endTime", "percentComplete", "properties", "error"}
_STATES = {"InProgress", "Succeeded", "Failed", "Canceled"}
_ERROR_FIELDS = {"code", "message", "target", "details", "additionalInfo", "innererror"}
_TIME = re.compile(r"(\.\d{6})\d(?=[+Z-])")  # Azure writes seven digits


def model(place: tuple[str, str]) -> type:
    """Return a model by module and name."""
    found: type = getattr(importlib.import_module(place[0]), place[1])
    return found


@functools.cache
def _fields(cls: type) -> dict[str, tuple[Any, Any]]:
    """Fields of a model by their name on the wire: the SDK's record of it, and its type."""
    clients.fill_models(cls.__module__.rpartition(".models.")[0])  # names on the wire among other things
    module = importlib.import_module(cls.__module__)
    exported = importlib.import_module(cls.__module__.rpartition(".")[0])
    hints = typing.get_type_hints(cls, vars(module), {"_models": exported})
    return {field._rest_name: (field, hints[name]) for name, field in cls._attr_to_rest_field.items()}  # type: ignore[attr-defined]


def violations(cls: type, value: Any, direction: str, at: str = "") -> Iterator[str]:
    """Say what is wrong with a body: "create" or "update" where it is sent, "read" or "accepted" else."""
    if not isinstance(value, dict):
        yield f"{at or '.'}: is {type(value).__name__}, not {cls.__name__}"
    elif all(type(inner) is str for inner in value.values()):
        yield from (f"{at}{line}" for line in _of_texts(cls, tuple(value.items()), direction))
    else:
        yield from _properties(cls, value, direction, at)


@functools.lru_cache(maxsize=100_000)
def _of_texts(cls: type, items: tuple[tuple[str, str], ...], direction: str) -> tuple[str, ...]:
    """Judge a body of texts alone once: most of a list of sizes are the same few capabilities."""
    return tuple(_properties(cls, dict(items), direction, ""))


def _properties(cls: type, value: dict[str, Any], direction: str, at: str) -> Iterator[str]:
    fields = _fields(_subclass(cls, value))
    for name, inner in value.items():
        place = f"{at}.{name}"
        if name not in fields:
            yield f"{place}: {cls.__name__} has no such property"
            continue
        field, hint = fields[name]
        if direction in SENT.values() and field._visibility and direction not in field._visibility:
            yield f"{place}: may not be sent ({', '.join(field._visibility)} only)"
        yield from _value(hint, inner, direction, place)
    for name, (field, hint) in fields.items():
        due = not field._visibility or direction in field._visibility
        if name not in value and due and not _optional(hint) and direction in ("create", GOT):
            yield f"{at}.{name}: is missing, {cls.__name__} must have it"


def _subclass(cls: type, value: dict[str, Any]) -> type:
    """The model that a discriminator names."""
    mapping = cls.__dict__.get("__mapping__") or {}
    for name, (field, _) in _fields(cls).items():
        if field._is_discriminator and value.get(name) in mapping:
            return typing.cast(type, mapping[value[name]])
    return cls


def _optional(hint: Any) -> bool:
    return _origin(hint) is Union and type(None) in typing.get_args(hint)


@functools.cache
def _origin(hint: Any) -> Any:
    origin = typing.get_origin(hint)
    return Union if origin is types.UnionType else origin


@functools.cache
def _parts(hint: Any) -> tuple[Any, ...]:
    """What a type is made of, without None."""
    return tuple(part for part in typing.get_args(hint) if part is not type(None))


def _value(hint: Any, value: Any, direction: str, at: str) -> Iterator[str]:
    """Hold one value against a type."""
    if value is None:
        if direction in SENT.values():
            yield f"{at}: is null"
        return
    origin, parts = _origin(hint), _parts(hint)
    if origin is Union:
        yield from _union(parts, value, direction, at)
    elif origin is typing.Literal:
        if value not in parts:
            yield f"{at}: '{value}' is none of {parts}"
    elif origin is list:
        yield from _list(parts[0], value, direction, at)
    elif origin in (dict, typing.get_origin(typing.Mapping[str, str])):
        if not isinstance(value, dict):
            yield f"{at}: is not an object"
        else:
            for name, inner in value.items():
                yield from _value(parts[1], inner, direction, f"{at}.{name}")
    else:
        yield from _plain(hint, value, direction, at)


def _list(part: Any, value: Any, direction: str, at: str) -> Iterator[str]:
    if not isinstance(value, list):
        yield f"{at}: is not a list"
        return
    for number, inner in enumerate(value):
        yield from _value(part, inner, direction, f"{at}[{number}]")


def _union(parts: tuple[Any, ...], value: Any, direction: str, at: str) -> Iterator[str]:
    """One type must do; of an enumeration the value must be a known one, though the SDK allows any text."""
    known = [part for part in parts if isinstance(part, type) and issubclass(part, enum.Enum)]
    if known:
        yield from _known(known[0], value, direction, at)
        return
    found = [list(_value(part, value, direction, at)) for part in parts]
    if all(found):
        yield from found[0]


def _known(kinds: type[enum.Enum], value: Any, direction: str, at: str) -> Iterator[str]:
    """Hold a value against an enumeration; Azure answers in other cases ("FULL"), we send in this one."""
    values = {str(member.value) for member in kinds}
    if direction not in SENT.values():
        values, value = {known.lower() for known in values}, str(value).lower()
    if value not in values and kinds.__name__ not in OPEN:
        yield f"{at}: '{value}' is none of {kinds.__name__}"


def _plain(hint: Any, value: Any, direction: str, at: str) -> Iterator[str]:
    if hint is Any:
        return
    if hasattr(hint, "_attr_to_rest_field") or hasattr(hint, "_is_model"):
        yield from violations(hint, value, direction, at)
    elif hint is datetime:
        if not _is_time(value):
            yield f"{at}: '{value}' is not a time"
    elif hint is float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            yield f"{at}: {value!r} is not a number"
    elif hint in (str, int, bool) and type(value) is not hint:
        yield f"{at}: {value!r} is no {hint.__name__}"


def _is_time(value: Any) -> bool:
    try:
        datetime.fromisoformat(_TIME.sub(r"\1", value))
    except (TypeError, ValueError):
        return False
    return True


# Exchanges


def kind(path: str) -> str:
    """Kind of resource that a path is about, in lower case: "microsoft.compute/disks", "resourcegroups"."""
    parts = urlsplit(path).path.strip("/").lower().split("/")
    if "providers" in parts:
        tail = parts[len(parts) - parts[::-1].index("providers") :]
        return "/".join([tail[0], *tail[1::2]])
    if parts[::2][-1:] == ["resourcegroups"] and len(parts) <= 4:
        return "resourcegroups"
    return parts[-1] if len(parts) % 2 else parts[-2]


def exchange(method: str, url: str, sent: bytes | str | None, status: int, got: bytes | str) -> Iterator[str]:
    """Say what is wrong with a request and its answer, by the model of what they are about.

    A request that is refused may be as wrong as it likes: its refusal is what a test is about.
    """
    path = urlsplit(url).path
    about = kind(path)
    if not path.lower().startswith("/subscriptions/"):
        return
    where = f"{method} {about}"
    if sent and status < 400 and about not in WITHOUT_MODEL:
        yield from (f"{where} sent {line}" for line in _sent(method, about, json.loads(sent)))
    if got:
        yield from (f"{where} got {status} {line}" for line in _got(path, about, status, got))


def _sent(method: str, about: str, body: Any) -> Iterator[str]:
    place = SENDS.get((method, about)) or _place(about)
    if place is None:
        yield "(no model is known for it)"
    else:
        yield from violations(model(place), body, SENT[method])


@functools.lru_cache(maxsize=1000)
def _got(path: str, about: str, status: int, content: bytes | str) -> tuple[str, ...]:
    """Say what is wrong with what was got; the thousand rows of a list of sizes are got again and again."""
    return tuple(_answer(path, about, status, json.loads(content)))


def _answer(path: str, about: str, status: int, body: Any) -> Iterator[str]:
    if status >= 400:
        yield from error(body)
    elif _OPERATION.search(path) and "status" in body:
        yield from operation(body)
    elif _OPERATION.search(path) or about in WITHOUT_MODEL:
        return  # what a Location gives in the end is what its resource gives
    elif (place := _place(about)) is None:
        yield "(no model is known for it)"
    else:
        for row in _rows(body):
            yield from violations(model(place), row, ACCEPTED if status == 202 else GOT)


def _place(about: str) -> tuple[str, str] | None:
    """Where the model of a kind of resource is; a provider alone is a resource too."""
    return MODELS.get(about) or ((RESOURCE, "Provider") if _PROVIDER.fullmatch(about) else None)


def _rows(body: Any) -> list[Any]:
    if isinstance(body, list):
        return body
    if set(body) <= {"value", "nextLink"} and isinstance(body.get("value"), list):
        return body["value"]
    return [body]


def error(body: Any) -> Iterator[str]:
    """Say what is wrong with the envelope of an error."""
    inner = body.get("error") if isinstance(body, dict) else None
    if not isinstance(inner, dict) or set(body) != {"error"}:
        yield ".error: there is no envelope"
        return
    for name in sorted(set(inner) - _ERROR_FIELDS):
        yield f".error.{name}: errors have no such property"
    for name in ("code", "message"):
        if not isinstance(inner.get(name), str):
            yield f".error.{name}: is missing"


def operation(body: dict[str, Any]) -> Iterator[str]:
    """Say what is wrong with the answer to a poll."""
    for name in sorted(set(body) - _OPERATION_FIELDS):
        yield f".{name}: operations have no such property"
    if body["status"] not in _STATES:
        yield f".status: '{body['status']}' is not a state of an operation"
    if body["status"] in ("Failed", "Canceled"):
        yield from error({"error": body.get("error")})
    for name in ("startTime", "endTime"):
        if name in body and not _is_time(body[name]):
            yield f".{name}: '{body[name]}' is not a time"


class Watch:
    """Judges each exchange of a transport; `wrong` has what is wrong, each once, in order.

    `sent` are the requests with a body so far, as "PUT microsoft.compute/disks".
    """

    def __init__(self) -> None:
        self.wrong: list[str] = []
        self.sent: set[str] = set()
        self._lock = threading.Lock()

    def insist(self) -> None:
        """Fail where something was wrong since the last time."""
        with self._lock:
            wrong, self.wrong = self.wrong, []
        if wrong:
            pytest.fail("bodies that the SDK's models do not allow:\n" + "\n".join(wrong))

    def sending(self, send: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap the `send` of a transport."""

        @functools.wraps(send)
        def watched(transport: Any, request: Any, **options: Any) -> Any:
            answer = send(transport, request, **options)
            if ".blob." in (urlsplit(request.url).hostname or ""):  # contents of objects, for other tests
                return answer
            answer.read()  # operations are asked for as streams
            content = getattr(request, "content", None) or getattr(request, "body", None)
            lines = list(exchange(request.method, request.url, content, answer.status_code, answer.text()))
            with self._lock:
                self.sent |= {f"{request.method} {kind(request.url)}"} if content else set()
                self.wrong += [line for line in lines if line not in self.wrong]
            return answer

        return watched


@pytest.fixture(scope="session", autouse=True)
def watch() -> Iterator[Watch]:
    """Judges all that the Azure clients of these tests send and get in this process."""
    judge = Watch()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RequestsTransport, "send", judge.sending(RequestsTransport.send))
        yield judge
    judge.insist()


@pytest.fixture(autouse=True)
def strict_bodies(watch: Watch) -> Iterator[None]:
    """Fail a test in which a body was sent or got that the SDK's models do not know."""
    yield
    watch.insist()
