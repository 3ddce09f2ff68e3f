"""Where a batch runs: what goes together, and a cluster of this machine's processes."""

from __future__ import annotations

import builtins
import io
import sys
from pathlib import Path
from typing import Any

import pytest

from diskbook.batch import command, location as places, notebook, price as prices, run_lookup
from diskbook.batch.dask_cluster import Tls
from diskbook.batch.dask_engine import DaskEngine
from diskbook.batch.location import Place
from diskbook.batch.matrix import Matrix
from diskbook.batch.run_lookup import Here, Stored
from diskbook.batch.status import Standing, State
from diskbook.facts.errors import UsageError
from support.batches import items, priced


def test_what_does_not_go_together_is_said_before_anything_is_asked() -> None:
    for place, said in (
        (Place(scheduler="tls://h:1"), "go with --engine dask"),
        (Place("dask", tls=Tls("ca.pem")), "certificates are for a scheduler"),
        (Place("dask", "tls://h:1"), "name one with --store"),
        (Place("dask", "tls://h:1", "ftp://x/y"), "not a kind of store"),
    ):
        with pytest.raises(UsageError, match=said):
            place.check()


def test_the_command_line_overrides_the_file_and_an_open_scheduler_is_warned_of(tmp_path: Path) -> None:
    matrix = Matrix("m", (), engine="dask", scheduler="tcp://10.0.0.4:8786", store="file:///srv/lab")
    assert places.of(matrix) == Place("dask", "tcp://10.0.0.4:8786", "file:///srv/lab")
    assert "has no TLS" in places.of(matrix).warning
    asked = places.of(matrix, scheduler="tls://10.0.0.4:8786", store="file:///srv/other")
    assert asked.warning == "" and isinstance(asked.shelf(tmp_path), Stored)
    assert Place("dask", "tcp://127.0.0.1:1", "file:///x").warning == ""
    assert isinstance(Place("local", store="file:///x").shelf(tmp_path), Here)


def test_without_the_extra_the_engine_dask_is_refused_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    imported = builtins.__import__

    def without(name: str, *words: Any, **more: Any) -> Any:
        if name == "distributed":
            raise ImportError(name)
        return imported(name, *words, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UsageError, match=r"are not installed: pip install -e '\.\[cluster\]'"):
        with places.opened(Place("dask"), Matrix("m", ()), tmp_path):
            pass


@pytest.mark.emulator
def test_a_cluster_of_this_machine_runs_a_batch_and_ends_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed", reason="the extra 'cluster' is not installed ('make azurite' does)")
    monkeypatch.setenv("DISKBOOK_RUNS", str(tmp_path))
    program = f"import json, sys; open({str(tmp_path)!r} + '/' + json.loads(sys.argv[1])['name'] + '.x', 'w')"
    monkeypatch.setattr(DaskEngine, "program", ("-c", program))
    monkeypatch.setattr(prices, "pricing", lambda *words, **more: priced())

    def look(self: Here, item: Any) -> Standing:
        is_done = (tmp_path / f"{item.name}.x").exists()
        return Standing(State.FINISHED if is_done else State.NEW, 1)

    monkeypatch.setattr(run_lookup.Here, "look", look)
    monkeypatch.setattr(notebook, "make", lambda folder: "")
    said = io.StringIO()
    outcome = command.run(Matrix("here", tuple(items(3)), jobs=1, engine="dask"), said)
    assert (outcome["finished"], outcome["exit_code"]) == (3, 0)
    assert said.getvalue().count("finished") == 3 and "at most 1 at once" in said.getvalue()
    assert "distributed" in sys.modules
