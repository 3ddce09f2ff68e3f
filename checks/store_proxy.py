"""A proxy between a client and a server of object storage, and the faults that it plays."""

import contextlib
import http.client
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_HOP_BY_HOP = ("content-length", "transfer-encoding", "connection", "keep-alive")


@dataclass
class Request:
    """A request on its way to the server; a fault may look at it, and keep it from going on."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


Answer = tuple[int, dict[str, str], bytes]
Send = Callable[[], Answer]
Fault = Callable[[Request, Send], Answer | None]
"""Takes a request and what sends it on; returns the answer, or None: the connection is closed without one."""


@dataclass
class Proxy:
    """Stands between a client and the server; `fault` decides on each request."""

    server: int
    fault: Fault | None = None
    seen: list[str] = field(default_factory=list)
    struck: int = 0
    port: int = 0

    def answer(self, request: Request) -> Answer | None:
        """Answer a request, as the fault has it; None closes the connection."""
        self.seen.append(f"{request.method} {request.path}")
        fault = self.fault
        return fault(request, lambda: self.send_on(request)) if fault else self.send_on(request)

    def send_on(self, request: Request) -> Answer:
        """Send a request to the server."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server, timeout=20)
        with contextlib.closing(connection):
            connection.request(request.method, request.path, request.body, request.headers)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()

    def send_half(self, request: Request) -> None:
        """Send the server half of a request's body, and hang up."""
        head = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
        with socket.create_connection(("127.0.0.1", self.server)) as half:
            half.sendall(f"{request.method} {request.path} HTTP/1.1\r\n{head}\r\n".encode())
            half.sendall(request.body[: len(request.body) // 2])
            time.sleep(0.02)

    def first(self, fault: Fault, *methods: str, part: str = "") -> Fault:
        """A fault of the first request of each kind for each object; all others go well.

        - `methods`: the kinds; all where none is named.
        - `part`: what the object's name has in it.
        """
        known: set[tuple[str, str]] = set()

        def of_some(request: Request, send_on: Send) -> Answer | None:
            key = (request.method, request.path)
            spared = key in known or part not in request.path or (methods and request.method not in methods)
            known.add(key)
            return send_on() if spared else self.strike(fault)(request, send_on)

        return of_some

    def strike(self, fault: Fault) -> Fault:
        """The same fault, counted."""

        def counted(request: Request, send_on: Send) -> Answer | None:
            self.struck += 1
            return fault(request, send_on)

        return counted


def error(status: int, code: str) -> Answer:
    """An answer of Azure's that reports an error."""
    body = f'<?xml version="1.0"?><Error><Code>{code}</Code><Message>{code}</Message></Error>'.encode()
    return status, {"x-ms-error-code": code, "Content-Type": "application/xml"}, body


# --- faults


def closed(_: Request, send_on: Send) -> None:
    """The connection is closed, and the server has seen nothing."""


def busy(request: Request, _: Send) -> Answer:
    """Answer that the server is busy, broken or throttling."""
    answers = ((503, "ServerBusy"), (500, "InternalError"), (429, "TooManyRequests"))
    return error(*answers[len(request.path) % 3])


def in_the_way(_: Request, send_on: Send) -> Answer:
    """409, and there is nothing of that name."""
    return error(409, "BlobAlreadyExists")


def lost_answer(_: Request, send_on: Send) -> None:
    """The server has done it, and nobody is told."""
    send_on()


def slow(seconds: float) -> Fault:
    """An answer that takes its time."""

    def late(_: Request, send_on: Send) -> Answer:
        time.sleep(seconds)
        return send_on()

    return late


def short_answer(_: Request, send_on: Send) -> Answer:
    """Half of what the server says."""
    status, headers, content = send_on()
    return status, headers | {"content-length": str(len(content) // 2)}, content[: len(content) // 2]


def damaged_answer(_: Request, send_on: Send) -> Answer:
    """A byte that the way has changed."""
    status, headers, content = send_on()
    return status, headers, content[:-1] + b"?"


FAULTS: Mapping[str, Callable[[Proxy], Fault]] = {
    "503, 500 or 429": lambda proxy: proxy.first(busy),
    "409 and nothing there": lambda proxy: proxy.first(in_the_way, "PUT"),
    "cut upload": lambda proxy: proxy.first(lambda request, _: proxy.send_half(request), "PUT"),
    "closed at once": lambda proxy: proxy.first(closed),
    "lost answer": lambda proxy: proxy.first(lost_answer, "PUT"),
    "slow": lambda proxy: proxy.first(slow(0.03)),
    "short answer": lambda proxy: proxy.first(short_answer, "GET"),
    "damaged on the way": lambda proxy: proxy.first(damaged_answer, "GET", part="/files/"),
}
"""What passes by itself, by name."""


# --- the server that plays them


@contextlib.contextmanager
def proxy(server: int) -> Iterator[Proxy]:
    """Run a proxy on a free port of loopback; ends with the block."""
    between = Proxy(server)

    class Handler(_Handler):
        proxy = between

    with _Server(("127.0.0.1", 0), Handler) as listening:
        between.port = listening.server_address[1]
        serve = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        serve.start()
        try:
            yield between
        finally:
            listening.shutdown()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is part of a test."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    proxy: Proxy

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        answer = self.proxy.answer(Request(self.command, self.path, dict(self.headers.items()), body))
        if answer is None:
            self.close_connection = True
            return
        status, headers, content = answer
        self.send_response_only(status)
        for name, value in headers.items():
            if name.lower() not in _HOP_BY_HOP:
                self.send_header(name, value)
        self.send_header("Content-Length", headers.get("content-length", str(len(content))))
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(content)

    do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = _handle

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""
