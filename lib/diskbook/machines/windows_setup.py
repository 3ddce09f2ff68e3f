"""Setting up Windows Server: the script that installs DiskSpd and OpenSSH, and what is asked afterwards.

Client and emulator share it: the one sends the script, the other knows it and plays what it does.
"""

from __future__ import annotations

import base64
from importlib import resources

EXTENSION = "diskbook-setup"
COMPUTER_NAME_CHARS = 15  # NetBIOS
DISKSPD_VERSION = "2.0.21a"
DISKSPD_URL = "https://github.com/microsoft/diskspd/releases/download/v2.0.21a/DiskSpd.zip"
# As the public package definition of this release names it.
DISKSPD_SHA256 = "D02F6BE976C518D4134E62AF7F518BAAD6C7C81F924CAAFBEBA65BD0831CE139"
# Where Azure's agent leaves customData, and where the script puts the tool.
CUSTOM_DATA = r"C:\AzureData\CustomData.bin"
SCRIPT = r"C:\AzureData\diskbook-setup.ps1"

# What a machine is asked once it is set up: one line each.
FACTS = """\
$os = Get-CimInstance Win32_OperatingSystem
"$($os.Caption) $($os.Version)"
(Get-Item "$env:ProgramFiles\\DiskSpd\\amd64\\diskspd.exe").VersionInfo.ProductVersion
"""


def setup_script(appended: str = "") -> str:
    """Return the PowerShell script that sets a machine up, with more appended; it holds no secret."""
    text = (resources.files("diskbook.machines") / "windows-setup.ps1").read_text("utf-8")
    text = text.replace("@DISKSPD_URL@", DISKSPD_URL).replace("@DISKSPD_SHA256@", DISKSPD_SHA256)
    return f"{text}\n{appended}" if appended else text


def powershell(script: str) -> str:
    """Build the command line that runs a script by SSH: encoded, so that no shell has quotes to take."""
    encoded = base64.b64encode(script.encode("utf-16-le")).decode()
    return f"powershell -NoProfile -NonInteractive -EncodedCommand {encoded}"
