"""Gate on the guests: were both arms measured by machines alike, which had the processor that they needed?

Kernel, driver, scheduler and write cache of a machine are part of what a trial measures. A difference between
arms is a warning, unless the scenario itself compares devices or machines that differ so. A processor that
the host took away, or a core that had no time left, makes a trial one of the machine.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from diskbook.design.vocabulary import Provenance
from diskbook.stats.gates import Gate, failed, not_assessable, passed
from diskbook.stats.guests import CORE_PCT, FACTS, STEAL_PCT, CellGuest

GUEST = "guest"
_AGAIN = "measure again with this version, in which every trial tells how busy its machine was"
# One sentence for all comparisons of a run: which of its trials met it says nothing about their machines.
_EMULATED = (
    f"the computer that emulates all machines was busy in some trials (steal over {STEAL_PCT:g} %, or a core "
    f"over {CORE_PCT:g} %; the table of guests has the worst of each arm)"
)


def guest_gate(
    arms: Sequence[str],
    guests: Sequence[CellGuest | None],
    provenance: str,
    by_design: Collection[str] = (),
) -> Gate:
    """Both arms' machines must have had their processor; what sets them apart is named.

    Parameters
    ----------
    arms, guests
        Names, and what is known of the guests of both cells; None where nothing was read.
    provenance
        Of the run, or of several joined by "+".
    by_design
        Columns of `FACTS` in which the scenario sets the arms apart: named, but not held against them.
    """
    known = [(arm, guest) for arm, guest in zip(arms, guests, strict=True) if guest is not None]
    busy, differ = [words for arm, guest in known for words in _busy(arm, guest)], dict(_apart(known))
    apart = [words for name, words in differ.items() if name not in by_design]
    meant = [words for name, words in differ.items() if name in by_design]
    cause = "; ".join([*busy, *apart])
    if busy:
        emulated = Provenance.EMULATED in provenance
        if emulated:
            cause = "; ".join([_EMULATED, *apart])
            return failed(GUEST, cause, "leave that computer to the run alone, and measure again", None)
        remedy = "give the machine more cores, or spread the load over more threads, and measure again"
        return failed(GUEST, cause, remedy)
    if apart:
        return failed(GUEST, cause, "the ratio holds this as well, unless it is what is compared", None)
    if len(known) < len(arms):
        read = {arm for arm, _ in known}
        unread = " and ".join(dict.fromkeys(arm for arm in arms if arm not in read))
        cause = f"nothing was read of the machine of {unread} and of its block device"
        return not_assessable(GUEST, cause, _AGAIN)
    silent = [arm for arm, guest in known if guest.n_core < guest.n_trials]
    if silent:
        names = " and ".join(dict.fromkeys(silent))
        cause = f"how busy the cores of {names} were is not known for every trial"
        return not_assessable(GUEST, cause, _AGAIN)
    alike = "machines alike" + f" but for what is compared ({'; '.join(meant)})" * bool(meant)
    return passed(GUEST, f"{alike}; {_quiet([guest for _, guest in known])}")


def _busy(arm: str, guest: CellGuest) -> Iterator[str]:
    """Say in how many trials of an arm its machine had too little of its processor."""
    if guest.n_stolen:
        yield (
            f"the host took over {STEAL_PCT:g} % of the processor from {arm} in {guest.n_stolen} of "
            f"{guest.n_steal} trials (steal, worst {guest.steal_worst:.1f} %)"
        )
    if guest.n_busy:
        yield (
            f"a core of {arm} was busy for over {CORE_PCT:g} % of {guest.n_busy} of {guest.n_core} trials "
            f"(worst {guest.core_worst:.0f} %)"
        )


def _apart(known: Sequence[tuple[str, CellGuest]]) -> Iterator[tuple[str, str]]:
    """Name what differs between the guests of two arms, with both values; nothing where one was not read.

    Yields the column, and words.
    """
    if len(known) < 2:
        return
    (arm, guest), (base, base_guest) = known
    for name, words in FACTS.items():
        values, base_values = guest.facts.get(name), base_guest.facts.get(name)
        if values and base_values and values != base_values:
            yield name, f"{words}: {arm} has {' and '.join(values)}, {base} {' and '.join(base_values)}"


def _quiet(guests: Sequence[CellGuest]) -> str:
    """What was found of guests alike that had all they needed."""
    core = max(guest.core_worst for guest in guests)
    steal = [guest.steal_worst for guest in guests if guest.n_steal]
    taken = f"steal at most {max(steal):.1f} %" if steal else "steal is not told there"
    return f"{taken}, the busiest core at most {core:.0f} % of a trial"
