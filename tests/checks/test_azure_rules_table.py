"""Every documented rule of Azure: the request that breaks it is refused, its neighbour is taken.

Where a scenario can have the mistake, it is refused before anything is created.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from datetime import date
from typing import Any

import pytest

from checks.azure_rules_table import RULES, Rule
from diskbook.design import azure_rules, scenario_file
from diskbook.design.model import Scenario
from diskbook.facts.errors import UsageError
from support import SCENARIOS
from support.arm_app import Plane

TODAY = date(2026, 11, 20)
SMALL = str(SCENARIOS / "small.toml")
NAMES = [rule.name for rule in RULES]
KNOWN = [rule for rule in RULES if rule.scenario]
# Many disks: tests/design/test_azure_rules.py; a subscription: tests/cloud/azure/test_preflight.py.
ELSEWHERE = {"max-data-disks", "quota"}


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    made = Plane(tmp_path_factory.mktemp("rules"))
    yield made
    made.close()


def day_of(rule: Rule) -> date:
    return date.fromisoformat(rule.day) if rule.day else TODAY


def ready(plane: Plane, rule: Rule) -> None:
    plane.begin(f"rule-{NAMES.index(rule.name)}")
    plane.set_day(day_of(rule))
    for request in rule.given:
        status, answer = plane.send(request)
        assert status < 300, (request.words(), answer)


@pytest.mark.long
@pytest.mark.parametrize("rule", RULES, ids=NAMES)
def test_a_request_that_breaks_a_rule_is_refused_and_its_neighbour_is_not(plane: Plane, rule: Rule) -> None:
    ready(plane, rule)
    status, answer = plane.send(rule.breaks)
    assert (status, answer["error"]["code"]) == (rule.status, rule.code), answer
    assert rule.says in answer["error"]["message"]
    status, answer = plane.send(rule.neighbour)
    assert status < 300, answer


def loaded(overrides: Any, monkeypatch: pytest.MonkeyPatch) -> Scenario:
    """The small scenario with overrides, as `load` holds it against the rules."""
    hand_over, seen = scenario_file.check, []
    monkeypatch.setattr(
        scenario_file,
        "check",
        lambda scenario, where, **known: hand_over(seen.append(scenario) or scenario, where, **known),
    )
    with suppress(UsageError):
        scenario_file.load(SMALL, "quick", overrides)
        assert azure_rules.check(seen[0], TODAY) == []  # what is refused only later
    return seen[0]


@pytest.mark.parametrize("rule", KNOWN, ids=[rule.name for rule in KNOWN])
def test_a_scenario_with_that_mistake_is_refused_before_the_first_create(
    rule: Rule, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = azure_rules.check(loaded(dict(rule.scenario), monkeypatch), day_of(rule))
    assert rule.known in {item.rule for item in broken}


def test_the_small_scenario_breaks_no_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    assert azure_rules.check(loaded({}, monkeypatch), TODAY) == []


def test_the_table_is_a_table() -> None:
    assert len(RULES) >= 40
    assert max(Counter(NAMES).values()) == 1
    for rule in RULES:
        assert rule.source and (bool(rule.known) == bool(rule.scenario) or rule.known in ELSEWHERE)
        assert rule.says or not rule.quoted or rule.code != "BadRequest", rule.name
