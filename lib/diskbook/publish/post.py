"""`diskbook post`: a run as Markdown that a writer would send to an editor, with two figures next to it."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from diskbook.design import scenario_file
from diskbook.design.vocabulary import Provenance
from diskbook.facts import paths, table_writers
from diskbook.facts.errors import UsageError, unknown, visible
from diskbook.facts.files import write_atomic
from diskbook.facts.table_writers import Table, bullets, code, markdown_escaped as escaped, numbered
from diskbook.publish import post_words
from diskbook.report.analysis import write as analysis_write
from diskbook.report.analysis.run import Analysis
from diskbook.report.figures import Picture, as_png, as_svg, data_csv
from diskbook.report.show import locations
from diskbook.results.run import Run

FIGURES = 2
"""Figures of a post: an editor takes no more."""
_RATIOS, _STRIP = "ratios", "all-trials"


def post(a: Analysis, pictures: Sequence[Picture], folder: str) -> str:
    """Write a post; figures are linked in the folder named, which lies beside it.

    - `pictures`: its figures, as `chosen` picks them.
    - `folder`: name of their folder.
    """
    title, opening = post_words.title(a), post_words.opening(a)
    parts = [
        f"---\ntitle: {json.dumps(visible(title), ensure_ascii=False)}\n"
        f"description: {json.dumps(visible(post_words.first(a)), ensure_ascii=False)}\n---",
        f"# {escaped(title)}",
        *(escaped(words) for words in opening[:-1]),
        escaped(f"{opening[-1]} {post_words.provenance(a)}".strip()),
        f"The question was: *{escaped(a.scenario.scenario.question)}*",
        *(escaped(words) for words in post_words.paragraphs(a)),
        bullets([escaped(words) for words in post_words.others(a)]),
        *_of_limits(a),
        *(part for number, picture in enumerate(pictures, 1) for part in _figure(number, picture, folder)),
        "The numbers in one table:",
        table_writers.markdown(Table.of(*_table(a))),
        "## Method",
        numbered([escaped(line) for line in post_words.lines(a)]),
        "## Limits",
        bullets([escaped(line) for line in post_words.limits(a)]),
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

    Raises UsageError when there is no figure of such a name, or more are named than a post has.
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
    lines = post_words.of_limits(a)
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
    """The table of a post: the scenario's own for this run, where it has one, else that of the headlines."""
    own: Any = getattr(a.module, "post_table", None)
    table: tuple[pd.DataFrame, str] | None = own(a) if callable(own) else None
    return table or post_words.table(a)


def _again(a: Analysis) -> list[str]:
    parts = ["In a clone of the workbook, after `make setup`:", code(*post_words.again(a))]
    if a.provenance == Provenance.EMULATED and a.scenario.name in scenario_file.names():
        name = a.scenario.name
        azure = [f"diskbook {word} {name} --cloud azure --preset standard" for word in ("plan", "run")]
        parts += ["On Azure itself (`plan` says first what it takes and costs):", code(*azure)]
    return parts


def _source(a: Analysis) -> str:
    version = (a.manifest.get("versions") or {}).get("diskbook")
    by = f" by diskbook {version}" if version else ""
    made = f"Run {a.run.name}, {locations.dates(a)} UTC{by}; {locations.ran_on(a)}"
    return f"{made}. Its folder has raw results and report."


_OWNER = re.compile(re.escape(owner_line("@")).replace("@", r"(\S+)") + r"\s*$")


def contents(a: Analysis, names: Sequence[str] = ()) -> dict[str, bytes]:
    """Render a post: its files by their path beside each other, the Markdown first.

    - `names`: names of its figures; by default the two that carry the answer.
    """
    name = name_of(a.run)
    pictures = chosen(a, analysis_write.figures_of(a), names)
    files = {f"{name}.md": post(a, pictures, name).encode()}
    for picture in pictures:
        files |= {f"{name}/{file}": content for file, content in _drawn(picture).items()}
    return files


def write(a: Analysis, out: Path | None = None, names: Sequence[str] = (), *, force: bool = False) -> Path:
    """Write the post of a run into a folder; return the path of its Markdown.

    What an earlier post of the run has, and this one has not, is removed.

    Raises UsageError when a post of another run is there, or a folder of no post, and is to stay.
    """
    target = (out or folder_of(a.run)) / f"{name_of(a.run)}.md"
    if not force:
        refuse_others(a.run, target)
    files = contents(a, names)
    _replace(target, files)
    return target


def _replace(target: Path, files: Mapping[str, bytes]) -> None:
    """Write the files of a post, the Markdown last, and remove what the earlier one linked besides."""
    earlier = _linked(target)
    target.with_name(target.stem).mkdir(parents=True, exist_ok=True)
    for path in reversed(list(files)):
        write_atomic(target.parent / path, files[path])
    for path in earlier - files.keys():
        (target.parent / path).unlink(missing_ok=True)


def refuse_others(run: Run, target: Path) -> None:
    """Refuse to write over the post of another run, told by the run that its last line names.

    Raises UsageError when one is there, or figures without a post.
    """
    owner = _owner(target)
    figures = target.with_name(target.stem)
    there = target if target.exists() else figures
    if owner == run.name or not (target.exists() or (figures.is_dir() and any(figures.iterdir()))):
        return
    whose = f"is of run {owner}" if owner else "is of no run that is known"
    raise UsageError(
        f"{there} {whose}, not of {run.name}: name another folder with --out, or replace it with --force"
    )


def folder_of(run: Run) -> Path:
    """Folder of a run's post: docs/posts of a committed sample, else posts."""
    return paths.POSTS if _is_sample(run) else paths.ROOT / "posts"


def name_of(run: Run) -> str:
    """Name of a run's post: the run's, of a committed sample the scenario's."""
    return run.scenario.name if _is_sample(run) else run.name


def _is_sample(run: Run) -> bool:
    return run.name == f"sample-{run.scenario.name}"


def _drawn(picture: Picture) -> dict[str, bytes]:
    """Files of a figure: for pages, for those who take no SVG, and its numbers."""
    return {
        f"{picture.slug}.svg": as_svg(picture),
        f"{picture.slug}@2x.png": as_png(picture),
        f"{picture.slug}.csv": data_csv(picture.data),
    }


def _read(target: Path) -> str:
    try:
        return target.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def _owner(target: Path) -> str:
    match = _OWNER.search(_read(target))
    return match[1] if match else ""


def _linked(target: Path) -> set[str]:
    """Files in its own folder that an earlier post links."""
    name = re.escape(target.stem)
    links: Iterable[str] = re.findall(rf"\]\(({name}/[\w@.-]+)\)", _read(target))
    return {link for link in links if ".." not in link}
