# Around a loss: blocks of known content, each acknowledged before the next of its volume is begun, one under way on each
# volume. A block that fails is tried again on a stream of its own. What was acknowledged is left in a file, for the call
# that ends the writing; that one may read it back. Reads may be answered from this node's memory, writes never.
Invoke-Step -Name 'verify' -Body {
    $folder = Join-Path -Path $env:ProgramData -ChildPath 'diskbook\cluster'
    $null = [IO.Directory]::CreateDirectory($folder)
    $left = Join-Path -Path $folder -ChildPath "verify-$($p.file)-$($p.tag).json"
    $stop = Join-Path -Path $folder -ChildPath "verify-$($p.file)-$($p.tag).stop"
    $origin = [DateTime]::new(1970, 1, 1, 0, 0, 0, [DateTimeKind]::Utc)
    $hash = [Security.Cryptography.SHA256]::Create()
    $through = [IO.FileOptions]::WriteThrough -bor [IO.FileOptions]::Asynchronous

    function Get-Now { ([DateTime]::UtcNow - $origin).TotalSeconds }

    function Get-Block([int] $Number) {
        $block = [byte[]]::new($p.block_bytes)
        $digest = $hash.ComputeHash([Text.Encoding]::ASCII.GetBytes("$($p.tag) $Number"))
        [Array]::Copy($digest, $block, 32)
        for ($filled = 32; $filled -lt $p.block_bytes; $filled *= 2) {
            [Array]::Copy($block, 0, $block, $filled, [Math]::Min($filled, $p.block_bytes - $filled))
        }
        , $block
    }

    function Open-Stream([object] $Of) {
        $file = Join-Path -Path $Of.path -ChildPath "diskbook-$($p.file).dat"
        [IO.FileStream]::new($file, 'OpenOrCreate', 'ReadWrite', 'ReadWrite', 4096, $through)
    }

    function Start-Write([object] $To) {
        $number = $To.acknowledged % $p.blocks
        try {
            if (-not $To.stream) { $To.stream = Open-Stream -Of $To }
            $null = $To.stream.Seek([long] $number * $p.block_bytes, 'Begin')
            $To.task = $To.stream.WriteAsync((Get-Block -Number $number), 0, $p.block_bytes)
        } catch {
            $To.task = $null
            Stop-Write -To $To -Why $_.Exception.Message
        }
    }

    function Stop-Write([object] $To, [string] $Why) {
        $To.errors += 1
        $To.last_error = $Why
        if ($To.stream) { try { $To.stream.Dispose() } catch { $To.last_error = $_.Exception.Message } }
        $To.stream = $null
    }

    if ($p.action -eq 'write') {
        [IO.File]::Delete($left)
        [IO.File]::Delete($stop)
        $began = Get-Now
        $all = @(foreach ($volume in $p.volumes) {
            @{ name = $volume.name; path = $volume.path; acknowledged = 0; errors = 0; last_error = ''; stream = $null
                task = $null; counts = [Collections.Generic.List[int]]::new() }
        })
        while (-not [IO.File]::Exists($stop) -and (Get-Now) - $began -lt $p.wait_s) {
            foreach ($one in $all) { if (-not $one.task) { Start-Write -To $one } }
            $tasks = @($all.task | Where-Object -FilterScript { $_ })
            if (-not $tasks) { Start-Sleep -Milliseconds 200; continue }
            $null = [Threading.Tasks.Task]::WaitAny($tasks, 200)
            foreach ($one in $all) {
                if (-not $one.task -or -not $one.task.IsCompleted) { continue }
                if ($one.task.IsFaulted) { Stop-Write -To $one -Why $one.task.Exception.InnerException.Message } else {
                    $one.acknowledged += 1
                    $bin = [int] [Math]::Floor(((Get-Now) - $began) / $p.bin_s)
                    while ($one.counts.Count -le $bin) { $one.counts.Add(0) }
                    $one.counts[$bin] += 1
                }
                $one.task = $null
            }
        }
        foreach ($one in $all) { if ($one.stream) { try { $one.stream.Dispose() } catch { $one.errors += 1 } } }
        $rows = @(foreach ($one in $all) { [ordered]@{ volume = $one.name; began_s = $began; counts = @($one.counts)
            written = [Math]::Min($one.acknowledged, $p.blocks); errors = $one.errors; last_error = $one.last_error } })
        $state = [ordered]@{ now_s = (Get-Now); volumes = $rows }
        [IO.File]::WriteAllText("$left.part", (ConvertTo-Json -InputObject $state -Depth 4 -Compress))
        [IO.File]::Move("$left.part", $left)
        return $state
    }
    [IO.File]::WriteAllText($stop, '')
    Wait-Until -What 'the end of the writing' -Seconds $p.wait_s -Test { [IO.File]::Exists($left) }
    $state = ConvertFrom-Json -InputObject ([IO.File]::ReadAllText($left))
    $rows = @(foreach ($row in $state.volumes) {
        $volume = $p.volumes | Where-Object -FilterScript { $_.name -eq $row.volume }
        $verified = $null
        if ($volume -and $p.action -eq 'read') {
            $verified = 0
            $read = [byte[]]::new($p.block_bytes)
            try {
                $stream = Open-Stream -Of $volume
                for ($number = 0; $number -lt $row.written; $number++) {
                    $null = $stream.Seek([long] $number * $p.block_bytes, 'Begin')
                    $count = $stream.Read($read, 0, $p.block_bytes)
                    $same = [Convert]::ToBase64String($read) -eq [Convert]::ToBase64String((Get-Block -Number $number))
                    if ($count -eq $p.block_bytes -and $same) { $verified += 1 }
                }
                $stream.Dispose()
            } catch { $row.last_error = $_.Exception.Message }
        }
        [ordered]@{ volume = $row.volume; began_s = $row.began_s; counts = @($row.counts); written = $row.written
            errors = $row.errors; last_error = $row.last_error; verified = $verified }
    })
    [ordered]@{ now_s = (Get-Now); volumes = $rows }
}
