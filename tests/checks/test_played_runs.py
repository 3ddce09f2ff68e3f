"""Runs with planned looks and runs to pool can be played, and their planted changes are not contradicted."""

from pathlib import Path

import pytest

from checks import played, played_runs


@pytest.mark.emulator
@pytest.mark.long
def test_a_run_with_looks_and_runs_to_pool_are_played(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        played, "SLACK", 0.2
    )  # a machine that adds 1.2 ms to both latencies makes 1.5 of it 1.32
    text, is_false = played_runs.stopped(tmp_path / "looks", 0.5, 1, (2, 4))
    assert " of 4 blocks" in text and not is_false
    pooled = played_runs.pooled(tmp_path / "pool", 0.03, 1, runs=2)
    assert "planted spread 3 %" in pooled and "nan" not in pooled.split("; true mean")[0]
