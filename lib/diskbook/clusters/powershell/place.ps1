# As the cluster's account: which node owns a volume. Read back, and how each node reaches it.
Invoke-Step -Name 'place' -Body {
    $resource = "Cluster Virtual Disk ($($p.volume))"
    if ("$((Get-ClusterSharedVolume -Name $resource).OwnerNode)" -ne $p.node) {
        $null = Move-ClusterSharedVolume -Name $resource -Node $p.node -Wait $p.wait_s
        $changed.Add('owner')
    }
    $owner = "$((Get-ClusterSharedVolume -Name $resource).OwnerNode)"
    Assert-Same -What "the owner of $($p.volume)" -Expected $p.node -Actual $owner
    [ordered]@{ volume = $p.volume; owner = $owner
        access = @(Get-ClusterSharedVolumeState -Name $resource | Sort-Object -Property 'Node' | ForEach-Object -Process {
            [ordered]@{ node = "$($_.Node)"; state = "$($_.StateInfo)"; reason = "$($_.FileSystemRedirectedIOReason)" } }) }
}
