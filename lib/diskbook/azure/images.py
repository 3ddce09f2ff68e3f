"""Versions of the images that machines are made from: one a run, so that all its machines are alike.

"latest" may change between the first machine of a run and its last. Azure lists the versions of an image by
region (Virtual Machine Images - List); the newest is taken once, kept in the manifest, and asked for from
then on, by resumed runs as well.
"""

from __future__ import annotations

from collections.abc import Iterable

from diskbook.azure import requests
from diskbook.azure.clients import Clients
from diskbook.base.errors import DiskbookError
from diskbook.scenario.model import Scenario
from diskbook.store.run import Run


def versions(clients: Clients, run: Run, scenario: Scenario, region: str) -> dict[str, str]:
    """Return the version of each image that a run needs, by its name in `requests.IMAGES`.

    Those that its manifest has are kept; others are asked for and written there.

    Raises
    ------
    DiskbookError
        When a region lists no version of an image.
    """
    known: dict[str, str] = dict(run.manifest.get("images") or {})
    missing = sorted(needed(scenario) - known.keys())
    if missing:
        known |= {name: latest(clients, region, name) for name in missing}
        run.update_manifest(images=known)
    return known


def needed(scenario: Scenario) -> set[str]:
    """Names in `requests.IMAGES` of the images that a scenario's machines are made from."""
    return {requests.image_of(item, pooled=scenario.is_pooled(item.name)) for item in scenario.machine}


def latest(clients: Clients, region: str, name: str) -> str:
    """Ask for the newest version of an image of `requests.IMAGES` that a region lists.

    Raises
    ------
    DiskbookError
        When it lists none.
    """
    image = requests.IMAGES[name]
    listed = clients.compute.virtual_machine_images.list(
        region, image["publisher"], image["offer"], image["sku"]
    )
    version = newest(str(item.name) for item in listed)
    if version is None:
        words = ":".join(image.values())
        raise DiskbookError(f"region {region} lists no version of the image {words}; take another region")
    return version


def newest(names: Iterable[str]) -> str | None:
    """Newest of versions such as "24.04.202511100", number by number; None where there is none."""
    numbered = [(tuple(map(int, name.split("."))), name) for name in names if _is_version(name)]
    return max(numbered)[1] if numbered else None


def _is_version(name: str) -> bool:
    return all(part.isdecimal() for part in name.split("."))
