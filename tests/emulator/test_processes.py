"""The emulator's processes end with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import orphans


@pytest.mark.emulator
def test_what_the_emulator_starts_ends_when_it_is_killed(tmp_path: Path) -> None:
    starting = (
        "from pathlib import Path\n"
        "from diskbook_emulator import processes\n"
        "processes.spawn([program], cwd=Path('/'), env={}, output=Path('/dev/stdout'))"
    )
    assert orphans.ends_with_its_parent(starting, tmp_path)
