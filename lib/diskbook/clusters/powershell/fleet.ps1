# As the cluster's account: one load on many machines at once, and the XML of each in one archive. By "processes": DiskSpd on
# the nodes, an instance for each file. By "vmfleet": the machines that VMFleet made, placed and started before.
Invoke-Step -Name 'fleet' -Body {
    $began = [DateTime]::UtcNow
    Add-Type -AssemblyName 'System.IO.Compression.FileSystem'
    $folder = Join-Path -Path $env:ProgramData -ChildPath 'diskbook\cluster\fleet'
    if ([IO.Directory]::Exists($folder)) { [IO.Directory]::Delete($folder, $true) }
    $null = [IO.Directory]::CreateDirectory($folder)

    # The names of VMFleet's results say the load: KiB, threads, outstanding, share of writes, random or in order.
    function Get-Flag([string] $Flag, [string] $Otherwise) {
        $match = [regex]::Match($p.line, "(?:^|\s)-$Flag(\S*)")
        if ($match.Success) { $match.Groups[1].Value } else { $Otherwise }
    }
    $size = [regex]::Match((Get-Flag -Flag 'b' -Otherwise '64k'), '^(\d+)([kKmM]?)$')
    $unit = @{ 'k' = 1024; 'm' = 1048576; '' = 1 }[$size.Groups[2].Value.ToLower()]
    $block = [long]$size.Groups[1].Value * $unit / 1024
    $threads = Get-Flag -Flag 't' -Otherwise '1'
    $depth = Get-Flag -Flag 'o' -Otherwise '2'
    $writes = Get-Flag -Flag 'w' -Otherwise '0'
    $order = if ([regex]::IsMatch($p.line, '(?:^|\s)-r')) { 'r' } else { 's' }
    $rate = Get-Flag -Flag 'g' -Otherwise ''
    $limit = if ($rate) { "g$rate" } else { '' }
    $label = "result-b$($block)t$($threads)o$($depth)w$($writes)p$($order)$limit-$($p.spec)"

    $machines = @(foreach ($volume in $p.volumes) {
        for ($number = 1; $number -le $p.instances; $number++) {
            $short = 'vm-{0:000}' -f $number
            [ordered]@{ vm = "vm-$($volume.name)-$($volume.node)-$('{0:000}' -f $number)"; volume = $volume.name
                node = $volume.node; file = Join-Path -Path $volume.path -ChildPath "$short.dat" }
        }
    })
    if ($p.by -eq 'processes') {
        $make = if ($p.create -and -not [regex]::IsMatch($p.line, '(?:^|\s)-c\d')) { " -c$($p.file_bytes)" } else { '' }
        $nodes = @($p.volumes | ForEach-Object -Process { $_.node } | Sort-Object -Unique)
        $results = @(Invoke-Command -ComputerName $nodes -ArgumentList (ConvertTo-Json -InputObject $machines -Compress), "$($p.line)$make", $p.wait_s -ScriptBlock {
            param([string] $Json, [string] $Line, [int] $Seconds)
            $ErrorActionPreference = 'Stop'
            $program = Join-Path -Path $env:ProgramFiles -ChildPath 'DiskSpd\amd64\diskspd.exe'
            $own = Join-Path -Path $env:ProgramData -ChildPath 'diskbook\cluster\fleet-xml'
            if ([IO.Directory]::Exists($own)) { [IO.Directory]::Delete($own, $true) }
            $null = [IO.Directory]::CreateDirectory($own)
            $here = @((ConvertFrom-Json -InputObject $Json) | Where-Object -FilterScript { $_.node -eq $env:COMPUTERNAME })
            $started = @(foreach ($machine in $here) {
                $output = Join-Path -Path $own -ChildPath $machine.vm
                $process = Start-Process -FilePath $program -ArgumentList "$Line ""$($machine.file)""" -PassThru -NoNewWindow `
                    -RedirectStandardOutput "$output.xml" -RedirectStandardError "$output.txt"
                # Without its handle Windows forgets how a process ended.
                $null = $process.Handle
                [ordered]@{ machine = $machine; process = $process; output = $output }
            })
            $until = [DateTime]::UtcNow.AddSeconds($Seconds)
            $late = $null
            foreach ($each in $started) {
                $left = [Math]::Max(0, [int]($until - [DateTime]::UtcNow).TotalMilliseconds)
                if (-not $each.process.WaitForExit($left)) { $late = $each.machine.vm; break }
            }
            if ($late) {
                foreach ($each in $started) { if (-not $each.process.HasExited) { $each.process.Kill() } }
                throw "$late has not ended after $Seconds s; all of $env:COMPUTERNAME were ended"
            }
            foreach ($each in $started) {
                $xml = [IO.File]::ReadAllText("$($each.output).xml")
                if ($each.process.ExitCode -ne 0) {
                    throw "$($each.machine.vm): DiskSpd ended with $($each.process.ExitCode): $([IO.File]::ReadAllText("$($each.output).txt")) $xml"
                }
                [pscustomobject]@{ vm = $each.machine.vm; xml = $xml; ended = $each.process.ExitTime.ToUniversalTime().ToString('o') }
            }
        })
        $times = [ordered]@{}
        foreach ($machine in $machines) {
            $result = @($results | Where-Object -FilterScript { $_.vm -eq $machine.vm })
            if ($result.Count -ne 1) { throw "$($machine.vm) left $($result.Count) results, not one" }
            [IO.File]::WriteAllText((Join-Path -Path $folder -ChildPath "$label-$($machine.vm).xml"), $result[0].xml)
            # DiskSpd ends with its test; what comes before that, it says itself.
            $seconds = [double]([xml]$result[0].xml).Results.TimeSpan.TestTimeSeconds
            $ended = [DateTime]::Parse($result[0].ended, $null, 'RoundtripKind')
            $times[$machine.vm] = [ordered]@{ volume = $machine.volume; node = $machine.node
                started_utc = $ended.AddSeconds(-$seconds).ToString('o'); ended_utc = $ended.ToString('o') }
        }
        $json = ConvertTo-Json -InputObject ([ordered]@{ vms = $times }) -Depth 8 -Compress
        [IO.File]::WriteAllText((Join-Path -Path $folder -ChildPath 'fleet.json'), $json)
    } elseif ($p.by -eq 'vmfleet') {
        if ($p.create) { throw 'the files of VMFleet are the disks of its machines; warm them up with Start-FleetWriteWarmup' }
        $warm = [int](Get-Flag -Flag 'W' -Otherwise '5'); $cool = [int](Get-Flag -Flag 'C' -Otherwise '0')
        $lasts = [int](Get-Flag -Flag 'd' -Otherwise '10')
        if ($rate) {
            # VMFleet makes bytes a millisecond of each thread of it again.
            $iops = [int][Math]::Round([double]$rate * 1000 / ($block * 1024))
            $null = Start-FleetSweep -b $block -t $threads -o $depth -w $writes -p $order -iops $iops -d $lasts -Warm $warm -Cool $cool -AddSpec $p.spec
        } else {
            $null = Start-FleetSweep -b $block -t $threads -o $depth -w $writes -p $order -d $lasts -Warm $warm -Cool $cool -AddSpec $p.spec
        }
        $left = 'C:\ClusterStorage\collect\result'
        $files = @([IO.Directory]::GetFiles($left, "*-$($p.spec)-*.xml"))
        if ($files.Count -ne $machines.Count) { throw "VMFleet left $($files.Count) results of $($p.spec) in $left, not $($machines.Count)" }
        foreach ($file in @($files) + @([IO.Directory]::GetFiles($left, 'result*.tsv'))) {
            [IO.File]::Copy($file, (Join-Path -Path $folder -ChildPath ([IO.Path]::GetFileName($file))))
        }
    } else {
        throw "'$($p.by)' runs no fleet; processes and vmfleet do"
    }
    $zip = "$folder.zip"
    [IO.File]::Delete($zip)
    [IO.Compression.ZipFile]::CreateFromDirectory($folder, $zip)
    $archive = [Convert]::ToBase64String([IO.File]::ReadAllBytes($zip))
    [IO.File]::Delete($zip)
    [IO.Directory]::Delete($folder, $true)
    [ordered]@{ archive = $archive; seconds = [Math]::Round(([DateTime]::UtcNow - $began).TotalSeconds, 3) }
}
