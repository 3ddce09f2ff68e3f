"""What the record of a run knows from the start: whose names are replaced, and which words may stay."""

from __future__ import annotations

import functools
import getpass
import os
import re
import socket
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import azure.core

from diskbook.cloud.azure.recording.pseudonyms import Pseudonyms
from diskbook.cloud.azure.recording.recorder import KEY, Recorder
from diskbook.cloud.azure.recording.scrub import Scrubber
from diskbook.facts import arm, catalog, client, paths, redact
from diskbook.results.run import Run

_VALUE = re.compile(r'^    [A-Z]\w* = "(.+)"$|rest_field\(\s*name="(\w+)"', re.MULTILINE)
"""Values and names of fields in the files of Azure's SDK."""
_HUMP = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_USUAL = ("Microsoft.Network", "default", "AzureBastionSubnet")
"""Names of networks that say nothing of whose they are."""
_OTHER_WORDS = (
    *("diskbook", "vCPUs", "vCPU", "azure-mgmt-compute", "sha256", "x64", "Arm64"),
    *("Microsoft", "Compute", "Network", "Storage", "Resources"),  # parts of Azure's types
    *("disks", "net", "nsg", "ssh", "ip", "primary", "unknown"),  # names that every run gives
    *("default", "diskbook-run", "sign-in", "tear-down", "data/reference/prices.csv"),
    *("1Hour", "1/Hour", "1/Month", "1GB/Month"),  # units of prices
)


def scrubber_of(run: Run) -> Scrubber:
    """Make the scrubber of a run, which knows from the start who this is and what the manifest names."""
    names = Pseudonyms(bytes.fromhex(client.sign("record", run.name)))
    for original, kind in _originals(run.manifest):
        names.keep_out(original, kind)
    return Scrubber(names, _vocabulary(run.manifest), azures_words())


def recorder_of(run: Run) -> Recorder | None:
    """Return the recorder of a run that is to be recorded, None for others."""
    return Recorder(run, scrubber_of(run)) if run.manifest.get(KEY) else None


def _originals(manifest: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What is known by name to be this user's or this run's, with its kind."""
    yield getpass.getuser(), "user"
    yield Path.home().name, "user"
    yield socket.gethostname(), "host"
    yield str(manifest["run"]), "run"
    for variable in redact.VARIABLES:
        yield os.environ.get(variable, ""), variable
    for key, value in (manifest.get("azure") or {}).items():
        if key in ("subscription", "subscription_name", "tenant", "ssh_source"):
            yield str(value), key
    for group in manifest["resource_groups"]:
        yield str(group["name"]), "resource group"
    yield from _of_network(manifest["scenario"].get("network") or {})
    company = manifest["scenario"].get("azure") or {}
    yield str(company.get("resource_group") or ""), "resource group"
    for name, value in (company.get("tags") or {}).items():
        yield from ((name, "tag"), (str(value), "tag"))


def _of_network(network: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Names of a company's network, also those within the id of its subnet or Bastion."""
    for key in ("resource_group", "bastion_group"):
        yield str(network.get(key) or ""), "resource group"
    for key in ("subnet", "bastion"):
        parts = str(network.get(key) or "").split("/")
        # An id has a word of Azure's before each name, and an empty part in front.
        for name in parts[2::2] if parts[0] == "" else parts:
            if name not in _USUAL:
                yield name, "network"
    for name in re.split(r"[@:]", str(network.get("jump_host") or "")):
        yield name, "jump host"


def _vocabulary(manifest: Mapping[str, Any]) -> set[str]:
    """Words that anybody can read in Azure's tables and in the workbook's own scenario."""
    words = {*catalog.vm_sizes(), *catalog.sku_names(), *catalog.regions(), *_OTHER_WORDS}
    words |= {word for image in arm.IMAGES.values() for word in image.values()}
    words |= {f"{region}-az{number}" for region in catalog.regions() for number in (1, 2, 3)}
    words |= {path.stem for folder in (paths.SCENARIOS, paths.PROFILES) for path in folder.glob("*.toml")}
    path = paths.SCENARIOS / f"{manifest['scenario']['name']}.toml"
    return words | set(_texts(tomllib.loads(path.read_text("utf-8")))) if path.is_file() else words


@functools.cache
def azures_words() -> frozenset[str]:
    """Words that the values of Azure's SDK are made of. Its files are read: to import them takes seconds."""
    root = Path(azure.core.__file__).parents[1] / "mgmt"
    texts = [path.read_text("utf-8") for path in sorted(root.glob("**/models/_*s.py"))]
    values = [" ".join(groups) for text in texts for groups in _VALUE.findall(text)]
    return frozenset(word.casefold() for value in values for word in _HUMP.findall(value))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield key
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
    elif isinstance(value, str):
        yield value
