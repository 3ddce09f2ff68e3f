"""Attachment and guest of each trial, from the ledger: how long ago its disk was attached, and its machine.

Of an attach the time at which it ended, of a disk the time at which Azure had created it. Of a volume it is
the last of its pool's disks that counts. Where nothing is attached, as on your own hosts, or none of it was
recorded, nothing is known.

Also builds the rows of the table `guest`: the trial's machine, its device and the time spent.
"""

import hashlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from diskbook.design import schema, totals
from diskbook.design.model import Workload
from diskbook.facts import files
from diskbook.facts.errors import DiskbookError
from diskbook.facts.units import epoch
from diskbook.tools import registry
from diskbook.tools.record import Measurement

Event = Mapping[str, Any]
_ANY = 0
"""Of attaches of pools that do not say their replicate: all are attached at the run's beginning."""
COLUMNS = ("since_attach_s", "since_create_s", "attaches_in_block")


@dataclass
class _Known:
    """What happened to the disks of a run so far, in the order of its ledger; times are epoch seconds."""

    attached: dict[tuple[int, str, str], float]
    created: dict[str, float]
    part: Counter[int]  # of the ledger of a replicate: each of its blocks begins one, and ends it
    attaches: Counter[tuple[int, int, str]]


def by_trial(manifest: Mapping[str, Any], events: Sequence[Event]) -> dict[str, dict[str, float | None]]:
    """The columns `COLUMNS` of every trial, by its name; None where nothing is known."""
    replicate_of = _replicates(events)
    known = _Known({}, {}, Counter(), Counter())
    place: dict[str, tuple[int, int]] = {}
    rows: dict[str, dict[str, float | None]] = {}
    disks: dict[str, tuple[str, ...]] = {}
    for line, event in enumerate(events):
        match event["event"]:
            case "block":
                known.part[event["replicate"]] += 1
            case "operation" if event.get("name") == "create disk":
                known.created[event["target"]] = epoch(event["time_utc"])
            case "attached" if line in replicate_of:
                _add(known, replicate_of[line], event)
            case "trial":
                replicate = event["replicate"]
                disks[event["trial"]] = _disks(manifest, event)
                place[event["trial"]] = replicate, known.part[replicate]
                rows[event["trial"]] = _since(manifest, event, known, disks[event["trial"]])
    for trial, row in rows.items():
        if row["since_attach_s"] is not None:  # all of the block's, also those after the trial
            row["attaches_in_block"] = max(known.attaches[(*place[trial], disk)] for disk in disks[trial])
    return rows


def _add(known: _Known, replicate: int, event: Event) -> None:
    known.attached[replicate, event["disk"], event["machine"]] = epoch(event["time_utc"])
    known.attaches[replicate, known.part[replicate], event["disk"]] += 1


def _since(
    manifest: Mapping[str, Any], event: Event, known: _Known, disks: Sequence[str]
) -> dict[str, float | None]:
    """Times from the last attach of a trial's disks, and from their creation, to its beginning."""
    replicate, began = event["replicate"], epoch(event["started_utc"])
    rows: Mapping[str, Any] = next(
        (row["disks"] for row in manifest["replicates"] if row["replicate"] == replicate), {}
    )
    attached = [
        time
        for (number, disk, machine), time in known.attached.items()
        if number in (replicate, _ANY) and disk in disks and time <= began
        if event.get("volume") or machine == event["machine"]
    ]
    names = [rows[disk]["id"].rsplit("/", 1)[-1] for disk in disks if disk in rows and "id" in rows[disk]]
    created = [known.created[name] for name in names if name in known.created]
    return {
        "since_attach_s": began - max(attached) if attached else None,
        "since_create_s": began - max(created) if created else None,
        "attaches_in_block": None,
    }


def _disks(manifest: Mapping[str, Any], event: Event) -> tuple[str, ...]:
    """Names of the disk that a trial measured, or of those of its volume's pool."""
    if not event.get("volume"):
        return (event["disk"],) if event.get("disk") else ()
    scenario = manifest["scenario"]
    arm = next(item for item in scenario["arm"] if item["name"] == event["arm"])
    volume = next(item for item in scenario["volume"] if item["name"] == arm["volume"])
    nodes = [volume["machine"]] if volume.get("machine") else _nodes(scenario, volume["cluster"])
    count = next(item.get("count", 1) for item in scenario["disk"] if item["name"] == volume["disk"])
    return tuple(f"{volume['disk']}-{node}-{n}" for node in nodes for n in range(1, count + 1))


def _nodes(scenario: Mapping[str, Any], cluster: str) -> Sequence[str]:
    nodes: Sequence[str] = next(item["nodes"] for item in scenario["cluster"] if item["name"] == cluster)
    return nodes


def _replicates(events: Sequence[Event]) -> dict[int, int]:
    """Replicate of each attach, by its place in the ledger.

    Older runs do not say it. Of those of several replicates, which may run side by side, an attach belongs to
    the one that is not measuring just then, and whose next trial is of that disk on that machine: of several
    that which begins first. The last attach before a trial is the trial's; others of theirs stay unknown.
    """
    attached = {line: event for line, event in enumerate(events) if event["event"] == "attached"}
    replicates = {line: event["replicate"] for line, event in attached.items() if event.get("replicate")}
    trials = [event for event in events if event["event"] == "trial"]
    numbers = sorted({event["replicate"] for event in trials})
    if len(numbers) == 1:
        return {**dict.fromkeys(attached, numbers[0]), **replicates}
    spans = {number: _spans(trials, number) for number in numbers}
    taken: set[tuple[int, float]] = set()
    alone = {event.get("disk") for event in trials}
    for line in sorted(attached.keys() - replicates.keys(), reverse=True):
        if attached[line]["disk"] not in alone:
            replicates[line] = _ANY
            continue
        owner = next(iter(sorted(_owners(attached[line], spans) - taken, key=lambda pair: pair[1])), None)
        if owner is not None:
            taken.add(owner)
            replicates[line] = owner[0]
    return replicates


Span = tuple[float, float, str, str]
"""Begin and end of a trial, its disk (the volume's name for a volume), and its machine."""


def _spans(trials: Iterable[Event], replicate: int) -> list[Span]:
    return sorted(
        (epoch(event["started_utc"]), epoch(event["ended_utc"]), event.get("disk") or "", event["machine"])
        for event in trials
        if event["replicate"] == replicate
    )


def _owners(event: Event, spans: Mapping[int, Sequence[Span]]) -> set[tuple[int, float]]:
    """Replicates that may have attached a disk, each with when its next trial begins."""
    owners, at = set(), epoch(event["time_utc"])
    for replicate, of_replicate in spans.items():
        following = bisect_left(of_replicate, (at,))
        busy = following > 0 and of_replicate[following - 1][1] > at
        if not busy and following < len(of_replicate):
            began, _, disk, machine = of_replicate[following]
            if (disk, machine) == (event["disk"], event["machine"]):
                owners.add((replicate, began))
    return owners


_COPIED = (
    *("kernel", "cpu_model", "driver", "scheduler", "write_cache", "power_plan", "fua", "rotational"),
    *("nr_requests", "hardware_queues", "wbt_lat_usec", "logical_block_size_bytes"),
)


class GuestRows:
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
        """Name what made the writes of a trial durable (`totals.durability`)."""
        answer = self._latest.get(_key(event), {})
        return totals.durability(
            workload.sync, engine_of(answer, workload), _facts(answer).get("write_cache")
        )

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
    if engine == totals.NBD:
        return totals.NBD
    return workload.ioengine if engine in totals.KERNEL else None


def _facts(answer: Event) -> Mapping[str, Any]:
    facts = answer.get("facts")
    return facts if isinstance(facts, Mapping) else {}


def _key(event: Event) -> tuple[Any, ...]:
    return event.get("replicate"), event.get("machine"), event.get("disk_id")


def read_bytes(folder: Path, entry: Mapping[str, str]) -> bytes:
    """Return the content of a raw file as the tool wrote it.

    - `entry`: `path` in it, and `sha256` of the uncompressed bytes, as the ledger has them.

    Raises DiskbookError when the file is missing, damaged, too large, or not what was measured.
    """
    path = path_of(folder, entry)
    try:
        content = files.read_packed(path)
    except FileNotFoundError:
        raise DiskbookError(f"{path} is missing; restore the raw results of this run") from None
    except (OSError, files.BrokenError) as error:
        why = getattr(error, "why", error)
        raise DiskbookError(f"{path} cannot be unpacked ({why}); restore the raw results") from None
    if hashlib.sha256(content).hexdigest() != entry["sha256"]:
        raise DiskbookError(
            f"{path} was changed after the trial: its hash differs from the ledger's; restore it"
        )
    return content


def path_of(folder: Path, entry: Mapping[str, str]) -> Path:
    """Return the path of a raw file, always inside the run's own folder of raw files.

    Raises DiskbookError when the ledger names a path outside of it, or a folder.
    """
    place = PurePosixPath(entry["path"])
    path = folder / place
    if place.parts[:1] != ("raw",) or ".." in place.parts or (path.exists() and not path.is_file()):
        raise DiskbookError(
            f"the ledger of {folder.name} names {str(place)!r} as a raw file; restore the ledger"
        )
    return path


def read_trial(folder: Path, event: Mapping[str, Any], workload: Workload) -> Measurement:
    """Read and parse the files of a finished trial.

    Raises DiskbookError: see `read_bytes`; `UnusableError` when the output is not usable.
    """
    tool, result = registry.TOOLS[registry.name_of(event)], registry.result_file(event)
    if result is None:
        raise DiskbookError(
            f"{folder.name}: the ledger has no raw file for the finished trial {event['trial']}; restore it"
        )
    files = {kind: read_bytes(folder, entry) for kind, entry in event["files"].items()}
    return tool.read(files, result["path"], series_s=workload.series_s, instances=workload.instances)
