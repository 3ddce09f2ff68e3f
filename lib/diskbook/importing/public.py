"""Public measurements of real Azure machines and disks as runs: `diskbook import --dataset NAME`.

Each is a folder of `data/reference/public`. `table.csv` has figures selected from what its authors published.
`source.toml` says who measured, where the figures are from, under which licence, and what they mean.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from diskbook.design import scenario_tables
from diskbook.facts import catalog, files, paths
from diskbook.facts.errors import DiskbookError, unknown
from diskbook.importing import pairing, repeats, run as importer, scenario
from diskbook.importing.files import Source
from diskbook.importing.pairing import Entry
from diskbook.importing.run import Planned
from diskbook.importing.scenario import UNKNOWN, Settings
from diskbook.report.show import html
from diskbook.report.show.html import Html
from diskbook.results import run as runs

FOLDER = paths.REFERENCE / "public"
_SAID = (
    *("title", "authors", "repository", "commit", "licence", "retrieved", "attribution"),
    *("measured", "region", "unknown", "notes"),
)
"""What a run keeps of its source."""


@dataclass(frozen=True)
class Dataset:
    """A public data set: its name, its folder, and what `source.toml` says."""

    name: str
    folder: Path
    source: Mapping[str, Any]

    @property
    def said(self) -> dict[str, Any]:
        """What a run's manifest keeps of it."""
        return {"name": self.name, **{key: self.source[key] for key in _SAID}}


def names() -> list[str]:
    """Names of all data sets."""
    return sorted(path.parent.name for path in FOLDER.glob("*/source.toml"))


def load(name: str) -> Dataset:
    """Return what is known of a data set.

    Raises UsageError for a name that there is not.
    """
    if name not in names():
        raise unknown("data set", name, names())
    folder = FOLDER / name
    return Dataset(name, folder, files.read_toml(folder / "source.toml", f"there is no data set {name}"))


def table_of(name: str, stem: str = "table", dtype: type | None = None) -> pd.DataFrame:
    """Read a table of a data set as it is; `source.toml` names its columns with their units.

    Raises UsageError for a name that there is not.
    """
    path = next(load(name).folder.glob(f"{stem}.*"))
    frame = pd.read_csv(path, dtype=dtype) if path.suffix == ".csv" else pd.read_parquet(path)
    return frame if dtype is None else frame.astype(dtype)


def table() -> Html:
    """Return a table of all data sets: what was measured, by whom, when, and the licence."""
    rows = [load(name).source for name in names()]
    keys = ("title", "authors", "measured", "region", "licence")
    return html.table(pd.DataFrame({key.capitalize(): [row[key] for row in rows] for key in keys}))


def plan(name: str, run_name: str) -> Planned:
    """Say what the run of a data set would hold; nothing is written.

    Raises UsageError for an unknown data set, or a name of a run that is taken. Raises DiskbookError for a
    table that does not fit its source.toml.
    """
    importer.check_name(run_name)
    dataset = load(name)
    if "run" not in dataset.source:
        raise DiskbookError(f"data set {name} makes no run: {dataset.source['use']}")
    asked = dataset.source["run"]
    entries = _entries(dataset, asked)
    words = {arm["name"]: arm["label"] for arm in asked["arm"]}
    document = _document(dataset, asked, entries, words)
    scenario_tables.from_dict(document, run_name)
    manifest = scenario.manifest(runs.folder_of(run_name).name, document, *_resources(asked["arm"]))
    manifest["imported"] = {
        "paths": [f"data set {name}"],
        "refused": [],
        "named": {},
        "reading": [],
        "arms": {arm: {"words": text, "targets": [], "hosts": []} for arm, text in words.items()},
        "dataset": dataset.said,
    }
    return Planned(run_name, entries, words, document, manifest, (), tuple(dataset.source["notes"]), ())


def _entries(dataset: Dataset, asked: Mapping[str, Any]) -> list[Entry]:
    """Read the table; its arms, loads and blocks are named in it."""
    columns = (*asked["columns"].items(), *((field, f":{value}") for field, value in asked["values"].items()))
    path = next(dataset.folder.glob("table.*"))
    refused: list[str] = []
    entries = pairing.of_tables([Source(path, path)], columns, refused)
    if refused:
        raise DiskbookError(f"data set {dataset.name}: {refused[0]}")
    for entry in entries:
        (entry.arm,) = entry.meaning.arm
        entry.workload = {**entry.workload, "name": entry.meaning.load}
    repeats.assign(entries)
    return entries


def _document(
    dataset: Dataset, asked: Mapping[str, Any], entries: list[Entry], words: Mapping[str, str]
) -> dict[str, Any]:
    """Make the scenario: the arms of the data set with their machines and disks, and what it compares."""
    document = scenario.derive(entries, words, Settings(analysis=asked.get("analysis", "imported")))
    document["scenario"] |= {
        "title": dataset.source["title"],
        "question": asked["question"],
        "region": dataset.source["region"],
    }
    arms = asked["arm"]
    document["machine"] = [{"name": arm["name"], "size": arm["size"], "os": "linux"} for arm in arms]
    document["disk"] = [{"name": arm["name"], **_disk(arm)} for arm in arms]
    for row in document["arm"]:
        row["machine"] = row["name"]
    document["comparison"] = list(_comparisons(arms, document["workload"]))
    return document


def _disk(arm: Mapping[str, Any]) -> dict[str, Any]:
    """SKU and size of an arm's disk; a temporary disk has its machine's limits, as an ephemeral one has."""
    if "sku" in arm:
        return {"sku": arm["sku"], "size_gib": arm["size_gib"]}
    return {"sku": catalog.EPHEMERAL if "local_gib" in arm else UNKNOWN, "size_gib": arm.get("local_gib", 1)}


def _comparisons(arms: list[dict[str, Any]], workloads: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Each arm with its base, by rate and latency of every load that both have."""
    for arm in (arm for arm in arms if "base" in arm):
        for load in workloads:
            if {arm["name"], arm["base"]} <= set(load["arms"]):
                family = "headline" if load["name"] in arm["headline"] else "exploratory"
                yield {
                    "arm": arm["name"],
                    "base_arm": arm["base"],
                    "workload": load["name"],
                    "metric": "lat_mean_ms",
                    "pairing": "replicate",
                    "family": family,
                    "margin": 0.05,
                }


def _resources(arms: list[dict[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Machines and disks with their documented limits, for the manifest."""
    machines, disks = {}, {}
    for arm in arms:
        size = catalog.find_vm_size(arm["size"])
        machines[arm["name"]] = {"id": UNKNOWN, "size": arm["size"], "limits": scenario.of_vm(size)}
        limits = dict(scenario.NO_LIMITS)
        if "sku" in arm:
            limits = scenario.of_disk(catalog.disk_limits(arm["sku"], arm["size_gib"]))
        disks[arm["name"]] = {"id": UNKNOWN, "sku": _disk(arm)["sku"], "limits": limits}
    return machines, disks
