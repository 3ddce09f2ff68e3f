"""Tables say of held rates from when their latencies count."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from diskbook.design.held_rate import Start
from diskbook.design.vocabulary import Label
from diskbook.report.show import tables

LABELS, WORDS = {"zrs": "ZRS", "lrs": "LRS"}, {"held": "4K random read, depth 40, 500/s"}


def percentiles(start: str, all_ios_ms: float = 700.4) -> str:
    common = {"workload": "held", "direction": "read", "n_ios": 15_000, "n_trials": 12, "start": start}
    rows = [
        {**common, "arm": arm, "quantile": quantile, "lat_ms": lat_ms, "all_ios_ms": whole, "n_half": half}
        for arm in LABELS
        for quantile, lat_ms, whole, half in ((0.5, 1.25, 1.25, 6), (0.99, 700.4, all_ios_ms, 2))
    ]
    rows = [{**row, "apart": row["lat_ms"] != row["all_ios_ms"]} for row in rows]
    of_each = {"label": Label.BELOW_CAP, "closed": False, "outstanding": 8.0, "shown": False}
    cells = pd.DataFrame({"arm": list(LABELS), "workload": "held", **of_each})
    return tables.percentiles(
        SimpleNamespace(percentiles=pd.DataFrame(rows), cells=cells, labels=LABELS, words=WORDS)
    )


def test_a_lower_bound_is_one_in_the_table_itself() -> None:
    shown = percentiles(Start.SENT)
    assert shown.count("≥ 1.250") == 4 and shown.count("≥ 700.4") == 4
    assert shown.count(">lower bound<") == 4


@pytest.mark.parametrize("start", ["", Start.INTENDED])
def test_what_is_no_bound_is_shown_plainly(start: str) -> None:
    shown = percentiles(start)
    assert "≥" not in shown and "700.4" in shown
    assert shown.count(f">{Start.INTENDED}<") == (4 if start else 0)


def test_all_ios_stand_below_a_typical_trial_and_are_marked_where_they_disagree() -> None:
    shown = percentiles("")
    assert shown.count(">a typical trial<") == shown.count(">all 15,000 I/Os<") == 2
    assert shown.count("700.4 (2 of 12)<") == 2 and "more than 10 %" not in shown
    apart = percentiles("", 5000.0)
    assert apart.count("5,000 (2 of 12) [1]<") == 2
    assert "More than 10 % from that of a typical trial" in apart


def ratio_of_percentiles(**changed: Any) -> str:
    names = {"arm": "zrs", "base_arm": "lrs", "workload": "held", "direction": "read", "nearest_zone": ""}
    numbers = {
        "quantile": 0.99,
        "scope": "these disks",
        "ratio": 1.5,
        "ci_low": 1.4,
        "ci_high": 1.6,
        "all_ios_ratio": 1.52,
        "apart": False,
        "reason": "",
        "start": "",
    }
    frame = pd.DataFrame([{**names, **numbers, **changed}])
    return tables.percentile_ratios(SimpleNamespace(percentile_ratios=frame, labels=LABELS, words=WORDS))


def test_the_ratio_of_percentiles_names_its_start() -> None:
    assert "500/s (lower bound)" in ratio_of_percentiles(start=Start.SENT)


def test_the_ratio_of_all_ios_is_there_where_it_is_another_or_the_only_one() -> None:
    assert "of all I/Os" not in ratio_of_percentiles()
    assert "; of all I/Os +1,640 % [1]<" in ratio_of_percentiles(all_ios_ratio=17.4, apart=True)
    nan, why = math.nan, "not every trial has the 1,000 I/Os that this needs"
    alone = ratio_of_percentiles(ratio=nan, ci_low=nan, ci_high=nan, reason=why)
    assert "refused [1]; of all I/Os +52 %<" in alone and "Not every trial" in alone


def test_percentiles_of_deep_cells_that_a_limit_may_hold_are_not_printed() -> None:
    numbers = {"n_ios": 10_000, "n_trials": 3, "quantile": 0.5, "n_half": 2, "apart": False, "start": ""}
    latencies = {"lat_ms": [1.5, 2.5], "all_ios_ms": [1.5, 2.5]}
    cells = {"arm": list(LABELS)[:1] * 2, "workload": ["deep", "shown"]}
    frame = pd.DataFrame({**cells, "direction": "read", **numbers, **latencies})
    label = {"label": Label.BELOW_CAP, "closed": True, "outstanding": 8.0, "shown": [False, True]}
    words = {"deep": "deep", "shown": "shown"}
    cells_of = pd.DataFrame({**cells, **label})
    a = SimpleNamespace(percentiles=frame, cells=cells_of, labels=LABELS, words=words)
    printed = str(tables.percentiles(a))
    assert "2.5" in printed and "1.5" not in printed
