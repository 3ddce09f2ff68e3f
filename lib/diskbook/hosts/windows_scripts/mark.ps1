Set-Disk -Number $p.number -IsReadOnly $false
# open-drive.ps1

$stream = New-Object IO.FileStream($handle, 'ReadWrite', 4096)
$text = [Convert]::FromBase64String($p.mark); $bytes = New-Object byte[] $p.size
$text.CopyTo($bytes, 0); [void]$stream.Seek($p.at, 'Begin')
$stream.Write($bytes, 0, $bytes.Length); $stream.Flush(); $stream.Close()
