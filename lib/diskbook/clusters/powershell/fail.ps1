# After a disk was detached or a node switched off: waits until the cluster has noticed, and says what still answers.
# The loss itself is made from outside, by the cloud; nothing is changed here.
Invoke-Step -Name 'fail' -Body {
    $began = [DateTime]::UtcNow
    if ($p.kind -eq 'disk') {
        Wait-Until -What "the loss of disk $($p.unique_id)" -Seconds $p.wait_s -Test {
            $disk = Get-PhysicalDisk -UniqueId $p.unique_id -ErrorAction SilentlyContinue
            -not $disk -or "$($disk.HealthStatus)" -ne 'Healthy'
        }
    } elseif ($p.kind -eq 'node') {
        Wait-Until -What "the loss of node $($p.node)" -Seconds $p.wait_s -Test {
            # Without the majority of nodes this one's own cluster service stops, and no state is told.
            "$((Get-ClusterNode -Name $p.node -ErrorAction SilentlyContinue).State)" -notin 'Up', 'Joining', 'Paused'
        }
    } else {
        throw "'$($p.kind)' cannot be lost; a disk or a node can"
    }
    [ordered]@{ noticed_s = [Math]::Round(([DateTime]::UtcNow - $began).TotalSeconds, 1)
        health = @(Get-VolumeHealth -Volumes $p.volumes); jobs = @(Get-RunningJob)
        nodes = @(Get-ClusterNode -ErrorAction SilentlyContinue | Sort-Object -Property 'Name' | ForEach-Object -Process {
            [ordered]@{ node = $_.Name; state = "$($_.State)" } }) }
}
