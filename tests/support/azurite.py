"""Azurite for tests: skipped where it is not installed. The server itself is in `checks/azurite.py`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from checks import azurite
from checks.azurite import ACCOUNT, KEY, VARIABLE, connection_string

__all__ = ["ACCOUNT", "KEY", "VARIABLE", "connection_string", "running"]


@contextlib.contextmanager
def running(certificate: tuple[Path, Path] | None = None) -> Iterator[int]:
    """Run a server with nothing in it; gives its port."""
    if not azurite.is_installed():
        pytest.skip("Azurite is not installed ('make azurite' does, with node and npm)")
    with azurite.running(certificate) as server:
        yield server.port
