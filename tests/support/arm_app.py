"""The emulated control plane called in its own process, without a socket: request in, status and body out."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import ExitStack
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from checks.azure_requests import Request
from diskbook.facts.arm import DELAYS_S
from diskbook_emulator.arm import Settings, create_app
from support.arm_plane import SUBSCRIPTION, TOKEN, RecordingBackend, held_operations
from support.emulated import soon

PROVIDERS = {
    "disks": "Microsoft.Compute",
    "virtualMachines": "Microsoft.Compute",
    "virtualNetworks": "Microsoft.Network",
    "networkSecurityGroups": "Microsoft.Network",
    "publicIPAddresses": "Microsoft.Network",
    "networkInterfaces": "Microsoft.Network",
}
QUOTAS = {"cores": 100_000, "standardDSv2Family": 4}
_REFERENCE = re.compile(r'"<([^>]+)>"')


class Plane:
    """A control plane of its own; `begin` makes another resource group, where requests then go.

    An operation that is not waited for is in progress until another one is.
    """

    def __init__(self, folder: Path) -> None:
        delays = dict.fromkeys(DELAYS_S, 0.0)
        settings = Settings(SUBSCRIPTION, "a-tenant", TOKEN, delays_s=delays, quotas=QUOTAS)
        self.app = create_app(settings, RecordingBackend(), folder / "state.sqlite")
        self.group = ""
        self._held = ExitStack()
        self._goes_on = self._held.enter_context(held_operations())

    def begin(self, name: str) -> None:
        self._goes_on.set()
        self.group = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{name}"
        status, answer = self.call("PUT", self.group, "api-version=2025-04-01", {"location": "westeurope"})
        assert status == 201, answer

    def set_day(self, day: date) -> None:
        ahead_s = max(
            0.0, (datetime.combine(day, datetime.min.time(), UTC) - datetime.now(UTC)).total_seconds()
        )
        status, _ = self.call("PUT", "/diskbook/clock", "", {"ahead_s": ahead_s})
        assert status == 200

    def send(self, request: Request) -> tuple[int, Any]:
        """Send a request of the table and wait for its operation; return status and body of the answer."""
        body = json.loads(
            _REFERENCE.sub(lambda found: json.dumps(self._id(found[1])), json.dumps(request.body))
        )
        path = self._id(request.path) if request.path else self.group
        if not request.waits:
            self._goes_on.clear()
        answer = self.call(request.method, path, request.whole_query, body)
        if answer[0] < 300 and request.waits:
            self._goes_on.set()
            assert soon(lambda: not self.app.state.plane.operations.unfinished())
        return answer

    def _id(self, path: str) -> str:
        return f"{self.group}/providers/{PROVIDERS[path.partition('/')[0]]}/{path}"

    def call(self, method: str, path: str, query: str, body: Any) -> tuple[int, Any]:
        """One request, as an HTTP server would hand it on."""
        content = json.dumps(body).encode() if method not in ("GET", "DELETE") else b""
        scope = {
            "type": "http", "method": method, "path": path, "raw_path": path.encode(), "root_path": "",
            "query_string": query.encode(), "scheme": "https", "server": ("rules", 443),
            "http_version": "1.1",
            "headers": [(b"host", b"rules"), (b"authorization", f"Bearer {TOKEN}".encode())],
        }  # fmt: skip
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": content, "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        asyncio.run(self.app(scope, receive, send))  # type: ignore[arg-type]
        answer = b"".join(message.get("body", b"") for message in sent)
        return sent[0]["status"], json.loads(answer) if answer else None

    def close(self) -> None:
        self._held.close()
        self.app.state.plane.close()
