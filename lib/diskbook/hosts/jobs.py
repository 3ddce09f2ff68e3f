"""Shell commands that start, await and end detached jobs on a Linux machine; see `powershell` for Windows.

A job has its own folder and leads a session, so it goes on when the connection is lost: standard output
goes to `stdout`, standard error to `stderr`, the exit status to `status`. What the machine's cores had done
before it and after it, as /proc/stat says, goes to `cpu_before` and `cpu_after`. Its shell holds a lock
until it ends, however it does, so whoever waits for the lock sleeps in the kernel and is woken at once.
"""

import math
import re
import shlex
from collections.abc import Iterable

from diskbook.facts.errors import DiskbookError

STREAMS = ("status", "stdout", "stderr")
CPU_BEFORE, CPU_AFTER = "cpu_before", "cpu_after"
_CPU = "grep '^cpu' /proc/stat >{}"
LIST = "ls jobs"
_HUNG, _NO_STATUS, _FORGOTTEN = 7, 8, 9  # how a waiting command ends where the job left no status

# In a job's folder: whether its shell, which leads the job, still runs. Its number may be another's by now.
_RUNS = '[ "/proc/$(cat pid)/cwd" -ef . ]'
_LOCK = 9
"""Descriptor that holds the lock `lock`; the command itself, and what it leaves behind, does not have it."""
_TIMED_OUT = "124|143"  # of coreutils' and busybox' timeout
_MTIME = "date -u -r $f +%FT%T.%6N+00:00"
# A worker of fio leads a session of its own: the job is its group and whatever descends from it.
_END = (
    "{ t() { for c in $(cat /proc/$1/task/*/children); do echo $c; t $c; done; }; "
    '$(cat as_root 2>/dev/null) kill -s KILL -- "-$(cat pid)" $(t "$(cat pid)"); }'
)
END_ALL = f'for j in jobs/*/; do (cd "$j" 2>/dev/null && {_RUNS} && {_END}) 2>/dev/null; done; rm -rf jobs'


_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,199}")


class JobLost(DiskbookError):
    """The machine restarted, or somebody ended the job, while it ran."""


class StepFailed(DiskbookError):
    """A step on a machine ended in an error; the sentence is the machine's own."""


def checked(name: str) -> str:
    """Return the name of a job, which is its folder's; DiskbookError unless it is of a-z, 0-9 and hyphens."""
    if not _NAME.fullmatch(name):
        raise DiskbookError(f"a job cannot be called {name!r}; small letters, digits and hyphens are allowed")
    return name


def start(name: str, command: list[str], *, root: bool = False) -> str:
    """Build the command that starts a job; done twice, it starts once."""
    checked(name)
    line = shlex.join(["sudo", "-n", *command] if root else command)
    mark = "echo sudo -n >as_root; " if root else ""
    # The shell leads a session of its own, so that its number names the whole job.
    before, after = (f"{_CPU.format(file)} 2>/dev/null" for file in (CPU_BEFORE, CPU_AFTER))
    script = (
        f"exec {_LOCK}>lock; flock {_LOCK}; {mark}echo $$ >pid.part; mv pid.part pid; {before}; "
        f"{line} >stdout 2>stderr {_LOCK}>&-; s=$?; {after}; echo $s >s; mv s status"
    )
    start = f"cd jobs/{name} && exec setsid nohup sh -c {shlex.quote(script)}"
    return (
        # Folders of finished jobs go when the next one starts: one command less between two trials.
        f'for s in jobs/*/status; do [ "$s" = jobs/{name}/status ] || rm -rf "${{s%/status}}"; done; '
        f"mkdir -p jobs; mkdir jobs/{name} 2>/dev/null && ({start}) </dev/null >/dev/null 2>&1 & "
        f"n=0; while [ ! -e jobs/{name}/pid ] && [ $n -lt 500 ]; do sleep 0.01; n=$((n+1)); done; true"
    )


def finish(name: str, files: Iterable[str], *, limit_s: float) -> str:
    """Build the command that waits for a job and prints its files as a tar archive; see `lost`.

    A machine without `flock` has no lock to wait for, so there it is looked at ten times a second.
    """
    checked(name)
    archived = " ".join(shlex.quote(file) for file in (*STREAMS, CPU_BEFORE, CPU_AFTER, *files))
    patience = max(1, int(limit_s * 10))
    return (
        f"cd jobs/{name} || exit {_FORGOTTEN}; n=0; "
        f"[ -e status ] || timeout {math.ceil(limit_s)} flock -s lock true 2>/dev/null; "
        f"case $? in {_TIMED_OUT}) n={patience};; esac; while [ ! -e status ]; do "
        f"{_RUNS} || {{ sleep 0.3; [ -e status ] || exit {_NO_STATUS}; }}; "
        f"n=$((n+1)); [ $n -gt {patience} ] && {{ {_END}; exit {_HUNG}; }}; sleep 0.1; done; "
        f"ls -d {archived} 2>/dev/null | tar -cf - -T -"
    )


def times(name: str) -> str:
    """Build the command that prints when a finished job began and ended."""
    return f"cd jobs/{checked(name)} && for f in pid status; do {_MTIME}; done"


def lost(status: int, limit_s: float) -> str | None:
    """Say why a job was lost, by the exit status of the command that waited for it; None when it was not."""
    reasons = {
        _HUNG: f"took more than {limit_s:.0f} s and was ended",
        _NO_STATUS: "ended without a status",
        _FORGOTTEN: "is not there any more",
    }
    return reasons.get(status)
