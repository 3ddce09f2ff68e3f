"""Threads may make and read the SDK's models as soon as they have a client."""

from __future__ import annotations

import subprocess
import sys

import pytest

from support import sdk_models

PROCESSES = 3
"""Without `models.fill` 161 of 200 fresh processes failed with the models of compute alone."""


@pytest.mark.emulator
def test_all_models_are_made_and_read_in_threads() -> None:
    command = [sys.executable, "-P", sdk_models.__file__, str(PROCESSES)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    models, _, result = done.stdout.partition(" models, ")
    assert result == f"0 of {PROCESSES} processes failed\n", done.stdout + done.stderr
    assert int(models) > 1800
