"""Azurite under the names of Azure's storage accounts, for clients that take no other address.

Names are resolved to loopback, and a throw-away authority is trusted, in this process alone.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from diskbook_emulator import server
from support import azurite

HOST = f"{azurite.ACCOUNT}.blob.core.windows.net"


@contextlib.contextmanager
def served(folder: Path) -> Iterator[None]:
    """Serve https://ACCOUNT.blob.core.windows.net from an empty Azurite, for clients in this process."""
    authority, certificate, key = server.make_ca_and_cert(folder, HOST)
    resolve = socket.getaddrinfo
    with azurite.running((certificate, key)) as port, pytest.MonkeyPatch.context() as patch:

        def resolve_here(host: Any, *rest: Any, **more: Any) -> Any:
            name = host.decode() if isinstance(host, bytes) else host
            assert name in (HOST, "127.0.0.1", "localhost"), f"{name} is not of this machine"
            if name != HOST:
                return resolve(host, *rest, **more)
            return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("127.0.0.1", port))]

        patch.setattr(socket, "getaddrinfo", resolve_here)
        patch.setenv("REQUESTS_CA_BUNDLE", str(authority))
        patch.setenv("NO_PROXY", "*")
        yield


def shared_access() -> str:
    """A signature (SAS) of the account, which lets its bearer read and write."""
    from azure.storage.blob import AccountSasPermissions, ResourceTypes, generate_account_sas

    return generate_account_sas(
        azurite.ACCOUNT,
        azurite.KEY,
        ResourceTypes(container=True, object=True),
        AccountSasPermissions(read=True, write=True, create=True, list=True),
        datetime.now(UTC) + timedelta(hours=1),
    )
