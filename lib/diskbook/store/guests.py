"""Rows of the table `guest`: what the ledger says of a trial's machine and device, and of the time spent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from diskbook.scenario.model import Workload
from diskbook.tables import durability, schema
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
        self._said: dict[tuple[Any, ...], Event] = {}
        self.rows: list[dict[str, Any]] = []

    def note(self, event: Event) -> None:
        """Take a line `guest` of the ledger: it holds for the trials after it."""
        self._said[_key(event)] = event

    def add(self, event: Event, workload: Workload, result: Measurement) -> None:
        """Add the row of a finished trial, unless nothing was read of its machine."""
        said, spent = self._said.get(_key(event), {}), event.get("guest") or {}
        if not said and not spent:
            return
        facts = _facts(said)
        cores = spent.get("cores_busy_pct") or []
        self.rows.append(
            {
                **dict.fromkeys(schema.GUEST.names),
                **{name: facts.get(name) for name in _COPIED},
                "run": self._manifest["run"],
                "trial": event["trial"],
                "machine": event["machine"],
                "image": self._image(event),
                "ioengine": engine_of(said, workload),
                "usr_pct": result.usr_pct,
                "sys_pct": result.sys_pct,
                "steal_pct": spent.get("steal_pct"),
                "busiest_core_pct": max(cores) if cores else result.busiest_core_pct,
            }
        )

    def durability(self, event: Event, workload: Workload) -> str:
        """Name what made the writes of a trial durable (`durability.of`)."""
        said = self._said.get(_key(event), {})
        return durability.of(workload.sync, engine_of(said, workload), _facts(said).get("write_cache"))

    def _image(self, event: Event) -> str | None:
        """Image of a machine with the version it was made from, as Azure reported it."""
        replicates = self._manifest["replicates"]
        machines = next(row["machines"] for row in replicates if row["replicate"] == event["replicate"])
        read_back = machines[event["machine"]].get("read_back") or {}
        parts = [read_back.get("image"), read_back.get("image_version")]
        return ":".join(part for part in parts if part) or None


def engine_of(said: Event, workload: Workload) -> str | None:
    """Engine that a tool reached a device by: "nbd", or the workload's for what Linux has; None unknown."""
    engine = said.get("engine")
    if engine == durability.NBD:
        return durability.NBD
    return workload.ioengine if engine in durability.KERNEL else None


def _facts(said: Event) -> Mapping[str, Any]:
    facts = said.get("facts")
    return facts if isinstance(facts, Mapping) else {}


def _key(event: Event) -> tuple[Any, ...]:
    return event.get("replicate"), event.get("machine"), event.get("disk_id")
