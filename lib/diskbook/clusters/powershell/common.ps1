# In front of every step: one JSON object in, one JSON object out, and errors in their own words.
# Unverified on Windows: written from the documentation; its cmdlets and parameters are held against a table made of it.
# The request comes on standard input, or from a file that only this machine can open (see task.ps1); it may hold
# secrets, which are never part of a command line, of an answer or of an error.
param([string] $Sealed = '')
$ErrorActionPreference = 'Stop'
$ProgressPreference = 'SilentlyContinue'
$changed = [Collections.Generic.List[string]]::new()  # what this call changed; empty when all was in place

function Read-Request {
    $text = [Console]::In.ReadToEnd()
    if ($Sealed) {
        Add-Type -AssemblyName 'System.Security'
        $bytes = [IO.File]::ReadAllBytes($Sealed)
        $plain = [Security.Cryptography.ProtectedData]::Unprotect($bytes, $null, 'LocalMachine')
        $text = [Text.Encoding]::UTF8.GetString($plain)
    }
    if (-not $text) { throw 'the step got no request' }
    ConvertFrom-Json -InputObject $text
}

function Hide-Secret([string] $Text) {
    $hidden = $Text
    foreach ($secret in @($p.password, $p.witness_key, $p.request.witness_key)) {
        if ($secret) { $hidden = $hidden.Replace($secret, '(hidden)') }
    }
    $hidden
}

function Invoke-Step([string] $Name, [scriptblock] $Body) {
    try {
        $p = Read-Request
        $state = & $Body
        $answer = [ordered]@{ step = $Name; ok = $true; changed = @($changed); state = $state }
    } catch {
        $failure = [ordered]@{ message = (Hide-Secret -Text $_.Exception.Message); id = $_.FullyQualifiedErrorId
            where = (Hide-Secret -Text $_.InvocationInfo.PositionMessage) }
        $answer = [ordered]@{ step = $Name; ok = $false; changed = @($changed); error = $failure }
    }
    ConvertTo-Json -InputObject $answer -Depth 8 -Compress
    if (-not $answer.ok) { exit 1 }
}

function Assert-Same([string] $What, [object] $Expected, [object] $Actual) {
    if ("$Expected" -ne "$Actual") { throw "$What is '$Actual', but '$Expected' was asked for" }
}

function Wait-Until([string] $What, [int] $Seconds, [scriptblock] $Test) {
    $until = [DateTime]::UtcNow.AddSeconds($Seconds)
    while (-not (& $Test)) {
        if ([DateTime]::UtcNow -gt $until) { throw "$What was waited for, but did not come about in $Seconds s" }
        Start-Sleep -Seconds 2
    }
}

function Get-RunningJob {
    @(Get-StorageJob | Where-Object -FilterScript { "$($_.JobState)" -notin 'Completed', 'Terminated', 'Killed' } |
        ForEach-Object -Process { [ordered]@{ name = $_.Name; state = "$($_.JobState)"
            percent = $_.PercentComplete; bytes_done = $_.BytesProcessed; bytes_total = $_.BytesTotal } })
}

function Get-VolumeHealth([string[]] $Volumes) {
    @(foreach ($volume in $Volumes) {
        $disk = Get-VirtualDisk -FriendlyName $volume -ErrorAction SilentlyContinue
        $health = if ($disk) { "$($disk.HealthStatus)" } else { 'absent' }
        [ordered]@{ volume = $volume; health = $health; status = "$($disk.OperationalStatus)"
            detached = "$($disk.DetachedReason)" }
    })
}
