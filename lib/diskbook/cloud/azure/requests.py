"""Bodies of the requests that create resources: a scenario's records as Azure's JSON. No I/O.

Windows Server machines get DiskSpd and key-only SSH from Azure's script extension, since Windows has no
cloud-init. The machine finds our script in its custom data, and the extension runs it. The machine's host key
is in the extension's protected settings, which Azure encrypts and never shows again. So the host key is known
before the first connection, as on Linux.
"""

import base64
import hashlib
import secrets
import string
from typing import Any

from diskbook.cloud.azure import expiry
from diskbook.cloud.azure.keys import KeyPair, cloud_init
from diskbook.design.azure_rules import ARM, NOTHING_KNOWN, Traits
from diskbook.design.model import Disk, Machine
from diskbook.facts import catalog
from diskbook.facts.arm import IMAGES
from diskbook.facts.disk_options import OPTIONS
from diskbook.hosts import powershell
from diskbook.hosts.powershell import COMPUTER_NAME_CHARS, CUSTOM_DATA, SETUP_SCRIPT


def windows_setup_script(expires_utc: str | None = None) -> str:
    """Return the script that sets a machine up; with an expiry it also sets the timer that shuts it down."""
    if not expires_utc:
        return powershell.setup_script()
    timer = f"# Should nobody be left to delete the machine.\n{expiry.powershell(expires_utc)}"
    return powershell.setup_script(timer)


def computer_name(name: str) -> str:
    """At most 15 characters: the name itself, or its beginning and a mark that only it has."""
    if len(name) <= COMPUTER_NAME_CHARS:
        return name
    mark = hashlib.sha256(name.encode()).hexdigest()[:4]
    return f"{name[: COMPUTER_NAME_CHARS - 5].rstrip('-')}-{mark}"


def os_profile(name: str, user: str, expires_utc: str | None = None) -> dict[str, Any]:
    """Build osProfile of a new machine.

    Azure wants a password for Windows. It is random, goes nowhere but into the request, and sshd takes none.
    """
    return {
        "computerName": computer_name(name),
        "adminUsername": user,
        "adminPassword": password(),
        "customData": base64.b64encode(windows_setup_script(expires_utc).encode()).decode(),
        # Updates and their restarts would fall into a measurement.
        "windowsConfiguration": {
            "provisionVMAgent": True,
            "enableAutomaticUpdates": False,
            "patchSettings": {"patchMode": "Manual", "assessmentMode": "ImageDefault"},
        },
    }


def password() -> str:
    """Make a password that Azure's rules allow: 12 characters or more of at least three kinds."""
    letters = string.ascii_letters + string.digits
    return "Aa1" + "".join(secrets.choice(letters) for _ in range(40))


def windows_extension(
    region: str, tags: dict[str, str], host_key: KeyPair, public_key: str
) -> dict[str, Any]:
    """Body of the extension that runs the script. Shape from the REST specification, not seen on the wire."""
    copy = f"Copy-Item -Force {CUSTOM_DATA} {SETUP_SCRIPT}"
    call = f"& {SETUP_SCRIPT} -HostKey {_base64(host_key.private)} -AuthorizedKey {_base64(public_key)}"
    # The exit status is the extension's: 0 only when the script went through.
    command = (
        f'powershell -NoProfile -NonInteractive -ExecutionPolicy Bypass -Command "$ErrorActionPreference = '
        f"'Stop'; {copy}; {call}\""
    )
    return {
        "location": region,
        "tags": tags,
        "properties": {
            "publisher": "Microsoft.Compute",
            "type": "CustomScriptExtension",
            "typeHandlerVersion": "1.10",
            "autoUpgradeMinorVersion": True,
            "settings": {},
            "protectedSettings": {"commandToExecute": command},
        },
    }


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


SSH_PORT_TAG = "diskbook-ssh-port"  # set by the emulator, whose machines cannot all have port 22
SUBNET = "10.0.0.0/24"
"""Of all machines of a run, which the nodes of a cluster let through to each other."""


def image_of(spec: Machine, traits: Traits = NOTHING_KNOWN, *, pooled: bool = False) -> str:
    """Name the image in `IMAGES` that a machine is made from, by the processors of its size."""
    if spec.os == "linux" and traits.architecture == ARM:
        return "linux-arm64"
    return "storage-spaces" if pooled else spec.os


def disk(spec: Disk, region: str, tags: dict[str, str]) -> dict[str, Any]:
    """Body that creates an empty managed disk with exactly the settings of the scenario."""
    properties: dict[str, Any] = {
        "creationData": {"createOption": "Empty"},
        "diskSizeGB": spec.size_gib,
        # Nobody needs its content but the machine it is attached to.
        "networkAccessPolicy": "DenyAll",
        "publicNetworkAccess": "Disabled",
    }
    for option in OPTIONS:
        option.put(properties, getattr(spec, option.name))
    body: dict[str, Any] = {
        "location": region,
        "sku": {"name": spec.sku},
        "tags": tags,
        "properties": properties,
    }
    if spec.zone is not None:
        body["zones"] = [spec.zone]
    return body


def attachment(spec: Disk, disk_id: str, lun: int) -> dict[str, Any]:
    """Entry of dataDisksToAttach for a disk, which goes with its machine; one that is shared never does.

    "For shared disks, you can't set the 'deleteOption' property to 'Delete'"
    (MicrosoftDocs/azure-compute-docs, articles/virtual-machines/delete.md); it goes with its resource group.
    """
    delete_option = "Detach" if spec.max_shares > 1 else "Delete"
    return {"diskId": disk_id, "lun": lun, "caching": spec.cache, "deleteOption": delete_option}


def machine(
    spec: Machine,
    region: str,
    tags: dict[str, str],
    *,
    name: str,
    nic_id: str,
    user: str,
    public_key: str,
    host_key: KeyPair,
    image_version: str,
    traits: Traits = NOTHING_KNOWN,
    os_disk: Disk | None = None,
    pooled: bool = False,
    ultra: bool = False,
    prefix: str = "",
) -> dict[str, Any]:
    """Body that creates a machine which knows our key, and whose host key we know.

    A Windows machine gets both from the script extension that follows (`windows_extension`). `image_version`
    is the same for all machines of a run. By default the OS disk is an ordinary one. `pooled` says that its
    disks are a pool of Storage Spaces, for which it gets another image; `ultra` that it takes an Ultra disk
    at some time, which Azure lets a machine do only where it was made for it. `prefix` begins its name in
    Azure.
    """
    expires_utc = tags.get("diskbook-expires")
    profile = (
        os_profile(name, user, expires_utc)
        if spec.os == "windows"
        else _linux(name, user, public_key, host_key, expires_utc)
    )
    properties: dict[str, Any] = {
        "hardwareProfile": {"vmSize": spec.size},
        "storageProfile": {
            "imageReference": {**IMAGES[image_of(spec, traits, pooled=pooled)], "version": image_version},
            "osDisk": {"name": os_disk_name(f"{prefix}{name}"), **_os_disk(spec, os_disk)},
            "dataDisks": [],
            **({"diskControllerType": traits.controller} if traits.controller else {}),
        },
        "osProfile": profile,
        "networkProfile": {
            "networkInterfaces": [{"id": nic_id, "properties": {"primary": True, "deleteOption": "Delete"}}]
        },
    }
    if ultra:
        properties["additionalCapabilities"] = {"ultraSSDEnabled": True}
    body: dict[str, Any] = {"location": region, "tags": tags, "properties": properties}
    if spec.zone is not None:
        body["zones"] = [spec.zone]
    return body


def os_disk_name(machine: str) -> str:
    """Return the name of a machine's OS disk. It has no tag, so this tells whose it is."""
    return f"{machine}-os"


def _os_disk(machine: Machine, ephemeral: Disk | None) -> dict[str, Any]:
    """Entry of the OS disk. An ephemeral one must have cache ReadOnly (Azure's documentation)."""
    body: dict[str, Any] = {"createOption": "FromImage", "deleteOption": "Delete"}
    if ephemeral is None:
        return {**body, "managedDisk": {"storageAccountType": "StandardSSD_LRS"}}
    placement = catalog.vm_size(machine.size).placement(ephemeral.size_gib)
    local = {"diffDiskSettings": {"option": "Local", "placement": placement}, "caching": "ReadOnly"}
    return {**body, **local, "diskSizeGB": ephemeral.size_gib}


def _linux(
    name: str, user: str, public_key: str, host_key: KeyPair, expires_utc: str | None
) -> dict[str, Any]:
    ssh = {"publicKeys": [{"path": f"/home/{user}/.ssh/authorized_keys", "keyData": public_key}]}
    return {
        "computerName": name,
        "adminUsername": user,
        "customData": base64.b64encode(cloud_init(host_key, expires_utc).encode()).decode(),
        "linuxConfiguration": {"disablePasswordAuthentication": True, "ssh": ssh},
    }


def ssh_only(source: str) -> dict[str, Any]:
    """Body of the one rule of the network security group: SSH from `source`."""
    return {
        "name": "ssh",
        "properties": {
            "protocol": "Tcp",
            "direction": "Inbound",
            "access": "Allow",
            "priority": 1000,
            "sourceAddressPrefix": source,
            "sourcePortRange": "*",
            "destinationAddressPrefix": "*",
            "destinationPortRange": "22",
        },
    }


def network() -> dict[str, Any]:
    """Properties of a virtual network with one subnet."""
    subnet = {"name": "disks", "properties": {"addressPrefix": SUBNET}}
    return {"addressSpace": {"addressPrefixes": ["10.0.0.0/16"]}, "subnets": [subnet]}


def public_address(zone: str | None) -> dict[str, Any]:
    """Body, less location and tags, of a public address in the machine's zone."""
    properties = {"publicIPAllocationMethod": "Static", "deleteOption": "Delete"}
    body: dict[str, Any] = {"sku": {"name": "Standard"}, "properties": properties}
    return {**body, "zones": [zone]} if zone else body


def witness(region: str, tags: dict[str, str], redundancy: str) -> dict[str, Any]:
    """Body of the storage account of a cloud witness: what Microsoft's page asks for, and nothing public.

    Cluster nodes reach it with its key, over the internet; a blob of a few bytes is all it holds.
    """
    return {
        "location": region,
        "tags": tags,
        "kind": "StorageV2",
        "sku": {"name": f"Standard_{redundancy}"},
        "properties": {
            "accessTier": "Hot",
            "allowBlobPublicAccess": False,
            "allowSharedKeyAccess": True,
            "minimumTlsVersion": "TLS1_2",
            "supportsHttpsTrafficOnly": True,
        },
    }


def interface(
    subnet_id: str, address_id: str | None, security_group_id: str, *, accelerated: bool = False
) -> dict[str, Any]:
    """Properties of a network interface in the subnet, behind the security group.

    In a private network there is no public address. The group is at the interface, not at the subnet, so that
    group and network can be made at the same time. A standard public address lets nothing in that no security
    group allows.
    """
    properties: dict[str, Any] = {"subnet": {"id": subnet_id}}
    if address_id is not None:
        properties["publicIPAddress"] = {"id": address_id, "properties": {"deleteOption": "Delete"}}
    return {
        "ipConfigurations": [{"name": "primary", "properties": properties}],
        "networkSecurityGroup": {"id": security_group_id},
        "enableAcceleratedNetworking": accelerated,
    }
