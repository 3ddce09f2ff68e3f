"""A run's post as Markdown: answer, two figures, a table, method, limits, and how to do it again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from diskbook.design import scenario_file
from diskbook.design.vocabulary import Provenance
from diskbook.facts import table_writers
from diskbook.facts.errors import UsageError, unknown
from diskbook.facts.table_writers import Table, markdown_escaped as escaped
from diskbook.report.analysis.run import Analysis
from diskbook.report.figures import Picture
from diskbook.report.post import answer, limits, method
from diskbook.report.post.markdown import bullets, code, numbered
from diskbook.report.show import header_card

FIGURES = 2
"""Figures of a post: an editor takes no more."""
_RATIOS, _STRIP = "ratios", "all-trials"


def post(a: Analysis, pictures: Sequence[Picture], folder: str) -> str:
    """Write a post; figures are linked in the folder named, which lies beside it.

    Parameters
    ----------
    a
        Analysis of a run.
    pictures
        Its figures, as `chosen` picks them.
    folder
        Name of their folder.
    """
    parts = [
        f"# {escaped(a.scenario.scenario.title)}",
        _note(a),
        f"*{escaped(a.scenario.scenario.question)}*",
        *(escaped(words) for words in answer.paragraphs(a)),
        *_of_limits(a),
        _findings(pictures),
        *(_figure(number, picture, folder) for number, picture in enumerate(pictures, 1)),
        table_writers.markdown(Table.of(*_table(a))),
        "## Method",
        numbered([escaped(line) for line in method.lines(a)]),
        "## Limits",
        bullets([escaped(line) for line in limits.items(a)]),
        "## Measure it again",
        *_again(a),
        f"*{escaped(_source(a))}*",
        owner_line(a.run.name),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def owner_line(run: str) -> str:
    """Last line of a post, which no page shows: whose it is."""
    return f"<!-- diskbook post of run {run} -->"


def chosen(a: Analysis, pictures: Sequence[Picture], names: Sequence[str] = ()) -> list[Picture]:
    """Pick the two figures that carry the answer, or those named.

    They are the first of the analysis notebook, which leads with its answer, and the one after it. The strip
    of all trials is a last resort.

    Raises
    ------
    UsageError
        When there is no figure of such a name, or more are named than a post has.
    """
    drawn = {picture.slug: picture for picture in pictures}
    for name in names:
        if name not in drawn:
            raise unknown("figure", name, drawn)
    if len(set(names)) > FIGURES:
        raise UsageError(f"a post has at most {FIGURES} figures; name {FIGURES} with --figure")
    ranked = sorted(drawn.values(), key=lambda picture: picture.slug == _STRIP)
    first, others = ranked[:1], ranked[1:]
    return [drawn[name] for name in dict.fromkeys(names)] or [*first, *others][:FIGURES]


def _note(a: Analysis) -> str:
    words = limits.provenance(a)
    return f"> {words}" if words else ""


def _of_limits(a: Analysis) -> list[str]:
    lines = answer.of_limits(a)
    if not lines:
        return []
    return [
        "Where a limit sets the rate, a ratio says nothing of disks:",
        bullets([escaped(line) for line in lines]),
    ]


def _findings(pictures: Sequence[Picture]) -> str:
    """Say what the figures show, in the words of their titles; that of the ratios is the answer again."""
    parts = [
        f"{item.title} (figure {number})." for number, item in enumerate(pictures, 1) if item.slug != _RATIOS
    ]
    return escaped(" ".join(parts))


def _figure(number: int, picture: Picture, folder: str) -> str:
    path = f"{folder}/{picture.slug}"
    return (
        f"![{escaped(picture.alt)}]({path}.svg)\n\n"
        f"*Figure {number}. {escaped(picture.caption)}* ([PNG]({path}@2x.png), [numbers]({path}.csv))"
    )


def _table(a: Analysis) -> tuple[pd.DataFrame, str]:
    """The scenario's own table of a post, where its module has one, else that of the headlines."""
    own: Any = getattr(a.module, "post_table", None)
    return own(a) if callable(own) else answer.table(a)


def _again(a: Analysis) -> list[str]:
    parts = ["In a clone of the workbook, after `make setup`:", code(*method.again(a))]
    if a.provenance == Provenance.EMULATED and a.scenario.name in scenario_file.names():
        name = a.scenario.name
        azure = [f"diskbook {word} {name} --cloud azure --preset standard" for word in ("plan", "run")]
        parts += ["On Azure itself (`plan` says first what it takes and costs):", code(*azure)]
    return parts


def _source(a: Analysis) -> str:
    version = (a.manifest.get("versions") or {}).get("diskbook")
    by = f" by diskbook {version}" if version else ""
    made = f"Run {a.run.name}, {header_card.dates(a)} UTC{by}; {header_card.ran_on(a)}"
    return f"{made}. Its folder has raw results and report."
