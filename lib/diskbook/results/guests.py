"""Rows of the table `guest`: what the ledger says of a trial's machine and device, and of the time spent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from diskbook.design import durability, schema
from diskbook.design.model import Workload
from diskbook.tools.record import Measurement

Event = Mapping[str, Any]
_COPIED = (
    *("kernel", "cpu_model", "driver", "scheduler", "write_cache", "power_plan", "fua", "rotational"),
    *("nr_requests", "hardware_queues", "wbt_lat_usec", "logical_block_size_bytes"),
)


class Guests:
    """What machines have said of themselves so far, as a ledger is read line by line."""

    def __init__(self, manifest: Mapping[str, Any]) -> None:
        self._manifest = manifest
        self._latest: dict[tuple[Any, ...], Event] = {}
        self.rows: list[dict[str, Any]] = []

    def note(self, event: Event) -> None:
        """Take a line of the ledger: one of the kind `guest` holds for the trials after it."""
        if event["event"] == "guest":
            self._latest[_key(event)] = event

    def add(self, event: Event, workload: Workload, result: Measurement) -> None:
        """Add the row of a finished trial, unless nothing was read of its machine."""
        answer, spent = self._latest.get(_key(event), {}), event.get("guest") or {}
        if not answer and not spent:
            return
        facts = _facts(answer)
        cores = spent.get("cores_busy_pct") or []
        self.rows.append(
            {
                **dict.fromkeys(schema.GUEST.names),
                **{name: facts.get(name) for name in _COPIED},
                "run": self._manifest["run"],
                "trial": event["trial"],
                "machine": event["machine"],
                "image": self._image(event),
                "ioengine": engine_of(answer, workload),
                "usr_pct": result.usr_pct,
                "sys_pct": result.sys_pct,
                "steal_pct": spent.get("steal_pct"),
                "busiest_core_pct": max(cores) if cores else result.busiest_core_pct,
            }
        )

    def durability(self, event: Event, workload: Workload) -> str:
        """Name what made the writes of a trial durable (`durability.of`)."""
        answer = self._latest.get(_key(event), {})
        return durability.of(workload.sync, engine_of(answer, workload), _facts(answer).get("write_cache"))

    def _image(self, event: Event) -> str | None:
        """Image of a machine with the version it was made from, as Azure reported it."""
        replicates = self._manifest["replicates"]
        machines = next(row["machines"] for row in replicates if row["replicate"] == event["replicate"])
        read_back = machines[event["machine"]].get("read_back") or {}
        parts = [read_back.get("image"), read_back.get("image_version")]
        return ":".join(part for part in parts if part) or None


def engine_of(answer: Event, workload: Workload) -> str | None:
    """Engine that a tool reached a device by: "nbd", or the workload's for what Linux has; None unknown."""
    engine = answer.get("engine")
    if engine == durability.NBD:
        return durability.NBD
    return workload.ioengine if engine in durability.KERNEL else None


def _facts(answer: Event) -> Mapping[str, Any]:
    facts = answer.get("facts")
    return facts if isinstance(facts, Mapping) else {}


def _key(event: Event) -> tuple[Any, ...]:
    return event.get("replicate"), event.get("machine"), event.get("disk_id")
