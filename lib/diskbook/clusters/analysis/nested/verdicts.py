"""The article's claims, judged by the numbers of a run.

The article prints none, so that verdicts are made here: each from ratios, comparisons, capacities read back
and losses played, and "not measured" where a run lacks what a claim is about.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pandas as pd

from diskbook.clusters.analysis.nested import arms, below, capacity, losses, saturated, tiers
from diskbook.clusters.design import volume_rules
from diskbook.clusters.design.volume_rules import NESTED_DISKS
from diskbook.design.vocabulary import Label, Provenance, Verdict
from diskbook.facts import quantities
from diskbook.facts.units import KIB
from diskbook.report.analysis.published_claims import ClaimVerdict, Finding
from diskbook.report.show import sentences
from diskbook.report.show.analysed import Analysed

MARGIN = 0.05
"""Relative difference that counts as a loss."""
_NOT_PLAYED = ClaimVerdict.NOT_MEASURED, "no such loss was played in this run"


class Numbers(NamedTuple):
    """What claims are judged by: the run, and its ratios to the two-way mirror with full queues."""

    a: Analysed
    cells: pd.DataFrame


Judge = Callable[[Numbers], Finding]


def verdicts(a: Analysed) -> dict[str, Finding]:
    """Verdict and reason of each claim by this run, by the claim's first words."""
    numbers = Numbers(a, saturated.ratios(a))
    return {claim: judge(numbers) for claim, judge in _JUDGES.items()}


def _played(run: Numbers, kind: str, lost: tuple[str, ...], claimed: str) -> Finding:
    """Judge whether volumes of a kind are online after losses as it was claimed."""
    rows = losses.played(run.a)
    rows = rows[(rows["kind"] == kind) & rows["lost"].isin(lost)]
    if rows.empty:
        return _NOT_PLAYED
    words = ", ".join(
        f"{volume_rules.WORDS[row['lost']]}: {'online' if row['online'] == 'yes' else 'offline'}"
        for row in rows.drop_duplicates(["lost", "online"]).to_dict("records")
    )
    right = bool((rows["online"] == claimed).all())
    return ClaimVerdict.SUPPORTED if right else ClaimVerdict.NOT_SUPPORTED, f"played: {words}"


def _goes_offline(run: Numbers) -> Finding:
    return _played(run, "two-way", ("drive-each", "node-and-drive"), "no")


def _two_of_three(run: Numbers) -> Finding:
    return _played(run, "three-way", ("two-nodes",), "yes")


def _row(run: Numbers, kind: str, write_pct: int, *, inside: bool = False) -> Mapping[Any, Any] | None:
    """A cell of the grid of a kind, of the smallest blocks; None where it was not measured."""
    name = arms.first(run.a, kind, inside=inside)
    rows = run.cells
    rows = rows[(rows["arm"] == name) & (rows["write_pct"] == write_pct)]
    return rows.sort_values("block_size_bytes").iloc[0].to_dict() if len(rows) else None


def _rate(row: Mapping[Any, Any]) -> str:
    load = f"{row['block_size_bytes'] / KIB:.0f}K with {row['write_pct']} % writes"
    times = quantities.change(row["ratio"], row["low"], row["high"])
    return f"{_over(row)}, IOPS at {load}: {times}{', no interval' * math.isnan(row['low'])}"


def _over(row: Mapping[Any, Any]) -> str:
    """Name both sides of a ratio."""
    return f"{arms.WORDS[row['kind']]} / {arms.WORDS[arms.BASE]}"


def _same_of(what: str, row: Mapping[Any, Any] | None) -> str:
    """Add a ratio of the same two sides, or of another kind to the two-way mirror."""
    return f"; {what}: {quantities.change(row['ratio'])}" if row is not None else ""


def _lost(row: Mapping[Any, Any]) -> bool:
    """Whether a ratio is below 1 by more than the margin, and its interval leaves out 1 where it has one."""
    return bool(row["ratio"] < 1 - MARGIN and not row["high"] >= 1)


def _by_bound(row: Mapping[Any, Any]) -> str:
    if math.isnan(row["bound"]):
        return ""
    arithmetic = ": arithmetic" if row["held"] and abs(row["left"] - 1) <= saturated.NEAR else ""
    return f", compared with {quantities.change(row['bound'])} by counting disk I/Os{arithmetic}"


def _terrible(run: Numbers) -> Finding:
    row, reads = _row(run, "nested-parity", 100), _row(run, "nested-parity", 0)
    if row is None:
        return _missing("accelerated parity with its data outside the mirror tier")
    half = row["ratio"] < 0.5
    return ClaimVerdict.SUPPORTED if half else ClaimVerdict.NOT_SUPPORTED, (
        f"{_rate(row)}{_by_bound(row)}{_same_of('the same for reads', reads)}"
    )


def _quarter(run: Numbers) -> Finding:
    seen = _seen(run, "nested-mirror")
    if not seen:
        return _missing("a nested mirror whose footprint was read back")
    right = all(abs(share - 0.25) < 0.005 for share in seen)
    return ClaimVerdict.SUPPORTED if right else ClaimVerdict.NOT_SUPPORTED, (
        f"read back: {_percents(seen)} of its footprint can be used"
    )


def _more_effective(run: Numbers) -> Finding:
    nested, parity = _seen(run, "nested-mirror"), _seen(run, "nested-parity")
    if not nested or not parity:
        return _missing("nested mirror and accelerated parity whose footprints were read back")
    times = min(parity) / max(nested)
    return ClaimVerdict.SUPPORTED if times > 1.2 else ClaimVerdict.NOT_SUPPORTED, (
        f"read back: {_percents(parity)} against {_percents(nested)}, {quantities.changed(times, 'more')} at "
        "least; the mirror's share is that of this run"
    )


def _seen(run: Numbers, kind: str) -> list[float]:
    seen = capacity.read_back(run.a)
    entries = [item for item in run.a.scenario.volume if item.kind == kind]
    return [seen[name] for item in entries for name in run.a.scenario.members_of(item) if name in seen]


def _percents(shares: list[float]) -> str:
    return " to ".join(dict.fromkeys(f"{100 * share:.1f} %" for share in (min(shares), max(shares))))


def _cache(run: Numbers) -> Finding:
    rows = tiers.ratios(run.a)
    reads, writes = (rows[rows["kind"] == kind] for kind in ("read", "write"))
    if reads.empty or writes.empty:
        return _missing("accelerated parity with its data inside the mirror tier and outside")
    faster = [_gains(part) for part in (reads, writes)]
    verdict = ClaimVerdict.SUPPORTED if faster[0] else ClaimVerdict.NOT_SUPPORTED
    what = {(True, True): "reads and writes", (True, False): "reads", (False, True): "writes only"}
    return verdict, (
        f"inside the tier {what.get((faster[0], faster[1]), 'neither reads nor writes')} gain: IOPS inside / "
        f"outside are {_range(reads)} times for reads and {_range(writes)} times for writes"
    )


def _gains(rows: pd.DataFrame) -> bool:
    """Whether a ratio is above 1 by more than the margin, and its interval leaves out 1 where it has one."""
    return bool(((rows["ratio"] > 1 + MARGIN) & ~(rows["low"] <= 1)).any())


def _range(rows: pd.DataFrame) -> str:
    return " to ".join(dict.fromkeys(f"{value:.2f}" for value in (rows["ratio"].min(), rows["ratio"].max())))


def _no_read_loss(run: Numbers) -> Finding:
    row = _row(run, "nested-mirror", 0)
    if row is not None and _lost(row):
        return ClaimVerdict.NOT_SUPPORTED, f"with full queues {_rate(row)}"
    rows = below.judged(run.a, arms.first(run.a, "nested-mirror"), "read")
    if len(rows):
        slower = rows["verdict"].eq(Verdict.DIFFERENCE) & (rows["ratio"] > 1 + MARGIN)
        equal = any(Verdict.of(of) is Verdict.EQUIVALENT for of in rows["verdict"])
        verdict = ClaimVerdict.SUPPORTED if equal else ClaimVerdict.NOT_MEASURED
        words = "; ".join(sentences.sentence(item, run.a.scenario) for item in rows.to_dict("records"))
        return (ClaimVerdict.NOT_SUPPORTED if slower.any() else verdict), words
    if row is None:
        return _missing("reads of a nested mirror and a two-way mirror")
    return _reads_at_depth(row)


def _reads_at_depth(row: Mapping[Any, Any]) -> Finding:
    if row["held"]:
        why = "one limit holds both, so that a difference below it cannot be seen"
        return ClaimVerdict.CAPPED, f"{_rate(row)}{_by_bound(row)}; {why}"
    return ClaimVerdict.SUPPORTED, _rate(row)


def _bigger_read_loss(run: Numbers) -> Finding:
    parity, nested = _row(run, "nested-parity", 0), _row(run, "nested-mirror", 0)
    if parity is None:
        return _missing("reads of accelerated parity and a two-way mirror")
    beside = _same_of("nested mirror / two-way mirror", nested)
    imported = Provenance.IMPORTED in run.a.provenance
    written = "whether all was written before is not told" if imported else "all was written in full before"
    more = _lost(parity) and (nested is None or parity["ratio"] < (1 - MARGIN) * nested["ratio"])
    verdict = ClaimVerdict.SUPPORTED if more else ClaimVerdict.NOT_SUPPORTED
    return verdict, f"{_rate(parity)}{_by_bound(parity)}{beside}; {written}"


def _data_set(run: Numbers) -> Finding:
    inside, outside = (_row(run, "nested-parity", 100, inside=place) for place in (True, False))
    nested = _row(run, "nested-mirror", 100)
    if inside is None or outside is None:
        return _missing("accelerated parity with its data inside the mirror tier and outside")
    better = inside["ratio"] > (1 + MARGIN) * outside["ratio"]
    beside = _same_of("nested mirror / two-way mirror", nested)
    return ClaimVerdict.SUPPORTED if better else ClaimVerdict.NOT_SUPPORTED, (
        f"data inside the mirror tier: {_rate(inside)}{_same_of('outside it', outside)}{beside}"
    )


def _half_the_disks(run: Numbers) -> Finding:
    row = _row(run, "nested-mirror", 100)
    if row is None:
        return _missing("writes of a nested mirror and a two-way mirror")
    below_limits = below.judged(run.a, row["arm"], "write")
    lines = [sentences.sentence(item, run.a.scenario) for item in below_limits.to_dict("records")]
    verdict = ClaimVerdict.SUPPORTED if _lost(row) else ClaimVerdict.NOT_SUPPORTED
    return verdict, "; ".join([f"with full queues {_rate(row)}{_by_bound(row)}", *lines])


def _calculations(run: Numbers) -> Finding:
    row = _row(run, "nested-parity", 100)
    if row is None:
        return _missing("writes of accelerated parity and a two-way mirror")
    words = f"{_rate(row)}{_by_bound(row)}"
    if not _lost(row):
        return ClaimVerdict.NOT_SUPPORTED, f"no such loss: {words}"
    if math.isnan(row["bound"]) or row["left"] < 1 - 2 * MARGIN:
        return ClaimVerdict.NOT_MEASURED, f"{words}: something costs besides disk I/Os, and nothing says what"
    in_mirror = " (part of the writes went into the mirror tier)" * (row["left"] > 1 + MARGIN)
    return (
        ClaimVerdict.NOT_SUPPORTED,
        f"the loss is there, and disk I/Os alone explain it{in_mirror}: {words}",
    )


def _invest(run: Numbers) -> Finding:
    nested, parity = _row(run, "nested-mirror", 100), _row(run, "nested-parity", 100)
    if nested is None or parity is None:
        return _missing("writes of nested mirror and accelerated parity")
    gain, drives = nested["ratio"] / parity["ratio"], capacity.times_the_drives(NESTED_DISKS)
    return ClaimVerdict.SUPPORTED if gain > 1 + MARGIN else ClaimVerdict.NOT_SUPPORTED, (
        f"nested mirror / accelerated parity, 4K writes: {quantities.change(gain)} on the same drives. The "
        f"same capacity takes {quantities.changed(drives, 'more')} drives with {NESTED_DISKS} a node: "
        f"{quantities.change(gain * drives)} writes in all"
    )


def _grid(run: Numbers) -> Finding:
    table = run.cells
    if table.empty:
        return _missing("the article's grid on a two-way mirror and another kind")
    held = int(table["held"].sum())
    near = int(((table["left"] - 1).abs() <= saturated.NEAR).sum())
    cells = run.a.cells
    labels = set(cells.loc[cells["workload"].isin(list(table["workload"])), "label"])
    verdict = ClaimVerdict.SUPPORTED if labels == {Label.BELOW_CAP} else ClaimVerdict.NOT_MEASURED
    verdict = ClaimVerdict.CAPPED if 2 * held > len(table) else verdict
    return verdict, (
        f"{held} of {len(table)} ratios are those of limits, and counting disk I/Os predicts {near} of them "
        f"within {100 * saturated.NEAR:.0f} %"
    )


def _missing(what: str) -> Finding:
    return ClaimVerdict.NOT_MEASURED, f"this run does not have {what}"


_JUDGES: dict[str, Judge] = {
    "a two-node mirror goes offline": _goes_offline,
    "a three-way mirror on three nodes": _two_of_three,
    "parity has terrible": _terrible,
    "nested mirror leaves only 25 %": _quarter,
    "accelerated parity with 20 %": _more_effective,
    "accelerated parity uses its mirrored part": _cache,
    "little or no read loss": _no_read_loss,
    "a bigger read loss": _bigger_read_loss,
    "very little loss with a smaller data set": _data_set,
    "write loss for nested mirror": _half_the_disks,
    "heavy write loss": _calculations,
    "buy disks": _invest,
    "28 VMs of 10 threads x 8": _grid,
}
"""What judges each claim by a run, by the claim's first words."""
