"""Tables say of held rates from when their latencies count."""

from __future__ import annotations

import pandas as pd
import pytest

from diskbook.show import tables
from diskbook.tables.held_rate import Start
from diskbook.tables.vocabulary import Label

LABELS, WORDS = {"zrs": "ZRS", "lrs": "LRS"}, {"held": "4K random read, depth 40, 500/s"}


def percentiles(start: str) -> str:
    common = {"workload": "held", "direction": "read", "n_ios": 15_000, "start": start}
    rows = [
        {**common, "arm": arm, "quantile": quantile, "lat_ms": lat_ms}
        for arm in LABELS
        for quantile, lat_ms in ((0.5, 1.25), (0.99, 700.4))
    ]
    of_each = {"label": Label.BELOW_CAP, "closed": False, "outstanding": 8.0, "shown": False}
    cells = pd.DataFrame({"arm": list(LABELS), "workload": "held", **of_each})
    return tables.percentiles(pd.DataFrame(rows), cells, LABELS, WORDS)


def test_a_lower_bound_is_one_in_the_table_itself() -> None:
    shown = percentiles(Start.SENT)
    assert shown.count("≥ 1.250") == 2 and shown.count("≥ 700.4") == 2
    assert shown.count(">lower bound<") == 2


@pytest.mark.parametrize("start", ["", Start.INTENDED])
def test_what_is_no_bound_is_shown_plainly(start: str) -> None:
    shown = percentiles(start)
    assert "≥" not in shown and "700.4" in shown
    assert shown.count(f">{Start.INTENDED}<") == (2 if start else 0)


def test_the_ratio_of_percentiles_names_its_start() -> None:
    names = {"arm": "zrs", "base_arm": "lrs", "workload": "held", "direction": "read", "nearest_zone": ""}
    numbers = {
        "quantile": 0.99,
        "scope": "these disks",
        "ratio": 1.5,
        "ci_low": 1.4,
        "ci_high": 1.6,
        "reason": "",
    }
    frame = pd.DataFrame([{**names, **numbers, "start": Start.SENT}])
    assert "500/s (lower bound)" in tables.percentile_ratios(frame, LABELS, WORDS)


def test_percentiles_of_deep_cells_that_a_limit_may_hold_are_not_printed() -> None:
    rows = {"direction": "read", "n_ios": 10_000, "quantile": 0.5, "lat_ms": [1.5, 2.5], "start": ""}
    frame = pd.DataFrame({"arm": list(LABELS)[:1] * 2, "workload": ["deep", "shown"], **rows})
    cells = frame[["arm", "workload"]].assign(
        label=Label.BELOW_CAP, closed=True, outstanding=8.0, shown=[False, True]
    )
    printed = str(tables.percentiles(frame, cells, LABELS, {"deep": "deep", "shown": "shown"}))
    assert "2.5" in printed and "1.5" not in printed
