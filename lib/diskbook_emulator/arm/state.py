"""The resources and operations of a control plane, kept in one SQLite file so that they survive a restart."""

import copy
import json
import sqlite3
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from diskbook_emulator.arm import ids
from diskbook_emulator.types import Json


@dataclass
class Resource:
    """A resource: `body` as GET shows it, `hidden` what Azure keeps to itself (custom data, power state)."""

    body: Json
    hidden: Json = field(default_factory=dict)

    @property
    def id(self) -> str:
        """ARM id as first written."""
        return str(self.body["id"])

    @property
    def key(self) -> str:
        """Id in lower case."""
        return ids.key(self.id)

    @property
    def name(self) -> str:
        return str(self.body["name"])

    @property
    def type(self) -> str:
        """Resource type, e.g. Microsoft.Compute/disks."""
        return str(self.body.get("type", ""))

    @property
    def properties(self) -> Json:
        properties: Json = self.body.setdefault("properties", {})
        return properties

    @property
    def zone(self) -> str | None:
        """Logical zone, None where the resource has none."""
        zones = self.body.get("zones") or [None]
        return str(zones[0]) if zones[0] else None


class Store:
    """Resources and operations in memory, written through to a file.

    Hold `lock` while reading several things that must agree, and while changing anything.
    """

    def __init__(self, path: Path) -> None:
        self.lock = threading.RLock()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(0o600)  # holds custom data, and with it keys
        self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        # Power cuts need not be survived, an end of this process must: then no sync is needed.
        self._db.execute("PRAGMA synchronous = OFF")
        self._db.execute("CREATE TABLE IF NOT EXISTS resource (key TEXT PRIMARY KEY, body TEXT, hidden TEXT)")
        self._db.execute("CREATE TABLE IF NOT EXISTS operation (id TEXT PRIMARY KEY, body TEXT)")
        self.resources: dict[str, Resource] = {}
        self.operations: dict[str, Json] = {}
        for key, body, hidden in self._db.execute("SELECT key, body, hidden FROM resource ORDER BY rowid"):
            self.resources[key] = Resource(json.loads(body), json.loads(hidden))
        for op_id, body in self._db.execute("SELECT id, body FROM operation ORDER BY rowid"):
            self.operations[op_id] = json.loads(body)

    def get(self, resource_id: str) -> Resource | None:
        """Find a resource by id, upper or lower case."""
        return self.resources.get(ids.key(resource_id))

    def save(self, resource: Resource) -> Resource:
        """Add a resource, or write its changes."""
        with self.lock:
            self.resources[resource.key] = resource
            row = (resource.key, json.dumps(resource.body), json.dumps(resource.hidden))
            self._db.execute(
                "INSERT INTO resource VALUES (?, ?, ?) "
                "ON CONFLICT(key) DO UPDATE SET body = excluded.body, hidden = excluded.hidden",
                row,
            )
        return resource

    def remove(self, resource_id: str) -> None:
        with self.lock:
            self.resources.pop(ids.key(resource_id), None)
            self._db.execute("DELETE FROM resource WHERE key = ?", (ids.key(resource_id),))

    def save_operation(self, op_id: str, body: Json) -> None:
        with self.lock:
            self.operations[op_id] = body
            self._db.execute("REPLACE INTO operation VALUES (?, ?)", (op_id, json.dumps(body)))

    def of_type(self, kind: str, group: str | None = None) -> list[Resource]:
        with self.lock:
            matching = [
                resource for resource in self.resources.values() if resource.type.lower() == kind.lower()
            ]
        if group is None:
            return matching
        return [resource for resource in matching if ids.group_of(resource.id).lower() == group.lower()]

    def in_group(self, group: str) -> list[Resource]:
        """List everything in a resource group, without the group itself."""
        with self.lock:
            return [
                resource
                for resource in self.resources.values()
                if "/providers/" in resource.key and ids.group_of(resource.id).lower() == group.lower()
            ]

    def close(self) -> None:
        with self.lock:
            self._db.close()


def shown(resource: Resource) -> Json:
    """Return a copy of the body, as GET answers it."""
    return copy.deepcopy(resource.body)


def walk(value: object) -> Iterator[Json]:
    """Yield every dict within a body."""
    if isinstance(value, dict):
        yield value
        for item in value.values():
            yield from walk(item)
    elif isinstance(value, list):
        for item in value:
            yield from walk(item)
