"""Results that others measured, made into a run: `diskbook import`.

The files are kept untouched and hashed under raw/, the scenario is derived from what they tell, and the
provenance is "imported": whatever is said of such a run rests on files whose making nobody here watched.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from diskbook.design import scenario_file, scenario_tables
from diskbook.design.model import Scenario
from diskbook.facts.errors import DiskbookError, UsageError, is_visible, unknown, visible
from diskbook.importing import (
    arms,
    files as import_files,
    layout,
    mapping,
    pairing,
    repeats,
    scenario,
    table,
    together,
    write,
)
from diskbook.importing.files import Sorted
from diskbook.importing.named_limits import Named
from diskbook.importing.pairing import Entry
from diskbook.importing.scenario import Settings
from diskbook.results import run as runs
from diskbook.results.run import Run

if TYPE_CHECKING:
    from diskbook.results.tables import Tables


@dataclass(frozen=True)
class Imported:
    """What was made: the run, its trials, what was refused and what must be known, one sentence each.

    `tables` are those that were written; `reading` says how paths were read.
    """

    run: Run
    tables: Tables
    n_trials: int
    arms: dict[str, int]
    refused: tuple[str, ...]
    flags: tuple[str, ...]
    reading: tuple[str, ...] = ()


@dataclass(frozen=True)
class Planned:
    """An import before anything of it is written: its measurements with their places, and the scenario."""

    name: str
    entries: list[Entry]
    arms: dict[str, str]
    scenario: dict[str, Any]
    manifest: dict[str, Any]
    refused: tuple[str, ...]
    flags: tuple[str, ...]
    reading: tuple[str, ...]


def plan(paths: Sequence[str], name: str, settings: Settings | None = None) -> Planned:
    """Read files and folders, and say what arms, loads and repeats they hold; nothing is written.

    Raises UsageError for a path, name or setting that does not fit. Raises DiskbookError when nothing can be
    used; the sentence has the first reason.
    """
    chosen = settings or Settings()
    limits = scenario.limits(chosen)
    target = scenario_file.load(chosen.scenario) if chosen.scenario else None
    pattern = layout.parse(chosen.layout) if chosen.layout else None
    check_name(name)
    files, entries = _read(paths, chosen)
    _check_any(entries, files.refused)
    named = arms.name(entries, chosen.arms_by, pattern, files.refused)
    _check_any(entries, files.refused)
    words, reading = _arranged(entries, named, target, files.refused)
    if chosen.base is not None and chosen.base not in words:
        raise unknown("arm", chosen.base, words)
    document = mapping.document(target, entries) if target else scenario.derive(entries, words, chosen)
    resources = mapping.resources(target) if target else scenario.resources(document, chosen, limits)
    scenario_tables.from_dict(document, name)
    manifest = scenario.manifest(runs.folder_of(name).name, document, *resources)
    manifest["imported"] = {
        "paths": [visible(str(path)) for path in paths],
        "refused": files.refused,
        "named": Named.of(chosen).given,
        "reading": [visible(sentence) for sentence in reading],
        "arms": _targets(entries, words),
    }
    flags = (*_of_size(chosen), *_told(files, entries))
    return Planned(name, entries, words, document, manifest, tuple(files.refused), flags, reading)


def _read(paths: Sequence[str], settings: Settings) -> tuple[Sorted, list[Entry]]:
    """Read all files as the output of tools, or as tables where their columns are named."""
    sources, left_out = import_files.walk(paths)
    if settings.columns is None:
        files = import_files.sort(sources, left_out)
        return files, pairing.collect(files)
    if settings.layout or settings.arms_by != "auto":
        raise UsageError("--columns names the arms of a table (arm=COLUMN): leave --layout and --arms-by out")
    files = Sorted(refused=left_out)
    return files, pairing.of_tables(sources, table.columns_of(settings.columns), files.refused)


def _of_size(settings: Settings) -> tuple[str, ...]:
    """Say that the machine's size is in no table; nothing else of an import depends on it."""
    error = scenario.no_such_size(settings.vm_size)
    named = settings.vm_iops or settings.vm_mb_s
    remedy = "" if named else ": name them by --vm-iops and --vm-mb-s, or correct it in 'diskbook why'"
    return (f"{error} The machine's limits are not taken from it{remedy}",) if error else ()


def _arranged(
    entries: list[Entry], named: arms.Named, target: Scenario | None, refused: list[str]
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Give entries their loads, replicates and blocks; return the arms' words, and how paths were read."""
    scenario.name_workloads(entries)
    before = len(entries)
    repeats.drop_doubles(entries, refused)
    together.join_clients(entries)
    if len(entries) < before:
        scenario.name_workloads(entries)
    words, reading = named.words, named.sentences
    if target:
        words, mapped = mapping.onto(target, entries, words, refused)
        reading += mapped
    repeats.add_flags(entries, [*repeats.assign(entries), *together.across(entries)])
    repeats.flag_unlike(entries)
    return words, reading


def make(
    paths: Sequence[str],
    name: str,
    settings: Settings | None = None,
    show: Callable[[Planned], None] = lambda _: None,
) -> Imported:
    """Import files and folders into a new run; `show` gets what is planned before anything is written.

    Raises UsageError, DiskbookError: see `plan`; and when the run cannot be written.
    """
    planned = plan(paths, name, settings)
    show(planned)
    return write_run(planned)


def write_run(planned: Planned) -> Imported:
    """Write the run of a plan, whole or not at all.

    Raises DiskbookError when it cannot be written.
    """
    from diskbook.results import tables

    name = planned.name
    try:
        run = runs.create(name)
        with _whole_or_not_at_all(run):
            measured = write.write(run, planned.entries, planned.scenario, planned.manifest)
            built = tables.build(run, measured=measured)
            tables.write(built, run.folder)
    except OSError as error:
        why = error.strerror or str(error)
        raise DiskbookError(f"cannot write to {runs.folder_of(name)}: {why}; nothing was imported") from None
    entries = planned.entries
    counts = {arm: sum(entry.arm == arm for entry in entries) for arm in planned.arms}
    return Imported(run, built, len(entries), counts, planned.refused, planned.flags, planned.reading)


def check_name(name: str) -> None:
    """Refuse a name that no run can have, or one has already."""
    if not is_visible(name):
        raise UsageError(
            f"a run cannot be called {name}; choose another --name, in UTF-8, without control characters"
        )
    if runs.folder_of(name).exists():
        raise UsageError(f"run {name} exists already; choose another --name")


def _check_any(entries: Sequence[Entry], refused: Sequence[str]) -> None:
    """Raise with the first reason when nothing is left."""
    if not entries:
        first = refused[0] if refused else "there are no files"
        more = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
        raise DiskbookError(f"nothing can be imported: {first}{more}")


def _targets(entries: Sequence[Entry], words: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """What each arm is in full, for the manifest: its words, targets and hosts."""
    rows: dict[str, dict[str, Any]] = {}
    for arm, text in words.items():
        of_arm = [entry.measurement for entry in entries if entry.arm == arm]
        targets, hosts = ({getattr(item, name) for item in of_arm} - {""} for name in ("target", "host"))
        rows[arm] = {"words": visible(text), "targets": sorted(targets), "hosts": sorted(hosts)}
    return rows


@contextlib.contextmanager
def _whole_or_not_at_all(run: Run) -> Iterator[None]:
    """Leave no folder of a run that could not be finished."""
    try:
        yield
    except BaseException:
        shutil.rmtree(run.folder)
        raise


def _told(inputs: Sorted, entries: Iterable[Entry]) -> tuple[str, ...]:
    """Flags with the files they hold for: one line a flag."""
    places: dict[str, list[str]] = {}
    for source, parsed in inputs.results:
        for flag in parsed.flags:
            places.setdefault(flag, []).append(source.shown)
    for entry in entries:
        for flag in entry.measurement.flags:
            places.setdefault(flag, []).append(entry.source.shown)
    return tuple(f"{flag} ({_some(dict.fromkeys(files))})" for flag, files in places.items())


def _some(files: Iterable[str]) -> str:
    names = list(files)
    return names[0] if len(names) == 1 else f"{len(names)} files, e.g. {names[0]}"
