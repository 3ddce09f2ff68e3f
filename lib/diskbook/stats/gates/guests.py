"""Gate on the guests: were both arms measured by machines alike, which had the processor that they needed?

Kernel, driver, scheduler and write cache of a machine are part of what a trial measures. A difference
between arms is a warning, unless the scenario itself compares devices or machines that differ so. A
processor that the host took away, or a core that had no time left, makes a trial one of the machine.

The table of guests holds, per cell, their facts and how busy they were over its trials. Pure.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from diskbook.design.totals import CELL, trial_keys
from diskbook.design.vocabulary import Provenance
from diskbook.facts.nan_equal import NanEqual
from diskbook.facts.quantities import as_written
from diskbook.stats.gates import Gate, failed, not_assessable, passed

STEAL_PCT, CORE_PCT = 1.0, 90.0
"""More than this is no measurement of a disk: the host took the processor, or one core had no time left."""
GUEST_FACTS = {
    "kernel": "kernel",
    "image": "image",
    "cpu_model": "CPU",
    "driver": "driver",
    "ioengine": "I/O engine",
    "scheduler": "I/O scheduler",
    "write_cache": "write cache",
    "fua": "FUA",
    "rotational": "rotational",
    "nr_requests": "nr_requests",
    "hardware_queues": "hardware queues",
    "wbt_lat_usec": "write-back throttling in us",
    "logical_block_size_bytes": "logical block in bytes",
    "power_plan": "power plan",
}
"""Columns of the table `guest` that may decide a trial and should not differ between arms, in words."""
OF_DEVICE = ("driver", "write_cache", "fua", "rotational", "hardware_queues", "logical_block_size_bytes")
"""Those that a device has by its kind; nobody sets them in the guest."""


@dataclass(frozen=True, eq=False)
class CellGuest(NanEqual):
    """Guests of one cell.

    - `n_trials`, `n_steal`, `n_core`: trials with a row of the table `guest`; those of them of which steal,
      and the busiest core, are known.
    - `n_stolen`, `n_busy`: those over `STEAL_PCT` and `CORE_PCT`.
    - `steal_worst`, `core_worst`: in percent; NaN where none is known.
    - `facts`: by column of `FACTS` the values met, sorted, in words; those that nobody could tell are left
      out.
    """

    n_trials: int
    n_steal: int
    n_core: int
    n_stolen: int
    n_busy: int
    steal_worst: float
    core_worst: float
    facts: Mapping[str, tuple[str, ...]]


def guests_by_cell(rows: pd.DataFrame, guest: pd.DataFrame | None) -> dict[tuple[str, str], CellGuest]:
    """Gather the guests of every cell (arm, workload) from the rows of finished trials; empty without any."""
    return {(arm, load): cell for (arm, load), cell in _groups(rows, guest, CELL).items()}


def guests_by_arm(trials: pd.DataFrame, guest: pd.DataFrame) -> dict[str, CellGuest]:
    """Gather the guests of every arm, over all its finished trials."""
    finished = trials[trials["status"] == "ok"]
    return {arm: cell for (arm,), cell in _groups(finished, guest, ["arm"]).items()}


def _groups(
    rows: pd.DataFrame, guest: pd.DataFrame | None, keys: list[str]
) -> dict[tuple[str, ...], CellGuest]:
    if guest is None or guest.empty:
        return {}
    trial = trial_keys(rows, guest)
    joined = rows.drop_duplicates(trial)[[*trial, *keys]].merge(guest, on=trial)
    facts: dict[tuple[object, ...], list[tuple[object, ...]]] = {}
    for row in joined[[*keys, *GUEST_FACTS]].drop_duplicates().itertuples(index=False, name=None):
        facts.setdefault(row[: len(keys)], []).append(row[len(keys) :])
    groups = joined.groupby(keys, sort=False)
    return {tuple(map(str, key)): _cell(of_key, facts[key]) for key, of_key in groups}


def _cell(rows: pd.DataFrame, facts: Iterable[tuple[object, ...]]) -> CellGuest:
    """`facts`: those of its trials in the order of `GUEST_FACTS`, each combination once."""
    steal, core = (rows[name].dropna() for name in ("steal_pct", "busiest_core_pct"))
    words = [
        sorted({as_written(value) for value in met if not pd.isna(value)}) for met in zip(*facts, strict=True)
    ]
    return CellGuest(
        n_trials=len(rows),
        n_steal=len(steal),
        n_core=len(core),
        n_stolen=int((steal > STEAL_PCT).sum()),
        n_busy=int((core > CORE_PCT).sum()),
        steal_worst=float(steal.max()) if len(steal) else math.nan,
        core_worst=float(core.max()) if len(core) else math.nan,
        facts={name: tuple(met) for name, met in zip(GUEST_FACTS, words, strict=True) if met},
    )


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

    - `arms`, `guests`: names, and what is known of the guests of both cells; None where nothing was read.
    - `provenance`: of the run, or of several joined by "+".
    - `by_design`: columns of `FACTS` in which the scenario sets the arms apart: named, but not compared with
      them.
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
    for name, words in GUEST_FACTS.items():
        values, base_values = guest.facts.get(name), base_guest.facts.get(name)
        if values and base_values and values != base_values:
            yield name, f"{words}: {arm} has {' and '.join(values)}, {base} {' and '.join(base_values)}"


def _quiet(guests: Sequence[CellGuest]) -> str:
    """What was found of guests alike that had all they needed."""
    core = max(guest.core_worst for guest in guests)
    steal = [guest.steal_worst for guest in guests if guest.n_steal]
    taken = f"steal at most {max(steal):.1f} %" if steal else "steal is not told there"
    return f"{taken}, the busiest core at most {core:.0f} % of a trial"
