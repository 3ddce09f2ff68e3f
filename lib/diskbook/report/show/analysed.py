"""What tables, sentences and figures need to know of an analysed run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import pandas as pd

from diskbook.design.model import Scenario
from diskbook.results.run import Run

if TYPE_CHECKING:  # takes long to import, and who lists runs neither computes nor draws
    from diskbook.report.figures.style import ArmLook, RunSource
    from diskbook.results.tables import Tables
    from diskbook.stats.compare import Compared
    from diskbook.stats.protocol import Conformance


class ReplicateCost(NamedTuple):
    """What one replicate more would cost in USD, None where a price is not known; and what that rests on."""

    usd: float | None
    basis: str


class Analysed(Protocol):
    """An analysed run. `diskbook.report.analysis.run.Analysis` is one, but stands above `show`."""

    @property
    def run(self) -> Run:
        """The run folder."""

    @property
    def source(self) -> RunSource:
        """The run's name, with the line on its source that figures carry."""

    @property
    def scenario(self) -> Scenario:
        """The scenario as the run's manifest records it."""

    @property
    def manifest(self) -> Mapping[str, Any]:
        """The run's manifest."""

    @property
    def tables(self) -> Tables:
        """Tables built from the raw results."""

    @property
    def trials(self) -> pd.DataFrame:
        """One row a trial and direction."""

    @property
    def ledger(self) -> list[dict[str, Any]]:
        """Events of the run, oldest first."""

    @property
    def provenance(self) -> str:
        """Where the numbers come from: azure, emulated, imported ..."""

    @property
    def compared(self) -> Compared:
        """Comparisons, gates, strata and labelled cells, as computed."""

    @property
    def headline(self) -> str:
        """The answer to the scenario's question in a few words."""

    @property
    def own_headline(self) -> str:
        """What the scenario's module answers; "" where it has no such answer."""

    @property
    def comparisons(self) -> pd.DataFrame:
        """Ratios with intervals and verdicts, two scopes each."""

    @property
    def gates(self) -> pd.DataFrame:
        """What was checked before anything was compared."""

    @property
    def cells(self) -> pd.DataFrame:
        """Every arm x workload with its label and the evidence for it."""

    @property
    def percentiles(self) -> pd.DataFrame:
        """Percentiles of a typical trial and of all I/Os."""

    @property
    def percentile_ratios(self) -> pd.DataFrame:
        """Ratios of percentiles of the comparisons that passed their gates."""

    @property
    def published(self) -> pd.DataFrame:
        """Published figures of the scenario's article beside the measured medians."""

    @property
    def protocol(self) -> tuple[Conformance, ...]:
        """What each comparison meets of the protocol, headline comparisons first."""

    @property
    def replicate_cost(self) -> ReplicateCost:
        """What one replicate more would cost."""

    @property
    def words(self) -> dict[str, str]:
        """Workloads as text, by name."""

    @property
    def labels(self) -> dict[str, str]:
        """Arms as text, by name."""

    @property
    def looks(self) -> dict[str, ArmLook]:
        """How each arm is drawn, by name."""
