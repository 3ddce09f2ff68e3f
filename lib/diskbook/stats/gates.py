"""Gates: what must hold before a number is compared. Values attached to results; none of them drops data.

Each gate says passed, failed or not assessable, why, and what to do, in a sentence each. A failed gate
changes the verdict of every comparison that uses the cell.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from diskbook.base.units import percent
from diskbook.stats.cell_checks import Places
from diskbook.stats.outliers import FAR, MIN_BLOCKS, MIN_REPLICATES, FarRuns
from diskbook.stats.strata import INFERRED, Strata
from diskbook.tables.vocabulary import CreditState, GateStatus, Label, Verdict

Cell = Mapping[Any, Any]

UNKNOWN_MACHINE = "unknown"
MAX_LOST = 0.25
FALSE_ALARM = 0.01
CLIFF = 0.20


@dataclass(frozen=True)
class Gate:
    """One gate's finding.

    Attributes
    ----------
    name, status
        What was looked at, and how it came out.
    cause, remedy
        A sentence each; the remedy is empty when nothing needs doing.
    verdict
        What a failure makes of the comparison; None when it only warns.
    """

    name: str
    status: GateStatus
    cause: str
    remedy: str = ""
    verdict: Verdict | None = None

    @property
    def words(self) -> str:
        """Cause and remedy as one footnote."""
        return f"{self.cause}: {self.remedy}" if self.remedy else self.cause


def data_gate(arm: str, base_arm: str, workload: str, counts: Sequence[int]) -> Gate:
    """Both arms must have finished trials."""
    missing = [name for name, count in zip((arm, base_arm), counts, strict=True) if not count]
    if not missing:
        return Gate("data", GateStatus.PASSED, f"both arms have finished trials of {workload}")
    cause = f"no finished trial of {' and '.join(missing)} with {workload}"
    return Gate("data", GateStatus.FAILED, cause, "resume the run or measure again", Verdict.INVALID)


def little_gate(cells: Sequence[Cell]) -> Gate:
    """Little's law, closed loop: the I/Os in flight must be the outstanding ones."""
    bad = sum(int(cell["n_little_bad"]) for cell in cells)
    of = sum(int(cell["n_trials"]) - int(cell["n_rated"]) for cell in cells)
    if not of:
        return Gate("Little's law", GateStatus.PASSED, "every trial was rate-limited, none a closed loop")
    worst = _farthest(cell["little_worst"] for cell in cells)
    unknown = sum(int(cell.get("n_little_unknown", 0)) for cell in cells)
    if not bad and unknown:
        cause = f"no latency was measured in {unknown} of {of} trials: the queue may not have been full"
        return Gate(
            "Little's law", GateStatus.NOT_ASSESSABLE, cause, "measure latencies as well (DiskSpd: -L)"
        )
    if not bad:
        cause = f"IOPS x latency is the number outstanding in all {of} trials ({_worst(worst, 1)})"
        return Gate("Little's law", GateStatus.PASSED, cause)
    cause = f"IOPS x latency is not the number outstanding in {bad} of {of} trials ({_worst(worst, 1)})"
    remedy = "the tool did not keep its queue full; give the machine more CPU or lower the load, and repeat"
    return Gate("Little's law", GateStatus.FAILED, cause, remedy, Verdict.INVALID)


def rate_gate(cells: Sequence[Cell]) -> Gate:
    """A rate-limited trial must reach its rate within 0.5 %, with fewer in flight than it may have."""
    bad, of = sum(int(cell["n_rate_bad"]) for cell in cells), sum(int(cell["n_rated"]) for cell in cells)
    if not of:
        return Gate("offered rate", GateStatus.PASSED, "no rate was offered: closed loops")
    worst = _farthest(cell["rate_worst"] for cell in cells)
    if not bad:
        cause = f"the offered rate was kept in all {of} trials ({_worst(worst, 2)})"
        return Gate("offered rate", GateStatus.PASSED, cause)
    cause = (
        f"the offered rate was not kept within 0.5 % with depth to spare in {bad} of {of} trials "
        f"({_worst(worst, 1)})"
    )
    remedy = "offer a lower rate or more depth; fio rounds intervals to whole microseconds"
    return Gate("offered rate", GateStatus.FAILED, cause, remedy, Verdict.INVALID)


def cap_gate(arms: Sequence[str], labels: Sequence[Cell], words: Sequence[str]) -> Gate:
    """A cell on a cap says nothing about the disk: its latency is outstanding / cap.

    Parameters
    ----------
    arms, labels, words
        Name, row of `limits.label_cells`, and limit in words ("" below caps) of both cells.
    """
    named = list(zip(arms, labels, words, strict=True))
    capped = [item for item in named if item[1]["label"] == Label.CAPPED]
    near = [item for item in named if item[1]["label"] == Label.NEAR_A_CAP]
    if not capped and not near:
        share = max(float(label["share"]) for label in labels)
        if math.isnan(share):
            return Gate("cap", GateStatus.NOT_ASSESSABLE, "no limit is known")
        return Gate("cap", GateStatus.PASSED, f"at most {100 * share:.0f} % of any known limit")
    outstanding = labels[0]["outstanding"]
    if capped:
        if len(capped) == 2 and words[0] == words[1]:
            where = f"both arms sit on the {words[0]}"
        else:
            where = " and ".join(f"{arm} sits on its {limit}" for arm, _, limit in capped)
        cause = f"{where}, so that latency is {outstanding:.0f} outstanding / cap whatever the disk"
        remedy = "measure at queue depth 1, or hold the rate below the cap"
        return Gate("cap", GateStatus.FAILED, cause, remedy, Verdict.CAPPED)
    where = " and ".join(f"{arm} at {100 * cell['share']:.0f} % of its {limit}" for arm, cell, limit in near)
    cause = f"{where}, which may or may not bind"
    remedy = "measure a second depth, or 30 s and more, to tell"
    return Gate("cap", GateStatus.NOT_ASSESSABLE, cause, remedy, Verdict.INCONCLUSIVE)


def credit_gate(cells: Sequence[Cell]) -> Gate:
    """Where any is drawn, burst credit must be known, and must last or be spent alike in all trials.

    How much is left does not change a rate as long as some is, so "partial" counts as "full" (see `credit`).
    """
    if not any(cell["draws_credit"] is True or cell["draws_credit"] == 1 for cell in cells):
        return Gate("burst credit", GateStatus.PASSED, "no trial ran above a base limit, so none drew credit")
    states = [
        {CreditState.FULL if word == CreditState.PARTIAL else word for word in _words(cell["credit"])}
        for cell in cells
    ]
    if any(not state or CreditState.UNKNOWN in state for state in states):
        remedy = "fetch the credit metrics, or turn bursting off"
        return Gate(
            "burst credit", GateStatus.NOT_ASSESSABLE, "credit was drawn and its state is not known", remedy
        )
    found = set.union(*states)
    if found == {CreditState.FULL}:
        return Gate("burst credit", GateStatus.PASSED, "credit lasted throughout every trial of both arms")
    if len(found) == 1 and CreditState.DRAINED not in found:
        return Gate(
            "burst credit", GateStatus.PASSED, f"credit was {found.pop()} in every trial of both arms"
        )
    cause = f"credit differed between trials ({', '.join(sorted(found))})"
    if found == {CreditState.DRAINED}:
        cause = "credit ran out within trials, which are a mixture of burst and base"
    return Gate(
        "burst credit",
        GateStatus.FAILED,
        cause,
        "report burst and base apart, or wait for refill",
        Verdict.INVALID,
    )


def stationarity_gate(cells: Sequence[Cell]) -> Gate:
    """Rates must hold over a trial. Fails when more trials moved than false alarms explain, or one fell off.

    The check of a trial gives 1 % false alarms, so a few among many are expected.
    """
    moved, seen = sum(int(c["n_moved"]) for c in cells), sum(int(c["n_assessable"]) for c in cells)
    if not seen:
        cause = "trials have fewer than 20 samples"
        return Gate("stationarity", GateStatus.NOT_ASSESSABLE, cause, "measure for 20 s or more a trial")
    worst = _farthest(cell["change_worst"] for cell in cells)
    cause = f"{moved} of {seen} trials moved between their halves ({_worst(worst, 0)})"
    if not moved or (moved <= _false_alarms(seen) and abs(worst) < CLIFF):
        return Gate("stationarity", GateStatus.PASSED, cause)
    fell = next((str(cell["fell"]) for cell in cells if cell["fell"]), "")
    if fell:
        cause += f"; the rate fell {fell}, as when a burst credit runs out"
        remedy = "report burst and base apart: measure with the credit spent, or shorter than it lasts"
    else:
        remedy = "look at the series for a warm-up; lengthen the ramp"
    return Gate("stationarity", GateStatus.FAILED, cause, remedy, Verdict.INVALID)


@functools.cache
def _false_alarms(n_trials: int) -> float:
    """Trials that may move by chance alone in all but one comparison of a thousand."""
    return float(stats.binom.ppf(0.999, n_trials, FALSE_ALARM))


def order_gate(places: Places, arm: str, base_arm: str, workload: str) -> Gate:
    """Arms must be interleaved: "all A, then all B" takes a drift of the hour for a difference."""
    ones, twos = (places.get((name, workload), {}) for name in (arm, base_arm))
    found = []
    for replicate in ones.keys() & twos.keys():
        (first, last, n), (base_first, base_last, base_n) = ones[replicate], twos[replicate]
        found.append((min(n, base_n), last < base_first or base_last < first))
    repeated = [apart for n, apart in found if n > 1]
    if not repeated:
        return Gate(
            "order", GateStatus.NOT_ASSESSABLE, "each arm was measured once", "measure 2 blocks or more"
        )
    if any(repeated):
        cause = "one arm was measured wholly before the other"
        return Gate(
            "order",
            GateStatus.FAILED,
            cause,
            "interleave the arms in blocks of random order",
            Verdict.INVALID,
        )
    return Gate("order", GateStatus.PASSED, "arms were interleaved")


def losses_gate(cells: Sequence[Cell], n_blocks: int, n_blocks_all: int) -> Gate:
    """Failed trials are said; where a quarter of the blocks lack an arm, what is left is a selection."""
    failed, lost = sum(int(c["n_failed"]) for c in cells), sum(int(c["n_lost"]) for c in cells)
    twice = sum(int(c["n_repeated_rows"]) for c in cells)
    parts = [f"{failed} trial{'s' * (failed != 1)} failed, {lost} without a later success"] if failed else []
    parts += [f"{twice} repeated rows were left out"] if twice else []
    if n_blocks < n_blocks_all:
        parts.append(f"{n_blocks} of {n_blocks_all} blocks have both arms")
    cause = "; ".join(parts) or "no trial failed"
    if n_blocks_all and n_blocks < (1 - MAX_LOST) * n_blocks_all:
        return Gate(
            "failed trials", GateStatus.FAILED, cause, "resume the run to fill the gaps", Verdict.INVALID
        )
    return Gate("failed trials", GateStatus.PASSED, cause)


def values_gate(n_bad: int, metric: str) -> Gate:
    """A metric that is missing, zero, negative or infinite in a finished trial points at a broken reading."""
    if not n_bad:
        return Gate("values", GateStatus.PASSED, f"every {metric} is a positive number")
    cause = f"{metric} is not a positive number in {n_bad} finished trial{'s' * (n_bad != 1)}"
    return Gate("values", GateStatus.FAILED, cause, "look at the raw output of those trials", Verdict.INVALID)


def noise_gate(arms: Sequence[str], far: FarRuns, there: np.ndarray) -> Gate:
    """Runs far out in one arm only: the interval then covers less often than it says.

    A rule of thumb, so it warns and decides nothing; and blind to noise that did not happen to occur.

    Parameters
    ----------
    arms, far
        Names, and runs far out of both arms.
    there
        Which blocks have both arms, [replicate, block].
    """
    counts = int(far.arm), int(far.base)
    if not any(counts):
        return Gate(
            "one-sided noise", GateStatus.PASSED, f"no run beyond {FAR:.0f} robust s.d. in either arm"
        )
    if all(counts):
        return Gate(
            "one-sided noise",
            GateStatus.PASSED,
            f"{counts[0]} and {counts[1]} runs far out: both arms have them",
        )
    arm, count = (arms[0], counts[0]) if counts[0] else (arms[1], counts[1])
    runs = f"{count} run{'s' * (count != 1)} of {arm} beyond {FAR:.0f} robust s.d., none of the other arm"
    blocks = there.sum(axis=-1)
    if len(blocks) and (blocks >= MIN_BLOCKS).sum() >= MIN_REPLICATES:
        return Gate("one-sided noise", GateStatus.PASSED, f"{runs}; enough replicates and blocks to bear it")
    cause = f"{runs}, so the interval may hold the truth less often than it says (a rule of thumb)"
    remedy = f"measure {MIN_REPLICATES} replicates x {MIN_BLOCKS} blocks or more"
    return Gate("one-sided noise", GateStatus.FAILED, cause, remedy)


def zone_gate(arms: Sequence[str], cells: Sequence[Cell]) -> Gate:
    """A physical zone is a stratum: an arm that was measured from several is not pooled."""
    mixed = [arm for arm, cell in zip(arms, cells, strict=True) if len(_words(cell["zones"])) > 1]
    if mixed:
        cause = f"{' and '.join(mixed)} was measured from more than one physical zone"
        return Gate("zone", GateStatus.FAILED, cause, "compare each physical zone apart", Verdict.INVALID)
    if not all(_words(cell["zones"]) for cell in cells):
        return Gate("zone", GateStatus.NOT_ASSESSABLE, "physical zones were not recorded")
    return Gate("zone", GateStatus.PASSED, "each arm was measured from one physical zone")


def nearest_gate(strata: Strata, n_replicates: int) -> Gate:
    """Replicates whose disks answer nearest from different zones are a mixture; each stratum stands apart.

    Where a zone-redundant disk was not read from all zones the mixture cannot be seen, and a general claim
    from few replicates covers far less than it says: 76 % in place of 95 % with 2 (`make coverage`).
    """
    if strata.unprobed:
        names = " and ".join(strata.unprobed)
        cause = (
            f"the zone-redundant disk of {names} was not read from all zones, so its nearest one is hidden"
        )
        remedy = "read the disk from a machine in each zone, at queue depth 1, to speak of disks like these"
        return Gate("nearest zone", GateStatus.NOT_ASSESSABLE, cause, remedy)
    if not strata.inferred:
        return Gate(
            "nearest zone", GateStatus.PASSED, "no disk was read from several zones, so none is inferred"
        )
    counts = Counter(strata.of_replicate.values())
    if not strata.mixed or n_replicates < 2:
        return Gate("nearest zone", GateStatus.PASSED, f"{next(iter(counts))} ({INFERRED})")
    parts = "; ".join(f"{words}: {n} replicate{'s' * (n != 1)}" for words, n in counts.items())
    cause = f"replicates are a mixture of nearest zones ({INFERRED}): {parts}"
    return Gate(
        "nearest zone",
        GateStatus.FAILED,
        cause,
        "read the estimate of each stratum, with 2 replicates or more",
    )


def hides_general(findings: Iterable[Gate]) -> str:
    """Say why a comparison has no interval for disks like these, whatever its replicates; empty if it has."""
    hidden = [
        gate for gate in findings if gate.name == "nearest zone" and gate.status == GateStatus.NOT_ASSESSABLE
    ]
    return hidden[0].words if hidden else ""


def of_machines(findings: Iterable[Gate]) -> list[str]:
    """Say that a ratio holds what sets two machines apart, where it does; that holds whatever the verdict."""
    return [
        gate.words for gate in findings if gate.name == "pairing" and gate.status == GateStatus.NOT_ASSESSABLE
    ]


def settings_gate(arms: Sequence[str], mismatches: Mapping[str, str] | None) -> Gate:
    """What was read back from the cloud must be what was asked for."""
    if mismatches is None:
        return Gate("settings", GateStatus.NOT_ASSESSABLE, "settings were not read back")
    wrong = [mismatches[arm] for arm in arms if arm in mismatches]
    if wrong:
        return Gate(
            "settings",
            GateStatus.FAILED,
            "; ".join(wrong),
            "provision anew with the right setting",
            Verdict.INVALID,
        )
    return Gate("settings", GateStatus.PASSED, "settings read back are those asked for")


def pairing_gate(pairing: str, cells: Sequence[Cell], n_replicates: int) -> Gate:
    """Pairs must share what the pairing says; different machines need replicates.

    Two arms on two machines, each measured once, differ by their machines as well: blocks repeat that
    difference faithfully and make its interval narrow, so none of it is a finding about disks.
    """
    machines, disks = ([_words(cell[name]) for cell in cells] for name in ("machines", "disks"))
    if pairing == "same-machine" and set(machines[0]) != set(machines[1]):
        cause = "the arms were to share a machine and did not"
        return Gate("pairing", GateStatus.FAILED, cause, "correct the scenario's pairing", Verdict.INVALID)
    if pairing == "same-disk" and set(disks[0]) != set(disks[1]):
        cause = "the arms were to share a disk and did not"
        return Gate("pairing", GateStatus.FAILED, cause, "correct the scenario's pairing", Verdict.INVALID)
    shared = set(machines[0]) == set(machines[1]) and UNKNOWN_MACHINE not in machines[0]
    if pairing == "same-machine" or (pairing == "same-disk" and shared):
        return Gate("pairing", GateStatus.PASSED, "both arms on the same machine")
    if n_replicates < 2:
        verdict = Verdict.INCONCLUSIVE if unpaired(pairing, n_replicates) else None
        return Gate("pairing", GateStatus.NOT_ASSESSABLE, *_unpaired(machines), verdict)
    return Gate("pairing", GateStatus.PASSED, f"different machines, {n_replicates} replicates")


def unpaired(pairing: str, n_replicates: int) -> bool:
    """Whether nothing tells the arms from their machines, so that no ratio of theirs is a finding."""
    return pairing == "replicate" and n_replicates < 2


def _unpaired(machines: Sequence[tuple[str, ...]]) -> tuple[str, str]:
    """Cause and remedy where what sets machines apart does not cancel, by what is known of the machines."""
    remedy = "measure 2 replicates or more"
    if UNKNOWN_MACHINE in machines[0] + machines[1]:
        cause = "nothing says that the arms shared a machine, whose own difference may be part of the ratio"
        return cause, f"if they did, say so (diskbook import --same-machine); else {remedy}"
    if set(machines[0]) == set(machines[1]):
        cause = "the pairing is by replicates, of which there is one"
        return cause, f"{remedy}, or pair the arms by the machine they share"
    return "the arms are on different machines, whose own difference is part of the ratio", remedy


def _farthest(values: Iterable[Any]) -> float:
    """Value farthest from zero, NaN left out; NaN of nothing."""
    known = [float(value) for value in values if not math.isnan(value)]
    return max(known, key=abs, default=math.nan)


def _worst(worst: float, digits: int) -> str:
    """Worst relative distance in words; says so where a number is missing."""
    return "numbers are missing" if math.isnan(worst) else f"worst {percent(worst, f'+.{digits}f')}"


def _words(value: Any) -> tuple[str, ...]:
    return value if isinstance(value, tuple) else ()
