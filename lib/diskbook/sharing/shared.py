"""The runs that were shared with everybody: data/shared, and those in quarantine with the reason."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from diskbook.design.vocabulary import Provenance
from diskbook.facts import paths
from diskbook.facts.errors import DiskbookError, visible
from diskbook.results.run import Run
from diskbook.sharing import take

FOLDER = paths.DATA / "shared"
QUARANTINE = "quarantine"


def known() -> tuple[list[Run], list[tuple[str, str]]]:
    """Read the shared runs, each imported once into the cache; and names and reasons of those left aside.

    Emulated ones are left aside: they say nothing about Azure, and must not stand beside its runs.
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
        else:
            shown.append(run)
    return shown, [*aside, *_quarantined()]


def _imported(path: Path) -> Run:
    root = paths.CACHE / "shared" / hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    made = next(root.glob("*/manifest.json"), None)
    return Run(made.parent) if made else take.take(path, root=root).run


def _quarantined() -> Iterator[tuple[str, str]]:
    for path in sorted((FOLDER / QUARANTINE).glob("*.zip")):
        reason = path.with_suffix(".txt")
        words = reason.read_text("utf-8").strip() if reason.exists() else "no reason is given"
        yield path.name, visible(" ".join(words.split()))
