# Before and after each trial, on each node: running totals, so that the difference of two calls is exact.
Invoke-Step -Name 'counters' -Body {
    $samples = (Get-Counter -Counter $p.paths).CounterSamples
    [ordered]@{ computer = $env:COMPUTERNAME
        samples = @($samples | Sort-Object -Property 'Path' | ForEach-Object -Process {
            [ordered]@{ path = $_.Path; instance = $_.InstanceName; raw = $_.RawValue; base = $_.SecondValue
                kind = "$($_.CounterType)"; at_100ns = $_.Timestamp100NSec } }) }
}
