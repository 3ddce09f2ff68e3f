"""How often a long-running operation of Azure is polled for its end.

Azure names a time in some answers to a poll (50 s on a new machine's first one, 10 s for a network) and none
in others, where the SDK waits 30 s. A run would wait for the polling more than for Azure. So polls follow the
time an operation has taken so far: a second at first (two where Azure expects a minute), a twentieth of that
time later on. An end is noticed within one or two seconds, or 5 % of the operation's time.

The price is requests: 51 polls in the 168 s of a zonal machine, where the SDK would send 6. Azure Compute
has a bucket of 45 polls for each operation, and adds 15 a minute (Microsoft, "Compute throttling limits",
Get Operation; azure-cli's recordings of 2026 show the bucket to be an operation's, GetOperationResource).
This pace never empties it: 44 polls in the first minute at most, 15 in the second, then fewer; a test holds
that. What a throttled answer (429) asks for is the retry policy's matter, and is obeyed.
"""

from __future__ import annotations

import re
import threading
from typing import Any
from urllib.parse import urlsplit

from azure.core.pipeline.policies import SansIOHTTPPolicy

SHARE = 0.05  # of the time so far
LEAST_S = 1

_POLL = re.compile(r"/(locations/[^/]+/\w*operations|operation(results|statuses))/[^/]+$", re.IGNORECASE)


def poll_interval_s(so_far_s: float, asked_s: float = 0.0) -> int:
    """Whole seconds to the next poll of an operation.

    Parameters
    ----------
    so_far_s
        How long it has been waited for.
    asked_s
        The longest time between polls that Azure has named for it.
    """
    return max(LEAST_S, round(max(so_far_s, asked_s) * SHARE))


class PollingPolicy(SansIOHTTPPolicy[Any, Any]):
    """Puts our own Retry-After into answers to polls, which is what the SDK's poller goes by."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, tuple[float, float]] = {}  # waited so far, and asked for, by operation

    def on_response(self, request: Any, response: Any) -> None:
        """Set the time of the next poll."""
        sent, answer = request.http_request, response.http_response
        path = urlsplit(sent.url).path
        if sent.method != "GET" or answer.status_code >= 400 or not _POLL.search(path):
            return
        named = answer.headers.get("Retry-After", "")
        with self._lock:
            so_far_s, asked_s = self._known.get(path, (0.0, 0.0))
            asked_s = max(asked_s, float(named) if named.isdigit() else 0.0)
            seconds = poll_interval_s(so_far_s, asked_s)
            self._known[path] = (so_far_s + seconds, asked_s)
        answer.headers["Retry-After"] = str(seconds)
