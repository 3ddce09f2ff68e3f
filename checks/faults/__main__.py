"""Play the table of faults: `python -m checks.faults [--only PATTERN] [--list] [--at-once N]`."""

import argparse
import json
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict

from checks import azurite
from checks.faults.play import Fault, Row, play
from checks.faults.spoil import can_mount
from checks.faults.table import FAULTS

LIMIT_S = 1800.0  # for one fault


def main(arguments: Sequence[str] | None = None) -> int:
    """Play faults and print a line each; 1 when a run left, lost or repeated something."""
    parser = argparse.ArgumentParser(prog="python -m checks.faults", description=__doc__)
    parser.add_argument("--only", default="", metavar="PATTERN", help="those whose name or kind it matches")
    parser.add_argument("--list", action="store_true", help="list the faults, play none")
    parser.add_argument("--at-once", type=int, default=2, metavar="N", help="runs at the same time")
    parser.add_argument("--play", metavar="NAME", help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if asked.play:
        signal.signal(signal.SIGTERM, _leave)  # the scene is cleared away on the way out
        print(json.dumps(asdict(play(next(fault for fault in FAULTS if fault.slug == asked.play)))))
        return 0
    chosen = [fault for fault in FAULTS if re.search(asked.only, f"{fault.kind}: {fault.slug}")]
    if asked.list:
        for fault in chosen:
            print(f"{fault.slug:<36} {fault.kind:<14} {fault.stage:<12} {fault.what}")
        return 0
    return _play_all(chosen, asked.at_once)


def _leave(number: int, frame: object) -> None:
    signal.signal(number, signal.SIG_IGN)  # it may come once for each thread of the table's process
    raise SystemExit(128 + number)


def _play_all(chosen: Sequence[Fault], at_once: int) -> int:
    able = [fault for fault in chosen if not _missing(fault)]
    started, failed = time.monotonic(), 0
    print("emulated: runs with one fault each, resumed where they stopped")
    for row in rows(able, at_once):
        failed += not row.ok
        print(line(row), flush=True)
    for fault in chosen:
        if fault not in able:
            print(f"-     {fault.slug}: not played, {_missing(fault)}")
    minutes = (time.monotonic() - started) / 60
    print(f"{len(able)} faults, {failed} failed, {minutes:.1f} min")
    return int(failed > 0 or not able)


def _missing(fault: Fault) -> str:
    """What a fault cannot be played without, where that is not here."""
    if fault.root and not can_mount():
        return "only root may mount a disk to fill"
    if fault.azurite and not azurite.is_installed():
        return "there is no Azurite ('make azurite' installs it)"
    return ""


def rows(faults: Sequence[Fault], at_once: int) -> Iterator[Row]:
    """Play faults, each in a process of its own; rows come in the order of the table."""
    with ThreadPoolExecutor(at_once) as pool:
        yield from pool.map(_in_a_process, faults)


def _in_a_process(fault: Fault) -> Row:
    command = [sys.executable, "-m", "checks.faults", "--play", fault.slug]
    if shutil.which("setpriv"):  # Linux: the player is told to end when the table's process is gone
        command = ["setpriv", "--pdeathsig", "TERM", *command]
    row = Row(fault.slug, fault.kind, fault.what, fault.stage)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        return Row(**json.loads(done.stdout.strip().splitlines()[-1]))
    except subprocess.TimeoutExpired:
        row.wrong.append(f"it took more than {LIMIT_S:.0f} s")
    except (ValueError, IndexError):
        row.wrong.append(f"the player died: {(done.stderr.strip().splitlines() or ['silently'])[-1]}")
    return row


def line(row: Row) -> str:
    """One row of the table as text."""
    parts = [
        "ok  " if row.ok else "FAIL",
        f"{row.kind:<13} {row.stage:<11} {row.what}",
        row.ending or "did not end",
        f"left: {'; '.join(row.left) or 'nothing'}",
        f"lost or repeated: {'; '.join(row.wrong) or 'nothing'}",
        f"{row.seconds:.0f} s",
    ]
    return " | ".join(parts) + (f"\n     told: {row.sentence}" if row.sentence else "")


if __name__ == "__main__":
    sys.exit(main())
