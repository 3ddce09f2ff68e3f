"""What an emulator plays and has played: the source of `truth.json`. Pure. No analysis may read it."""

import importlib
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from diskbook.design.vocabulary import Provenance
from diskbook.facts.units import KIB
from diskbook_emulator.model import Model
from diskbook_emulator.records import Attachment, Book, VolumeRecord, group_of
from diskbook_emulator.types import DiskSpec, Latency, Session, VmSpec
from diskbook_emulator.volume_host import Volume, VolumeHost
from diskbook_emulator.volumes import Layout, expected_write_ms


def played(model: Model, book: Book, sessions: Callable[[Attachment], list[Session]]) -> dict[str, Any]:
    """Return population and realised truth of all machines, disks and attachments, also of those gone.

    - `sessions`: gives the sessions of an attachment, those of a disk in use as well.
    """
    vms = {**book.gone, **book.vms}
    blocks = {vm_id: record.block for vm_id, record in vms.items()}
    disks = {attachment.disk.id: attachment.disk for attachment in book.attachments}
    return {
        "machines": [_machine(model, record.spec, record.block) for record in vms.values()],
        "disks": [_disk(model, disk, max(blocks.values())) for disk in disks.values()],
        "attachments": [
            _attachment(model, vms[attachment.vm_id].spec, attachment, sessions(attachment))
            for attachment in book.attachments
        ],
    }


def _machine(model: Model, vm: VmSpec, blocks: int) -> dict[str, Any]:
    uncached, cached = model.vm_limits(vm)
    return {
        "machine_id": vm.id,
        "name": vm.name,
        "size": vm.size,
        "zone": vm.zone,
        "log_factor": model.machine_log(vm.id),
        "slow_log": model.slow_machine_log(vm.id),
        "offset_us": model.machine_us(vm.id),
        "moves": model.machine_moves(vm.id, blocks),
        "credit_share": model.credit_share(vm.id),
        "limits_uncached": asdict(uncached),
        "limits_cached": asdict(cached),
    }


def _disk(model: Model, disk: DiskSpec, blocks: int) -> dict[str, Any]:
    return {
        "disk_id": disk.id,
        "name": disk.name,
        "sku": disk.sku,
        "zone": disk.zone,
        "home_zone": model.home_zone(disk),
        "log_factor": model.disk_log(disk.id),
        "slow_log": model.slow_disk_log(disk.id),
        "moves": model.disk_moves(disk.id, blocks),
        "limits": asdict(model.disk_limits(disk)),
    }


def _attachment(model: Model, vm: VmSpec, attachment: Attachment, sessions: list[Session]) -> dict[str, Any]:
    population = asdict(model.population(vm, attachment.disk))
    return {
        "machine_id": vm.id,
        "disk_id": attachment.disk.id,
        "lun": attachment.lun,
        "caching": attachment.caching,
        "attached": attachment.attached,
        "detached": attachment.detached,
        "log_factor": model.pair_log(vm.id, attachment.disk.id),
        "slow_log": model.slow_machine_log(vm.id) + model.slow_disk_log(attachment.disk.id),
        "added_ms": {op: model.offset_ms(vm.id, population[f"{op}_mean_ms"]) for op in OPS},
        "population": population,
        "sessions": [asdict(session) for session in sessions],
    }


# ---- volumes: layout, and what their latencies and limits must come to


BLOCKS = (4 * KIB, 8 * KIB, 64 * KIB)
DRAWS = 20_000
"""For each set of disks that hold the copies of something: 0.2 % at sigma 0.2, and there are many sets."""
MOST_BANDS = 256
"""Of a volume, in which all sets of disks that hold copies are met about as often as in all of them."""


def of_volumes(model: Model, book: Book, host: VolumeHost) -> list[dict[str, Any]]:
    """Return the truth of all volumes, also of those that have ended."""
    return [_of_volume(model, book, host, record) for record in book.spaces.volumes]


def _of_volume(model: Model, book: Book, host: VolumeHost, record: VolumeRecord) -> dict[str, Any]:
    settings = model.profile.volumes
    made = host.volumes.get(record.number)
    counts = made.file.counts() if made else record
    zones = {book.spec(vm_id).zone for vm_id in record.nodes}
    expected = _Expected(record, host, settings.hop_ms if len(zones) == 1 else settings.zone_hop_ms, model)
    of_owners = {vm_id: expected.means(node, noise=True) for node, vm_id in enumerate(record.nodes)}
    return {
        "id": f"{group_of(record.nodes[0]).rpartition('/')[2]}/{record.name}",
        "name": record.name,
        "kind": record.kind,
        **_shape(record),
        "owner": record.nodes[made.file.owner] if made else None,
        "settings": {**asdict(settings), "hop_ms": expected.hop_ms},
        "population": expected.means(0, noise=False),
        "expected": of_owners,
        "expected_write_ms": of_owners[record.nodes[0]]["write_mean_ms"],
        "caps": list(_caps(model, book, record)),
        "repair_found_bytes": counts.repair_found,
        "repair_done_bytes": counts.repair_done,
        "tiers": _tiers(made),
        "uses": [
            {"machine_id": vm_id, "sessions": [asdict(entry) for entry in host.sessions(record, vm_id)]}
            for vm_id in record.nodes
        ],
    }


def _tiers(made: Volume | None) -> dict[str, float] | None:
    """How full the mirror tier of a volume with two is now, and what has passed it by since it was made."""
    if made is None or len(made.layout.tiers) == 1:
        return None
    counts = made.file.counts()
    return {
        "mirror_fill": made.file.mirror_fill(),
        "reallocated_regions": counts.reallocated,
        "in_place_bytes": counts.in_place_bytes,
        "rotated_bytes": counts.rotated_bytes,
    }


def _shape(record: VolumeRecord) -> dict[str, Any]:
    layout = record.layout
    _, copies, columns = layout.tiers[0].members.shape
    return {
        "machines": record.nodes,
        "disks": [disk.disk_id for disk in record.disks],
        "copies": copies,
        "columns": columns,
        "interleave_bytes": layout.interleave_bytes,
        "size_bytes": layout.size_bytes,
        "footprint_bytes": layout.footprint_bytes,
    }


class _Expected:
    """Mean latencies of a volume whose mirror answers, for a load on its owner, one I/O at a time."""

    def __init__(self, record: VolumeRecord, host: VolumeHost, hop_ms: float, model: Model) -> None:
        self.layout: Layout = record.layout
        self.hop_ms, self.model = hop_ms, model
        self.played = [host.played(disk) for disk in record.disks]

    def means(self, owner: int, *, noise: bool) -> dict[str, float]:
        """Means in ms by operation; `noise` is that of disks and machines as they stand."""
        settings, members = self.model.profile.volumes, range(len(self.played))
        alone = [self._mean(self.played[at].read, at, noise) for at in members]
        own = [alone[at] for at in members if self.layout.nodes[at] == owner]
        others = [alone[at] + self.hop_ms for at in members if self.layout.nodes[at] != owner] or own
        local = settings.local_share
        read = local * float(np.mean(own)) + (1 - local) * float(np.mean(others))
        write, flush = (self._slowest(name, owner, noise) for name in ("write", "flush"))
        software = settings.software_ms
        return {
            "read_mean_ms": read + software,
            "write_mean_ms": write + software,
            "flush_mean_ms": flush,
        }

    def _mean(self, latency: Latency, at: int, noise: bool) -> float:
        factor = math.exp(self.played[at].log_factor) if noise else 1.0
        return latency.mean_ms * factor + (latency.offset_ms if noise else 0.0)

    def _slowest(self, name: str, owner: int, noise: bool) -> float:
        """Mean of the slowest copy, over all sets of disks that hold the copies of something."""
        members = self.layout.tiers[0].members[:MOST_BANDS]
        rows = members.transpose(0, 2, 1).reshape(-1, members.shape[1])
        sets, counts = np.unique(rows, axis=0, return_counts=True)
        means = [self._of_set(name, row, owner, noise) for row in sets.tolist()]
        return float(np.average(means, weights=counts))

    def _of_set(self, name: str, row: Sequence[int], owner: int, noise: bool) -> float:
        latencies: list[Latency] = [getattr(self.played[at], name) for at in row]
        means = [self._mean(latency, at, noise) for latency, at in zip(latencies, row, strict=True)]
        hops = [self.hop_ms if self.layout.nodes[at] != owner else 0.0 for at in row]
        sigma, hop_sigma = latencies[0].sigma, self.model.profile.volumes.hop_sigma
        return _slowest_mean(tuple(means), sigma, tuple(hops), hop_sigma)


@lru_cache(maxsize=1024)
def _slowest_mean(means: tuple[float, ...], sigma: float, hops: tuple[float, ...], hop_sigma: float) -> float:
    return expected_write_ms(means, sigma, hops, DRAWS, hop_sigma)


def _caps(model: Model, book: Book, record: VolumeRecord) -> Iterator[dict[str, Any]]:
    """Rates at which limits bind, as they are played, with credit and without."""
    vm = model.vm_limits(book.spec(record.nodes[0]))[0]
    disk = model.disk_limits(book.disk(record.disks[0].disk_id))
    settings = model.profile.volumes
    # Only here: it imports pandas and SciPy, more than half of the time in which an emulator starts.
    volume_bound = importlib.import_module("diskbook.clusters.stats.volume_bound")
    out, into = (limits.mb_s if limits else None for limits in model.network_limits())
    columns = record.columns
    shape = volume_bound.Shape(
        record.kind,
        record.disks_a_node,
        columns,
        len(record.nodes),
        record.interleave_kib,
    )
    rates = [
        volume_bound.Rates(limits.iops, limits.mb_s, limits.burst_iops, limits.burst_mb_s)
        for limits in (disk, vm)
    ]
    for remote in (False, True) if len(record.nodes) > 1 else (False,):
        local = settings.local_share
        setup = volume_bound.Setup(shape, *rates, out, into, local, remote)
        for block in BLOCKS:
            for write_share in (0.0, 1.0):
                for spent in (False, True):
                    bound = volume_bound.bound(setup, volume_bound.Load(block, write_share), spent=spent)
                    place = {"block_bytes": block, "write_share": write_share, "remote": remote}
                    yield {**place, "spent": spent, "iops": bound.iops, "limit": bound.words}


SCHEMA = 1
OPS = ("read", "write", "flush")
WARNING = "emulated: planted by the emulator, never Azure's; not to be read by any analysis"


@dataclass(frozen=True)
class TrialWindow:
    """A trial as the run's ledger knows it; ids are ARM ids (case does not matter), times epoch seconds."""

    trial: str
    machine_id: str
    disk_id: str
    started: float
    ended: float


def build_truth(response: Mapping[str, Any], trials: Iterable[TrialWindow]) -> dict[str, Any]:
    """Join what the emulator played with the trials of a run.

    - `response`: what the emulator's truth endpoint answered, read at the end of the run, before teardown or
      after.

    Returns `emulator` (name, profile, seed, noise, caps, attach, disks), `machines`, `disks`, `attachments`
    (population and realised means, ms, one entry a machine and disk), `volumes` (see `volume_truth`) and
    `trials` (realised means, ms, of the session that overlaps the trial most; `matched` is False where none
    does).
    """
    attachments = response["attachments"]
    volumes = response.get("volumes", [])
    played = [*attachments, *(use for volume in volumes for use in _uses(volume))]
    return {
        "schema": SCHEMA,
        "provenance": Provenance.EMULATED,
        "warning": WARNING,
        "emulator": response["emulator"],
        "machines": response["machines"],
        "disks": response["disks"],
        "attachments": _pairs(attachments),
        "volumes": [{key: volume[key] for key in volume if key != "uses"} for volume in volumes],
        "trials": [_trial_truth(window, played) for window in trials],
    }


def merge(earlier: Mapping[str, Any], later: Mapping[str, Any]) -> dict[str, Any]:
    """Put the truth of a resumed run together: what an emulator that is gone played is in `earlier` only."""
    merged = dict(later)
    for key in ("machines", "disks", "attachments", "volumes"):
        keys = [_key(item) for item in later[key]]
        merged[key] = [item for item in earlier.get(key, []) if _key(item) not in keys] + list(later[key])
    matched = {item["trial"]: item for item in earlier["trials"] if item["matched"]}
    merged["trials"] = [
        item if item["matched"] else matched.get(item["trial"], item) for item in later["trials"]
    ]
    return merged


def _key(item: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(item.get(name) for name in ("id", "machine_id", "disk_id", "caching"))


def _uses(volume: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What each machine did on a volume, as if that were a disk attached there."""
    for use in volume["uses"]:
        yield {**use, "disk_id": volume["id"], "population": volume["population"], "is_volume": True}


def _pairs(attachments: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return one entry a machine, disk and caching, however often the disk was attached there."""
    pairs: dict[tuple[str, str, str], dict[str, Any]] = {}
    for attachment in attachments:
        key = (attachment["machine_id"], attachment["disk_id"], attachment["caching"])
        if key not in pairs:
            factor, added_ms = math.exp(attachment["log_factor"]), attachment["added_ms"]
            means = {op: attachment["population"][f"{op}_mean_ms"] * factor + added_ms[op] for op in OPS}
            pairs[key] = {
                "machine_id": key[0],
                "disk_id": key[1],
                "caching": key[2],
                "log_factor": attachment["log_factor"],
                "added_ms": added_ms,
                "slow_log": attachment["slow_log"],
                "population": attachment["population"],
                "realised": {f"{op}_mean_ms": mean for op, mean in means.items()},
                "times_attached": 0,
            }
        pairs[key]["times_attached"] += 1
    return list(pairs.values())


def _trial_truth(window: TrialWindow, attachments: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    best, best_s, owner = None, 0.0, None
    for attachment in attachments:
        if not _is_of(window, attachment):
            continue
        for session in attachment["sessions"]:
            ended = math.inf if session["ended"] is None else session["ended"]
            overlap_s = max(0.0, min(window.ended, ended) - max(window.started, session["started"]))
            if overlap_s > best_s:
                best, best_s, owner = session, overlap_s, attachment
    truth: dict[str, Any] = {"trial": window.trial, "matched": best is not None}
    if best is None or owner is None:
        return truth
    truth |= {"machine_id": owner["machine_id"], "disk_id": owner["disk_id"], "trial_log": best["trial_log"]}
    truth |= {key: best[key] for key in ("reads", "writes", "flushes")}
    truth["population"] = {f"{op}_mean_ms": owner["population"][f"{op}_mean_ms"] for op in OPS}
    truth["realised"] = {f"{op}_mean_ms": best[f"{op}_mean_ms"] for op in OPS}
    return truth


def _is_of(window: TrialWindow, attachment: Mapping[str, Any]) -> bool:
    if attachment.get("is_volume"):  # a run may put its replicate before the name: group/r1-name
        group, _, name = (re.escape(part) for part in attachment["disk_id"].partition("/"))
        of_volume = re.fullmatch(rf"{group}/(r\d+-)?{name}", window.disk_id, re.IGNORECASE)
        return of_volume is not None and window.machine_id.lower() == attachment["machine_id"].lower()
    return (window.machine_id.lower(), window.disk_id.lower()) == (
        attachment["machine_id"].lower(),
        attachment["disk_id"].lower(),
    )
