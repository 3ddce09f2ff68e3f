"""The first decided headline leads, in the order that the scenario's file fixed before the run."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest

from diskbook.design import scenario_file
from diskbook.design.model import Scenario
from diskbook.design.vocabulary import Scope, Verdict
from diskbook.report.show import headlines, sentences
from diskbook.results import plan as plans
from diskbook.results.run import Run
from support import synthetic

SCENARIO = scenario_file.load("zone-disks", "quick")
FROM = headlines.EMULATED
LOADS = ("randwrite-qd1", "randread-qd1", "commit-qd1")
"""Headlines of `zone-disks`, in the order of its file."""


def row(workload: str, verdict: str, **changes: Any) -> dict[str, Any]:
    """One headline over one replicate, 2.39 times and +1.88 ms."""
    numbers = {"ratio": 2.394, "ci_low": 2.29, "ci_high": 2.498, "level": 0.95}
    numbers |= {"diff_ms": 1.884, "diff_low_ms": 1.64, "diff_high_ms": 2.13}
    names = {"arm": "zrs-z1", "base_arm": "lrs-z1", "workload": workload, "direction": "write"}
    names |= {"metric": "lat_mean_ms", "family": "headline", "scope": Scope.THESE, "pairing": "same-machine"}
    rest = {"n_replicates": 1, "n_blocks": 4, "warnings": "", "provenance": "emulated", "verdict": verdict}
    return {**names, **numbers, **rest, **changes}


def planted(*verdicts: str, **changes: Any) -> pd.DataFrame:
    """A table of the three headlines with these verdicts, in the order of the file."""
    return pd.DataFrame([row(*pair, **changes) for pair in zip(LOADS, verdicts, strict=False)])


def answer(table: pd.DataFrame, scenario: Scenario = SCENARIO) -> str:
    return headlines.headline(table, scenario)


def test_the_first_decided_one_leads_and_has_nothing_to_say_of_others() -> None:
    assert answer(planted("difference", "difference", "equivalent within 5 %")) == (
        f"{FROM}write latency at queue depth 1 of ZRS from zone 1 is higher than that of LRS from zone 1: "
        "+139 % (95 % CI 129 to 150 %); +1.88 ms, 1.64 to 2.13 (these two disks in these hours, 4 blocks)"
    )


@pytest.mark.parametrize("words", ["attach effect not checked", "attach effect not excluded"])
def test_what_an_attach_may_have_done_stands_behind_the_number(words: str) -> None:
    warnings = f"few blocks; {words}: from attach to trial passed 1 s"
    for verdict in ("difference", "equivalent within 5 %"):
        assert answer(planted(verdict, warnings=warnings)).endswith(f"4 blocks); {words}")


def test_a_ratio_that_depends_on_the_time_since_the_attach_is_none() -> None:
    words = answer(planted("depends on the time since the attach", warnings="the ratio is 1.4 and 0.9"))
    assert "no ratio for the write latency" in words and "139" not in words
    assert "(depends on the time since the attach): the ratio is 1.4 and 0.9" in words


def test_equivalence_decides_as_a_difference_does() -> None:
    first = answer(planted("equivalent within 5 %", "difference", "difference"))
    assert "write latency at queue depth 1 of ZRS from zone 1 is equal within 5 % to that of LRS" in first
    later = answer(planted("inconclusive", "equivalent within 5 %", "difference"))
    assert later.startswith(f"{FROM}read latency at queue depth 1 of ZRS from zone 1 is equal within 5 % to")
    assert later.endswith("4 blocks); the headline before it is not decided (1 inconclusive)")


@pytest.mark.parametrize("verdict", ["capped", "saturated", "invalid", "interim", "inconclusive"])
def test_what_is_not_decided_is_passed_over_and_counted(verdict: str) -> None:
    words = answer(planted(verdict, verdict, "difference"))
    assert words.startswith(f"{FROM}commit latency at queue depth 1 of ZRS from zone 1 is higher than")
    assert words.endswith(f"; the 2 headlines before it are not decided (2 {verdict})")


def test_different_verdicts_before_it_are_counted_apart() -> None:
    words = answer(planted("capped", "invalid", "difference"))
    assert words.endswith("; the 2 headlines before it are not decided (1 capped, 1 invalid)")


def test_where_none_is_decided_the_first_leads_as_inconclusive() -> None:
    words = answer(planted("inconclusive", "capped", "inconclusive", warnings="5 replicates narrow it; more"))
    assert words.startswith(
        f"{FROM}inconclusive: write latency at queue depth 1 of ZRS from zone 1 may or may"
    )
    assert words.endswith("none of the 3 headlines is decided (2 inconclusive, 1 capped)")
    assert "replicates narrow" not in words


@pytest.mark.parametrize("verdict", ["capped", "invalid"])
def test_a_first_one_without_a_ratio_gives_its_first_reason_alone(verdict: str) -> None:
    words = answer(planted(verdict, verdict, verdict, warnings="both arms sit on a limit; measure again"))
    assert words.startswith(f"{FROM}inconclusive: no ratio for the write latency at queue depth 1 of ZRS")
    assert f"({verdict}): both arms sit on a limit; none of the 3" in words and "again" not in words


def test_a_reason_is_not_cut_within_brackets() -> None:
    warnings = "busy (steal over 1 %; see the table): measure again; and more"
    assert (
        sentences.first_reason({"warnings": warnings})
        == "busy (steal over 1 %; see the table): measure again"
    )
    assert [sentences.first_reason({"warnings": text}) for text in ("", "a (b; c", "(a (b); c); d")] == [
        "", "a (b", "(a (b)"
    ]  # fmt: skip


def test_a_single_headline_counts_no_others() -> None:
    assert answer(planted("inconclusive")).endswith("(these two disks in these hours, 4 blocks)")


def test_the_order_is_the_files_whatever_the_tables() -> None:
    table = planted("difference", "equivalent within 5 %", "difference").iloc[::-1]
    assert answer(table).startswith(f"{FROM}write latency")
    reordered = SCENARIO.model_copy(update={"comparison": SCENARIO.comparison[::-1]})
    assert answer(table, reordered).startswith(f"{FROM}commit latency")
    first = headlines.answers(table, SCENARIO)[0]
    assert first.removeprefix("emulated: ") == answer(table).removeprefix(headlines.EMULATED)


def test_one_replicate_is_judged_by_these_disks() -> None:
    general = {
        "scope": Scope.LIKE_THESE,
        "verdict": Verdict.INCONCLUSIVE,
        "ci_low": math.nan,
        "ci_high": math.nan,
    }
    table = pd.concat([planted("difference"), planted("difference").assign(**general)])
    assert "higher than" in answer(table) and "these two disks in these hours" in answer(table)


def test_replicates_are_judged_by_disks_like_these() -> None:
    general = {"scope": Scope.LIKE_THESE, "verdict": "inconclusive", "ci_low": 0.9, "ci_high": 3.0}
    table = pd.concat([planted("difference"), planted("difference").assign(**general, n_replicates=3)])
    assert answer(table).startswith(f"{FROM}inconclusive: ") and "disks like these, 3 rep" in answer(table)


def test_without_headlines_nothing_leads() -> None:
    nothing = planted().reindex(columns=list(row("", "")))
    assert answer(nothing) == headlines.NOTHING_MEASURED
    assert answer(nothing, SCENARIO.model_copy(update={"comparison": ()})) == headlines.NOTHING_NAMED
    assert answer(planted("difference", "capped", family="exploratory")) == (
        f"{FROM}no headline was named before the run; 2 comparisons to explore (1 difference, 1 capped)"
    )


def test_the_order_is_part_of_the_hashed_plan(tmp_path: Any) -> None:
    run: Run = synthetic.run_folder(tmp_path / "run", n_blocks=1)
    plans.write(run)
    assert not plans.is_scenario_changed(run)
    manifest = run.manifest
    manifest["scenario"]["comparison"] = manifest["scenario"]["comparison"][::-1]
    run.write_manifest(manifest)
    assert plans.is_scenario_changed(run)
