# As the cluster's account: the workgroup cluster, without an access point and so without a load balancer, and its witness.
Invoke-Step -Name 'cluster' -Body {
    if ($p.nodes.Count -eq 2 -and -not $p.witness_account) { throw 'a cluster of two nodes needs a witness, and none was named' }
    $secure = ConvertTo-SecureString -String $p.password -AsPlainText -Force
    function New-NodeCredential([string] $Node) {
        [Management.Automation.PSCredential]::new("$Node\$($p.account)", $secure)
    }
    # Where there is no cluster yet, asking for it may end in an error.
    try { $cluster = Get-Cluster } catch { $cluster = $null }
    if (-not $cluster) {
        $credentials = @($p.nodes | ForEach-Object -Process { New-NodeCredential -Node $_ })
        $null = New-WorkgroupCluster -Node $p.nodes -Credentials $credentials -Name $p.name `
            -AdministrativeAccessPoint None -NoStorage -Force
        $changed.Add('cluster')
    }
    Assert-Same -What 'the name of the cluster' -Expected $p.name -Actual (Get-Cluster).Name

    $there = @(Get-ClusterNode | ForEach-Object -Process { $_.Name })
    # A cluster that was left half made gets the nodes that it lacks.
    foreach ($node in @($p.nodes | Where-Object -FilterScript { $_ -notin $there })) {
        $credentials = @($there | ForEach-Object -Process { New-NodeCredential -Node $_ })
        $null = Add-WorkgroupClusterNode -Node $there -Credentials $credentials -Name $node `
            -Credential (New-NodeCredential -Node $node) -NoStorage
        $there += $node
        $changed.Add("node $node")
    }
    $members = @(Get-ClusterNode | Sort-Object -Property 'Name')
    Assert-Same -What 'the nodes of the cluster' -Expected (@($p.nodes | Sort-Object) -join ', ') -Actual ($members.Name -join ', ')
    $quorum = Get-ClusterQuorum
    if ($p.witness_account -and "$($quorum.QuorumResource)" -notmatch 'Cloud Witness') {
        $null = Set-ClusterQuorum -CloudWitness -AccountName $p.witness_account -AccessKey $p.witness_key `
            -Endpoint $p.witness_endpoint
        $changed.Add('witness')
        $quorum = Get-ClusterQuorum
    }
    if ($p.witness_account -and "$($quorum.QuorumResource)" -notmatch 'Cloud Witness') {
        throw "the witness is '$($quorum.QuorumResource)', but the cloud witness was asked for"
    }
    foreach ($member in $members) { Assert-Same -What "node $($member.Name)" -Expected 'Up' -Actual "$($member.State)" }
    [ordered]@{ name = (Get-Cluster).Name; nodes = @($members.Name); witness = "$($quorum.QuorumResource)" }
}
