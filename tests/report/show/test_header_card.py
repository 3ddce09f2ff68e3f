"""The header card: one sentence, up to three numbers with intervals, scope, facts, and what limits them."""

from __future__ import annotations

import dataclasses
import html
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from diskbook.report import show
from diskbook.report.analysis.run import Analysis, analyse
from diskbook.report.show import header_card, locations
from diskbook.results import plan as plans
from support import synthetic


@pytest.fixture(scope="module")
def a(tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    """One replicate: three decided headlines, ZRS 2.46 times LRS."""
    run = synthetic.run_folder(Path(tmp_path_factory.mktemp("card")) / "run")
    plans.write(run)
    return analyse(run)


def with_verdicts(a: Analysis, **changes: dict[str, Any]) -> Analysis:
    """The same analysis, with columns of the headlines of a workload changed."""
    table = a.comparisons.copy()
    for load, columns in changes.items():
        rows = (table["workload"] == load.replace("_", "-")) & (table["family"] == "headline")
        table.loc[rows, list(columns)] = list(columns.values())
    other = dataclasses.replace(a)
    other.__dict__["compared"] = dataclasses.replace(a.compared, table=table)
    return other


def numbers(card: str) -> list[str]:
    return re.findall(r"<li><b>(.*?)</b>", card)


def reasons(card: str) -> list[str]:
    folded = card.partition("<details")[2]
    return [html.unescape(item) for item in re.findall(r"<li>(.*?)</li>", folded)]


def test_the_card_has_its_parts_in_order(a: Analysis) -> None:
    card = show.card(a)
    parts = ["<section", "card-answer", "card-numbers", "card-scope", "card-facts", "card-more", "</section>"]
    found = [card.index(part) for part in parts]
    assert found == sorted(found) and card.count("<details") == 1


def test_the_answer_is_that_of_the_run(a: Analysis) -> None:
    sentence = html.escape(locations.with_physical_zones(a.headline.removeprefix("e"), a.trials))
    assert f'<p class="card-answer">E{sentence}.</p>' in show.card(a)


def test_three_numbers_with_intervals_the_leading_one_first(a: Analysis) -> None:
    card = show.card(a)
    assert len(numbers(card)) == 3 and numbers(card)[0].startswith("2.4")
    assert card.count("<span>95 % CI ") == 3 and card.count(" ms, ") >= 3
    arms = "ZRS from zone 1 (az1), to LRS, zone 1 (az1)"
    assert f"<small>Write latency at queue depth 1 of {arms}: difference</small>" in card


def test_a_ratio_that_is_withheld_is_no_number(a: Analysis) -> None:
    card = show.card(with_verdicts(a, randread_qd1={"verdict": "capped"}))
    assert len(numbers(card)) == 2
    assert any(
        item.startswith("Not decided (capped): no ratio for the read latency") for item in reasons(card)
    )


def test_what_comes_before_the_lead_stands_behind_it(a: Analysis) -> None:
    changed = with_verdicts(a, randwrite_qd1={"verdict": "inconclusive", "ratio": 1.5})
    card = show.card(changed)
    assert "Emulated: read latency" in card and "the headline before it is not decided (1 inconc" in card
    assert numbers(card)[-1] == "1.50 times" and len(numbers(card)) == 3


def test_without_a_decided_one_the_first_leads_as_inconclusive(a: Analysis) -> None:
    loads = ("randwrite_qd1", "randread_qd1", "commit_qd1")
    card = show.card(with_verdicts(a, **{load: {"verdict": "inconclusive"} for load in loads}))
    assert '<p class="card-answer">Emulated: inconclusive: write latency' in card
    assert "none of the 3 headlines is decided (3 inconclusive)" in card


def test_scope_and_facts_are_in_plain_words(a: Analysis) -> None:
    card = show.card(a)
    assert "It holds for these two disks in these hours, in westeurope: with one replicate nothing" in card
    facts = dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", card))
    assert facts["Run"] == a.run.name and facts["Region"] == "westeurope"
    assert re.fullmatch(r"2026-11-20 \d\d:\d\d to \d\d:\d\d", facts["Date (UTC)"])
    assert facts["Preset"] == a.scenario.preset and facts["Ran on"].startswith("emulated: profile ")


def test_why_not_more_is_folded_below(a: Analysis) -> None:
    lines = reasons(show.card(a))
    assert lines[0].endswith("They say nothing about Azure.")
    assert any(line.startswith("Closed or open: ") for line in lines)
    assert any(line.startswith("Noise floor: write latency at queue depth 1: two disks") for line in lines)
    assert any("fixed before the run, in its hashed plan" in line for line in lines)
    assert any(line.startswith("Checks: 2 failed: cap (2)") for line in lines)


def test_a_run_without_a_plan_does_not_claim_its_order(tmp_path: Path) -> None:
    without = analyse(synthetic.run_folder(tmp_path / "run"))
    assert any("No plan shows" in line for line in reasons(show.card(without)))


def test_an_exploratory_run_answers_no_question(a: Analysis) -> None:
    table = a.comparisons.assign(family="exploratory")
    other = dataclasses.replace(a)
    other.__dict__["compared"] = dataclasses.replace(a.compared, table=table)
    card = show.card(other)
    assert "no headline was named before the run" in card and "to explore, not to conclude from" in card
    assert "card-numbers" not in card


@pytest.mark.parametrize(
    ("provenance", "words"),
    [
        ("azure", "Azure: Standard_D4as_v4"),
        ("inventory", "hosts of the user's own"),
        ("imported", "machines of others (imported)"),
    ],
)
def test_what_it_ran_on(a: Analysis, provenance: str, words: str) -> None:
    other = dataclasses.replace(a, manifest={**a.manifest, "provenance": provenance})
    assert header_card.ran_on(other) == words


def test_a_lead_stands_right_below_the_answer(a: Analysis) -> None:
    card = show.card(a, show.table(pd.DataFrame({"Option": ["plus"]})))
    assert card.index("card-answer") < card.index("<table>") < card.index("card-numbers")
