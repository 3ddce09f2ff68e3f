"""The run book of the first day on Azure, read as `make rehearse` reads it and plays it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from checks import rehearse
from diskbook_emulator.lifecycle import Connection

PAGE = """\
```sh
not this
```

```sh rehearse
az login        # or another way
# a line of its own
diskbook run x --preset standard \\
    --ssh-source YOUR.IPV4.ADDRESS    # your own
```
"""


def test_the_commands_of_marked_blocks_are_read_in_order() -> None:
    assert rehearse.commands(PAGE, "quick") == [
        "az login",
        "diskbook run x --preset quick --ssh-source 203.0.113.7",
    ]


def test_the_run_book_goes_from_sign_in_to_record() -> None:
    commands = rehearse.commands(rehearse.PAGE.read_text("utf-8"))
    assert commands[:2] == ["az login", "make setup"]
    assert all(command.startswith(".venv/bin/diskbook ") for command in commands[2:])
    named = [command.split()[1] for command in commands[2:]]
    assert named[:3] == ["doctor", "plan", "run"] and {"why", "sweep"} < {*named} and named[-1] == "record"


@pytest.mark.emulator
def test_nobody_is_signed_in_before_az_login(tmp_path: Path) -> None:
    emulator = SimpleNamespace(subscription_id="s", tenant_id="t", token="x")
    rehearse._write_az(tmp_path, cast("Connection", emulator))
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "AZURE_CONFIG_DIR": str(tmp_path / "azure")}
    said = [
        subprocess.run(["az", *words.split()], env=environment, capture_output=True, text=True)
        for words in (
            "account get-access-token --resource r",
            "login",
            "account get-access-token --resource r",
        )
    ]
    assert [done.returncode for done in said] == [1, 0, 0]
    assert "Please run 'az login'" in said[0].stderr and json.loads(said[2].stdout)["accessToken"] == "x"
