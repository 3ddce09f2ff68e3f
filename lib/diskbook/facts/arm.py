"""What Azure Resource Manager takes: versions of its APIs, names of properties, limits of tags, images."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from diskbook.facts import table
from diskbook.facts.paths import REFERENCE

# Microsoft, tag-resources.md, limitations.
TAGS, TAG_NAME, TAG_VALUE = 50, 512, 256
TAG_NAME_OF_STORAGE = 128
TAG_NAME_NOT = "<>%&\\?/"
# Images are names of Azure's marketplace; the emulator takes any. Which version of one a run takes is decided
# before its first machine (`images`): "latest" may change between two machines of a run.
IMAGES = {
    "linux": {"publisher": "Canonical", "offer": "ubuntu-24_04-lts", "sku": "server"},
    "linux-arm64": {"publisher": "Canonical", "offer": "ubuntu-24_04-lts", "sku": "server-arm64"},
    "windows": {
        "publisher": "MicrosoftWindowsServer",
        "offer": "WindowsServer",
        "sku": "2022-datacenter-azure-edition",
    },
    # Storage Spaces Direct needs Datacenter, and a cluster of virtual machines without a domain needs 2025
    # (MicrosoftDocs/windowsserverdocs, failover-clustering/create-workgroup-cluster.md).
    "storage-spaces": {
        "publisher": "MicrosoftWindowsServer",
        "offer": "WindowsServer",
        "sku": "2025-datacenter-g2",
    },
}


@dataclass(frozen=True)
class ApiVersions:
    """Versions that exist of a provider's or one kind of resource's API, oldest first as a rule."""

    kind: str
    versions: tuple[str, ...]
    source: str
    read_on: str
    note: str


@dataclass(frozen=True)
class Shape:
    """Names of a model's properties, each as "name" or, where its value is a model, as "name=model"."""

    model: str
    properties: tuple[str, ...]
    source: str


@cache
def _api_versions() -> tuple[ApiVersions, ...]:
    return tuple(row for _, row in table.read(ApiVersions, REFERENCE / "api-versions.csv"))


@cache
def api_versions(kind: str) -> tuple[str, ...]:
    """Return the versions of a kind such as Microsoft.Compute/disks; empty where none are listed.

    A kind without a row has those of its parent, then all of its provider.
    """
    rows = {row.kind.lower(): row.versions for row in _api_versions()}
    parts = kind.lower().split("/")
    for length in range(len(parts), 0, -1):
        if versions := rows.get("/".join(parts[:length])):
            return versions
    of_provider = (row.versions for row in _api_versions() if row.kind.lower().startswith(f"{parts[0]}/"))
    return tuple(sorted({version for versions in of_provider for version in versions}))


@cache
def shapes() -> dict[str, dict[str, str]]:
    """Read the models: names of properties in lower case, each with the model of its value or ""."""
    return {
        row.model: {name.lower(): model for name, _, model in (p.partition("=") for p in row.properties)}
        for _, row in table.read(Shape, REFERENCE / "arm-properties.csv")
    }
