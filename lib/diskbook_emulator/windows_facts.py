"""What an emulated Windows machine says of itself when it is new: its system, and its release of DiskSpd."""

import subprocess
import sys

from diskbook.hosts.powershell import SETUP_FACTS
from diskbook_emulator.windows_xml import version

SYSTEM = "Windows Server (emulated on Linux)"


def main() -> int:
    """Answer the one script that `windows_powershell` does not know; returns its exit status."""
    if sys.argv[-1].strip() != SETUP_FACTS.strip():
        print("the emulated PowerShell knows only the scripts of diskbook", file=sys.stderr)
        return 1
    release = subprocess.run(["fio", "--version"], stdout=subprocess.PIPE, check=True, text=True).stdout
    print(SYSTEM)
    print(version(release.strip()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
