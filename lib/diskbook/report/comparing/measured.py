"""Runs that are to be compared: opened, and read from what their analysis wrote."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pandas as pd

from diskbook.design import schema, totals
from diskbook.design.arm_words import label
from diskbook.design.model import Comparison, Scenario, Workload
from diskbook.design.vocabulary import Provenance
from diskbook.facts import neighbours
from diskbook.facts.errors import UsageError
from diskbook.report.analysis import cell
from diskbook.report.analysis.run import analyse
from diskbook.report.show import headlines, sentences
from diskbook.report.show.tables import METRICS
from diskbook.results import manifest as manifests
from diskbook.results.run import Run, open_run, scenario_of

KEY = ("arm", "base_arm", "workload", "direction", "metric")
"""Columns that name a comparison in one direction."""
HOW = frozenset({"tool", "working_set_gib", "ramp_s", "runtime_s", "blocks", "ioengine"})
"""Fields of a workload that are how it is measured, not what is asked; they stand among what changed."""
_ARMS = frozenset(
    f"{role}: {what}"
    for role in ("arm", "base arm")
    for what in ("sku of the disk", "kind of the volume", "load away from the owner", "nodes")
)
_LOADS = frozenset(f"workload: {name}" for name in Workload.model_fields if name not in HOW)
_ZONES = "pattern of zones (disk and machine of the arm, of the base arm)"
ASKED = frozenset({"metric", "pairing", _ZONES}) | _ARMS | _LOADS
"""What of a cell (`analysis.cell.of`) is the question: kinds of disks, their places, and the load."""


def of(scenario: Scenario, manifest: Mapping[str, Any], row: Mapping[Any, Any]) -> dict[str, Any]:
    """What a comparison of a run asked, in words and values."""
    named = next(matching(scenario, [row[name] for name in KEY]))
    everything = cell.of(scenario, named, manifest)
    question = {key: value for key, value in everything.items() if key in ASKED}
    writes = "plain" if sentences.is_plain(row) else "as asked for"
    return question | {
        "pairing": row["pairing"],
        "latency counts from": row.get("lat_start", ""),
        "writes": writes,
    }


def difference(first: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """Say the first thing in which two questions differ; empty where they are one."""
    for key in dict.fromkeys((*first, *other)):
        if first.get(key) != other.get(key):
            return f"{key} is {_shown(other.get(key))}, not {_shown(first.get(key))}"
    return ""


def words(scenario: Scenario, loads: Mapping[str, str], key: Sequence[str]) -> str:
    """A comparison in words: "4K random write, depth 1: ZRS, zone 1 / LRS, zone 1, mean latency".

    - `scenario`, `loads`: a scenario that has it, and its workloads in words (`sentences.workload_words`).
    """
    arm, base, load, direction, metric = key
    load = totals.of_direction(loads[load], direction)
    return f"{load}: {label(scenario, arm)} / {label(scenario, base)}, {METRICS.get(metric, metric)}"


def matching(scenario: Scenario, key: Sequence[str]) -> Iterator[Comparison]:
    """Comparisons of a scenario that a key names."""
    named = dict(zip(KEY, key, strict=True))
    for item in scenario.comparison:
        if all(getattr(item, name) == named[name] for name in ("arm", "base_arm", "workload", "metric")):
            yield item


def _shown(value: Any) -> str:
    return "none" if value in (None, "") else str(value)


LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_ALONE = (Provenance.EMULATED, Provenance.INVENTORY)
"""What says nothing about Azure, and so stands beside its own kind only."""


@dataclass(frozen=True)
class Measured:
    """A run with its comparisons, as its analysis judged them.

    - `letter`: what it is called in tables: A is the run that the others are compared with.
    - `manifest`: what the catalogue keeps of its manifest (`results.manifest.kept_of`).
    - `scenario`: its scenario, as it was run.
    - `comparisons`: as in comparisons.csv (`schema.COMPARISONS`).
    """

    letter: str
    name: str
    manifest: Mapping[str, Any]
    scenario: Scenario
    comparisons: pd.DataFrame

    @property
    def provenance(self) -> str:
        """Where its numbers come from."""
        return str(self.manifest["provenance"])

    @cached_property
    def rows(self) -> dict[tuple[str, ...], dict[str, Mapping[Any, Any]]]:
        """Rows of its comparisons by key (`KEY`) and scope, in their order."""
        rows: dict[tuple[str, ...], dict[str, Mapping[Any, Any]]] = {}
        for row in self.comparisons.to_dict("records"):
            rows.setdefault(tuple(str(row[name]) for name in KEY), {})[row["scope"]] = row
        return rows


def read_runs(names: Sequence[str]) -> tuple[Measured, ...]:
    """Open runs by name or folder; one that was not analysed yet is analysed now.

    Raises UsageError, DiskbookError when there are fewer than two, one is named twice, is not there, is
    damaged or has nothing to compare, or when emulated ones stand beside measured ones.
    """
    if len(names) < 2:
        raise UsageError(
            "compare needs two runs or more: diskbook compare RUN RUN, or `runs` of the notebook"
        )
    opened = [open_run(name) for name in names]
    folders = [run.folder.resolve() for run in opened]
    twice = next(
        (run.name for run, folder in zip(opened, folders, strict=True) if folders.count(folder) > 1), ""
    )
    if twice:
        raise UsageError(f"run {twice} is named twice; it counts once: name another")
    known = catalogued(opened)
    kept = [known[run].manifest if run in known else _kept(run) for run in opened]
    _check_provenance(
        {run.name: str(manifest["provenance"]) for run, manifest in zip(opened, kept, strict=True)}
    )
    return tuple(
        replace(known[run], letter=letter_of(place))
        if run in known
        else Measured(letter_of(place), run.name, manifest, run.scenario, _comparisons(run))
        for place, (run, manifest) in enumerate(zip(opened, kept, strict=True))
    )


def catalogued(opened: Sequence[Run]) -> dict[Run, Measured]:
    """Runs that a catalogue has as they are now, with their comparisons."""
    known: dict[Run, Measured] = {}
    for parent in {run.folder.parent for run in opened}:
        names = {run.name: run for run in opened if run.folder.parent == parent}
        seen = neighbours.catalogue.view(parent, names.keys()).tell()
        rows = seen.joined("runs", None, ["run", "scenario_json", "manifest_json"]).to_pylist()
        compared = seen.joined("comparisons", None, ["run", *schema.COMPARISONS.names]).to_pandas()
        of_run = dict(iter(compared.groupby("run", sort=False)))
        for row in rows:
            if row["run"] in of_run:
                known[names[row["run"]]] = Measured(
                    "",
                    row["run"],
                    json.loads(row["manifest_json"]),
                    scenario_of(row["scenario_json"], row["run"]),
                    of_run[row["run"]].drop(columns="run"),
                )
    return known


def of_folder(run: Run) -> Measured:
    """A run by its folder, for what names runs by themselves; as `read_runs`."""
    return Measured("", run.name, _kept(run), run.scenario, _comparisons(run))


def _kept(run: Run) -> dict[str, Any]:
    return manifests.kept_of(run.manifest, manifests.started(run.ledger()))


def letter_of(place: int) -> str:
    """Name a run in tables: A to Z, then AA and so on."""
    first, rest = divmod(place, len(LETTERS))
    return (letter_of(first - 1) if first else "") + LETTERS[rest]


def _check_provenance(of_runs: Mapping[str, str]) -> None:
    kinds = set(of_runs.values())
    if len(kinds) > 1 and kinds & set(_ALONE):
        listed = ", ".join(f"{name} is {kind}" for name, kind in of_runs.items())
        raise UsageError(
            f"{listed}: what an emulator or a disk of your own does says nothing about Azure, so these are "
            "not compared; name runs of one provenance"
        )


def _comparisons(run: Run) -> pd.DataFrame:
    """Comparisons of a run, from its comparisons.csv, else computed."""
    if (run.folder / headlines.COMPARISONS).exists():
        table = headlines.read_comparisons(run)
    else:
        table = schema.validate(schema.COMPARISONS, analyse(run).comparisons)
    if table.empty:
        raise UsageError(
            f"run {run.name} compares no arms, so it has no ratio to compare with another's; give its "
            "scenario a [[comparison]]"
        )
    return table
