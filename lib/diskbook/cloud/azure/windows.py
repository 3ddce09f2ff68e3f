"""Set up Windows Server machines, with DiskSpd and SSH by key only, by Azure's script extension.

Windows has no cloud-init. The machine finds our script in its custom data, and the extension runs it. The
machine's own host key goes with the extension's protected settings, which Azure encrypts and never shows
again; so the host is known before the first connection, as on Linux.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
import string
from typing import Any

from diskbook.cloud.azure import expiry
from diskbook.cloud.azure.keys import KeyPair
from diskbook.hosts import windows_setup
from diskbook.hosts.windows_setup import COMPUTER_NAME_CHARS, CUSTOM_DATA, SCRIPT


def setup_script(expires_utc: str | None = None) -> str:
    """Return the script that sets a machine up; with an expiry it also sets the timer that shuts it down."""
    if not expires_utc:
        return windows_setup.setup_script()
    timer = f"# Should nobody be left to delete the machine.\n{expiry.powershell(expires_utc)}"
    return windows_setup.setup_script(timer)


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


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
