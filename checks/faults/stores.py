"""Faults of the store that a run is kept in: what a proxy does to requests, and who takes the run over."""

import os
import secrets
import time

from checks import azurite, store_proxy
from checks.faults import inject
from checks.faults.aftermath import groups
from checks.faults.moments import hold, measuring, release
from checks.faults.play import acting
from checks.faults.scene import LEASE_S, NAME, NotStruck, Scene, Store
from diskbook.batch.stores import address as addresses, fetch, lease, push
from diskbook.batch.stores.objects import open_objects
from diskbook.facts import client

SECRET = "secret"


def serve(scene: Scene) -> store_proxy.Proxy:
    """Have a server of object storage, and a proxy before it by which the run goes."""
    import fsspec  # of an extra, which all other faults do without

    server = scene.after.enter_context(azurite.running())
    proxy = scene.after.enter_context(store_proxy.proxy(server.port))
    os.environ[azurite.VARIABLE] = azurite.connection_string(server.port)
    fsspec.filesystem("abfs", skip_instance_cache=True).mkdir("runs")
    os.environ[azurite.VARIABLE] = azurite.connection_string(proxy.port)
    scene.store = Store(addresses.parse("abfs://runs/lab"), proxy, server.pid)
    return proxy


def _proxy(scene: Scene) -> store_proxy.Proxy:
    assert scene.store is not None and scene.store.proxy is not None
    return scene.store.proxy


def served(scene: Scene) -> None:
    """Have a store in which nothing goes wrong yet."""
    serve(scene)


@acting
def by_object(scene: Scene, kind: str) -> None:
    """Have something happen to the first request of each kind for each object, all the time."""
    proxy = serve(scene)
    proxy.fault = store_proxy.FAULTS[kind](proxy)


@acting
def always(scene: Scene, fault: store_proxy.Fault) -> None:
    """Have something happen to each request."""
    proxy = serve(scene)
    proxy.fault = proxy.strike(fault)


@acting
def away(scene: Scene, seconds: float) -> None:
    """Have the store away for a while, in the middle of a trial."""
    measuring(scene)
    proxy = _proxy(scene)
    proxy.fault = proxy.strike(store_proxy.closed)
    time.sleep(seconds)
    proxy.fault = None


def away_for_good(scene: Scene) -> None:
    """Have the store away from the middle of a trial on, which lasts until the run has noticed."""
    hold(scene, measuring(scene))
    proxy = _proxy(scene)
    proxy.fault = proxy.strike(store_proxy.closed)


def back(scene: Scene) -> None:
    """Have the store back."""
    _proxy(scene).fault = None


def taken_over(scene: Scene) -> None:
    """Suspend the client, as a laptop is, until another has owned the run; then wake it."""
    fio = hold(scene, measuring(scene))
    family = scene.family()
    for process in family:
        process.suspend()
    assert scene.store is not None
    _proxy(scene).struck += 1  # though the blow is not the proxy's
    push.release(lease.claim(open_objects(scene.store.address / NAME), LEASE_S))
    release(family[::-1])
    release(fio)


# --- two machines


def first_machine(scene: Scene) -> None:
    """Have the run begun on a machine of its own, and kept on a disk that others can reach."""
    scene.store = Store(addresses.parse(f"file://{scene.folder}/store"))
    scene.places |= {"store", "fetched"}
    _be(scene, "first")


def to_the_second(scene: Scene) -> None:
    """Kill -9 the command when the store has a finished trial; go to another machine with the same secret."""
    assert scene.store is not None
    place = scene.store.address / NAME
    fio = hold(scene, measuring(scene))
    scene.until(lambda: _stored_trials(scene), "the store had a finished trial")
    inject.kill_client(lambda scene: None)(scene)
    release(fio)
    secret = (client.home() / SECRET).read_bytes()
    _be(scene, "second", secret)
    fetch.fetch(place, scene.run.folder, unfinished=True)


def refuse_a_stranger(scene: Scene) -> None:
    """See that a machine with another secret is refused, in one sentence; then be the second one again."""
    assert scene.store is not None
    place = str(scene.store.address / NAME)
    _be(scene, "stranger", secrets.token_hex(32).encode())
    for words in (("teardown", place), ("run", "--resume", place)):
        status, sentence = scene.ask(*words)
        if not status or "was not begun by you" not in sentence:
            raise NotStruck(f"'diskbook {words[0]}' with another secret ended with {status}: {sentence}")
    if not groups(scene):
        raise NotStruck("the killed run left no machines")
    _be(scene, "second")


def _stored_trials(scene: Scene) -> bool:
    assert scene.store is not None
    return '"event": "trial"' in lease.read(open_objects(scene.store.address / NAME)).state.tail


def _be(scene: Scene, machine: str, secret: bytes | None = None) -> None:
    """Go on as another machine: another secret, unless that is copied, and other runs."""
    place = scene.folder / machine
    scene.places.add(machine)
    (place / "runs").mkdir(parents=True, exist_ok=True)
    os.environ |= {"XDG_STATE_HOME": str(place / "state"), "DISKBOOK_RUNS": str(place / "runs")}
    if secret is not None:
        client.home().mkdir(mode=0o700, parents=True)
        (client.home() / SECRET).touch(mode=0o600)
        (client.home() / SECRET).write_bytes(secret)
