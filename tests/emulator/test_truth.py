"""truth.json: trials find their sessions, population and realised truth stay apart."""

from __future__ import annotations

import math
from typing import Any

import pytest

from diskbook_emulator.played import TrialWindow, build_truth


def session(index: int, started: float, ended: float | None, read_ms: float) -> dict[str, Any]:
    return {
        "index": index,
        "started": started,
        "ended": ended,
        "trial_log": 0.01 * index,
        "reads": 500,
        "writes": 0,
        "flushes": 0,
        "read_mean_ms": read_ms,
        "write_mean_ms": None,
        "flush_mean_ms": None,
    }


def attachment(machine: str, disk: str, read_ms: float, *sessions: dict[str, Any]) -> dict[str, Any]:
    return {
        "machine_id": machine,
        "disk_id": disk,
        "lun": 0,
        "caching": "None",
        "attached": 0.0,
        "detached": None,
        "log_factor": 0.05,
        "added_ms": {"read": 0.02, "write": 0.02, "flush": 0.02},
        "slow_log": 0.0,
        "population": {
            "site": "default",
            "option": "none",
            "zone_relation": "home",
            "read_mean_ms": read_ms,
            "write_mean_ms": 1.3,
            "flush_mean_ms": 0.1,
        },
        "sessions": list(sessions),
    }


RESPONSE = {
    "emulator": {"name": "e", "profile": "default", "seed": 1},
    "machines": [{"machine_id": "/vms/a", "log_factor": 0.05}],
    "disks": [{"disk_id": "/disks/a", "log_factor": 0.0}],
    "attachments": [
        attachment("/vms/a", "/disks/a", 2.2, session(0, 100, 101.4, 2.31), session(1, 101.5, 103, 2.35)),
        attachment("/vms/a", "/disks/b", 4.3, session(0, 101.6, 102.9, 4.5)),
        attachment("/vms/a", "/disks/a", 2.2, session(0, 200, None, 2.4)),
    ],
}


def truth(*windows: TrialWindow) -> dict[str, Any]:
    return build_truth(RESPONSE, windows)


@pytest.mark.parametrize(
    ("disk", "started", "ended", "read_ms"),
    [
        ("/disks/a", 99.8, 101.45, 2.31),
        ("/disks/a", 101.3, 103.2, 2.35),  # touches the first session, lies in the second
        ("/DISKS/A", 101.4, 103.1, 2.35),
        ("/disks/b", 101.4, 103.1, 4.5),
        ("/disks/a", 201.0, 203.0, 2.4),  # attached again, still open
    ],
)
def test_a_trial_gets_the_session_it_overlaps_most(
    disk: str, started: float, ended: float, read_ms: float
) -> None:
    (found,) = truth(TrialWindow("t1", "/vms/a", disk, started, ended))["trials"]
    assert found["matched"]
    assert found["realised"]["read_mean_ms"] == read_ms
    assert found["population"]["read_mean_ms"] == (4.3 if disk == "/disks/b" else 2.2)


@pytest.mark.parametrize(
    ("machine", "disk", "started"),
    [("/vms/b", "/disks/a", 100.0), ("/vms/a", "/disks/c", 100.0), ("/vms/a", "/disks/a", 150.0)],
)
def test_a_trial_without_a_session_is_not_matched(machine: str, disk: str, started: float) -> None:
    (found,) = truth(TrialWindow("t1", machine, disk, started, started + 1))["trials"]
    assert found == {"trial": "t1", "matched": False}


def test_attachments_are_counted_once_a_machine_and_disk() -> None:
    first, second = truth()["attachments"]
    assert (first["disk_id"], first["times_attached"]) == ("/disks/a", 2)
    assert (second["disk_id"], second["times_attached"]) == ("/disks/b", 1)
    assert first["population"]["read_mean_ms"] == 2.2
    assert first["realised"]["read_mean_ms"] == pytest.approx(2.2 * math.exp(0.05) + 0.02)
    assert (first["added_ms"]["write"], first["slow_log"]) == (0.02, 0.0)


def test_everything_says_emulated() -> None:
    assert truth()["provenance"] == "emulated"
    assert truth()["emulator"]["seed"] == 1
