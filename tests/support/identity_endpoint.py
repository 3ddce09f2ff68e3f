"""A managed identity's endpoint on loopback, by which the real azure-identity signs in."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from diskbook.cloud.azure import signin

HEADER = "planted-identity-header"
_VARIABLES = (
    "AZURE_CLIENT_ID",
    "AZURE_CLIENT_SECRET",
    "AZURE_TENANT_ID",
    "AZURE_SUBSCRIPTION_ID",
    "AZURE_CLIENT_CERTIFICATE_PATH",
    "AZURE_FEDERATED_TOKEN_FILE",
    "AZURE_SDK_CLOUD_CONF",
    "AZURE_TOKEN_CREDENTIALS",
    "AZURE_USERNAME",
    "DISKBOOK_SSH_SOURCE",
    "IDENTITY_ENDPOINT",
    "IDENTITY_HEADER",
    "MSI_ENDPOINT",
)


class Endpoint:
    """What it hands out, and what it was asked for."""

    def __init__(self, token: str, lasts_s: float) -> None:
        self.token = token
        self.lasts_s = lasts_s
        self.asked: list[str] = []
        self.url = ""


@contextmanager
def serve(token: str, lasts_s: float = 3600) -> Iterator[Endpoint]:
    """Serve `/msi/token` for the length of a with block."""
    endpoint = Endpoint(token, lasts_s)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.headers.get("X-IDENTITY-HEADER") != HEADER:
                self.send_error(401)
                return
            endpoint.asked.append(parse_qs(urlsplit(self.path).query)["resource"][0])
            body = {
                "access_token": endpoint.token,
                "expires_on": str(int(time.time() + endpoint.lasts_s)),
                "resource": endpoint.asked[-1],
                "token_type": "Bearer",
            }
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, format: str, *arguments: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.83.0.2", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    endpoint.url = f"http://127.83.0.2:{server.server_address[1]}/msi/token"
    try:
        yield endpoint
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


def forget(patch: pytest.MonkeyPatch) -> None:
    """Take away whatever this machine could sign in with, and the credential of this process."""
    for name in _VARIABLES:
        patch.delenv(name, raising=False)
    signin.credential.cache_clear()


def use(patch: pytest.MonkeyPatch, endpoint: Endpoint) -> None:
    """Have azure-identity sign in there."""
    forget(patch)
    patch.setenv("IDENTITY_ENDPOINT", endpoint.url)
    patch.setenv("IDENTITY_HEADER", HEADER)
    patch.setenv("AZURE_TOKEN_CREDENTIALS", "ManagedIdentityCredential")
