"""What a run folder records, as tables: volumes and the steps of nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from diskbook.facts import paths
from diskbook.facts.units import GIB
from diskbook.measure.runs.progress import Progress
from diskbook.report import show
from diskbook.report.show import run as show_run
from diskbook.results.run import Run
from support.manifests import MINIMAL

PART = {"name": "m", "copies": 2, "columns": 4, "interleave_bytes": 262144}
VOLUME = {
    "kind": "two-way",
    "nodes": ["n1", "n2"],
    "parts": [PART],
    "size_bytes": 64 * GIB,
    "footprint_bytes": 130 * GIB,
    "path": "C:\\ClusterStorage\\m",
}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    made = Run(tmp_path / "r")
    made.folder.mkdir()
    replicate = {"replicate": 1, "machines": {}, "disks": {}, "volumes": {"mirror": VOLUME}}
    made.write_manifest({**MINIMAL, "run": "r", "replicates": [replicate]})
    return made


def step(run: Run, name: str, node: str, seconds: float, error: str | None = None) -> None:
    answer: dict[str, Any] = {"ok": error is None, "error": error, "changed": [], "seconds": seconds}
    run.append("step", replicate=1, step=name, node=node, **answer)


def test_volumes_are_shown_as_they_were_read_back(run: Run) -> None:
    (row,) = show_run.volumes(run).reset_index().to_dict("records")
    assert (row["replicate"], row["volume"], row["kind"], row["nodes"]) == (1, "mirror", "two-way", "n1, n2")
    assert (row["copies"], row["columns"], row["size_gib"]) == ("2", "4", 64)
    assert row["efficiency"] == pytest.approx(64 / 130)


def test_steps_are_counted_with_what_the_last_failure_said(run: Run) -> None:
    step(run, "enable", "n1", 2.0, "<no> (step enable on r1-n1)")
    step(run, "enable", "n1", 4.0)
    step(run, "place", "n1", 1.0)
    shown = show_run.steps(run)
    assert shown.loc[(1, "enable", "n1")].to_list() == [2, 1, 3.0, "<no> (step enable on r1-n1)"]
    assert shown.loc[(1, "place", "n1")].to_list()[:3] == [1, 0, 1.0]
    assert "&lt;no&gt; (step enable on r1-n1)" in show.recorded(shown, "Steps", "emulated")


def test_a_run_without_volumes_has_none_to_show() -> None:
    sample = Run(paths.RUNS / "sample-zone-disks")
    for table in (show_run.volumes(sample), show_run.steps(sample)):
        assert show.recorded(table, "Volumes", "emulated") == "<p>Volumes (emulated): none.</p>"


def test_a_step_is_told_while_the_run_goes_on(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress(run.folder / "ledger.jsonl", 1)
    step(run, "enable", "n1", 2.0)
    step(run, "place", "n1", 1.0)
    step(run, "idle", "n1", 1.0, "a job runs (step idle on r1-n1)")
    run.append("prefill", disk="", volume="mirror", bytes=2**20, caps_lifted=True)
    for name in ("create network interface", "create machine", "create disk"):
        run.append("operation", name=name, target="r1-x", real_s=41.6)
    progress.follow()
    assert capsys.readouterr().out.splitlines() == [
        "  step enable on n1: 2.0 s",
        "  step failed: a job runs (step idle on r1-n1)",
        "  prefill mirror: 1 MiB, caps lifted",
        "  create machine r1-x: 42 s",
        "  create disk r1-x: 42 s",
    ]
