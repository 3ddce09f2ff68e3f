"""The analysis of `s2d-azure`: curves over threads, what binds, map of ratios, wire, and the decision."""

import math
from typing import Any

from diskbook.clusters import figures
from diskbook.clusters.analysis import decision, sweep
from diskbook.clusters.stats import volume_bound, volume_setups
from diskbook.clusters.stats.volume_bound import Load
from diskbook.design.model import Scenario
from diskbook.design.vocabulary import Scope
from diskbook.facts import quantities
from diskbook.facts.units import KIB
from diskbook.report.analysis import published, published_claims
from diskbook.report.analysis.companion_files import Section
from diskbook.report.analysis.run import Analysis, once
from diskbook.report.figures import Picture
from diskbook.report.figures.depth_curves import depth_curves
from diskbook.report.show.html import Html, table
from diskbook.report.show.lead import arms_in_words, comparison_in_words
from diskbook.stats import expected, knee
from diskbook.stats.limits import BY_COLUMN

ARTICLE = "s2d-azure"
SERVER: str = "ss-4"
MORE_DISKS: str = "ss-8"
CLUSTER: str = "s2d-3"
REMOTE: str = "s2d-3-remote"


def _has_volumes(scenario: Scenario) -> bool:
    return any(arm.volume for arm in scenario.arm)


SECTIONS = (
    Section("the map of ratios", arms=(CLUSTER, SERVER)),
    Section("more disks", arms=(MORE_DISKS, SERVER)),
    Section("the load away from its owner", arms=(REMOTE, CLUSTER)),
    Section("what volumes may do", part="arm on a volume", has_part=_has_volumes),
)
"""What each section of the report rests on."""

findings_counted = sweep.findings_counted
map_words = sweep.words
wire_words = sweep.wire_words
decision_words = decision.sources


def pictures(a: Analysis) -> tuple[Picture, ...]:
    return (a.ratios, curves(a), ratio_map(a), a.all_trials)


@once
def curves(a: Analysis) -> Picture:
    """Figure: rate and latency over threads, with limits and knees."""
    knees = sweep.chosen_knees(a)
    known = knees[knees["knee"].notna()] if len(knees) else knees
    title = "Rates rise with threads until a limit is met, and latency rises from there"
    if len(known):
        numbers = known["knee"] / sweep.queue_depth(a)
        low, high = (f"{number:.0f}" for number in (numbers.min(), numbers.max()))
        threads = f"{low} to {high}" if low != high else low
        title = f"Rates stop rising at {threads} threads; more threads only wait"
    return depth_curves(sweep.totals(a), sweep.caps(a), known, a.looks, sweep.queue_depth(a), title, a.source)


@once
def ratio_map(a: Analysis) -> Picture:
    """Figure: measured ratios of cluster and server, and those that limits alone predict."""
    panels = sweep.beside(a)
    capped = sweep.measured(a)["capped"]
    title = f"In {int(capped.sum())} of {len(capped)} cells a limit sets a rate, not the storage"
    return figures.ratio_map(panels, sweep.names(a), title, a.source, a.provenance)


def knee_table(a: Analysis) -> Html:
    """Latency, cap, knee and threads for 95 % of the cap of every curve."""
    depth = sweep.queue_depth(a)
    rows = [
        {
            "Arm": a.labels[row["arm"]],
            "Load": f"{int(row['block_size_bytes']) // KIB}K {row['kind']}",
            "Latency that does not wait, ms": row["latency_ms"],
            "Cap, IOPS": row["cap_iops"],
            "Limit": _limit(row),
            "Knee, threads": _with_interval(row, "knee", "low", "high", depth),
            "Threads for 95 % of the cap": _with_interval(
                row, "depth_95", "depth_95_low", "depth_95_high", depth
            ),
            "Blocks": row["n_blocks"],
            "Why not": row["reason"],
        }
        for row in sweep.chosen_knees(a).to_dict("records")
    ]
    return table(rows, f"Knees: latency x cap ({a.provenance}). {knee.POOLED}")


def binding_table(a: Analysis) -> Html:
    """The lowest limit of every cell: burst or base, and how long full credit would carry its burst."""
    cells = sweep.cells(a)
    keys = ["arm", "workload"]
    rows = cells[[*keys, "label", "binds", "iops", "block_size_bytes", "kind"]].merge(
        expected.predicted(a.trials)[[*keys, "limit", "limit_value", "limit_iops"]], on=keys
    )
    shown = [
        {
            "Arm": a.labels[row["arm"]],
            "Load": a.words[row["workload"]],
            "IOPS": row["iops"],
            "Set by": str(row["binds"]).partition(":")[0],
            "Lowest limit": BY_COLUMN[row["limit"]].words(row["limit_value"])
            if row["limit"]
            else "none is known",
            "Burst or base": _burst_or_base(a, row),
        }
        for row in rows.to_dict("records")
    ]
    return table(shown, f"What sets each rate, and whether it lasts ({a.provenance})")


def sizes_table(a: Analysis) -> Html:
    """Ratios that limits predict for the article's sizes, and for those of today: one column a set-up."""
    return table(sweep.sizes_table(a), f"IOPS of {sweep.names(a)}, as documented limits predict them")


def wire_table(a: Analysis) -> Html:
    rows = sweep.wire_table(a)
    if rows.empty:
        return Html("<p>No counters of the nodes' networks were kept in this run.</p>")
    return table(rows, f"Bytes on the wire a byte that the load read or wrote ({a.provenance})")


def more_disks(a: Analysis) -> list[str]:
    """Say whether eight disks do more than four: at one thread, and where a limit is met."""
    return arms_in_words(a, MORE_DISKS, SERVER)


def remote_owner(a: Analysis) -> list[str]:
    """Say what it costs that another node owns the volume."""
    return arms_in_words(a, REMOTE, CLUSTER)


def decision_table(a: Analysis) -> Html:
    """One server, a cluster, or another disk: what survives, what lasts, and what it costs."""
    return table(decision.decision(a), "The decision: bounds by documented limits, list prices (dated table)")


def readers_table() -> Html:
    """Readers' questions, answered by the bound alone."""
    return table(decision.readers_table(), "Readers' questions (computed, not measured)")


def claims_table(a: Analysis) -> Html:
    """The article's claims with verdicts and reasons, and what this run says of each."""
    judged = published_claims.judge(published.assess(published.read()))
    return published_claims.claims_of(judged, ARTICLE, answers(a), a.provenance)


def answers(a: Analysis) -> dict[str, str]:
    """What this run says of each claim, by the claim's first words."""
    cells = sweep.measured(a)
    share = f"{int(cells['capped'].sum())} of {len(cells)} ratios are those of limits" if len(cells) else ""
    identity = "; ".join(sweep.words(a)[:1])
    return {
        "documented limits are not reached": _least_threads(a),
        "minimum latency about 4 ms": _single_ios(a),
        "cluster and single server are close": share or "not compared",
        "the network is not what costs": "; ".join(_headline(a)) or "not compared",
        "more disks do not help": "; ".join(more_disks(a)[:1]),
        "limits are hit with 8 to 12 threads at 4K": _knees(a, 4, 8),
        "limits are hit with 8 to 12 threads at 64K": _knees(a, 64),
        "the cluster reaches": _cap(a, CLUSTER, "write", 4),
        "MB/s are close as well": identity,
        "tests are red or green alike": identity,
        "latency is around 2 ms": _single_ios(a),
    }


def _limit(row: dict[Any, Any]) -> str:
    """Limit of a curve's cap by name; a cap without one is of no known limit."""
    if row["limit"]:
        return BY_COLUMN[str(row["limit"])].name
    return "" if math.isnan(row["cap_iops"]) else "not known, or several"


def _with_interval(row: dict[Any, Any], middle: str, low: str, high: str, depth: int) -> str:
    if math.isnan(row[middle]):
        return ""
    number = f"{row[middle] / depth:.1f}"
    if math.isnan(row[low]):
        return f"{number}, no interval"
    general = " (disks like these)" if row["scope"] == Scope.LIKE_THESE else ""
    return quantities.with_interval(number, row[low] / depth, row[high] / depth) + general


def _burst_or_base(a: Analysis, row: dict[Any, Any]) -> str:
    """Whether the lowest limit lasts or rests on burst credit, and for how long full credit carries it."""
    setup = volume_setups.documented(a.scenario).get(row["arm"])
    if not row["limit"] or setup is None:
        return ""
    load = Load(row["block_size_bytes"], 1.0 if row["kind"] == "write" else 0.0)
    first, last = (volume_bound.bound(setup, load, spent=spent) for spent in (False, True))
    if math.isclose(first.iops, last.iops):
        return "base: it lasts"
    if math.isclose(row["limit_iops"], last.iops, rel_tol=0.01):
        return "base: its credit is spent"
    hours = volume_bound.burst_lasts_s(setup, load) / 3600
    return f"burst: full credit carries it for {hours:.1f} h, then the {last.words}"


def _headline(a: Analysis) -> list[str]:
    items = [item for item in a.scenario.comparison if (item.arm, item.base_arm) == (CLUSTER, SERVER)]
    single = [item for item in items if a.scenario.workload_named(item.workload).outstanding == 1]
    return [comparison_in_words(a, CLUSTER, SERVER, item.workload, item.metric) for item in single]


def _single_ios(a: Analysis) -> str:
    rows = sweep.single_ios(a)
    rows = rows[(rows["arm"] == SERVER) & (rows["block_size_bytes"] == 4 * KIB)]
    parts = [f"{row['lat_mean_ms']:.2f} ms for a {row['kind']}" for row in rows.to_dict("records")]
    return f"at depth 1, 4K, one server: {' and '.join(parts)}" if parts else "not measured"


def _least_threads(a: Analysis) -> str:
    rows = sweep.cells(a)
    rows = rows[(rows["arm"] == SERVER) & (rows["block_size_bytes"] == 4 * KIB)]
    few = rows[rows["outstanding"] == rows["outstanding"].min()]
    parts = [f"{row['iops']:,.0f} IOPS ({row['kind']}, {row['label']})" for row in few.to_dict("records")]
    return f"with one thread one server does {' and '.join(parts)}" if parts else "not measured"


def _knees(a: Analysis, *blocks_kib: int) -> str:
    rows = sweep.chosen_knees(a)
    rows = rows[rows["knee"].notna()] if len(rows) else rows
    depth, parts = sweep.queue_depth(a), []
    for row in rows.to_dict("records"):
        kib = int(row["block_size_bytes"]) // KIB
        if row["arm"] == SERVER and kib in blocks_kib:
            parts.append(
                f"{kib}K {row['kind']} at {_with_interval(row, 'knee', 'low', 'high', depth)} threads"
            )
    return f"knees of one server: {'; '.join(parts)}" if parts else "no knee"


def _cap(a: Analysis, arm: str, kind: str, kib: int) -> str:
    rows = sweep.cells(a)
    rows = rows[(rows["arm"] == arm) & (rows["kind"] == kind) & (rows["block_size_bytes"] == kib * KIB)]
    if rows.empty:
        return "not measured"
    most = rows.sort_values("iops").iloc[-1]
    return f"{most['iops']:,.0f} IOPS at most ({kib}K {kind}, {most['label']}: {most['binds']})"
