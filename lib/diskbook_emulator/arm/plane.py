"""The control plane as its parts share it: settings, state, operations, faults and the machines' side."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

from diskbook.facts import catalog
from diskbook_emulator.arm import ids
from diskbook_emulator.arm.errors import ArmError, group_not_found, not_found
from diskbook_emulator.arm.faults import Faults
from diskbook_emulator.arm.operations import Operations, Work
from diskbook_emulator.arm.settings import Settings
from diskbook_emulator.arm.state import Resource, Store, shown, walk
from diskbook_emulator.types import Backend, Json


@dataclass(frozen=True)
class Call:
    """One request. `base` is scheme and host, `params` come from the path, names as the client wrote them."""

    method: str
    path: str
    base: str
    params: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    body: Json = field(default_factory=dict)

    @property
    def group(self) -> str:
        return self.params["group"]

    @property
    def api_version(self) -> str:
        """The api-version asked for; every one that exists is served alike."""
        return self.query.get("api-version", "")


@dataclass
class Reply:
    """An answer; a body of None is sent empty."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Clock:
    """A clock that was `ahead_s` ahead of the computer's when it was set, and goes `rate` times as fast."""

    ahead_s: float = 0.0
    rate: float = 1.0
    set_at: datetime = datetime(2000, 1, 1, tzinfo=UTC)

    def time(self, now: datetime) -> datetime:
        return self.set_at + (now - self.set_at) * self.rate + timedelta(seconds=self.ahead_s)


@dataclass
class ControlPlane:
    """Everything a handler may need.

    `clock` is that of schedules and retirements, `closing` are ends of what runs beside the handlers.
    """

    settings: Settings
    backend: Backend
    store: Store
    faults: Faults
    operations: Operations
    clock: Clock = field(default_factory=Clock)
    closing: list[Callable[[], None]] = field(default_factory=list)

    @property
    def today(self) -> date:
        """The day by the moved clock; sizes retire."""
        return self.clock.time(datetime.now(UTC)).date()

    def close(self) -> None:
        """Let running operations end without their waiting, then close the state."""
        for end in self.closing:
            end()
        self.operations.close()
        self.store.close()

    @property
    def root(self) -> str:
        return f"/subscriptions/{self.settings.subscription_id}"

    def group_id(self, name: str) -> str:
        return f"{self.root}/resourceGroups/{name}"

    def resource_id(self, group: str, kind: str, name: str) -> str:
        """Id of a resource. `kind` e.g. Microsoft.Compute/disks."""
        return f"{self.group_id(group)}/providers/{kind}/{name}"

    def group(self, name: str) -> Resource:
        """Find a resource group or raise Azure's 404."""
        group = self.store.get(self.group_id(name))
        if group is None:
            raise group_not_found(name)
        return group

    def writable_group(self, name: str) -> Resource:
        """Find a resource group that is not being deleted."""
        group = self.group(name)
        if group.properties.get("provisioningState") == "Deleting":
            # wording from our knowledge, not read
            message = (
                f"The resource group '{name}' is in deprovisioning state and cannot perform this operation."
            )
            raise ArmError(409, "ResourceGroupBeingDeleted", message)
        return group

    def find(self, group: str, kind: str, name: str) -> Resource:
        """Find a resource or raise Azure's 404 of group or resource."""
        self.group(group)
        resource = self.store.get(self.resource_id(group, kind, name))
        if resource is None:
            raise not_found(kind, name, group)
        return resource

    def find_id(self, resource_id: str, kind: str) -> Resource:
        """Find a resource that a body refers to by id."""
        resource = self.store.get(resource_id)
        if resource is None:
            raise not_found(kind, ids.name_of(resource_id), ids.group_of(resource_id))
        return resource

    def listed(self, call: Call, kind: str) -> list[Resource]:
        """Resources of a kind in the group of a request, or in the subscription where it names none."""
        group = call.params.get("group")
        if group is not None:
            self.group(group)
        return self.store.of_type(kind, group)

    def region(self, location: str) -> catalog.Region:
        """Find a region by the name in a body, "West Europe" or "westeurope"."""
        name = location.replace(" ", "").lower()
        region = catalog.regions().get(name)
        if region is None:
            # wording from our knowledge, not read
            known = ",".join(catalog.regions())
            raise ArmError(
                400,
                "LocationNotAvailableForResourceType",
                f"The provided location '{location}' is not available for this subscription. "
                f"List of available regions is '{known}'.",
            )
        return region

    def users(self, resource_id: str) -> list[Resource]:
        """Resources other than its parent or children that refer to an id."""
        key = ids.key(resource_id)
        machines = []
        for resource in self.store.resources.values():
            if (
                resource.key == key
                or resource.key.startswith(f"{key}/")
                or key.startswith(f"{resource.key}/")
            ):
                continue
            if any(ids.key(str(item.get("id", ""))) == key for item in walk(resource.body)):
                machines.append(resource)
        return machines


def creation(plane: ControlPlane, resource: Resource, new: bool = True) -> Work:
    """Build the work of making a resource that needs nothing physical; a new one that fails goes."""

    def settle(error: ArmError | None) -> None:
        if plane.store.get(resource.id) is not resource:
            return  # replaced or deleted meanwhile
        if error is not None and new:
            plane.store.remove(resource.id)
            return
        resource.properties["provisioningState"] = "Failed" if error else "Succeeded"
        plane.store.save(resource)

    return Work(settle=settle)


def poll_headers(
    plane: ControlPlane,
    call: Call,
    op_id: str,
    location: str,
    provider: str = "Microsoft.Compute",
    collection: str = "operations",
    retry_after_s: int | None = 10,
    monitor: bool = True,
) -> dict[str, str]:
    """Build the headers of an accepted operation, with URLs on the host that the client spoke to."""
    url = f"{call.base}{plane.root}/providers/{provider}/locations/{location}/{collection}/{op_id}"
    version = f"api-version={call.api_version}"
    headers = {
        "Azure-AsyncOperation": f"{url}?{version}",
        "x-ms-request-id": op_id,
    }
    if retry_after_s is not None:
        headers["Retry-After"] = str(retry_after_s)
    if monitor:
        headers["Location"] = f"{url}?monitor=true&{version}"
    return headers


# ---- the physical side of deleting: which calls of the backend take machines and disks away


VM = "Microsoft.Compute/virtualMachines"
DISK = "Microsoft.Compute/disks"


def running(vm: Resource) -> bool:
    """Whether the machine is up, so that the backend holds its attachments."""
    return vm.hidden.get("power") == "running"


def data_disks(vm: Resource) -> list[dict[str, object]]:
    disks: list[dict[str, object]] = vm.properties.get("storageProfile", {}).get("dataDisks", [])
    return disks


def luns(vm: Resource) -> list[int]:
    return [int(str(entry["lun"])) for entry in data_disks(vm)]


def remove_all(plane: ControlPlane, members: list[Resource]) -> Callable[[], None]:
    """Return the effect that takes all machines, then all disks of a list away."""
    machines = [member for member in members if member.type == VM]
    disks = [member for member in members if member.type == DISK and not member.hidden.get("os")]

    def effect() -> None:
        for vm in machines:
            remove_vm(plane, vm)
        for disk in disks:
            plane.backend.delete_disk(disk.key)

    return effect


def remove_vm(plane: ControlPlane, vm: Resource) -> None:
    """Detach a machine's disks and delete it, at the backend."""
    if running(vm):
        for lun in luns(vm):
            plane.backend.detach(vm.key, lun)
    plane.backend.delete_vm(vm.key)


VM_FIRST_RETRY_S, DISK_RETRY_S, NETWORK_RETRY_S = "50", "2", "10"


def operation(plane: ControlPlane, call: Call) -> Reply:
    """Answer a poll of Azure-AsyncOperation, or of Location with monitor=true."""
    body = plane.store.operations.get(call.params["operation"])
    if body is None:
        # wording from our knowledge, not read
        raise ArmError(404, "NotFound", f"The entity was not found: operation '{call.params['operation']}'.")
    monitor = call.query.get("monitor", "").lower() == "true"
    if monitor or call.params["collection"].lower() == "operationresults":
        if body["status"] == "InProgress":
            query = "&".join(f"{key}={value}" for key, value in call.query.items())
            return Reply(202, headers={"Location": f"{call.base}{call.path}?{query}", "Retry-After": "10"})
        if body["status"] in ("Failed", "Canceled"):
            return Reply(409, {"error": body["error"]})
        return Reply(200, result(plane, body))
    if call.params["provider"] == "Microsoft.Network":
        answer: Json = {"status": body["status"]}
        if body["status"] in ("Failed", "Canceled"):
            answer["error"] = body["error"]
        headers = {"Retry-After": NETWORK_RETRY_S} if body["status"] == "InProgress" else {}
        return Reply(200, answer, headers)
    return _compute(plane, body)


def _compute(plane: ControlPlane, body: Json) -> Reply:
    answer: Json = {"startTime": body["started_utc"], "status": body["status"], "name": body["id"]}
    if body["status"] == "InProgress":
        return Reply(200, answer, _retry(body))
    answer["endTime"] = body["ended_utc"]
    if body["status"] in ("Failed", "Canceled"):
        answer["error"] = body["error"]
    elif (output := result(plane, body)) is not None:
        answer["properties"] = {"output": output}
    return Reply(200, answer)


def _retry(body: Json) -> dict[str, str]:
    """Retry-After of a poll: always for disks, on the first only for machines (as recorded)."""
    body["polls"] += 1
    if body["kind"] in ("disk-create", "disk-update", "disk-delete"):
        return {"Retry-After": DISK_RETRY_S}
    first_create = body["polls"] == 1 and body["kind"].startswith("vm-create")
    return {"Retry-After": VM_FIRST_RETRY_S} if first_create else {}


def result(plane: ControlPlane, body: Json) -> Any:
    """Return the resource that an operation made, None where it made none."""
    resource = plane.store.get(body["output"]) if body.get("output") else None
    return None if resource is None else shown(resource)
