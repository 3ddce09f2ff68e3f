"""Write the site: an index, one page per scenario, one per run with its report, and the published figures."""

from __future__ import annotations

import functools
import math
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from diskbook.design.vocabulary import Provenance
from diskbook.facts import neighbours
from diskbook.facts.errors import UsageError, visible
from diskbook.report.analysis import protocol, report
from diskbook.report.analysis.published import claims, figures as published, tables as published_tables
from diskbook.report.site import entries
from diskbook.report.site.entries import Entry, Estimate
from diskbook.results.manifest import origin

MARK = ".diskbook-site"
"""A file in every site, so that no other folder is ever replaced."""
_HERE = Path(__file__).parent / "pages"
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

    Parameters
    ----------
    runs, target
        Folders of the runs and of the site.
    url
        Public address of the site's folder: pages then carry a description and an Open Graph card.

    Raises
    ------
    UsageError
        When the target is a folder of something else.
    DiskbookError
        When there is no folder of runs.
    """
    _check(target)
    shown, unreadable = entries.read_all(runs)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-") as folder:
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
    yield (
        "index.html",
        _page(
            "index",
            "",
            real=neighbours.real_answers.every(),
            entries=shown,
            scenarios=scenarios,
            unreadable=unreadable,
            **about,
        ),
    )
    about = card("published.html", "Published figures", "What five articles published, re-examined.")
    yield "published.html", _page("published", "", **_published(), **about)
    about = card("shared.html", "Shared runs", "Runs that others measured and shared, with their origin.")
    yield "shared.html", _page("shared", "", **_shared(), **about)
    yield "reports/README.txt", "Reports of runs, as their folders have them.\n"
    for name, runs in by_scenario.items():
        path = f"scenarios/{entries.slug(name)}.html"
        given = {"name": name, "newest": runs[0], "questions": list(_questions(runs))}
        yield path, _page("scenario", "../", **given, **card(path, runs[0].title, runs[0].question))
    for entry in shown:
        path = f"runs/{entry.slug}.html"
        yield path, _page("run", "../", entry=entry, **card(path, entry.claim, entry.question))


def _card(url: str, path: str, heading: str, description: str) -> dict[str, str]:
    """What a page says of itself where it is linked; nothing without a public address."""
    return {"url": f"{url}/{path}" if url else "", "heading": heading, "description": description}


def _page(template: str, root: str, **given: Any) -> str:
    """A page by its template; `root` is the way to the site's first folder."""
    return _TEMPLATES.get_template(f"{template}.html.jinja").render(root=root, slug=entries.slug, **given)


@dataclass(frozen=True)
class Question:
    """One comparison over all runs of a scenario that made it."""

    what: str
    load: str
    rows: tuple[tuple[Entry, Estimate, Markup], ...]


def _questions(runs: Iterable[Entry]) -> Iterator[Question]:
    """Headline comparisons of a scenario, each with its estimate by every run, drawn on one axis."""
    pairs = [(entry, item) for entry in runs for item in entry.estimates if item.family == entries.HEADLINE]
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
        entry, found = entries.read(run), protocol.read(run)
        standings = ", ".join(
            dict.fromkeys(item.standing for item in found if item.family == entries.HEADLINE)
        )
        rows.setdefault(entry.scenario, []).append(Shared(entry, origin(run.manifest), standings))
    return {"scenarios": rows, "aside": aside}


@functools.cache  # its sources are the workbook's own
def _published() -> dict[str, Any]:
    """Tables of the published figures and claims, as notebook 5 makes them."""
    assessed = published.assess(published.read())
    judged = claims.judge(assessed)
    articles = {
        str(name): (
            Markup(published_tables.claims_of(judged, name)),
            Markup(published_tables.figures_of(assessed, name)),
        )
        for name in dict.fromkeys(judged["article"])
    }
    return {"counts": Markup(published_tables.verdict_counts(judged)), "articles": articles}
