"""The played truths: that they can be played, and when a verdict on them is called false."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from checks import played
from checks.played import CASES, Case, Pair, Row
from diskbook.design import attachments, scenario_file
from diskbook_emulator.model import Model
from diskbook_emulator.profile import load_profile

NAN = math.nan


def row(pair: Pair, verdict: str, low: float = NAN, high: float = NAN, warnings: str = "") -> Row:
    return Row(pair, 8, verdict, math.sqrt(low * high), low, high, warnings)


LIMITED, DRIFT, EQUAL = Pair("50", limit=50), Pair("drift", must_say="drift"), Pair("equal", ratio=1.0)


@pytest.mark.parametrize(
    ("said", "is_false"),
    [
        (row(LIMITED, "difference", 1.18, 1.22), False),
        (row(LIMITED, "difference", 1.15, 1.19), False),  # what a busy computer adds takes from the ratio
        (row(LIMITED, "difference", 1.02, 1.10), True),  # a limit hides most of it
        (row(LIMITED, "difference", 0.60, 0.70), True),
        (row(LIMITED, "difference", 1.30, 1.50), True),
        (row(LIMITED, "equivalent within 5 %", 0.99, 1.01), True),
        (row(LIMITED, "inconclusive", 0.99, 1.01), False),
        (row(LIMITED, "saturated"), False),
        (row(LIMITED, "invalid"), False),
        (row(EQUAL, "equivalent within 5 %", 0.99, 1.01), False),
        (row(EQUAL, "difference", 1.01, 1.08), True),
        (
            row(DRIFT, "difference", 1.3, 1.6, "state: the ratio drifts"),
            False,
        ),  # it rises from what was planted
        (row(DRIFT, "difference", 1.01, 1.1, "state: the ratio drifts"), True),
        (row(DRIFT, "invalid"), False),
    ],
)
def test_a_verdict_is_false_where_it_contradicts_what_was_planted(said: Row, is_false: bool) -> None:
    assert said.is_false is is_false
    assert said.text.endswith("FALSE") is is_false


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_each_case_plants_what_it_says(case: Case, tmp_path: Path) -> None:
    files = tmp_path / "scenario.toml", tmp_path / "profile.toml"
    files[0].write_text(case.scenario)
    files[1].write_text(case.profile)
    scenario, profile = scenario_file.load(str(files[0]), "quick"), load_profile(str(files[1]))
    arms = [arm.name for arm in scenario.arm if arm.machine == "vm1"]
    assert arms == [name for pair in case.pairs for name in pair.arms]
    assert set(attachments.per_block(scenario, attachments.plan_after_attach(scenario)).values()) == (
        {12} if case.settle_s else set()
    )
    assert len(scenario.comparison) == len(case.pairs) * len(case.depths)
    model = Model(profile, 1)
    planted = {name: model._single(f"/disks/{name}") for name in _names(case)}
    limited = {name for name, single in planted.items() if single.caps_factor}
    for pair in case.pairs:
        with_limit = [name for name in limited if name.endswith(f"-{pair.name}")]
        assert bool(with_limit) == (not math.isnan(pair.limit))
        assert {planted[name].caps_factor for name in with_limit} <= {pair.limit / 100}
    if case.name == "limits on one machine of two":
        assert {name[:2] for name in limited} == {"r2"} and len(limited) == 10
    if case.name == "limits on the faster arm":
        assert all("-lrs-" in name for name in limited) and len(limited) == 5


def test_a_drift_must_be_said_where_there_is_a_verdict() -> None:
    silent = row(DRIFT, "difference", 1.3, 1.6)
    assert silent.is_unsaid and silent.text.endswith("WITHOUT 'drift'") and played.conclusion([silent]) == 1
    for said in (
        replace(silent, warnings="the ratio drifts"),
        row(DRIFT, "invalid"),
        row(LIMITED, "difference"),
    ):
        assert not said.is_unsaid


def test_a_run_in_which_nothing_is_decided_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    told = replace(row(LIMITED, "difference", 1.18, 1.22), depth=1)
    vague = replace(told, verdict="inconclusive")
    deep = row(LIMITED, "saturated")
    assert told.is_due and not deep.is_due and not replace(told, pair=replace(EQUAL, is_steady=False)).is_due
    assert replace(told, pair=EQUAL).is_due  # without a limit
    assert played.conclusion([told] * 4 + [vague, deep]) == 0
    assert played.conclusion([told] * 3 + [vague] * 2) == 1
    assert "3 of 5 pairs of single I/Os got theirs" in capsys.readouterr().out
    assert played.conclusion([told] * 9 + [replace(told, low=0.9, high=0.95)]) == 1
    assert "1 of 10 verdicts false" in capsys.readouterr().out


def _names(case: Case) -> list[str]:
    numbers = range(1, case.replicates + 1)
    return [f"r{number}-{name}" for number in numbers for pair in case.pairs for name in pair.arms]


def test_rows_are_the_latencies_of_the_table_of_comparisons() -> None:
    case = CASES[0]
    record = {
        "arm": "zrs-50",
        "workload": "read-qd8",
        "metric": "lat_mean_ms",
        "scope": "these disks",
        "verdict": "difference",
        "ratio": 1.0,
        "ci_low": 0.9,
        "ci_high": 1.1,
        "warnings": "",
    }
    others = {"metric": "iops"}, {"scope": "disks like these"}
    (found,) = played.rows(case, pd.DataFrame([record, *({**record, **other} for other in others)]))
    assert (found.pair.limit, found.depth, found.is_false) == (50, 8, True)
    assert "1.21 and 1.45" in found.text  # 3,030 and 3,636 IOPS at depth 8, where 2,500 are let through
