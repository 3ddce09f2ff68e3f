foreach ($file in 'pid', 'status') {
    (Get-Item (Join-Path $HOME "jobs\$($p.name)\$file")).LastWriteTimeUtc.ToString('o')
}
