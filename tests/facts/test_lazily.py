"""A library that is imported when it is first used."""

from __future__ import annotations

import subprocess
import sys

import pytest

from diskbook.facts.lazily import Lazily


def test_it_is_the_library_once_something_of_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    colours = Lazily("colorsys")
    assert "colorsys" not in sys.modules
    assert colours.rgb_to_hsv(0, 0, 1)[2] == 1 and "colorsys" in sys.modules
    with pytest.raises(AttributeError, match="colorsys"):
        _ = colours.nothing


@pytest.mark.emulator
def test_an_emulator_and_the_stages_of_a_run_begin_without_pandas() -> None:
    modules = "sys, diskbook_emulator.server, diskbook.measure.runs.stages"
    code = f"import {modules}; sys.exit('pandas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=120, check=False).returncode == 0
