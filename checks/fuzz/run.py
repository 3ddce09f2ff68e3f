"""Damaged results for every parser, by the million, and hostile names for all that shows them: `make fuzz`.

A parser may return what it could use, or refuse with a `DiskbookError`. Anything else is a crash: another
exception, a number that is infinite or negative, more than some seconds or some memory for one input. The
input of a crash is kept in a file, and its number and the seed make it again.
"""

import argparse
import contextlib
import ctypes
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import FrameType

from checks.fuzz import texts
from checks.fuzz.mutations import mutate
from checks.fuzz.targets import Target, targets
from diskbook.facts.errors import DiskbookError, is_visible
from diskbook.facts.units import GIB

INPUTS = 1_000_000
MINUTES = 30
_BATCH = 2_000
_CPU_S = 10.0
"""Processor time that one input may take; 48 KiB take milliseconds."""
_MORE_BYTES = GIB
"""Address space that a process may take beyond what it began with."""
_SHOWN = 10  # of a batch
_END_WITH_PARENT = 1  # PR_SET_PDEATHSIG


class _Hang(BaseException):
    """An input took too long."""


@dataclass
class Tally:
    """Of one parser: inputs, those it made something of, those it refused."""

    inputs: int = 0
    read: int = 0
    refused: int = 0


@dataclass
class Outcome:
    """What came of some inputs: a tally for each parser, and crashes as (number, parser, what)."""

    tallies: dict[str, Tally] = field(default_factory=dict)
    crashes: list[tuple[int, str, str]] = field(default_factory=list)

    def add(self, other: "Outcome") -> None:
        """Add the outcome of other inputs."""
        for name, tally in other.tallies.items():
            own = self.tallies.setdefault(name, Tally())
            own.inputs += tally.inputs
            own.read += tally.read
            own.refused += tally.refused
        self.crashes += other.crashes


def run(first: int, count: int, seed: int, known: list[Target] | None = None) -> Outcome:
    """Feed inputs with these numbers to the parsers, in turn.

    - `first`, `count`: numbers of the inputs; a number and the seed make an input.
    - `seed`: of all random choices.
    - `known`: `targets()`, where they were read already.
    """
    outcome = Outcome()
    parsers = known or targets()
    with _clock() as limit:
        for number in range(first, first + count):
            target, content = make(number, seed, parsers)
            tally = outcome.tallies.setdefault(target.name, Tally())
            tally.inputs += 1
            what = _feed(target, content, tally, limit)
            if what:
                outcome.crashes.append((number, target.name, what))
    return outcome


def make(number: int, seed: int, parsers: list[Target]) -> tuple[Target, bytes]:
    """Make the input of that number, and say which parser it is for."""
    random = Random(f"{seed}/{number}")
    target = parsers[number % len(parsers)]
    return target, mutate(random.choice(target.seeds), random, target.seeds)


def main(arguments: list[str] | None = None) -> int:
    """Feed a million inputs, or as many as asked for; print what came of them. Returns the exit code."""
    asked = _arguments(arguments)
    started = time.monotonic()
    outcome = Outcome()
    batches = [(at, min(_BATCH, asked.count - at)) for at in range(0, asked.count, _BATCH)]
    with ProcessPoolExecutor(asked.processes, initializer=_bounded) as pool:
        futures = [pool.submit(run, at, size, asked.seed) for at, size in batches]
        for done, future in enumerate(futures, 1):
            crashes = future.result()
            _keep(crashes, asked)
            outcome.add(crashes)
            if done % 25 == 0 or done == len(futures):
                rate = sum(tally.inputs for tally in outcome.tallies.values()) / (time.monotonic() - started)
                print(f"{done * _BATCH:>9,} of {asked.count:,} inputs, {rate:,.0f}/s", flush=True)
    failed = texts.failures(texts.TEXTS[: asked.texts])
    shown = min(asked.texts, len(texts.TEXTS))
    print(f"{shown} names and payloads, imported, drawn and on pages; failures: {len(failed)}")
    print(*failed, sep="\n")
    return _report(outcome, time.monotonic() - started, asked) or bool(failed)


def _arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="checks.fuzz.run", description=__doc__)
    parser.add_argument("--count", type=int, default=INPUTS, help="inputs (default: a million)")
    parser.add_argument("--seed", type=int, default=1, help="of all random choices")
    parser.add_argument(
        "--texts", type=int, default=len(texts.TEXTS), help="names and payloads (default: all)"
    )
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--crashes", type=Path, default=Path("fuzz-crashes"), help="folder for what crashes")
    return parser.parse_args(arguments)


def _report(outcome: Outcome, seconds: float, asked: argparse.Namespace) -> int:
    total = sum(tally.inputs for tally in outcome.tallies.values())
    print(f"\n{'parser':<24}{'inputs':>10}{'read':>10}{'refused':>10}")
    for name, tally in outcome.tallies.items():
        print(f"{name:<24}{tally.inputs:>10,}{tally.read:>10,}{tally.refused:>10,}")
    print(
        f"\n{total:,} inputs in {seconds:,.0f} s: {total / seconds:,.0f}/s; crashes: {len(outcome.crashes)}"
    )
    late = total >= INPUTS and seconds > MINUTES * 60
    if late:
        print(f"slower than {INPUTS:,} inputs in {MINUTES} minutes")
    return 1 if outcome.crashes or late else 0


def _keep(outcome: Outcome, asked: argparse.Namespace) -> None:
    """Write the inputs of crashes into files, and say where, as soon as they are found."""
    parsers = targets() if outcome.crashes else []
    for number, name, what in outcome.crashes[:_SHOWN]:
        asked.crashes.mkdir(exist_ok=True)
        path = asked.crashes / f"{asked.seed}-{number}.bin"
        path.write_bytes(make(number, asked.seed, parsers)[1])
        print(f"  {name}: {what}\n    its input: {path}", flush=True)


def _feed(target: Target, content: bytes, tally: Tally, limit: float) -> str:
    """Parse one input; say what happened when it was a crash."""
    signal.setitimer(signal.ITIMER_VIRTUAL, limit)
    try:
        target.parse(content)
        tally.read += 1
    except DiskbookError as error:
        tally.refused += 1
        return "" if _is_one_sentence(str(error)) else f"its message is no sentence: {str(error)[:200]!r}"
    except (Exception, _Hang) as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(last.filename).name}:{last.lineno}"
        return f"{type(error).__name__} at {place}: {str(error)[:200]}"
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return ""


def _is_one_sentence(message: str) -> bool:
    return 5 < len(message) < 1500 and is_visible(message) and "Traceback" not in message


@contextlib.contextmanager
def _clock() -> Iterator[float]:
    """Let an input that takes too much processor time end in `_Hang`."""

    def ring(number: int, frame: FrameType | None) -> None:
        raise _Hang(f"more than {_CPU_S:.0f} s")

    before = signal.signal(signal.SIGVTALRM, ring)
    try:
        yield _CPU_S
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _bounded() -> None:
    """Let a process that takes too much memory fail instead of the machine, and end with its parent."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_END_WITH_PARENT, signal.SIGKILL)
    status = Path("/proc/self/statm")
    used = int(status.read_text().split()[0]) * resource.getpagesize() if status.exists() else 4 << 30
    resource.setrlimit(resource.RLIMIT_AS, (used + _MORE_BYTES, resource.RLIM_INFINITY))


if __name__ == "__main__":
    sys.exit(main())
