"""Deleting virtual machines with what their deleteOptions name."""

from diskbook_emulator.arm import disks, ids
from diskbook_emulator.arm.cleanup import VM, data_disks, remove_vm
from diskbook_emulator.arm.errors import ArmError
from diskbook_emulator.arm.network import remove as remove_network
from diskbook_emulator.arm.network_fill import nics
from diskbook_emulator.arm.operations import Work
from diskbook_emulator.arm.plane import Call, ControlPlane, Reply
from diskbook_emulator.arm.state import Resource
from diskbook_emulator.arm.vms import headers


def delete(plane: ControlPlane, call: Call) -> Reply:
    """Delete a machine, and what its deleteOptions name; 204 where there is none."""
    plane.group(call.group)
    vm = plane.store.get(plane.resource_id(call.group, VM, call.params["name"]))
    if vm is None:
        return Reply(204)
    vm.properties["provisioningState"] = "Deleting"
    plane.store.save(vm)
    op_id = plane.operations.start("vm-delete", vm.id, deletion(plane, vm))
    return Reply(202, headers=headers(plane, call, op_id, vm))


def deletion(plane: ControlPlane, vm: Resource) -> Work:
    doomed_keys = _doomed_disks(vm)

    def effect() -> None:
        remove_vm(plane, vm)
        with plane.store.lock:
            data = [
                disk for key in doomed_keys if (disk := plane.store.get(key)) and not disk.hidden.get("os")
            ]
        for disk in data:
            plane.backend.delete_disk(disk.key)

    def settle(error: ArmError | None) -> None:
        if error is not None:
            vm.properties["provisioningState"] = "Failed"
            plane.store.save(vm)
        else:
            _forget(plane, vm, doomed_keys)

    return Work(effect, settle, (vm.id,))


def _doomed_disks(vm: Resource) -> set[str]:
    profile = vm.properties["storageProfile"]
    entries = [*data_disks(vm), profile["osDisk"]]
    return {
        ids.key(str(entry["managedDisk"]["id"]))
        for entry in entries
        if entry.get("deleteOption") == "Delete" and (entry.get("managedDisk") or {}).get("id")
    }


def _forget(plane: ControlPlane, vm: Resource, doomed_keys: set[str]) -> None:
    interfaces = nics(plane, vm)
    plane.store.remove(vm.id)
    for extension in [
        resource for resource in plane.store.resources.values() if resource.key.startswith(f"{vm.key}/")
    ]:
        plane.store.remove(extension.id)
    for key in doomed_keys:
        plane.store.remove(key)
    disks.link_keys(plane, disks.disk_keys(vm))
    doomed_nics = {
        ids.key(row["id"])
        for row in vm.properties["networkProfile"]["networkInterfaces"]
        if (row.get("properties") or {}).get("deleteOption") == "Delete"
    }
    for nic in interfaces:
        nic.properties.pop("virtualMachine", None)
        plane.store.save(nic)
        if nic.key in doomed_nics:
            _forget_nic(plane, nic)


def _forget_nic(plane: ControlPlane, nic: Resource) -> None:
    remove_network(plane, nic)
    for row in nic.properties["ipConfigurations"]:
        reference = row["properties"].get("publicIPAddress") or {}
        address = plane.store.get(str(reference.get("id", "")))
        if address is None:
            continue
        # The option is set either where the interface refers to the address, or on the address itself.
        asked = (reference.get("properties") or {}).get("deleteOption")
        if "Delete" in (asked, address.properties.get("deleteOption")):
            plane.store.remove(address.id)
