"""The runs that were shared with everybody: data/shared, and those in quarantine with the reason."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from diskbook.design.vocabulary import Provenance, Verdict
from diskbook.facts import paths
from diskbook.facts.errors import DiskbookError, visible
from diskbook.results.run import Run
from diskbook.sharing import take

FOLDER = paths.DATA / "shared"
QUARANTINE = "quarantine"


def known() -> tuple[list[Run], list[tuple[str, str]]]:
    """Read the shared runs, each imported once into the cache; and names and reasons of those left aside.

    Emulated ones are left aside: they say nothing about Azure, and must not stand beside its runs. So are
    runs all of whose headlines a gate refused.
    """
    shown: list[Run] = []
    aside: list[tuple[str, str]] = []
    for path in sorted(FOLDER.glob("*.zip")):
        try:
            run = _imported(path)
        except DiskbookError as error:
            aside.append((path.name, str(error)))
            continue
        if run.manifest["provenance"] == Provenance.EMULATED:
            aside.append((path.name, "it is emulated, and says nothing about Azure"))
        elif why := _failed(run):
            aside.append((path.name, f"no headline can be read: {why}"))
        else:
            shown.append(run)
    return shown, [*aside, *_quarantined()]


def _failed(run: Run) -> str:
    """Why every headline of a run was refused by a gate; empty where one was not."""
    rows = pd.read_csv(run.folder / "comparisons.csv", keep_default_na=False)
    headlines = rows[rows["family"] == "headline"]
    is_refused = len(headlines) > 0 and (headlines["verdict"] == Verdict.INVALID).all()
    return str(headlines["warnings"].iloc[0]) if is_refused else ""


def _imported(path: Path) -> Run:
    root = paths.CACHE / "shared" / hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    made = next(root.glob("*/manifest.json"), None)
    return Run(made.parent) if made else take.take(path, root=root).run


def _quarantined() -> Iterator[tuple[str, str]]:
    for path in sorted((FOLDER / QUARANTINE).glob("*.zip")):
        reason = path.with_suffix(".txt")
        words = reason.read_text("utf-8").strip() if reason.exists() else "no reason is given"
        yield path.name, visible(" ".join(words.split()))
