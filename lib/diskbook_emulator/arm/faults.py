"""Faults to inject: any request or operation can be made to fail, be throttled, take long or be cut off.

A fault is a table:
    {"match": {"method": "PUT", "path_regex": "/disks/"} or {"operation": "disk-attach"},
     "after": 0, "times": 1, "action": {...}}
It lets `after` matching ones pass, then acts on `times` of them (0: on all). Actions:
    {"status": 409, "code": "SkuNotAvailable", "message": "...", "headers": {"Retry-After": "5"}}
    {"throttle": {"group": "CreateUpdateDisks3Min", "retry_after_s": 1200}}     Azure's own 429
    {"delay_s": 30}                                                              unscaled seconds more
    {"reset": true}                                                              the connection is cut
    {"operation_failed": {"code": "...", "message": "..."}}                      an operation ends Failed
    {"operation_failed": {"status": "Canceled", "code": "...", ...}}             or Canceled

Buckets of Azure Compute's throttling (`throttle`) are made smaller by
{"match": {"bucket": "GetOperation"}, "action": {"bucket_share": 0.25}}, the name as a regular expression; the
fault is `seen` as often as such a bucket refused a request.

A step of a cluster on a machine (`cluster_steps`) is matched by
{"step": "volume", "machine_regex": "n1$"}, with one of these actions:
    {"reads": {"columns": 2}}      the machine gives these facts instead of the true ones
    {"killed_after": 1}            the step is killed after its first change
"""

import copy
import re
import threading
from dataclasses import dataclass, field

from diskbook_emulator.arm.errors import ArmError, bad_request, throttled
from diskbook_emulator.step_call import Planted
from diskbook_emulator.types import Json

ACTIONS = {"status", "code", "message", "headers", "throttle", "delay_s", "reset", "operation_failed"}
STEP_ACTIONS = {"reads", "killed_after"}
BUCKET_ACTIONS = {"bucket_share"}


@dataclass(frozen=True)
class Fault:
    """What is to happen to one request or operation."""

    delay_s: float = 0.0
    reset: bool = False
    error: ArmError | None = None
    ends: str = "Failed"  # how an operation with an error ends
    planted: Planted = field(default_factory=Planted)


class Faults:
    """The list of faults, with counts of what has matched."""

    def __init__(self, faults: tuple[Json, ...] | list[Json] = ()) -> None:
        self._lock = threading.Lock()
        self._faults: list[Json] = []
        self.replace(list(faults))

    def replace(self, faults: list[Json]) -> None:
        """Put another list in place; counts begin again.

        Raises ArmError if a fault cannot be understood.
        """
        for fault in faults:
            _check(fault)
        with self._lock:
            self._faults = [{**copy.deepcopy(fault), "seen": 0} for fault in faults]

    def listed(self) -> list[Json]:
        """Return the list, each fault with `seen`, the number of matches so far."""
        with self._lock:
            return copy.deepcopy(self._faults)

    def request(self, method: str, path: str) -> Fault | None:
        return self._next(lambda match: _request_matches(match, method, path))

    def operation(self, kind: str) -> Fault | None:
        return self._next(lambda match: "operation" in match and re.fullmatch(match["operation"], kind))

    def step(self, step: str, machine: str) -> Planted:
        fault = self._next(lambda match: match.get("step") == step and _names(match, machine))
        return Planted() if fault is None else fault.planted

    def bucket_share(self, group: str) -> float:
        """Part of the buckets of a policy that is in force."""
        with self._lock:
            shares = [row["action"]["bucket_share"] for row in self._faults if _bucket_matches(row, group)]
        return float(shares[0]) if shares else 1.0

    def throttled(self, group: str) -> None:
        """Note that a bucket of a policy has refused a request."""
        with self._lock:
            for fault in self._faults:
                fault["seen"] += _bucket_matches(fault, group)

    def _next(self, matches: object) -> Fault | None:
        assert callable(matches)
        with self._lock:
            for fault in self._faults:
                if not matches(fault["match"]):
                    continue
                fault["seen"] += 1
                acted = fault["seen"] - int(fault.get("after", 0))
                times = int(fault.get("times", 1))
                if acted >= 1 and (times == 0 or acted <= times):
                    return _fault(fault["action"])
        return None


def _request_matches(match: Json, method: str, path: str) -> bool:
    if not match.keys().isdisjoint(("operation", "step", "bucket")):
        return False
    verb = match.get("method")
    if verb and verb.upper() != method.upper():
        return False
    return re.search(match.get("path_regex", ""), path, re.IGNORECASE) is not None


def _bucket_matches(fault: Json, group: str) -> bool:
    return "bucket" in fault["match"] and re.fullmatch(fault["match"]["bucket"], group) is not None


def _names(match: Json, machine: str) -> bool:
    return re.search(match.get("machine_regex", ""), machine, re.IGNORECASE) is not None


def _check(fault: Json) -> None:
    action, match = fault.get("action"), fault.get("match")
    if not isinstance(action, dict) or not isinstance(match, dict) or not action:
        raise bad_request("a fault needs 'match' and 'action'", "InvalidFault")
    known = STEP_ACTIONS if "step" in match else BUCKET_ACTIONS if "bucket" in match else ACTIONS
    strange = set(action) - known
    if strange:
        raise bad_request(
            f"a fault has no action '{min(strange)}'; known: {', '.join(sorted(known))}", "InvalidFault"
        )
    share = action.get("bucket_share", 1)
    if not isinstance(share, int | float) or not 0 < share <= 1:
        raise bad_request("a fault's bucket_share is a number above 0, at most 1", "InvalidFault")
    try:
        for pattern in ("path_regex", "operation", "machine_regex", "bucket"):
            re.compile(match.get(pattern, ""))
    except re.error as error:
        raise bad_request(f"a fault's pattern is no regular expression: {error}", "InvalidFault") from None


def _fault(action: Json) -> Fault:
    error = None
    if "throttle" in action:
        settings = action["throttle"]
        error = throttled(
            settings.get("group", "CreateUpdateDisks3Min"), int(settings.get("retry_after_s", 1200))
        )
    elif "operation_failed" in action:
        settings = action["operation_failed"]
        error = ArmError(409, settings.get("code", "InternalExecutionError"), settings.get("message", ""))
    elif "status" in action:
        error = ArmError(
            int(action["status"]),
            action.get("code", "InternalServerError"),
            action.get("message", "An injected fault."),
            action.get("headers"),
        )
    ends = action.get("operation_failed", {}).get("status", "Failed")
    planted = Planted(action.get("reads", {}), action.get("killed_after"))
    return Fault(float(action.get("delay_s", 0.0)), bool(action.get("reset", False)), error, ends, planted)
