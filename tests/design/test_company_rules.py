"""Tags of the user's own within Azure's limits, and the group that the user names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from diskbook.cloud.azure import provision
from diskbook.design import company_rules, scenario_file
from diskbook.design.model import Scenario
from diskbook.facts.errors import UsageError
from diskbook.results import session
from diskbook.results.run import Run


def _with_tags(tags: dict[str, Any], scenario: str = "zone-disks") -> Scenario:
    return scenario_file.load(scenario, "quick", {"azure.tags": tags})


def test_own_tags_go_on_everything_and_ours_are_counted(tmp_path: Path) -> None:
    run = Run(tmp_path / "run")
    scenario = _with_tags({"cost center": "4711", "Owner": ""})
    tags = provision.group_tags("run", scenario, "2026-01-01T00:00:00+00:00")
    assert tags["cost center"] == "4711" and tags["Owner"] == ""
    ours = {**tags, **session.tags(run, "s", "g")}.keys() - scenario.azure.tags.keys()
    assert ours == set(company_rules.OURS)


@pytest.mark.parametrize(
    ("tags", "said"),
    [
        ({f"t{number}": "" for number in range(41)}, "41 tags; Azure takes 50 per resource, of which 10"),
        ({"n" * 513: ""}, "its name has 513 characters, and a tag may have 512"),
        ({"n": "v" * 257}, "has 257 characters, and Azure takes 256"),
        ({"": "x"}, "a name has one character or more"),
        ({"a<b": "x"}, "has '<' in its name, which Azure refuses"),
        ({"a/b": "x"}, "has '/' in its name"),
        ({"Team": "a", "team": "b"}, "team is there twice"),
        ({"Diskbook-run": "mine"}, "names with 'diskbook-' in front are diskbook's"),
        ({"a": "b\x1b[2J"}, "the value of 'a' has control characters"),
        ({"a": 4711}, "azure"),
    ],
)
def test_tags_that_azure_refuses(tags: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        _with_tags(tags)
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_tags_at_the_limits_are_taken() -> None:
    tags = {f"t{number}": "v" * 256 for number in range(39)} | {"n" * 512: "<&>"}
    assert len(_with_tags(tags).azure.tags) == 40


def test_a_storage_account_takes_shorter_names() -> None:
    witnessed = {"n" * 129: ""}
    assert _with_tags(witnessed)
    with pytest.raises(UsageError, match="a tag of a storage account may have 128"):
        _with_tags(witnessed, "nested-resiliency")


def test_tags_of_a_scenario_and_of_the_command_line_are_put_together(tmp_path: Path) -> None:
    text = Path(scenario_file.paths.SCENARIOS / "zone-disks.toml").read_text("utf-8")
    file = tmp_path / "own.toml"
    file.write_text(
        f'{text}\n[azure]\nresource_group = "mine"\n[azure.tags]\nteam = "storage"\nstage = "dev"\n'
    )
    made = scenario_file.load(
        str(file), "quick", {"azure.tags": {"stage": "test", "a.b": "c"}, "azure.tags.x": "y"}
    )
    assert made.azure.tags == {"team": "storage", "stage": "test", "a.b": "c", "x": "y"}
    assert made.azure.resource_group == "mine"


def test_a_group_that_no_group_can_be() -> None:
    with pytest.raises(UsageError, match="'a/b' is not a name of a resource group"):
        scenario_file.load("zone-disks", "quick", {"azure.resource_group": "a/b"})
