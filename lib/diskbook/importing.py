"""Results that others measured, made into a run: `diskbook import`.

The files are kept untouched and hashed under raw/, the scenario is derived from what they tell, and the
provenance is "imported": whatever is said of such a run rests on files whose making nobody here watched.
"""

from __future__ import annotations

import gzip
import hashlib
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from diskbook import (
    import_files,
    import_loads,
    import_logs,
    import_names,
    import_scenario,
    results,
    scenario_file,
)
from diskbook import run as runs
from diskbook.errors import DiskbookError, UsageError, unknown
from diskbook.import_files import Sorted, Source
from diskbook.import_read import with_logs
from diskbook.import_scenario import Settings
from diskbook.run import Run
from diskbook.tools.record import Measurement, Parsed

_FAST = 1  # of gzip: a large log is packed ten times as fast, and little larger


@dataclass(frozen=True)
class Imported:
    """What was made: the run, its trials, what was refused and what must be known, one sentence each."""

    run: Run
    n_trials: int
    arms: dict[str, int]
    refused: tuple[str, ...]
    flags: tuple[str, ...]


@dataclass
class Entry:
    """One measurement on its way into the run: where it is from, and what it becomes."""

    source: Source
    measurement: Measurement
    tool: str
    version: str
    part: int | None
    logs: dict[str, list[Source]] = field(default_factory=dict)
    workload: dict[str, Any] = field(default_factory=dict)
    arm: str = ""

    @property
    def old(self) -> bool:
        """Whether fio before version 3 wrote it."""
        return self.tool == "fio" and self.version.startswith(("1.", "2."))

    @property
    def started(self) -> str:
        """When it was measured, else when its file was last changed."""
        if self.measurement.started_utc:
            return self.measurement.started_utc
        changed = self.source.path.stat().st_mtime
        return datetime.fromtimestamp(changed, UTC).isoformat(timespec="microseconds")


def make(paths: Sequence[str], name: str, settings: Settings | None = None) -> Imported:
    """Import files and folders into a new run.

    Parameters
    ----------
    paths
        Result files of fio and DiskSpd, logs of fio, and folders of them.
    name
        Name of the run, or path of its folder.
    settings
        How to tell arms apart, and what is known of disk and machine.

    Returns
    -------
    Imported
        With a sentence for every file that could not be used.

    Raises
    ------
    UsageError
        For a path, name or setting that does not fit, before anything is written.
    DiskbookError
        When nothing can be used; the sentence has the first reason.
    """
    wanted = settings or Settings()
    limits = import_scenario.limits(wanted)
    if runs.folder_of(name).exists():
        raise UsageError(f"run {name} exists already; choose another --name")
    found = import_files.sort(import_files.walk(paths))
    entries = _described(_entries(found), found)
    if not entries:
        first = found.refused[0] if found.refused else "there are no files"
        more = f" (and {len(found.refused) - 1} more)" if len(found.refused) > 1 else ""
        raise DiskbookError(f"nothing can be imported: {first}{more}")
    arms = _name_arms(entries, wanted)
    if wanted.base is not None and wanted.base not in arms:
        raise unknown("arm", wanted.base, arms)
    run = runs.create(name)
    try:
        _write(run, entries, arms, found, wanted, limits, [str(path) for path in paths])
        results.write(results.build(run), run.folder)
    except BaseException:
        shutil.rmtree(run.folder)
        raise
    counts = {arm: sum(entry.arm == arm for entry in entries) for arm in arms}
    return Imported(run, len(entries), counts, tuple(found.refused), _told(found, entries))


def _entries(found: Sorted) -> list[Entry]:
    """All measurements, with the logs that belong to them, and those that logs alone tell."""
    entries = [
        Entry(source, one, parsed.tool, parsed.version, part)
        for source, parsed in found.results
        for part, one in enumerate(parsed.measurements)
    ]
    for (folder, prefix), kinds in found.logs.items():
        owners = [entry for entry in entries if entry.source.path.parent == folder and _writes(entry, prefix)]
        try:
            _attach(owners, prefix, kinds, entries, found)
        except DiskbookError as error:
            found.refused.append(str(error))
    return entries


def _writes(entry: Entry, prefix: str) -> bool:
    """Whether a job wrote logs of this name: as its options say, or named after the job."""
    told = {Path(value).name for value in entry.measurement.logs.values()}
    stem = entry.source.name.rsplit(".", 1)[0]
    return prefix in told or (not told and entry.tool == "fio" and prefix in (entry.measurement.name, stem))


def _attach(
    owners: list[Entry], prefix: str, kinds: dict[str, list[Source]], entries: list[Entry], found: Sorted
) -> None:
    """Read logs, and give them to the one job they belong to, or let them stand for themselves."""
    used = {kind: files for kind, files in kinds.items() if kind in import_logs.USED}
    for kind in kinds.keys() - used.keys():
        found.refused += [f"{file.shown}: a log of {kind} is not used" for file in kinds[kind]]
    files = {kind: [import_files.log_file(source) for source in sources] for kind, sources in used.items()}
    first = next(iter(next(iter(used.values()), [])), None)
    if first is None:
        return
    if len(owners) > 1:
        found.refused.append(
            f"{first.shown}: these logs belong to several jobs of one name; they are left out"
        )
        return
    if owners:
        owner = owners[0]
        logged = import_logs.read(
            files,
            old=owner.old,
            interval_s=owner.measurement.log_interval_s,
            block_size=owner.measurement.load.block_size_bytes,
        )
        owner.measurement = with_logs(owner.measurement, logged)
        owner.logs = used
        owner.measurement = replace(owner.measurement, flags=(*owner.measurement.flags, *logged.flags))
        return
    logged = import_logs.read(files, old=False, interval_s=None, block_size=None)
    clones = max(len(sources) for sources in used.values())
    one = import_logs.standalone(logged, prefix, clones)
    flags = (*one.flags, "latencies are taken for nanoseconds, as of fio 3")
    entries.append(Entry(first, replace(one, flags=flags), "fio", "unknown", None, used))


def _described(entries: list[Entry], found: Sorted) -> list[Entry]:
    """Entries whose load a scenario can tell; the others are refused."""
    kept = []
    for entry in entries:
        try:
            entry.workload, flags = import_loads.workload(entry.measurement, entry.tool)
        except ValueError as error:
            found.refused.append(f"{entry.source.shown}: '{entry.measurement.name}' cannot be used: {error}")
            continue
        entry.measurement = replace(entry.measurement, flags=(*entry.measurement.flags, *flags))
        kept.append(entry)
    return kept


def _name_arms(entries: list[Entry], settings: Settings) -> dict[str, str]:
    """Give every entry its arm; return the arms' names with their words.

    What one arm would pool is kept apart: tools, versions, and hosts.
    """
    for entry in entries:
        entry.arm = import_names.arm_words(entry.source, entry.measurement, entry.tool, settings.arms_by)
    for told in (lambda entry: f"{entry.tool} {entry.version}", lambda entry: entry.measurement.host):
        kinds: dict[str, set[str]] = {}
        for entry in entries:
            kinds.setdefault(entry.arm, set()).add(told(entry))
        for entry in entries:
            if len(kinds[entry.arm]) > 1:
                entry.arm = f"{entry.arm} {told(entry)}".strip()
    names = import_names.slugs(sorted({entry.arm for entry in entries}), "arm")
    for entry in entries:
        entry.arm = names[entry.arm]
    return {name: words for words, name in names.items()}


def _write(
    run: Run,
    entries: list[Entry],
    arms: dict[str, str],
    found: Sorted,
    settings: Settings,
    limits: dict[str, dict[str, float | None]],
    paths: list[str],
) -> None:
    """Keep the files, then write manifest and ledger."""
    kept = _keep(run, entries)
    scenario = import_scenario.derive(entries, arms, settings)
    scenario_file.from_dict(scenario, run.name)
    manifest = import_scenario.manifest(run.name, scenario, arms, settings, limits)
    manifest["imported"] = {"paths": paths, "files": _files(entries, kept), "refused": found.refused}
    run.write_manifest(manifest)
    run.append("begin", scenario=scenario["name"], preset=scenario["preset"], cloud="none")
    for number, block in enumerate(import_scenario.blocks(entries), 1):
        for position, entry in enumerate(block, 1):
            _append(run, entry, number, position, kept)
        run.append("block", replicate=1, block=number, status="complete")
    run.append("stage", stage="benchmark")


def _append(run: Run, entry: Entry, block: int, position: int, kept: dict[Path, dict[str, str]]) -> None:
    logs = {kind: [f"log-{kind}-{n}" for n in range(1, len(files) + 1)] for kind, files in entry.logs.items()}
    files = {"json": kept[entry.source.path]}
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
            "old": entry.old,
            "interval_s": entry.measurement.log_interval_s,
            "block_size": entry.measurement.load.block_size_bytes,
        },
    )


def _keep(run: Run, entries: list[Entry]) -> dict[Path, dict[str, str]]:
    """Keep every file that is used, once; return path and hash of each."""
    sources = {entry.source.path: entry.source for entry in entries}
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
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix=".", delete=False) as file:
        with gzip.GzipFile("", "wb", _FAST, file, mtime=0) as packed, source.open() as stream:
            for piece in import_files.bytes_of(stream):
                digest.update(piece)
                packed.write(piece)
    Path(file.name).chmod(0o644)
    Path(file.name).replace(target)
    return digest.hexdigest()


def _files(entries: list[Entry], kept: dict[Path, dict[str, str]]) -> list[dict[str, Any]]:
    """What was imported, file by file, for the manifest."""
    rows: dict[Path, dict[str, Any]] = {}
    for entry in entries:
        row = rows.setdefault(
            entry.source.path,
            {
                "file": entry.source.shown,
                **kept[entry.source.path],
                "tool": entry.tool,
                "tool_version": entry.version,
                "measurements": 0,
            },
        )
        row["measurements"] += 1
    return list(rows.values())


def _told(found: Sorted, entries: Iterable[Entry]) -> tuple[str, ...]:
    """Flags with the files they hold for: one line a flag."""
    places: dict[str, list[str]] = {}
    for source, parsed in found.results:
        for flag in parsed.flags:
            places.setdefault(flag, []).append(source.shown)
    for entry in entries:
        for flag in entry.measurement.flags:
            places.setdefault(flag, []).append(entry.source.shown)
    return tuple(f"{flag} ({_some(dict.fromkeys(files))})" for flag, files in places.items())


def _some(files: Iterable[str]) -> str:
    names = list(files)
    return names[0] if len(names) == 1 else f"{len(names)} files, e.g. {names[0]}"


__all__ = ["Entry", "Imported", "Parsed", "Settings", "make"]
