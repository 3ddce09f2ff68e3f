"""Sentences made from verdicts: the answer, the noise floor, what more measuring would bring."""

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import pandas as pd

from diskbook.design import totals
from diskbook.design.arm_words import label
from diskbook.design.held_rate import Start
from diskbook.design.model import Scenario, Workload
from diskbook.design.totals import PLAIN_WRITE
from diskbook.design.vocabulary import WITHHELD, GateStatus, Scope, Verdict, in_these_hours
from diskbook.facts import noise_series, quantities
from diskbook.facts.units import percent
from diskbook.report.show.analysed import ReplicateCost
from diskbook.stats import power
from diskbook.stats.gates.attachment import NOT_CHECKED, NOT_EXCLUDED
from diskbook.stats.gates.design import unpaired
from diskbook.stats.gates.limits import OPEN_QUEUE
from diskbook.stats.power import KEYS, MORE, Outlook, outlook

PlainCells = Mapping[tuple[str, str], str]
"""Cells (arm, workload) whose writes were to be durable and were plain, with the reason."""
BOTH_ARMS = "both arms"


def of_workload(load: Workload) -> list[str]:
    """Lines about a workload that is a line of DiskSpd: the line itself, and what to know of it."""
    if load.verbatim is None:
        return []
    return [f"the line: {load.verbatim}", *load.remarks]


def flagged(table: pd.DataFrame, scenario: Scenario, plain: PlainCells | None = None) -> pd.DataFrame:
    """Add the remarks of each workload to the warnings of its comparisons, and where writes were plain."""
    remarks, plain = {load.name: load.remarks for load in scenario.workload if load.remarks}, plain or {}
    if not (remarks or plain) or table.empty:
        return table
    warnings = [
        "; ".join(
            filter(None, [row["warnings"] or "", *remarks.get(row["workload"], ()), _plain(row, plain)])
        )
        for row in table.fillna({"warnings": ""}).to_dict("records")
    ]
    return table.assign(warnings=warnings)


def _plain(row: Mapping[Any, Any], plain: PlainCells) -> str:
    """Say which arms of a comparison wrote plainly what was to be durable; empty where none did."""
    cells = [(row[role], row["workload"]) for role in ("arm", "base_arm")] if plain else []
    arms = [cell[0] for cell in cells if cell in plain]
    words = "; ".join(dict.fromkeys(plain[cell] for cell in cells if cell in plain))
    return f"{BOTH_ARMS if len(arms) == 2 else f'{arms[0]} alone'}: {words}" if arms else ""


def plain_cells(scenario: Scenario, trials: pd.DataFrame, guest: pd.DataFrame) -> PlainCells:
    """Say of each cell (arm, workload) that was to write durably, and did not, why."""
    syncs = {load.name: load.sync for load in scenario.workload}
    cells = totals.plain_cells(trials, guest)
    return {cell: totals.plain_words(syncs.get(cell[1]), engine) for cell, engine in cells.items()}


_FACTS: tuple[Callable[[Workload], str], ...] = (
    lambda item: f"{item.threads} thread{'s' * (item.threads > 1)}",
    lambda item: f"of {_size(item.working_set_gib)}",
    lambda item: f"region {item.region}",
    lambda item: f"{item.data} data",
    lambda item: item.ioengine,
    lambda item: f"cache {item.cache_state}",
)


def apart(words: Mapping[str, str], loads: Sequence[Workload]) -> dict[str, str]:
    """Add to words that several loads share what tells these apart; where no fact does, their names.

    - `words`: of every load, by its name.
    """
    alike: dict[str, list[Workload]] = {}
    for item in loads:
        alike.setdefault(words[item.name], []).append(item)
    facts = {item.name: _telling(same, item) for same in alike.values() for item in same if len(same) > 1}
    return {name: _with(text, facts.get(name, ())) for name, text in words.items()}


def _telling(same: Sequence[Workload], item: Workload) -> list[str]:
    """Facts of a load that others of the same words do not share, or its name."""
    different = [fact for fact in _FACTS if len({fact(other) for other in same}) > 1]
    own = [fact(item) for fact in different]
    if sum([fact(other) for fact in different] == own for other in same) > 1:
        own.append(item.name)
    return own


def _with(text: str, facts: Sequence[str]) -> str:
    return ", ".join([text, *filter(None, facts)])


def _size(gib: float) -> str:
    return f"{gib:,.4g} GiB" if gib >= 1 else f"{gib * 1024:.4g} MiB"


Row = Mapping[Any, Any]
SO = ", so that latency"
"""Where the reason of a rate on a limit goes on to its latency (`gates.limits`)."""
_FIRST = re.compile(r"(?:\([^()]*\)|(?!; ).)*")
"""Text up to a semicolon that stands in no brackets."""
LEAVES_OUT = "the interval leaves out 0 %"
"""How the reason begins why an interval apart from no change shows no difference (`stats.verdicts`)."""
METRIC_WORDS = {
    "lat_p50_ms": "median latency in a typical trial",
    "lat_p99_ms": "99th percentile of latency in a typical trial",
    "iops": "rate in IOPS",
    "throughput_mb_s": "throughput",
}
PLAIN_IN_BOTH = f"{BOTH_ARMS}: {PLAIN_WRITE}"
"""In the warnings of a comparison: both arms did plain writes where durable ones were asked for."""


def workload_words(scenario: Scenario, plain: Collection[str] = ()) -> dict[str, str]:
    """Every workload in words, e.g. "4K random write, depth 1", no two alike; `plain` did plain writes."""
    words = {item.name: _workload(item, plain=item.name in plain) for item in scenario.workload}
    return apart(words, scenario.workload)


def load_words(item: Workload, *, plain: bool = False) -> str:
    """What is waited for at a workload, e.g. "write latency at queue depth 1"."""
    operation = _operation(item, plain=plain)
    if item.rate is not None:
        return f"{operation} latency at {item.rate:,.0f} IOPS offered"
    return f"{operation} latency at queue depth {_depth(item)}"


def is_plain(row: Row) -> bool:
    """Whether both arms did plain writes where durable ones were asked for (`flagged`)."""
    return PLAIN_IN_BOTH in (row["warnings"] or "")


def _arm(scenario: Scenario, name: str) -> str:
    """Arm as a sentence names it: "ZRS from zone 1"."""
    return label(scenario, name).replace(", zone", " from zone")


def _workload(item: Workload, *, plain: bool = False) -> str:
    size = f"{item.block_size // 1024}K"
    if item.sync == "fdatasync":
        what = "write, plain, no flush sent" if plain else "write + fdatasync"
        return f"{size} {what}, depth {item.outstanding}"
    held = "" if item.rate is None else f", {item.rate:,.0f}/s"
    if plain and item.write_pct == 100:
        return f"{size} {item.pattern} plain write, depth {_depth(item)}{held}"
    operation = _operation(item).removesuffix(" write")  # of a write-through write
    return f"{size} {item.pattern} {operation}, depth {_depth(item)}{held}"


def _depth(item: Workload) -> str:
    """I/Os in flight, those of a fleet as machines x what each of them keeps: "28 x 80"."""
    of_each = item.outstanding // item.instances
    return f"{item.instances} x {of_each}" if item.instances > 1 else str(of_each)


def _operation(item: Workload, *, plain: bool = False) -> str:
    if plain and item.write_pct == 100:
        return PLAIN_WRITE
    if item.sync == "fdatasync":
        return "commit"
    if item.sync == "dsync" and item.write_pct == 100:  # a read has nothing to write through
        return "write-through write"
    return {0: "read", 100: "write"}.get(item.write_pct, f"{totals.MIXED}{item.write_pct} % writes)")


def scope_words(row: Row, scenario: Scenario) -> str:
    """Scope in words: these two disks, this disk, these disks, disks like these; machines where they differ.

    Of disks like these with their nearest zone where the replicates share one, of all others with the hours.
    With one replicate nothing tells a disk, or a zone, from the machine that it was measured from.
    """
    if row["scope"] == Scope.LIKE_THESE or row["n_replicates"] > 1:
        return Scope(row["scope"]).words(row.get("nearest_zone", ""))  # older tables have no such column
    return in_these_hours(_disks(row, scenario))


def _disks(row: Row, scenario: Scenario) -> str:
    """Disks of a comparison with one replicate."""
    arms = [scenario.arm_named(row[role]) for role in ("arm", "base_arm")]
    what = "volume" if arms[0].volume else "disk"
    same = (arms[0].disk, arms[0].volume) == (arms[1].disk, arms[1].volume)
    if row["pairing"] == "same-disk" or same:
        return (
            f"this {what} from these two machines" if arms[0].machine != arms[1].machine else f"this {what}"
        )
    return f"these two {what}s and their machines" if _unpaired(row) else f"these two {what}s"


def ratio_words(row: Row) -> str:
    """Change and difference with intervals: "+152 % (95 % CI 145 to 160 %); +2.15 ms, 2.02 to 2.31"."""
    words = quantities.change(row["ratio"], row["ci_low"], row["ci_high"], row["level"])
    if math.isnan(row["ci_low"]):
        words = f"{words}, no interval"
    difference = difference_words(row)
    return f"{words}; {difference}" if difference else words


def difference_words(row: Row) -> str:
    """Difference in ms with its interval, "+2.15 ms, 2.02 to 2.31"; empty where there is none."""
    names = ("diff_ms", "diff_low_ms", "diff_high_ms")
    middle, low, high = (row.get(name, math.nan) for name in names)  # older tables have no such columns
    return "" if math.isnan(middle) else quantities.difference_ms(middle, low, high)


def basis_words(row: Row, scenario: Scenario) -> str:
    """Scope and numbers that a ratio rests on, e.g. "these two disks in these hours, 4 blocks"."""
    several = f", {row['n_replicates']} replicates" if row["n_replicates"] > 1 else ""
    blocks = f"{row['n_blocks']} block{'s' * (row['n_blocks'] != 1)}"
    return f"{scope_words(row, scenario)}{several}, {blocks}"


def sentence(row: Row, scenario: Scenario, *, brief: bool = False) -> str:
    """Say one comparison in a sentence made from its verdict; never a bare p-value.

    Briefly it gives the first reason alone where there is no ratio, and none where an interval speaks.
    """
    base, what = _arm(scenario, row["base_arm"]), measured(row, scenario)
    verdict = Verdict.of(row["verdict"])
    limits = "" if row["metric"].startswith("lat") else _of_limits(row, scenario, brief=brief)
    if limits:
        return f"{what}, to that of {base}: {limits}"
    if verdict in WITHHELD or math.isnan(row["ratio"]):
        return f"no ratio for the {what} to {base} ({row['verdict']}): {_reasons(row, brief=brief)}"
    numbers = f"{ratio_words(row)} ({basis_words(row, scenario)})"
    if verdict is Verdict.DIFFERENCE:
        way = "higher" if row["ratio"] > 1 else "lower"
        return f"{what} is {way} than that of {base}: {numbers}{attach_words(row)}"
    if verdict is Verdict.EQUIVALENT:
        same = row["verdict"].replace(verdict, "equal")
        return f"{what} is {same} to that of {base}: {numbers}{attach_words(row)}"
    why = f"; {row['warnings']}" if row["warnings"] and not brief else ""
    if verdict is Verdict.INTERIM:
        return f"interim, so not judged: {what}, so far, to that of {base}: {numbers}{why}"
    return f"{what} may or may not differ from that of {base}: {numbers}{why}"


def attach_words(row: Row) -> str:
    """Say behind a number that an attach effect was not checked, or not excluded; empty otherwise."""
    warnings = str(row["warnings"])
    return "".join(f"; {words}" for words in (NOT_CHECKED, NOT_EXCLUDED) if words in warnings)


def measured(row: Row, scenario: Scenario) -> str:
    """What a comparison measured of its arm, e.g. "write latency at queue depth 1 of ZRS from zone 1"."""
    item, arm = scenario.workload_named(row["workload"]), _arm(scenario, row["arm"])
    is_mean = row["metric"] == "lat_mean_ms"
    load = (load_words if is_mean else _workload)(item, plain=is_plain(row))
    load = totals.of_direction(load, row["direction"])
    what = f"{load} of {arm}" if is_mean else f"{METRIC_WORDS[row['metric']]} of {arm} ({load})"
    return what + _start(row)


def _start(row: Row) -> str:
    """Say of the latency of a held rate from when it counts."""
    start = row.get("lat_start", "")  # older tables have no such column
    words = {
        Start.SENT: "a lower bound: waits before an I/O was sent are not in it",
        Start.INTENDED: f"{Start.INTENDED} of linear arrivals",
    }
    return f" ({words.get(start, start)})" if start else ""


def _reasons(row: Row, *, brief: bool) -> str:
    """Reasons that a comparison carries, briefly the first of them."""
    return first_reason(row) if brief else str(row["warnings"])


def first_reason(row: Row) -> str:
    """The reason that decides, else the first one that a comparison carries, brackets kept whole."""
    text = str(row["warnings"])
    start = max(text.find(LEAVES_OUT), 0)
    return str(_FIRST.match(text, start)[0])  # type: ignore[index]  # it matches any text


def _of_limits(row: Row, scenario: Scenario, *, brief: bool = False) -> str:
    """Say of a ratio of rates that it is one of limits, or may be; empty where it is one of disks."""
    if math.isnan(row["ratio"]):
        return ""
    if Verdict.of(row["verdict"]) in (Verdict.CAPPED, Verdict.SATURATED):
        limits = row["warnings"].partition(SO)[0]
        return f"{quantities.change(row['ratio'])}, a ratio of limits: {limits}"
    if math.isnan(row["ci_low"]) or OPEN_QUEUE not in row["warnings"]:
        return ""
    numbers = f"{ratio_words(row)} ({basis_words(row, scenario)})"
    why = _reasons(row, brief=brief)
    return f"{numbers}, a ratio of disks or of limits ({row['verdict']}): {why}"


def _unpaired(row: Row) -> bool:
    return unpaired(row["pairing"], row["scope"])


def chosen(comparisons: pd.DataFrame) -> pd.DataFrame:
    """One row a comparison: the general scope where it has an interval, else these disks."""
    general = comparisons[(comparisons["scope"] == Scope.LIKE_THESE) & comparisons["ci_low"].notna()]
    known = set(map(tuple, general[KEYS].to_numpy()))
    is_general = pd.Series(
        [tuple(row) in known for row in comparisons[KEYS].to_numpy()], index=comparisons.index, dtype=bool
    )
    scope = is_general.map({True: Scope.LIKE_THESE, False: Scope.THESE})
    return comparisons[comparisons["scope"] == scope]


def labelled(frame: pd.DataFrame, column: str, labels: Mapping[str, str]) -> pd.DataFrame:
    """Name arms by their labels in a column of reasons.

    A name that is a plain word, as "local", stays: in a reason it may mean something else.
    """
    names = sorted((name for name in labels if not name.isalpha()), key=len, reverse=True)
    if not names:
        return frame
    pattern = re.compile(rf"(?<![\w-])({'|'.join(map(re.escape, names))})(?![\w-])")
    named = lambda text: pattern.sub(lambda name: labels[name[0]], text)  # noqa: E731
    return frame.assign(**{column: frame[column].map(named, na_action="ignore")})


def gates_in_words(gates: pd.DataFrame) -> list[str]:
    """Say how many checks passed, which failed and which could not be made."""
    lines = [f"{(gates['status'] == GateStatus.PASSED).sum()} of {len(gates)} checks passed"]
    for status, words in ((GateStatus.FAILED, "failed"), (GateStatus.NOT_ASSESSABLE, "could not be made")):
        names = gates.loc[gates["status"] == status, "gate"].value_counts(sort=False)
        if len(names):
            which = ", ".join(f"{name} ({number})" for name, number in names.items())
            lines.append(f"{names.sum()} {words}: {which}")
    return lines


def more_measuring(
    comparisons: pd.DataFrame, scenario: Scenario, cost: ReplicateCost | None = None
) -> list[str]:
    """Say how narrow each headline interval gets with more of the same, if the spread stays.

    With one replicate more blocks narrow "these disks" only.

    - `cost`: of one replicate more, which the last line then has.
    """
    rows = chosen(comparisons[comparisons["family"] == "headline"])
    several = rows["workload"].duplicated(keep=False)
    lines = []
    for row, shared in zip(rows.to_dict("records"), several, strict=True):
        arms = f", {_arm(scenario, row['arm'])} / {_arm(scenario, row['base_arm'])}" if shared else ""
        lines.append(f"{_measured(row, scenario)}{arms}: {_narrowing(row, comparisons, scenario)}")
    if comparisons["n_replicates"].max() < 2:
        lines.append(
            "No number of blocks makes this a statement about disks like these: "
            "the spread between disks has not been measured. That takes 2 replicates or more, better 5."
            + _first_general(comparisons)
        )
    if cost is None or not lines:
        return lines
    price = "" if cost.usd is None else f" ({cost.usd:.2f} USD)"
    return [*lines, f"Another replicate{price} {cost.basis}. {FIXED_BEFORE}"]


FIXED_BEFORE = (
    "Decide on it by the half-width: replicates added until a difference shows find one where there is none "
    "in 11 to 23 % of runs."
)


def _first_general(comparisons: pd.DataFrame) -> str:
    """What more replicates would give, at the spread between pairs that public measurements have."""
    blocks = max(1, int(comparisons["n_blocks"].max()))
    sd = math.hypot(noise_series.planned("pair-core"), noise_series.planned("block-core") / math.sqrt(blocks))
    two, five = (percent(power.half_width_of(sd, n), ".2g") for n in (2, 5))
    return (
        f" Two in all give ±{two} or less, five ±{five} or less, each in {percent(power.ASSURANCE)} of runs, "
        "at the spread that public measurements of Azure have on one machine."
    )


def _narrowing(row: Row, comparisons: pd.DataFrame, scenario: Scenario) -> str:
    """What more measuring would bring to one comparison, or why it would bring nothing."""
    if row["verdict"] in (Verdict.CAPPED, Verdict.SATURATED):
        return f"{row['verdict']}; more of the same would measure the limits, not the disks"
    if math.isnan(row["ci_low"]):
        return f"no interval to narrow; {row['warnings']}"
    if row["verdict"] == Verdict.INTERIM:
        return f"interim; {row['warnings']}"
    if _unpaired(row):
        return f"more blocks do not help; {row['warnings']}"
    return _outlook(outlook(row, comparisons), scope_words(row, scenario))


def _measured(row: Row, scenario: Scenario) -> str:
    """What a comparison measured: the latency of its load, or another metric and the load."""
    item, plain = scenario.workload_named(row["workload"]), is_plain(row)
    what = load_words(item, plain=plain)
    if row["metric"] != "lat_mean_ms":
        what = f"{METRIC_WORDS[row['metric']]} ({_workload(item, plain=plain)})"
    return totals.of_direction(what, row["direction"])


def _outlook(more: Outlook, scope: str) -> str:
    """Half-width now, and with more units."""
    narrowed = (f"{_half_width(half)} with {n} more" for n, half in zip(MORE, more.narrowed, strict=True))
    words = (
        f"{_half_width(more.now)} for {scope} with {more.n} {more.unit}; "
        f"in {percent(power.ASSURANCE)} of runs at most {', '.join(narrowed)}"
    )
    if not more.by_chance:
        return words
    chance = "these replicates agree more closely than their own blocks do, by chance"
    return f"{words}; {chance}: plan on a wider one"


def _half_width(half: float) -> str:
    """Write a half-width on the log scale in percent."""
    return f"±{percent(math.expm1(half), '.1f')}"
