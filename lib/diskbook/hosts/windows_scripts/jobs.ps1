$root = Join-Path $HOME 'jobs'
if (Test-Path $root) { Get-ChildItem $root -Name }
