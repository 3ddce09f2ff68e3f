"""The measurements of an import: those of result files with their logs, and those that logs alone tell."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from diskbook.design.model import FLEET
from diskbook.facts.errors import DiskbookError, visible
from diskbook.facts.units import NS_PER_US, utc_text
from diskbook.importing import contradictions, files as import_files, fleets, loads, table
from diskbook.importing.files import Sorted, Source
from diskbook.importing.fio import log_unit, logs_of_a_job as job_logs
from diskbook.importing.fio.logs_of_a_job import LogFile
from diskbook.importing.layout import Meaning
from diskbook.tools import fio, registry
from diskbook.tools.record import Measurement, UnusableError

UNKNOWN = "unknown"


@dataclass
class Entry:
    """One measurement on its way into the run: where it is from, and what it becomes.

    `machines` are the files of a fleet, by machine; `source` is then the first of them. `parts` are the parts
    of these files that make up a trial of clients that are no fleet of VMFleet. `meaning` is what its
    path says; replicate, block and repeat are its place in the design (`importing.repeats`).
    `columns` is the mapping of a table's columns, empty for the output of a tool.
    `taken_version` is a version that its file does not tell, and others of its arm do.
    """

    source: Source
    measurement: Measurement
    tool: str
    version: str
    part: int | None
    logs: dict[str, list[Source]] = field(default_factory=dict)
    machines: dict[str, Source] = field(default_factory=dict)
    parts: dict[str, int] = field(default_factory=dict)
    workload: dict[str, Any] = field(default_factory=dict)
    arm: str = ""
    format: str = ""
    meaning: Meaning = field(default_factory=Meaning)
    taken_version: str = ""
    replicate: int = 1
    block: int = 1
    repeat: int = 1
    logs_unit_ns: int | None = None
    columns: table.Columns = ()

    @property
    def old(self) -> bool:
        """Whether latencies in its logs are microseconds, as before fio 3."""
        return (self.logs_unit_ns or self.log_unit_ns) == NS_PER_US

    @property
    def log_unit_ns(self) -> int | None:
        """Unit of latencies, in ns, in its tool's logs, by its version; None for a tool without logs."""
        return registry.TOOLS[self.tool].log_unit_ns(self.version)

    @property
    def told_unit_ns(self) -> int | None:
        """The same where its version is told; else None."""
        return None if self.version == UNKNOWN else self.log_unit_ns

    @property
    def started(self) -> str:
        """When it was measured, else when its file was last changed."""
        if self.measurement.started_utc:
            return self.measurement.started_utc
        changed = self.source.path.stat().st_mtime
        return utc_text(changed, "microseconds")


def collect(files: Sorted) -> list[Entry]:
    """All measurements whose load a scenario can tell; what cannot be used is added to `found.refused`."""
    entries = _described(_entries(files), files)
    files.refused += _unused(files)
    return entries


def of_tables(sources: Sequence[Source], columns: table.Columns, refused: list[str]) -> list[Entry]:
    """Return the measurements of tables of results; a sentence is added for what cannot be used."""
    entries, read = [], Sorted()
    for source in sources:
        try:
            of_file = table.read(source.read(), source.shown, columns)
        except UnusableError as error:
            read.refused.append(str(error))
            continue
        read.refused += [f"{source.shown}: {reason}" for reason in of_file.refused]
        for part, (measurement, meaning) in enumerate(of_file.rows):
            flags = (*measurement.flags, *of_file.flags)
            made = Entry(source, replace(measurement, flags=flags), of_file.tool, of_file.version, part)
            made.meaning, made.columns = meaning, columns
            entries.append(made)
    described = _described(entries, read)
    refused += read.refused
    return described


def _unused(inputs: Sorted) -> list[str]:
    """Logs that say nothing, a sentence a kind; told last, since they are no reason why an import fails."""
    unused: dict[str, list[Source]] = {}
    for kinds in inputs.logs.values():
        for kind in kinds.keys() - set(job_logs.USED):
            unused.setdefault(kind, []).extend(kinds[kind])
    return [f"{_places(files)}: a log of {kind} is not used" for kind, files in sorted(unused.items())]


def _places(files: list[Source]) -> str:
    return files[0].shown + (f" and {len(files) - 1} more" if len(files) > 1 else "")


def _entries(files: Sorted) -> list[Entry]:
    """All measurements, with the logs that belong to them, and those that logs alone tell."""
    joined, alone = fleets.split(files.results, files.refused)
    entries = [
        Entry(source, measurement, parsed.tool, parsed.version, part, format=parsed.format)
        for source, parsed in alone
        for part, measurement in enumerate(parsed.measurements)
    ]
    entries += [_of_fleet(item) for item in joined]
    for owners, prefix, kinds in _owned(entries, files):
        try:
            _attach(owners, prefix, kinds, entries, files)
        except DiskbookError as error:
            files.refused.append(str(error))
    return entries


_Kinds = dict[str, list[Source]]


def _owned(entries: Sequence[Entry], files: Sorted) -> list[tuple[list[Entry], str, _Kinds]]:
    """Logs with the jobs they may be of; those of one job together, whatever the prefix of each kind."""
    owned: dict[int, tuple[list[Entry], str, _Kinds]] = {}
    others = []
    for (folder, prefix), kinds in files.logs.items():
        owners = _owners(entries, folder, prefix)
        if len(owners) != 1:
            others.append((owners, prefix, kinds))
            continue
        _, _, own = owned.setdefault(id(owners[0]), (owners, prefix, {}))
        for kind, sources in kinds.items():
            own.setdefault(kind, sources)
    return [*owned.values(), *others]


def _owners(entries: Sequence[Entry], folder: Path, prefix: str) -> list[Entry]:
    """Jobs that may have written logs: by name, beside them or one folder up; or by their folder's name."""
    beside = [entry for entry in entries if entry.source.path.parent == folder and _writes(entry, prefix)]
    above = [
        entry
        for entry in entries
        if entry.log_unit_ns is not None and entry.source.path.parent == folder.parent
    ]
    by_name = [entry for entry in above if _writes(entry, prefix)]
    of_folder = [entry for entry in above if folder.name in (entry.source.stem, entry.measurement.name)]
    return beside or by_name or of_folder


def _of_fleet(item: fleets.Fleet) -> Entry:
    first = next(iter(item.files.values()))
    return Entry(first, item.measurement, FLEET, item.version, None, machines=item.files)


def _writes(entry: Entry, prefix: str) -> bool:
    """Whether a job wrote logs of this name: as its options say, or named after the job."""
    log_names = {Path(value).name for value in entry.measurement.logs.values()}
    stem = entry.source.name.rsplit(".", 1)[0]
    by_name = entry.log_unit_ns is not None and (visible(prefix) == entry.measurement.name or prefix == stem)
    return prefix in log_names or (not log_names and by_name)


def _attach(
    owners: list[Entry], prefix: str, kinds: dict[str, list[Source]], entries: list[Entry], inputs: Sorted
) -> None:
    """Read logs, and give them to the one job they belong to, or let them stand for themselves."""
    used = {kind: files for kind, files in kinds.items() if kind in job_logs.USED}
    files = {kind: [import_files.log_file(source) for source in sources] for kind, sources in used.items()}
    first = next(iter(next(iter(used.values()), [])), None)
    if first is None:
        return
    if len(owners) > 1:
        inputs.refused.append(
            f"{first.shown}: these logs belong to several jobs of one name; they are left out"
        )
        return
    owner = owners[0] if owners else None
    threads = owner.measurement.load.threads if owner else None
    whole, lacking = job_logs.whole_kinds(files, threads)
    files = {kind: files[kind] for kind in files if kind in whole}
    if owner is None and not files:
        raise UnusableError(first.shown, lacking[0])
    if owner is None:
        entries.append(_alone(first, prefix, used, files, lacking, entries))
        return
    owner.measurement = replace(owner.measurement, flags=(*owner.measurement.flags, *lacking))
    if files:
        _give(owner, files, {kind: used[kind] for kind in files})


def _give(owner: Entry, files: dict[str, list[LogFile]], used: dict[str, list[Source]]) -> None:
    """Add to a result what its logs say."""
    logged, owner.logs_unit_ns = log_unit.read(
        files,
        owner.told_unit_ns,
        owner.measurement,
        interval_s=owner.measurement.log_interval_s,
        block_size=owner.measurement.load.block_size_bytes,
    )
    owner.measurement = job_logs.with_logs(owner.measurement, logged)
    owner.logs = used


def _alone(
    first: Source,
    prefix: str,
    used: dict[str, list[Source]],
    files: dict[str, list[LogFile]],
    lacking: list[str],
    entries: list[Entry],
) -> Entry:
    """Make a measurement of logs that no result goes with; results beside them tell their unit."""
    beside = [entry for entry in entries if entry.source.path.parent == first.path.parent]
    unit = log_unit.of_versions(entry.told_unit_ns for entry in beside if entry.tool == fio.TOOL.name)
    logged, unit_ns = log_unit.read(files, unit, None)
    kept = {kind: used[kind] for kind in files}
    alone = job_logs.standalone(logged, prefix, max(len(sources) for sources in kept.values()))
    flags = [
        *alone.flags,
        *lacking,
        *([f"latencies are taken for {_words(unit)} beside them"] if unit else []),
    ]
    made = Entry(first, replace(alone, flags=tuple(flags)), fio.TOOL.name, UNKNOWN, None, kept)
    made.logs_unit_ns = unit_ns
    return made


def _words(unit_ns: int) -> str:
    return "microseconds, as of the fio 2" if unit_ns == NS_PER_US else "nanoseconds, as of the fio 3"


def _described(entries: list[Entry], files: Sorted) -> list[Entry]:
    """Entries whose load a scenario can tell; the others are refused."""
    kept = []
    for entry in entries:
        try:
            entry.workload, flags = loads.workload(entry.measurement, entry.tool)
        except ValueError as error:
            files.refused.append(f"{entry.source.shown}: {error} ('{entry.measurement.name}')")
            continue
        flags = (*entry.measurement.flags, *flags, *contradictions.of(entry.measurement))
        entry.measurement = replace(entry.measurement, flags=flags)
        kept.append(entry)
    return kept
