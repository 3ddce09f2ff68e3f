"""The set-up script: what it does when nothing, something or apt itself is missing.

apt is a stand-in here that behaves like that of a fresh machine; all else is the real script.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from diskbook.emulated import doctor
from diskbook.facts import paths
from diskbook_emulator.machine import PACKAGE as USER_LIST_PACKAGE

pytestmark = pytest.mark.emulator

TOOLS = "bash basename cat dirname env flock gcc mkdir nbdkit python3 rm setsid sha256sum tail touch"
# Refuses to install before its lists were updated, then "installs" fio.
FRESH_APT = """#!/bin/sh
echo "$@" >>{log}
case "$1" in
    update) touch {log}.lists ;;
    install) test -e {log}.lists || {{ echo "E: Unable to locate package fio"; exit 100; }}
        printf '#!/bin/sh\\n' >{bin}/fio; chmod +x {bin}/fio ;;
esac
"""
FILES = ("uv.lock", "pyproject.toml", "lib/setup.sh", "lib/uv.txt")
RELEASE = re.findall(r"^uv==(\S+)", (paths.ROOT / "lib/uv.txt").read_text(), re.MULTILINE)[0]
BROKEN_APT = "#!/bin/sh\necho 'E: no network'; exit 100\n"


@dataclass(frozen=True)
class Machine:
    """A clone that is set up but for what is not in `bin`, the only folder on PATH besides sbin."""

    clone: Path
    bin: Path

    def add(self, name: str, script: str) -> None:
        (self.bin / name).unlink(missing_ok=True)  # never write through a link to the real program
        (self.bin / name).write_text(script)
        (self.bin / name).chmod(0o755)

    def set_up(self, given: Mapping[str, str] | None = None, *what: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": str(self.bin), "HOME": str(self.clone), **(given or {})}
        return subprocess.run(
            [self.clone / "lib" / "setup.sh", *what], env=environment, capture_output=True, text=True
        )


def uv_that_tells(clone: Path) -> Path:
    """Put a stand-in for uv into the clone; the file that it writes its certificates and arguments to."""
    log, program = clone / "uv.log", clone / ".tools/uv/bin/uv"
    program.unlink()
    told = f'#!/bin/sh\necho "${{UV_SYSTEM_CERTS-unset}} $1" >>{log}\n'
    program.write_text(f'{told}[ "$1" != --version ] || echo "uv {RELEASE} (here)"\n')
    program.chmod(0o755)
    return log


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    clone, programs = tmp_path / "clone", tmp_path / "bin"
    for name in FILES:
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(paths.ROOT / name, clone / name)
    programs.mkdir()
    for name in TOOLS.split():
        (programs / name).symlink_to(found if (found := shutil.which(name)) else sys.executable)
    made = Machine(clone, programs)
    made.add("id", "#!/bin/sh\necho 0\n")
    for folder in (".venv/bin", ".tools/uv/bin"):
        (clone / folder).mkdir(parents=True)
    (clone / ".venv/bin/python").symlink_to(sys.executable)
    (clone / ".tools/uv/bin/uv").symlink_to("/bin/true")
    (clone / ".tools/stamp").write_text(fingerprint(clone))
    return made


def fingerprint(clone: Path) -> str:
    content = b"".join((clone / name).read_bytes() for name in FILES)
    return hashlib.sha256(f"{clone}\n".encode() + content).hexdigest() + "  -\n"


def test_what_the_emulator_needs_is_installed() -> None:
    script = (paths.ROOT / "lib/setup.sh").read_text()
    for package in (*(package for _, package in doctor.PROGRAMS), USER_LIST_PACKAGE):
        assert re.search(rf"echo {package}$", script, re.MULTILINE), package


def test_nothing_missing_nothing_done(machine: Machine) -> None:
    machine.add("fio", "#!/bin/sh\n")
    machine.add("apt-get", BROKEN_APT)
    done = machine.set_up()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_without_apt_the_packages_are_named(machine: Machine) -> None:
    (machine.bin / "nbdkit").unlink()
    done = machine.set_up()
    assert done.returncode == 2
    expected = "set-up: these packages are missing and there is no apt to install them with: fio nbdkit\n"
    assert done.stderr == expected


def test_a_fresh_apt_is_updated_first(machine: Machine, tmp_path: Path) -> None:
    log = tmp_path / "apt.log"
    machine.add("apt-get", FRESH_APT.format(log=log, bin=machine.bin))
    machine.add("chmod", '#!/bin/sh\nexec /bin/chmod "$@"\n')
    done = machine.set_up()
    assert (done.returncode, done.stderr) == (0, "set-up: installing with apt: fio\n")
    install = "install -y -qq --no-install-recommends fio"
    assert log.read_text().splitlines() == [install, "update -qq", install]


def test_what_apt_cannot_do_is_said(machine: Machine) -> None:
    machine.add("apt-get", BROKEN_APT)
    done = machine.set_up()
    assert done.returncode == 2
    assert "E: no network" in done.stderr
    assert "set-up: apt could not install fio; see" in done.stderr


def test_a_user_with_sudo_installs_through_it(machine: Machine, tmp_path: Path) -> None:
    log = tmp_path / "sudo.log"
    machine.add("id", "#!/bin/sh\necho 1000\n")
    machine.add("apt-get", FRESH_APT.format(log=tmp_path / "apt.log", bin=machine.bin))
    machine.add("chmod", '#!/bin/sh\nexec /bin/chmod "$@"\n')
    machine.add("sudo", f'#!/bin/sh\necho "$1" >>{log}\nexec "$@"\n')
    assert machine.set_up().returncode == 0
    assert log.read_text().split() == ["env", "apt-get", "env"]


def test_without_root_and_sudo_the_packages_are_named(machine: Machine) -> None:
    machine.add("id", "#!/bin/sh\necho 1000\n")
    machine.add("apt-get", BROKEN_APT)
    done = machine.set_up()
    assert done.returncode == 2
    assert "these packages are missing: fio; install them as root" in done.stderr


@pytest.fixture
def without_browser(machine: Machine, tmp_path: Path) -> Machine:
    """A machine that lacks a browser only, and whose apt would install one."""
    machine.add("fio", "#!/bin/sh\n")
    machine.add("grep", '#!/bin/sh\nexec /usr/bin/grep "$@"\n')
    machine.add("apt-get", f'#!/bin/sh\necho "$@" >>{tmp_path}/apt.log\n')
    return machine


def system(tmp_path: Path, name: str) -> dict[str, str]:
    (tmp_path / "os-release").write_text(f"NAME=A system\nID={name}\nID_LIKE=debian\n")
    return {"OS_RELEASE": str(tmp_path / "os-release")}


def test_the_tests_get_a_browser_on_debian(without_browser: Machine, tmp_path: Path) -> None:
    done = without_browser.set_up(system(tmp_path, "debian"), "browser")
    assert (done.returncode, done.stderr) == (
        0,
        "set-up: installing with apt, for the tests of pages: chromium\n",
    )
    assert (tmp_path / "apt.log").read_text() == "install -y -qq --no-install-recommends chromium\n"


@pytest.mark.parametrize(("name", "what"), [("debian", []), ("ubuntu", ["browser"])])
def test_no_browser_is_installed(
    without_browser: Machine, tmp_path: Path, name: str, what: list[str]
) -> None:
    """Not for a run, and not where apt has only a stand-in for a snap."""
    done = without_browser.set_up(system(tmp_path, name), *what)
    assert (done.returncode, done.stderr) == (0, "")
    assert not (tmp_path / "apt.log").exists()


def test_a_browser_that_apt_lacks_stops_nothing(without_browser: Machine, tmp_path: Path) -> None:
    without_browser.add("apt-get", BROKEN_APT)
    done = without_browser.set_up(system(tmp_path, "debian"), "browser")
    assert done.returncode == 0
    assert "apt could not install chromium, so no page will be checked in a browser; see" in done.stderr


@pytest.mark.parametrize(("given", "used"), [({}, "1"), ({"UV_SYSTEM_CERTS": "0"}, "0")])
def test_uv_trusts_whom_the_system_trusts(machine: Machine, given: dict[str, str], used: str) -> None:
    """As behind a company's proxy that looks into TLS; unless the user says otherwise."""
    log = uv_that_tells(machine.clone)
    machine.add("fio", "#!/bin/sh\n")
    (machine.clone / ".tools/stamp").write_text("made from something else")
    assert machine.set_up(given).returncode == 0
    shutil.copy(paths.ROOT / "Makefile", machine.clone)
    environment = {"PATH": os.environ["PATH"], "HOME": str(machine.clone), **given}
    subprocess.run(["make", "-s", "lock"], cwd=machine.clone, env=environment, check=True)
    assert log.read_text().splitlines() == [f"{used} --version", f"{used} sync", f"{used} lock"]


def wheel(folder: Path, release: str) -> None:
    """Write a wheel that calls itself uv, of somebody else's making."""
    folder.mkdir()
    about = f"uv-{release}.dist-info"
    files = {
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: uv\nVersion: {release}\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "uv.py": "print('owned')\n",
    }
    record = "".join(f"{name},,\n" for name in [*files, f"{about}/RECORD"])
    with zipfile.ZipFile(folder / f"uv-{release}-py3-none-any.whl", "w") as archive:
        for name, text in {**files, f"{about}/RECORD": record}.items():
            archive.writestr(name, text)


def test_a_uv_of_somebody_elses_making_is_not_installed(machine: Machine, tmp_path: Path) -> None:
    machine.add("fio", "#!/bin/sh\n")
    (machine.clone / ".tools/stamp").write_text("made from something else")
    wheel(tmp_path / "registry", RELEASE)
    done = machine.set_up({"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path / "registry")})
    assert done.returncode == 2
    assert "THESE PACKAGES DO NOT MATCH THE HASHES" in done.stderr
    assert "set-up: pip could not install the uv of lib/uv.txt" in done.stderr
    assert not (machine.clone / ".tools/uv/bin/uv").exists()


def test_uv_is_one_release_and_all_its_wheels_have_hashes() -> None:
    lines = [
        line for line in (paths.ROOT / "lib/uv.txt").read_text().splitlines() if not line.startswith("#")
    ]
    assert lines[0] == f"uv=={RELEASE} \\"
    hashes = [line.removesuffix(" \\") for line in lines[1:]]
    assert len(hashes) > 10 and all(re.fullmatch(r"    --hash=sha256:[0-9a-f]{64}", line) for line in hashes)
