"""Errors that are a user's to mend, told in one sentence."""

from __future__ import annotations

import difflib
import errno
import signal
from collections.abc import Iterable

from diskbook.facts.untrusted_text import LINES, visible

MOST_NAMES = 30
"""Names that an error lists."""


class DiskbookError(Exception):
    """A mistake or a missing thing, said in one sentence: what, where, what to do.

    The command line prints the message without a traceback and ends with `exit_code`.
    """

    exit_code = 1

    def __str__(self) -> str:
        """Return the sentence; it may quote a file, so what would steer a terminal is made visible."""
        return visible(super().__str__(), LINES)

    def _render_traceback_(self) -> list[str]:
        """Have a notebook show the sentence alone."""
        return [f"{type(self).__name__}: {self}"]


class UsageError(DiskbookError):
    """What was asked for cannot be done as asked: a wrong name, a broken scenario, a missing program."""

    exit_code = 2


class Stopped(BaseException):
    """A signal asked for the end; everything is torn down. `hint` says how to go on."""

    def __init__(self, number: int, hint: str = "") -> None:
        super().__init__(number)
        self.number = number
        self.hint = hint

    def __str__(self) -> str:
        return f"stopped by {signal.Signals(self.number).name}; nothing is left standing{self.hint}"


def unknown(kind: str, name: str, known: Iterable[str], where: str = "") -> UsageError:
    """Build the error for a name that does not exist, with the nearest that does.

    Parameters
    ----------
    kind
        What the name should have named, e.g. "scenario".
    name
        The name given.
    known
        The names that exist.
    where
        File and key, put in front when given.
    """
    names = sorted(set(known))
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"did you mean '{near[0]}'?" if near else f"known: {_listed(names)}."
    prefix = f"{where}: " if where else ""
    return UsageError(f"{prefix}there is no {kind} '{name}'; {hint}")


def unusable(error: OSError) -> DiskbookError | None:
    """Say which file or folder cannot be used, why, and what to do; None of a closed pipe or a network."""
    full, way = (errno.ENOSPC, errno.EDQUOT), (errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENOTEMPTY)
    advice = {
        **dict.fromkeys(full, "free some space, or choose a folder on another disk"),
        **dict.fromkeys(way, "move what is in the way, or choose another folder"),
        **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "choose a folder that you may write to"),
        **dict.fromkeys((errno.ENOENT, errno.EIO, errno.ENAMETOOLONG), "check the path and the disk"),
    }
    if error.errno not in advice:
        return None
    place = error.filename2 or error.filename
    what = f"'{place}' cannot be used" if place else "a file cannot be written"
    return DiskbookError(f"{what} ({error.strerror}): {advice[error.errno]}")


def _listed(names: list[str]) -> str:
    more = len(names) - MOST_NAMES
    return f"{', '.join(names[:MOST_NAMES])}{f' and {more} more' if more > 0 else ''}" or "none"
