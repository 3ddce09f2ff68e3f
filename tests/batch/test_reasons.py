"""Which failures speak for other runs."""

from __future__ import annotations

from diskbook.batch.reasons import Failure, Reasons, masked
from support.batches import an_item

SIGN_IN = "1-provision stopped: nobody is signed in; resume with 'diskbook run --resume {}'"


def test_where_nothing_could_be_created_the_same_machines_meet_the_same() -> None:
    reasons, failed = Reasons(), an_item(design__seed=1)
    reasons.add(Failure(failed, "no quota", created=False))
    assert reasons.against(an_item(design__seed=2)) is not None
    assert reasons.against(an_item(scenario__region="eastus")) is None
    assert reasons.against(an_item(scenario="first-run")) is None
    assert reasons.against(an_item(cloud="azure")) is None


def test_the_same_words_twice_without_a_machine_stop_the_cloud() -> None:
    reasons = Reasons()
    for region in ("eastus", "westus2"):
        item = an_item(cloud="azure", scenario__region=region)
        reasons.add(Failure(item, SIGN_IN.format(item.name), created=False))
    assert reasons.against(an_item(cloud="azure", scenario="zone-disks")) is not None
    assert reasons.against(an_item()) is None


def test_a_failure_while_measuring_stops_its_scenario_when_it_comes_again() -> None:
    reasons = Reasons()
    reasons.add(Failure(an_item(design__seed=1), "trial 3 failed after 2.5 s", created=True))
    assert reasons.against(an_item(design__seed=9)) is None
    reasons.add(Failure(an_item(design__seed=2), "trial 7 failed after 4 s", created=True))
    assert reasons.against(an_item(design__seed=9)) is not None
    assert reasons.against(an_item(scenario="first-run")) is None


def test_names_and_numbers_are_no_part_of_a_reason() -> None:
    assert masked("run a-1 of 3f2a9c1bd0 took 2.5 s", "a-1") == "run RUN of # took # s"
