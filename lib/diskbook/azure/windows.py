"""Windows Server: a machine that is signed in to by key only, with DiskSpd, by Azure's script extension.

Windows has no cloud-init. The machine finds our script in its custom data, and the extension runs it. The
machine's own host key goes with the extension's protected settings, which Azure encrypts and never shows
again; so the host is known before the first connection, as on Linux.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
import string
from importlib import resources
from typing import Any

from diskbook.azure import expiry
from diskbook.azure.keys import KeyPair

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


def setup_script(expires_utc: str | None = None) -> str:
    """Return the PowerShell script that sets a machine up; it holds no secret.

    With an expiry given it also sets the timer that shuts the machine down then.
    """
    text = (resources.files("diskbook.azure") / "windows-setup.ps1").read_text("utf-8")
    text = text.replace("@DISKSPD_URL@", DISKSPD_URL).replace("@DISKSPD_SHA256@", DISKSPD_SHA256)
    if not expires_utc:
        return text
    return f"{text}\n# Should nobody be left to delete the machine.\n{expiry.powershell(expires_utc)}"


def computer_name(name: str) -> str:
    """At most 15 characters: the name itself, or its beginning and a mark that only it has."""
    if len(name) <= COMPUTER_NAME_CHARS:
        return name
    mark = hashlib.sha256(name.encode()).hexdigest()[:4]
    return f"{name[: COMPUTER_NAME_CHARS - 5].rstrip('-')}-{mark}"


def os_profile(name: str, user: str, expires_utc: str | None = None) -> dict[str, Any]:
    """Build osProfile of a new machine.

    Azure wants a password for Windows. It is random, goes nowhere but into the request, and sshd takes none.
    """
    return {
        "computerName": computer_name(name),
        "adminUsername": user,
        "adminPassword": password(),
        "customData": base64.b64encode(setup_script(expires_utc).encode()).decode(),
        # Updates and their restarts would fall into a measurement.
        "windowsConfiguration": {
            "provisionVMAgent": True,
            "enableAutomaticUpdates": False,
            "patchSettings": {"patchMode": "Manual", "assessmentMode": "ImageDefault"},
        },
    }


def password() -> str:
    """Make a password that Azure's rules allow: 12 characters or more of at least three kinds."""
    letters = string.ascii_letters + string.digits
    return "Aa1" + "".join(secrets.choice(letters) for _ in range(40))


def extension(region: str, tags: dict[str, str], host_key: KeyPair, public_key: str) -> dict[str, Any]:
    """Body of the extension that runs the script. Shape from the REST specification, not seen on the wire."""
    copy = f"Copy-Item -Force {CUSTOM_DATA} {SCRIPT}"
    call = f"& {SCRIPT} -HostKey {_base64(host_key.private)} -AuthorizedKey {_base64(public_key)}"
    # The exit status is the extension's: 0 only when the script went through.
    command = (
        f'powershell -NoProfile -NonInteractive -ExecutionPolicy Bypass -Command "$ErrorActionPreference = '
        f"'Stop'; {copy}; {call}\""
    )
    return {
        "location": region,
        "tags": tags,
        "properties": {
            "publisher": "Microsoft.Compute",
            "type": "CustomScriptExtension",
            "typeHandlerVersion": "1.10",
            "autoUpgradeMinorVersion": True,
            "settings": {},
            "protectedSettings": {"commandToExecute": command},
        },
    }


def powershell(script: str) -> str:
    """Build the command line that runs a script by SSH: encoded, so that no shell has quotes to take."""
    encoded = base64.b64encode(script.encode("utf-16-le")).decode()
    return f"powershell -NoProfile -NonInteractive -EncodedCommand {encoded}"


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
