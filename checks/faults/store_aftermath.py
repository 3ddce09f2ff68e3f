"""Of a run that a store has kept: whether it comes back byte for byte, by the way that it went."""

import json
from pathlib import Path

from checks.faults.scene import NAME, NotStruck, Scene, Store
from diskbook.batch.stores import fetch, lease, record as records, verify
from diskbook.batch.stores.contents import Folder, ledger_of
from diskbook.batch.stores.objects import Objects, open_objects


def lost_or_repeated(scene: Scene) -> list[str]:
    """Compare the stored run with the one here, and look at every hash and record of the store."""
    assert scene.store is not None
    wrong = _differences(scene, scene.store)
    if scene.store.proxy is not None:
        if not scene.store.proxy.struck:
            raise NotStruck("no request was struck")
        scene.store.proxy.fault = None
    result = next(iter(verify.verify(scene.store.address)))
    wrong += [f"verify: {fault}" for fault in result.faults]
    wrong += [] if result.state == "whole" else [f"the stored run is {result.state}"]
    return wrong + _records(open_objects(scene.store.address / NAME))


def _differences(scene: Scene, store: Store) -> list[str]:
    """Fetch the run through the same proxy as it went by."""
    copy = scene.folder / "fetched" / NAME
    fetch.fetch(store.address / NAME, copy)
    here, there = (_contents(folder) for folder in (scene.run.folder, copy))
    return [f"{name} is not as it is stored" for name in here if here[name] != there.get(name)] + [
        f"{name} is stored, and is not here" for name in there.keys() - here.keys()
    ]


def _contents(folder: Path) -> dict[str, object]:
    return {**Folder(folder).entries(), records.LEDGER: ledger_of(folder)}


def _records(objects: Objects) -> list[str]:
    """Each record once, by owners one after another."""
    state = lease.read(objects).state
    names = sorted(objects.names(records.FOLDER))
    claims = [
        record["token"] for name in names if (record := json.loads(objects.read(name)))["kind"] == "claim"
    ]
    wrong = [] if len(names) == state.number else [f"{len(names)} records, of which {state.number} follow"]
    return wrong + ([] if claims == list(range(1, len(claims) + 1)) else [f"owners {claims}"])
