"""Progress of a run, read from its ledger: one bar over all stages on a terminal, plain lines in a log."""

import json
import shutil
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tqdm import tqdm

from diskbook.facts import neighbours
from diskbook.facts.units import MIB

_OF_TRIALS = ("idle", "place", "fail", "restore", "verify")
"""Steps between trials, and of losses, which are told where they fail."""


class Progress:
    """Follows a ledger and shows a line a stage and a trial.

    `stages_s` is how long each stage is expected to take, by its first letter; without it there is no bar.
    """

    def __init__(
        self, ledger: Path, trials: int, done: int = 0, stages_s: Mapping[str, float] | None = None
    ) -> None:
        self._ledger = ledger
        self._position = ledger.stat().st_size if ledger.exists() else 0
        self._trials = trials
        self._done = done
        self._left = trials - done
        self._stages_s = dict(stages_s or {})
        self._bar = _bar(sum(self._stages_s.values())) if stages_s and sys.stdout.isatty() else None
        self._drawn_s = 0.0
        self._told_expiry = ""

    def begin(self, stage: str) -> None:
        """Show that a stage begins."""
        if self._bar is None:
            self.say(f"{stage} ...")
        else:
            self._bar.set_postfix_str("", refresh=False)
            self._bar.set_description_str(stage)

    def end(self, stage: str, seconds: float) -> None:
        """Show that a stage has ended, and how long it took."""
        self.say(f"{stage} done in {seconds:.0f} s")
        if self._bar is not None:
            past = sum(expected for name, expected in self._stages_s.items() if name <= stage[:1])
            self._bar.n = max(past, self._bar.n)
            self._bar.refresh()

    def say(self, text: str) -> None:
        """Print a line, above the bar where there is one."""
        tqdm.write(text, file=sys.stdout)
        sys.stdout.flush()

    def follow(self) -> None:
        """Show what was added to the ledger since the last look."""
        if self._bar is not None and time.monotonic() - self._drawn_s >= 1:
            self._bar.refresh()
            self._drawn_s = time.monotonic()
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
            "deletion": self._notice,
            "expiry": self._expiry,
            "expired": self._expired,
            "notice": self._notice,
            "look": self._notice,
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
        elif self._bar is not None:
            self._bar.set_postfix_str(f"trial {self._done}/{self._trials}, {what}", refresh=False)
            self._bar.update(self._stages_s.get("2", 0.0) / max(1, self._left))
        else:
            block = "evidence" if event.get("evidence_s") else f"block {event['block']}"
            place = f"replicate {event['replicate']} {block}"
            self.say(f"  trial {self._done:>3}/{self._trials}  {place}  {what:<26} {event['seen']}")

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

    def _notice(self, event: dict[str, Any]) -> None:
        self.say(f"  {event['text']}")

    def _recovery(self, event: dict[str, Any]) -> None:
        self.say(
            f"  machine {event['machine']} did not answer: it was {event['found']}, and was {event['done']}"
        )


def _bar(total_s: float) -> "tqdm[Any]":
    """Make the bar, in seconds as expected; a terminal may not know its size."""
    columns, rows = (size or usual for size, usual in zip(shutil.get_terminal_size(), (80, 24), strict=True))
    form = "{desc} {percentage:3.0f}%|{bar}| {elapsed}<{remaining}{postfix}"
    return tqdm(
        total=total_s, file=sys.stdout, leave=False, ncols=columns, nrows=rows, smoothing=0, bar_format=form
    )
