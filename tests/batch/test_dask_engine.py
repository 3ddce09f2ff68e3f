"""Runs on a real Dask cluster: what starts where, how it ends, and what becomes of who gets lost.

One cluster speaks TLS. Workers come and go on the other, since with Python 3.13.5 a TLS connection that
breaks can break others of its thread (python/cpython#148594).

The runs are stand-in programs; whole runs by this engine are in `tests/whole/test_batch.py`.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
import trustme

from diskbook import __version__
from diskbook.batch import dask_cluster, dask_worker, loop
from diskbook.batch.batch_run import Item
from diskbook.batch.dask_cluster import Tls
from diskbook.batch.dask_engine import DaskEngine, DaskTask
from diskbook.batch.engine import Ending, EngineLostError
from diskbook.batch.loop import Batch
from diskbook.batch.status import Standing, State
from diskbook.facts import client
from diskbook.facts.errors import DiskbookError, UsageError
from diskbook_emulator.processes import is_alive
from support.batches import Looks, an_item, items, priced
from support.dask_cluster import Programs, programs
from support.emulated import soon

pytest.importorskip("distributed", reason="the extra 'cluster' is not installed ('make azurite' does)")
pytestmark = pytest.mark.emulator

WAITS = ("-c", "import os, time; print(os.getpid(), flush=True); time.sleep(600)")
CUT_ONCE = """
import json, pathlib, sys, time
order = json.loads(sys.argv[1])
made = pathlib.Path({folder!r}) / order["name"]
starts = made.read_text().split() if made.exists() else []
if order["start"] in starts:
    print("its place was lost in the middle"), sys.exit(137)
made.write_text(" ".join([*starts, order["start"]]))
if not starts:
    time.sleep(600)
"""
"""A run that hangs at its first start, and knows a start again, as `work` does."""


@dataclass
class Place:
    """A cluster of programs and how to talk to it."""

    folder: Path
    programs: Programs
    tls: Tls
    workers: dict[str, int]

    def engine(self, program: tuple[str, ...] = ("-c", ""), jobs: int | None = None) -> DaskEngine:
        try:
            engine = DaskEngine(dask_cluster.at(self.programs.address, self.tls), self.folder, None, jobs)
        except UsageError as error:
            error.add_note("\n".join(map(self.programs.said, ("scheduler", *self.workers))))
            raise
        engine.program = program
        return engine


def pem(folder: Path, ca: trustme.CA) -> Tls:
    """Files of an authority, and of a certificate for all of a cluster."""
    cert = ca.issue_cert("127.0.0.1")
    paths = [folder / name for name in ("ca.pem", "cert.pem", "key.pem")]
    ca.cert_pem.write_to_path(paths[0])
    cert.cert_chain_pems[0].write_to_path(paths[1])
    cert.private_key_pem.write_to_path(paths[2])
    return Tls(*map(str, paths))


@contextlib.contextmanager
def cluster(folder: Path, tls: Tls) -> Iterator[Place]:
    client.sign("tests")  # workers here have this user's secret
    words = ("--tls-ca-file", str(tls.ca), "--tls-cert", str(tls.cert), "--tls-key", str(tls.key))
    with programs(folder / "dask", *(words if tls != Tls() else ())) as made:
        resources = {"a": ("2", "cores=4"), "b": ("1", "cores=2 host=1")}
        workers = {
            name: made.worker(name, "--nthreads", threads, "--resources", offered).pid
            for name, (threads, offered) in resources.items()
        }
        yield Place(folder, made, tls, workers)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with cluster(tmp_path_factory.mktemp("cluster"), Tls()) as made:
        yield made


@pytest.fixture(scope="module")
def tls_place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("tls-cluster")
    with cluster(folder, pem(folder, trustme.CA())) as made:
        yield made


@contextlib.contextmanager
def opened(place: Place) -> Iterator[DaskEngine]:
    engine = place.engine(WAITS)
    assert soon(lambda: engine.lanes == 3), place.programs.said("a")
    yield engine
    for task in engine._tasks:
        task.stop()
        assert soon(lambda task=task: task.ending() is not None)
    engine.close()


@pytest.fixture
def engine(place: Place) -> Iterator[DaskEngine]:
    with opened(place) as engine:
        yield engine


def ended(task: DaskTask) -> Ending:
    assert soon(lambda: task.ending() is not None)
    ending = task.ending()
    assert ending is not None
    return ending


@pytest.mark.parametrize("where", ["place", "tls_place"])
def test_a_run_is_a_process_on_a_worker_with_its_words_and_log(
    where: str, request: pytest.FixtureRequest
) -> None:
    place, item = request.getfixturevalue(where), an_item()
    program = "import json, sys; print('1'); print(json.loads(sys.argv[1])['limit_usd']); sys.exit(3)"
    with opened(place) as engine:
        engine.program = ("-c", program)
        assert ended(engine.start(item, 2.5)) == Ending(3, "2.5")
    assert (place.folder / "logs" / f"{item.name}.log").read_text() == "1\n2.5\n"


def test_runs_take_what_they_need_of_the_workers(engine: DaskEngine) -> None:
    pairs, on_azure = items(4, design__replicates=2), items(2, cloud="azure")
    own = an_item(cloud="inventory", scenario="local-disk")
    engine.check([*pairs, *on_azure, own])
    engine.start(pairs[0], None)
    assert not engine.has_room(pairs[1])  # four cores, of which worker b has two
    assert engine.has_room(an_item()) and engine.has_room(own)
    engine.start(own, None)
    assert not engine.has_room(an_item(cloud="inventory", scenario="local-disk", design__seed=2))
    engine.start(on_azure[0], None)
    assert not engine.has_room(on_azure[1])  # three threads
    wide = an_item(cloud="emulator", design__replicates=3)
    assert engine._need(wide) == {"cores": 4}  # no worker measures more of them at once


def test_what_nobody_can_run_is_said_before_anything_starts(place: Place, engine: DaskEngine) -> None:
    engine._workers = {name: row for name, row in engine._workers.items() if "host" not in row.resources}
    with pytest.raises(UsageError, match="hosts of your own: start one with --resources 'host=1'"):
        engine.check([an_item(cloud="inventory", scenario="local-disk")])


ORDERLY = """
import json, pathlib, signal, sys, time
signal.signal(signal.SIGTERM, lambda *a: sys.exit(143))
pathlib.Path({folder!r}, json.loads(sys.argv[1])["name"]).touch()
time.sleep(600)
"""


def test_a_run_that_is_stopped_ends_in_order_and_one_that_waits_does_not_begin(
    engine: DaskEngine, tmp_path: Path
) -> None:
    engine.program = ("-c", ORDERLY.format(folder=str(tmp_path)))
    running = [engine.start(item, None) for item in items(4, cloud="azure")]
    assert soon(lambda: len(list(tmp_path.iterdir())) == 3)
    (waits,) = (task for task in running if not (tmp_path / task.item.name).exists())
    waits.stop()
    assert ended(waits) == Ending(143, "stopped before it began")
    running.remove(waits)
    for task in running:
        task.stop()
    assert [ended(task).status for task in running] == [143] * 3
    assert len(list(tmp_path.iterdir())) == 3 and own_processes() == []


def own_processes() -> list[psutil.Process]:
    """Processes of runs on this test's workers; other tests have such beside it, with another home."""
    found, home = [], os.environ["XDG_STATE_HOME"]
    for process in psutil.process_iter(["cmdline", "environ"]):
        words, environment = process.info["cmdline"] or [], process.info["environ"] or {}
        is_own = environment.get("XDG_STATE_HOME") == home
        if is_own and words[1:2] == ["-c"] and '"is_copy"' in words[-1] and is_alive(process):
            found.append(process)
    return found


def play(engine: DaskEngine, asked: list[Item], folder: Path) -> tuple[Batch, list[str]]:
    """Run a batch to its end, and say what happened."""

    def look(item: Item) -> Standing:
        is_done = (folder / item.name).exists()
        return Standing(State.FINISHED, 0, 1.0) if is_done else Standing(State.NEW, 1)

    batch, events = Batch(asked, engine, 3.0, priced(2.0), Looks(look)), []
    batch.run(lambda event, row: events.append(f"{event} {asked.index(row.item)}") if event else None)
    return batch, events


def test_one_limit_holds_for_runs_on_all_workers(place: Place, engine: DaskEngine, tmp_path: Path) -> None:
    engine.program = (
        "-c",
        f"import json, sys; open({str(tmp_path)!r} + '/' + json.loads(sys.argv[1])['name'], 'w')",
    )
    batch, events = play(engine, items(3), tmp_path)
    # One at a time: 2 are reserved of 3 USD, and each costs 1; for a third nothing is left.
    assert events == ["starts 0", "finished 0", "starts 1", "finished 1", "over limit 2"], events
    assert batch.purse.spent == 2.0 and batch.purse.reserved == 0.0


OTHER = """
import pathlib
from diskbook.batch import dask_worker
code, mended = dask_worker.code, pathlib.Path({mended!r})
dask_worker.code = lambda code=code: code() if mended.exists() else "0.0.9 abc"
"""
WITHOUT = "import sys\nsys.modules['diskbook'] = None\n"
LIAR = """
from diskbook.batch import dask_worker
dask_worker.unfit = lambda asked: ""
"""
"""A worker with another secret that says that it is fit."""


@pytest.fixture
def misfits(place: Place, tmp_path: Path) -> Iterator[Path]:
    """A worker with other code, and with another secret when that is mended, one without diskbook, a liar."""
    preloads = {"other": OTHER.format(mended=str(tmp_path / "mended")), "without": WITHOUT, "liar": LIAR}
    made = []
    for name, code in preloads.items():
        (tmp_path / f"{name}.py").write_text(code)
        words = ("--preload", str(tmp_path / f"{name}.py"))
        made.append(place.programs.worker(name, *words, XDG_STATE_HOME=str(tmp_path / "state")))
    yield tmp_path / "mended"
    for process in made:
        process.kill()
        process.wait()


def refused(place: Place) -> str:
    with pytest.raises(UsageError) as told:
        place.engine()
    assert "\n" not in str(told.value)
    return str(told.value)


def test_workers_that_cannot_work_are_named_and_late_ones_get_nothing(
    place: Place, engine: DaskEngine, misfits: Path
) -> None:
    assert soon(lambda: len(engine._cluster.workers()) == 5)
    said = refused(place)
    assert said.count("worker tcp://127.0.0.1:") == 3
    assert "says that it is fit and cannot prove it: it lacks the signing secret of this batch" in said
    assert f"has another diskbook (0.0.9 abc, not {__version__} " in said
    assert "lacks diskbook.batch: install diskbook there as here, with its extra 'cluster'" in said
    misfits.touch()
    assert "has another signing secret, or none (" in refused(place)
    engine._look(now=True)
    assert engine.lanes == 3
    engine.program = ("-c", "print(1)")
    assert {ended(engine.start(item, None)).status for item in items(6, cloud="azure")} == {0}


def test_a_worker_s_proof_holds_for_its_own_address_and_one_batch() -> None:
    first, second = (dask_worker.challenge(None) for _ in range(2))
    worker = SimpleNamespace(contact_address="tls://127.0.0.1:1")
    reason, proof = dask_worker.fitness(first, worker)
    assert reason == "" and dask_worker.is_proof(proof, first, "tls://127.0.0.1:1")
    assert not dask_worker.is_proof(proof, first, "tls://127.0.0.1:2")
    assert not dask_worker.is_proof(proof, second, "tls://127.0.0.1:1")
    assert not dask_worker.is_proof(first.signature, first, "tls://127.0.0.1:1")


def test_certificates_that_do_not_fit_and_a_scheduler_that_is_not_there_are_told_in_a_sentence(
    tls_place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_cluster, "CONNECT_S", 1.0)
    address = tls_place.programs.address
    strangers = pem(tmp_path, trustme.CA())
    for where, tls, said in (
        (address, strangers, "cannot be reached"),
        (address, Tls(), "needs --tls-ca, --tls-cert and --tls-key"),
        (address, Tls("/nowhere.pem", strangers.cert, strangers.key), "No such file"),
        (address.replace("tls://", "tcp://"), Tls(), "cannot be reached"),
        (address.replace("tls://", "tcp://"), strangers, "is not asked by TLS; write tls://"),
        ("127.0.0.1:1", Tls(), "is not an address of a scheduler"),
        ("tcp://127.0.0.1:1", Tls(), "cannot be reached"),
    ):
        with pytest.raises(DiskbookError, match=said) as told, dask_cluster.opening(where):
            dask_cluster.at(where, tls)
        assert "\n" not in str(told.value)


def test_a_run_whose_worker_is_killed_goes_on_on_another(
    place: Place, engine: DaskEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.program = ("-c", CUT_ONCE.format(folder=str(tmp_path)))
    item, killed = an_item(cloud="azure"), []

    def look(item: Item) -> Standing:
        started = (tmp_path / item.name).read_text().split() if (tmp_path / item.name).exists() else []
        return Standing([State.NEW, State.CUT, State.FINISHED][len(started)], 1, 0.5 * len(started), True)

    def tell(event: str, row: loop.Row) -> None:
        events.append(event)
        if not event and not killed and own_processes() and look(item).state == State.CUT:
            killed.extend(own_processes())
            psutil.Process(killed[0].ppid()).kill()

    batch, events = Batch([item], engine, 10.0, priced(2.0), Looks(look)), []
    batch.run(tell)
    assert [row.state for row in batch.rows] == ["finished"] and "killed" in events
    assert soon(lambda: not is_alive(killed[0])) and len((tmp_path / item.name).read_text().split()) == 2
    assert batch.purse.spent == 1.0 and batch.purse.reserved == 0.0


def test_a_scheduler_that_goes_away_ends_the_batch_and_its_workers_their_runs(place: Place) -> None:
    engine = place.engine(WAITS)
    batch = Batch(items(2, cloud="azure"), engine, None, priced(), Looks(lambda item: Standing(State.NEW, 1)))

    def tell(event: str, row: loop.Row) -> None:
        if own_processes():
            place.programs.started[0].kill()

    with pytest.raises(EngineLostError, match="the Dask scheduler has gone"):
        batch.run(tell)
    assert {row.state for row in batch.rows} <= {"cut short", "waiting"} and batch.exit_code == 3
    engine.close()
    assert soon(lambda: not own_processes())
