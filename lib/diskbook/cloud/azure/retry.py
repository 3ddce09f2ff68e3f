"""How the clients wait for Azure: what they retry, for how long, and what the user sees of it.

The SDK's own retry policy does the work, with two changes. It has bounds, because otherwise it sleeps for
whatever `Retry-After` says. It also retries a POST that was throttled or cut off, if repeating it is safe.
"""

import contextlib
import json
import math
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from azure.core.exceptions import AzureError, ServiceRequestError, ServiceResponseError
from azure.core.pipeline.policies import RetryPolicy
from azure.core.pipeline.transport import RequestsTransport

from diskbook.facts.errors import DiskbookError
from diskbook.facts.units import duration

CAP_S = 180.0
"""Longest wait that is slept through. Azure Compute refills its buckets once a minute, and counts requests
about disks in windows of 3 and of 30 minutes; a run outwaits all but the last."""
TELL_S = 4.0
"""Waits longer than this are told."""
CONNECTIONS = 64
"""Connections kept open to Azure at a time; the SDK's 10 would cost a new handshake at most polls."""
POLL_S = 5.0
"""Between two polls of an operation where Azure names no time; the SDK's own default is 30 s."""
# Without Retry-After the waits are 0, 1.6, 3.2, 6.4 ... s: about 50 s without a connection, 11 s of 5xx.
TRIES = {
    "retry_total": 10,
    "retry_connect": 6,
    "retry_read": 4,
    "retry_status": 4,
    "retry_backoff_factor": 0.8,
    "retry_backoff_max": 30,
}
# These say what is to be, not what is to be done: a second one finds it done. (For attachDetachDataDisks by
# the REST specification; its answers, but no repeated one, are recorded.)
_REPEATABLE_POST = re.compile(r"/(attachDetachDataDisks|start|restart|powerOff|deallocate)$", re.IGNORECASE)
_ALL_METHODS = frozenset({"HEAD", "GET", "PUT", "DELETE", "OPTIONS", "TRACE", "POST", "PATCH"})
_POLLED = {"operations", "diskoperations", "operationresults"}

Tell = Callable[[str], None]


class RequestCount:
    """What some clients have sent and waited for, added up; safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[str] = Counter()
        self.waited_s = 0.0  # as Azure or the policy asked for, unscaled
        self.saved_s = 0.0  # of it, what the emulator's time scale has saved

    @property
    def requests(self) -> Counter[str]:
        """Requests on the wire so far, retries and polls included, by method and kind: "PUT disks"."""
        with self._lock:
            return Counter(self._requests)

    def count_request(self, method: str, url: str) -> None:
        """Count one request."""
        with self._lock:
            self._requests[f"{method} {kind_of(url)}"] += 1

    def count_wait(self, duration_s: float, saved_s: float) -> None:
        """Count one wait."""
        with self._lock:
            self.waited_s += duration_s
            self.saved_s += saved_s


Exchange = Callable[[Any, Callable[[], Any]], Any]


class ScaledTransport(RequestsTransport):
    """The SDK's transport, which counts requests; retries and polls sleep through it, at a scale of time.

    - `exchange`: sends each request, retries and polls included, by the function that it is given.
    """

    def __init__(
        self, scale: float, request_count: RequestCount, exchange: Exchange | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self._scale = scale
        self._request_count = request_count
        self._exchange = exchange or (lambda request, send: send())
        self.open()  # the SDK opens it at the first request, which several threads may send at once

    def _init_session(self, session: Any) -> None:
        super()._init_session(session)
        for adapter in session.adapters.values():  # a connection for each operation that is under way
            adapter.init_poolmanager(CONNECTIONS, CONNECTIONS)

    def sleep(self, duration: float) -> None:
        """Wait for the scaled duration."""
        self._request_count.count_wait(duration, duration * (1 - self._scale))
        super().sleep(duration * self._scale)

    def send(self, request: Any, **kwargs: Any) -> Any:
        """Send one request."""
        self._request_count.count_request(request.method, request.url)
        return self._exchange(request, lambda: super(ScaledTransport, self).send(request, **kwargs))


class BoundedRetryPolicy(RetryPolicy):
    """The SDK's retry policy within bounds; `who` is "Azure" or "Azure (emulated)" in what is told."""

    def __init__(self, who: str, tell: Tell) -> None:
        super().__init__(**TRIES)
        self._who = who
        self._tell = tell
        self._lock = threading.Lock()
        self._waiting: Counter[str] = Counter()  # threads by what they wait for

    def send(self, request: Any) -> Any:
        """Send a request; a POST that may be repeated is tried again like a PUT."""
        sent = request.http_request
        if sent.method == "POST" and _REPEATABLE_POST.search(urlsplit(sent.url).path):
            request.context.options.setdefault("retry_on_methods", _ALL_METHODS)
        return super().send(request)

    def is_retry(self, settings: dict[str, Any], response: Any) -> bool:
        """Whether to try again after an answer; DiskbookError when Azure asks to wait longer than the cap."""
        answer = response.http_response
        wait_s = (self.get_retry_after(response) or 0.0) if answer.status_code >= 400 else 0.0
        if wait_s > CAP_S:
            raise DiskbookError(self._too_long_text(wait_s, answer))
        # A throttled request was not carried out, so any method may be repeated.
        if answer.status_code == 429 or (answer.status_code == 409 and _was_cut(settings)):
            return bool(settings["total"] > 0)
        return bool(super().is_retry(settings, response))

    def get_retry_after(self, response: Any) -> float | None:
        """Seconds that an answer asks to wait; None where it names none that can be read."""
        try:
            return super().get_retry_after(response)
        except ValueError:
            return None

    def sleep(self, settings: dict[str, Any], transport: Any, response: Any = None) -> None:
        """Wait before the next try, and tell when that takes a while."""
        asked_s = self.get_retry_after(response) if response else None
        wait_s = asked_s or self.get_backoff_time(settings)
        line = ""
        if wait_s > TELL_S:
            line = self._wait_text(wait_s, bool(asked_s), settings["history"][-1], response)
        with self._announced_once(line):
            super().sleep(settings, transport, response=response)

    @contextlib.contextmanager
    def _announced_once(self, line: str) -> Iterator[None]:
        """Tell a line, unless another thread waits for the same: what is throttled is often so for many."""
        cause = re.sub(r"\d+ s\b", "", line)
        with self._lock:
            self._waiting[cause] += 1
            first = self._waiting[cause] == 1
        try:
            if line and first:
                self._tell(line)
            yield
        finally:
            with self._lock:
                self._waiting[cause] -= 1

    def _wait_text(self, wait_s: float, asked: bool, last: Any, response: Any) -> str:
        if asked:
            return f"{self._who} asks to wait {wait_s:.0f} s ({reason(response.http_response)})"
        if isinstance(last.error, ServiceRequestError | ServiceResponseError):
            what = "cannot be reached" if isinstance(last.error, ServiceRequestError) else "cut us off"
            return f"{self._who} {what}; trying again in {wait_s:.0f} s"
        return f"{self._who} answers {last.http_response.status_code}; trying again in {wait_s:.0f} s"

    def _too_long_text(self, wait_s: float, answer: Any) -> str:
        until = datetime.now(UTC) + timedelta(seconds=wait_s)
        wait = duration(wait_s, 120, math.inf)
        return (
            f"{self._who} asks to wait {wait} ({reason(answer)}), longer than the {CAP_S:.0f} s "
            f"that a run waits by itself; what is finished is kept: go on after {until:%H:%M} UTC"
        )


def _was_cut(settings: dict[str, Any]) -> bool:
    """Whether the request before was cut off: a conflict is then most likely with that one, at work."""
    return any(isinstance(row.error, ServiceResponseError) for row in settings["history"])


def reason(answer: Any) -> str:
    """Why Azure asks to wait: "throttled: CreateUpdateDisks3Min", or status and code."""
    try:
        answer.read()  # operations are asked for as streams, of which nothing is read yet
        error = json.loads(answer.text())["error"]
    except (AzureError, ValueError, KeyError, TypeError):
        error = {}
    if answer.status_code == 429:
        groups = [row.get("target") for row in error.get("details") or [] if row.get("target")]
        group = groups[0] if groups else _exhausted(answer.headers)
        return f"throttled: {group}" if group else "throttled"
    return f"{answer.status_code} {error.get('code', '')}".strip()


def _exhausted(headers: Any) -> str | None:
    """The limit that is used up, from `Microsoft.Compute/PutVM3Min;0,Microsoft.Compute/PutVM30Min;900`."""
    for entry in headers.get("x-ms-ratelimit-remaining-resource", "").split(","):
        name, _, left = entry.strip().rpartition(";")
        if left == "0":
            return str(name.rpartition("/")[2])
    return None


def kind_of(url: str) -> str:
    """Kind of resource that a URL is about: "disks", "virtualMachines/restart", "operations" (polls)."""
    parts = urlsplit(url).path.strip("/").split("/")
    lower = [part.lower() for part in parts]
    if "providers" in lower:
        after = len(lower) - lower[::-1].index("providers") + 1
        kinds = [kind for kind in parts[after::2] if kind.lower() != "locations"] or ["providers"]
    else:
        kinds = parts[::2][-1:]
    if kinds[-1].lower() in _POLLED:
        return "operations"
    return "/".join("resourceGroups" if kind.lower() == "resourcegroups" else kind for kind in kinds)
