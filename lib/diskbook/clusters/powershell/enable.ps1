# As the cluster's account: Storage Spaces Direct without cache, and a pool of exactly the disks of this run.
# Without a cluster (one server): the pool alone.
Invoke-Step -Name 'enable' -Body {
    if ($p.clustered) {
        if ((Get-Cluster).S2DEnabled -ne 1) {
            $null = Enable-ClusterStorageSpacesDirect -PoolFriendlyName $p.pool -Autoconfig $false `
                -CacheState Disabled -SkipEligibilityChecks -Confirm:$false
            $changed.Add('Storage Spaces Direct')
        }
        $direct = Get-ClusterStorageSpacesDirect
        Assert-Same -What 'S2DEnabled' -Expected 1 -Actual (Get-Cluster).S2DEnabled
        Assert-Same -What 'the cache of Storage Spaces Direct' -Expected 'Disabled' -Actual "$($direct.CacheState)"
        $cluster = Get-Cluster
        if ($cluster.BlockCacheSize -ne 0) {
            $cluster.BlockCacheSize = 0
            $changed.Add('BlockCacheSize')
        }
        Assert-Same -What 'BlockCacheSize' -Expected 0 -Actual (Get-Cluster).BlockCacheSize
    }
    $pattern = if ($p.clustered) { 'Clustered Windows Storage*' } else { 'Windows Storage*' }
    $subsystem = @(Get-StorageSubSystem -FriendlyName $pattern)
    if ($subsystem.Count -ne 1) { throw "$($subsystem.Count) storage subsystems are named '$pattern', not one" }
    $subsystem = $subsystem[0]
    if ($p.clustered) {
        # Nothing may join, replace or retire a disk by itself while it is measured or taken away.
        foreach ($rule in 'AutoPool', 'AutoReplace', 'AutoRetire.OnLostCommunication') {
            $setting = "System.Storage.PhysicalDisk.$rule.Enabled"
            $now = Get-StorageHealthSetting -InputObject $subsystem -Name $setting -ErrorAction SilentlyContinue
            if ("$($now.Value)" -ne 'False') {
                $null = Set-StorageHealthSetting -InputObject $subsystem -Name $setting -Value 'False'
                $changed.Add($rule)
            }
            $now = Get-StorageHealthSetting -InputObject $subsystem -Name $setting
            Assert-Same -What $setting -Expected 'False' -Actual "$($now.Value)"
        }
    }

    if ('Storage Spaces Direct' -in $changed) {
        # Just enabled: the disks of the other nodes come one after the other.
        Wait-Until -What "that all disks are seen: $($p.disks.unique_id -join ', ')" -Seconds $p.wait_s -Test {
            $seen = @(Get-PhysicalDisk -StorageSubsystem $subsystem | ForEach-Object -Process { $_.UniqueId })
            -not @($p.disks.unique_id | Where-Object -FilterScript { $_ -notin $seen })
        }
    }
    $visible = @(Get-PhysicalDisk -StorageSubsystem $subsystem)
    $members = @(foreach ($disk in $p.disks) {
        $match = @($visible | Where-Object -FilterScript { $_.UniqueId -eq $disk.unique_id })
        $label = "the disk of $($disk.node) at LUN $($disk.lun) ($($disk.unique_id))"
        if ($match.Count -ne 1) { throw "$label is seen $($match.Count) times by the storage subsystem, not once" }
        if ("$($match[0].BusType)" -eq 'NVMe') { throw "$label is NVMe; a local disk may not join the pool" }
        # A pool takes a part of each disk for itself, so the size is compared before.
        if ($match[0].CanPool) {
            Assert-Same -What "the size of $label" -Expected $disk.size_bytes -Actual $match[0].Size
        }
        if ($p.clustered) {
            $holder = @(Get-StorageNode -PhysicalDisk $match[0] -PhysicallyConnected)
            Assert-Same -What "the node of $label" -Expected $disk.node -Actual ("$($holder.Name)" -split '\.')[0]
        }
        $match[0]
    })
    $expected = @($p.disks.unique_id | Sort-Object) -join ', '
    $pool = Get-StoragePool -FriendlyName $p.pool -ErrorAction SilentlyContinue
    if (-not $pool) {
        foreach ($member in $members) {
            if (-not $member.CanPool) { throw "disk $($member.UniqueId) cannot join a pool: $($member.CannotPoolReason)" }
        }
        $pool = New-StoragePool -StorageSubSystemFriendlyName $subsystem.FriendlyName -FriendlyName $p.pool `
            -PhysicalDisks $members -ProvisioningTypeDefault Fixed
        $changed.Add('pool')
    }
    $pooled = @(Get-PhysicalDisk -StoragePool $pool | Sort-Object -Property 'UniqueId')
    Assert-Same -What "the disks of pool $($p.pool)" -Expected $expected -Actual (@($pooled.UniqueId | Sort-Object) -join ', ')
    # Azure's disks may show no medium, and tiers are chosen by it.
    foreach ($disk in $pooled) {
        if ("$($disk.MediaType)" -ne 'SSD') {
            Set-PhysicalDisk -UniqueId $disk.UniqueId -MediaType SSD
            $changed.Add("medium of $($disk.UniqueId)")
        }
    }
    $pooled = @(Get-PhysicalDisk -StoragePool $pool | Sort-Object -Property 'UniqueId')
    foreach ($disk in $pooled) {
        Assert-Same -What "the medium of $($disk.UniqueId)" -Expected 'SSD' -Actual "$($disk.MediaType)"
        if ("$($disk.Usage)" -eq 'Journal') { throw "disk $($disk.UniqueId) serves as a cache; none was asked for" }
    }
    $cache = if ($p.clustered) { [int](Get-Cluster).BlockCacheSize } else { 0 }
    [ordered]@{ pool = $p.pool; block_cache_mb = $cache; size_bytes = (Get-StoragePool -FriendlyName $p.pool).Size
        disks = @($pooled | ForEach-Object -Process { [ordered]@{ unique_id = $_.UniqueId; size_bytes = $_.Size
            bus = "$($_.BusType)"; medium = "$($_.MediaType)"; usage = "$($_.Usage)"; health = "$($_.HealthStatus)" } }) }
}
