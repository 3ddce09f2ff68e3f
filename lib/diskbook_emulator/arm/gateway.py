"""What stands before every request: token, subscription, faults, throttling; and headers of answers."""

import asyncio
import json
import secrets
import uuid
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from diskbook.design.vocabulary import Provenance
from diskbook_emulator.arm import access, ids, throttle
from diskbook_emulator.arm.errors import ArmError
from diskbook_emulator.arm.plane import ControlPlane

OWN = "/diskbook/"
RETAIL = "/api/retail/prices"
STEPS = "/diskbook/steps"
REMAINING = "x-ms-ratelimit-remaining-resource"


class Gateway:
    """The outermost part of the app."""

    def __init__(self, app: ASGIApp, plane: ControlPlane) -> None:
        self._app = app
        self._plane = plane
        self._windows = throttle.Windows()
        self._buckets = throttle.Buckets(plane.settings.time_scale, plane.faults.bucket_share)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope["path"] = ids.canonical(scope["path"])
        headers: dict[str, str] = {}
        sender = _with_headers(headers, send)
        try:
            self._check(scope)
            if await self._fault(scope, receive):
                return
            headers |= self._throttle(scope)
        except ArmError as error:
            await error_response(error)(scope, receive, sender)
            return
        await self._app(scope, receive, sender)

    def _check(self, scope: Scope) -> None:
        path, settings = scope["path"], self._plane.settings
        if path in (RETAIL, STEPS):  # public; steps show their machine's own secret
            return
        _check_token(Headers(scope=scope).get("authorization", ""), settings.token, settings.tenant_id)
        if path.startswith(OWN):
            return
        query = parse_qs(scope["query_string"].decode("latin-1"))
        if not query.get("api-version"):
            raise ArmError(
                400,
                "MissingApiVersionParameter",
                "The api-version query parameter (?api-version=) is required for all requests.",
            )
        parts = path.split("/")
        named = parts[2] if len(parts) > 2 and parts[1] == "subscriptions" else settings.subscription_id
        if named.lower() != settings.subscription_id.lower():
            # wording from our knowledge, not read
            raise ArmError(404, "SubscriptionNotFound", f"The subscription '{parts[2]}' could not be found.")
        access.check(settings, scope["method"], path)

    async def _fault(self, scope: Scope, receive: Receive) -> bool:
        """Play an injected fault; True when the request needs no answer any more."""
        if scope["path"].startswith(OWN):
            return False
        fault = self._plane.faults.request(scope["method"], scope["path"])
        if fault is None:
            return False
        if fault.delay_s:
            await asyncio.sleep(fault.delay_s * self._plane.settings.time_scale)
        if fault.reset:
            _cut(receive)
            return True
        if fault.error is not None:
            raise fault.error
        return False

    def _throttle(self, scope: Scope) -> dict[str, str]:
        """Charge a request to Azure Compute's limits; return the header that says what is left of them."""
        method, path = scope["method"], scope["path"]
        charged = throttle.charge(method, path)
        if charged is None:
            group = throttle.window(method, path)
            return {REMAINING: self._windows.header(group)} if group else {}
        try:
            return {REMAINING: self._buckets.take(charged)}
        except ArmError:
            self._plane.faults.throttled(charged.group)
            raise


def _with_headers(more: dict[str, str], send: Send) -> Send:
    request_id = str(uuid.uuid4())

    async def sender(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers.setdefault("x-ms-request-id", request_id)
            headers.setdefault("x-ms-correlation-request-id", request_id)
            headers.setdefault("x-diskbook-provenance", Provenance.EMULATED)
            for name, value in more.items():
                headers.setdefault(name, value)
        await send(message)

    return sender


def _check_token(header: str, token: str, tenant_id: str) -> None:
    challenge = {"WWW-Authenticate": f'Bearer authorization_uri="https://login.windows.net/{tenant_id}"'}
    if not header:
        # wording from our knowledge, not read
        raise ArmError(
            401,
            "AuthenticationFailed",
            "Authentication failed. The 'Authorization' header is missing.",
            challenge,
        )
    scheme, _, given = header.partition(" ")
    if scheme.lower() != "bearer" or not secrets.compare_digest(given.encode(), token.encode()):
        # wording from our knowledge, not read
        raise ArmError(401, "InvalidAuthenticationToken", "The access token is invalid.", challenge)


def _cut(receive: Receive) -> None:
    """Cut the connection. ASGI has no word for it, so uvicorn's own transport is taken."""
    transport = getattr(getattr(receive, "__self__", None), "transport", None)
    if transport is None:
        raise ArmError(500, "InternalServerError", "This server cannot cut a connection.")
    transport.abort()


def error_response(error: ArmError) -> Response:
    """Turn an error into Azure's answer."""
    return Response(
        json.dumps(error.body()), error.status, headers=error.headers, media_type="application/json"
    )
