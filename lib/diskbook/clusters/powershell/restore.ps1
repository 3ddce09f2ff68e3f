# After a disk or a node came back: waits until it is seen, starts the repair where none runs, and says how far it is.
# Asked again and again until `done`; jobs that have ended stand there for a while, each with an id of its own.
Invoke-Step -Name 'restore' -Body {
    if ($p.kind -eq 'disk') {
        Wait-Until -What "the return of disk $($p.unique_id)" -Seconds $p.wait_s -Test {
            "$((Get-PhysicalDisk -UniqueId $p.unique_id -ErrorAction SilentlyContinue).HealthStatus)" -eq 'Healthy'
        }
    } elseif ($p.kind -eq 'node') {
        Wait-Until -What "the return of node $($p.node)" -Seconds $p.wait_s -Test {
            # Its own cluster service stops with the majority of nodes, and is there again after them.
            "$((Get-ClusterNode -Name $p.node -ErrorAction SilentlyContinue).State)" -eq 'Up'
        }
    } else {
        throw "'$($p.kind)' cannot come back; a disk or a node can"
    }
    $broken = @(Get-VolumeHealth -Volumes $p.volumes | Where-Object -FilterScript { $_.health -ne 'Healthy' })
    if ($broken -and -not (Get-RunningJob)) {
        foreach ($volume in $broken) {
            $null = Repair-VirtualDisk -FriendlyName $volume.volume -AsJob
            $changed.Add("repair of $($volume.volume)")
        }
    }
    $jobs = @(Get-RunningJob); $health = @(Get-VolumeHealth -Volumes $p.volumes)
    $ill = @($health | Where-Object -FilterScript { $_.health -ne 'Healthy' })
    $ended = @(Get-StorageJob | Where-Object -FilterScript { "$($_.JobState)" -eq 'Completed' } |
        ForEach-Object -Process { [ordered]@{ id = "$($_.UniqueId)"; name = $_.Name; bytes_done = $_.BytesProcessed } })
    [ordered]@{ done = ($ill.Count -eq 0 -and $jobs.Count -eq 0); health = $health; jobs = $jobs; ended = $ended }
}
