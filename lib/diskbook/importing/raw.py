"""Reading the trials of an imported run back from its raw files: any tool and format, with their logs."""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from diskbook.facts import files
from diskbook.facts.errors import DiskbookError
from diskbook.facts.neighbours import vmfleet_results as vmfleet
from diskbook.facts.units import MIB
from diskbook.importing import fleets, formats, table
from diskbook.importing.fio import logs_of_a_job as job_logs
from diskbook.importing.fio.logs_of_a_job import LogFile
from diskbook.results.attached import path_of, read_bytes
from diskbook.tools import registry
from diskbook.tools.record import Measurement, Parsed, UnusableError

_CHUNK = MIB


def read_trial(folder: Path, event: Mapping[str, Any]) -> Measurement:
    """Read a trial of an imported run; its line of the ledger says which part of which file it is.

    Raises DiskbookError when a raw file is missing, was changed, or does not say any more what it said when
    it was imported.
    """
    settings_kept, files = event["imported"], event["files"]
    if "machines" in settings_kept:
        return _fleet(folder, event)
    logs = {
        kind: [_log_file(folder, files[key]) for key in keys]
        for kind, keys in settings_kept.get("logs", {}).items()
    }
    settings = {
        "old": settings_kept["old"],
        "interval_s": settings_kept["interval_s"],
        "block_size": settings_kept["block_size"],
    }
    job_log = job_logs.read(logs, **settings) if logs else None
    if settings_kept["part"] is None:
        assert job_log is not None
        measurement, version = job_logs.standalone(job_log, event["trial"], 1), None
    else:
        result = files[registry.IMPORTED]
        columns = tuple((name, source) for name, source in settings_kept.get("columns", ()))
        parsed = _parsed(folder, result["path"], result["sha256"], _stamp(folder, result), columns)
        if settings_kept["part"] >= len(parsed.measurements):
            raise DiskbookError(
                f"{folder / result['path']}: this version reads fewer measurements from it than were "
                "imported; import it again"
            )
        measurement, version = parsed.measurements[settings_kept["part"]], parsed.version
    return replace(job_logs.with_logs(measurement, job_log), version=settings_kept.get("version", version))


def _fleet(folder: Path, event: Mapping[str, Any]) -> Measurement:
    """Join the results of a fleet's machines again."""
    entries = {vm: event["files"][key] for vm, key in event["imported"]["machines"].items()}
    results = {
        vm: _parsed(folder, entry["path"], entry["sha256"], _stamp(folder, entry))
        for vm, entry in entries.items()
    }
    try:
        if parts := event["imported"].get("parts"):
            clients = {vm: parsed.measurements[parts[vm]] for vm, parsed in results.items()}
            version = event["imported"].get("version", next(iter(results.values())).version)
            return replace(fleets.together(clients, event["trial"]), version=version)
        machines = [vmfleet.machine(vm, parsed, entries[vm]["path"]) for vm, parsed in results.items()]
        return replace(vmfleet.join(machines, event["trial"]), version=machines[0].version)
    except UnusableError as error:
        raise DiskbookError(f"{folder.name}: {error}; import it again") from None


def _stamp(folder: Path, entry: Mapping[str, str]) -> int:
    """When the raw file was last changed: a file that was, is read and checked again."""
    try:
        return path_of(folder, entry).stat().st_mtime_ns
    except OSError:
        return 0


@lru_cache(maxsize=16)
def _parsed(folder: Path, path: str, sha256: str, _changed_ns: int, columns: table.Columns = ()) -> Parsed:
    """Read a raw file once for all its parts; `columns` is the mapping of a table."""
    try:
        content = read_bytes(folder, {"path": path, "sha256": sha256})
        return table.parse(content, path, columns) if columns else formats.parse(content, path)
    except UnusableError as error:
        raise DiskbookError(f"{folder.name}: {error}; import it again") from None


def _log_file(folder: Path, entry: Mapping[str, str]) -> LogFile:
    """A raw log, which may be large: checked against its hash, never held as a whole."""
    path = path_of(folder, entry)
    _check(path, entry["sha256"])
    return LogFile(entry["path"], lambda: files.open_packed(path))


def _check(path: Path, sha256: str) -> None:
    digest = hashlib.sha256()
    try:
        with files.open_packed(path) as stream:
            while chunk := stream.read(_CHUNK):
                digest.update(chunk)
    except FileNotFoundError:
        raise DiskbookError(f"{path} is missing; restore the raw results of this run") from None
    except (OSError, files.BrokenError) as error:
        why = getattr(error, "why", error)
        raise DiskbookError(f"{path} cannot be unpacked ({why}); restore the raw results") from None
    if digest.hexdigest() != sha256:
        raise DiskbookError(
            f"{path} was changed after it was imported: its hash differs from the ledger's; restore it"
        )
