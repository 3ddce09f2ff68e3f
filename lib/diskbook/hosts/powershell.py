"""PowerShell scripts that are run on a Windows machine: set-up, jobs, disks by LUN, marks on disks, files.

Parameters go in front of a script as one line of JSON, so that its text is the same each time. Written from
general knowledge of Windows and unverified there: the emulator answers these scripts, and runs no PowerShell.

The set-up installs DiskSpd and OpenSSH. Client and emulator share it: the one sends the script, the other
knows it and plays what it does.
"""

import base64
import json
import re
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from diskbook.tools import diskspd
from diskbook.tools.diskspd.command import INSTALL
from diskbook.tools.protocol import Tool

FOLDER = Path(__file__).with_name("windows_scripts")


def _read(name: str) -> str:
    return (FOLDER / f"{name}.ps1").read_text("utf-8").strip()


# `disks` lists all, the system's and the temporary one among them: `data_disks` tells which are ours. `facts`
# and `mark` open a drive by a handle from Windows itself, since .NET opens no devices by name. `guest` asks
# of a physical drive, where its number is given: MSFT_PhysicalDisk has bus, write cache and sector. `put`
# takes the script of a step, in base64, on standard input: it is longer than a command line may be.
SCRIPTS = {
    name: _read(name).replace("# open-drive.ps1", _read("open-drive"))
    for name in ("start", "finish", "jobs", "times", "end", "disks", "facts", "mark", "guest", "put")
}

# A location: "Integrated : Bus 0 : Device 63667 : Function 30747 : Adapter 1 : Port 0 : Target 0 : LUN 0".
_ADAPTER, _LUN = re.compile(r"^.*?\bAdapter \d+\b"), re.compile(r"\bLUN (\d+)\s*$")


def script(which: str, /, **parameters: Any) -> str:
    """One of `SCRIPTS` with its parameters in front."""
    quoted = json.dumps(parameters, separators=(",", ":")).replace("'", "''")
    return f"$ErrorActionPreference = 'Stop'; $p = '{quoted}' | ConvertFrom-Json\n{SCRIPTS[which]}\n"


def data_disks(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Of all disks that `disks` lists, those that Azure attached as data disks, each with its `lun`.

    A LUN is one of an adapter. Azure's temporary disk stands beside the system's disk on that disk's adapter,
    often at LUN 1 (the driver of Kubernetes leaves that adapter out, too: azuredisk-csi-driver, issue 2661),
    and has a partition where it stands elsewhere. A disk with partitions is nobody's to write over.
    """
    listed = list(rows)
    own = {_adapter(row) for row in listed if row["own"]} - {None}
    return [
        {**row, "lun": int(lun[1])}
        for row in listed
        if not row["own"]
        and not row["partitions"]
        and _adapter(row) not in own
        and (lun := _LUN.search(str(row["location"])))
    ]


def _adapter(row: Mapping[str, Any]) -> str | None:
    """The adapter in a disk's location; None where it names none."""
    named = _ADAPTER.search(str(row["location"]))
    return named[0] if named else None


def encoded(text: str) -> str:
    """Build the command line that runs a script by SSH: encoded, so that no shell has quotes to take."""
    encoded = base64.b64encode(text.encode("utf-16-le")).decode()
    return f"powershell -NoProfile -NonInteractive -EncodedCommand {encoded}"


EXTENSION = "diskbook-setup"
COMPUTER_NAME_CHARS = 15  # NetBIOS
# Where Azure's agent leaves customData, and where the script puts the tool.
CUSTOM_DATA = r"C:\AzureData\CustomData.bin"
SETUP_SCRIPT = r"C:\AzureData\diskbook-setup.ps1"


def setup_facts(tool: Tool) -> str:
    """Return what a machine is asked once it is set up, in PowerShell: one line each."""
    return f"""\
$os = Get-CimInstance Win32_OperatingSystem
"$($os.Caption) $($os.Version)"
{tool.install.version}
"""


SETUP_FACTS = setup_facts(diskspd.TOOL)


def setup_script(appended: str = "") -> str:
    """Return the PowerShell script that sets a machine up, with more appended; it holds no secret."""
    text = (resources.files("diskbook.hosts") / "windows-setup.ps1").read_text("utf-8")
    text = text.replace("@DISKSPD_URL@", INSTALL.url).replace("@DISKSPD_SHA256@", INSTALL.sha256)
    return f"{text}\n{appended}" if appended else text
