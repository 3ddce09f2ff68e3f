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
