"""Runs that are to be compared: opened, and read from what their analysis wrote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from diskbook.analysis.run import analyse
from diskbook.base.errors import DiskbookError, UsageError
from diskbook.figures.style import label as arm_label
from diskbook.scenario.model import Scenario
from diskbook.show import sentences
from diskbook.show.tables import METRICS
from diskbook.store.run import Run, open_run
from diskbook.tables import schema
from diskbook.tables.vocabulary import Provenance

KEY = ("arm", "base_arm", "workload", "direction", "metric")
"""Columns that name a comparison in one direction."""
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_NUMBERS = [column.name for column in schema.COMPARISONS.columns if column.dtype == "float64"]
_ALONE = (Provenance.EMULATED, Provenance.INVENTORY)
"""What says nothing about Azure, and so stands beside its own kind only."""


@dataclass(frozen=True)
class Measured:
    """A run with its comparisons, as its analysis judged them.

    Attributes
    ----------
    letter
        What it is called in tables: A is the run that the others are held against.
    comparisons
        As in comparisons.csv (`schema.COMPARISONS`).
    """

    letter: str
    run: Run
    manifest: Mapping[str, Any]
    comparisons: pd.DataFrame

    @property
    def name(self) -> str:
        """Name of the run."""
        return self.run.name

    @property
    def provenance(self) -> str:
        """Where its numbers come from."""
        return str(self.manifest["provenance"])

    @cached_property
    def scenario(self) -> Scenario:
        """Its scenario, as it was run."""
        return self.run.scenario

    @cached_property
    def rows(self) -> dict[tuple[str, ...], dict[str, Mapping[Any, Any]]]:
        """Rows of its comparisons by key (`KEY`) and scope, in their order."""
        rows: dict[tuple[str, ...], dict[str, Mapping[Any, Any]]] = {}
        for row in self.comparisons.to_dict("records"):
            rows.setdefault(tuple(str(row[name]) for name in KEY), {})[row["scope"]] = row
        return rows

    def words(self, key: Sequence[str]) -> str:
        """A comparison in words: "4K random write, depth 1: ZRS, zone 1 / LRS, zone 1"."""
        arm, base, load, _, metric = key
        arms = f"{arm_label(self.scenario, arm)} / {arm_label(self.scenario, base)}"
        return f"{self._loads[load]}: {arms}, {METRICS.get(metric, metric)}"

    @cached_property
    def _loads(self) -> dict[str, str]:
        return sentences.workload_words(self.scenario)

    @cached_property
    def trials(self) -> tuple[Mapping[str, Any], ...]:
        """Its trials, as the ledger has them."""
        return tuple(event for event in self.run.ledger() if event["event"] == "trial")


def read(names: Sequence[str]) -> tuple[Measured, ...]:
    """Open runs by name or folder; one that was not analysed yet is analysed now.

    Raises
    ------
    UsageError, DiskbookError
        When there are fewer than two, one is named twice, is not there, is damaged or has nothing to compare,
        or when emulated ones stand beside measured ones.
    """
    if len(names) < 2:
        raise UsageError(
            "compare needs two runs or more: diskbook compare RUN RUN, or `runs` of the notebook"
        )
    opened = [open_run(name) for name in names]
    folders = [run.folder.resolve() for run in opened]
    twice = next(
        (run.name for run, folder in zip(opened, folders, strict=True) if folders.count(folder) > 1), ""
    )
    if twice:
        raise UsageError(f"run {twice} is named twice; it counts once: name another")
    manifests = [run.manifest for run in opened]
    _check_provenance(
        {run.name: str(manifest["provenance"]) for run, manifest in zip(opened, manifests, strict=True)}
    )
    return tuple(
        Measured(letter_of(place), run, manifest, comparisons_of(run))
        for place, (run, manifest) in enumerate(zip(opened, manifests, strict=True))
    )


def letter_of(place: int) -> str:
    """Name a run in tables: A to Z, then AA and so on."""
    first, rest = divmod(place, len(LETTERS))
    return (letter_of(first - 1) if first else "") + LETTERS[rest]


def _check_provenance(of_runs: Mapping[str, str]) -> None:
    kinds = set(of_runs.values())
    if len(kinds) > 1 and kinds & set(_ALONE):
        listed = ", ".join(f"{name} is {kind}" for name, kind in of_runs.items())
        raise UsageError(
            f"{listed}: what an emulator or a disk of your own does says nothing about Azure, so these are "
            "not compared; name runs of one provenance"
        )


def comparisons_of(run: Run) -> pd.DataFrame:
    """Comparisons of a run, from its comparisons.csv, else computed.

    Raises
    ------
    UsageError, DiskbookError
        When it has none, or they are damaged.
    """
    path = run.folder / "comparisons.csv"
    table = _read(run, path) if path.exists() else _computed(run)
    if table.empty:
        raise UsageError(
            f"run {run.name} compares no arms, so it has no ratio to hold against another's; give its "
            "scenario a [[comparison]]"
        )
    return table


def _computed(run: Run) -> pd.DataFrame:
    return schema.validate(schema.COMPARISONS, analyse(run).comparisons)


def _read(run: Run, path: Path) -> pd.DataFrame:
    try:
        table = pd.read_csv(path, keep_default_na=False, na_values=dict.fromkeys(_NUMBERS, ""))
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0]
        raise DiskbookError(f"{path} is damaged ({reason}); run 'diskbook report {run.name}'") from None
    return schema.validate(schema.COMPARISONS, table, str(path))
