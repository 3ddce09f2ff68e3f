"""`diskbook run --record` and `diskbook record`: what a run exchanged with Azure, in one file to send.

The exchanges are scrubbed before they are written (`azure.record`), and once more when they are packed, by
what the whole run has taught: a name that is first seen late is then replaced in earlier messages too.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import zipfile
import zlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diskbook.cloud.azure.recording import of_run as recording, recorder as record
from diskbook.cloud.azure.recording.pseudonyms import GIVEN, Pseudonyms, kind_of
from diskbook.facts.errors import DiskbookError, UsageError
from diskbook.results.run import Run

PACK = "record.zip"
_WHEN = (1980, 1, 1, 0, 0, 0)  # the earliest that a ZIP can say: when it was packed is nobody's business


@dataclass(frozen=True)
class Pack:
    """The file to send, and what is in it, in words."""

    path: Path
    words: str


def begin(run: Run) -> None:
    """Have the exchanges of a run recorded from now on; UsageError where there are none."""
    if run.manifest["cloud"] == "inventory":
        raise UsageError("--record keeps exchanges with Azure, and a run on hosts of your own has none")
    run.update_manifest(**{record.KEY: True})


def pack(run: Run) -> Pack:
    """Pack a run's record and its manifest, and list what was replaced.

    Raises
    ------
    UsageError
        When the run was not recorded.
    DiskbookError
        When it was not begun here, so that its pseudonyms cannot be known, or the record is damaged.
    """
    if not (run.folder / record.FILE).exists():
        raise UsageError(f"run {run.name} has no {record.FILE}: begin a run with --record")
    run.check_signed()
    rows = _rows(run.folder / record.FILE)
    scrubber = recording.scrubber_of(run)
    for row in rows:
        row.pop("names", None)  # of records made before all that was replaced was known
        scrubber.names.kinds |= {name: kind_of(kind) for name, kind in row.pop("replaced", {}).items()}
    manifest = json.dumps(scrubber.json(run.manifest), indent=1)
    lines = [json.dumps(record.scrubbed(row, scrubber)) for row in rows]
    listed = _listed(scrubber.names, "\n".join([manifest, *lines]))
    parts = {"arm.jsonl": "\n".join([*lines, ""]), "manifest.json": manifest, "replaced.csv": _csv(listed)}
    run.write(PACK, _zipped(parts))
    return Pack(run.folder / PACK, _words(run, len(rows), listed))


def _rows(path: Path) -> list[dict[str, Any]]:
    try:
        return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise DiskbookError(f"{path} is damaged ({error}); what is left of it cannot be packed") from None


def _listed(names: Pseudonyms, text: str) -> list[tuple[str, str, int]]:
    """Pseudonym, kind and count of all that stand in a text, the commonest first."""
    counts = Counter(match[0].lower() for match in GIVEN.finditer(text))
    return [(name, names.kinds.get(name, "value"), count) for name, count in counts.most_common()]


def _csv(listed: list[tuple[str, str, int]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([("pseudonym", "stands for", "times"), *listed])
    return text.getvalue()


def _zipped(parts: Mapping[str, str]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in parts.items():
            file.writestr(zipfile.ZipInfo(name, _WHEN), text, zipfile.ZIP_DEFLATED)
    return content.getvalue()


def _words(run: Run, exchanges: int, listed: list[tuple[str, str, int]]) -> str:
    kinds = Counter(kind for _, kind, _ in listed)
    shown = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    return (
        f"{run.folder / PACK}: {exchanges} exchanges and the manifest\n"
        f"replaced by pseudonyms: {len(listed)} originals ({shown})\n"
        "replaced.csv in it lists every pseudonym and what kind of thing it stands for, never the original; "
        "look through it before you send it"
    )
