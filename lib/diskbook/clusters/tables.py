"""What the tables of a run on volumes have besides: counters of nodes, losses, limits by where reads go."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from diskbook.clusters.design import counters
from diskbook.clusters.stats import volume_setups, wire
from diskbook.design import schema
from diskbook.design.model import Scenario
from diskbook.design.totals import trial_totals
from diskbook.facts.errors import DiskbookError
from diskbook.results import attached
from diskbook.results.run import Run
from diskbook.results.tables import Event, Tables


def completed(tables: Tables, run: Run, manifest: Mapping[str, Any], ledger: Iterable[Event]) -> Tables:
    """Add counters and losses to the tables of a run on volumes, and bound its reads by the counters.

    Raises DiskbookError when a raw file of counters is missing, changed or unreadable; the file is named.
    """
    events = list(ledger)
    whole = replace(tables, counters=_counters(run, events), losses=_losses(run.name, events))
    if whole.counters.empty:
        return whole
    arms = wire.holders(Scenario.model_validate(manifest["scenario"]))
    counted = wire.on_the_wire(trial_totals(whole.trials), whole.counters, arms)
    shares = wire.own_shares(counted, arms)
    return replace(whole, trials=volume_setups.with_limits(whole.trials, manifest, shares))


def _counters(run: Run, ledger: Iterable[Event]) -> pd.DataFrame:
    """Read what the nodes of clusters counted before and after each trial."""
    rows: list[dict[str, Any]] = []
    for event in ledger:
        entry = (event.get("files") or {}).get(counters.KIND) if event["event"] == "trial" else None
        if not isinstance(entry, Mapping) or event.get("evidence_s"):
            continue
        try:
            document = json.loads(attached.read_bytes(run.folder, entry))
            rows.extend(counters.rows(run.name, event["trial"], document["before"], document["after"]))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DiskbookError(
                f"run {run.name}: {entry['path']} does not hold performance counters ({error}); restore it"
            ) from None
    return schema.from_rows(schema.COUNTERS, rows)


def _losses(run: str, ledger: Iterable[Event]) -> pd.DataFrame:
    """List the losses that were played, the last attempt of each; one that failed has its sentence alone."""
    latest: dict[tuple[int, str], dict[str, Any]] = {}
    for event in ledger:
        if event["event"] == "loss" and event["status"] != "begun":
            blocks = {"blocks_written": 0, "blocks_verified": 0}  # of one that failed
            known = {name: event.get(name, blocks.get(name)) for name in schema.LOSSES.names}
            row = {**known, "run": run, "loss": event["name"]}
            latest[event["replicate"], event["name"]] = row
    return schema.from_rows(schema.LOSSES, list(latest.values()))
