"""Setting up Windows Server: the script that installs DiskSpd and OpenSSH, and what is asked afterwards.

Client and emulator share it: the one sends the script, the other knows it and plays what it does.
"""

from importlib import resources

from diskbook.tools import diskspd
from diskbook.tools.diskspd.command import INSTALL
from diskbook.tools.protocol import Tool

EXTENSION = "diskbook-setup"
COMPUTER_NAME_CHARS = 15  # NetBIOS
# Where Azure's agent leaves customData, and where the script puts the tool.
CUSTOM_DATA = r"C:\AzureData\CustomData.bin"
SCRIPT = r"C:\AzureData\diskbook-setup.ps1"


def facts(tool: Tool) -> str:
    """Return what a machine is asked once it is set up, in PowerShell: one line each."""
    return f"""\
$os = Get-CimInstance Win32_OperatingSystem
"$($os.Caption) $($os.Version)"
{tool.install.version}
"""


FACTS = facts(diskspd.TOOL)


def setup_script(appended: str = "") -> str:
    """Return the PowerShell script that sets a machine up, with more appended; it holds no secret."""
    text = (resources.files("diskbook.hosts") / "windows-setup.ps1").read_text("utf-8")
    text = text.replace("@DISKSPD_URL@", INSTALL.url).replace("@DISKSPD_SHA256@", INSTALL.sha256)
    return f"{text}\n{appended}" if appended else text
