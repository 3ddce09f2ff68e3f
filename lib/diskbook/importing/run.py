"""Results that others measured, made into a run: `diskbook import`.

The files are kept untouched and hashed under raw/, the scenario is derived from what they tell, and the
provenance is "imported": whatever is said of such a run rests on files whose making nobody here watched.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from diskbook.base.errors import DiskbookError, UsageError, unknown
from diskbook.base.visible import is_visible, visible
from diskbook.importing import files as import_files, names as import_names, pairing, scenario, write
from diskbook.importing.files import Sorted
from diskbook.importing.pairing import Entry
from diskbook.importing.scenario import Settings
from diskbook.store import run as runs, tables
from diskbook.store.run import Run


@dataclass(frozen=True)
class Imported:
    """What was made: the run, its trials, what was refused and what must be known, one sentence each."""

    run: Run
    n_trials: int
    arms: dict[str, int]
    refused: tuple[str, ...]
    flags: tuple[str, ...]


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
    chosen = settings or Settings()
    limits = scenario.limits(chosen)
    if not is_visible(name):
        raise UsageError(
            f"a run cannot be called {name}; choose another --name, in UTF-8, without control characters"
        )
    if runs.folder_of(name).exists():
        raise UsageError(f"run {name} exists already; choose another --name")
    files = import_files.sort(import_files.walk(paths))
    entries = pairing.collect(files)
    if not entries:
        first = files.refused[0] if files.refused else "there are no files"
        more = f" (and {len(files.refused) - 1} more)" if len(files.refused) > 1 else ""
        raise DiskbookError(f"nothing can be imported: {first}{more}")
    arms = _name_arms(entries, chosen)
    if chosen.base is not None and chosen.base not in arms:
        raise unknown("arm", chosen.base, arms)
    try:
        run = runs.create(name)
        with _whole_or_not_at_all(run):
            named = [visible(str(path)) for path in paths]
            write.write(run, entries, arms, files.refused, chosen, limits, named)
            tables.write(tables.build(run), run.folder)
    except OSError as error:
        why = error.strerror or str(error)
        raise DiskbookError(f"cannot write to {runs.folder_of(name)}: {why}; nothing was imported") from None
    counts = {arm: sum(entry.arm == arm for entry in entries) for arm in arms}
    return Imported(run, len(entries), counts, tuple(files.refused), _told(files, entries))


@contextlib.contextmanager
def _whole_or_not_at_all(run: Run) -> Iterator[None]:
    """Leave no folder of a run that could not be finished."""
    try:
        yield
    except BaseException:
        shutil.rmtree(run.folder)
        raise


def _name_arms(entries: list[Entry], settings: Settings) -> dict[str, str]:
    """Give every entry its arm; return the arms' names with their words.

    What one arm would pool is kept apart: tools, versions, and hosts.
    """
    for entry in entries:
        entry.arm = import_names.arm_words(entry.source, entry.measurement, entry.tool, settings.arms_by)
    for describe in (lambda entry: f"{entry.tool} {entry.version}", lambda entry: entry.measurement.host):
        kinds: dict[str, set[str]] = {}
        for entry in entries:
            kinds.setdefault(entry.arm, set()).add(describe(entry))
        for entry in entries:
            if len(kinds[entry.arm]) > 1:
                entry.arm = f"{entry.arm} {describe(entry)}".strip()
    names = import_names.slugs(sorted({entry.arm for entry in entries}), "arm")
    for entry in entries:
        entry.arm = names[entry.arm]
    return {name: words for words, name in names.items()}


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
