"""Names from files on their whole way: imported, in tables, in figures, on pages, in what is printed.

Whatever a name is, a page with it has the elements and attributes of a page with a harmless one, what is
printed steers no terminal, and nothing crashes.
"""

import json
import os
import tempfile
import traceback
import warnings
from collections.abc import Callable, Sequence
from functools import cache, partial
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import nbformat
import pandas as pd
from matplotlib.figure import Figure

from checks.fuzz.payloads import HTML, NAMES
from checks.fuzz.targets import SAMPLES, BrokenPromise
from diskbook.facts import table_writers
from diskbook.facts.errors import LINES, is_visible, visible
from diskbook.importing import run as importer, terminal as import_text
from diskbook.importing.scenario import Settings
from diskbook.report.analysis import report as reports, why_text
from diskbook.report.analysis.run import Analysis, analyse
from diskbook.report.figures.export import export, html
from diskbook.report.figures.style import Picture
from diskbook.report.show import (
    facts as show_facts,
    html as show_html,
    run as show_run,
    tables as show_tables,
)
from diskbook.stats.diagnosis import findings

TEXTS: tuple[str, ...] = (*HTML, *map(os.fsdecode, NAMES))
HARMLESS = "name"
_AT_ONCE = 25
_LONGEST_NAME = 200  # bytes of a file's name, of the 255 that a file system takes
_FIELDS = ("subscription_name", "subscription", "subscription_from", "tenant", "ssh_source", "endpoint")


class _Structure(HTMLParser):
    """Elements of a page with the names of their attributes, in order, and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, ...]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        # A long text makes a table's rows into cards, whose cells name their columns.
        self.elements.append((tag, *(name for name, _ in attrs if name != "data-label")))

    def handle_endtag(self, tag: str) -> None:
        self.elements.append((f"/{tag}",))

    def handle_comment(self, data: str) -> None:
        self.elements.append(("comment",))

    def handle_decl(self, decl: str) -> None:
        self.elements.append(("declaration",))

    def handle_pi(self, data: str) -> None:
        self.elements.append(("instruction",))

    def handle_data(self, data: str) -> None:
        self.text += data


def failures(texts: Sequence[str] = TEXTS) -> list[str]:
    """Put texts wherever names are shown; say in a line each what did not hold."""
    failed = []
    for text in texts:
        failed += _attempt(repr(text), partial(_check_fragments, text))
    for first in range(0, len(texts), _AT_ONCE):
        names = list(dict.fromkeys(texts[first : first + _AT_ONCE]))
        failed += _attempt(f"a run with {names[0]!r} and others", partial(_check_run, names))
    return failed


def check(page: str, harmless: str, *texts: str) -> None:
    """Hold a page against the same one with a harmless name.

    Raises BrokenPromise when it has other elements, steers, or does not show the texts.
    """
    read, expected = _structure(page), _structure(harmless)
    if read.elements != expected.elements:
        pairs = zip([*read.elements, ("its end",)], [*expected.elements, ("its end",)], strict=False)
        other = next(pair for pair in pairs if pair[0] != pair[1])
        raise BrokenPromise(f"the page has {other[0]} where it should have {other[1]}")
    if not is_visible(page, LINES):
        raise BrokenPromise("the page holds characters that steer")
    if missing := [text for text in texts if _shown(text) not in _shown(read.text)]:
        raise BrokenPromise(f"the page does not show {missing[0]!r}")


def fragments(text: str) -> str:
    """Everything that makes HTML of a text, with this one."""
    names = pd.Index([text, "number"], dtype=object)  # pandas' own texts hold no bytes that are not UTF-8
    frame = pd.DataFrame([[text, 1.0]], columns=names, dtype=object)
    manifest = {
        "cloud": "azure",
        "provenance": text,
        "scenario": {"scenario": {"region": text}},
        "azure": dict.fromkeys(_FIELDS, text),
    }
    drawn = Picture("slug", text, text, text, _figure(), frame, "imported", text)
    parts = [
        show_html.table(frame, text),
        show_html.recorded(frame, text, text),
        show_html.banner(f"imported {text}"),
        show_tables.bullets([text]),
        show_tables.preformatted(text),
        table_writers.html_notes([text]),
        show_run.target(manifest),
        html(drawn),
    ]
    return "\n".join(parts)


def _check_fragments(text: str) -> None:
    check(fragments(text), fragments(HARMLESS), text)


def _structure(page: str) -> _Structure:
    """Read a page as a browser would, as far as its elements go."""
    read = _Structure()
    read.feed(page)
    read.close()
    return read


def _shown(text: str) -> str:
    """A text as a page shows it: spaces count as one, and a sentence begins with a capital."""
    return " ".join(visible(text, LINES).split()).lower()


@cache
def _figure() -> Figure:
    return Figure(figsize=(1, 1))


def _attempt(what: str, judge: Callable[[], object]) -> list[str]:
    try:
        judge()
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(last.filename).name}:{last.lineno}"
        return [visible(f"{what}: {type(error).__name__} at {place}: {str(error)[:300]}")]
    return []


def _check_run(names: Sequence[str]) -> None:
    """Make a run of files with these names, and hold all that is made of it against a harmless run."""
    pages, printed = _pages(names)
    for name, harmless in _harmless(len(names)).items():
        try:
            check(pages[name], harmless)
        except BrokenPromise as error:
            raise BrokenPromise(f"{name}: {error}") from None
    for text in printed:
        if not is_visible(text, LINES):
            raise BrokenPromise(f"what is printed steers a terminal: {text[:100]!r}")


@cache
def _harmless(number: int) -> dict[str, str]:
    return _pages([f"{HARMLESS}-{position}" for position in range(number)])[0]


def _pages(names: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Import files with these names; return the run's pages by what makes them, and what is printed."""
    with tempfile.TemporaryDirectory(prefix="diskbook-fuzz-") as place, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the font lacks letters, the figure has no room
        _write(Path(place, "in"), names)
        made = importer.make([f"{place}/in"], f"{place}/run", Settings(arms_by="folder"))
        analysis = analyse(made.run)
        pages = _shown_of(analysis)
        picture = import_text.tail(analysis)
        if made.n_trials != len(names) or picture is None:
            raise BrokenPromise(f"{made.n_trials} of {len(names)} files were imported")
        ElementTree.parse(export(picture, Path(place, "figures"))[0])
        pages["report"] = _report(analysis, [*pages.values(), html(picture)])
        return pages, [import_text.text(made), why_text.of_run(f"{place}/run")]


def _write(folder: Path, names: Sequence[str]) -> None:
    """Write a result for each name, with it as the names of folder and file, job, disk and machine."""
    document = json.loads((SAMPLES / "fio-logs" / "each.json").read_text("utf-8"))
    for position, name in enumerate(names):
        document["timestamp"] += 1  # or it would be the same file twice
        for job in document["jobs"]:
            job["jobname"], job["hostname"], job["job options"]["filename"] = name, name, name
        of_file = os.fsencode(name.replace("/", "\N{DIVISION SLASH}"))[:_LONGEST_NAME]
        place = folder / f"{position:02d}{os.fsdecode(of_file)}"
        place.mkdir(parents=True)
        (place / f"{place.name}.json").write_text(json.dumps(document), "utf-8")


def _shown_of(analysis: Analysis) -> dict[str, str]:
    """What the notebook of imported runs shows."""
    manifest = analysis.manifest
    words = [finding.words for finding in findings(analysis.trials, analysis.tables.series, analysis.cells)]
    return {
        "files": show_html.table(import_text.files_read(manifest), "Files read"),
        "flags": show_tables.bullets(import_text.flags(analysis.run.ledger())),
        "cells": show_tables.cells(analysis),
        "findings": show_tables.bullets(words),
        "comparisons": show_tables.comparisons(analysis),
        "gates": show_tables.gates(analysis),
        "percentiles": show_tables.percentiles(analysis),
        "over time": show_facts.over_time(analysis),
        "environment": show_facts.environment(analysis),
    }


def _report(analysis: Analysis, parts: Sequence[str]) -> str:
    """Make the report of a notebook that has shown these parts."""
    outputs = [nbformat.v4.new_output("display_data", {"text/html": str(part)}) for part in parts]
    executed = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("", outputs=outputs)])
    path = analysis.run.folder / "executed.ipynb"
    nbformat.write(executed, path)
    return reports.build(analysis.run, path).read_text("utf-8")
