# Runs another step as the cluster's account. A session that signed in by key cannot reach other nodes; a scheduled task
# with a stored password can. The request of the step, which may hold secrets, waits in a file that is encrypted for
# this machine and closed to all but administrators, and is deleted at the end. A step that still runs is waited for.
Invoke-Step -Name 'task' -Body {
    Add-Type -AssemblyName 'System.Security'
    $folder = Join-Path -Path $env:ProgramData -ChildPath 'diskbook\cluster'
    $null = [IO.Directory]::CreateDirectory($folder)
    $script = Join-Path -Path $folder -ChildPath "$($p.step).ps1"
    $request = Join-Path -Path $folder -ChildPath "$($p.step).request"
    $output = Join-Path -Path $folder -ChildPath "$($p.step).answer"
    $task = "diskbook-$($p.step)"
    $running = Get-ScheduledTask -TaskName $task -ErrorAction SilentlyContinue
    if (-not ($running -and "$($running.State)" -eq 'Running')) {
        $json = ConvertTo-Json -InputObject $p.request -Depth 8 -Compress
        $plain = [Text.Encoding]::UTF8.GetBytes($json)
        $bytes = [Security.Cryptography.ProtectedData]::Protect($plain, $null, 'LocalMachine')
        [IO.File]::WriteAllBytes($request, $bytes)
        $shown = icacls.exe $request /inheritance:r /grant '*S-1-5-18:F' /grant '*S-1-5-32-544:F'
        if ($LASTEXITCODE -ne 0) { throw "icacls cannot protect ${request}: $shown" }
        [IO.File]::Delete($output)
        $line = "/c powershell -NoProfile -NonInteractive -ExecutionPolicy Bypass -File ""$script"" -Sealed ""$request"" <nul >""$output"" 2>&1"
        $action = New-ScheduledTaskAction -Execute 'cmd.exe' -Argument $line
        $null = Register-ScheduledTask -TaskName $task -Action $action -User $p.account -Password $p.password `
            -RunLevel Highest -Force
        Start-ScheduledTask -TaskName $task
        $changed.Add('task')
    }
    # 0x41303: has not run yet; 0x41301: runs; 0x41325: queued.
    Wait-Until -What "the end of step $($p.step)" -Seconds $p.wait_s -Test {
        (Get-ScheduledTaskInfo -TaskName $task).LastTaskResult -notin 0x41303, 0x41301, 0x41325
    }
    $result = (Get-ScheduledTaskInfo -TaskName $task).LastTaskResult
    Unregister-ScheduledTask -TaskName $task -Confirm:$false
    [IO.File]::Delete($request)
    $text = if ([IO.File]::Exists($output)) { [IO.File]::ReadAllText($output) } else { '' }
    [ordered]@{ step = $p.step; result = $result; output = (Hide-Secret -Text $text) }
}
