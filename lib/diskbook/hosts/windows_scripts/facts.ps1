# open-drive.ps1

$disk = Get-Disk -Number $p.number; $mib = 1MB
$stream = New-Object IO.FileStream($handle, 'Read', $mib)
function Read-At([long] $At, [int] $Count) {
    $bytes = New-Object byte[] $Count; $done = 0; [void]$stream.Seek($At, 'Begin')
    while ($done -lt $Count) { $done += $stream.Read($bytes, $done, $Count - $done) }
    , $bytes
}
function Get-Digest([byte[]] $Bytes) {
    $sum = [Security.Cryptography.SHA256]::Create().ComputeHash($Bytes)
    [BitConverter]::ToString($sum).Replace("-", "").ToLower()
}
$last = Read-At ($disk.Size - $mib) $mib
[pscustomobject]@{ style = "$($disk.PartitionStyle)"; partitions = $disk.NumberOfPartitions
    own = [bool]($disk.IsBoot -or $disk.IsSystem); serial = $disk.SerialNumber
    head = Get-Digest (Read-At 0 $mib); tail = Get-Digest $last
    mark = [Convert]::ToBase64String($last[0..4095]) } | ConvertTo-Json -Compress
