"""One line of the doctor: what was looked at, whether it will do, and what to change where it will not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from azure.core.exceptions import AzureError

from diskbook.cloud.azure import refusals
from diskbook.facts.errors import DiskbookError


class State(StrEnum):
    """How a check came out."""

    OK = "ok"
    FAILS = "fails"
    NOT_ASKED = "not asked"  # what it rests on failed before


@dataclass(frozen=True)
class Check:
    """What was looked at; `text` is what was seen, or what is wrong with its remedy."""

    name: str
    state: State
    text: str


def look(name: str, ask: Callable[[], str]) -> Check:
    """Ask, and make a line of the answer, or of the error and its remedy."""
    try:
        return Check(name, State.OK, ask())
    except AzureError as error:
        return Check(name, State.FAILS, refusals.with_advice(error))
    except DiskbookError as error:
        return Check(name, State.FAILS, str(error))


def not_asked(names: Sequence[str], why: str) -> list[Check]:
    """Lines of what could not be asked."""
    return [Check(name, State.NOT_ASKED, why) for name in names]


def all_ok(checks: Sequence[Check]) -> bool:
    """Whether a run may begin."""
    return all(check.state == State.OK for check in checks)


def text_of(subject: str, checks: Sequence[Check]) -> str:
    """A line a check, and in the last one whether a run may begin."""
    width = max(len(check.name) for check in checks)
    lines = [f"{check.state:<9}  {check.name:<{width}}  {check.text}" for check in checks]
    bad = sum(check.state != State.OK for check in checks)
    last = "all is there; nothing was created" if not bad else f"{bad} of {len(checks)} lines to mend first"
    return "\n".join([f"{subject}:", *lines, last])
