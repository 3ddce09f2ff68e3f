"""Every PowerShell script parses; cluster steps are compared with their cmdlets besides (test_steps)."""

from __future__ import annotations

from importlib import resources

import pytest

from diskbook.cloud.azure import requests
from diskbook.facts import paths
from diskbook.hosts.powershell import SCRIPTS, SETUP_FACTS, script, setup_script
from support.powershell import syntax_errors

FILES = sorted((paths.ROOT / "lib").rglob("*.ps1"))
TEXTS = {
    **{path.name: path.read_text("utf-8") for path in FILES},
    **{f"script {name}": script(name, name="a'b", number=1) for name in SCRIPTS},
    "set-up": setup_script(),
    "set-up with expiry": requests.windows_setup_script("2026-11-21T01:40:00+00:00"),
    "facts": SETUP_FACTS,
}


def test_all_scripts_of_the_package_are_looked_at() -> None:
    machines = resources.files("diskbook.hosts")
    assert (machines / "windows-setup.ps1").is_file() and len(FILES) >= 15


@pytest.mark.parametrize("name", TEXTS)
def test_every_script_parses(name: str) -> None:
    assert syntax_errors(TEXTS[name]) == []


@pytest.mark.parametrize(
    "mistake", ["\nif ($true {\n", "\n$x = @{ a = 1\n", "\nforeach ($a $b) { $a }\n", "\n'open\n"]
)
def test_a_planted_mistake_is_noticed_in_every_script(mistake: str) -> None:
    unnoticed = [name for name, text in TEXTS.items() if not syntax_errors(text + mistake)]
    assert unnoticed == []
