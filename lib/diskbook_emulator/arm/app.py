"""The app: routes of the emulated control plane."""

import copy
import json
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from diskbook.design.vocabulary import Provenance
from diskbook.facts.errors import UsageError
from diskbook_emulator.arm import (
    access,
    attach,
    company,
    disks,
    extensions,
    groups,
    metrics,
    network,
    plane,
    request_rules,
    retail,
    schedules,
    skus,
    storage,
    vms,
)
from diskbook_emulator.arm.errors import ArmError, bad_request, not_registered
from diskbook_emulator.arm.faults import Faults
from diskbook_emulator.arm.gateway import Gateway, error_response
from diskbook_emulator.arm.operations import Operations, Work
from diskbook_emulator.arm.plane import VM as VM_TYPE, Call, ControlPlane, Reply, creation, running
from diskbook_emulator.arm.settings import Settings
from diskbook_emulator.arm.state import Resource, Store
from diskbook_emulator.types import Backend, Json

FIELDS = (
    "id",
    "kind",
    "target",
    "status",
    "started_utc",
    "ended_utc",
    "unscaled_ended_utc",
    "real_s",
    "effect_s",
    "unscaled_s",
    "delay_s",
    "error",
)


def status(plane: ControlPlane, call: Call) -> Reply:
    """Count resources by type and operations by status."""
    resources = Counter(row.type for row in plane.store.resources.values())
    operations = Counter(row["status"] for row in plane.store.operations.values())
    body = {
        "provenance": Provenance.EMULATED,
        "subscription_id": plane.settings.subscription_id,
        "time_scale": plane.settings.time_scale,
        "resources": dict(resources),
        "operations": dict(operations),
    }
    return Reply(200, body)


def operations(plane: ControlPlane, call: Call) -> Reply:
    """List operations with their real times and the unscaled ones of the profile."""
    rows = [
        {key: operation[key] for key in FIELDS if key in operation}
        for operation in plane.store.operations.values()
    ]
    return Reply(200, {"provenance": Provenance.EMULATED, "value": rows})


def faults(plane: ControlPlane, call: Call) -> Reply:
    """Show the faults, or put others in place."""
    if call.method == "PUT":
        wished: Any = call.body
        if isinstance(wished, dict):
            wished = wished.get("value")
        if not isinstance(wished, list):
            raise bad_request("faults are a list, or {'value': [...]}", "InvalidFault")
        plane.faults.replace(copy.deepcopy(wished))
    return Reply(200, {"value": plane.faults.listed()})


log = logging.getLogger(__name__)
Handler = Callable[[ControlPlane, Call], Reply]

SUB = "/subscriptions/{subscription}"
GROUP = SUB + "/resourceGroups/{group}"
COMPUTE, NETWORK = "/providers/Microsoft.Compute", "/providers/Microsoft.Network"
DISK = GROUP + COMPUTE + "/disks/{name}"
VM = GROUP + COMPUTE + "/virtualMachines/{name}"
EXTENSION = VM + "/extensions/{extension}"
IMAGES = (
    COMPUTE + "/locations/{location}/publishers/{publisher}/artifacttypes/vmimage/offers/{offer}/skus/{sku}"
    "/versions"
)
POLICY = "/providers/Microsoft.PolicyInsights/checkPolicyRestrictions"
NET = GROUP + NETWORK + "/{kind}/{name}"
SCHEDULE = GROUP + "/providers/Microsoft.DevTestLab/schedules/{name}"
CHILD = NET + "/{child}/{child_name}"
ACCOUNT = GROUP + "/providers/Microsoft.Storage/storageAccounts/{name}"

TABLE: tuple[tuple[str, str, Handler], ...] = (
    ("GET", "/diskbook/status", status),
    ("GET", "/diskbook/operations", operations),
    ("GET", "/diskbook/faults", faults),
    ("PUT", "/diskbook/faults", faults),
    ("GET", "/diskbook/offer", skus.offer),
    ("PUT", "/diskbook/offer", skus.offer),
    ("GET", retail.PATH, retail.prices),
    ("GET", "/diskbook/clock", schedules.clock),
    ("PUT", "/diskbook/clock", schedules.clock),
    ("GET", SUB, access.subscription),
    ("GET", SUB + "/providers/Microsoft.Authorization/permissions", access.permissions),
    ("GET", GROUP + "/providers/Microsoft.Authorization/permissions", access.permissions),
    ("GET", CHILD + "/providers/Microsoft.Authorization/permissions", access.permissions),
    ("GET", SUB + "/providers/{provider}", access.provider),
    ("POST", SUB + "/providers/{provider}/register", access.provider),
    ("GET", SUB + "/locations", access.listing),
    ("GET", SUB + "/resourceGroups", groups.listing),
    ("GET", SUB + "/resources", groups.resources),
    ("POST", SUB + "/metrics:getBatch", metrics.get_batch),
    ("GET", SUB + "/operationResults/{token}", groups.poll),
    ("HEAD", GROUP, groups.head),
    ("GET", GROUP, groups.get),
    ("PUT", GROUP, groups.put),
    ("PATCH", GROUP, groups.patch),
    ("DELETE", GROUP, groups.delete),
    ("GET", GROUP + "/resources", groups.resources),
    ("GET", "/providers/{provider}/operations", skus.operations),
    ("GET", SUB + COMPUTE + "/skus", skus.listing),
    ("GET", SUB + COMPUTE + "/locations/{location}/usages", skus.usages),
    ("GET", SUB + IMAGES, skus.image_versions),
    ("GET", SUB + NETWORK + "/locations/{location}/usages", skus.network_usages),
    ("GET", SUB + "/providers/{provider}/locations/{location}/{collection}/{operation}", plane.operation),
    ("POST", SUB + POLICY, company.restrictions),
    ("POST", GROUP + POLICY, company.restrictions),
    ("GET", SUB + COMPUTE + "/disks", disks.listing),
    ("GET", GROUP + COMPUTE + "/disks", disks.listing),
    ("GET", DISK, disks.get),
    ("PUT", DISK, disks.put),
    ("PATCH", DISK, disks.patch),
    ("DELETE", DISK, disks.delete),
    ("GET", SUB + COMPUTE + "/virtualMachines", vms.listing),
    ("GET", GROUP + COMPUTE + "/virtualMachines", vms.listing),
    ("GET", VM, vms.get),
    ("PUT", VM, vms.put),
    ("PATCH", VM, vms.patch),
    ("DELETE", VM, vms.delete),
    ("GET", VM + "/instanceView", vms.view),
    ("GET", VM + "/extensions", extensions.listing),
    ("GET", EXTENSION, extensions.get),
    ("PUT", EXTENSION, extensions.put),
    ("DELETE", EXTENSION, extensions.delete),
    ("POST", VM + "/attachDetachDataDisks", vms.attach_detach),
    ("POST", VM + "/{action:power}", vms.act),
    ("GET", SCHEDULE, schedules.get),
    ("PUT", SCHEDULE, schedules.put),
    ("DELETE", SCHEDULE, schedules.delete),
    ("GET", SUB + "/providers/Microsoft.Storage/storageAccounts", storage.listing),
    ("GET", GROUP + "/providers/Microsoft.Storage/storageAccounts", storage.listing),
    ("GET", ACCOUNT, storage.get),
    ("PUT", ACCOUNT, storage.put),
    ("DELETE", ACCOUNT, storage.delete),
    ("POST", ACCOUNT + "/listKeys", storage.list_keys),
    ("GET", SUB + NETWORK + "/{kind}", network.listing),
    ("GET", GROUP + NETWORK + "/{kind}", network.listing),
    ("GET", NET, network.get),
    ("PUT", NET, network.put),
    ("PATCH", NET, network.patch),
    ("DELETE", NET, network.delete),
    ("GET", NET + "/usages", company.usages),
    ("GET", NET + "/{child}", network.list_children),
    ("GET", CHILD, network.get_child),
    ("PUT", CHILD, network.put_child),
    ("DELETE", CHILD, network.delete_child),
)


def create_app(settings: Settings, backend: Backend, state_path: Path) -> Starlette:
    """Make the control plane.

    What the state file holds is brought back before this returns: machines that ran are started again through
    the backend, with their disks. The plane itself is `app.state.plane`; call its `close` after serving.

    - `settings`: subscription, token, time scale, delays, faults.
    - `state_path`: SQLite file of the state, made if missing.

    Raises UsageError if a fault in the settings cannot be understood.
    """
    try:
        faults = Faults(settings.faults)
    except ArmError as error:
        raise UsageError(f"the list of faults of the emulator is wrong: {error}.") from None
    store = Store(state_path)
    plane = ControlPlane(settings, backend, store, faults, Operations(settings, store, faults))
    restore(plane)
    plane.closing.append(schedules.Watch(plane).close)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        await run_in_threadpool(plane.close)

    app = Starlette(
        routes=_routes(plane),
        middleware=[Middleware(Gateway, plane=plane)],
        exception_handlers={404: _unknown, 405: _unknown, Exception: _broken},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    app.state.plane = plane
    return app


def _routes(plane: ControlPlane) -> list[Route]:
    routes = []
    for method, path, handler in TABLE:
        if path.endswith("{action:power}"):
            stem = path.removesuffix("{action:power}")
            for action in vms.ACTIONS:
                routes.append(
                    Route(stem + action, _endpoint(plane, handler, {"action": action}), methods=[method])
                )
            continue
        routes.append(Route(path, _endpoint(plane, handler, {}), methods=[method]))
    return routes


def _endpoint(
    plane: ControlPlane, handler: Handler, fixed: dict[str, str]
) -> Callable[[Request], Awaitable[Response]]:
    def answer(call: Call) -> Response:
        # Handlers are quick (no waiting, no backend), so one at a time keeps the state simple.
        with plane.store.lock:
            try:
                request_rules.check(plane, call)
                if call.method == "PUT" and "group" in call.params:
                    company.check_allowed(plane, call.path, call.body)
                return _response(handler(plane, call))
            except ArmError as error:
                return error_response(error)

    async def endpoint(request: Request) -> Response:
        try:
            body = _json(await request.body())
        except ArmError as error:
            return error_response(error)
        call = Call(
            method=request.method,
            path=request.url.path,
            base=f"{request.url.scheme}://{request.headers.get('host', '')}",
            params={**request.path_params, **fixed},
            query=dict(request.query_params),
            body=body,
        )
        return await run_in_threadpool(answer, call)

    return endpoint


def _json(raw: bytes) -> Json:
    if not raw.strip():
        return {}
    try:
        body: Json = json.loads(raw)
    except ValueError as error:
        # wording from our knowledge, not read
        raise bad_request(
            f"The request content was invalid and could not be deserialized: '{error}'.",
            "InvalidRequestContent",
        ) from None
    return body


def _response(reply: Reply) -> Response:
    if reply.body is None:
        return Response(None, reply.status, headers=reply.headers)
    return Response(
        json.dumps(reply.body), reply.status, headers=reply.headers, media_type="application/json"
    )


async def _unknown(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        # wording from our knowledge, not read
        message = f"The requested resource does not support http method '{request.method}'."
        return error_response(ArmError(405, "MethodNotAllowed", message))
    return error_response(not_registered(request.url.path))


async def _broken(request: Request, error: Exception) -> Response:
    log.error("%s %s: %r", request.method, request.url.path, error)
    return error_response(ArmError(500, "InternalServerError", "The emulator failed on this request."))


WORKERS = 8
_POWER_KINDS = {kind: action for action, (kind, _) in vms.ACTIONS.items()}
_CHANGES = ("disk-attach", "disk-detach", "vm-update")


def restore(plane: ControlPlane) -> None:
    """Bring everything back.

    A change of a machine that was under way is undone and its operation ends Failed. Machines that ran are
    started with their disks attached. All other operations are taken up again, under their old ids.
    """
    cut_off = plane.operations.unfinished()
    for body in cut_off:
        if body["kind"] in _CHANGES:
            _undo(plane, body)
        elif body["kind"] in ("vm-delete", "group-delete"):
            _not_running(plane, body["target"])
    machines = [vm for vm in plane.store.of_type(VM_TYPE) if running(vm)]
    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(lambda vm: _boot(plane, vm), machines))
    for body in cut_off:
        if body["kind"] not in _CHANGES:
            plane.operations.resume(body, _work(plane, body))


def _undo(plane: ControlPlane, body: Json) -> None:
    vm = plane.store.get(body["target"])
    if vm is not None:
        keys = disks.disk_keys(vm)
        vms.undo(plane, vm, keys | disks.disk_keys(vm))
    plane.operations.abandon(body, "The emulator was restarted during this operation. Try again.")


def _not_running(plane: ControlPlane, target: str) -> None:
    """Leave machines down that are about to be deleted."""
    for vm in plane.store.of_type(VM_TYPE):
        if vm.key.startswith(target.lower()):
            vm.hidden["power"] = "stopped"
            plane.store.save(vm)


def _boot(plane: ControlPlane, vm: Resource) -> None:
    try:
        vms.boot(plane, vm)
    except (OSError, RuntimeError) as error:
        log.error("machine %s does not come back: %s", vm.name, error)
        vm.hidden["power"] = "stopped"
        vm.properties["provisioningState"] = "Failed"
        plane.store.save(vm)


def _work(plane: ControlPlane, body: Json) -> Work:
    """Build the work of an operation again, from its kind and target."""
    resource = plane.store.get(body["target"])
    kind = body["kind"]
    if resource is None:
        return Work()
    if kind in _POWER_KINDS:
        return vms.power_work(plane, resource, _POWER_KINDS[kind])
    if kind.startswith("vm-create"):
        final = tuple(resource.properties["storageProfile"]["dataDisks"])
        return vms.creation(plane, resource, attach.Change((), final, final))
    builders: dict[str, Callable[[ControlPlane, Resource], Work]] = {
        "disk-create": creation,
        "disk-update": disks.update,
        "disk-delete": disks.deletion,
        "vm-delete": vms.deletion,
        "vm-extension": extensions.creation,
        "group-delete": groups.deletion,
        "network-delete": network.deletion,
        "storage-account": creation,
        schedules.GUEST: schedules.shutdown,
    }
    if kind in builders:
        return builders[kind](plane, resource)
    return creation(plane, resource, new=False)
