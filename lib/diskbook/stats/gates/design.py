"""Gates on the design: were arms interleaved, in one zone, paired as said, and set up as asked?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from diskbook.design.vocabulary import GateStatus, Scope, Verdict
from diskbook.stats.cell_checks import Places
from diskbook.stats.gates import Cell, Gate, distinct, failed, not_assessable, passed
from diskbook.stats.strata import INFERRED, Strata

ORDER, ZONE, NEAREST_ZONE, SETTINGS, PAIRING = "order", "zone", "nearest zone", "settings", "pairing"
UNKNOWN_MACHINE = "unknown"
SAME_MACHINE = "same-machine"
MACHINES_APART = "the arms are on different machines, whose own difference is part of the ratio"


def order_gate(places: Places, arm: str, base_arm: str, workload: str) -> Gate:
    """Arms must be interleaved: "all A, then all B" takes a drift of the hour for a difference."""
    arm_places, base_places = (places.get((name, workload), {}) for name in (arm, base_arm))
    apart = []
    for replicate in arm_places.keys() & base_places.keys():
        (first, last, n), (base_first, base_last, base_n) = arm_places[replicate], base_places[replicate]
        if min(n, base_n) > 1:
            apart.append(last < base_first or base_last < first)
    if not apart:
        return not_assessable(ORDER, "each arm was measured once", "measure 2 blocks or more")
    if any(apart):
        cause = "one arm was measured wholly before the other"
        return failed(ORDER, cause, "interleave the arms in blocks of random order")
    return passed(ORDER, "arms were interleaved")


def zone_gate(arms: Sequence[str], cells: Sequence[Cell]) -> Gate:
    """A physical zone is a stratum: an arm that was measured from several is not pooled."""
    mixed = [arm for arm, cell in zip(arms, cells, strict=True) if len(distinct(cell["zones"])) > 1]
    if mixed:
        cause = f"{' and '.join(mixed)} was measured from more than one physical zone"
        return failed(ZONE, cause, "compare each physical zone apart")
    if not all(distinct(cell["zones"]) for cell in cells):
        remedy = "measure again with 'diskbook run', machines in a zone ([[machine]] zone), which it records"
        return not_assessable(ZONE, "physical zones were not recorded", remedy)
    return passed(ZONE, "each arm was measured from one physical zone")


def nearest_gate(strata: Strata, n_replicates: int) -> Gate:
    """Replicates whose disks answer nearest from different zones are a mixture; each stratum stands apart.

    Where a zone-redundant disk was not read from all zones the mixture cannot be seen, and a general claim
    from few replicates covers far less than it says (`make coverage`).
    """
    if strata.unprobed:
        disks = f"the zone-redundant disk of {' and '.join(strata.unprobed)}"
        cause = f"{disks} was not read from all zones, so its nearest one is hidden"
        remedy = "read the disk from a machine in each zone, at queue depth 1, to speak of disks like these"
        return not_assessable(NEAREST_ZONE, cause, remedy)
    if not strata.inferred:
        return passed(NEAREST_ZONE, "no disk was read from several zones, so none is inferred")
    counts = Counter(strata.of_replicate.values())
    if not strata.mixed or n_replicates < 2:
        return passed(NEAREST_ZONE, f"{next(iter(counts))} ({INFERRED})")
    parts = "; ".join(f"{words}: {n} replicate{'s' * (n != 1)}" for words, n in counts.items())
    cause = f"replicates are a mixture of nearest zones ({INFERRED}): {parts}"
    return failed(NEAREST_ZONE, cause, "read the estimate of each stratum, with 2 replicates or more", None)


def hides_general(findings: Iterable[Gate]) -> str:
    """Say why a comparison has no interval for disks like these, whatever its replicates; empty if it has."""
    return next((gate.words for gate in findings if _is_open(gate, NEAREST_ZONE)), "")


def of_machines(findings: Iterable[Gate], pairing: str, scope: str) -> list[str]:
    """Say that a ratio holds what sets two machines apart, where it does; that holds whatever the verdict."""
    words = [gate.words for gate in findings if _is_open(gate, PAIRING)]
    if words or not unpaired(pairing, scope):
        return words
    return [f"{MACHINES_APART}: read that for disks like these, which allows for it"]


def _is_open(gate: Gate, name: str) -> bool:
    return gate.name == name and gate.status is GateStatus.NOT_ASSESSABLE


def settings_gate(arms: Sequence[str], mismatches: Mapping[str, str] | None) -> Gate:
    """What was read back from the cloud must be what was asked for."""
    if mismatches is None:
        return not_assessable(SETTINGS, "settings were not read back")
    wrong = [mismatches[arm] for arm in arms if arm in mismatches]
    if wrong:
        return failed(SETTINGS, "; ".join(wrong), "provision anew with the right setting")
    return passed(SETTINGS, "settings read back are those asked for")


def pairing_gate(pairing: str, cells: Sequence[Cell], n_replicates: int) -> Gate:
    """Pairs must share what the pairing says; different machines need replicates.

    Two arms on two machines, each measured once, differ by their machines as well: blocks repeat that
    difference faithfully and make its interval narrow, so none of it is a finding about disks, nor about
    zones, one disk or two. (One disk from two machines, 4,000 simulated runs of 4 blocks: machines with a
    standard deviation of 0.5, 1 and 5 % made 8, 15 and 67 % of them a difference.)
    """
    machines, disks = ([distinct(cell[name]) for cell in cells] for name in ("machines", "disks"))
    for kind, names in (("machine", machines), ("disk", disks)):
        if pairing == f"same-{kind}" and set(names[0]) != set(names[1]):
            cause = f"the arms were to share a {kind} and did not"
            return failed(PAIRING, cause, "correct the scenario's pairing")
    if pairing_of(pairing, cells) == SAME_MACHINE:
        return passed(PAIRING, "both arms on the same machine")
    if n_replicates < 2:
        return not_assessable(PAIRING, *_unpaired(machines), Verdict.INCONCLUSIVE)
    return passed(PAIRING, f"different machines, {n_replicates} replicates")


def pairing_of(pairing: str, cells: Sequence[Cell]) -> str:
    """How arms are paired, as their trials have it: one disk on one machine is paired by that machine too."""
    machines = [distinct(cell["machines"]) for cell in cells]
    shared = set(machines[0]) == set(machines[1]) and UNKNOWN_MACHINE not in machines[0]
    return SAME_MACHINE if pairing == "same-disk" and shared else pairing


def unpaired(pairing: str, scope: str) -> bool:
    """Whether nothing tells the arms from their machines, so that no ratio of theirs is a finding.

    Replicates, on fresh machines each, turn what sets machines apart into spread, which the interval for
    disks like these allows for. That for these disks, over blocks, never does.

    Parameters
    ----------
    pairing
        As the trials have it (`pairing_of`), which is what a table of comparisons holds.
    scope
        Of the estimate.
    """
    return pairing != SAME_MACHINE and scope == Scope.THESE


def _unpaired(machines: Sequence[tuple[str, ...]]) -> tuple[str, str]:
    """Cause and remedy where what sets machines apart does not cancel, by what is known of the machines."""
    remedy = "measure 2 replicates or more"
    if UNKNOWN_MACHINE in machines[0] + machines[1]:
        cause = "nothing says that the arms shared a machine, whose own difference may be part of the ratio"
        return cause, f"if they did, say so (diskbook import --same-machine); else {remedy}"
    if set(machines[0]) == set(machines[1]):
        cause = "the pairing is by replicates, of which there is one"
        return cause, f"{remedy}, or pair the arms by the machine they share"
    return MACHINES_APART, remedy
