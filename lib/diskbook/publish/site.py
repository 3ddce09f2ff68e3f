"""`diskbook site`: all runs of a folder as pages that link each other, opened from disk, asked of nobody."""

import functools
import hashlib
import json
import math
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from diskbook.design import schema, totals
from diskbook.design.arm_words import label
from diskbook.design.model import Scenario
from diskbook.design.vocabulary import WITHHELD, Provenance, Scope, Verdict
from diskbook.facts import files, neighbours, quantities
from diskbook.facts.errors import DiskbookError, UsageError, visible
from diskbook.facts.table_writers import capital
from diskbook.report.analysis import protocol, published, published_claims, report
from diskbook.report.figures import as_svg
from diskbook.report.figures.style import NARROW_PX, WIDTH_PX
from diskbook.report.show import headlines, html, lead, sentences
from diskbook.results.manifest import origin
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
        named = [item for item in self.estimates if item.family == HEADLINE]
        decided = (item for item in named if Verdict.of(item.verdict) in DECIDED)
        return next(decided, named[0] if named else None)

    @property
    def banner(self) -> tuple[str, str]:
        """What must stand above all numbers that are not Azure's, whole and for a narrow screen."""
        return next((words for kind, words in BANNERS.items() if kind in self.provenance), ("", ""))


def read_all(folder: Path) -> tuple[list[Entry], list[str]]:
    """All runs of a folder, newest first; and a sentence for each that cannot be read.

    Raises DiskbookError when there is no such folder.
    """
    if not folder.is_dir():
        raise DiskbookError(f"{folder} is not a folder; name one that holds runs")
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

    Raises DiskbookError when its manifest or its comparisons are damaged or of another schema, or it has no
    manifest.
    """
    if not (run.folder / headlines.COMPARISONS).exists():
        return _entry(run.folder, run.manifest, run.scenario, None, None)
    return _entry(
        run.folder, run.manifest, run.scenario, headlines.read_answer(run), headlines.read_comparisons(run)
    )


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
        load=f"{totals.of_direction(loads[row['workload']], row['direction'])}",
        family=row["family"],
        value=quantities.change_and_difference(numbers, difference, row["level"]) if is_shown else "no ratio",
        scope=Scope(row["scope"]).words(row.get("nearest_zone") or ""),
        replicates=int(row["n_replicates"]),
        verdict=row["verdict"],
        note=row["warnings"] or "",
        numbers=numbers if is_shown and not any(map(math.isnan, numbers)) else None,
    )


MARK = ".diskbook-site"
"""A file in every site, so that no other folder is ever replaced."""
_HERE = Path(__file__).parent / "site_pages"
_TEMPLATES = Environment(
    loader=FileSystemLoader(_HERE),
    autoescape=True,
    undefined=StrictUndefined,
    finalize=lambda value: visible(value) if type(value) is str else value,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)


@dataclass(frozen=True)
class Outcome:
    """Where the site begins, how many runs it shows, and what could not be read."""

    index: Path
    runs: int
    unreadable: tuple[str, ...]

    @property
    def words(self) -> str:
        """What was made, a line each."""
        number = f"{self.runs} run{'s' * (self.runs != 1)}"
        return "\n".join(
            [*(f"left out: {line}" for line in self.unreadable), f"site of {number}: {self.index}"]
        )


def build(runs: Path, target: Path, url: str = "") -> Outcome:
    """Write the site of all runs of a folder, in place of an earlier one.

    - `url`: public address of the site's folder: pages then carry a description and an Open Graph card.

    Raises UsageError when the target is a folder of something else. Raises DiskbookError when there is no
    folder of runs.
    """
    _check(target)
    shown, unreadable = read_all(runs)
    target.parent.mkdir(parents=True, exist_ok=True)
    part = tempfile.TemporaryDirectory
    with files.named(target), part(dir=target.parent, prefix=f".{target.name}-") as folder:
        made = Path(folder, "site")
        for name, text in _pages(shown, unreadable, url.rstrip("/")):
            (made / name).parent.mkdir(parents=True, exist_ok=True)
            (made / name).write_text(text, "utf-8")
        for entry in shown:
            if entry.report:
                shutil.copyfile(entry.report, made / "reports" / f"{entry.slug}.html")
        if target.exists():
            target.rename(Path(folder, "old"))
        made.rename(target)
    return Outcome(target / "index.html", len(shown), tuple(unreadable))


def _check(target: Path) -> None:
    """See that nothing but an earlier site is replaced."""
    is_replaced = target.is_dir() and ((target / MARK).exists() or not any(target.iterdir()))
    if (target.exists() or target.is_symlink()) and not is_replaced:
        raise UsageError(
            f"{target} is there and no site of diskbook: name a new or an empty folder with --out"
        )


def _pages(shown: list[Entry], unreadable: list[str], url: str) -> Iterator[tuple[str, str]]:
    """Every file of text by its path in the site."""
    by_scenario: dict[str, list[Entry]] = {}
    for entry in shown:
        by_scenario.setdefault(entry.scenario, []).append(entry)
    scenarios = {name: runs[0] for name, runs in sorted(by_scenario.items())}  # the newest words it
    yield MARK, "made by diskbook site; the next call replaces this folder\n"
    yield "style.css", f"{report.STYLE}\n{(_HERE / 'site.css').read_text('utf-8')}"
    yield "filter.js", (_HERE / "filter.js").read_text("utf-8")
    card = functools.partial(_card, url)
    about = card("index.html", "Azure disks, measured", "Each run asks one question and answers it.")
    real = neighbours.real_answers.every()
    lists = {"real": real, "entries": shown, "unreadable": unreadable}
    for answer in real:
        for width in (WIDTH_PX, NARROW_PX):
            yield f"figures/{answer.slug}-{width}.svg", as_svg(answer.picture.at(width)).decode()
    yield "index.html", _page("index", "", **lists, scenarios=scenarios, **about)
    about = card("published.html", "Published figures", "What five articles published, re-examined.")
    yield "published.html", _page("published", "", **_published(), **about)
    about = card("shared.html", "Shared runs", "Runs that others measured and shared, with their origin.")
    shared = _shared()
    yield "shared.html", _page("shared", "", **shared, **about)
    yield "reports/README.txt", "Reports of runs, as their folders have them.\n"
    for name, runs in by_scenario.items():
        path = f"scenarios/{slug(name)}.html"
        given = {"name": name, "newest": runs[0], "questions": list(_questions(runs))}
        given["shared"] = shared["scenarios"].get(name, [])
        yield path, _page("scenario", "../", **given, **card(path, runs[0].title, runs[0].question))
    for entry in shown:
        path = f"runs/{entry.slug}.html"
        yield path, _page("run", "../", entry=entry, **card(path, entry.claim, entry.question))


def _card(url: str, path: str, heading: str, description: str) -> dict[str, str]:
    """What a page says of itself where it is linked; nothing without a public address."""
    return {"url": f"{url}/{path}" if url else "", "heading": heading, "description": description}


def _page(template: str, root: str, **given: Any) -> str:
    """A page by its template; `root` is the way to the site's first folder."""
    page = _TEMPLATES.get_template(f"{template}.html.jinja").render(root=root, slug=slug, **given)
    return html.unbroken(page)


@dataclass(frozen=True)
class Question:
    """One comparison over all runs of a scenario that made it."""

    what: str
    load: str
    rows: tuple[tuple[Entry, Estimate, Markup], ...]


def _questions(runs: Iterable[Entry]) -> Iterator[Question]:
    """Headline comparisons of a scenario, each with its estimate by every run, drawn on one axis."""
    pairs = [(entry, item) for entry in runs for item in entry.estimates if item.family == HEADLINE]
    for key in dict.fromkeys(map(_asked, pairs)):
        rows = [pair for pair in pairs if _asked(pair) == key]
        ends = [math.log2(end) for _, item in rows if item.numbers for end in item.numbers if end > 0]
        axis = min([0.0, *ends]), max([0.0, *ends])
        yield Question(*key[:2], tuple((entry, item, _drawn(item, axis)) for entry, item in rows))


def _asked(pair: tuple[Entry, Estimate]) -> tuple[str, str, bool]:
    """What a row asks. Emulated rows have a table of their own: they say nothing about Azure."""
    entry, item = pair
    return item.what, item.load, Provenance.EMULATED in entry.provenance


def _drawn(item: Estimate, axis: tuple[float, float]) -> Markup:
    """An interval as a line with a dot, on a logarithmic axis with a mark at 1; its numbers stand beside."""
    if item.numbers is None or min(item.numbers) <= 0:
        return Markup("")
    low, high = axis[0] - 0.05, axis[1] + 0.05
    middle, left, right, even = (
        200 * (math.log2(value) - low) / (high - low) for value in (*item.numbers, 1.0)
    )
    return Markup(
        '<svg class="interval" viewBox="0 0 200 16" aria-hidden="true" focusable="false">'
        '<line class="even" x1="{0:.1f}" x2="{0:.1f}" y1="0" y2="16"/>'
        '<line x1="{2:.1f}" x2="{3:.1f}" y1="8" y2="8"/><circle cx="{1:.1f}" cy="8" r="3.5"/></svg>'
    ).format(even, middle, left, right)


@dataclass(frozen=True)
class Shared:
    """A shared run with its origin, and whether its comparisons are closed by the protocol."""

    entry: Entry
    origin: str
    protocol: str


def _shared() -> dict[str, Any]:
    """The runs that others shared, by scenario, and those left aside with the reason."""
    runs, aside = neighbours.shared_runs.known()
    rows: dict[str, list[Shared]] = {}
    for run in runs:
        entry, points = read(run), protocol.read(run)
        standings = ", ".join(dict.fromkeys(item.standing for item in points if item.family == HEADLINE))
        rows.setdefault(entry.scenario, []).append(Shared(entry, origin(run.manifest), standings))
    return {"scenarios": rows, "aside": aside}


@functools.cache  # its sources are the workbook's own
def _published() -> dict[str, Any]:
    """Tables of the published figures and claims, as notebook 5 makes them."""
    assessed = published.assess(published.read())
    judged = published_claims.judge(assessed)
    articles = {
        str(name): (
            Markup(published_claims.claims_of(judged, name)),
            Markup(published_claims.figures_of(assessed, name)),
        )
        for name in dict.fromkeys(judged["article"])
    }
    return {"counts": Markup(published_claims.verdict_counts(judged)), "articles": articles}
