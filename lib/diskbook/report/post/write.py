"""Writing a post: <name>.md, and its figures in a folder <name> next to it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from diskbook.facts import paths
from diskbook.facts.errors import UsageError
from diskbook.facts.files import write_atomic
from diskbook.report.analysis import write as analysis_write
from diskbook.report.analysis.run import Analysis
from diskbook.report.figures import Picture, as_png, as_svg, data_csv
from diskbook.report.post import article
from diskbook.results.run import Run

_OWNER = re.compile(re.escape(article.owner_line("@")).replace("@", r"(\S+)") + r"\s*$")


def contents(a: Analysis, names: Sequence[str] = ()) -> dict[str, bytes]:
    """Render a post: its files by their path beside each other, the Markdown first.

    Parameters
    ----------
    a
        Analysis of a run.
    names
        Names of its figures; by default the two that carry the answer.
    """
    name = name_of(a.run)
    pictures = article.chosen(a, analysis_write.figures_of(a), names)
    files = {f"{name}.md": article.post(a, pictures, name).encode()}
    for picture in pictures:
        files |= {f"{name}/{file}": content for file, content in _drawn(picture).items()}
    return files


def write(a: Analysis, out: Path | None = None, names: Sequence[str] = (), *, force: bool = False) -> Path:
    """Write the post of a run into a folder; return the path of its Markdown.

    What an earlier post of the run has, and this one has not, is removed.

    Raises
    ------
    UsageError
        When a post of another run is there, or a folder of no post, and is to stay.
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

    Raises
    ------
    UsageError
        When one is there, or figures without a post.
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
