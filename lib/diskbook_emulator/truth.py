"""The content of a run's `truth.json`: what the emulator played. Pure. No analysis may read it.

Population truth is what the profile says, without any noise. Realised truth is what these machines, disks and
trials really got: the profile times their own constants, with what the machine adds, and for a trial the mean
of all latencies drawn. `moves` of machines and disks are what wander and shifts added to the logs, by block.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from diskbook.design.vocabulary import Provenance

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
            overlap_s = _overlap_s(window, session)
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


def _overlap_s(window: TrialWindow, session: Mapping[str, Any]) -> float:
    ended = math.inf if session["ended"] is None else session["ended"]
    return max(0.0, min(window.ended, ended) - max(window.started, session["started"]))
