"""Runs that are in a store: pushed there, brought from there, and worked on while they are kept there."""

import contextlib
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

from diskbook.batch.catalogue import join, stored as catalogue
from diskbook.batch.stores import address as addresses, contents, fetch as fetching, lease, push as pushing
from diskbook.batch.stores.objects import open_objects
from diskbook.batch.stores.record import State
from diskbook.batch.stores.sync import Prepare, keeping
from diskbook.facts.errors import DiskbookError, Stopped
from diskbook.measure.runs import refused
from diskbook.results import run as runs, session


def push(name: str, store: str) -> pushing.Pushed:
    """Copy a run of this machine into a store; one that is unfinished can be resumed there, not read.

    Raises UsageError when there is no such run, or the store is not an address. Raises DiskbookError when the
    run is being worked on here or there, or the store fails.
    """
    place, run = addresses.parse(store), runs.open_run(name)
    with session.session(run):
        pushed = pushing.push(run.folder, place, run.done("benchmark"))
        _join(place, run)
    return pushed


def _join(store: addresses.Address, run: runs.Run) -> None:
    """Let a run that is whole in a store join its catalogue, if that can be."""
    if why := catalogue.join(store, run):
        print(f"diskbook: {why}", file=sys.stderr)


def fetch(text: str, unfinished: bool = False, target: Path | None = None) -> tuple[runs.Run, bool]:
    """Bring a run from a store among the runs of this machine, or one that is here up to date.

    Returns the run, and whether anything was fetched.

    Raises UsageError, DiskbookError when there is no such run, it is not whole, or the run of that name here
    is another.
    """
    place = addresses.run(text)
    folder = (target or runs.runs_root()) / place.name
    changed = fetching.fetch(place, folder, unfinished, runs.check_fetched)
    if changed:
        runs.Run(folder).note_fetched()
    if changed and (why := join.join_finished(runs.Run(folder.absolute()))):
        print(f"diskbook: {why}", file=sys.stderr)
    return runs.open_run(folder.absolute()), changed


def place_of(run: runs.Run, store: str) -> addresses.Address:
    """Address of a run in a store."""
    return addresses.parse(store) / run.name


@contextlib.contextmanager
def kept(
    run: runs.Run,
    place: addresses.Address | None,
    lease_s: float = lease.LEASE_S,
    prepare: Prepare = lambda state: None,
) -> Iterator[None]:
    """Keep a run in a store for the length of a with block, if in any; it ends when another takes it over.

    A run that is refused before it made anything leaves nothing there.

    - `run`, `place`: the run, and its address.
    - `lease_s`: for how long it is taken for owned without a sign of life.
    - `prepare`: makes its folder as soon as it is owned, or brings it up to date (`keeping`).

    Raises HeldError when another works on it. Raises DiskbookError when another has taken it over, or it
    cannot be stored.
    """
    if place is None:
        prepare(State())
        yield
        return

    def is_void(error: BaseException) -> bool:
        return refused.is_void(run, error)

    def lost(error: DiskbookError) -> None:
        print(f"diskbook: {error}; stopping", flush=True)
        os.kill(os.getpid(), signal.SIGTERM)

    owned = keeping(run.folder, place, lost, lambda: run.done("benchmark"), lease_s, prepare, is_void)
    with _gone_on_there(run, place), owned, session.held(run):
        yield
    _join(place.parent, run)


@contextlib.contextmanager
def _gone_on_there(run: runs.Run, place: addresses.Address) -> Iterator[None]:
    """Have what ends a run say that it goes on by its address: here alone it would be two runs."""

    def with_address(text: str) -> str:
        return text.replace(f"--resume {run.name}'", f"--resume {place}'")

    try:
        yield
    except Stopped as stop:
        stop.hint = with_address(stop.hint)
        raise
    except DiskbookError as error:
        error.args = (with_address(str(error)),)
        raise


def working_copy(name: str) -> tuple[runs.Run, addresses.Address]:
    """Bring the run at an address among the runs of this machine, as far as it has come, to resume it.

    Returns the run, and its address.

    Raises UsageError, DiskbookError as `fetch`.
    """
    return fetch(name, unfinished=True)[0], addresses.run(name)


def bring(place: addresses.Address, folder: Path) -> State:
    """Bring a run's folder as far as the run has come in its store.

    What is here stays where it is as far, or further. It goes where the run went on without it: it belongs to
    one who was replaced while no store could be reached. Only for folders that are kept for a store.

    Returns what is stored.
    """
    objects = open_objects(place)
    state = lease.read(objects).state
    if not state.ledger_size():
        return state
    # By the ledger: whoever takes a run over adds to it first.
    if folder.exists() and contents.ledger_of(folder).startswith(pushing.ledger_of(state, objects)):
        return state
    try:
        fetching.fetch(place, folder, True, runs.check_fetched)
    except fetching.AnotherRunError:
        shutil.rmtree(folder)
        fetching.fetch(place, folder, True, runs.check_fetched)
    runs.Run(folder).note_fetched()
    return state
