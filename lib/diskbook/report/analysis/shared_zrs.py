"""The analysis of `shared-zrs`: where the disk answers from, the article's claims, and the zone drill."""

from typing import Any

import pandas as pd

from diskbook.facts import quantities
from diskbook.report.analysis import failover
from diskbook.report.analysis.published import claims, figures as published, tables as published_tables
from diskbook.report.analysis.run import Analysis
from diskbook.report.figures import Picture
from diskbook.report.show import locations
from diskbook.report.show.html import Html, table
from diskbook.report.show.lead import comparison_in_words
from diskbook.stats.zone_probe import FARTHER, NEAREST, probe

ARTICLE = "shared-zrs"


def pictures(a: Analysis) -> tuple[Picture, ...]:
    """Figures of this analysis, in the order of the notebook."""
    return (a.ratios, a.all_trials)


def claims_table(a: Analysis) -> Html:
    """The article's claims with verdicts and reasons, and what this run says of each."""
    judged = claims.judge(published.assess(published.read()))
    return published_tables.claims_of(judged, ARTICLE, answers(a), a.provenance)


def answers(a: Analysis) -> dict[str, str]:
    """What this run says of each claim, by the claim's first words."""
    zones = probe(a.trials)["zone"].nunique()
    no_zone = "no zone was made to fail, only machines: see the drills"
    shared = [drill for drill in failover.drills(a) if drill["kind"] == "shared" and drill["status"] == "ok"]
    untouched = (
        "; Azure was asked for nothing when the other node took the shared disk over" if shared else ""
    )
    remote = comparison_in_words(a, "zrs-n2", "zrs-n1", "write-qd1")
    return {
        "2 % overhead": f"below the cap: {comparison_in_words(a, 'zrs-n1', 'lrs-n1', 'write-qd1')}",
        "25 % more write latency": f"below the cap: {remote}; "
        "which zone is the remote one differs from disk to disk",
        "not both zones fail alike": no_zone,
        "no manual zone fail-over": no_zone + untouched,
        "monitor the role's zone": "diskbook zone-affinity does, by reads, and says when it has moved back",
        "the disk is said to span two zones": f"read from {zones} zones",
    }


def probe_table(a: Analysis) -> Html:
    """Every zone that a disk was read from, with its ratio to the nearest one."""
    probed, zones = probe(a.trials), locations.zones(a.trials)
    rows = [
        {
            "Replicate": row["replicate"],
            "Disk": row["disk_id"].rsplit("/", 1)[-1],
            "Read from": zones[row["zone"]],
            "Latency, ms": row["lat_ms"],
            "Change from the nearest": _ratio(row),
            "Blocks": row["n_blocks"],
            "Verdict": row["verdict"],
        }
        for row in probed.to_dict("records")
    ]
    return table(rows, f"Reads at queue depth 1 by zone ({a.provenance})")


def probe_words(a: Analysis) -> list[str]:
    """Say of each disk which zone it answers from, and how sure that is."""
    probed, names = probe(a.trials), locations.zones(a.trials)
    lines = []
    for (replicate, disk), zones in probed.groupby(["replicate", "disk_id"], sort=False):
        name = f"{a.provenance}: {str(disk).rsplit('/', 1)[-1]} (replicate {replicate})"
        nearest = zones[zones["verdict"] == NEAREST]
        if nearest.empty:
            lines.append(f"{name}: the nearest zone is not clear; more blocks would tell")
            continue
        farther = zones[zones["verdict"] == FARTHER].sort_values("ratio").to_dict("records")
        others = " and ".join(
            f"{names[row['zone']]} {quantities.change(row['ratio'], row['ci_low'], row['ci_high'])}"
            for row in farther
        )
        lines.append(
            f"{name} answers from {names[nearest['zone'].iloc[0]]}, as latency has it: {others}; what sets "
            "the machines in those zones apart is part of that"
        )
    return lines or ["no disk was read from two zones, so nothing is known of where it answers"]


def reservation_table(a: Analysis) -> Html:
    """Every step of the reservation checks: which machine, what it did, and what was seen."""
    return failover.steps_table(a)


def drill_table(a: Analysis) -> Html:
    """Every zone drill: what was lost, how long it took, and its steps."""
    return failover.drill_table(a)


def drill_words(a: Analysis) -> list[str]:
    """Say what the zone drills showed."""
    return failover.drill_words(a)


def _ratio(row: dict[Any, Any]) -> str:
    if row["ratio"] == 1.0:
        return "none"
    if pd.isna(row["ci_low"]):
        return f"{quantities.change(row['ratio'])}, no interval"
    return quantities.change(row["ratio"], row["ci_low"], row["ci_high"])
