"""Paths of the workbook, names of the articles, and settings of the environment.

Paths are relative to the clone. The articles are those of `data/reference/articles.csv`.

A setting of the environment that makes no sense is refused in one sentence.
"""

import csv
import os
import re
from functools import cache
from pathlib import Path

from diskbook.facts.errors import UsageError

ROOT = Path(__file__).resolve().parents[3]
NOTEBOOKS = ROOT / "notebooks"
DATA = ROOT / "data"
SCENARIOS = DATA / "scenarios"
PROFILES = DATA / "profiles"
REFERENCE = DATA / "reference"
RUNS = DATA / "runs"
FIGURES = ROOT / "figures"
POSTS = ROOT / "docs" / "posts"
CACHE = ROOT / ".tools" / "cache"  # what can be made again: the compiled plugin, matplotlib's list of fonts

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://.*", re.DOTALL)


def is_address(text: object) -> bool:
    """Whether a name that was given for a run or a place is an address of a store."""
    return _ADDRESS.fullmatch(str(text)) is not None


def runs_root() -> Path:
    """Folder that holds the runs: $DISKBOOK_RUNS, else data/runs of the clone."""
    return Path(os.environ.get("DISKBOOK_RUNS", RUNS))


@cache
def article_names() -> tuple[str, ...]:
    """Names of the articles, in the order of the table."""
    with (REFERENCE / "articles.csv").open(encoding="utf-8", newline="") as file:
        return tuple(row["article"] for row in csv.DictReader(file))


SSH_CONFIG = "DISKBOOK_SSH_CONFIG"
"""Names another file than ~/.ssh/config, as `ssh -F` does; known hosts and keys may be named in it."""


def seconds_from_environment(variable: str, usual: float, most: float) -> float:
    """Read how long something may take, s.

    - `usual`: what holds where it is not set, or empty.
    - `most`: the longest that is allowed, s; more is taken for as much.

    Raises UsageError when it is not a number above 0.
    """
    text = os.environ.get(variable) or str(usual)
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not value > 0:
        raise UsageError(
            f"environment: {variable} is '{text}', and must be a number of seconds above 0, as {usual:g}; "
            "set it to one, or take it away"
        )
    return min(value, most)
