"""The process of a run of a batch ends with the batch."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import orphans


@pytest.mark.emulator
def test_a_run_ends_when_its_batch_is_killed(tmp_path: Path) -> None:
    starting = (
        "from diskbook.batch import process\n"
        "sys.executable = program\n"
        "process.start((), '{}', sys.stdout.buffer)"
    )
    assert orphans.ends_with_its_parent(starting, tmp_path)
