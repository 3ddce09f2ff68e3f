"""A run's post as Markdown: answer, two figures, a table, method, limits, and how to do it again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pandas as pd

from diskbook.design import scenario_file
from diskbook.design.vocabulary import Provenance
from diskbook.facts import table_writers
from diskbook.facts.errors import UsageError, unknown, visible
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
    title, opening = answer.title(a), answer.opening(a)
    parts = [
        f"---\ntitle: {json.dumps(visible(title), ensure_ascii=False)}\n"
        f"description: {json.dumps(visible(answer.first(a)), ensure_ascii=False)}\n---",
        f"# {escaped(title)}",
        *(escaped(words) for words in opening[:-1]),
        escaped(f"{opening[-1]} {limits.provenance(a)}".strip()),
        f"The question was: *{escaped(a.scenario.scenario.question)}*",
        *(escaped(words) for words in answer.paragraphs(a)),
        bullets([escaped(words) for words in answer.others(a)]),
        *_of_limits(a),
        *(part for number, picture in enumerate(pictures, 1) for part in _figure(number, picture, folder)),
        "The numbers in one table:",
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
    return [drawn[name] for name in dict.fromkeys(names)] or ranked[:FIGURES]


def _of_limits(a: Analysis) -> list[str]:
    lines = answer.of_limits(a)
    if not lines:
        return []
    return [
        "Where a limit sets the rate, the change is one of limits, not of disks:",
        bullets([escaped(line) for line in lines]),
    ]


def _figure(number: int, picture: Picture, folder: str) -> list[str]:
    """A sentence that says what a figure shows, and the figure with its caption."""
    path = f"{folder}/{picture.slug}"
    links = f"([PNG]({path}@2x.png), [numbers]({path}.csv))"
    # The title of the ratios is the claim that the post's title has said.
    title = f"{picture.title} (figure {number})."
    says = f"Figure {number} shows {picture.alt}" if picture.slug == _RATIOS else title
    return [
        escaped(says),
        f"![{escaped(picture.alt)}]({path}.svg)\n\n*Figure {number}. {escaped(picture.caption)}* {links}",
    ]


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
