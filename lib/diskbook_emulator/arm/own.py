"""What only the emulator has: status, times of operations, faults. Same token as the rest."""

import copy
from collections import Counter
from typing import Any

from diskbook.design.vocabulary import Provenance
from diskbook_emulator.arm.errors import bad_request
from diskbook_emulator.arm.plane import Call, ControlPlane, Reply

FIELDS = (
    "id",
    "kind",
    "target",
    "status",
    "started_utc",
    "ended_utc",
    "unscaled_ended_utc",
    "real_s",
    "effect_s",
    "unscaled_s",
    "delay_s",
    "error",
)


def status(plane: ControlPlane, call: Call) -> Reply:
    """Count resources by type and operations by status."""
    resources = Counter(row.type for row in plane.store.resources.values())
    operations = Counter(row["status"] for row in plane.store.operations.values())
    body = {
        "provenance": Provenance.EMULATED,
        "subscription_id": plane.settings.subscription_id,
        "time_scale": plane.settings.time_scale,
        "resources": dict(resources),
        "operations": dict(operations),
    }
    return Reply(200, body)


def operations(plane: ControlPlane, call: Call) -> Reply:
    """List operations with their real times and the unscaled ones of the profile."""
    rows = [
        {key: operation[key] for key in FIELDS if key in operation}
        for operation in plane.store.operations.values()
    ]
    return Reply(200, {"provenance": Provenance.EMULATED, "value": rows})


def faults(plane: ControlPlane, call: Call) -> Reply:
    """Show the faults, or put others in place."""
    if call.method == "PUT":
        wished: Any = call.body
        if isinstance(wished, dict):
            wished = wished.get("value")
        if not isinstance(wished, list):
            raise bad_request("faults are a list, or {'value': [...]}", "InvalidFault")
        plane.faults.replace(copy.deepcopy(wished))
    return Reply(200, {"value": plane.faults.listed()})
