# As the cluster's account: Microsoft's own tests. The report is kept as it is, and its verdict is a value.
Invoke-Step -Name 'validate' -Body {
    $secure = ConvertTo-SecureString -String $p.password -AsPlainText -Force
    $credentials = @(foreach ($node in $p.nodes) {
        [Management.Automation.PSCredential]::new("$node\$($p.account)", $secure)
    })
    $folder = Join-Path -Path $env:ProgramData -ChildPath 'diskbook\cluster\reports'
    $null = [IO.Directory]::CreateDirectory($folder)
    $report = Test-WorkgroupCluster -Node $p.nodes -Credentials $credentials -Include $p.tests `
        -ReportName $p.report -Destination $folder -AuthenticationMethod NoCertificates `
        -WarningVariable warnings -WarningAction SilentlyContinue
    $files = @([IO.Directory]::GetFiles($folder, "$($p.report)*") | Sort-Object)
    if (-not $files) { throw "the cluster validation left no report in $folder; it returned '$report'" }
    [ordered]@{ returned = "$report"; warnings = @($warnings | ForEach-Object -Process { "$_" })
        files = @(foreach ($file in $files) {
            [ordered]@{ name = [IO.Path]::GetFileName($file)
                content = [Convert]::ToBase64String([IO.File]::ReadAllBytes($file)) }
        }) }
}
