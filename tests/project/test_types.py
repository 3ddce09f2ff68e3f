"""Types are checked beside the other tests: over a minute on one core, less where mypy has kept its cache."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from diskbook.facts import paths


@pytest.mark.emulator
def test_types_are_what_they_say() -> None:
    checker = Path(sys.executable).with_name("mypy")
    done = subprocess.run([checker, "--no-error-summary"], cwd=paths.ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
