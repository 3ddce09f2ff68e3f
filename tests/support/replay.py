"""Exchanges replayed at the transport: what any client sends is answered from a file, in its order.

A file has a sentence about it, where its shapes come from, and `exchanges`: `method`, `path` (a regular
expression for path and query), `status`, `headers` and `body` of each. Nothing of the clients is changed.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.client import responses
from pathlib import Path
from typing import Any

import pytest
import requests
import urllib3
from requests.adapters import HTTPAdapter

RECORDED = Path(__file__).parent.parent / "cloud" / "azure" / "recorded"


class Replay(HTTPAdapter):
    """Answers from a list of exchanges; `sent` are the requests so far, as method and URL."""

    def __init__(self, exchanges: Sequence[dict[str, Any]]) -> None:
        super().__init__()
        self.left = list(exchanges)
        self.sent: list[str] = []
        self.bodies: list[Any] = []

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:  # type: ignore[override]
        """Answer with the next exchange, which must be about what is asked for."""
        line = f"{request.method} {request.url}"
        assert self.left, f"nothing is left to answer {line}"
        exchange = self.left.pop(0)
        assert request.method == exchange["method"], f"{line}: recorded was {exchange['method']}"
        assert re.search(exchange["path"], request.path_url), f"{line}: recorded was {exchange['path']}"
        self.sent.append(line)
        self.bodies.append(json.loads(request.body) if request.body else None)
        body = exchange.get("body")
        content = b"" if body is None else json.dumps(body).encode()
        headers = {"Content-Length": str(len(content)), **exchange.get("headers", {})}
        if content:
            headers.setdefault("Content-Type", "application/json; charset=utf-8")
        raw = urllib3.HTTPResponse(
            io.BytesIO(content),
            headers=headers,
            status=exchange["status"],
            reason=responses.get(exchange["status"]),
            preload_content=False,
        )
        return self.build_response(request, raw)


@contextmanager
def replayed(exchanges: Sequence[dict[str, Any]]) -> Iterator[Replay]:
    """Answer all requests of this process from exchanges; all of them must have been asked for in the end."""
    adapter = Replay(exchanges)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(requests.Session, "get_adapter", lambda session, url: adapter)
        yield adapter
    assert not adapter.left, f"not asked for: {[exchange['path'] for exchange in adapter.left]}"


def recorded(name: str) -> list[dict[str, Any]]:
    """Exchanges of a file of `tests/cloud/azure/recorded`."""
    exchanges: list[dict[str, Any]] = json.loads((RECORDED / f"{name}.json").read_text())["exchanges"]
    return exchanges
