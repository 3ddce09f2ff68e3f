"""The least that a manifest must have, and manifests that are odd."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from diskbook.results.manifest import SCHEMA

MINIMAL: dict[str, Any] = {
    "schema": SCHEMA,
    "run": "one",
    "created_utc": "2026-01-01T00:00:00+00:00",
    "provenance": "emulated",
    "cloud": "emulator",
    "preset": "quick",
    "scenario": {"name": "none"},
    "resource_groups": [],
    "replicates": [],
}

GROUP = {"name": "g", "deleted_utc": None, "expires_utc": None}
CHANGES: list[dict[str, Any]] = [
    {"resource_groups": "all"},
    {"resource_groups": [{"name": "g"}]},
    {"resource_groups": [{**GROUP, "name": "../all"}]},
    {"resource_groups": [{**GROUP, "expires_utc": "soon"}]},
    {"resource_groups": [{**GROUP, "expires_utc": "2026-01-01T00:00:00"}]},
    {"replicates": {"1": {}}},
    {"replicates": [{"replicate": "1"}]},
    {"scenario": "zone-disks"},
    {"created_utc": 7},
    {"emulator": "mine"},
    {"places": [{"path": "/dev/sda"}]},
    {"expires_h": "long"},
    {"expires_h": float("nan")},
    {"expires_h": -1},
    {"max_cost_usd": float("inf")},
    {"cost": [{"expected_usd": float("nan")}]},
    {"kept": "yes"},
    {"versions": [1]},
]
TEXTS = {
    "empty": b"",
    "list": b"[]",
    "cut": b'{"schema": 1, "run":',
    "no text": b"\xff\xfe\x00",
    "deep": b"[" * 100_000,
    "deep within": json.dumps({**MINIMAL, "extra": "@"}).replace('"@"', "[" * 100_000).encode(),
    "other schema": json.dumps({**MINIMAL, "schema": {}}).encode(),
}


def odd(folder: Path) -> dict[str, str]:
    """Make a run folder for everything that is odd: its name, and what that is."""
    texts = {**TEXTS, **{str(change): json.dumps({**MINIMAL, **change}).encode() for change in CHANGES}}
    names = {f"odd-{number}": what for number, what in enumerate(texts)}
    for name, text in zip(names, texts.values(), strict=True):
        (folder / name).mkdir(parents=True)
        (folder / name / "manifest.json").write_bytes(text)
    for pipe in ("manifest.json", "ledger.jsonl", "comparisons.csv"):
        made = folder / f"odd-{pipe}"
        made.mkdir()
        if pipe != "manifest.json":
            (made / "manifest.json").write_text(json.dumps(MINIMAL))
        os.mkfifo(made / pipe)
        names[made.name] = f"{pipe} is a pipe"
    return names
