# Before each block: no repair runs, the volumes are healthy, and nothing moves between the tiers. Waits, or refuses.
Invoke-Step -Name 'idle' -Body {
    $began = [DateTime]::UtcNow
    $absent = @(Get-VolumeHealth -Volumes $p.volumes | Where-Object -FilterScript { $_.health -eq 'absent' })
    if ($absent) { throw "there is no volume $($absent.volume -join ', ')" }
    Wait-Until -What 'that no storage job runs' -Seconds $p.wait_s -Test { -not (Get-RunningJob) }
    Wait-Until -What "that $($p.volumes -join ', ') are healthy" -Seconds $p.wait_s -Test {
        -not (Get-VolumeHealth -Volumes $p.volumes | Where-Object -FilterScript { $_.health -ne 'Healthy' })
    }
    if ($p.quiet_s -gt 0) {
        Wait-Until -What "$($p.quiet_s) s without data moved to the slow tier" -Seconds $p.wait_s -Test {
            $samples = Get-Counter -Counter '\ReFS(*)\Allocation of Data Clusters on Slow Tier/sec' `
                -SampleInterval 1 -MaxSamples $p.quiet_s
            $moving = @($samples.CounterSamples | Where-Object -FilterScript { $_.CookedValue -gt 0 })
            $moving.Count -eq 0
        }
    }
    [ordered]@{ waited_s = [Math]::Round(([DateTime]::UtcNow - $began).TotalSeconds, 1); jobs = @(Get-RunningJob)
        health = @(Get-VolumeHealth -Volumes $p.volumes); quiet_s = $p.quiet_s }
}
