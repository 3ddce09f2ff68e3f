"""What the script extension does on an emulated Windows machine: read what it would have been given.

No PowerShell runs here. The emulator knows the workbook's own script by its text; it takes the keys from the
command line of the extension's protected settings, and compares the checksum in the script with that of the
DiskSpd release it stands for, as the script does with what it downloads.
"""

import base64
import binascii
import re
from dataclasses import dataclass

from diskbook.hosts import powershell as setup
from diskbook_emulator.arm.errors import ArmError, invalid
from diskbook_emulator.types import Json

# Of DiskSpd 2.0.21a, which the emulated machine plays to have downloaded.
RELEASE_SHA256 = "D02F6BE976C518D4134E62AF7F518BAAD6C7C81F924CAAFBEBA65BD0831CE139"
_SHA256 = re.compile(r"^\$sha256 = '([0-9A-Fa-f]{64})'$", re.MULTILINE)
_NAMES = ("host", "authorized")
_KEYS = re.compile(r"-HostKey (?P<host>[A-Za-z0-9+/=]+) -AuthorizedKey (?P<authorized>[A-Za-z0-9+/=]+)")


def check_profile(name: str, body: Json) -> None:
    """Raise Azure's error for an osProfile that Windows does not take."""
    profile = (body.get("properties") or {}).get("osProfile") or {}
    computer = str(profile.get("computerName") or name)
    if len(computer) > setup.COMPUTER_NAME_CHARS or computer.isdigit():
        # wording from our knowledge, not read
        raise invalid(
            "osProfile.computerName",
            "Windows computer name cannot be more than 15 characters long, be entirely numeric, or contain "
            "special characters.",
        )
    if not profile.get("adminPassword"):
        # wording from our knowledge, not read
        raise invalid("adminPassword", "Required parameter 'adminPassword' is missing (null).")


@dataclass(frozen=True)
class Keys:
    """The machine's private host key, and the public key that may sign in."""

    host: str
    authorized: str


def keys(properties: Json, custom_data: str) -> Keys:
    """Return the keys that the extension hands over.

    - `properties`: of the extension, with its protected settings.
    - `custom_data`: the machine's decoded custom data, where the script is.

    Raises ArmError: VMExtensionProvisioningError, when the script would have failed or is another one.
    """
    command = str((properties.get("protectedSettings") or {}).get("commandToExecute", ""))
    arguments = _KEYS.search(command)
    if arguments is None or setup.CUSTOM_DATA not in command:
        raise _failed("The command is not the workbook's own (emulated)")
    _check_script(custom_data)
    try:
        host, authorized = (base64.b64decode(arguments[name], validate=True).decode() for name in _NAMES)
    except (binascii.Error, UnicodeDecodeError) as error:
        raise _failed(f"Cannot convert a key from base64: {error}") from error
    return Keys(host, authorized)


def _check_script(custom_data: str) -> None:
    asked = _SHA256.search(custom_data)
    if asked and asked[1].upper() != RELEASE_SHA256:
        raise _failed(
            f"DiskSpd.zip has the SHA-256 {RELEASE_SHA256}, not {asked[1]}; it was not unpacked (emulated)"
        )
    if not custom_data.startswith(setup.setup_script()):
        raise _failed("The script in the custom data is not the workbook's own (emulated)")


def _failed(message: str) -> ArmError:
    # Code and beginning from our knowledge, not read.
    return ArmError(
        409,
        "VMExtensionProvisioningError",
        f"VM has reported a failure when processing extension '{setup.EXTENSION}'. Error message: "
        f"'{message}'.",
    )
