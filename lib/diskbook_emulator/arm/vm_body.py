"""Bodies of virtual machines: defaults filled in, what is kept back, what the machines' side is told."""

import base64
import binascii
import copy
import uuid

from diskbook.facts.catalog import SCSI
from diskbook_emulator.arm import ids
from diskbook_emulator.arm.errors import invalid
from diskbook_emulator.arm.operations import azure_time
from diskbook_emulator.arm.state import Resource, Store, shown
from diskbook_emulator.types import Json, VmSpec

IMAGE_VERSIONS = ("1.0.9", "1.0.10")
SSH_PORT_TAG = "diskbook-ssh-port"
DISK_DEFAULTS: Json = {"caching": "None", "toBeDetached": False, "deleteOption": "Detach"}


def is_windows(body: Json) -> bool:
    properties = body.get("properties") or {}
    storage = properties.get("storageProfile") or {}
    publisher = str((storage.get("imageReference") or {}).get("publisher", ""))
    return (
        str((storage.get("osDisk") or {}).get("osType", "")).lower() == "windows"
        or bool((properties.get("osProfile") or {}).get("windowsConfiguration"))
        or publisher.lower().startswith("microsoftwindows")
    )


def data_disk(entry: Json) -> Json:
    """Fill the defaults of an entry of dataDisks."""
    filled = DISK_DEFAULTS | {key: value for key, value in entry.items() if value is not None}
    disk_id = (filled.get("managedDisk") or {}).get("id")
    filled.setdefault("createOption", "Attach")
    if disk_id:
        filled.setdefault("name", ids.name_of(disk_id))
    return filled


def new_body(resource_id: str, name: str, wish: Json, location: str) -> Resource:
    """Make the record of a new machine; secrets go into `hidden`."""
    body = copy.deepcopy(wish)
    properties = body.setdefault("properties", {})
    hidden = {"power": "creating"} | _take_secrets(properties.get("osProfile") or {})
    storage = properties["storageProfile"]
    storage["osDisk"] = _os_disk(storage.get("osDisk") or {}, is_windows(wish))
    storage["dataDisks"] = []
    image = storage.get("imageReference")
    if image:
        version = str(image.get("version", "latest"))
        image["exactVersion"] = IMAGE_VERSIONS[-1] if version == "latest" else version
    properties |= {"vmId": str(uuid.uuid4()), "timeCreated": azure_time(), "provisioningState": "Creating"}
    body |= {
        "id": resource_id,
        "name": name,
        "type": "Microsoft.Compute/virtualMachines",
        "location": location,
        "tags": dict(wish.get("tags") or {}),
    }
    if not body.get("zones"):
        body.pop("zones", None)
    return Resource(body, hidden)


def _take_secrets(profile: Json) -> Json:
    """Take out what Azure never shows again: custom data and the password."""
    profile.pop("adminPassword", None)
    raw = profile.pop("customData", None) or ""
    try:
        custom_data = base64.b64decode(raw, validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        # wording from our knowledge, not read
        raise invalid("customData", "Custom data in OSProfile must be in Base64 encoding.") from None
    linux = profile.get("linuxConfiguration") or {}
    keys = [str(key["keyData"]) for key in (linux.get("ssh") or {}).get("publicKeys") or []]
    if linux:
        linux.setdefault("provisionVMAgent", True)
        linux.setdefault("patchSettings", {"patchMode": "ImageDefault", "assessmentMode": "ImageDefault"})
    profile.setdefault("secrets", [])
    profile.setdefault("allowExtensionOperations", True)
    profile.setdefault("requireGuestProvisionSignal", True)
    return {"custom_data": custom_data, "authorized_keys": keys}


def _os_disk(wish: Json, windows: bool) -> Json:
    disk = {key: value for key, value in wish.items() if value is not None}
    disk.setdefault("osType", "Windows" if windows else "Linux")
    disk.setdefault("createOption", "FromImage")
    ephemeral = bool(disk.get("diffDiskSettings"))
    disk.setdefault("caching", "ReadOnly" if ephemeral else "ReadWrite")
    disk.setdefault("deleteOption", "Delete" if ephemeral else "Detach")
    disk.setdefault("diskSizeGB", 127 if windows else 30)
    disk.setdefault("managedDisk", {}).setdefault("storageAccountType", "Premium_LRS")
    return disk


def written(vm: Resource) -> Resource:
    """Count a change of a machine in its etag, as recorded: "2" once it has been created."""
    vm.body["etag"] = f'"{int(str(vm.body.get("etag", "0")).strip(chr(34))) + 1}"'
    return vm


def seen(store: Store, vm: Resource) -> Json:
    """Return a machine's body as GET shows it: its data disks with the size and SKU that the disks have."""
    body = shown(vm)
    for entry in body["properties"]["storageProfile"]["dataDisks"]:
        disk = store.get(str((entry.get("managedDisk") or {}).get("id", "")))
        if disk is not None:
            entry["managedDisk"].setdefault("storageAccountType", disk.body["sku"]["name"])
            entry["diskSizeGB"] = disk.properties["diskSizeGB"]
    return body


def spec_of(vm: Resource) -> VmSpec:
    profile = vm.properties.get("osProfile") or {}
    os_disk = vm.properties["storageProfile"]["osDisk"]
    return VmSpec(
        id=vm.key,
        name=vm.name,
        size=vm.properties["hardwareProfile"]["vmSize"],
        zone=vm.zone,
        os="windows" if is_windows(vm.body) else "linux",
        admin_username=str(profile.get("adminUsername", "azureuser")),
        authorized_keys=tuple(vm.hidden.get("authorized_keys", ())),
        custom_data=str(vm.hidden.get("custom_data", "")),
        local_os_gib=int(os_disk["diskSizeGB"]) if os_disk.get("diffDiskSettings") else None,
        tags=dict(vm.body.get("tags") or {}),
        image=str((vm.properties["storageProfile"].get("imageReference") or {}).get("sku", "")),
        controller=str(vm.properties["storageProfile"].get("diskControllerType") or SCSI),
    )


def instance_view(vm: Resource) -> Json:
    provisioning, power = str(vm.properties["provisioningState"]), vm.hidden.get("power", "creating")
    statuses = [_status(f"ProvisioningState/{provisioning.lower()}", f"Provisioning {provisioning.lower()}")]
    if power != "creating":
        statuses.append(_status(f"PowerState/{power}", f"VM {power}"))
    profile = vm.properties.get("osProfile") or {}
    view: Json = {
        "computerName": profile.get("computerName", vm.name),
        "hyperVGeneration": "V2",
        "statuses": statuses,
    }
    if power == "running":
        view["osName"] = "emulated by diskbook"
    return view


def _status(code: str, text: str) -> Json:
    return {"code": code, "level": "Info", "displayStatus": text, "time": azure_time()}
