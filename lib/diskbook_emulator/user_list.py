"""The users that the sshd of an emulated machine knows: its administrator, and no account of this computer.

Debian's libnss-wrapper, loaded into sshd (LD_PRELOAD), looks users up in the machine's own files. There the
administrator has the user id of whoever runs the emulator, so no account is added to this computer.
"""

import contextlib
import os
import pwd
from collections.abc import Iterable
from pathlib import Path

from diskbook.facts.errors import UsageError

PACKAGE = "libnss-wrapper"
PLACES = ("/usr/lib", "/usr/lib64", *map(str, Path("/usr/lib").glob("*-linux-gnu*")))
_SEPARATED = "sshd"  # root's sshd becomes this user until the client has signed in


def library(places: Iterable[str] = PLACES) -> Path:
    """Return the library.

    Raises
    ------
    UsageError
        It is not installed; the message names its Debian package.
    """
    for place in places:
        if (path := Path(place, "libnss_wrapper.so")).exists():
            return path
    raise UsageError(
        "the emulator needs 'libnss_wrapper.so', the user list of its machines, which is not installed: "
        f"install the package {PACKAGE}."
    )


def write(folder: Path, user: str) -> None:
    """Write the user list of the machine in `folder`, whose administrator is `user`."""
    lines = [f"{user}:*:{os.getuid()}:{os.getgid()}::{folder}/home:/bin/sh"]
    with contextlib.suppress(KeyError):
        entry = pwd.getpwnam(_SEPARATED)
        lines.append(f"{_SEPARATED}:*:{entry.pw_uid}:{entry.pw_gid}::{entry.pw_dir}:{entry.pw_shell}")
    for name, text in (("passwd", "\n".join(lines)), ("group", f"{user}:*:{os.getgid()}:")):
        (folder / name).write_text(f"{text}\n", encoding="utf-8")


def environment(folder: Path) -> dict[str, str]:
    """Return the variables by which a program looks users up in the list in `folder`."""
    return {
        "LD_PRELOAD": str(library()),
        "NSS_WRAPPER_PASSWD": f"{folder}/passwd",
        "NSS_WRAPPER_GROUP": f"{folder}/group",
    }
