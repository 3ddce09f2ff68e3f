"""Windows machines over SSH: detached jobs, and disks by LUN, by PowerShell scripts of a few lines.

Parameters go in front of a script as one line of JSON, so that its text is the same each time. Read in
Microsoft's documentation; shown against the emulator, which answers these scripts, and unverified on Windows.
"""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Iterable
from typing import Any

from diskbook.azure.windows import powershell
from diskbook.errors import DiskbookError
from diskbook.hosts import Connection, JobLost, Output

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
Start-Sleep -Milliseconds $p.expected_ms
$id = [int](Get-Content (Join-Path $dir 'pid')); $status = Join-Path $dir 'status'
$until = (Get-Date).AddMilliseconds($p.patience_ms)
while (-not (Test-Path $status)) {
    if (-not (Get-Process -Id $id -ErrorAction SilentlyContinue)) {
        Start-Sleep -Milliseconds 500
        if (Test-Path $status) { break }
        exit 8
    }
    if ((Get-Date) -gt $until) { taskkill.exe /T /F /PID $id | Out-Null; exit 7 }
    Start-Sleep -Milliseconds 100
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

# Data disks of Azure are SCSI or NVMe; the system's disk and the temporary one are not ours.
DISKS = r"""
Get-Disk | Where-Object { -not $_.IsBoot -and -not $_.IsSystem -and $_.Location -match 'LUN (\d+)' } |
    ForEach-Object { [pscustomobject]@{ lun = [int]$Matches[1]; number = $_.Number; size_bytes = $_.Size;
        style = "$($_.PartitionStyle)"; unique_id = $_.UniqueId; serial = $_.SerialNumber } } |
    ConvertTo-Json -Compress
"""

SCRIPTS = {"start": START, "finish": FINISH, "jobs": JOBS, "times": TIMES, "end": END, "disks": DISKS}
_STREAMS = ("status", "stdout", "stderr")
_WHY = {8: "ended without a status", 9: "is not there any more"}


def script(which: str, /, **parameters: Any) -> str:
    """One of `SCRIPTS` with its parameters in front."""
    quoted = json.dumps(parameters, separators=(",", ":")).replace("'", "''")
    return f"$ErrorActionPreference = 'Stop'; $p = '{quoted}' | ConvertFrom-Json\n{SCRIPTS[which].strip()}\n"


class WindowsConnection(Connection):
    """An SSH connection to a Windows machine; see `hosts.Connection`."""

    def start_job(self, name: str, command: list[str], *, root: bool = False) -> None:
        """Start a detached job in a folder of its own; the connection has the administrator's rights."""
        self._check("start", name=name, command=subprocess.list2cmdline(command))

    def finish_job(
        self, name: str, files: Iterable[str], *, expected_s: float, limit_s: float
    ) -> dict[str, bytes]:
        """Wait for a job and fetch its files; raises JobLost as `hosts.Connection.finish_job` does."""
        output = self._powershell(
            "finish",
            timeout_s=limit_s + 60,
            name=name,
            files=[*_STREAMS, *files],
            expected_ms=round(expected_s * 1000),
            patience_ms=max(100, round((limit_s - expected_s) * 1000)),
        )
        if output.status in (7, 8, 9):
            why = _WHY.get(output.status, f"took more than {limit_s:.0f} s and was ended")
            raise JobLost(f"machine {self.host.name}: job {name} {why}")
        if output.status != 0:
            raise self._failed("finish", output)
        rows = [line.split(" ", 1) for line in output.stdout.decode().splitlines() if line.strip()]
        return {row[0]: base64.b64decode(row[1]) if len(row) > 1 else b"" for row in rows}

    def jobs(self) -> list[str]:
        """Names of the jobs that were started on the machine and not forgotten."""
        return self._check("jobs").decode().split()

    def job_times(self, name: str) -> tuple[str, str]:
        """When a finished job began and ended, by the machine's clock, as ISO 8601 text in UTC."""
        began, ended = self._check("times", name=name).decode().split()
        return began, ended

    def end_jobs(self) -> None:
        """End what an earlier session left running on the machine, and forget all its jobs."""
        self._check("end")

    def disks(self) -> list[dict[str, Any]]:
        """Data disks as the machine sees them: `lun`, `number` of the physical drive, `size_bytes`, `style`.

        Emulated machines add `prefill_target`.
        """
        text = self._check("disks").decode().strip()
        found = json.loads(text) if text else []
        return [found] if isinstance(found, dict) else list(found)

    def _check(self, which: str, /, **parameters: Any) -> bytes:
        output = self._powershell(which, **parameters)
        if output.status != 0:
            raise self._failed(which, output)
        return output.stdout

    def _failed(self, which: str, output: Output) -> DiskbookError:
        said = (output.stderr.decode(errors="replace").strip() or "it printed nothing").splitlines()[0]
        return DiskbookError(f"machine {self.host.name}: script '{which}' ended with {output.status}: {said}")

    def _powershell(self, which: str, /, *, timeout_s: float = 120.0, **parameters: Any) -> Output:
        return self.run(powershell(script(which, **parameters)), timeout_s=timeout_s)
