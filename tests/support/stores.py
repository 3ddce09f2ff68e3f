"""Small runs for stores, made through the writer of run folders."""

from __future__ import annotations

import json
from pathlib import Path

from diskbook.results.run import Run
from support.manifests import MINIMAL


def small_run(folder: Path, trials: int = 3) -> Run:
    """A finished run of a few trials, with a key and a lock that must stay where they are."""
    folder.mkdir(parents=True)
    run = Run(folder)
    run.write_manifest({**MINIMAL, "run": folder.name, "provenance": "emulated", "scenario": {"name": "x"}})
    for number in range(trials):
        add_trial(run, number)
    run.append("stage", stage="benchmark")
    (folder / "keys").mkdir()
    (folder / "keys" / "id_ed25519").write_text("PRIVATE")
    (folder / ".lock").touch()
    (folder / "figures").mkdir()
    (folder / "figures" / "ratios@2x.png").write_bytes(bytes(range(256)) * 40)
    return run


def add_trial(run: Run, number: int) -> None:
    """One more trial: its raw result, then its line."""
    raw = run.write_raw(f"r1-b{number:02}.json", json.dumps({"trial": number, "ios": [number] * 50}).encode())
    run.append("trial", trial=f"r1-b{number:02}", files={"result": raw})


def contents(folder: Path) -> dict[str, bytes]:
    """All files of a run but those that no store gets."""
    files = (path for path in folder.rglob("*") if path.is_file())
    names = {path.relative_to(folder).as_posix(): path for path in files}
    kept = {name: path for name, path in names.items() if not name.startswith(("keys/", "."))}
    return {name: path.read_bytes() for name, path in kept.items()}
