"""Progress of a run, read from its ledger: a bar on a terminal, plain lines in a log."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from tqdm import tqdm

from diskbook.facts import neighbours
from diskbook.facts.units import MIB

_OF_TRIALS = ("idle", "place", "fail", "restore", "verify")
"""Steps between trials, and of losses, which are told where they fail."""


class Progress:
    """Follows a ledger and shows a line a stage and a trial.

    Parameters
    ----------
    ledger
        The file; it may not exist yet.
    trials
        How many trials are planned in all.
    done
        How many of them earlier sessions of the run have done.
    """

    def __init__(self, ledger: Path, trials: int, done: int = 0) -> None:
        self._ledger = ledger
        self._position = ledger.stat().st_size if ledger.exists() else 0
        self._trials = trials
        self._done = done
        self._bar: tqdm[Any] | None = None
        self._told_expiry = ""

    def say(self, text: str) -> None:
        """Print a line, above the bar where there is one."""
        tqdm.write(text, file=sys.stdout)
        sys.stdout.flush()

    def follow(self) -> None:
        """Show what was added to the ledger since the last look."""
        if not self._ledger.exists():
            return
        with self._ledger.open("rb") as file:
            file.seek(self._position)
            lines = file.read().split(b"\n")
        for line in lines[:-1]:
            self._position += len(line) + 1
            if line.strip():
                self._show(json.loads(line))

    def close(self) -> None:
        """End the bar."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def _show(self, event: dict[str, Any]) -> None:
        shown = {
            "operation": self._operation,
            "trial": self._trial,
            "finding": self._finding,
            "drill": self._drill,
            "loss": self._loss,
            "prefill": self._prefill,
            "overwrite": self._prefill,
            "deletion": self._deletion,
            "expiry": self._expiry,
            "expired": self._expired,
            "notice": self._notice,
            "recovery": self._recovery,
            "step": self._step,
        }
        if event["event"] in shown:
            shown[event["event"]](event)

    def _operation(self, event: dict[str, Any]) -> None:
        if event["name"] in ("create machine", "create disk"):
            self.say(f"  {event['name']} {event['target']}: {event['real_s']:.0f} s")

    def _trial(self, event: dict[str, Any]) -> None:
        self._done += event["status"] == "ok"
        what = f"{event['arm']} {event['workload']}"
        if event["status"] != "ok":
            self.say(f"  trial failed (attempt {event['attempt']}): {what}: {event['error']}")
        elif sys.stdout.isatty():
            self._advance(what)
        else:
            block = "evidence" if event.get("evidence_s") else f"block {event['block']}"
            place = f"replicate {event['replicate']} {block}"
            self.say(f"  trial {self._done:>3}/{self._trials}  {place}  {what:<26} {event['seen']}")

    def _advance(self, what: str) -> None:
        if self._bar is None:
            columns = shutil.get_terminal_size().columns
            before = self._done - 1
            self._bar = tqdm(total=self._trials, initial=before, unit="trial", leave=False, ncols=columns)
        self._bar.set_postfix_str(what, refresh=False)
        self._bar.update(1)

    def _finding(self, event: dict[str, Any]) -> None:
        self.say(f"  check {event['name']}: {'as expected' if event['ok'] else 'FAILED'}: {event['text']}")

    def _drill(self, event: dict[str, Any]) -> None:
        if event["status"] == "ok":
            lost = f"{event['lost']} of {event['acknowledged']} acknowledged blocks lost"
            self.say(f"  drill {event['name']}: {lost}, taken over in {event['rto_s']:.2f} s")
        else:
            self.say(f"  drill {event['name']} {event['status']}: {event['error'] or ''}".rstrip(": "))

    def _loss(self, event: dict[str, Any]) -> None:
        if event["status"] == "ok":
            online = "online" if event["online"] == "yes" else "offline"
            blocks = f"{event['blocks_verified']} of {event['blocks_written']} blocks verified"
            what = f"{event['volume']} without {neighbours.volume_rules.LOST[event['lost']]}"
            self.say(f"  loss {what}: {online}, {blocks}, whole again after {event['resync_s']:.1f} s")
        elif event["status"] == "failed":
            self.say(f"  loss {event['name']} failed: {event['error']}")

    def _prefill(self, event: dict[str, Any]) -> None:
        lifted = ", caps lifted" if event["caps_lifted"] else ""
        self.say(
            f"  {event['event']} {event['disk'] or event['volume']}: {event['bytes'] / MIB:.0f} MiB{lifted}"
        )

    def _step(self, event: dict[str, Any]) -> None:
        where = f"{event['step']} on {event['node']}"
        if not event["ok"]:
            self.say(f"  step failed: {event['error']}")
        elif event["step"] not in _OF_TRIALS:
            self.say(f"  step {where}: {event['seconds']:.1f} s")

    def _expiry(self, event: dict[str, Any]) -> None:
        text = f"expires {event['expires_utc']}: {event['note']}"
        if event["note"] and text != self._told_expiry:  # mostly the same for all machines of a run
            self.say(f"  {event['machine']} {text}")
            self._told_expiry = text

    def _expired(self, event: dict[str, Any]) -> None:
        bill = "still billed" if event["billed"] else "no longer billed"
        self.say(f"  {event['machine']} has expired and was found {event['power']}, {bill}")

    def _deletion(self, event: dict[str, Any]) -> None:
        self.say(f"  {event['text']}")

    def _notice(self, event: dict[str, Any]) -> None:
        self.say(f"  {event['text']}")

    def _recovery(self, event: dict[str, Any]) -> None:
        self.say(
            f"  machine {event['machine']} did not answer: it was {event['found']}, and was {event['done']}"
        )
