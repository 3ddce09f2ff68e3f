# Sets up a Windows Server machine of diskbook: OpenSSH with a host key that the client knows, sign-in by key
# only, and DiskSpd. Run once, as SYSTEM, by Azure's script extension. Both keys come base64 encoded.
param(
    [Parameter(Mandatory)] [string] $HostKey,
    [Parameter(Mandatory)] [string] $AuthorizedKey
)
$ErrorActionPreference = 'Stop'
$ProgressPreference = 'SilentlyContinue'
[Net.ServicePointManager]::SecurityProtocol = [Net.SecurityProtocolType]::Tls12

$ssh = Join-Path $env:ProgramData 'ssh'
$tools = Join-Path $env:ProgramFiles 'DiskSpd'
$url = '@DISKSPD_URL@'
$sha256 = '@DISKSPD_SHA256@'

function Write-Protected([string] $Path, [string] $Base64) {
    # Bytes as they are: OpenSSH wants line feeds, and refuses keys that others may read.
    [IO.File]::WriteAllBytes($Path, [Convert]::FromBase64String($Base64))
    icacls.exe $Path /inheritance:r /grant '*S-1-5-18:F' /grant '*S-1-5-32-544:F' | Out-Null
    if ($LASTEXITCODE -ne 0) { throw "icacls cannot protect $Path" }
}

# The tool first: where its checksum is wrong, the machine is not opened at all.
$zip = Join-Path $env:TEMP 'DiskSpd.zip'
Invoke-WebRequest -UseBasicParsing -Uri $url -OutFile $zip
$found = (Get-FileHash -Algorithm SHA256 -Path $zip).Hash
if ($found -ne $sha256) {
    Remove-Item -Force $zip
    throw "DiskSpd.zip has the SHA-256 $found, not $sha256; it was not unpacked"
}
Expand-Archive -Force -Path $zip -DestinationPath $tools
$path = [Environment]::GetEnvironmentVariable('Path', 'Machine')
$folder = Join-Path $tools 'amd64'
if (($path -split ';') -notcontains $folder) {
    [Environment]::SetEnvironmentVariable('Path', "$path;$folder", 'Machine')
}

# OpenSSH, which makes keys of its own only where there are none.
$capability = Get-WindowsCapability -Online -Name 'OpenSSH.Server*'
if ($capability.State -ne 'Installed') { Add-WindowsCapability -Online -Name $capability.Name | Out-Null }
Stop-Service -Name sshd -ErrorAction SilentlyContinue
New-Item -ItemType Directory -Force -Path $ssh | Out-Null
Remove-Item -Force -Path (Join-Path $ssh 'ssh_host_*')
Write-Protected (Join-Path $ssh 'ssh_host_ed25519_key') $HostKey
Write-Protected (Join-Path $ssh 'administrators_authorized_keys') $AuthorizedKey
@'
HostKey __PROGRAMDATA__/ssh/ssh_host_ed25519_key
PubkeyAuthentication yes
PasswordAuthentication no
KbdInteractiveAuthentication no
AllowGroups administrators
Subsystem sftp sftp-server.exe
Match Group administrators
    AuthorizedKeysFile __PROGRAMDATA__/ssh/administrators_authorized_keys
'@ | Set-Content -Encoding Ascii -Path (Join-Path $ssh 'sshd_config')
Set-Service -Name sshd -StartupType Automatic
Start-Service -Name sshd

# The network security group stays the gate; the machine's own firewall must not be in the way.
Remove-NetFirewallRule -Name 'diskbook-ssh' -ErrorAction SilentlyContinue
New-NetFirewallRule -Name 'diskbook-ssh' -DisplayName 'diskbook SSH' -Direction Inbound -Protocol TCP `
    -LocalPort 22 -Action Allow | Out-Null
