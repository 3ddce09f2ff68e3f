"""Losses of a scenario's file: grids, references, and what presets leave out."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from diskbook.clusters import cost
from diskbook.clusters.design import rules
from diskbook.cost import durations
from diskbook.design import scenario_file, scenario_tables
from diskbook.design.model import Scenario
from diskbook.facts.errors import UsageError
from support import SCENARIOS

FILE = SCENARIOS / "losses.toml"


def scenario(**changes: Any) -> Scenario:
    """The scenario with other losses."""
    tables = scenario_file.load(str(FILE), "quick").model_dump()
    return scenario_tables.from_dict({**tables, **changes}, "changed")


def loss(**keys: Any) -> dict[str, Any]:
    return {"name": "a", "volume": "mirror", "lost": "node", **keys}


def test_a_grid_is_a_row_of_each_volume_and_loss() -> None:
    grid = {"volume": ["a", "b"], "lost": ["node", "drive"]}
    assert rules.loss_rows([grid, loss()]) == [
        {"name": "a-node", "volume": "a", "lost": "node"},
        {"name": "a-drive", "volume": "a", "lost": "drive"},
        {"name": "b-node", "volume": "b", "lost": "node"},
        {"name": "b-drive", "volume": "b", "lost": "drive"},
        loss(),
    ]
    (named,) = rules.loss_rows([{"name": "x", "volume": ["a"], "lost": "node"}])
    assert named["name"] == "x-a-node"
    assert rules.loss_rows([{"volume": "a", "lost": "node"}])[0]["name"] == "a-node"
    assert rules.loss_rows([{"lost": "node", "what": 1}]) == [{"lost": "node", "what": 1}]


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({"volume": "miror"}, r"\[\[loss\]\] a: .*'miror'.*mirror"),
        ({"lost": "everything"}, "everything"),
        ({"lost": "two-nodes"}, "of 2 nodes nothing is left without two nodes; take another loss, or a vol"),
        ({"what": 1}, "what"),
    ],
)
def test_what_does_not_fit_is_told_in_one_sentence(keys: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence) as raised:
        scenario(loss=[loss(**keys)])
    assert "\n" not in str(raised.value)


def test_a_loss_is_written_once_and_by_one_name() -> None:
    with pytest.raises(UsageError, match="a is the same loss of mirror; leave one of them out"):
        scenario(loss=[loss(), loss(name="b")])
    with pytest.raises(UsageError, match=r"\[\[loss\]\]: the name 'a' is used twice"):
        scenario(loss=[loss(), loss(lost="drive")])


def test_a_node_keeps_a_drive() -> None:
    tables = scenario_file.load(str(FILE), "quick").model_dump()
    small = next(disk for disk in tables["disk"] if disk["name"] == "small")
    small["count"] = 2
    with pytest.raises(UsageError, match="a node has 2 of small, and one must be left; raise count"):
        scenario_tables.from_dict({**tables, "loss": [loss(volume="three", lost="two-drives")]}, "changed")


def test_a_volume_of_one_machine_is_not_lost() -> None:
    text = (SCENARIOS / "spaces.toml").read_text("utf-8")
    raw = tomllib.loads(text)
    raw.pop("preset")
    one = {**raw, "name": "spaces", "preset": "quick", "loss": [loss(volume="simple")]}
    with pytest.raises(UsageError, match="simple is one machine's, and nobody is left to ask"):
        scenario_tables.from_dict(one, "spaces.toml")


def test_losses_of_a_pool_are_one_and_a_preset_may_leave_them_out() -> None:
    together = rules.played_together(scenario())
    assert {key[2]: [loss.name for loss in losses] for key, losses in together.items()} == {
        "drive-each": ["mirror-drive-each", "nested-drive-each"],
        "node": ["mirror-node", "nested-node"],
        "two-nodes": ["majority"],
    }
    raw = {"loss": rules.loss_rows(tomllib.loads(FILE.read_text("utf-8"))["loss"]), "workload": []}
    left = scenario_file.left_out(raw, {"loss": ["mirror-node"], "volume": ["nested"]})["loss"]
    assert [row["name"] for row in left] == ["mirror-drive-each", "majority"]


def test_losses_take_their_time() -> None:
    without = durations.around_s(scenario(loss=[]))
    assert durations.around_s(scenario()) - without == 2 * cost.LOSS_S  # clusters side by side
