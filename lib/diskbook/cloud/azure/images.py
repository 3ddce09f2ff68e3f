"""Choose one version of each image per run, so that all machines of the run are alike.

"latest" may change between the first machine of a run and its last. Azure lists the versions of an image by
region (Virtual Machine Images - List). The run takes the newest once and records it in the manifest; resumed
runs use the same version.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from diskbook.cloud.azure import requests
from diskbook.cloud.azure.clients import Clients
from diskbook.design.azure_rules import NOTHING_KNOWN, Traits
from diskbook.design.model import Scenario
from diskbook.facts import arm
from diskbook.facts.errors import DiskbookError
from diskbook.results.run import Run


def versions(
    clients: Clients,
    run: Run,
    scenario: Scenario,
    region: str,
    traits: Mapping[str, Traits] = MappingProxyType({}),
) -> dict[str, str]:
    """Return the version of each image that a run needs, by its name in `arm.IMAGES`.

    Those that its manifest has are kept; others are asked for and written there. `traits` are those of the
    sizes of its machines, by name.

    Raises DiskbookError when a region lists no version of an image.
    """
    known: dict[str, str] = dict(run.manifest.get("images") or {})
    missing = sorted(needed(scenario, traits) - known.keys())
    if missing:
        known |= {name: latest(clients, region, name) for name in missing}
        run.update_manifest(images=known)
    return known


def needed(scenario: Scenario, traits: Mapping[str, Traits] = MappingProxyType({})) -> set[str]:
    """Names in `arm.IMAGES` of the images that a scenario's machines are made from."""
    return {
        requests.image_of(
            machine, traits.get(machine.size, NOTHING_KNOWN), pooled=scenario.is_pooled(machine.name)
        )
        for machine in scenario.machine
    }


def latest(clients: Clients, region: str, name: str) -> str:
    """Ask for the newest version of an image of `arm.IMAGES` that a region lists.

    Raises DiskbookError when it lists none.
    """
    image = arm.IMAGES[name]
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
