"""Azurite, Microsoft's server of Azure storage for tests, and a proxy with faults in front of it.

`make test` installs it (lib/azurite.sh). Its account and key are the ones that all its installations have.
"""

from __future__ import annotations

import contextlib
import http.client
import re
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from diskbook.base import paths

PROGRAM = paths.ROOT / ".tools/azurite/node_modules/azurite/dist/src/blob/main.js"
ACCOUNT = "devstoreaccount1"
_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
_OPTIONS = ("--inMemoryPersistence", "--disableTelemetry", "--silent", "--skipApiVersionCheck")
VARIABLE = "AZURE_STORAGE_CONNECTION_STRING"


def connection_string(port: int) -> str:
    """What tells adlfs where the server is."""
    endpoint = f"http://127.0.0.1:{port}/{ACCOUNT}"
    return f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={_KEY};BlobEndpoint={endpoint};"


@contextlib.contextmanager
def running() -> Iterator[int]:
    """Run a server on a free port of loopback, with nothing in it; ends with the block."""
    if not PROGRAM.exists() or shutil.which("node") is None:
        pytest.skip("Azurite is not installed ('make azurite' does, with node and npm)")
    command = ["node", str(PROGRAM), "--blobHost", "127.0.0.1", "--blobPort", "0", *_OPTIONS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
        try:
            assert server.stdout is not None
            for line in server.stdout:
                if port := re.search(r"successfully listens on http://127\.0\.0\.1:(\d+)", line):
                    yield int(port[1])
                    return
            raise AssertionError(f"Azurite ended with {server.wait()}")
        finally:
            server.terminate()


@dataclass
class Request:
    """A request on its way to the server; a fault may look at it, and keep it from going on."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


Answer = tuple[int, dict[str, str], bytes]
Fault = Callable[["Request", Callable[[], Answer]], Answer | None]
"""Takes a request and what sends it on; returns the answer, or None: the connection is closed without one."""


@dataclass
class Proxy:
    """Stands between a client and the server; `fault` decides on each request."""

    server: int
    fault: Fault | None = None
    seen: list[str] = field(default_factory=list)
    port: int = 0

    def send_on(self, request: Request, length: int | None = None) -> Answer:
        """Send a request to the server, or its first bytes only."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server, timeout=20)
        if length is not None:
            head = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
            with socket.create_connection(("127.0.0.1", self.server)) as half:
                half.sendall(f"{request.method} {request.path} HTTP/1.1\r\n{head}\r\n".encode())
                half.sendall(request.body[:length])
                time.sleep(0.02)
            return 0, {}, b""
        connection.request(request.method, request.path, request.body, request.headers)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, dict(answer.getheaders()), content


def error(status: int, code: str) -> Answer:
    """An answer of Azure's that reports an error."""
    body = f'<?xml version="1.0"?><Error><Code>{code}</Code><Message>{code}</Message></Error>'.encode()
    return status, {"x-ms-error-code": code, "Content-Type": "application/xml"}, body


@contextlib.contextmanager
def proxy(server: int) -> Iterator[Proxy]:
    """Run a proxy on a free port of loopback; ends with the block."""
    between = Proxy(server)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _handle(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            request = Request(self.command, self.path, dict(self.headers.items()), body)
            between.seen.append(f"{request.method} {request.path}")
            send_on = lambda: between.send_on(request)  # noqa: E731
            answer = between.fault(request, send_on) if between.fault else send_on()
            if answer is None:
                self.close_connection = True
                return
            status, headers, content = answer
            self.send_response_only(status)
            for name, value in headers.items():
                if name.lower() not in ("content-length", "transfer-encoding", "connection", "keep-alive"):
                    self.send_header(name, value)
            self.send_header("Content-Length", headers.get("content-length", str(len(content))))
            self.end_headers()
            with contextlib.suppress(OSError):
                self.wfile.write(content)

        do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = _handle

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """A client that went away is part of a test."""

    with Server(("127.0.0.1", 0), Handler) as listening:
        between.port = listening.server_address[1]
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield between
        finally:
            listening.shutdown()
