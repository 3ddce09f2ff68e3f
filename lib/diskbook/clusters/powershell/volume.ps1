# As the cluster's account: one volume, and what it turned out to be. A volume of the name that differs is never changed.
Invoke-Step -Name 'volume' -Body {
    $nested = $p.kind -in 'nested-mirror', 'nested-parity'
    $disk = Get-VirtualDisk -FriendlyName $p.name -ErrorAction SilentlyContinue
    if (-not $disk -and $nested) {
        # The two templates as Microsoft describes them; only the medium is ours.
        $tiers = @(Get-StorageTier | ForEach-Object -Process { $_.FriendlyName })
        if ('NestedMirror' -notin $tiers) {
            $null = New-StorageTier -StoragePoolFriendlyName $p.pool -FriendlyName 'NestedMirror' `
                -ResiliencySettingName Mirror -MediaType SSD -NumberOfDataCopies 4
            $changed.Add('tier NestedMirror')
        }
        if ($p.kind -eq 'nested-parity' -and 'NestedParity' -notin $tiers) {
            $null = New-StorageTier -StoragePoolFriendlyName $p.pool -FriendlyName 'NestedParity' `
                -ResiliencySettingName Parity -MediaType SSD -NumberOfDataCopies 2 -PhysicalDiskRedundancy 1 `
                -NumberOfGroups 1 -FaultDomainAwareness StorageScaleUnit -ColumnIsolation PhysicalDisk
            $changed.Add('tier NestedParity')
        }
    }
    if (-not $disk) {
        if ($p.kind -eq 'simple') {
            $null = New-VirtualDisk -StoragePoolFriendlyName $p.pool -FriendlyName $p.name `
                -ResiliencySettingName Simple -NumberOfColumns $p.columns -Interleave $p.interleave_bytes `
                -ProvisioningType Fixed -Size $p.size_bytes
        } elseif ($p.kind -eq 'nested-mirror') {
            $null = New-Volume -StoragePoolFriendlyName $p.pool -FriendlyName $p.name -FileSystem CSVFS_ReFS `
                -StorageTierFriendlyNames 'NestedMirror' -StorageTierSizes $p.mirror_bytes
        } elseif ($p.kind -eq 'nested-parity') {
            $null = New-Volume -StoragePoolFriendlyName $p.pool -FriendlyName $p.name -FileSystem CSVFS_ReFS `
                -StorageTierFriendlyNames 'NestedMirror', 'NestedParity' -StorageTierSizes $p.mirror_bytes, $p.parity_bytes
        } elseif ($p.kind -in 'two-way', 'three-way') {
            $null = New-Volume -StoragePoolFriendlyName $p.pool -FriendlyName $p.name -FileSystem CSVFS_ReFS `
                -ResiliencySettingName Mirror -PhysicalDiskRedundancy $p.redundancy -NumberOfColumns $p.columns `
                -ProvisioningType Fixed -Size $p.size_bytes
        } else {
            throw "'$($p.kind)' is no kind of volume; simple, two-way, three-way, nested-mirror and nested-parity are"
        }
        $changed.Add('volume')
        $disk = Get-VirtualDisk -FriendlyName $p.name
    }
    if ($p.kind -eq 'simple') {
        # Killed between these two, the step goes on here.
        $drive = Get-Disk -VirtualDisk $disk
        if ("$($drive.PartitionStyle)" -eq 'RAW') {
            Initialize-Disk -UniqueId $drive.UniqueId -PartitionStyle GPT
            $changed.Add('partition table')
        }
        if (-not (Get-Volume -FileSystemLabel $p.name -ErrorAction SilentlyContinue)) {
            $null = New-Volume -DiskUniqueId $drive.UniqueId -FriendlyName $p.name -FileSystem ReFS -DriveLetter $p.drive_letter
            $changed.Add('file system')
        }
    }

    # What came of it. Volumes of tiers say it of each tier, others of the virtual disk.
    $parts = if ($nested) { @(Get-StorageTier -VirtualDisk $disk | Sort-Object -Property 'FriendlyName') } else { @($disk) }
    $shape = @($parts | ForEach-Object -Process { [ordered]@{ name = $_.FriendlyName
        resiliency = "$($_.ResiliencySettingName)"; copies = [int]$_.NumberOfDataCopies
        columns = [int]$_.NumberOfColumns; redundancy = [int]$_.PhysicalDiskRedundancy
        interleave_bytes = [long]$_.Interleave; size_bytes = [long]$_.Size; footprint_bytes = [long]$_.FootprintOnPool } })
    Assert-Same -What "the number of parts of $($p.name)" -Expected $p.parts.Count -Actual $shape.Count
    for ($at = 0; $at -lt $shape.Count; $at++) {
        $asked = $p.parts[$at]
        foreach ($fact in 'resiliency', 'copies', 'columns', 'redundancy', 'interleave_bytes') {
            if ($null -ne $asked.$fact) {
                Assert-Same -What "$fact of $($shape[$at].name)" -Expected $asked.$fact -Actual $shape[$at].$fact
            }
        }
        if ($shape[$at].footprint_bytes -lt $asked.footprint_at_least_bytes) {
            throw "$($shape[$at].name) takes $($shape[$at].footprint_bytes) bytes of the pool; its copies need $($asked.footprint_at_least_bytes)"
        }
    }
    Assert-Same -What "the health of $($p.name)" -Expected 'Healthy' -Actual "$($disk.HealthStatus)"
    $owner = $env:COMPUTERNAME; $path = "$($p.drive_letter):\"
    if ($p.kind -ne 'simple') {
        $shared = Get-ClusterSharedVolume -Name "Cluster Virtual Disk ($($p.name))"
        $owner = "$($shared.OwnerNode)"; $path = $shared.SharedVolumeInfo[0].FriendlyVolumeName
    }
    [ordered]@{ volume = $p.name; kind = $p.kind; owner = $owner; path = $path; parts = $shape
        size_bytes = [long]$disk.Size; footprint_bytes = [long]$disk.FootprintOnPool }
}
