"""The app: routes of the emulated control plane."""

import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from diskbook.facts.errors import UsageError
from diskbook_emulator.arm import (
    access,
    company,
    disks,
    extensions,
    groups,
    locations,
    metrics,
    network,
    own,
    polling,
    power,
    request_rules,
    retail,
    schedules,
    skus,
    storage,
    vm_delete,
    vms,
)
from diskbook_emulator.arm.errors import ArmError, bad_request, not_registered
from diskbook_emulator.arm.faults import Faults
from diskbook_emulator.arm.gateway import Gateway, error_response
from diskbook_emulator.arm.operations import Operations
from diskbook_emulator.arm.plane import Call, ControlPlane, Reply
from diskbook_emulator.arm.restore import restore
from diskbook_emulator.arm.settings import Settings
from diskbook_emulator.arm.state import Store
from diskbook_emulator.types import Backend, Json

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
    ("GET", "/diskbook/status", own.status),
    ("GET", "/diskbook/operations", own.operations),
    ("GET", "/diskbook/faults", own.faults),
    ("PUT", "/diskbook/faults", own.faults),
    ("GET", "/diskbook/offer", skus.offer),
    ("PUT", "/diskbook/offer", skus.offer),
    ("GET", retail.PATH, retail.prices),
    ("GET", "/diskbook/clock", schedules.clock),
    ("PUT", "/diskbook/clock", schedules.clock),
    ("GET", SUB, locations.subscription),
    ("GET", SUB + "/providers/Microsoft.Authorization/permissions", access.permissions),
    ("GET", GROUP + "/providers/Microsoft.Authorization/permissions", access.permissions),
    ("GET", CHILD + "/providers/Microsoft.Authorization/permissions", access.permissions),
    ("GET", SUB + "/providers/{provider}", access.provider),
    ("POST", SUB + "/providers/{provider}/register", access.provider),
    ("GET", SUB + "/locations", locations.listing),
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
    ("GET", SUB + "/providers/{provider}/locations/{location}/{collection}/{operation}", polling.operation),
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
    ("DELETE", VM, vm_delete.delete),
    ("GET", VM + "/instanceView", vms.view),
    ("GET", VM + "/extensions", extensions.listing),
    ("GET", EXTENSION, extensions.get),
    ("PUT", EXTENSION, extensions.put),
    ("DELETE", EXTENSION, extensions.delete),
    ("POST", VM + "/attachDetachDataDisks", vms.attach_detach),
    ("POST", VM + "/{action:power}", power.act),
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
            for action in power.ACTIONS:
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
