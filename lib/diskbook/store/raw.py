"""Reading the raw results of a trial: unpack, hold against its hash, parse."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diskbook.base.errors import DiskbookError
from diskbook.scenario.model import Workload
from diskbook.tools import fio, registry


@dataclass(frozen=True)
class Trial:
    """What a tool measured in one trial, by direction: totals with histogram, and series."""

    directions: dict[str, fio.Direction]
    series: dict[str, fio.Series]
    tool_version: str | None = None


def read_bytes(folder: Path, entry: Mapping[str, str]) -> bytes:
    """Return the content of a raw file as the tool wrote it.

    Parameters
    ----------
    folder
        The run folder.
    entry
        `path` in it, and `sha256` of the uncompressed bytes, as the ledger has them.

    Raises
    ------
    DiskbookError
        When the file is missing, damaged, or not what was measured.
    """
    path = folder / entry["path"]
    try:
        content = gzip.decompress(path.read_bytes())
    except FileNotFoundError:
        raise DiskbookError(f"{path} is missing; restore the raw results of this run") from None
    except (OSError, EOFError, zlib.error) as error:
        raise DiskbookError(f"{path} cannot be unpacked ({error}); restore the raw results") from None
    if hashlib.sha256(content).hexdigest() != entry["sha256"]:
        raise DiskbookError(
            f"{path} was changed after the trial: its hash differs from the ledger's; restore it"
        )
    return content


def read_trial(folder: Path, event: Mapping[str, Any], workload: Workload) -> Trial:
    """Read and parse the files of a finished trial.

    Raises
    ------
    DiskbookError
        See `read_bytes`; `UnusableError` when the output is not usable.
    """
    files, tool = event.get("files") or {}, registry.TOOLS[event.get("tool") or "fio"]
    if tool.main not in files:
        raise DiskbookError(
            f"{folder.name}: the ledger has no raw file for the finished trial {event['trial']}; restore it"
        )
    text = {kind: read_bytes(folder, entry).decode("utf-8", "replace") for kind, entry in files.items()}
    found = tool.read(text, files[tool.main]["path"], workload, whole=False)
    return Trial(found.directions, found.series, found.version)
