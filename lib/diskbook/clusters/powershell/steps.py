"""Steps that make, place, watch and repair a cluster's volumes: their scripts, requests and answers.

Each step looks, changes what differs, and looks again; called twice, it changes nothing the second time. Its
request goes to standard input, since it may hold a password and command lines are seen by others. Steps that
reach other nodes run inside `task`, as the cluster's account: a session signed in by key signs in no further.
Unverified on Windows, as all of this package.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from diskbook.clusters.design import counters
from diskbook.clusters.powershell.scripts import FOLDER, path, script
from diskbook.facts.units import KIB
from diskbook.hosts.jobs import StepFailed

__all__ = ["FOLDER", "StepFailed", "path", "script"]  # what callers of steps need of other modules

FEATURES = ("Failover-Clustering", "FS-FileServer", "RSAT-Clustering-PowerShell")
TESTS = ("Storage Spaces Direct", "Inventory", "Network", "System Configuration")
COUNTERS = tuple(counters.path(name) for name in counters.NAMES)
INTERLEAVE_BYTES = 256 * KIB  # what Storage Spaces takes when none is asked for

Kind = Literal["simple", "two-way", "three-way", "nested-mirror", "nested-parity"]


class Request(BaseModel):
    """What a step is asked; an unknown name is refused here, since PowerShell would read it as nothing."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Prepare(Request):
    """One node made ready; `restart` lets the step restart the node where that is due."""

    account: str
    password: str = Field(repr=False)
    nodes: tuple[str, ...]
    dns_suffix: str
    subnet: str
    features: tuple[str, ...] = FEATURES
    restart: bool = False


class Validate(Request):
    """Microsoft's own validation of the nodes."""

    account: str
    password: str = Field(repr=False)
    nodes: tuple[str, ...]
    report: str = "diskbook-validation"
    tests: tuple[str, ...] = TESTS


class Cluster(Request):
    """The cluster of these nodes; two nodes need a witness: a storage account, its key and its endpoint."""

    account: str
    password: str = Field(repr=False)
    nodes: tuple[str, ...]
    name: str
    witness_account: str | None = None
    witness_key: str | None = Field(default=None, repr=False)
    witness_endpoint: str = "core.windows.net"


class PoolDisk(Request):
    """One disk of the run, as Windows names it: read by LUN on its node before the pool is made."""

    node: str
    lun: int
    unique_id: str
    size_bytes: int


class Enable(Request):
    """The pool of exactly these disks; with `clustered` Storage Spaces Direct, else one server's own."""

    pool: str
    disks: tuple[PoolDisk, ...]
    clustered: bool
    wait_s: int = 300


class Part(Request):
    """What a volume, or one of its tiers, must turn out to be; None is not compared."""

    resiliency: str
    copies: int
    columns: int | None = None
    redundancy: int | None = None
    interleave_bytes: int | None = None
    footprint_at_least_bytes: int


class Volume(Request):
    """Request to create one volume; `parts` are sorted by name."""

    pool: str
    name: str
    kind: Kind
    parts: tuple[Part, ...]
    size_bytes: int | None = None
    columns: int | None = None
    interleave_bytes: int | None = None
    redundancy: int | None = None
    mirror_bytes: int | None = None
    parity_bytes: int | None = None
    drive_letter: str = "S"


class Place(Request):
    """The node that owns a volume."""

    volume: str
    node: str
    wait_s: int = 120


class Idle(Request):
    """Quiet before a block; `quiet_s` above 0 also watches that no data moves to a slow tier."""

    volumes: tuple[str, ...]
    quiet_s: int = 0
    wait_s: int = 600


class Counters(Request):
    """Running totals of these performance counters."""

    paths: tuple[str, ...] = COUNTERS


class FleetVolume(Request):
    """A volume of a fleet: its name, the folder that it is reached by, and the node whose machines use it."""

    name: str
    path: str
    node: str


class Fleet(Request):
    """One load on many machines at once: `instances` on each volume, each with a file of its own there.

    `line` is DiskSpd's, without program and target; `spec` names the files of results; `create` makes the
    files first. `by` "processes" are instances of DiskSpd on the nodes, "vmfleet" machines that VMFleet made.
    """

    volumes: tuple[FleetVolume, ...]
    instances: int
    file_bytes: int
    line: str
    spec: str
    create: bool = False
    by: Literal["processes", "vmfleet"] = "processes"
    wait_s: int = 600


class Loss(Request):
    """A disk or a node that is lost, or comes back."""

    kind: Literal["disk", "node"]
    volumes: tuple[str, ...]
    unique_id: str | None = None
    node: str | None = None
    wait_s: int = 300


class VerifyVolume(Request):
    """A volume that is written to: its name, and the folder that it is reached by."""

    name: str
    path: str


class Verify(Request):
    """Blocks written one after another to a file on each volume, side by side, and read back.

    `write` goes on until `end` or `read` is asked with the same `tag` and `file`, or `wait_s` is over; a
    block that fails is tried again. `end` says what was acknowledged, `read` also how much of it is there,
    whole. Blocks hold `tag` and their number; the file has `blocks` of them, and is written round and round.
    Acknowledged blocks are counted by `bin_s` from `began_s` on, in seconds since 1970 by the node's clock.
    """

    action: Literal["write", "end", "read"]
    volumes: tuple[VerifyVolume, ...]
    tag: str
    file: Literal["loss", "resync"]
    blocks: int
    block_bytes: int = 64 * KIB
    bin_s: float = 1.0
    wait_s: int = 600


class Task(Request):
    """Another step, run as the cluster's account."""

    step: str
    account: str
    password: str = Field(repr=False)
    request: dict[str, Any] = Field(repr=False)
    wait_s: int = 1800


STEPS: dict[str, type[Request]] = {
    "prepare": Prepare,
    "validate": Validate,
    "cluster": Cluster,
    "enable": Enable,
    "volume": Volume,
    "place": Place,
    "idle": Idle,
    "counters": Counters,
    "fleet": Fleet,
    "fail": Loss,
    "restore": Loss,
    "verify": Verify,
    "task": Task,
}


@dataclass(frozen=True)
class Answer:
    """What a step answered: the state that it left, and what it changed to get there."""

    state: dict[str, Any]
    changed: tuple[str, ...]


def command(step: str) -> str:
    """Build the command line of a step: the same each time, since what it is asked goes to standard input."""
    return f'powershell -NoProfile -NonInteractive -ExecutionPolicy Bypass -File "{path(step)}"'


def standard_input(request: Request) -> bytes:
    """Encode a request: ASCII, so that no code page of the console can change it."""
    return json.dumps(request.model_dump(mode="json"), separators=(",", ":")).encode("ascii")


def as_task(step: str, request: Request, account: str, password: str) -> Task:
    """Wrap a step's request for `task`, which runs it as the cluster's account."""
    return Task(step=step, account=account, password=password, request=request.model_dump(mode="json"))


def scripts(step: str, request: Request) -> tuple[str, ...]:
    """Return the steps whose scripts a step needs on its node."""
    return (request.step, step) if isinstance(request, Task) else (step,)


def outcome(step: str, output: str, node: str, within: str = "") -> Answer:
    """Read what a step answered; for `task`, what the step within did, which its sentences then name.

    Raises StepFailed where the step failed, or answered nothing that can be read.
    """
    lines = [line for line in output.splitlines() if line.lstrip().startswith("{")]
    try:
        document = json.loads(lines[-1]) if lines else None
    except ValueError:
        document = None
    if not isinstance(document, Mapping) or document.get("step") != step:
        last = _one_line(output)[-300:] or "nothing"
        raise StepFailed(f"{node}: step {within or step} gave no answer that can be read, but: {last}")
    if not document.get("ok"):
        raise StepFailed(f"{_one_line(document['error']['message'])} (step {within or step} on {node})")
    state: dict[str, Any] = document["state"]
    if step == "task":
        return outcome(state["step"], state["output"], node)
    return Answer(state, tuple(document.get("changed") or ()))


def _one_line(text: str) -> str:
    return " ".join(text.split())


def striped(pool: str, name: str, size_bytes: int, columns: int, copies: int) -> Volume:
    """Ask for a volume striped over disks: one server's without copies, or a mirror of two or three nodes."""
    part = Part(
        resiliency="Simple" if copies == 1 else "Mirror",
        copies=copies,
        columns=columns,
        redundancy=copies - 1,
        interleave_bytes=INTERLEAVE_BYTES,
        footprint_at_least_bytes=copies * size_bytes,
    )
    kinds: tuple[Kind, ...] = ("simple", "two-way", "three-way")
    chosen = {"interleave_bytes": INTERLEAVE_BYTES} if copies == 1 else {"redundancy": copies - 1}
    sizes: dict[str, Any] = {"size_bytes": size_bytes, "columns": columns, **chosen}
    return Volume(pool=pool, name=name, kind=kinds[copies - 1], parts=(part,), **sizes)


def nested(pool: str, name: str, mirror_bytes: int, parity_bytes: int = 0) -> Volume:
    """Ask for nested resiliency on two nodes: a mirror of four copies, and parity within each node.

    Templates as in windowsserverdocs, storage/storage-spaces/nested-resiliency.md.
    """
    parts = [Part(resiliency="Mirror", copies=4, footprint_at_least_bytes=4 * mirror_bytes)]
    if parity_bytes:
        footprint = 2 * parity_bytes  # at least; the parity of each node comes on top
        parts.append(Part(resiliency="Parity", copies=2, redundancy=1, footprint_at_least_bytes=footprint))
    return Volume(
        pool=pool,
        name=name,
        kind="nested-parity" if parity_bytes else "nested-mirror",
        parts=tuple(parts),
        mirror_bytes=mirror_bytes,
        parity_bytes=parity_bytes or None,
    )
