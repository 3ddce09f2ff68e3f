"""Names the release of DiskSpd that machines get, and how they get it."""

from __future__ import annotations

from diskbook.tools.protocol import Install

RELEASE = "2.0.21a"
INSTALL = Install(
    version=r'(Get-Item "$env:ProgramFiles\DiskSpd\amd64\diskspd.exe").VersionInfo.ProductVersion',
    url=f"https://github.com/microsoft/diskspd/releases/download/v{RELEASE}/DiskSpd.zip",
    # As the public package definition of this release names it.
    sha256="D02F6BE976C518D4134E62AF7F518BAAD6C7C81F924CAAFBEBA65BD0831CE139",
)
