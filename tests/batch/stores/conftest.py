"""A server for the tests of a module, and stores on it or on this machine's disk."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from diskbook.batch.stores import address
from diskbook.batch.stores.address import Address
from diskbook.facts import paths
from support import azurite

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def server() -> Iterator[int]:
    """Port of an Azurite with an empty container `runs`."""
    adlfs = pytest.importorskip("adlfs", reason="the extra 'cluster' is not installed ('make azurite' does)")
    with azurite.running() as port:
        adlfs.AzureBlobFileSystem(connection_string=azurite.connection_string(port)).mkdir("runs")
        yield port


@pytest.fixture(params=["file", "abfs"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Address:
    """An empty store, of each kind that is tested."""
    monkeypatch.setattr(paths, "CACHE", tmp_path / "cache")
    monkeypatch.setenv("DISKBOOK_RUNS", str(tmp_path / "runs"))
    if request.param == "file":
        return address.parse(f"file://{tmp_path}/store")
    server = request.getfixturevalue("server")
    monkeypatch.setenv(azurite.VARIABLE, azurite.connection_string(server))
    return address.parse(f"abfs://runs/lab{next(_numbers)}")
