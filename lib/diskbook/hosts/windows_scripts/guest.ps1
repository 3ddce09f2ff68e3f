$system = Get-CimInstance -ClassName Win32_OperatingSystem
$cpu = Get-CimInstance -ClassName Win32_Processor | Select-Object -First 1
$disk = if ($null -eq $p.number) { $null } else {
    Get-CimInstance -Namespace root/Microsoft/Windows/Storage -ClassName MSFT_PhysicalDisk |
        Where-Object { $_.DeviceId -eq "$($p.number)" } }
[pscustomobject]@{ kernel = "$($system.Caption) $($system.Version)"; cpu_model = $cpu.Name
    power_plan = "$(powercfg.exe /getactivescheme)"; bus_type = $disk.BusType
    write_cache_enabled = $disk.IsWriteCacheEnabled; logical_sector_size = $disk.LogicalSectorSize
} | ConvertTo-Json -Compress
