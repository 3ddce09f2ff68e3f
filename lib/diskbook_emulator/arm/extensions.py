"""Extensions of machines, of which there is only the one that sets up the workbook's Windows machines.

Shapes from the REST specification, not seen on the wire. Protected settings are never shown again.
"""

import copy

from diskbook_emulator.arm.errors import ArmError, bad_request
from diskbook_emulator.arm.operations import Work
from diskbook_emulator.arm.plane import VM, Call, ControlPlane, Reply
from diskbook_emulator.arm.state import Resource, shown
from diskbook_emulator.arm.vm_body import is_windows
from diskbook_emulator.arm.vm_rules import keys
from diskbook_emulator.arm.vms import headers

EXTENSION = f"{VM}/extensions"


def put(plane: ControlPlane, call: Call) -> Reply:
    vm = plane.find(call.group, VM, call.params["name"])
    body, old = copy.deepcopy(call.body), plane.store.get(_id(vm, call))
    properties = body.setdefault("properties", {})
    _check(properties, vm)
    asked = {"properties": copy.deepcopy(properties)}
    properties.pop("protectedSettings", None)
    properties["provisioningState"] = "Creating" if old is None else "Updating"
    body |= {
        "id": _id(vm, call),
        "name": call.params["extension"],
        "type": EXTENSION,
        "location": vm.body["location"],
    }
    made = plane.store.save(Resource(body, asked))
    op_id = plane.operations.start("vm-extension", made.id, creation(plane, made))
    answer = headers(plane, call, op_id, vm, monitor=False)
    return Reply(201 if old is None else 200, shown(made), answer)


def _check(properties: dict[str, object], vm: Resource) -> None:
    known = ("microsoft.compute", "customscriptextension")
    if (str(properties.get("publisher")).lower(), str(properties.get("type")).lower()) != known:
        # wording from our knowledge, not read
        raise bad_request(
            f"The handler for VM extension type '{properties.get('publisher')}.{properties.get('type')}' is "
            "not found; the emulator has the CustomScriptExtension of Microsoft.Compute only.",
            "ArtifactNotFound",
        )
    if not is_windows(vm.body):
        # wording from our knowledge, not read
        raise bad_request(
            "VM extension CustomScriptExtension of Microsoft.Compute is for Windows machines.",
            "OperationNotAllowed",
        )


def creation(plane: ControlPlane, extension: Resource) -> Work:
    vm = plane.store.get(extension.id.rsplit("/extensions/", 1)[0])
    handed: list[str] = []

    def effect() -> None:
        if vm is None:
            return
        host_keys = keys(extension.hidden["properties"], str(vm.hidden.get("custom_data", "")))
        plane.backend.set_up(vm.key, host_keys.host, (host_keys.authorized,))
        handed.append(host_keys.authorized)

    def settle(error: ArmError | None) -> None:
        if plane.store.get(extension.id) is not extension:
            return
        extension.properties["provisioningState"] = "Failed" if error else "Succeeded"
        plane.store.save(extension)
        if vm is not None and handed:
            vm.hidden["authorized_keys"] = handed  # kept when the machine is restarted
            plane.store.save(vm)

    return Work(effect, settle, (vm.id,) if vm is not None else ())


def get(plane: ControlPlane, call: Call) -> Reply:
    vm = plane.find(call.group, VM, call.params["name"])
    extension = plane.store.get(_id(vm, call))
    if extension is None:
        # wording from our knowledge, not read
        raise ArmError(404, "ResourceNotFound", f"The Resource '{_id(vm, call)}' was not found.")
    return Reply(200, shown(extension))


def listing(plane: ControlPlane, call: Call) -> Reply:
    vm = plane.find(call.group, VM, call.params["name"])
    rows = [
        extension
        for extension in plane.store.of_type(EXTENSION)
        if extension.key.startswith(f"{vm.key}/extensions/")
    ]
    return Reply(200, {"value": [shown(extension) for extension in rows]})


def delete(plane: ControlPlane, call: Call) -> Reply:
    """Delete an extension; what it did to the machine stays. 204 where there is none."""
    vm = plane.find(call.group, VM, call.params["name"])
    extension = plane.store.get(_id(vm, call))
    if extension is None:
        return Reply(204)

    def settle(error: ArmError | None) -> None:
        if error is None:
            plane.store.remove(extension.id)

    op_id = plane.operations.start("vm-extension-delete", extension.id, Work(settle=settle))
    return Reply(202, headers=headers(plane, call, op_id, vm))


def _id(vm: Resource, call: Call) -> str:
    return f"{vm.id}/extensions/{call.params['extension']}"
