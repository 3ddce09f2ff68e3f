"""One fault from the start of the run to the end of it, as a row of the table."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Concatenate, ParamSpec

from checks.faults import aftermath, store_aftermath
from checks.faults.scene import SCENARIO, NotStruck, Scene, scene
from diskbook.measure.runs import refused
from diskbook_emulator import lifecycle
from diskbook_emulator.types import Json

Act = Callable[[Scene], None]
_Given = ParamSpec("_Given")


def acting(do: Callable[Concatenate[Scene, _Given], None]) -> Callable[_Given, Act]:
    """Have a function be given all but its scene, and return what acts on a scene."""

    def given(*values: _Given.args, **named: _Given.kwargs) -> Act:
        return lambda scene: do(scene, *values, **named)

    return given


@dataclass(frozen=True)
class Fault:
    """Something that goes wrong in a run.

    - `slug`, `kind`, `what`, `stage`: its short name; the kind it belongs to; what happens; in which
      notebook.
    - `prepare`: makes the place ready for it, before the run begins.
    - `inject`: does it, while the run goes on; returns when it is done.
    - `mend`: what a person does before going on: make room, wait, sweep.
    - `planted`: faults of the control plane (see `diskbook_emulator/arm/faults.py`), in place from the
      beginning.
    - `proof`: what shows that it struck: "stop" (the run ends), "failed" (a trial), "recovery" (of a
      machine).
    - `named`: the emulator was started by hand, so that machines outlive the client; otherwise it is the
      run's own.
    - `cut`: the client dies without a word: nothing can be said, and what stands is left standing until it is
      swept or the run goes on.
    - `away`: a host of one's own is away when the run stops: what stands there is said, and goes when it is
      back.
    - `stands`: names of resources that the run must leave in its group, and nothing else: its exit status is
      3.
    - `root`: it can only be played by a user who may mount.
    - `azurite`: it can only be played where Azurite is installed.
    - `scenario`: the file of the scenario that is run.
    - `asked`, `asked_again`: options that the run begins with, and that it resumes with.
    """

    slug: str
    kind: str
    what: str
    stage: str
    inject: Act | None = None
    prepare: Act | None = None
    mend: Act | None = None
    planted: tuple[Json, ...] = ()
    named: bool = True
    proof: str = ""
    cut: bool = False
    away: bool = False
    stands: tuple[str, ...] = ()
    root: bool = False
    azurite: bool = False
    scenario: Path = SCENARIO
    asked: tuple[str, ...] = ()
    asked_again: tuple[str, ...] = ()


@dataclass
class Row:
    """How a run with a fault went."""

    slug: str
    kind: str
    what: str
    stage: str
    ending: str = ""
    sentence: str = ""
    left: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether nothing is left, lost or repeated."""
        return not self.left and not self.wrong


def play(fault: Fault) -> Row:
    """Play one fault. What goes wrong with the playing stands in the row too."""
    row = Row(fault.slug, fault.kind, fault.what, fault.stage)
    started = time.monotonic()
    try:
        with scene(fault.named, fault.planted, fault.scenario) as place:
            _play(fault, place, row)
    except Exception as error:
        row.wrong.append(f"{type(error).__name__}: {error}")
    row.seconds = round(time.monotonic() - started, 1)
    return row


def _play(fault: Fault, place: Scene, row: Row) -> None:
    if fault.prepare:
        fault.prepare(place)
    place.begin(*fault.asked)
    if fault.inject:
        fault.inject(place)
    status, row.sentence = place.end()
    before: list[Json] = []
    _check_struck(fault, place, status)
    if status == 0:
        row.ending = "went on by itself"
        row.sentence = place.notes[-1] if place.notes else _seen(place)
    else:
        row.ending = "stopped, resumed"
        before = place.run.ledger()
        if fault.stands:
            row.wrong += aftermath.other_than(place, fault.stands, status, row.sentence)
        else:
            _check_stop(fault, place, row)
        if fault.planted:
            lifecycle.plant(place.emulator, [])
        if fault.mend:
            fault.mend(place)
        if not _went_on(fault, place, row):
            return
    row.left += aftermath.left_over(place)
    row.wrong += aftermath.lost_or_repeated(place.run, before)
    row.wrong += store_aftermath.lost_or_repeated(place) if place.store else []
    if not (place.run.folder / "report.html").exists():
        row.wrong.append("there is no report")


def _went_on(fault: Fault, place: Scene, row: Row) -> bool:
    """Resume the run, or begin it again where it left no folder; tell whether it then ended well."""
    if place.run.folder.exists():
        place.resume(*fault.asked_again)
    else:
        place.begin(*fault.asked)
    status, sentence = place.end()
    if status:
        row.wrong.append(f"the resumed run ended with {status}: {sentence}{_log(place)}")
    return status == 0


def _log(place: Scene) -> str:
    """Last line that a stage left which ended with a defect of ours."""
    logs = sorted((place.run.folder / "notebooks").glob("*.log"), key=lambda path: path.stat().st_mtime)
    lines = logs[-1].read_text(errors="replace").strip().splitlines() if logs else []
    return f" ({lines[-1]})" if lines else ""


def _check_stop(fault: Fault, place: Scene, row: Row) -> None:
    """A run that stopped says why in one sentence, and how to go on or begin again, and leaves nothing."""
    if fault.cut:
        row.sentence = "(killed)"
        return
    again = "--resume" if place.run.folder.exists() else refused.ADVICE
    if row.sentence.startswith("a traceback") or again not in row.sentence:
        row.wrong.append(f"it said: {row.sentence or 'nothing'}")
    elif "ended with status 1;" in row.sentence:
        row.wrong.append(f"a defect of ours{_log(place)}")
    if not fault.away:
        row.left += [f"after the stop: {what}" for what in aftermath.left_over(place)]


def _check_struck(fault: Fault, place: Scene, status: int) -> None:
    for planted in lifecycle.planted(place.emulator) if fault.planted else ():
        if planted["seen"] <= planted.get("after", 0):
            raise NotStruck(f"nothing matched {planted['match']}")
    proofs = {
        "": True,
        "stop": status != 0,
        # A busy computer may bring a machine back later than the run waits for it: it stops then.
        "failed": status != 0 or bool(place.events("trial", status="failed")),
        "recovery": bool(place.events("recovery")),
    }
    if not proofs[fault.proof]:
        raise NotStruck("the run did not notice it")


def _seen(place: Scene) -> str:
    """What the progress lines said of the fault."""
    for event in place.events("recovery"):
        return f"machine {event['machine']} did not answer: it was {event['found']}, and was {event['done']}"
    for event in place.events("trial", status="failed"):
        return f"trial failed (attempt 1): {event['error']}"
    for event in place.events("notice"):
        return str(event["text"])
    return ""
