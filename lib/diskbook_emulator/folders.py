"""State folders of emulators: where they are, who holds them, what is in them.

An emulator lives as long as its server process holds the lock in its folder. Folders lie in a short place of
their own (`/tmp/diskbook-<user id>/<name>`), since the paths of Unix sockets are limited.
"""

import contextlib
import json
import os
import re
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from diskbook.facts import files
from diskbook.facts.errors import DiskbookError, UsageError, unknown
from diskbook_emulator.types import Json

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
FOLDER_MAX = 90  # bytes; leaves room for a socket's name below it
LOCK_S = 2.0  # somebody who looks whether the emulator runs holds the lock for a moment

CONFIG, CONNECTION, LOCK, KEEP, LOG = "config.json", "connection.json", "lock", "keep", "server.log"


def home() -> Path:
    """Return the folder of this user's emulators, which need not exist; it is closed to others.

    It lies where all users may make folders, so one of that name may be somebody else's, or lead elsewhere.

    Raises UsageError when it belongs to somebody else, is open to others, or is a link.
    """
    name = f"diskbook-{os.getuid()}"
    short = [Path(place) / name for place in (os.environ.get("TMPDIR") or "/tmp", "/tmp")]
    usual = next((path for path in short if len(os.fsencode(path)) <= FOLDER_MAX - 33), short[-1])
    folder = usual.parent.resolve() / name
    try:
        info = folder.lstat()
    except FileNotFoundError:
        return folder
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.getuid() or stat.S_IMODE(info.st_mode) & 0o077:
        raise UsageError(
            f"{folder} is not yours alone, or is no folder: remove it, or set TMPDIR to a folder of your own."
        )
    return folder


def names() -> list[str]:
    """Return the names of this user's emulators, running or not."""
    try:
        paths = list(home().iterdir())
    except FileNotFoundError:
        return []
    return sorted(path.name for path in paths if NAME.fullmatch(path.name) and _is_ours(path))


def _is_ours(path: Path) -> bool:
    """Whether an entry is a folder of this user, or a link that `make` set to an emulator's state."""
    try:
        info = path.stat() if path.exists() else path.lstat()
    except FileNotFoundError:  # it has just been removed
        return False
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.getuid():
        return path.is_symlink() and not path.exists()  # its state has gone: `remove` takes the link away
    return not path.is_symlink() or _is_marked(path.name, path.resolve())


def _is_marked(name: str, state: Path) -> bool:
    """Whether a folder is the state of that emulator by its own configuration."""
    with contextlib.suppress(DiskbookError, OSError):
        if state.lstat().st_uid == os.getuid() and not (state / CONFIG).is_symlink():
            config = read(state / CONFIG)
            return config.get("name") == name and config.get("link") == str(home() / name)
    return False


def find(name: str) -> Path:
    """Return the state folder of an emulator; UsageError with the nearest name when there is none."""
    if name not in names():
        raise unknown("emulator", name, names())
    return (home() / name).resolve()


def make(name: str, folder: Path | None) -> Path:
    """Return the state folder, made when missing; one elsewhere is linked from the usual place."""
    usual = home() / name
    if folder is None:
        state = usual.resolve()
    else:
        state = folder.resolve()
        if usual.exists() and usual.resolve() != state:
            raise UsageError(f"the emulator '{name}' has its state in {usual.resolve()}: stop it first.")
    if len(os.fsencode(state)) > FOLDER_MAX:
        raise UsageError(
            f"the folder {state} has a path longer than {FOLDER_MAX} bytes, too long for the sockets in it."
        )
    if state.exists() and any(state.iterdir()) and not (state / CONFIG).exists():
        raise UsageError(f"{state} is not empty and holds no emulator's state: choose another folder.")
    if state.parent != usual.parent:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
    while True:
        with contextlib.suppress(FileExistsError):
            usual.parent.mkdir(mode=0o700)
        home()  # somebody else may have made it
        with contextlib.suppress(FileNotFoundError):  # or removed it, with the last emulator
            if state == usual.resolve():
                state.mkdir(mode=0o700, exist_ok=True)
            else:
                usual.unlink(missing_ok=True)
                usual.symlink_to(state)
            return state


@contextlib.contextmanager
def made_to_start(name: str, folder: Path | None, patience_s: float) -> Iterator[Path]:
    """Make the state folder, and hold it so that nobody else starts an emulator in it.

    - `patience_s`: how long to wait for another start of the name.

    Raises UsageError as `make`, or when another start takes longer.
    """
    while True:
        state = make(name, folder)
        try:
            number = os.open(state, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:  # another start has failed and removed it
            continue
        try:
            if not files.acquire(number, patience_s):
                raise UsageError(f"an emulator '{name}' is being started: wait, or choose another name.")
            if state.exists() and os.path.samestat(os.fstat(number), state.stat()):
                yield state
                return
        finally:
            os.close(number)


def remove(name: str, state: Path) -> None:
    """Remove a state folder and what pointed to it; a folder without the emulator's marks only if empty."""
    link = home() / name
    if _is_marked(name, state):
        shutil.rmtree(state, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            state.rmdir()
    if link.is_symlink():
        link.unlink()
    with contextlib.suppress(OSError):
        home().rmdir()  # only when it was the last


def is_running(state: Path) -> bool:
    """Tell whether a server holds the lock of this state folder."""
    return files.is_locked(state / LOCK)


@contextlib.contextmanager
def held(state: Path) -> Iterator[None]:
    """Hold the lock that says that this emulator runs, and whose process it is.

    Raises UsageError when another process holds it.
    """
    busy = UsageError(f"an emulator runs in {state} already: choose another name.")
    with files.locked(state / LOCK, busy, LOCK_S) as file:
        file.truncate(0)
        file.write(str(os.getpid()).encode())
        file.flush()
        yield


def write_private(path: Path, document: Json) -> None:
    """Write a JSON file that only this user can read, whole or not at all."""
    files.write_atomic(path, json.dumps(document, indent=1), 0o600)


def read(path: Path) -> dict[str, Any]:
    """Read a JSON file of an emulator; empty when there is none."""
    try:
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise DiskbookError(f"{path} cannot be read ({error}): stop the emulator to remove it.") from error
    return document
