$members = '[DllImport("kernel32.dll", SetLastError = true, CharSet = CharSet.Unicode)]
public static extern Microsoft.Win32.SafeHandles.SafeFileHandle CreateFile(
    string name, uint access, uint share, IntPtr security, uint how, uint flags, IntPtr template);'
$windows = Add-Type -PassThru -Namespace Diskbook -Name Native -MemberDefinition $members
$name = '\\.\PhysicalDrive{0}' -f $p.number; $none = [IntPtr]::Zero
$handle = $windows::CreateFile($name, [uint32]$p.access, 3, $none, 3, 0, $none)
if ($handle.IsInvalid) { throw "$name cannot be opened" }
