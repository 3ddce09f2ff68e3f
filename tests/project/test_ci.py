"""What continuous integration runs: the fast tests in a Debian 13 where that can be made, then all tests.

No system is made here: stand-ins for what makes it refuse, as on machines that do not allow it.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from diskbook.facts import paths

pytestmark = pytest.mark.emulator

PROGRAMS = "bash basename cat dirname head make mkdir mktemp rm sort tail"
ALLOWED = {
    "id": "echo 0",
    "apt-get": "exit 100",
    "debootstrap": "exit 0",
    "unshare": 'while [ "$1" != -- ]; do shift; done; shift; exec "$@"',
    "mount": "exit 0",
    "chroot": "exit 0",
    "git": "exit 0",
}
"""Stand-ins on a machine on which all is allowed and apt has nothing."""
REFUSED = "unshare: unshare failed: Operation not permitted"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The scripts, and a Makefile whose tests take no time."""
    for name in (".ci/run", "lib/fresh.sh"):
        (tmp_path / name).parent.mkdir()
        shutil.copy(paths.ROOT / name, tmp_path / name)
    summary(tmp_path, "7 passed in 1.00s")
    (tmp_path / "bin").mkdir()
    for name in PROGRAMS.split():
        (tmp_path / "bin" / name).symlink_to(str(shutil.which(name)))
    for name, body in ALLOWED.items():
        add(tmp_path, name, body)
    return tmp_path


def add(clone: Path, name: str, body: str) -> None:
    (clone / "bin" / name).write_text(f"#!/bin/sh\n{body}\n")
    (clone / "bin" / name).chmod(0o755)


def summary(clone: Path, words: str, code: int = 0) -> None:
    (clone / "Makefile").write_text(f"test:\n\t@echo '{words}'; exit {code}\n")


def ci(clone: Path) -> tuple[int, list[str], str]:
    """Exit code, the lines of the output, and what was said on standard error."""
    environment = {"PATH": str(clone / "bin"), "HOME": str(clone), "TMPDIR": str(clone), "CI": "true"}
    done = subprocess.run(
        ["bash", ".ci/run"],
        cwd=clone,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout.splitlines(), done.stderr


@pytest.mark.parametrize(
    ("program", "body", "reason"),
    [
        ("id", "echo 1000", "making a system needs root"),
        ("debootstrap", None, "apt could not install debootstrap"),
        ("unshare", f"echo '{REFUSED}' >&2; exit 1", REFUSED),
        ("mount", "echo 'mount: permission denied.' >&2; exit 32", "mount: permission denied."),
        ("chroot", "echo 'chroot: not permitted' >&2; exit 125", "chroot: not permitted"),
        ("debootstrap", "echo 'E: no mirror' >&2; exit 1", "it could not be made"),
    ],
)
def test_where_no_debian_13_can_be_made_it_says_why_and_goes_on(
    clone: Path, program: str, body: str | None, reason: str
) -> None:
    if body is None:
        (clone / "bin" / program).unlink()
    else:
        add(clone, program, body)
    code, lines, said = ci(clone)
    assert (code, lines[-1]) == (0, "7 passed in 1.00s")
    assert said.splitlines()[-1] == f"fresh: Debian 13 is not tried: {reason}"


@pytest.mark.parametrize(("of_13", "here", "code"), [(0, 0, 0), (1, 0, 1), (3, 0, 0), (0, 1, 1), (2, 0, 1)])
def test_a_failure_of_either_fails_and_the_summary_is_last(
    clone: Path, of_13: int, here: int, code: int
) -> None:
    asked = "echo $ONLY $GOALS; echo '5 passed in 2.00s'"
    (clone / "lib" / "fresh.sh").write_text(f"#!/bin/sh\n{asked}; exit {of_13}\n")
    summary(clone, "7 passed in 1.00s", here)
    assert ci(clone)[:2] == (code, ["13 test-fast", "5 passed in 2.00s", "7 passed in 1.00s"])
