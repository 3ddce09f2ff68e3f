"""The first screen: question, one sentence, small picture, scope; how sure, and what it does not say."""

from __future__ import annotations

import dataclasses
import html
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from diskbook.design import scenario_file
from diskbook.publish import post_words
from diskbook.report import show
from diskbook.report.analysis import write
from diskbook.report.analysis.run import Analysis, analyse
from diskbook.report.comparing import measured
from diskbook.report.show import headlines, lead, locations, sentences
from diskbook.results import plan as plans
from support import synthetic

RESULT = re.compile(r"[\d.,]+ (?:ms|IOPS|MB/s)|[+-][\d.,]+ % \(95 % CI [^)]*\)")


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


def lines(shown: str) -> list[str]:
    return [html.unescape(item) for item in re.findall(r"<li>(.*?)</li>", shown)]


@pytest.mark.long
def test_the_screen_has_its_parts_in_order(a: Analysis) -> None:
    card = show.screen(a)
    parts = ['class="question"', "card-answer", 'role="img"', "Run run, 2026-11-20", "It holds for"]
    places = [card.index(part) for part in parts]
    assert places == sorted(places)
    assert card.count("emulat") == 2  # in the sentence, and what it ran on
    assert "these two disks in these hours, in westeurope: with one replicate nothing" in card


@pytest.mark.long
def test_the_bars_are_those_of_the_values_in_the_sentence(a: Analysis) -> None:
    card = show.screen(a)
    longest, *_ = sorted((float(share) for share in re.findall(r"width:([\d.]+)%", card)), reverse=True)
    values = re.findall(r"<span>([\d.]+ ms)</span>", card)
    assert longest == 100 and len(values) >= 2
    assert all(value in card.partition("bars")[2] for value in re.findall(r"[\d.]+ ms", a.headline))


def test_the_sentence_of_the_list_is_that_of_the_report(a: Analysis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write, "export_figures", lambda *_: [])
    write.results(a)
    assert headlines.read_answer(a.run) == a.headline


def test_a_number_that_is_withheld_is_nowhere(a: Analysis) -> None:
    loads = ("randwrite_qd1", "randread_qd1", "commit_qd1")
    other = with_verdicts(a, **{load: {"verdict": "capped", "ratio": float("nan")} for load in loads})
    assert "no answer for one 4K write" in other.headline and other.headline.endswith("capped")
    assert not RESULT.search(other.headline)
    table = show.headline_table(other)
    assert table.count('<td class="short">refused</td>') >= 3 or table.count("refused") >= 3


def test_what_comes_before_the_lead_is_counted(a: Analysis) -> None:
    changed = with_verdicts(a, randwrite_qd1={"verdict": "inconclusive", "ratio": 1.5})
    assert "one 4K read" in changed.headline
    assert "headline before it is not decided (1 inconclusive)" in lines(show.sure(changed))[0]


def test_three_lines_say_how_sure_and_three_what_not(a: Analysis) -> None:
    sure, not_said = lines(show.sure(a)), lines(show.not_said(a))
    assert len(sure) == 3 and len(not_said) == 3
    assert sure[0].startswith("1 replicate, 4 blocks; per block the change is +1")
    assert "hashed plan fixed the headlines" in sure[0]
    assert sure[1].startswith("Two disks of one kind differ by ")
    assert "checks passed; 2 failed: cap (2)" in sure[2]
    assert not_said[0].startswith("Azure's disks") and "Other disks of the kind" in not_said[1]


def test_without_a_control_comparison_how_far_disks_differ_is_not_known(a: Analysis) -> None:
    other = dataclasses.replace(a)
    table = a.comparisons[a.comparisons["family"] != "control"]
    other.__dict__["compared"] = dataclasses.replace(a.compared, table=table)
    assert "differ is not known: no control comparison has a number" in lines(show.sure(other))[1]


@pytest.mark.long
def test_a_run_without_a_plan_does_not_claim_its_order(tmp_path: Path) -> None:
    without = analyse(synthetic.run_folder(tmp_path / "run"))
    assert "No plan shows" in lines(show.sure(without))[0]


def test_warnings_of_headlines_stay_unfolded_and_once_each(a: Analysis) -> None:
    warned = with_verdicts(
        a,
        randwrite_qd1={"warnings": "the client was busy for 12 %"},
        randread_qd1={"warnings": "the client was busy for 15 %"},
    )
    table = show.headline_table(warned)
    assert [line for line in lines(table) if "busy" in line] == [
        "ZRS, zone 1 / LRS, zone 1, 4K random write, depth 1, and 1 other: the client was busy for 12 %."
    ]
    assert "<details" not in table


def test_a_contradiction_carries_its_reason(a: Analysis) -> None:
    why = "few blocks; the interval leaves out 0 %, but not after allowing for the other comparisons made"
    other = with_verdicts(a, randwrite_qd1={"verdict": "inconclusive", "warnings": why})
    assert any(line.endswith(f"{why.partition('; ')[2]}.") for line in lines(show.headline_table(other)))


@pytest.mark.long
def test_rates_answer_where_no_headline_is_one(tmp_path: Path) -> None:
    scenario = scenario_file.load("zone-disks", "quick")
    truth = synthetic.Truth(dict(synthetic.BY_ZONE), trial=0.008)
    run = analyse(synthetic.run_folder(tmp_path / "run", scenario=scenario, truth=truth))
    table = show.headline_table(run)
    assert table.count("exploratory: equivalent within 5 %") == 4 and " IOPS" in table
    deep = run.comparisons[run.comparisons["workload"] == "randwrite-qd256"]
    assert set(deep.loc[deep["metric"] == "lat_mean_ms", "verdict"]) == {"capped"}


def test_an_exploratory_run_answers_no_question(a: Analysis) -> None:
    table = a.comparisons.assign(family="exploratory")
    other = dataclasses.replace(a)
    other.__dict__["compared"] = dataclasses.replace(a.compared, table=table)
    card = show.screen(other)
    assert "no headline was named before the run" in card and "to explore, not to conclude from" in card
    assert "bars" not in card and headlines.of(table, a.scenario).lead is None
    assert lines(show.sure(other))[0] == "No comparison was named before the run."


@pytest.mark.parametrize(
    ("provenance", "words"),
    [
        (
            "azure",
            "Azure: 3 machines (Standard_D4as_v4), 2 disks Premium_LRS of 1,024 GiB, "
            "1 disk Premium_ZRS of 1,024 GiB",
        ),
        ("inventory", "hosts of the user's own"),
        ("imported", "machines of others (imported)"),
    ],
)
def test_what_it_ran_on(a: Analysis, provenance: str, words: str) -> None:
    other = dataclasses.replace(a, manifest={**a.manifest, "provenance": provenance})
    assert locations.ran_on(other) == words
    assert "emulator" not in headlines.said_of(provenance, "x")


def mixed(a: Analysis) -> Analysis:
    """The same analysis, as if its reads were those of a load with 30 % writes, which take twice as long."""
    loads = [
        load.model_copy(update={"write_pct": 30}) if load.name == "randread-qd1" else load
        for load in a.scenario.workload
    ]
    other = dataclasses.replace(a, scenario=a.scenario.model_copy(update={"workload": tuple(loads)}))
    table = a.comparisons[(a.comparisons["workload"] == "randread-qd1") & (a.comparisons["arm"] == "zrs-z1")]
    writes = {"direction": "write", "verdict": "difference", "ratio": 2.0, "ci_low": 1.9, "ci_high": 2.1}
    both = pd.concat([table, table.assign(**writes)], ignore_index=True)
    other.__dict__["compared"] = dataclasses.replace(a.compared, table=both)
    return other


def test_the_answer_of_a_mixed_load_is_that_of_one_direction_and_the_other_stands_beside_it(
    a: Analysis,
) -> None:
    other = mixed(a)
    card = html.unescape(str(show.screen(other)))
    assert "one 4K read among 30 % writes takes" in card and "mixed" not in card
    assert "The same load's writes: +100 % (95 % CI 90 to 110 %)." in card
    bars = re.findall(r"<span>([\d.]+ ms)</span>", card)
    assert bars and all(value in other.headline for value in bars)  # those of the reads alone


def test_reads_and_writes_of_a_mixed_load_are_told_apart_wherever_they_stand(a: Analysis) -> None:
    other = mixed(a)
    rows = {row["direction"]: row for row in other.comparisons.to_dict("records")}
    for direction, row in rows.items():
        name = f"{direction} (30 % writes)"
        assert name in sentences.measured(row, other.scenario)
        assert name in post_words.what_words(row, other).lower()
        key = [str(row[column]) for column in measured.KEY]
        assert name in measured.words(other.scenario, other.words, key)
        named = {**row, "metric": "iops"}
        arm = other.scenario.arm_named(row["arm"]).model_copy(update={"label": "mixed (a pool)"})
        arms = [arm if item.name == arm.name else item for item in other.scenario.arm]
        scenario = other.scenario.model_copy(update={"arm": tuple(arms)})
        for words in (sentences.measured(item, scenario) for item in (row, named)):
            assert name in words and "of mixed (a pool)" in words
    claims = [lead.claim(row, other.scenario, other.labels) for row in rows.values()]
    assert "among 30 % writes" in claims[0] and "among 70 % reads" in claims[1]
    for shown in (show.headline_table(other), show.comparisons(other)):
        text = html.unescape(str(shown))
        assert "read (30 % writes)" in text and "write (30 % writes)" in text and "mixed (" not in text
    drawn = other.ratios.description
    assert "write (30 % writes)" in drawn and "mixed (" not in drawn
