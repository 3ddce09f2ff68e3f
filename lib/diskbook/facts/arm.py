"""What Azure Resource Manager takes: versions of its APIs, names of properties, limits of tags, images.

Azure Compute's token buckets: how often a client may ask about a machine, an operation, a subscription.

Capacities and refills are those of Microsoft's page "Compute throttling limits" (May 2024). Names of the
buckets, and that a bucket is refilled in one step a minute, were read in traffic that azure-cli recorded in
February 2026, as were these: a write of a whole machine counts as PutVM also where the machine exists;
attach and detach have buckets of their own (of 12 and 1,500; that they are refilled like UpdateVM's is
inferred); each operation of a machine has its own bucket for polls (the first poll of an operation leaves
44, that of the next one 44 again). Disks have no such buckets: their answers count windows of 3 and of 30
minutes (August 2025).
"""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from diskbook.facts import files
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
    return tuple(row for _, row in files.read_table(ApiVersions, REFERENCE / "api-versions.csv"))


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
        for _, row in files.read_table(Shape, REFERENCE / "arm-properties.csv")
    }


# Recorded: disk create 0.1 to 0.7 s, VM 75 s (zonal 168 s). The others are plausible, not read. "metrics" is
# the time until a minute's metrics are there; Microsoft says "a few minutes" of them.
with (REFERENCE / "api-delays.csv").open(encoding="utf-8", newline="") as _file:
    DELAYS_S: Mapping[str, float] = {row["operation"]: float(row["seconds"]) for row in csv.DictReader(_file)}


MINUTE_S = 60.0


@dataclass(frozen=True)
class Rate:
    """A bucket's size, and how many tokens are added a minute."""

    capacity: int
    refill: int

    def share(self, part: float) -> "Rate":
        """A part of it, one at least."""
        return Rate(max(1, int(self.capacity * part)), max(1, int(self.refill * part)))


@dataclass(frozen=True)
class Bucket:
    """Buckets that a kind of request takes a token from: one of its resource, one of the subscription."""

    resource: Rate | None
    subscription: Rate


POLICIES: Mapping[str, Bucket] = {
    "PutVM": Bucket(Rate(12, 4), Rate(1500, 500)),
    "UpdateVM": Bucket(Rate(12, 4), Rate(1500, 500)),
    "AttachDetachVMDisks": Bucket(Rate(12, 4), Rate(1500, 500)),
    "DeleteVM": Bucket(Rate(12, 4), Rate(1500, 500)),
    "LowCostGet": Bucket(Rate(36, 12), Rate(24000, 8000)),
    "HighCostGet": Bucket(None, Rate(900, 300)),
    "GetOperation": Bucket(Rate(45, 15), Rate(15000, 5000)),
}
