"""PowerShell scripts that are run on a Windows machine: jobs, disks by LUN, marks on disks, files.

Parameters go in front of a script as one line of JSON, so that its text is the same each time. Written from
general knowledge of Windows and unverified there: the emulator answers these scripts, and runs no PowerShell.
"""

import base64
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

START = r"""
$root = Join-Path $HOME 'jobs'; $dir = Join-Path $root $p.name
if (Test-Path $root) {
    $done = Get-ChildItem $root | Where-Object { Test-Path (Join-Path $_.FullName 'status') }
    $done | Where-Object { $_.Name -ne $p.name } | Remove-Item -Recurse -Force
}
if (Test-Path $dir) { exit 0 }
New-Item -ItemType Directory -Path $dir | Out-Null
Set-Content -Encoding Ascii -Path (Join-Path $dir 'run.cmd') -Value @(
    '@echo off', 'set "PATH=%PATH%;%ProgramFiles%\DiskSpd\amd64"', "$($p.command) >stdout 2>stderr",
    'echo %errorlevel% >s', 'move /y s status >nul')
# What a session starts ends with it; what WMI starts does not.
$made = Invoke-CimMethod -ClassName Win32_Process -MethodName Create -Arguments @{
    CommandLine = 'cmd.exe /c run.cmd'; CurrentDirectory = $dir }
if ($made.ReturnValue -ne 0) { throw "Win32_Process.Create returned $($made.ReturnValue)" }
Set-Content -Encoding Ascii -Path (Join-Path $dir 'pid') -Value $made.ProcessId
"""

FINISH = r"""
$dir = Join-Path (Join-Path $HOME 'jobs') $p.name
if (-not (Test-Path $dir)) { exit 9 }
$id = [int](Get-Content (Join-Path $dir 'pid')); $status = Join-Path $dir 'status'
# Woken by the end of the job's own process: nothing looks meanwhile. Its number may be another's by now.
$runs = if (Test-Path $status) { $null } else { Get-Process -Id $id -ErrorAction SilentlyContinue }
if ($runs -and $runs.ProcessName -eq 'cmd' -and -not $runs.WaitForExit($p.patience_ms)) {
    taskkill.exe /T /F /PID $id | Out-Null; exit 7
}
if (-not (Test-Path $status)) {
    Start-Sleep -Milliseconds 500
    if (-not (Test-Path $status)) { exit 8 }
}
foreach ($file in $p.files) {
    $path = Join-Path $dir $file
    if (Test-Path $path) { "$file " + [Convert]::ToBase64String([IO.File]::ReadAllBytes($path)) }
}
"""

JOBS = r"""
$root = Join-Path $HOME 'jobs'
if (Test-Path $root) { Get-ChildItem $root -Name }
"""

TIMES = r"""
foreach ($file in 'pid', 'status') {
    (Get-Item (Join-Path $HOME "jobs\$($p.name)\$file")).LastWriteTimeUtc.ToString('o')
}
"""

END = r"""
$root = Join-Path $HOME 'jobs'
if (-not (Test-Path $root)) { exit 0 }
foreach ($dir in Get-ChildItem $root) {
    $pidfile = Join-Path $dir.FullName 'pid'
    if ((Test-Path $pidfile) -and -not (Test-Path (Join-Path $dir.FullName 'status'))) {
        $id = [int](Get-Content $pidfile)
        $runs = Get-Process -Id $id -ErrorAction SilentlyContinue
        if ($runs -and $runs.ProcessName -eq 'cmd') { taskkill.exe /T /F /PID $id | Out-Null }
    }
}
Remove-Item -Recurse -Force $root
"""

# All disks, the system's and the temporary one among them: `data_disks` tells which are ours.
DISKS = r"""
Get-Disk | ForEach-Object { [pscustomobject]@{ location = $_.Location; number = $_.Number
        size_bytes = $_.Size; own = [bool]($_.IsBoot -or $_.IsSystem); partitions = $_.NumberOfPartitions
        style = "$($_.PartitionStyle)"; unique_id = $_.UniqueId; serial = $_.SerialNumber } } |
    ConvertTo-Json -Compress
"""
# A location: "Integrated : Bus 0 : Device 63667 : Function 30747 : Adapter 1 : Port 0 : Target 0 : LUN 0".
_ADAPTER, _LUN = re.compile(r"^.*?\bAdapter \d+\b"), re.compile(r"\bLUN (\d+)\s*$")

# .NET opens no devices by name, so the handle comes from Windows itself.
_OPEN = r"""
$members = '[DllImport("kernel32.dll", SetLastError = true, CharSet = CharSet.Unicode)]
public static extern Microsoft.Win32.SafeHandles.SafeFileHandle CreateFile(
    string name, uint access, uint share, IntPtr security, uint how, uint flags, IntPtr template);'
$windows = Add-Type -PassThru -Namespace Diskbook -Name Native -MemberDefinition $members
$name = '\\.\PhysicalDrive{0}' -f $p.number; $none = [IntPtr]::Zero
$handle = $windows::CreateFile($name, [uint32]$p.access, 3, $none, 3, 0, $none)
if ($handle.IsInvalid) { throw "$name cannot be opened" }
"""

FACTS = (
    _OPEN
    + r"""
$disk = Get-Disk -Number $p.number; $mib = 1MB
$stream = New-Object IO.FileStream($handle, 'Read', $mib)
function Read-At([long] $At, [int] $Count) {
    $bytes = New-Object byte[] $Count; $done = 0; [void]$stream.Seek($At, 'Begin')
    while ($done -lt $Count) { $done += $stream.Read($bytes, $done, $Count - $done) }
    , $bytes
}
function Get-Digest([byte[]] $Bytes) {
    $sum = [Security.Cryptography.SHA256]::Create().ComputeHash($Bytes)
    [BitConverter]::ToString($sum).Replace("-", "").ToLower()
}
$last = Read-At ($disk.Size - $mib) $mib
[pscustomobject]@{ style = "$($disk.PartitionStyle)"; partitions = $disk.NumberOfPartitions
    own = [bool]($disk.IsBoot -or $disk.IsSystem); serial = $disk.SerialNumber
    head = Get-Digest (Read-At 0 $mib); tail = Get-Digest $last
    mark = [Convert]::ToBase64String($last[0..4095]) } | ConvertTo-Json -Compress
"""
)

MARK = (
    """
Set-Disk -Number $p.number -IsReadOnly $false
"""
    + _OPEN.lstrip()
    + r"""
$stream = New-Object IO.FileStream($handle, 'ReadWrite', 4096)
$text = [Convert]::FromBase64String($p.mark); $bytes = New-Object byte[] $p.size
$text.CopyTo($bytes, 0); [void]$stream.Seek($p.at, 'Begin')
$stream.Write($bytes, 0, $bytes.Length); $stream.Flush(); $stream.Close()
"""
)

# Of a physical drive, where its number is given: MSFT_PhysicalDisk has bus, write cache and sector.
GUEST = r"""
$system = Get-CimInstance -ClassName Win32_OperatingSystem
$cpu = Get-CimInstance -ClassName Win32_Processor | Select-Object -First 1
$disk = if ($null -eq $p.number) { $null } else {
    Get-CimInstance -Namespace root/Microsoft/Windows/Storage -ClassName MSFT_PhysicalDisk |
        Where-Object { $_.DeviceId -eq "$($p.number)" } }
[pscustomobject]@{ kernel = "$($system.Caption) $($system.Version)"; cpu_model = $cpu.Name
    power_plan = "$(powercfg.exe /getactivescheme)"; bus_type = $disk.BusType
    write_cache_enabled = $disk.IsWriteCacheEnabled; logical_sector_size = $disk.LogicalSectorSize
} | ConvertTo-Json -Compress
"""

# The script of a step, in base64, on standard input: it is longer than a command line may be.
PUT = r"""
[void](New-Item -ItemType Directory -Force -Path (Split-Path -Parent $p.path))
[IO.File]::WriteAllBytes($p.path, [Convert]::FromBase64String([Console]::In.ReadToEnd()))
"""

SCRIPTS = {
    "start": START,
    "finish": FINISH,
    "jobs": JOBS,
    "times": TIMES,
    "end": END,
    "disks": DISKS,
    "facts": FACTS,
    "mark": MARK,
    "guest": GUEST,
    "put": PUT,
}


def script(which: str, /, **parameters: Any) -> str:
    """One of `SCRIPTS` with its parameters in front."""
    quoted = json.dumps(parameters, separators=(",", ":")).replace("'", "''")
    return f"$ErrorActionPreference = 'Stop'; $p = '{quoted}' | ConvertFrom-Json\n{SCRIPTS[which].strip()}\n"


def data_disks(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Of all disks that `DISKS` lists, those that Azure attached as data disks, each with its `lun`.

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
