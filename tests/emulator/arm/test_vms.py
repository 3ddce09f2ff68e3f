"""The control plane's machines: create, attach, detach, power, delete, through the Azure compute client."""

from __future__ import annotations

import pytest

from support.arm_plane import SUBSCRIPTION, World, refused, world


def _key(group: str, name: str) -> str:
    group_key = f"/subscriptions/{SUBSCRIPTION}/resourcegroups/{group}"
    return f"{group_key}/providers/microsoft.compute/virtualmachines/{name}"


def _names(vm) -> list[str]:
    return [row.managed_disk.id.rsplit("/", 1)[1] for row in vm.storage_profile.data_disks]


def test_a_machine_is_created_as_recorded(plane: World) -> None:
    group = plane.group("vm-shape")
    body = plane.vm_body(plane.nic(group, "nic").id)
    path = (
        f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{group}/providers/Microsoft.Compute/virtualMachines/vm"
    )
    answer = plane.raw("PUT", f"{path}?api-version=2026-04-01", json=body)
    assert answer.status_code == 201 and "Location" not in answer.headers
    assert (answer.headers["Retry-After"], answer.headers["Azure-AsyncNotification"]) == ("10", "Enabled")
    first = answer.json()
    assert first["properties"]["provisioningState"] == "Creating" and first["properties"]["vmId"]
    assert "id" not in first["properties"]["storageProfile"]["osDisk"]["managedDisk"]
    poll = plane.raw("GET", answer.headers["Azure-AsyncOperation"].removeprefix(plane.url))
    if poll.json()["status"] == "InProgress":
        assert poll.headers["Retry-After"] == "50"


def test_what_a_machine_is_told_and_what_it_shows(plane: World) -> None:
    group = plane.group("vm-told")
    vm = plane.vm(group, "vm", zone="2")
    spec = next(call[0] for call in plane.backend.named("start_vm") if call[0].id == _key(group, "vm"))
    assert (spec.name, spec.size, spec.zone, spec.os) == ("vm", "Standard_D4as_v4", "2", "linux")
    assert (spec.admin_username, spec.authorized_keys) == ("bench", ("ssh-ed25519 AAAA me",))
    assert spec.custom_data == "#cloud-config\n"
    assert "customData" not in str(vm.as_dict())
    assert vm.tags["diskbook-ssh-port"] == "20022" and vm.zones == ["2"]
    assert plane.network.public_ip_addresses.get(group, "vm-nic-ip").ip_address == "127.83.7.7"
    os_disk = plane.compute.disks.get(group, vm.storage_profile.os_disk.name)
    assert (os_disk.managed_by, os_disk.zones, os_disk.os_type) == (vm.id, ["2"], "Linux")
    seen = plane.compute.virtual_machines.get(group, "vm", expand="instanceView").instance_view
    assert [one.code for one in seen.statuses] == ["ProvisioningState/succeeded", "PowerState/running"]
    assert plane.compute.virtual_machines.get(group, "vm").instance_view is None


def test_attach_and_detach_by_request(plane: World) -> None:
    group = plane.group("vm-request")
    disk, vm = plane.disk(group, "data", zones=["1"]), plane.vm(group, "vm")
    profile = plane.attach(group, "vm", disk.id, lun=3, caching="ReadOnly")
    row = profile.data_disks[0]
    assert (row.lun, row.caching, row.delete_option, row.name) == (3, "ReadOnly", "Detach", "data")
    call = next(one for one in plane.backend.named("attach") if one[0] == _key(group, "vm"))
    assert (call[1], call[2].id, call[2].iops, call[3]) == (3, disk.id.lower(), 5000, "ReadOnly")
    held = plane.compute.disks.get(group, "data")
    assert (held.managed_by, held.disk_state) == (vm.id, "Attached")
    refusal = refused(lambda: plane.compute.disks.begin_delete(group, "data"))
    assert refusal == (409, "OperationNotAllowed", f"Disk data is attached to VM {vm.id}.")
    assert not plane.detach(group, "vm", disk.id).data_disks
    assert (_key(group, "vm"), 3) in plane.backend.named("detach")
    free = plane.compute.disks.get(group, "data")
    assert (free.managed_by, free.disk_state) == (None, "Unattached")


def test_an_attach_is_answered_as_recorded(plane: World) -> None:
    """By azure-cli in 2026: 200 with the storage profile, one header to poll by, a bare operation."""
    group = plane.group("vm-attach-shape")
    disk, _ = plane.disk(group, "data", zones=["1"]), plane.vm(group, "vm")
    path = (
        f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{group}/providers/Microsoft.Compute/virtualMachines/vm"
    )

    def changed(body: dict) -> tuple[dict, dict]:
        answer = plane.raw("POST", f"{path}/attachDetachDataDisks?api-version=2026-04-01", json=body)
        assert answer.status_code == 200 and answer.headers["Azure-AsyncNotification"] == "Enabled"
        assert not {"Location", "Retry-After"} & set(answer.headers)
        poll = answer.headers["Azure-AsyncOperation"].removeprefix(plane.url)
        while (last := plane.raw("GET", poll).json())["status"] == "InProgress":
            pass
        assert set(last) == {"startTime", "endTime", "status", "name"}
        return answer.json(), plane.raw("GET", f"{path}?api-version=2026-04-01").json()

    before = plane.raw("GET", f"{path}?api-version=2026-04-01")
    assert before.headers["ETag"] == before.json()["etag"] == '"2"'
    profile, shown = changed({"dataDisksToAttach": [{"diskId": disk.id, "lun": 2, "caching": "None"}]})
    row = {
        "lun": 2, "name": "data", "createOption": "Attach", "caching": "None", "deleteOption": "Detach",
        "managedDisk": {"id": disk.id, "storageAccountType": "Premium_LRS"}, "diskSizeGB": 1024,
        "toBeDetached": False,
    }  # fmt: skip
    assert profile["dataDisks"] == shown["properties"]["storageProfile"]["dataDisks"] == [row]
    assert profile["imageReference"]["exactVersion"] == "1.0.10" and shown["etag"] == '"4"'
    body = {"dataDisksToDetach": [{"diskId": disk.id, "detachOption": "ForceDetach"}]}
    profile, shown = changed(body)
    assert profile["dataDisks"] == [{**row, "toBeDetached": True, "detachOption": "ForceDetach"}]
    assert shown["properties"]["storageProfile"]["dataDisks"] == [] and shown["etag"] == '"6"'


def test_attach_and_detach_by_writing_the_machine_back(plane: World) -> None:
    group = plane.group("vm-put")
    disks = [plane.disk(group, name, "Premium_ZRS") for name in ("a", "b")]
    vm = plane.vm(group, "vm")
    vm.storage_profile.data_disks = [
        {"lun": lun, "createOption": "Attach", "managedDisk": {"id": disk.id}}
        for lun, disk in enumerate(disks)
    ]
    vm = plane.compute.virtual_machines.begin_create_or_update(group, "vm", vm).result()
    assert _names(vm) == ["a", "b"] and vm.tags["diskbook-ssh-port"] == "20022"
    vm.storage_profile.data_disks = vm.storage_profile.data_disks[1:]
    vm = plane.compute.virtual_machines.begin_create_or_update(group, "vm", vm).result()
    assert _names(vm) == ["b"]
    vm.storage_profile.data_disks[0].to_be_detached = True
    vm = plane.compute.virtual_machines.begin_create_or_update(group, "vm", vm).result()
    assert _names(vm) == []
    here = [call for call in plane.backend.calls if call[1] == _key(group, "vm")]
    assert [(call[0], call[2]) for call in here] == [
        ("attach", 0),
        ("attach", 1),
        ("detach", 0),
        ("detach", 1),
    ]


def test_a_data_disk_may_be_made_with_the_machine(plane: World) -> None:
    group = plane.group("vm-implicit")
    body = plane.vm_body(plane.nic(group, "nic").id)
    body["properties"]["storageProfile"]["dataDisks"] = [
        {"lun": 0, "createOption": "Empty", "diskSizeGB": 64}
    ]
    vm = plane.compute.virtual_machines.begin_create_or_update(group, "vm", body).result()
    made = plane.compute.disks.get(group, _names(vm)[0])
    assert (made.disk_size_gb, made.zones, made.managed_by) == (64, ["1"], vm.id)


def test_a_zrs_disk_moves_between_zones(plane: World) -> None:
    group = plane.group("vm-move")
    disk = plane.disk(group, "zrs", "Premium_ZRS")
    plane.vm(group, "vm1", zone="1")
    plane.vm(group, "vm2", zone="2")
    plane.attach(group, "vm1", disk.id)
    owned = refused(lambda: plane.attach(group, "vm2", disk.id))
    assert owned[1] == "ConflictingUserInput"
    assert owned[2].startswith("Disk 'zrs' cannot be attached as the disk is already owned by VM '")
    plane.detach(group, "vm1", disk.id)
    plane.attach(group, "vm2", disk.id)
    assert plane.compute.disks.get(group, "zrs").managed_by.endswith("/vm2")


def test_a_shared_disk_has_as_many_owners_as_shares(plane: World) -> None:
    group = plane.group("vm-shared")
    disk = plane.disk(group, "zrs", "Premium_ZRS", maxShares=2)
    for name in ("vm1", "vm2", "vm3"):
        plane.vm(group, name, zone=name[-1])
    plane.attach(group, "vm1", disk.id)
    plane.attach(group, "vm2", disk.id)
    held = plane.compute.disks.get(group, "zrs")
    assert [one.rsplit("/", 1)[1] for one in held.managed_by_extended] == ["vm1", "vm2"]
    assert len(held.share_info) == 2
    assert refused(lambda: plane.attach(group, "vm3", disk.id))[1] == "ConflictingUserInput"


def test_power_actions(plane: World) -> None:
    group = plane.group("vm-power")
    disk = plane.disk(group, "data", zones=["1"])
    plane.vm(group, "vm")
    plane.attach(group, "vm", disk.id)
    machines = plane.compute.virtual_machines

    def power() -> str:
        return machines.instance_view(group, "vm").statuses[-1].code

    machines.begin_power_off(group, "vm").result()
    assert power() == "PowerState/stopped"
    machines.begin_deallocate(group, "vm").result()
    assert power() == "PowerState/deallocated"
    assert plane.compute.disks.get(group, "data").disk_state == "Reserved"
    machines.begin_start(group, "vm").result()
    assert power() == "PowerState/running"
    machines.begin_restart(group, "vm").result()
    mine = [call[0] for call in plane.backend.calls if getattr(call[1], "id", call[1]) == _key(group, "vm")]
    assert mine == ["start_vm", "attach", "stop_vm", "start_vm", "attach", "stop_vm", "start_vm", "attach"]


def test_delete_options_decide_what_stays(plane: World) -> None:
    group = plane.group("vm-delete")
    kept, gone = plane.disk(group, "kept", zones=["1"]), plane.disk(group, "gone", zones=["1"])
    vm = plane.vm(group, "vm")
    rows = [{"diskId": kept.id, "lun": 0}, {"diskId": gone.id, "lun": 1, "deleteOption": "Delete"}]
    body = {"dataDisksToAttach": rows}
    plane.compute.virtual_machines.begin_attach_detach_data_disks(group, "vm", body).result()
    plane.compute.virtual_machines.begin_delete(group, "vm").result()
    left = {one.name for one in plane.resource.resources.list_by_resource_group(group)}
    assert left == {"kept", "vnet"}
    assert plane.compute.disks.get(group, "kept").disk_state == "Unattached"
    assert (gone.id.lower(),) in plane.backend.named("delete_disk")
    assert (vm.id.lower(),) in plane.backend.named("delete_vm")


def test_an_ephemeral_os_disk(plane: World) -> None:
    group = plane.group("vm-ephemeral")
    body = plane.vm_body(plane.nic(group, "nic").id)
    body["properties"]["storageProfile"]["osDisk"] = {
        "createOption": "FromImage",
        "diffDiskSettings": {"option": "Local"},
        "caching": "ReadOnly",
    }
    vm = plane.compute.virtual_machines.begin_create_or_update(group, "vm", body).result()
    assert vm.storage_profile.os_disk.diff_disk_settings.option == "Local"
    assert list(plane.compute.disks.list_by_resource_group(group)) == []
    assert (
        refused(lambda: plane.compute.virtual_machines.begin_deallocate(group, "vm"))[1]
        == "OperationNotAllowed"
    )
    body["properties"]["networkProfile"]["networkInterfaces"][0]["id"] = plane.nic(group, "nic2").id
    create = plane.compute.virtual_machines.begin_create_or_update
    wanted = body["properties"]["storageProfile"]["osDisk"]
    wanted |= {"diskSizeGB": 64, "diffDiskSettings": {"option": "Local", "placement": "ResourceDisk"}}
    assert "greater than 32 GB is not" in refused(lambda: create(group, "vm2", body))[2]
    body["properties"]["hardwareProfile"]["vmSize"] = "Standard_D4as_v5"
    assert refused(lambda: create(group, "vm2", body))[0] == 400


def test_bursting_is_enabled_while_the_machine_is_stopped(plane: World) -> None:
    group = plane.group("vm-bursting")
    disk = plane.disk(group, "data", zones=["1"])
    plane.vm(group, "vm")
    plane.attach(group, "vm", disk.id)
    on = {"properties": {"burstingEnabled": True}}
    assert refused(lambda: plane.compute.disks.begin_update(group, "data", on))[1] == "OperationNotAllowed"
    plane.compute.virtual_machines.begin_deallocate(group, "vm").result()
    assert plane.compute.disks.begin_update(group, "data", on).result().bursting_enabled is True
    assert plane.backend.named("update_disk")[-1][0].bursting is True


def test_luns_and_the_number_of_disks(plane: World) -> None:
    group = plane.group("vm-luns")
    ids = [plane.disk(group, f"d{number}", "Premium_ZRS", 4).id for number in range(5)]
    plane.vm(group, "vm", size="Standard_E2as_v5")
    plane.attach(group, "vm", ids[0], lun=0)
    taken = refused(lambda: plane.attach(group, "vm", ids[1], lun=0))
    assert taken[:2] == (400, "InvalidParameter") and taken[2] == "A disk at LUN 0 already exists."
    for lun in (1, 2, 3):
        plane.attach(group, "vm", ids[lun], lun=lun)
    full = refused(lambda: plane.attach(group, "vm", ids[4], lun=4))
    assert full[1:] == (
        "OperationNotAllowed",
        "The maximum number of data disks allowed to be attached to a VM of this size is 4.",
    )


def test_a_machine_that_cannot_be_made(plane: World, tmp_path) -> None:
    group = plane.group("vm-wrong")
    create = plane.compute.virtual_machines.begin_create_or_update
    nic = plane.nic(group, "nic").id
    assert (
        refused(lambda: create(group, "vm", plane.vm_body(nic, size="Standard_Nothing")))[1]
        == "InvalidParameter"
    )
    assert refused(lambda: create(group, "vm", plane.vm_body(nic, zone="4")))[1] == "InvalidAvailabilityZone"
    assert refused(lambda: create(group, "vm", plane.vm_body(nic + "x")))[:2] == (404, "ResourceNotFound")
    create(group, "vm", plane.vm_body(nic)).result()
    assert refused(lambda: create(group, "vm2", plane.vm_body(nic)))[1] == "NicInUse"
    with world(tmp_path, quotas={"standardDASv4Family": 4}) as small:
        small.vm(small.group("g"), "vm1")
        over = refused(lambda: small.vm("g", "vm2"))
    assert over[:2] == (409, "OperationNotAllowed")
    assert "exceeding approved standardDASv4Family Cores quota" in over[2]
    assert (
        "Current Limit: 4, Current Usage: 4, Additional Required: 4, (Minimum) New Limit Required: 8."
        in over[2]
    )


def test_a_machine_that_does_not_start_is_failed_and_can_be_deleted(plane: World) -> None:
    group = plane.group("vm-dead")
    plane.backend.fail["start_vm"] = "sshd does not start"
    status, code, message = refused(lambda: plane.vm(group, "vm"))
    assert (status, code, message) == (200, "InternalExecutionError", "sshd does not start")
    assert plane.compute.virtual_machines.get(group, "vm").provisioning_state == "Failed"
    plane.compute.virtual_machines.begin_delete(group, "vm").result()


@pytest.mark.parametrize("by_request", [True, False])
def test_a_failed_attach_leaves_nothing_behind(plane: World, by_request: bool) -> None:
    group = plane.group(f"vm-undo-{by_request}".lower())
    disk = plane.disk(group, "data", zones=["1"])
    vm = plane.vm(group, "vm")
    plane.backend.fail["attach"] = "no nbdkit"
    if by_request:
        code = refused(lambda: plane.attach(group, "vm", disk.id))
    else:
        row = {"lun": 0, "createOption": "Attach", "managedDisk": {"id": disk.id}}
        vm.storage_profile.data_disks = [row]
        code = refused(
            lambda: plane.compute.virtual_machines.begin_create_or_update(group, "vm", vm).result()
        )
    assert code[1:] == ("InternalExecutionError", "no nbdkit")
    assert _names(plane.compute.virtual_machines.get(group, "vm")) == []
    assert plane.compute.disks.get(group, "data").disk_state == "Unattached"
    plane.attach(group, "vm", disk.id)
    assert plane.compute.virtual_machines.get(group, "vm").provisioning_state == "Succeeded"
