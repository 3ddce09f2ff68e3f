"""Several runs as data: what changed, one row per comparison, the spread over runs, what was left out."""

import functools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from diskbook.design.vocabulary import Provenance, Scope, Verdict
from diskbook.facts.errors import UsageError
from diskbook.facts.quantities import as_written
from diskbook.report.comparing import measured, pairs
from diskbook.report.comparing.measured import Measured
from diskbook.report.comparing.pairs import LeftOut, Pair, Paired, estimate_of
from diskbook.report.figures import Picture, RunSource
from diskbook.report.figures.forest import runs_forest
from diskbook.report.show import sentences
from diskbook.stats import ratio_of_ratios, ratios

WORDS_ALONE = {
    "name",
    "label",
    "remarks",
    "substitute",
    "arms",
    "verbatim",
    "series_s",
    "seed",
    "max_cost_usd",
}
"""Settings that are words, or that hold nothing of what is measured."""
_PARTS = ("machine", "disk", "arm", "volume", "cluster", "workload")
_EMULATOR = {"profile": "emulator profile", "seed": "emulator seed", "time_scale": "emulator time scale"}
MISSING = "–"


class Change(NamedTuple):
    """One thing that is not the same in all runs: kind, name, and its value in each run."""

    kind: str
    what: str
    values: tuple[str, ...]


def hours(item: Measured) -> str:
    """Hours in which a run was measured: "2026-11-22 21:35 to 21:40 UTC"."""
    times = item.manifest["trials_utc"]
    if not times:
        return "hours unknown"
    first, last = (time[:16].replace("T", " ") for time in times)
    if first == last:
        return f"{first} UTC"
    return f"{first} to {last[11:] if first[:10] == last[:10] else last} UTC"


def changes_between(runs: Sequence[Measured], names: Iterable[str]) -> list[Change]:
    """List what is not the same in all runs.

    - `names`: arms and workloads that are compared: settings of others do not count.
    """
    compared = set(names)
    facts = [dict(_settings_of(item, compared)) for item in runs]
    keys = dict.fromkeys(key for of_run in facts for key in of_run)
    rows = [Change(*key, tuple(of_run.get(key, MISSING) for of_run in facts)) for key in keys]
    return [row for row in rows if len(set(row.values)) > 1]


def _settings_of(item: Measured, names: set[str]) -> Iterator[tuple[tuple[str, str], str]]:
    """All that may differ, by kind and name."""
    manifest = item.manifest
    yield ("run", "provenance"), item.provenance
    yield ("run", "scenario"), item.scenario.name
    yield ("run", "preset"), str(manifest.get("preset"))
    yield ("region", "region"), item.scenario.region
    for zone, place in (manifest.get("zone_map") or {}).items():
        yield ("region", f"physical zone of zone {zone}"), str(place)
    yield ("hour", "measured"), hours(item)
    if item.provenance == Provenance.EMULATED:
        for key, words in _EMULATOR.items():
            yield ("profile", words), str((manifest.get("emulator") or {}).get(key, MISSING))
    scenario = item.scenario.model_dump(mode="json")
    for key, value in _leaves(scenario["design"]):
        yield ("setting", f"design.{key}"), value
    places = _places(scenario, names)
    for part in _PARTS:
        for record in scenario[part]:
            if record["name"] in places[part]:
                yield from (
                    ((_kind(part, key), f"{part}.{record['name']}.{key}"), value)
                    for key, value in _leaves(record)
                )
    yield from _limits(manifest, places)
    yield from _versions(manifest, places)


def _kind(part: str, key: str) -> str:
    return "size" if (part, key) in {("machine", "size"), ("disk", "size_gib")} else "setting"


def _leaves(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key, value in record.items():
        if key not in WORDS_ALONE:
            yield key, MISSING if value is None else str(value)


def _places(scenario: Mapping[str, Any], names: set[str]) -> dict[str, set[str]]:
    """Names of what the compared cells are on, by part of the scenario."""
    arms = [arm for arm in scenario["arm"] if arm["name"] in names]
    volumes = {arm["volume"] for arm in arms} - {""}
    of_volumes = [volume for volume in scenario["volume"] if volume["name"] in volumes]
    clusters = {volume["cluster"] for volume in of_volumes}
    nodes = {
        name for cluster in scenario["cluster"] if cluster["name"] in clusters for name in cluster["nodes"]
    }
    return {
        "arm": names,
        "workload": names,
        "machine": {arm["machine"] for arm in arms} | nodes,
        "disk": {part["disk"] for part in (*arms, *of_volumes)},
        "volume": volumes,
        "cluster": clusters,
    }


def _limits(
    manifest: Mapping[str, Any], places: Mapping[str, set[str]]
) -> Iterator[tuple[tuple[str, str], str]]:
    """Limits of disks and machines, over all replicates."""
    for part in ("disk", "machine"):
        for name in sorted(places[part]):
            entries = [row.get(f"{part}s", {}).get(name) or {} for row in manifest["replicates"]]
            keys = dict.fromkeys(key for entry in entries for key in entry.get("limits") or {})
            for key in keys:
                values = (entry.get("limits", {}).get(key) for entry in entries)
                yield ("limit", f"{part} {name}: {key}"), _listed(values)


def _versions(
    manifest: Mapping[str, Any], places: Mapping[str, set[str]]
) -> Iterator[tuple[tuple[str, str], str]]:
    """Versions of what measures and analyses: the workbook's, and those of the machines."""
    for key, value in (manifest.get("versions") or {}).items():
        yield ("version", key), str(value)
    for key, value in (manifest.get("images") or {}).items():
        yield ("version", f"image for {key}"), str(value)
    machines = [
        machine
        for row in manifest["replicates"]
        for name, machine in row.get("machines", {}).items()
        if name in places["machine"]
    ]
    for key, words in (("tool_version", "tool"), ("kernel", "kernel")):
        yield ("version", words), _listed(machine.get(key) for machine in machines)


def _listed(values: Iterable[Any]) -> str:
    """Values met, each once: "5000", "fio-3.33, fio-3.36"."""
    met = dict.fromkeys(as_written(value) for value in values if value is not None)
    return ", ".join(met) or MISSING


LEAST_RUNS = 3


@dataclass(frozen=True)
class BetweenRuns:
    """Spread of one comparison over runs; `has_disks` where that of their disks is in it."""

    key: tuple[str, ...]
    family: str
    spread: ratio_of_ratios.Spread
    has_disks: bool

    @property
    def words(self) -> str:
        """The spread in words, and what it may be due to."""
        if self.has_disks:
            return f"{self.brief}: that of their disks is in it, since runs have one replicate"
        p = "<0.001" if self.spread.p < 0.001 else f"{self.spread.p:.2g}"
        how_much = "more" if self.spread.p < ratios.ALPHA else "no more"
        return f"{self.brief}: {how_much} than their replicates explain (p {p})"

    @property
    def brief(self) -> str:
        """The spread alone: "s.d. between 4 runs 9.8 %, 95 % CI 5.3 to 42 %"."""
        sd, low, high = (_percent(value) for value in self.spread[:3])
        return f"s.d. between {self.spread.n_runs} runs {sd} %, 95 % CI {low} to {high} %"


def _percent(log_sd: float) -> str:
    """A standard deviation of logs in percent, with two digits, without its unit."""
    share = 100 * math.expm1(log_sd)
    return f"{share:.2g}" if share < 10 else f"{share:.0f}"


def between(pairs: Sequence[Pair]) -> Iterator[BetweenRuns]:
    """Estimate the spread of every comparison that three runs or more have with an interval."""
    for key in dict.fromkeys(pair.key for pair in pairs):
        of_key = [pair for pair in pairs if pair.key == key]
        usable = [pair for pair in of_key if np.isfinite(pair.estimate.low)]
        if len(usable) + 1 < LEAST_RUNS:
            continue
        has_disks = any(pair.scope is Scope.THESE for pair in usable)
        rows = [usable[0].ratios[0], *(pair.ratios[1] for pair in usable)]
        estimates = [estimate_of(row) for row in rows]
        means = np.array([part.mean for part in estimates])
        if has_disks:
            spread = ratio_of_ratios.with_their_disks(means)
        else:
            errors, df = np.array([(part.se, part.df) for part in estimates]).T
            spread = ratio_of_ratios.between_runs(means, errors, df)
        yield BetweenRuns(key, of_key[0].family, spread, has_disks)


@dataclass(frozen=True)
class Beside:
    """Two runs or more that were compared, each one against the first. Made by `compare`."""

    runs: tuple[measured.Measured, ...]
    paired: Paired

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """A row a comparison and run, comparison by comparison, headlines first."""
        return self.paired.pairs

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """What asked another question."""
        return self.paired.left_out

    @property
    def provenance(self) -> str:
        """Where the numbers come from."""
        return "+".join(sorted({item.provenance for item in self.runs}))

    @cached_property
    def changes(self) -> list[Change]:
        """What is not the same in all runs."""
        names = {name for pair in self.pairs for name in pair.key[:3]}
        return changes_between(self.runs, names)

    @cached_property
    def spreads(self) -> list[BetweenRuns]:
        """Spread between runs of each comparison; none of two runs."""
        return list(between(self.pairs))

    @property
    def remarks(self) -> str:
        """Say which runs are one and the same by their manifests, and which of several others measured."""
        by_run: dict[str, list[str]] = {}
        for item in self.runs:
            key = f"{item.manifest['run']} {item.manifest.get('created_utc')}"
            by_run.setdefault(key, []).append(item.letter)
        words = [
            f"{' and '.join(letters)} are one run by their manifests: a copy is no second measurement"
            for letters in by_run.values()
            if len(letters) > 1
        ]
        others = [item.letter for item in self.runs if item.provenance == Provenance.IMPORTED]
        if 0 < len(others) < len(self.runs):
            words.append(f"{' and '.join(others)} measured by others, the rest by us: {_UNLIKE}")
        return "; ".join(words)

    @cached_property
    def picture(self) -> Picture:
        """Forest plot over runs: of the headline comparisons, or of all where there is none."""
        headline = [pair for pair in self.pairs if pair.family == "headline"]
        chosen = headline or self.pairs
        keys = list(dict.fromkeys(pair.key for pair in chosen))
        rows = [row for key in keys for row in self._drawn(key)]
        spreads = {self.words(item.key): item.brief for item in self.spreads if item.key in keys}
        names = {item.letter: item.name for item in self.runs}
        differing = len({pair.key for pair in chosen if pair.verdict is Verdict.DIFFERENCE})
        regions = ", ".join(dict.fromkeys(item.scenario.region for item in self.runs))
        listed = " ".join(names.values())
        source = RunSource(listed, f"Runs {listed}; {regions}; diskbook, MIT licence")
        title = _title(len(self.runs), differing, len(keys))
        return runs_forest(rows, spreads, names, title, self.provenance, source)

    def _drawn(self, key: tuple[str, ...]) -> list[dict[str, Any]]:
        """Rows of the figure: the ratio of each run in one comparison."""
        of_key = [pair for pair in self.pairs if pair.key == key]
        differing = [pair.verdict is Verdict.DIFFERENCE for pair in of_key]
        rows = [of_key[0].ratios[0], *(pair.ratios[1] for pair in of_key)]
        letters = [of_key[0].first, *(pair.other for pair in of_key)]
        columns = ("ratio", "ci_low", "ci_high", "level", "n_replicates", "n_blocks", "scope")
        return [
            {
                "comparison": self.words(key),
                "run": letter,
                "differs": differs,
                "is_latency": key[-1].startswith("lat"),
            }
            | {name: row[name] for name in columns}
            for letter, row, differs in zip(letters, rows, [False, *differing], strict=True)
        ]

    def words(self, key: Sequence[str]) -> str:
        """A comparison in words: "4K random write, depth 1: ZRS, zone 1 / LRS, zone 1"."""
        return measured.words(self.runs[0].scenario, self._loads, key)

    @cached_property
    def _loads(self) -> dict[str, str]:
        return sentences.workload_words(self.runs[0].scenario)


_UNLIKE = "a change may be one of method, tool or settings in force"


def compare(names: Sequence[str]) -> Beside:
    """Compare runs: each one against the first.

    - `names`: names or folders of two runs or more.

    Raises UsageError, DiskbookError as `measured.read_runs`; or when no run asked what the first one did.
    """
    runs = measured.read_runs(names)
    paired = pairs.pair(runs)
    if not paired.pairs:
        reasons = "; ".join(dict.fromkeys(f"{item.run}, {item.why}" for item in paired.left_out))
        raise UsageError(
            f"no run asked what {runs[0].name} did ({reasons}); name runs of one scenario with the same loads"
        )
    order = {pair.key: place for place, pair in enumerate(sorted(paired.pairs, key=_is_last))}
    return Beside(
        runs, Paired(tuple(sorted(paired.pairs, key=functools.partial(_place, order))), paired.left_out)
    )


def _title(runs: int, differing: int, comparisons: int) -> str:
    """Title of the figure, which states the finding."""
    if not differing:
        return f"No change differs clearly between {runs} runs"
    return f"{differing} of {comparisons} changes differ{'s' * (differing == 1)} between {runs} runs"


def _is_last(pair: Pair) -> int:
    return ("headline", "exploratory", "control").index(pair.family)


def _place(order: dict[tuple[str, ...], int], pair: Pair) -> tuple[int, int]:
    return _is_last(pair), order[pair.key]
