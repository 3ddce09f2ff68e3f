"""The table of clouds: those of diskbook, and those that other packages add."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

from diskbook.cloud import kinds
from diskbook.cloud.kinds import CloudKind
from diskbook.design.vocabulary import Provenance
from diskbook.facts.errors import DiskbookError, UsageError
from diskbook.measure.runs import stages
from diskbook.results import run as runs
from support.manifests import MINIMAL


class _Stack(CloudKind):
    name = "stack"
    provenance = Provenance.EMULATED


STACK = _Stack()


@pytest.fixture
def entry_points(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Two packages that bring a cloud; one of them lacks what it imports."""
    monkeypatch.setenv("DISKBOOK_RUNS", str(tmp_path))
    values = {"stack": "cloud_of_a_stranger:STACK", "broken": "no_such_package.cloud:CLOUD"}
    points = [metadata.EntryPoint(name, value, kinds.GROUP) for name, value in values.items()]
    monkeypatch.setattr(kinds.metadata, "entry_points", lambda group: points)
    monkeypatch.setattr("diskbook.cloud.kinds.imported", _imported)
    kinds._entry_points.cache_clear()
    yield
    kinds._entry_points.cache_clear()


_real = kinds.imported


def _imported(where: str, what: str) -> object:
    return STACK if where.startswith("cloud_of_a_stranger") else _real(where, what)


def test_each_cloud_of_the_table_has_the_name_it_is_listed_by() -> None:
    assert {kind.name: kind.provenance for kind in kinds.every()} == {
        "azure": "azure",
        "emulator": "emulated",
        "inventory": "inventory",
    }


def test_a_stranger_s_cloud_is_used_by_a_run(entry_points: None) -> None:
    run = stages.begin("one", "zone-disks", "stack")
    assert kinds.names()[-2:] == ["stack", "broken"] and kinds.of(run) is STACK
    assert (run.manifest["cloud"], run.manifest["provenance"]) == ("stack", "emulated")
    assert (run.manifest["stack"], run.manifest["emulator"]) == ({}, None)
    stages.teardown(run)  # nothing was made


def test_a_cloud_without_its_package_costs_one_sentence(entry_points: None) -> None:
    with pytest.raises(UsageError, match="the cloud broken needs no_such_package, which is not installed"):
        kinds.get("broken")
    with pytest.raises(UsageError, match="there is no cloud 'stak'; did you mean 'stack'"):
        kinds.get("stak")


def test_a_run_on_a_cloud_that_is_not_installed_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISKBOOK_RUNS", str(tmp_path))
    run = runs.create("one")
    run.write_manifest({**MINIMAL, "run": "one", "cloud": "stack"})
    with pytest.raises(DiskbookError, match="uses the cloud stack: install the package that brings it"):
        kinds.of(run)
