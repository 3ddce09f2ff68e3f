"""What the site says of each run, from its manifest and comparisons; nothing is measured or analysed."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from diskbook.design import schema
from diskbook.design.arm_words import label
from diskbook.design.model import Scenario
from diskbook.design.vocabulary import WITHHELD, Provenance, Scope, Verdict
from diskbook.facts import neighbours, quantities
from diskbook.facts.errors import DiskbookError
from diskbook.facts.table_writers import capital
from diskbook.report.analysis import answer as answers
from diskbook.report.show import headlines, html, lead, sentences
from diskbook.results.run import Run, scenario_of

HEADLINE = "headline"
FAMILIES = (HEADLINE, "control", "exploratory")
DECIDED = (Verdict.DIFFERENCE, Verdict.EQUIVALENT)
BANNERS = {
    Provenance.EMULATED: (html.EMULATED, "EMULATED: says nothing about Azure."),
    Provenance.INVENTORY: (html.OWN_HARDWARE, "Own hosts: says nothing about Azure."),
    Provenance.IMPORTED: (html.BY_OTHERS, "MEASURED BY OTHERS."),
    Provenance.AZURE: (html.BY_US, "MEASURED BY US, on Azure."),
}
METRICS = {"lat_mean_ms": "mean latency", **sentences.METRIC_WORDS}


@dataclass(frozen=True)
class Estimate:
    """One comparison of a run, in words, with the numbers that it is drawn by."""

    what: str
    """What is compared with what: the same in all runs that asked the same."""
    load: str
    family: str
    value: str
    """Ratio and difference with their intervals, or why there is none."""
    scope: str
    replicates: int
    verdict: str
    note: str
    """What limits it, and what would help."""
    numbers: tuple[float, float, float] | None
    """Ratio and interval, where there are all three."""


@dataclass(frozen=True)
class Entry:
    """A run as the site shows it."""

    name: str
    slug: str
    scenario: str
    title: str
    claim: str
    """What the leading headline found, as a title says it; without one the scenario's title."""
    bars: tuple[tuple[str, float, str], ...]
    """A bar per arm of that headline: its name, its share of the longer one, and its change."""
    question: str
    answer: str
    provenance: str
    preset: str
    date: str
    region: str
    facts: tuple[tuple[str, str], ...]
    estimates: tuple[Estimate, ...]
    report: Path | None

    @property
    def lead(self) -> Estimate | None:
        """The headline that answers: the first that is decided, in the scenario's order, else the first."""
        headlines = [item for item in self.estimates if item.family == HEADLINE]
        decided = (item for item in headlines if Verdict.of(item.verdict) in DECIDED)
        return next(decided, headlines[0] if headlines else None)

    @property
    def banner(self) -> tuple[str, str]:
        """What must stand above all numbers that are not Azure's, whole and for a narrow screen."""
        return next((words for kind, words in BANNERS.items() if kind in self.provenance), ("", ""))


def read_all(folder: Path) -> tuple[list[Entry], list[str]]:
    """All runs of a folder, newest first; and a sentence for each that cannot be read.

    Raises
    ------
    DiskbookError
        When there is no such folder.
    """
    if not folder.is_dir():
        raise DiskbookError(f"{folder} is no folder; name one that holds runs")
    seen = neighbours.catalogue.view(folder).tell()
    known, compared = _catalogued(seen)
    entries, unreadable = [], []
    for path in sorted(folder.glob("*/manifest.json")):
        name = path.parent.name
        try:
            entries.append(
                _joined(path.parent, known[name], compared) if name in known else read(Run(path.parent))
            )
        except (DiskbookError, KeyError, TypeError, ValueError) as error:
            unreadable.append(f"{name}: {_words(error)}")
    return sorted(entries, key=lambda entry: (entry.date, entry.name), reverse=True), unreadable


def _catalogued(seen: Any) -> tuple[dict[str, dict[str, Any]], dict[str, pd.DataFrame]]:
    """Rows of the runs that the catalogue has as they are now, and their comparisons."""
    rows = seen.joined("runs", None, ["run", "answer", "scenario_json", "manifest_json"]).to_pylist()
    compared = seen.joined("comparisons", None, ["run", *schema.COMPARISONS.names]).to_pandas()
    return {row["run"]: row for row in rows}, dict(iter(compared.groupby("run", sort=False)))


def _joined(folder: Path, row: Mapping[str, Any], compared: Mapping[str, pd.DataFrame]) -> Entry:
    """Entry of a run that the catalogue has as it is now."""
    scenario = scenario_of(row["scenario_json"], row["run"])
    return _entry(folder, json.loads(row["manifest_json"]), scenario, row["answer"], compared.get(row["run"]))


def _words(error: Exception) -> str:
    return str(error) if isinstance(error, DiskbookError) else f"its manifest is damaged ({error!r})"


def read(run: Run) -> Entry:
    """Read a run; without an analysis it has no answer yet, and says so.

    Raises
    ------
    DiskbookError
        When its manifest or its comparisons are damaged or of another schema, or it has no manifest.
    """
    if not (run.folder / answers.COMPARISONS).exists():
        return _entry(run.folder, run.manifest, run.scenario, None, None)
    return _entry(run.folder, run.manifest, run.scenario, answers.of_run(run), answers.comparisons(run))


def _entry(
    folder: Path,
    manifest: Mapping[str, Any],
    scenario: Scenario,
    answer: str | None,
    comparisons: pd.DataFrame | None,
) -> Entry:
    page, provenance = folder / "report.html", manifest["provenance"]
    claim, bars = _claim(scenario, provenance, comparisons)
    answer = "no answer yet: it was not analysed" if answer is None else answer
    return Entry(
        name=folder.name,
        slug=slug(folder.name),
        scenario=scenario.name,
        title=scenario.scenario.title,
        claim=claim,
        bars=bars,
        question=scenario.scenario.question,
        answer=capital(answer.removeprefix(f"{provenance}: ")),
        provenance=provenance,
        preset=str(manifest.get("preset") or "none"),
        date=str(manifest.get("created_utc", ""))[:16].replace("T", " "),
        region=scenario.region,
        facts=tuple(_facts(manifest, scenario)),
        estimates=() if comparisons is None else tuple(_estimates(comparisons, scenario)),
        report=page if page.is_file() and not page.is_symlink() else None,
    )


def _claim(
    scenario: Scenario, provenance: str, comparisons: pd.DataFrame | None
) -> tuple[str, tuple[tuple[str, float, str], ...]]:
    """Say the finding of the leading headline, and draw its arms as bars where it has a number."""
    row = None if comparisons is None else headlines.of(comparisons, scenario).lead
    if row is None:
        return scenario.scenario.title, ()
    names = {arm.name: label(scenario, arm.name) for arm in scenario.arm}
    claim = headlines.said_of(provenance, lead.claim(row, scenario, names))
    if Verdict.of(row["verdict"]) in WITHHELD or math.isnan(row["ratio"]):
        return claim, ()
    ratio, longer = float(row["ratio"]), max(1.0, float(row["ratio"]))
    changed = quantities.change(ratio)
    return claim, ((names[row["arm"]], ratio / longer, changed), (names[row["base_arm"]], 1 / longer, ""))


def slug(name: str) -> str:
    """Name of a run or scenario as part of an address: plain letters; others by their hash."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[:80]
    digest = hashlib.sha256(os.fsencode(name)).hexdigest()[:8]
    return plain if plain == name else f"{plain or 'run'}-{digest}"


def _facts(manifest: Mapping[str, Any], scenario: Scenario) -> Iterator[tuple[str, str]]:
    """What a reader asks for first: on what, how often, with which tools."""
    emulator = manifest.get("emulator") or {}
    if emulator:
        yield "Emulator's profile", str(emulator.get("profile"))
    yield "Machines", ", ".join(sorted({machine.size for machine in scenario.machine}))
    yield "Replicates", str(len(manifest.get("replicates") or []))
    if overrides := manifest.get("overrides"):
        yield "Changed settings", ", ".join(f"{key} = {value}" for key, value in overrides.items())
    versions = manifest.get("versions") or {}
    yield "Versions", ", ".join(f"{name} {version}" for name, version in versions.items())


def _estimates(comparisons: pd.DataFrame, scenario: Scenario) -> Iterator[Estimate]:
    """Comparisons of an analysed run, headlines first, each in the scope that its answer has."""
    rows = sorted(sentences.chosen(comparisons).to_dict("records"), key=_place(scenario))
    loads = sentences.workload_words(scenario)
    yield from (_estimate(row, scenario, loads) for row in rows)


def _place(scenario: Scenario) -> Callable[[Mapping[Any, Any]], tuple[int, int]]:
    """Order of comparisons: headlines first, and as the scenario's file has them."""
    names = ("arm", "base_arm", "workload", "metric")
    order = {tuple(getattr(item, name) for name in names): n for n, item in enumerate(scenario.comparison)}

    def place(row: Mapping[Any, Any]) -> tuple[int, int]:
        return FAMILIES.index(row["family"]), order.get(tuple(row[name] for name in names), len(order))

    return place


def _estimate(row: Mapping[Any, Any], scenario: Scenario, loads: Mapping[str, str]) -> Estimate:
    arms = f"{label(scenario, row['arm'])} to {label(scenario, row['base_arm'])}"
    numbers = (row["ratio"], row["ci_low"], row["ci_high"])
    is_shown = Verdict.of(row["verdict"]) not in WITHHELD and not math.isnan(row["ratio"])
    difference = (row["diff_ms"], row["diff_low_ms"], row["diff_high_ms"])
    return Estimate(
        what=capital(f"{METRICS.get(row['metric'], row['metric'])} of {arms}"),
        load=f"{loads[row['workload']]}{_direction(row)}",
        family=row["family"],
        value=quantities.change_and_difference(numbers, difference, row["level"]) if is_shown else "no ratio",
        scope=Scope(row["scope"]).words(row.get("nearest_zone") or ""),
        replicates=int(row["n_replicates"]),
        verdict=row["verdict"],
        note=row["warnings"] or "",
        numbers=numbers if is_shown and not any(map(math.isnan, numbers)) else None,
    )


def _direction(row: Mapping[Any, Any]) -> str:
    """Which half of a mixed load it is about."""
    return "" if row["direction"] in row["workload"] else f" ({row['direction']})"
