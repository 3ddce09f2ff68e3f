"""Writing an imported run: the originals under raw/, the manifest, the ledger."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path
from typing import Any

from diskbook import load
from diskbook.analysis.named_limits import Named
from diskbook.base.files import replacing
from diskbook.importing import (
    files as import_files,
    loads,
    names as import_names,
    scenario as import_scenario,
)
from diskbook.importing.files import Source
from diskbook.importing.pairing import Entry
from diskbook.importing.scenario import Settings
from diskbook.store.run import Run
from diskbook.tools import registry

_FAST = 1  # of gzip: a large log is packed ten times as fast, and little larger


def write(
    run: Run,
    entries: list[Entry],
    arms: dict[str, str],
    refused: list[str],
    settings: Settings,
    limits: dict[str, dict[str, float | None]],
    paths: list[str],
) -> None:
    """Keep the files, then write manifest and ledger.

    Parameters
    ----------
    run
        A new run.
    entries, arms, refused
        What was read, the arms' names with their words, and what was not used.
    settings, limits, paths
        As the user gave them, and what follows from them (see `import_scenario.limits`).

    Raises
    ------
    UsageError
        When the scenario derived is none.
    """
    kept = _keep(run, entries)
    scenario = import_scenario.derive(entries, arms, settings)
    load.from_dict(scenario, run.name)
    manifest = import_scenario.manifest(run.name, scenario, arms, settings, limits)
    manifest["imported"] = {"paths": paths, "files": _files(entries, kept), "refused": refused}
    manifest["imported"]["named"] = Named.of(settings).given
    run.write_manifest(manifest)
    run.append("begin", scenario=scenario["name"], preset=scenario["preset"], cloud="none")
    for number, block in enumerate(import_scenario.blocks(entries), 1):
        for position, entry in enumerate(block, 1):
            _append(run, entry, number, position, kept)
        run.append("block", replicate=1, block=number, status="complete")
    run.append("stage", stage="benchmark")


def _append(run: Run, entry: Entry, block: int, position: int, kept: dict[Path, dict[str, str]]) -> None:
    # Long: a line of the ledger, key by key.
    logs = {kind: [f"log-{kind}-{n}" for n in range(1, len(files) + 1)] for kind, files in entry.logs.items()}
    files = {registry.IMPORTED: kept[entry.source.path]}
    machines = {vm: f"machine-{n}" for n, vm in enumerate(entry.machines, 1)}
    files |= {machines[vm]: kept[source.path] for vm, source in entry.machines.items()}
    for kind, names in logs.items():
        sources = zip(names, entry.logs[kind], strict=True)
        files |= {name: kept[source.path] for name, source in sources}
    started = entry.started
    run.append(
        "trial",
        trial=f"r1-b{block:03d}-p{position:03d}-{entry.arm}",
        workload=entry.workload["name"],
        arm=entry.arm,
        replicate=1,
        block=block,
        repeat=1,
        position=position,
        attempt=1,
        machine=import_scenario.machine_of(entry),
        machine_id=entry.measurement.host or "unknown",
        disk=entry.arm,
        disk_id=entry.measurement.target or "unknown",
        tool=entry.tool,
        status="ok",
        error=None,
        started_utc=started,
        ended_utc=started,
        files=files,
        flags=list(entry.measurement.flags),
        imported={
            "part": entry.part,
            "logs": logs,
            **({"machines": machines} if machines else {}),
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
    with replacing(target) as part, part.open("wb") as file:
        with gzip.GzipFile("", "wb", _FAST, file, mtime=0) as packed, source.open() as stream:
            for piece in import_files.bytes_of(stream):
                digest.update(piece)
                packed.write(piece)
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
