"""What stands before every request: token, subscription, faults, throttling; and headers of answers."""

import asyncio
import json
import re
import secrets
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from diskbook.design.vocabulary import Provenance
from diskbook.facts.arm import MINUTE_S, POLICIES, Rate
from diskbook_emulator.arm import access, ids
from diskbook_emulator.arm.errors import ArmError, throttled
from diskbook_emulator.arm.plane import ControlPlane

PREFIX = "Microsoft.Compute/"


# Requests about disks and images in 3 and in 30 minutes: counted in headers, never refused here.
WINDOWS: Mapping[str, tuple[int, int]] = {
    "CreateUpdateDisks": (3000, 25000),
    "DeleteDisks": (3000, 25000),
    "GetOperation": (50000, 400000),
    "LowCostGet": (4000, 32000),
}
_OPERATION = re.compile(r"/locations/[^/]+/operations/[^/]+$", re.IGNORECASE)
_MACHINE = re.compile(
    r"(?P<machine>^.*/virtualmachines/[^/]+)(?:/(?P<child>[^/]+)(?:/[^/]+)?)?$", re.IGNORECASE
)
_LIST = re.compile(r"/virtualmachines$", re.IGNORECASE)
_DELETING = {"deallocate"}  # by Microsoft's table it counts as a deletion
_ATTACHING = {"attachdetachdatadisks"}


@dataclass(frozen=True)
class Charge:
    """What one request is charged to: a policy, and the resource whose bucket it is ("" without one)."""

    group: str
    resource: str = ""


def charge(method: str, path: str) -> Charge | None:
    """Tell which policy a request falls under; None where no bucket is known for it."""
    if "/providers/microsoft.compute/" not in path.lower():
        return None
    if _OPERATION.search(path):
        return Charge("GetOperation", path.lower())
    if _LIST.search(path):
        return Charge("HighCostGet")
    match = _MACHINE.match(path)
    if match is None:
        return None
    return Charge(_machine_group(method, (match["child"] or "").lower()), match["machine"].lower())


def _machine_group(method: str, child: str) -> str:
    if method in ("GET", "HEAD"):
        return "LowCostGet"
    if child in _ATTACHING:
        return "AttachDetachVMDisks"
    if child in _DELETING or (method == "DELETE" and not child):
        return "DeleteVM"
    return "PutVM" if method == "PUT" and not child else "UpdateVM"


def window(method: str, path: str) -> str | None:
    """Name the windows that a compute request without buckets is counted in; None for other providers."""
    lower = path.lower()
    if "/providers/microsoft.compute/" not in lower:
        return None
    if "/diskoperations/" in lower:
        return "GetOperation"
    if method in ("GET", "HEAD"):
        return "LowCostGet"
    return "DeleteDisks" if method == "DELETE" else "CreateUpdateDisks"


class Bucket:
    """Tokens, full at first; whole minutes bring new ones."""

    def __init__(self, rate: Rate, minute_s: float, now: float) -> None:
        self.rate, self._minute_s, self._since = rate, minute_s, now
        self.tokens = rate.capacity

    def refill(self, now: float) -> None:
        """Add what the minutes since the last time have brought."""
        if self._minute_s <= 0:
            self.tokens = self.rate.capacity
            return
        minutes = int((now - self._since) / self._minute_s)
        self._since += minutes * self._minute_s
        self.tokens = min(self.rate.capacity, self.tokens + minutes * self.rate.refill)

    def wait_s(self, now: float) -> float:
        """Time until the next tokens, in seconds of the bucket's clock."""
        return self._since + self._minute_s - now


class Buckets:
    """All buckets of a control plane.

    - `time_scale`: length of a second of Azure's, in seconds of the clock; with 0 buckets are always full.
    - `share`: part of a policy's buckets that is in force (`faults.Faults.bucket_share`).
    """

    def __init__(
        self,
        time_scale: float,
        share: Callable[[str], float] = lambda group: 1.0,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._time_scale, self._share, self._now = time_scale, share, now
        self._lock = threading.Lock()
        self._buckets: dict[tuple[str, str, Rate], Bucket] = {}

    def take(self, charged: Charge) -> str:
        """Take a token for a request, and return the header that says how many are left.

        Raises ArmError: 429 when a bucket is empty, with the whole seconds until it is refilled.
        """
        now = self._now()
        with self._lock:
            buckets = {name: self._bucket(name, charged, rate, now) for name, rate in self._rates(charged)}
            for name, bucket in buckets.items():
                if bucket.tokens < 1:
                    raise self._refusal(name, bucket, now)
            for bucket in buckets.values():
                bucket.tokens -= 1
            return ",".join(f"{PREFIX}{name};{bucket.tokens}" for name, bucket in buckets.items())

    def _rates(self, charged: Charge) -> list[tuple[str, Rate]]:
        policy, part = POLICIES[charged.group], self._share(charged.group)
        rates = [(f"{charged.group}SubscriptionMaximum", policy.subscription.share(part))]
        if policy.resource is not None:
            rates.append((f"{charged.group}Resource", policy.resource.share(part)))
        return rates

    def _bucket(self, name: str, charged: Charge, rate: Rate, now: float) -> Bucket:
        resource = charged.resource if name.endswith("Resource") else ""
        key = (name, resource, rate)
        if key not in self._buckets:
            self._buckets[key] = Bucket(rate, MINUTE_S * self._time_scale, now)
        bucket = self._buckets[key]
        bucket.refill(now)
        return bucket

    def _refusal(self, name: str, bucket: Bucket, now: float) -> ArmError:
        # Shape of the 429 as documented for the older windows; with these buckets it was not read.
        seconds = int(bucket.wait_s(now) / self._time_scale) + 1
        return throttled(name, min(int(MINUTE_S), seconds), allowed=bucket.rate.capacity)


class Windows:
    """Counts requests in windows of 3 and 30 minutes, for the header that says how many are left."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[tuple[str, int], tuple[float, int]] = {}

    def header(self, group: str) -> str:
        """Count one request and return the header's value."""
        words = []
        for minutes, allowed in zip((3, 30), WINDOWS[group], strict=True):
            left = max(0, allowed - self._count(group, minutes))
            words.append(f"{PREFIX}{group}{minutes}Min;{left}")
        return ",".join(words)

    def _count(self, group: str, minutes: int) -> int:
        now = time.monotonic()
        with self._lock:
            since, count = self._counts.get((group, minutes), (now, 0))
            if now - since > minutes * MINUTE_S:
                since, count = now, 0
            self._counts[group, minutes] = (since, count + 1)
            return count + 1


OWN = "/diskbook/"
RETAIL = "/api/retail/prices"
STEPS = "/diskbook/steps"
REMAINING = "x-ms-ratelimit-remaining-resource"


class Gateway:
    """The outermost part of the app."""

    def __init__(self, app: ASGIApp, plane: ControlPlane) -> None:
        self._app = app
        self._plane = plane
        self._windows = Windows()
        self._buckets = Buckets(plane.settings.time_scale, plane.faults.bucket_share)

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
        charged = charge(method, path)
        if charged is None:
            group = window(method, path)
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
    return Response(
        json.dumps(error.body()), error.status, headers=error.headers, media_type="application/json"
    )
