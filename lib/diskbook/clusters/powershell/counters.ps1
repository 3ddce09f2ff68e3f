# Before and after each trial, on each node: running totals, so that the difference of two calls is exact. How full a
# mirror tier is has no documented counter; FSCTL_GET_REFS_VOLUME_DATA tells it, in 1/10,000, of the volumes owned here.
Invoke-Step -Name 'counters' -Body {
    $fill = @($p.paths | Where-Object -FilterScript { $_ -match 'Tier Data Fill Ratio$' })
    $samples = (Get-Counter -Counter @($p.paths | Where-Object -FilterScript { $_ -notin $fill })).CounterSamples
    $rows = @($samples | ForEach-Object -Process {
        [ordered]@{ path = $_.Path; instance = $_.InstanceName; raw = $_.RawValue; base = $_.SecondValue
            kind = "$($_.CounterType)"; at_100ns = $_.Timestamp100NSec } })
    $owned = @(if ($fill) { Get-ClusterSharedVolume | Where-Object -FilterScript { "$($_.OwnerNode)" -eq $env:COMPUTERNAME } })
    if ($owned) {
        $members = '[DllImport("kernel32.dll", SetLastError = true, CharSet = CharSet.Unicode)]
public static extern Microsoft.Win32.SafeHandles.SafeFileHandle CreateFile(
    string name, uint access, uint share, IntPtr security, uint how, uint flags, IntPtr template);
[DllImport("kernel32.dll", SetLastError = true)]
public static extern bool DeviceIoControl(Microsoft.Win32.SafeHandles.SafeFileHandle handle, uint code,
    IntPtr input, uint inputSize, byte[] output, uint outputSize, out uint returned, IntPtr overlapped);'
        $windows = Add-Type -PassThru -Namespace 'Diskbook' -Name 'Refs' -MemberDefinition $members
    }
    foreach ($volume in $owned) {
        # The folder of the volume, opened for its attributes alone: OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS.
        $path = $volume.SharedVolumeInfo[0].FriendlyVolumeName; $none = [IntPtr]::Zero
        $handle = $windows::CreateFile($path, [uint32]0x80, [uint32]7, $none, [uint32]3, [uint32]0x02000000, $none)
        $data = [byte[]]::new(192); $length = [uint32]0
        # FastTierDataFillRatio of REFS_VOLUME_DATA_BUFFER is at byte 72; what is no ReFS volume refuses.
        if ($windows::DeviceIoControl($handle, [uint32]0x902d8, $none, [uint32]0, $data, [uint32]192, [ref]$length, $none)) {
            $name = [IO.Path]::GetFileName($path.TrimEnd('\')).ToLower()
            $rows += [ordered]@{ path = "\\$env:COMPUTERNAME$($fill[0].Replace('(*)', "($name)"))".ToLower(); instance = $name
                raw = [int][BitConverter]::ToUInt16($data, 72); base = 10000; kind = 'RawFraction'
                at_100ns = [DateTime]::UtcNow.ToFileTimeUtc() }
        }
        $handle.Close()
    }
    [ordered]@{ computer = $env:COMPUTERNAME; samples = @($rows | Sort-Object -Property { $_.path }) }
}
