"""A batch as its folder records it, half done or whole: its runs' states, and what they cost."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from diskbook.batch import summary
from diskbook.batch.loop import FINISHED
from diskbook.design.vocabulary import Provenance
from diskbook.facts import paths
from diskbook.facts.errors import DiskbookError, UsageError
from diskbook.facts.units import duration
from diskbook.report.show import locations
from diskbook.report.show.html import Html, escaped, table
from diskbook.results import run as runs

PREFIX = "batch-"
MOST_ROWS = 100
"""Runs that are listed one by one; of more only those that are not finished are."""
_KEYS = {"schema", "batch", "runs", "finished", "failed", "left", "limit_usd", "spent_usd", "rows"}
_KEYS_OF_ROW = {
    *("run", "label", "scenario", "cloud", "region", "emulator_profile", "provenance", "state", "reason"),
    *("answer", "still_stands", "expected_usd", "spent_usd", "seconds"),
}


@dataclass(frozen=True)
class Outcome:
    """A batch and what came of it so far.

    - `data`: its summary.json.
    - `folder`: where that lies.
    - `place`: folder or store of its runs; empty where they are where the batch looked for them.
    """

    data: Mapping[str, Any]
    folder: Path
    place: str = ""

    @cached_property
    def rows(self) -> list[Mapping[str, Any]]:
        """Its runs, in the order of the matrix."""
        return list(self.data["rows"])

    @cached_property
    def finished(self) -> dict[str, str]:
        """Where each finished run is, with its label."""
        return {self._where(row): row["label"] for row in self.rows if row["state"] == FINISHED}

    def _where(self, row: Mapping[str, Any]) -> str:
        beside = f"../{row['run']}"  # of a record that does not say it
        return f"{self.place}/{row['run']}" if self.place else str(self.folder / row.get("folder", beside))

    @property
    def provenance(self) -> str:
        """Where its numbers come from: of begun runs, or where none is begun of the clouds asked for."""
        kinds = {row["provenance"] for row in self.rows if row["provenance"]}
        asked = {Provenance.EMULATED if row["cloud"] == "emulator" else row["cloud"] for row in self.rows}
        return "+".join(sorted(kinds or asked))


def read(batch: str, place: str = "") -> Outcome:
    """Read what a batch has recorded.

    - `batch`: its name, its file, or its folder.
    - `place`: folder of its runs, or the address of a store that holds them; by default where the batch has
      them.

    Raises UsageError when no batch is named, or nothing is recorded of it. Raises DiskbookError when its
    record is damaged.
    """
    if not batch:
        raise UsageError('name a batch: batch = "nightly", its file nightly.toml, or its folder')
    folder = _folder(batch, place)
    path = folder / summary.DATA
    try:
        data = json.loads(path.read_text("utf-8"))
    except OSError:
        raise UsageError(
            f"nothing is recorded of batch {batch} (there is no {path}); begin it with 'diskbook batch FILE'"
        ) from None
    except ValueError as error:
        raise DiskbookError(f"{path} is damaged ({error}); start the batch again, which writes it") from None
    if not isinstance(data, dict) or data.get("schema") != summary.SCHEMA or not data.keys() >= _KEYS:
        raise DiskbookError(f"{path} is not a summary of a batch; start the batch again, which writes it")
    for number, row in enumerate(data["rows"]):
        if missing := sorted(_KEYS_OF_ROW - row.keys()):
            raise DiskbookError(
                f"{path}, row {number}: '{missing[0]}' is missing; start the batch again, which writes it"
            )
    return Outcome(data, folder, place.rstrip("/"))


def _folder(batch: str, place: str) -> Path:
    """Return the folder of a batch. It is on this machine even if the runs are in a store."""
    if (Path(batch) / summary.DATA).is_file():
        return Path(batch)
    name = Path(batch).stem if batch.endswith(".toml") else Path(batch).name.removeprefix(PREFIX)
    here = runs.runs_root() if not place or paths.is_address(place) else Path(place)
    return here / f"{PREFIX}{name}"


def counts(outcome: Outcome) -> Html:
    """State of the whole in one sentence."""
    return Html(f"<p>{escaped(summary.counts(outcome.data))}.</p>")


def states(outcome: Outcome) -> Html:
    """Show how many runs of each scenario and place are in which state."""
    frame = pd.DataFrame(
        {
            "Scenario": [row["scenario"] for row in outcome.rows],
            "Where": [where(row) for row in outcome.rows],
            "state": [row["state"] for row in outcome.rows],
        }
    )
    if frame.empty:
        return Html("<p>The batch has no run.</p>")
    counted = pd.crosstab([frame["Scenario"], frame["Where"]], frame["state"])
    return table(counted.reset_index(), f"Runs by state ({outcome.provenance})")


def where(row: Mapping[str, Any]) -> str:
    """Where a run is, in words."""
    return locations.words(row["cloud"], row["region"], row["emulator_profile"])


def listed(outcome: Outcome) -> Html:
    """List the runs; of many those that are not finished, with the reason."""
    rows = outcome.rows
    if len(rows) > MOST_ROWS:
        rows = [row for row in rows if row["state"] != FINISHED]
    frame = pd.DataFrame([_listed(row) for row in rows[:MOST_ROWS]])
    more = len(rows) - len(frame)
    words = f"<p>{more:,} more stand on the batch's page, index.html.</p>" if more else ""
    if frame.empty:
        return Html("<p>All runs are finished; the batch's page, index.html, lists them.</p>")
    return Html(table(frame, f"Runs of batch {outcome.data['batch']}") + words)


def _listed(row: Mapping[str, Any]) -> dict[str, Any]:
    stands = f"; it {row['still_stands']}: 'diskbook teardown {row['run']}'" if row["still_stands"] else ""
    return {
        "Run": row["label"],
        "State": row["state"],
        "Where": where(row),
        "Answer, or why there is none": f"{row['answer'] or row['reason'] or '–'}{stands}",
        "Time of the last start": duration(row["seconds"]) if row["seconds"] else "–",
    }


def cost(outcome: Outcome) -> Html:
    """Show what is planned and spent, scenario by scenario, with the limit of the whole."""
    frame = pd.DataFrame([_cost(row) for row in outcome.rows])
    if frame.empty:
        return Html("<p>The batch has no run.</p>")
    sums = frame.groupby("Scenario", sort=False).sum().reset_index()
    total = pd.DataFrame([{"Scenario": "all", **sums.drop(columns="Scenario").sum()}])
    shown = pd.concat([sums, total], ignore_index=True).astype({"Runs": int})
    return Html(table(shown, f"Cost in USD ({outcome.provenance})") + _limit(outcome))


def _cost(row: Mapping[str, Any]) -> dict[str, Any]:
    """A run's cost: planned is what its machines so far were expected to cost, and what is still to come."""
    made = row.get("estimated_usd", row["spent_usd"])
    left = 0.0 if row["state"] == FINISHED else row["expected_usd"]  # a finished one keeps its first price
    return {
        "Scenario": row["scenario"],
        "Runs": 1,
        "Planned": made + left,
        "Spent": row["spent_usd"],
        "Still expected": left,
    }


def _limit(outcome: Outcome) -> str:
    """What the limit leaves, and that emulated runs cost nothing."""
    limit, spent = outcome.data["limit_usd"], outcome.data["spent_usd"]
    words = (
        "No spending limit is set."
        if limit is None
        else f"Limit of all runs together: {limit:.2f} USD, {limit - spent:.2f} of them left."
    )
    if any(row["cloud"] == "emulator" for row in outcome.rows):
        words += " Emulated runs cost nothing: theirs is what they would cost on Azure."
    return f"<p>{escaped(words)}</p>"
