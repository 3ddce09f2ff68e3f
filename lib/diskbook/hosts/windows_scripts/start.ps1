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
