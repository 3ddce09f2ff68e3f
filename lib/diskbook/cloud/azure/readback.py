"""Read a resource back (GET) and compare it with what was asked for; a mismatch stops the run."""

from collections.abc import Mapping
from typing import Any

from diskbook.design import model
from diskbook.facts import catalog, disk_options
from diskbook.facts.errors import DiskbookError


def disk(resource: Any) -> dict[str, Any]:
    """Settings of a managed disk as Azure reports them, by the scenario's names."""
    creation = resource.creation_data
    return {
        "sku": _plain(resource.sku.name),
        "size_gib": resource.disk_size_gb,
        "zone": (resource.zones or [None])[0],
        **{option.name: _option(option, resource) for option in disk_options.OPTIONS},
        "tier": resource.tier,
        "network_access": _plain(resource.network_access_policy),
        "public_network_access": _plain(resource.public_network_access),
        "logical_sector_bytes": creation.logical_sector_size if creation else None,
    }


def _option(option: disk_options.Option, resource: Any) -> Any:
    """Value of an option of a managed disk; its default where Azure says nothing."""
    value = resource
    for attribute in option.read.split("."):
        value = None if value is None else getattr(value, attribute)
    return option.default if value is None else _plain(value)


def machine(resource: Any) -> dict[str, Any]:
    """Settings of a machine as Azure reports them; None where it says nothing."""
    storage, security = resource.storage_profile, resource.security_profile
    able = resource.additional_capabilities
    interfaces = resource.network_profile.network_interfaces or []
    image = storage.image_reference
    return {
        "size": _plain(resource.hardware_profile.vm_size),
        "zone": (resource.zones or [None])[0],
        "image": f"{image.publisher}:{image.offer}:{image.sku}" if image else None,
        "image_version": image.exact_version if image else None,
        "computer_name": resource.os_profile.computer_name if resource.os_profile else None,
        "os_disk_delete_option": _plain(storage.os_disk.delete_option),
        "os_disk_local": _placement(storage.os_disk),
        "os_disk_gib": storage.os_disk.disk_size_gb,
        "interface_delete_option": _plain(interfaces[0].delete_option) if interfaces else None,
        "disk_controller": _plain(storage.disk_controller_type),
        "security_type": _plain(security.security_type) if security else None,
        "encryption_at_host": bool(security and security.encryption_at_host),
        "ultra_ssd": bool(able and able.ultra_ssd_enabled),
    }


def interface(resource: Any) -> dict[str, Any]:
    """Settings of a network interface as Azure reports them; ids in lower case."""
    row = resource.ip_configurations[0]
    address = row.public_ip_address
    return {
        "accelerated_networking": bool(resource.enable_accelerated_networking),
        "security_group": _id(resource.network_security_group),
        "public_address": _id(address),
        "public_address_delete_option": _plain(address.delete_option) if address else None,
        "subnet": _id(row.subnet),
        "private_address": row.private_ip_address,
    }


def check_disk(asked: model.Disk, resource: Any) -> None:
    """Compare a disk with what was asked for.

    The tier is compared where Azure names one, which it does for Premium SSD.

    Raises DiskbookError: naming disk, setting and both values.
    """
    expected: dict[str, Any] = {
        "sku": asked.sku,
        "size_gib": asked.size_gib,
        "zone": asked.zone,
        "network_access": "DenyAll",
        "public_network_access": "Disabled",
    }
    # None is Azure's own choice of a figure.
    expected |= {name: value for name, value in disk_options.values(asked).items() if value is not None}
    if resource.tier is not None:
        expected.setdefault("tier", disk_options.limits(asked).tier)
    _compare(f"disk {asked.name}", expected, disk(resource))


def check_machine(
    asked: model.Machine,
    body: Mapping[str, Any],
    resource: Any,
    os_disk: model.Disk | None = None,
) -> None:
    """Compare a machine with what was asked for, by scenario and request; raises as `check_disk` does.

    `os_disk` is its ephemeral OS disk, where it is to have one.
    """
    properties = body["properties"]
    image = properties["storageProfile"]["imageReference"]
    expected = {
        "size": asked.size,
        "zone": asked.zone,
        "image": f"{image['publisher']}:{image['offer']}:{image['sku']}",
        "image_version": image["version"],
        "computer_name": properties["osProfile"]["computerName"],
        "os_disk_delete_option": "Delete",
        "os_disk_local": None,
        "interface_delete_option": "Delete",
        "ultra_ssd": "additionalCapabilities" in properties,
    }
    if controller := properties["storageProfile"].get("diskControllerType"):
        expected["disk_controller"] = controller
    if os_disk is not None:
        expected["os_disk_local"] = catalog.vm_size(asked.size).placement(os_disk.size_gib)
        expected["os_disk_gib"] = os_disk.size_gib
    _compare(f"machine {asked.name}", expected, machine(resource))


def check_interface(name: str, asked: Mapping[str, Any], resource: Any) -> None:
    """Compare the network interface of a machine with the request; raises as `check_disk` does."""
    row = asked["ipConfigurations"][0]["properties"]
    expected = {
        "accelerated_networking": asked["enableAcceleratedNetworking"],
        "security_group": asked["networkSecurityGroup"]["id"],
        "public_address": (row.get("publicIPAddress") or {}).get("id"),
        "subnet": row["subnet"]["id"],
    }
    _compare(f"network interface of machine {name}", expected, interface(resource))


def check_security_group(source: str, resource: Any) -> None:
    """Make sure that a security group lets in SSH from `source`, and nothing else."""
    let_in = [
        f"{_plain(row.protocol)} {row.destination_port_range} from {row.source_address_prefix}"
        for row in resource.security_rules or []
        if _plain(row.access) == "Allow" and _plain(row.direction) == "Inbound"
    ]
    _compare("network security group", {"lets in": f"Tcp 22 from {source}"}, {"lets in": ", ".join(let_in)})


def witness(resource: Any) -> dict[str, Any]:
    """Settings of the storage account of a witness as Azure reports them; no key is among them."""
    return {
        "kind": _plain(resource.kind),
        "sku": _plain(resource.sku.name),
        "public_blobs": bool(resource.allow_blob_public_access),
        # Azure says nothing about it where keys are allowed by default.
        "keys_allowed": resource.allow_shared_key_access is not False,
        "https_only": bool(resource.enable_https_traffic_only),
        "minimum_tls": _plain(resource.minimum_tls_version),
    }


def check_witness(asked: Mapping[str, Any], resource: Any) -> None:
    """Compare the storage account of a witness with the request; raises as `check_disk` does."""
    properties = asked["properties"]
    expected = {
        "kind": asked["kind"],
        "sku": asked["sku"]["name"],
        "public_blobs": properties["allowBlobPublicAccess"],
        "keys_allowed": properties["allowSharedKeyAccess"],
        "https_only": properties["supportsHttpsTrafficOnly"],
        "minimum_tls": properties["minimumTlsVersion"],
    }
    _compare(f"witness {resource.name}", expected, witness(resource))


def check_attachment(name: str, asked: Mapping[str, Any], resource: Any) -> dict[str, Any]:
    """Make sure that a machine has a disk as the request (`requests.attachment`) asked; raises as
    `check_disk` does.

    Returns the attachment's settings as Azure reports them.
    """
    attachments = [
        {
            "lun": row.lun,
            "cache": _plain(row.caching) or "None",
            "delete_option": _plain(row.delete_option),
            "write_accelerator": bool(row.write_accelerator_enabled),
        }
        for row in resource.storage_profile.data_disks or []
        if row.managed_disk and row.managed_disk.id.lower() == asked["diskId"].lower()
    ]
    if not attachments:
        raise DiskbookError(f"disk {name} was attached, but the machine does not list it; the run stops")
    expected = {
        "lun": asked["lun"],
        "cache": asked["caching"],
        "delete_option": asked["deleteOption"],
        "write_accelerator": False,
    }
    _compare(f"attached disk {name}", expected, attachments[0])
    return attachments[0]


def _id(reference: Any) -> str | None:
    """Id of what something refers to, in lower case."""
    return reference.id.lower() if reference is not None and reference.id else None


def _placement(os_disk: Any) -> str | None:
    """Where an ephemeral OS disk lies; None for an ordinary one."""
    local = os_disk.diff_disk_settings
    return _plain(local.placement) if local is not None else None


def _plain(value: Any) -> Any:
    """Return the value of an SDK enumeration as text; its own str() is the name of the member."""
    return getattr(value, "value", value)


def _compare(what: str, expected: Mapping[str, Any], reported: Mapping[str, Any]) -> None:
    for setting, value in expected.items():
        actual = reported[setting]
        if str(actual).lower() != str(value).lower():
            raise DiskbookError(
                f"{what}: {setting} was to be {value}, but Azure says {actual}; the run stops"
            )
