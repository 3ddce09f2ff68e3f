Get-Disk | ForEach-Object { [pscustomobject]@{ location = $_.Location; number = $_.Number
        size_bytes = $_.Size; own = [bool]($_.IsBoot -or $_.IsSystem); partitions = $_.NumberOfPartitions
        style = "$($_.PartitionStyle)"; unique_id = $_.UniqueId; serial = $_.SerialNumber } } |
    ConvertTo-Json -Compress
