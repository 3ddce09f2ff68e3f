# On each node: features, the cluster's account, names the nodes trust, firewall, timeouts. Says whether a restart is due.
Invoke-Step -Name 'prepare' -Body {
    $system = Get-CimInstance -ClassName 'Win32_OperatingSystem'
    if ($system.Caption -notmatch 'Datacenter') {
        throw "Storage Spaces Direct needs Windows Server Datacenter, and this is $($system.Caption)"
    }
    if ([int]$system.BuildNumber -lt 26100) {
        throw "workgroup clusters of virtual machines need Windows Server 2025 (build 26100), and this is $($system.BuildNumber)"
    }

    $missing = @(Get-WindowsFeature -Name $p.features | Where-Object -FilterScript { -not $_.Installed })
    $feature_restart = $false
    if ($missing) {
        $added = Install-WindowsFeature -Name $missing.Name -IncludeManagementTools
        if (-not $added.Success) { throw "features were not installed: $($missing.Name -join ', ')" }
        $feature_restart = "$($added.RestartNeeded)" -ne 'No'
        $changed.Add('features')
    }

    $secure = ConvertTo-SecureString -String $p.password -AsPlainText -Force
    if (Get-LocalUser -Name $p.account -ErrorAction SilentlyContinue) {
        Set-LocalUser -Name $p.account -Password $secure -PasswordNeverExpires $true
    } else {
        $null = New-LocalUser -Name $p.account -Password $secure -PasswordNeverExpires -AccountNeverExpires
        $changed.Add('account')
    }
    # The group of administrators by its number, since its name is translated.
    $administrators = 'S-1-5-32-544'
    if (-not (Get-LocalGroupMember -SID $administrators -Member $p.account -ErrorAction SilentlyContinue)) {
        Add-LocalGroupMember -SID $administrators -Member $p.account
        $changed.Add('administrators')
    }

    function Set-Registry([string] $Key, [string] $Entry, [object] $Content, [string] $Kind) {
        if (-not (Get-Item -Path $Key -ErrorAction SilentlyContinue)) { $null = New-Item -Path $Key }
        $now = Get-ItemProperty -Path $Key -Name $Entry -ErrorAction SilentlyContinue
        if ($now -and "$($now.$Entry)" -eq "$Content") { return }
        Set-ItemProperty -Path $Key -Name $Entry -Value $Content -Type $Kind
        $changed.Add($Entry)
    }
    $policies = 'HKLM:\SOFTWARE\Microsoft\Windows\CurrentVersion\Policies\System'
    Set-Registry -Key $policies -Entry 'LocalAccountTokenFilterPolicy' -Content 1 -Kind 'DWord'
    $spaces = 'HKLM:\SYSTEM\CurrentControlSet\Services\spaceport\Parameters'
    Set-Registry -Key $spaces -Entry 'HwTimeout' -Content 30000 -Kind 'DWord'
    $network = 'HKLM:\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters'
    Set-Registry -Key $network -Entry 'NV Domain' -Content $p.dns_suffix -Kind 'String'

    $hosts = 'WSMan:\localhost\Client\TrustedHosts'
    $trusted = $p.nodes -join ','
    if ((Get-Item -Path $hosts).Value -ne $trusted) {
        Set-Item -Path $hosts -Value $trusted -Force
        $changed.Add('trusted hosts')
    }
    # The network's own rules stay the gate; within the subnet the nodes reach each other.
    Remove-NetFirewallRule -Name 'diskbook-cluster' -ErrorAction SilentlyContinue
    $null = New-NetFirewallRule -Name 'diskbook-cluster' -DisplayName 'diskbook cluster' -Direction Inbound `
        -RemoteAddress $p.subnet -Action Allow
    $performance = '8c5e7fda-e8bf-4a96-9a85-a6e23a8c635c'  # Windows' plan "High performance"
    $null = powercfg.exe /setactive $performance
    if ("$(powercfg.exe /getactivescheme)" -notmatch $performance) { throw 'the power plan is not High performance' }

    $suffix = [Net.NetworkInformation.IPGlobalProperties]::GetIPGlobalProperties().DomainName
    $lacking = @(Get-WindowsFeature -Name $p.features | Where-Object -FilterScript { -not $_.Installed })
    $due = $feature_restart -or ($suffix -ne $p.dns_suffix) -or ('HwTimeout' -in $changed)
    if ($lacking -and -not $due) { throw "features are not installed: $($lacking.Name -join ', ')" }
    $timeout = (Get-ItemProperty -Path $spaces -Name 'HwTimeout').HwTimeout
    Assert-Same -What 'HwTimeout' -Expected 30000 -Actual $timeout
    Assert-Same -What 'TrustedHosts' -Expected $trusted -Actual (Get-Item -Path $hosts).Value
    if ($due -and $p.restart) { $null = shutdown.exe /r /t 5 }
    [ordered]@{ caption = $system.Caption; version = $system.Version; computer = $env:COMPUTERNAME
        restart_due = [bool]$due; io_timeout_ms = $timeout; dns_suffix = $suffix }
}
