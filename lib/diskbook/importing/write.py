"""Writing an imported run: the originals under raw/, the manifest, the ledger."""

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from diskbook.facts.errors import DiskbookError
from diskbook.importing import (
    files as import_files,
    loads,
    names as import_names,
    scenario as import_scenario,
)
from diskbook.importing.files import Source
from diskbook.importing.pairing import Entry
from diskbook.results.run import Run
from diskbook.tools import registry
from diskbook.tools.record import Measurement

_FAST = 1  # of gzip: a large log is packed ten times as fast, and little larger


def write(
    run: Run, entries: list[Entry], scenario: dict[str, Any], manifest: dict[str, Any]
) -> dict[str, Measurement]:
    """Keep the files, then write the manifest with them, and the ledger.

    Returns each trial's measurement, as `raw.read_trial` reads it from what was written.
    Raises DiskbookError when a file was written to after it was read.
    """
    kept = _keep(run, entries)
    manifest["imported"]["files"] = _files(entries, kept)
    run.write_manifest(manifest)
    run.append("begin", scenario=scenario["name"], preset=scenario["preset"], cloud="none")
    arms = {item["name"]: item for item in scenario["arm"]}
    measured, events = {}, list[tuple[str, dict[str, Any]]]()
    for (replicate, number), block in import_scenario.blocks(entries).items():
        for position, entry in enumerate(block, 1):
            trial = f"r{entry.replicate}-b{entry.block:03d}-p{position:03d}-{entry.arm}"
            events.append(("trial", _trial(entry, (trial, position), kept, arms[entry.arm])))
            measured[trial] = replace(entry.measurement, version=_version(entry))
        events.append(("block", {"replicate": replicate, "block": number, "status": "complete"}))
    run.append_all([*events, ("stage", {"stage": "benchmark"})])
    return measured


def _version(entry: Entry) -> str | None:
    """Version in the tables: the file's, or the one that others of its arm have; None for logs alone."""
    is_told = entry.part is not None or entry.machines
    return entry.taken_version or (entry.version if is_told else None)


def _trial(
    entry: Entry, place: tuple[str, int], kept: dict[Path, dict[str, str]], arm: Mapping[str, Any]
) -> dict[str, Any]:
    # Long: a line of the ledger, key by key.
    logs = {kind: [f"log-{kind}-{n}" for n in range(1, len(files) + 1)] for kind, files in entry.logs.items()}
    files = {registry.IMPORTED: kept[entry.source.path]}
    machines = {vm: f"machine-{n}" for n, vm in enumerate(entry.machines, 1)}
    files |= {machines[vm]: kept[source.path] for vm, source in entry.machines.items()}
    for kind, names in logs.items():
        sources = zip(names, entry.logs[kind], strict=True)
        files |= {name: kept[source.path] for name, source in sources}
    started = entry.started
    trial, position = place
    volume = {"volume": arm.get("volume"), "owner": arm.get("owner") or arm["machine"]}
    recorded = {
        "machines": machines,
        "parts": entry.parts,
        "version": entry.taken_version,
        "columns": [list(pair) for pair in entry.columns],
    }
    return dict(
        trial=trial,
        workload=entry.workload["name"],
        arm=entry.arm,
        replicate=entry.replicate,
        block=entry.block,
        repeat=entry.repeat,
        position=position,
        attempt=1,
        machine=arm["machine"],
        machine_id=entry.measurement.host or "unknown",
        disk=arm["disk"],
        disk_id=entry.measurement.target or "unknown",
        tool=entry.tool,
        status="ok",
        error=None,
        started_utc=started,
        ended_utc=started,
        files=files,
        flags=list(entry.measurement.flags),
        **(volume if arm.get("volume") else {}),
        imported={
            "part": entry.part,
            "logs": logs,
            **{key: value for key, value in recorded.items() if value},
            "old": entry.old,
            "interval_s": entry.measurement.log_interval_s,
            "block_size": entry.measurement.load.block_size_bytes,
            "asked": loads.asked(entry.measurement),
        },
    )


def _keep(run: Run, entries: list[Entry]) -> dict[Path, dict[str, str]]:
    """Keep every file that is used, once; return path and hash of each."""
    sources = {entry.source.path: entry.source for entry in entries}
    sources |= {file.path: file for entry in entries for file in entry.machines.values()}
    sources |= {log.path: log for entry in entries for files in entry.logs.values() for log in files}
    folder = run.folder / "raw"
    folder.mkdir()
    kept = {}
    for number, (path, source) in enumerate(sources.items(), 1):
        name = import_names.slugs([source.name], "file")[source.name]
        target = folder / f"{number:05d}-{name}.gz"
        kept[path] = {"path": str(target.relative_to(run.folder)), "sha256": _pack(source, target)}
    return kept


def _pack(source: Source, target: Path) -> str:
    """Copy a file, packed, and return the hash of its content; piece by piece, since logs are large."""
    digest = hashlib.sha256()
    with target.open("xb") as file, gzip.GzipFile("", "wb", _FAST, file, mtime=0) as packed:
        with source.open() as stream:
            for piece in import_files.bytes_of(stream):
                digest.update(piece)
                packed.write(piece)
    if source.was_changed():
        raise DiskbookError(
            f"{source.shown} was written to while it was imported; import it when it is whole"
        )
    return digest.hexdigest()


def _files(entries: list[Entry], kept: dict[Path, dict[str, str]]) -> list[dict[str, Any]]:
    """What was imported, file by file, for the manifest."""
    rows: dict[Path, dict[str, Any]] = {}
    for entry in entries:
        for source in entry.machines.values() or [entry.source]:
            row = rows.setdefault(
                source.path,
                {
                    "file": source.shown,
                    **kept[source.path],
                    "tool": entry.tool,
                    "tool_version": entry.version,
                    "measurements": 0,
                },
            )
            row["measurements"] += 1
    return list(rows.values())
