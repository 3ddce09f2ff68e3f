"""Runs taken together: these runs, and runs like these."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import diskbook as db
from diskbook.api import pooled
from support.run_copies import copies

KEY = ("zrs-z1", "lrs-z1")


@pytest.mark.long
def test_runs_are_pooled_and_one_that_is_there_twice_counts_once(tmp_path: Path) -> None:
    folders = copies(tmp_path, 2)
    runs = db.pool([*folders, folders[0]])
    result = runs.compare(*KEY, workload="randwrite-qd1")
    one = db.open_run(folders[0]).compare(*KEY, workload="randwrite-qd1")
    assert runs.names == ["run-0", "run-1"] and list(result.runs["n_replicates"]) == [3, 3]
    assert result.these_runs.ratio == pytest.approx(one.scope.ratio)
    assert "fewer than 3 runs" in result.runs_like_these.reason and not result.exploratory
    assert result.plot().get_xlabel() == "change, %" and "emulator" in repr(result)
    with pytest.raises(db.UsageError, match="fewer than two runs have a number"):
        runs.compare(*KEY, workload="randwrite-qd256")


def test_runs_that_asked_different_things_are_refused(tmp_path: Path) -> None:
    first, other = copies(tmp_path, 2)
    manifest = json.loads((other / "manifest.json").read_text())
    for disk in manifest["scenario"]["disk"]:
        disk["sku"] = disk["sku"].replace("Premium", "StandardSSD")
    (other / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(db.UsageError, match="asked something else"):
        db.pool([first, other])


def coverage(rng: np.random.Generator, between: float, replicates: Sequence[int]) -> tuple[float, float]:
    """How often each interval holds its truth: the mean of these runs, and that of all runs (0)."""
    held = np.zeros(2)
    for _ in range(2000):
        truths = rng.normal(0, between, len(replicates))
        means = [rng.normal(truth, 0.05, n) for truth, n in zip(truths, replicates, strict=True)]
        scopes = pooled.these_runs(means), pooled.runs_like_these(means)
        for place, (estimate, truth) in enumerate(zip(scopes, (truths.mean(), 0.0), strict=True)):
            held[place] += estimate.low <= np.exp(truth) <= estimate.high
    return tuple(held / 2000)  # type: ignore[return-value]


@pytest.mark.parametrize("replicates", [(3, 3, 3), (2, 5, 3, 3, 4)])
@pytest.mark.parametrize("between", [0.0, 0.03])
def test_both_intervals_hold_their_truth(between: float, replicates: tuple[int, ...]) -> None:
    these, like_these = coverage(np.random.default_rng(20261124), between, replicates)
    assert these == pytest.approx(0.95, abs=0.015)
    if between:
        assert like_these == pytest.approx(0.95, abs=0.02)
    else:
        assert like_these > 0.92
