"""One line of the doctor: what was checked, how it came out, and what to change where it failed."""

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
