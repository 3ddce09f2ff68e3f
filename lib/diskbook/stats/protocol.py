"""Protocol 1: what a comparison must have done to be called closed; what is missing makes it open, by name.

Closed and open are the divisions of MLPerf Storage; a filled and overwritten disk, a steady state that
is shown and a report that names its conditions are asked for by SNIA's Performance Test Specification.
docs/reference/protocol.md cites both and lists the points. Closed says how a number was made, never that
it is Azure's: that is its provenance.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import pandas as pd

from diskbook.design import schema
from diskbook.design.vocabulary import GateStatus, Provenance
from diskbook.facts.errors import DiskbookError
from diskbook.stats.compare import FEW_REPLICATES
from diskbook.stats.gates import data, design, limits, plan, tool
from diskbook.stats.gates.attachment import ATTACHMENT, STATE
from diskbook.stats.gates.guests import GUEST

VERSION = 1
KEYS = ("arm", "base_arm", "workload", "metric")
FAMILIES = ("headline", "control", "exploratory")
"""In the order in which comparisons are listed."""
DATA, VALUES = "data", "values"
_WATCHED = (Provenance.AZURE, Provenance.EMULATED, Provenance.INVENTORY)
_MOST_NAMED = 6

GateRow = Mapping[str, str]
"""Row of `schema.GATES`."""


class Status(StrEnum):
    """What became of one point in one comparison."""

    MET = "met"
    MISSING = "missing"
    NOT_APPLICABLE = "does not apply"


@dataclass(frozen=True)
class Facts:
    """What manifest, ledger and tables tell of a comparison, where no gate does; None: nothing tells.

    - `is_plan_written`, `is_plan_changed`: whether a plan was written before the first trial, and whether the
      scenario was changed since.
    - `is_raw_kept`: whether every raw result lies in the run's folder, with its hash.
    - `is_attached`: whether it measures disks that are attached to machines; volumes, local disks and files
      are not.
    - `is_filled`, `is_overwritten`, `no_overwrite`: whether all that it measures was filled, and written over
      in random order after that; or why not.
    - `is_unwritten`: whether it is the point of its load that nothing was written before.
    - `n_replicates`, `is_general`: replicates behind it, and whether there is an interval for disks like
      these.
    - `is_rate_held`, `is_latency`, `is_from_intended`: whether its load holds a rate, whether it compares
      latencies, and whether these are also known from when each I/O was due.
    - `n_trials`, `n_guest`: finished trials, and those of them whose machine was read.
    """

    provenance: str
    is_plan_written: bool | None = None
    is_plan_changed: bool = False
    is_raw_kept: bool | None = None
    is_attached: bool = True
    is_filled: bool | None = None
    is_overwritten: bool | None = None
    no_overwrite: str = ""
    is_unwritten: bool = False
    n_replicates: int = 0
    is_general: bool = False
    is_rate_held: bool = False
    is_latency: bool = True
    is_from_intended: bool | None = None
    n_trials: int = 0
    n_guest: int = 0


@dataclass(frozen=True)
class Answer:
    """Status of a point, why it is missing or does not apply, and what to do where it is missing."""

    status: Status
    why: str
    remedy: str = ""


Look = Callable[[Facts], Answer | None]
"""What facts alone decide; None where the gates have the word."""


@dataclass(frozen=True)
class Point:
    """One point of the protocol.

    - `number`, `name`: they never change within a version.
    - `demands`: what must hold.
    - `remedy`: what to do where it does not, unless a gate has a remedy that is nearer.
    - `gates`: gates that must pass; a gate that a run's table lacks is missing.
    - `facts`: what besides gates it is decided by, in words.
    - `look`: decides by facts, before the gates are asked.
    """

    number: int
    name: str
    demands: str
    remedy: str
    gates: tuple[str, ...] = ()
    facts: str = ""
    look: Look = lambda facts: None

    @property
    def title(self) -> str:
        """Number and name."""
        return f"{self.number} {self.name}"


@dataclass(frozen=True)
class Finding:
    """A point and what became of it."""

    point: Point
    answer: Answer

    @property
    def is_missing(self) -> bool:
        """Whether the comparison lacks it."""
        return self.answer.status is Status.MISSING


@dataclass(frozen=True)
class Conformance:
    """What one comparison meets of the protocol: closed when nothing is missing, else open."""

    arm: str
    base_arm: str
    workload: str
    metric: str
    family: str
    provenance: str
    findings: tuple[Finding, ...]

    @property
    def missing(self) -> list[Finding]:
        """Points that are missing, by number."""
        return [finding for finding in self.findings if finding.is_missing]

    @property
    def is_closed(self) -> bool:
        """Whether nothing is missing."""
        return not self.missing

    @property
    def standing(self) -> str:
        """Closed or open; on anything but Azure with the provenance, so that nobody takes it for Azure's."""
        word = "closed" if self.is_closed else "open"
        return word if self.provenance == Provenance.AZURE else f"{word} ({self.provenance})"

    @property
    def words(self) -> str:
        """Standing with what is missing, e.g. "open by protocol 1: 1 point missing (18 guest)"."""
        missing = self.missing
        if not missing:
            return f"{self.standing} by protocol {VERSION}"
        number = f"{len(missing)} point{'s' * (len(missing) != 1)} missing"
        return f"{self.standing} by protocol {VERSION}: {number} ({named(missing)})"


def named(missing: Sequence[Finding]) -> str:
    """Numbers and names of points, the first six."""
    names = [finding.point.title for finding in missing[:_MOST_NAMED]]
    more = [f"and {len(missing) - _MOST_NAMED} more"] if len(missing) > _MOST_NAMED else []
    return ", ".join([*names, *more])


def _missing(why: str) -> Answer:
    return Answer(Status.MISSING, why)


def _not_applicable(why: str) -> Answer:
    return Answer(Status.NOT_APPLICABLE, why)


def _plan(facts: Facts) -> Answer | None:
    if facts.is_plan_written is None:
        return _missing("nothing says what was planned")
    if not facts.is_plan_written:
        return _missing("no plan was written down before the first trial")
    return _missing("the scenario was changed after its plan was written") if facts.is_plan_changed else None


def _provenance(facts: Facts) -> Answer | None:
    if facts.provenance in _WATCHED:
        return None
    if Provenance.IMPORTED in facts.provenance:
        return _missing("it rests on files whose making nobody here watched (imported)")
    return _missing(f"its provenance is {facts.provenance or 'not recorded'}")


def _raw(facts: Facts) -> Answer | None:
    return None if facts.is_raw_kept else _missing("raw results are not all in the run's folder")


def _settings(facts: Facts) -> Answer | None:
    if facts.provenance == Provenance.INVENTORY:
        return _not_applicable("on hosts of one's own nothing is asked of a cloud")
    return None


def _attachment(facts: Facts) -> Answer | None:
    if facts.is_attached:
        return None
    return _not_applicable("it measures volumes, local disks or files, which are not attached for a trial")


def _fill(facts: Facts) -> Answer | None:
    if facts.is_unwritten:
        return _not_applicable("what it measures is a region that nothing was written to")
    if not facts.is_filled:
        return _missing("nothing says that all of what it measures was filled")
    if facts.is_overwritten:
        return None
    if facts.no_overwrite:
        return Answer(Status.MET, f"filled, and not written over: {facts.no_overwrite}")
    return _missing("it was filled, but not written over")


def _zones(facts: Facts) -> Answer | None:
    if facts.provenance == Provenance.INVENTORY:
        return _not_applicable("hosts of one's own lie in no zone of Azure")
    return None


def _replicates(facts: Facts) -> Answer | None:
    if facts.n_replicates >= FEW_REPLICATES:
        return None
    return _missing(f"it has {facts.n_replicates} of {FEW_REPLICATES} replicates")


def _memory(facts: Facts) -> Answer | None:
    if facts.is_general:
        return _not_applicable("its interval is over replicates, whose spread holds that of hours")
    return None


def _limits(facts: Facts) -> Answer | None:
    if facts.provenance == Provenance.INVENTORY:
        return _not_applicable("no limit is documented for disks of one's own; 16 tells whether one binds")
    return None


def _rate(facts: Facts) -> Answer | None:
    if not facts.is_rate_held:
        return _not_applicable("no rate is held: closed loops")
    if facts.is_latency and not facts.is_from_intended:
        return _missing("its latencies count from when an I/O was sent, not from when it was due")
    return None


def _guest(facts: Facts) -> Answer | None:
    if facts.n_trials and facts.n_guest >= facts.n_trials:
        return None
    if not facts.n_guest:
        return _missing("the machine was read in no trial")
    return _missing(f"the machine was read in {facts.n_guest} of {facts.n_trials} trials")


POINTS = (
    Point(
        1,
        "plan",
        "The plan was written before the first trial and not changed since; all of it is measured, or all up "
        "to a look that was planned.",
        "measure with 'diskbook run', which writes its plan first, and --resume it until it is complete",
        (plan.PLAN,),
        "`plan.json` and its hash in the ledger",
        _plan,
    ),
    Point(
        2,
        "provenance",
        "Where the numbers come from is recorded, and the workbook watched them being made.",
        "measure with 'diskbook run'; files of others stay open",
        (),
        "column `provenance`",
        _provenance,
    ),
    Point(
        3,
        "raw results",
        "What the tool printed in every trial is kept, unchanged since it was read.",
        "keep the folder raw/ with the run, and hand it on; hashes in the ledger say whether it is whole",
        (),
        "columns `raw_path` and `raw_sha256`; the folder `raw`",
        _raw,
    ),
    Point(
        4,
        "tool",
        "One version of one tool measured both arms.",
        "measure both arms with one release",
        (tool.TOOL,),
    ),
    Point(
        5,
        "settings",
        "Settings were read back from the cloud, and are those asked for.",
        "provision with 'diskbook run', which reads every disk back",
        (design.SETTINGS,),
        "hosts of one's own have none",
        _settings,
    ),
    Point(
        6,
        "attachment",
        "Disks of both arms were attached as often in a block, and as long before their trials.",
        "measure again, with as many attaches for every disk; [design] settle_s is the time after one",
        (ATTACHMENT,),
        "volumes, local disks and files have none",
        _attachment,
    ),
    Point(
        7,
        "fill",
        "The working set was filled, and written over once in random order, or a reason why not is recorded.",
        "measure again: a run writes over what it has filled, unless [design] no_overwrite says why not",
        (),
        "ledger, `prefill` and `overwrite`; `[design] no_overwrite`; an unwritten region needs none",
        _fill,
    ),
    Point(
        8,
        "state",
        "From block to block no arm drifts: its disk had come to a steady state.",
        "write the working set over before the first block, and measure more blocks",
        (STATE,),
    ),
    Point(
        9,
        "within trials",
        "Rates hold within trials.",
        "lengthen ramp and runtime: 20 s or more of series a trial",
        (data.STATIONARITY,),
    ),
    Point(
        10,
        "order",
        "Arms were interleaved in blocks of random order.",
        "measure 2 blocks or more, arms in random order within each",
        (design.ORDER,),
    ),
    Point(
        11,
        "pairing",
        "Arms share the machine or disk they are said to, or replicates take out what sets machines apart.",
        "measure 2 replicates or more, or pair the arms by the machine that they share",
        (design.PAIRING,),
    ),
    Point(
        12,
        "zones",
        "Each arm is of one physical zone, and replicates are no mixture of nearest zones.",
        "read zone-redundant disks from a machine in each zone, and compare each stratum apart",
        (design.ZONE, design.NEAREST_ZONE),
        "hosts of one's own have none",
        _zones,
    ),
    Point(
        13,
        "replicates",
        f"{FEW_REPLICATES} replicates or more, each on fresh machines and disks.",
        f"measure {FEW_REPLICATES} (--set design.replicates={FEW_REPLICATES}); 'diskbook plan' has the price",
        (),
        "column `n_replicates` of `comparisons.csv`",
        _replicates,
    ),
    Point(
        14,
        "memory",
        "Where the interval is over blocks, neighbouring blocks are alike no more than chance has it.",
        "measure replicates, or spread the blocks over hours ([design] spread)",
        (data.MEMORY,),
        "intervals over replicates need none",
        _memory,
    ),
    Point(
        15,
        "limits",
        "The limits in force are known, neither arm sits on one, and burst credit lasts or is spent alike.",
        "measure at queue depth 1, or hold a rate below the cap; name disk and machine (their limits)",
        (limits.CAP, limits.CREDIT),
        "disks of one's own have no documented limit",
        _limits,
    ),
    Point(
        16,
        "queues",
        "The tool kept its own queue full, its numbers agree with each other and with what was asked for, "
        "and no limit that is not known makes another queue.",
        "measure the same load at queue depth 1 as well; give the machine more CPU or lower the load",
        (limits.SATURATION, data.LITTLE, data.PLAUSIBLE),
    ),
    Point(
        17,
        "held rate",
        "A held rate was kept throughout, and latency counts from when each I/O was due.",
        "offer a lower rate or more depth, with fio, whose log gives every I/O; on Windows, where DiskSpd "
        "measures, compare latencies at queue depth 1 without a rate, or rates",
        (data.RATE, tool.GENERATOR),
        "columns `lat_mean_intended_ms`, `lat_mean_least_ms` and `lat_bound`; closed loops have none",
        _rate,
    ),
    Point(
        18,
        "guest",
        "The machine was read in every trial, and nothing in it sets the arms apart or slows them.",
        "measure again: each trial reads its machine; give it to nobody else, and more cores",
        (GUEST,),
        "table `guest`",
        _guest,
    ),
    Point(
        19,
        "trials",
        "Both arms have trials, values are numbers, and no loss or noise of one arm can have made the ratio.",
        f"{data.FILL}; find out why trials failed",
        (DATA, VALUES, data.LOSSES, data.LOSSES_BY_ARM, data.NOISE),
    ),
    Point(
        20,
        "other gates",
        "Every gate that no point above names has passed.",
        "do what the gate says",
        (),
        "all other gates of the run's table",
    ),
)
NAMED_GATES = frozenset(name for point in POINTS for name in point.gates)
_TRIALS, _REST = POINTS[18], POINTS[19]


def exempt(provenance: str, *, is_attached: bool) -> dict[str, str]:
    """Name the gates that do not apply by what is known before a trial, each with the reason of its point."""
    facts = Facts(provenance, is_attached=is_attached, is_rate_held=True, is_filled=True)
    answers = [(point, point.look(facts)) for point in POINTS]
    return {
        gate: answer.why
        for point, answer in answers
        if answer and answer.status is Status.NOT_APPLICABLE
        for gate in point.gates
    }


def judge(facts: Facts, gates: Iterable[GateRow]) -> tuple[Finding, ...]:
    """Hold one comparison against every point.

    - `gates`: its rows of the run's table of gates. A gate without a row is one that nobody assessed.
    """
    rows: dict[str, list[GateRow]] = {}
    for row in gates:
        rows.setdefault(row["gate"], []).append(row)
    if any(row["status"] == GateStatus.FAILED for row in rows.get(DATA, ())):
        return tuple(Finding(point, _unmeasured(point, rows)) for point in POINTS)
    return tuple(Finding(point, _answer(point, facts, rows)) for point in POINTS)


def _unmeasured(point: Point, rows: Mapping[str, list[GateRow]]) -> Answer:
    """Of what was not measured nothing else is missing."""
    if point is _TRIALS:
        return _by_gates(point, (DATA,), rows)
    return _not_applicable("an arm has no finished trial")


def _answer(point: Point, facts: Facts, rows: Mapping[str, list[GateRow]]) -> Answer:
    names = tuple(sorted(rows.keys() - NAMED_GATES)) if point is _REST else point.gates
    answer = point.look(facts) or _by_gates(point, names, rows)
    if answer.status is Status.MISSING and not answer.remedy:
        return Answer(answer.status, answer.why, point.remedy)
    return answer


def _by_gates(point: Point, names: Sequence[str], rows: Mapping[str, list[GateRow]]) -> Answer:
    """All gates of a point must have passed."""
    if point is _REST and not names:
        return _not_applicable("there is no other gate")
    why, remedies = [], []
    for name in names:
        if name not in rows:
            why.append(f"gate '{name}' was not assessed in this run")
        for row in rows.get(name, ()):
            if row["status"] != GateStatus.PASSED:
                why.append(f"{row['cause']} (gate '{name}', {row['status']})")
                remedies.append(row["remedy"])
    if why:
        return Answer(
            Status.MISSING, "; ".join(dict.fromkeys(why)), "; ".join(dict.fromkeys(filter(None, remedies)))
        )
    return Answer(Status.MET, "")  # what gates found is in their own table


def of_table(frame: pd.DataFrame) -> list[Conformance]:
    """Read comparisons back from their table (`schema.PROTOCOL`), in its order.

    Raises DiskbookError when it is not such a table, or of another version of the protocol.
    """
    checked = schema.validate(schema.PROTOCOL, frame)
    numbers = {point.number: point for point in POINTS}
    if not checked["protocol"].eq(VERSION).all() or not set(checked["number"]) <= set(numbers):
        raise DiskbookError(f"table protocol is of another version than {VERSION}; {schema.PROTOCOL.remedy}")
    rows: dict[tuple[str, str, str, str, str, str], list[Finding]] = {}
    for row in checked.to_dict("records"):
        answer = Answer(Status(row["status"]), row["why"], row["remedy"])
        names = row["arm"], row["base_arm"], row["workload"], row["metric"]
        key = *names, row["family"], row["provenance"]
        rows.setdefault(key, []).append(Finding(numbers[row["number"]], answer))
    return [Conformance(*key, tuple(findings)) for key, findings in rows.items()]


def table(conformances: Iterable[Conformance]) -> pd.DataFrame:
    """Put points of comparisons into one table (`schema.PROTOCOL`), a row a comparison and point."""
    rows = [
        {
            **{key: getattr(item, key) for key in (*KEYS, "family", "provenance")},
            "protocol": VERSION,
            "number": finding.point.number,
            "point": finding.point.name,
            "status": str(finding.answer.status),
            "why": finding.answer.why,
            "remedy": finding.answer.remedy,
        }
        for item in conformances
        for finding in item.findings
    ]
    return schema.from_rows(schema.PROTOCOL, rows)
