"""Options of fio's jobs as a command line or a job file shows them, among other text. Compute only, no I/O.

What people keep beside fio's output::

    vm1:~$ sudo fio --name=rr --rw=randread --bs=4k --iodepth=64 --ioengine=libaio --direct=1 \\
           --filename=/dev/sdc --numjobs=4 --group_reporting

    [global]
    ioengine=libaio
    [rr]
    rw=randread
"""

import re
import shlex
from collections.abc import Sequence

_COMMAND = re.compile(r"(?:^|[\s/\\$#>;&|(`'\"])fio(?:\.exe)?\s+(?=-|\S+\.(?:fio|ini|job|txt)\b)")
_SECTION = re.compile(r"^\[([^\[\]]{1,100})\]$")
_ASSIGNED = re.compile(r"^([a-z][a-z0-9_]{1,40})\s*=\s*(.{0,400})$")
_COMMENT = re.compile(r"\s[#;].*$")
_OPTION = re.compile(r"^--([A-Za-z][\w-]{0,40})(?:=(.{0,400}))?$", re.DOTALL)
_ENDS_COMMAND = frozenset(("|", ">", ">>", ";", "&&", "||", "&", "2>", "2>&1", "<"))
_CONTINUED = ("\\", "`", "^")
# Options that need no value: what follows them is none.
_BARE = frozenset(
    (
        "direct",
        "exitall",
        "exitall_on_error",
        "group_reporting",
        "invalidate",
        "minimal",
        "new_group",
        "norandommap",
        "overwrite",
        "randrepeat",
        "readonly",
        "refill_buffers",
        "stonewall",
        "thread",
        "time_based",
        "wait_for_previous",
    )
)
_ALIASES = {"readwrite": "rw", "blocksize": "bs", "timeout": "runtime"}
_GLOBAL = "global"

Jobs = dict[str, dict[str, str]]


def is_command(line: str) -> bool:
    """Whether fio is called in this line."""
    return "fio" in line and _COMMAND.search(line) is not None


def goes_on(line: str) -> bool:
    """Whether a command goes on in the next line."""
    return line.rstrip().endswith(_CONTINUED)


def of_command(text: str) -> Jobs:
    """Options by job of a command line; those before the first name hold for all jobs.

    An option whose value is a variable of the shell is left out: it is not told.
    """
    call = _COMMAND.search(text)
    words = _words(text[call.end() :]) if call else []
    shared: dict[str, str] = {}
    jobs: Jobs = {}
    options = shared
    for name, value in _pairs(words):
        if name == "name":
            options = shared if value == _GLOBAL else jobs.setdefault(value, {})
        elif "$" not in value:
            options[_ALIASES.get(name, name)] = value
    if not jobs and shared.keys() & {"rw", "bs", "iodepth"}:
        jobs[""] = {}
    return {name: {**shared, **own} for name, own in jobs.items()}


def _words(text: str) -> list[str]:
    text = re.sub(r"[\\`^]\s*\n", " ", text)
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    end = next((k for k, word in enumerate(words) if word in _ENDS_COMMAND), len(words))
    return words[:end]


def _pairs(words: Sequence[str]) -> list[tuple[str, str]]:
    """Options and their values, given as "--bs=4k" or "--bs 4k"."""
    pairs = []
    for place, word in enumerate(words):
        option = _OPTION.match(word)
        if option is None:
            continue
        name, value = option[1].replace("-", "_"), option[2]
        after = words[place + 1] if place + 1 < len(words) else "-"
        if value is None:
            value = "1" if name in _BARE or after.startswith("-") else after
        pairs.append((name, value))
    return pairs


class JobFile:
    """Reader of a job file, line by line; `jobs` are what it has shown so far."""

    def __init__(self) -> None:
        self._shared: dict[str, str] = {}
        self._own: Jobs = {}
        self._options: dict[str, str] | None = None

    @property
    def jobs(self) -> Jobs:
        """Options of each job, with those that hold for all."""
        return {name: {**self._shared, **own} for name, own in self._own.items()}

    def add(self, line: str) -> bool:
        """Take a line; False for one that is none of a job file, where it ends."""
        section = _SECTION.match(line)
        if section:
            name = section[1].strip()
            self._options = self._shared if name == _GLOBAL else self._own.setdefault(name, {})
            return True
        if self._options is None:
            return False
        return self._take(line, self._options)

    def _take(self, line: str, options: dict[str, str]) -> bool:
        text = _COMMENT.sub("", line).strip()
        assigned = _ASSIGNED.match(text)
        if assigned:
            value = assigned[2].strip()
            if "$" not in value:
                options[_ALIASES.get(assigned[1], assigned[1])] = value
        elif text in _BARE:
            options[text] = "1"
        elif text and text[0] not in "#;":
            self._options = None
            return False
        return True
