"""Azure's errors: envelope, codes and messages."""

import json
from collections.abc import Mapping

from diskbook_emulator.types import Json


class ArmError(Exception):
    """A request or operation that Azure refuses. `status` is the HTTP status of the answer."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        headers: Mapping[str, str] | None = None,
        details: list[Json] | None = None,
        target: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.headers = dict(headers or {})
        self.details = details
        self.target = target

    def body(self) -> Json:
        return {"error": self.inner()}

    def inner(self) -> Json:
        """What stands in the envelope, and in a failed operation."""
        error: Json = {"code": self.code, "message": self.message}
        if self.target:
            error["target"] = self.target
        if self.details is not None:
            error["details"] = self.details
        return error


def bad_request(message: str, code: str = "BadRequest", target: str | None = None) -> ArmError:
    return ArmError(400, code, message, target=target)


def invalid(parameter: str, message: str) -> ArmError:
    return bad_request(message, "InvalidParameter", parameter)


def not_allowed(message: str) -> ArmError:
    return ArmError(409, "OperationNotAllowed", message)


def not_found(kind: str, name: str, group: str) -> ArmError:
    """404 of the gateway. `kind` e.g. Microsoft.Compute/disks."""
    message = f"The Resource '{kind}/{name}' under resource group '{group}' was not found."
    return ArmError(404, "ResourceNotFound", message, {"x-ms-failure-cause": "gateway"})


def group_not_found(name: str) -> ArmError:
    message = f"Resource group '{name}' could not be found."
    return ArmError(404, "ResourceGroupNotFound", message, {"x-ms-failure-cause": "gateway"})


def not_registered(path: str) -> ArmError:
    """404 of a path nobody serves."""
    # wording from our knowledge, not read
    return ArmError(404, "InvalidResourceType", f"The resource type could not be found for '{path}'.")


def zones_differ(disk_id: str, vm_zone: str | None, disk_zone: str) -> ArmError:
    """Attach of a zonal disk to a machine elsewhere."""
    return bad_request(
        f"Disk {disk_id} cannot be attached to the VM because it is not in the same zone as the VM. "
        f"VM zone: '{vm_zone or ''}'. Disk zone: '{disk_zone}'."
    )


def not_in_zone(disk_id: str, vm_zone: str) -> ArmError:
    """Attach of a zone-less LRS disk to a zonal machine."""
    return bad_request(f"Disk {disk_id} cannot be attached to the VM because it is not in zone '{vm_zone}'.")


def not_in_region(resource_id: str, by: str) -> ArmError:
    """Reference to a resource that is not there, or in another region."""
    return bad_request(
        f"Resource {resource_id} referenced by resource {by} was not found. Please make sure that the "
        "referenced resource exists, and that both resources are in the same region.",
        "InvalidResourceReference",
    )


def quota_exceeded(quota: str, location: str, limit: int, used: int, cores: int) -> ArmError:
    """Cores beyond the quota of a family or region."""
    return not_allowed(
        f"Operation could not be completed as it results in exceeding approved {quota} Cores quota. "
        f"Additional details - Deployment Model: Resource Manager, Location: {location}, "
        f"Current Limit: {limit}, Current Usage: {used}, Additional Required: {cores}, "
        f"(Minimum) New Limit Required: {used + cores}."
    )


def throttled(group: str, retry_after_s: int = 1200, allowed: int = 1000) -> ArmError:
    """429 of the compute provider; `group` e.g. CreateUpdateDisks3Min."""
    counts = {"operationGroup": group, "allowedRequestCount": allowed, "measuredRequestCount": allowed + 1}
    return ArmError(
        429,
        "OperationNotAllowed",
        "The server rejected the request because too many requests have been received for this subscription.",
        {
            "Retry-After": str(retry_after_s),
            "x-ms-ratelimit-remaining-resource": f"Microsoft.Compute/{group};0",
        },
        [{"code": "TooManyRequests", "target": group, "message": json.dumps(counts)}],
    )
