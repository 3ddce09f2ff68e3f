"""The analysis of `nested-resiliency`: kinds of volumes under a fleet, what is arithmetic, what is left."""

import pandas as pd

from diskbook.clusters import figures
from diskbook.clusters.analysis import sweep
from diskbook.clusters.analysis.nested import arms, below, capacity, losses, saturated, tiers, verdicts
from diskbook.clusters.figures import Across
from diskbook.design.model import Scenario
from diskbook.design.vocabulary import Verdict
from diskbook.facts import quantities
from diskbook.facts.table_writers import capital
from diskbook.facts.units import KIB
from diskbook.report.analysis import published, published_claims
from diskbook.report.analysis.companion_files import Section
from diskbook.report.analysis.run import Analysis, once
from diskbook.report.figures import Picture
from diskbook.report.show import headlines
from diskbook.report.show.analysed import Analysed
from diskbook.report.show.html import Html, escaped, table

ARTICLE = "nested-resiliency"


def _has_two_way(scenario: Scenario) -> bool:
    return any(arms.kind(scenario, arm.name) == arms.BASE for arm in scenario.arm)


SECTIONS = (
    Section("ratios to the two-way mirror", part="arm on a two-way mirror", has_part=_has_two_way),
    Section("losses and resync", part="[[loss]]", has_part=lambda scenario: bool(scenario.loss)),
)
"""What each section of the report rests on."""

findings_counted = sweep.findings_counted
below_words = below.words
tier_words = tiers.words
decision_words = capacity.decision_words
moved_words = tiers.moved_words
loss_words = losses.words
resync_words = losses.resync_words


def pictures(a: Analysis) -> tuple[Picture, ...]:
    return (a.ratios, ratio_map(a), capacity_picture(a), a.all_trials)


def post_lead(a: Analysis) -> tuple[str, str] | None:
    """Title and first paragraph of a post."""
    return lead(a)


def standing(a: Analysis) -> list[str]:
    """Say which numbers of this run are findings."""
    return arms.standing(a.provenance)


@once
def ratio_map(a: Analysis) -> Picture:
    """Figure: ratios to the two-way mirror, those that disk I/Os alone predict, and what is left."""
    cells = saturated.ratios(a)
    held = cells[cells["held"] & cells["bound"].notna()]
    near = int(((held["left"] - 1).abs() <= saturated.NEAR).sum())
    title = "No kind of volume was measured beside a two-way mirror with full queues"
    if len(cells):
        title = f"Counting disk I/Os predicts {near} of {len(cells)} changes against the two-way mirror"
    what = "a kind / the two-way mirror"
    across = Across("cell", "share of writes, by kind of volume", 2.0, saturated.column_names(a, cells))
    panels = saturated.panels(cells)
    return figures.ratio_map(panels, what, title, a.source, a.provenance, across)


def ratio_table(a: Analysis) -> Html:
    """Every ratio to the two-way mirror with its interval, its bound and what is left."""
    cells = saturated.ratios(a)
    if cells.empty:
        return Html("<p>No kind of volume was measured beside a two-way mirror with full queues.</p>")
    shown = cells.assign(
        Arm=[a.labels[name] for name in cells["arm"]],
        Load=[
            f"{row['block_size_bytes'] / KIB:.0f}K, {row['write_pct']} % writes"
            for row in cells.to_dict("records")
        ],
        held=cells["held"].map({True: "both", False: "not both"}),
    )
    names = {"ratio": "IOPS ratio", "low": "from", "high": "to", "latency_ratio": "Latency ratio",
             "bound": "By disk I/Os", "left": "Left", "held": "On a limit", "n_blocks": "Blocks"}  # fmt: skip
    picked = shown[["Arm", "Load", *names]].rename(columns=names).astype({"Blocks": int})
    return table(picked, f"Full queues: times the two-way mirror, 95 % intervals ({a.provenance})")


def ratio_words(a: Analysis) -> list[str]:
    """Say what of the ratios is arithmetic, and what is left."""
    return saturated.words(a, saturated.ratios(a))


def below_table(a: Analysis) -> Html:
    """Latency ratios below all limits, beside what the slowest copy alone would give."""
    return _table(
        below.table(a), f"Below all limits ({a.provenance})", "Nothing was compared below all limits."
    )


def sets_table(a: Analysis) -> Html:
    """Data sets and mirror tiers of accelerated parity."""
    return _table(tiers.sets_table(a), "Data set against mirror tier", "No volume has two tiers.")


def tier_table(a: Analysis) -> Html:
    """Mirror fill and slow-tier allocations of the trials."""
    nothing = "No counters of the mirror tier were kept, so that nothing counted tells where writes went."
    return _table(tiers.counted_table(a), f"Counted by ReFS, medians of trials ({a.provenance})", nothing)


@once
def capacity_picture(a: Analysis) -> Picture:
    """Figure: usable capacity against measured performance."""
    points = capacity.points(a)
    title = "Nothing was measured to hold capacity against"
    writes = points[(points["write_pct"] == 100) & (points["arm"] != arms.base(a))]
    if len(writes):
        least = writes.sort_values("ratio").iloc[0]
        title = (
            f"{capital(least['label'])}: {least['capacity_pct']:.0f} % of the drives can be used, "
            f"at {100 * (1 - least['ratio']):.0f} % fewer writes than a two-way mirror"
        )
    return figures.capacity(points, title, a.source, a.provenance)


def efficiency_table(a: Analysis) -> Html:
    """Usable share of the drives by kind of volume and drives a node."""
    return table(capacity.efficiency_table(a), "Usable share of the drives (documented rules)")


def decision_table(a: Analysis) -> Html:
    """Drives and dollars for equal usable capacity, beside what was measured."""
    return table(
        capacity.decision_table(a), "The decision: bounds by drives alone, list prices (dated table)"
    )


def fleet_table(a: Analysis) -> Html:
    """How evenly the machines of a trial were served, and whether they measured together."""
    return _table(tiers.table(a), f"Machines of a trial, medians ({a.provenance})", f"{tiers.NO_FLEET}.")


def percentile_table(a: Analysis) -> Html:
    """VMFleet's mean of percentiles beside the percentile of all I/Os."""
    caption = f"99th percentiles of a fleet, full queues, medians over trials ({a.provenance})"
    return _table(tiers.percentile_table(a), caption, "No percentiles of single machines were kept.")


def loss_matrix(a: Analysis) -> Html:
    """Kinds of volumes against what is lost: as played, or by the rule where nothing was played."""
    caption = f"Online after a loss ({a.provenance}); in brackets: by the rule alone, not played"
    return table(losses.matrix_table(a), caption)


def loss_table(a: Analysis) -> Html:
    """Every loss that was played, one row each."""
    return _table(losses.loss_table(a), f"Losses ({a.provenance})", "No loss was played in this run.")


def resync_table(a: Analysis) -> Html:
    """What came back after the losses that volumes outlived, and what the load kept meanwhile."""
    return _table(
        losses.resync_table(a), f"Resync, medians ({a.provenance})", "No loss was played in this run."
    )


def claims_table(a: Analysis) -> Html:
    """The article's claims with verdicts and reasons, and the verdict that this run gives."""
    sentences = published_claims.read()
    sentences = sentences[sentences["article"] == ARTICLE]
    judged = published_claims.judge(published.assess(published.read(ARTICLE)), sentences)
    return published_claims.claims_of(judged, ARTICLE, answers(a), a.provenance)


def answers(a: Analysis) -> dict[str, str]:
    """This run's verdict on each claim with its reason, by the claim's first words."""
    return {claim: f"{verdict}: {why}" for claim, (verdict, why) in verdicts.verdicts(a).items()}


def _table(rows: pd.DataFrame, caption: str, nothing: str) -> Html:
    """A table, or a sentence where it has no rows."""
    if rows.empty:
        return Html(f"<p>{escaped(nothing[0].upper() + nothing[1:])}</p>")
    return table(rows, caption)


_LITTLE = 1.1
"""Ratio of latencies up to which a title speaks of little waiting."""
_HALF = (0.45, 0.55)
_NESTED = "nested-mirror"


def lead(a: Analysed) -> tuple[str, str] | None:
    """Return the title and the first paragraph; None where latency, rate or losses were not measured."""
    waiting, rate = _waiting(a), _rate(a)
    played = losses.matrix(a)
    played = played[played["online"] != ""]
    nested, two_way = (_of(played, arms.WORDS[kind]) for kind in (_NESTED, arms.BASE))
    if waiting is None or rate is None or nested.empty or two_way.empty:
        return None
    wait = "little waiting" if waiting <= _LITTLE else f"{quantities.change(waiting)} waiting"
    half = "half the throughput" if _HALF[0] <= rate <= _HALF[1] else f"{1 - rate:.0%} of the throughput"
    title = f"keeping four copies instead of two costs {wait} and {half}"
    sentences = [
        f"a nested mirror on two nodes {_survived(nested)}",
        f"A two-way mirror {_survived(two_way)}",
        f"The price: writes take {quantities.changed(waiting, 'longer', 'less time')}, and a full queue "
        f"of them runs {quantities.changed(rate, 'faster', 'slower')}",
    ]
    first, *others = sentences
    paragraph = ". ".join([headlines.said_of(a.provenance, first), *others])
    return headlines.said_of(a.provenance, title), f"{paragraph}."


def _waiting(a: Analysed) -> float | None:
    """Ratio of the write latencies below all limits, where it was decided."""
    name = arms.first(a, _NESTED)
    for row in headlines.of(a.comparisons, a.scenario).rows:
        is_write = a.scenario.workload_named(row["workload"]).write_pct == 100
        of_both = (row["arm"], row["base_arm"]) == (name, arms.base(a))
        if of_both and is_write and Verdict.of(row["verdict"]) in headlines.DECIDED:
            return float(row["ratio"])
    return None


def _rate(a: Analysed) -> float | None:
    """Ratio of the rates of small writes with full queues."""
    rows = saturated.ratios(a)
    rows = rows[(rows["kind"] == _NESTED) & (rows["write_pct"] == 100)].sort_values("block_size_bytes")
    return float(rows["ratio"].iloc[0]) if len(rows) else None


def _of(played: pd.DataFrame, words: str) -> pd.DataFrame:
    return played[played["kind"].str.startswith(f"{words},")]


def _survived(rows: pd.DataFrame) -> str:
    """Say how many of the losses played a volume survived."""
    lost = int((rows["online"] == "no").sum())
    if not lost:
        return "stayed online in every loss that was played"
    return f"went offline in {lost} of {len(rows)}"
