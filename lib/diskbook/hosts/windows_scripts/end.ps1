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
