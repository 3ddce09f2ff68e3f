"""Errors that a user can fix, each told in one sentence, and text from others made printable.

Text that others wrote may hold control characters. `visible` shows them instead of sending them.
"""

import difflib
import errno
import signal
import unicodedata
from collections.abc import Callable, Iterable
from typing import TextIO

# Control characters (also C1), format characters (the direction of writing among them), halves of a character
# (bytes of a file name that are not UTF-8), and separators of lines and paragraphs; Unicode Standard, 4.5.
_STEERING = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_BYTES = range(0xDC80, 0xDD00)  # how Python writes bytes that are not UTF-8 (PEP 383)
LINES = "\n\t"
"""What a text of several lines may hold besides."""


def visible(text: str, keep: str = "") -> str:
    """Write steering characters as <U+001B>, and bytes that are not UTF-8 as <FF>; leave all others.

    - `text`: from a file, a file's name, or a tool.
    - `keep`: steering characters that it may hold, e.g. `LINES`.
    """
    if text.isprintable():  # nearly all
        return text
    return "".join(letter if letter in keep else _shown(letter) for letter in text)


def is_visible(text: str, keep: str = "") -> bool:
    """Whether a text steers nothing; see `visible`."""
    return text.isprintable() or visible(text, keep) == text


def guard(stream: TextIO) -> None:
    """Have a stream write only what is visible, and lines, whoever writes to it from now on."""
    write: Callable[[str], int] = stream.write
    # An attribute, so that whoever holds the stream already writes through it as well.
    vars(stream)["write"] = lambda text: write(visible(text, LINES))


def _shown(letter: str) -> str:
    if unicodedata.category(letter) not in _STEERING:
        return letter
    code = ord(letter)
    return f"<{code - 0xDC00:02X}>" if code in _BYTES else f"<U+{code:04X}>"


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
        return f"stopped by {signal.Signals(self.number).name}; no resources are left{self.hint}"


def unknown(kind: str, name: str, known: Iterable[str], where: str = "") -> UsageError:
    """Build the error for a name that does not exist, with the nearest that does.

    - `kind`: what the name should have named, e.g. "scenario".
    - `name`: the name given.
    - `known`: the names that exist.
    - `where`: file and key, put in front when given.
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


LONGEST = 500
"""Characters of a message; what a file holds may be longer."""


def one_line(text: str) -> str:
    """A message with whatever a file holds in it: without control characters, and not endless."""
    words = " ".join(text.split())
    printable = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in words)
    half = LONGEST // 2
    return printable if len(printable) <= LONGEST else f"{printable[:half]} ... {printable[-half:]}"
