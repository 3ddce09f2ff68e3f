"""Reading the raw results of a trial: unpack, check against its hash, parse."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from diskbook.design.model import Workload
from diskbook.facts import files
from diskbook.facts.errors import DiskbookError
from diskbook.tools import registry
from diskbook.tools.record import Measurement


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
        When the file is missing, damaged, too large, or not what was measured.
    """
    path = path_of(folder, entry)
    try:
        content = files.read_packed(path)
    except FileNotFoundError:
        raise DiskbookError(f"{path} is missing; restore the raw results of this run") from None
    except (OSError, files.BrokenError) as error:
        why = getattr(error, "why", error)
        raise DiskbookError(f"{path} cannot be unpacked ({why}); restore the raw results") from None
    if hashlib.sha256(content).hexdigest() != entry["sha256"]:
        raise DiskbookError(
            f"{path} was changed after the trial: its hash differs from the ledger's; restore it"
        )
    return content


def path_of(folder: Path, entry: Mapping[str, str]) -> Path:
    """Path of a raw file, which lies in the run's own folder of raw files, whatever the ledger says.

    Raises
    ------
    DiskbookError
        When the ledger names another place, or what is there is no file.
    """
    place = PurePosixPath(entry["path"])
    path = folder / place
    if place.parts[:1] != ("raw",) or ".." in place.parts or (path.exists() and not path.is_file()):
        raise DiskbookError(
            f"the ledger of {folder.name} names {str(place)!r} as a raw file; restore the ledger"
        )
    return path


def read_trial(folder: Path, event: Mapping[str, Any], workload: Workload) -> Measurement:
    """Read and parse the files of a finished trial.

    Raises
    ------
    DiskbookError
        See `read_bytes`; `UnusableError` when the output is not usable.
    """
    tool, result = registry.TOOLS[registry.name_of(event)], registry.result_file(event)
    if result is None:
        raise DiskbookError(
            f"{folder.name}: the ledger has no raw file for the finished trial {event['trial']}; restore it"
        )
    files = {kind: read_bytes(folder, entry) for kind, entry in event["files"].items()}
    return tool.read(files, result["path"], series_s=workload.series_s, instances=workload.instances)
