"""What limited each cell: limit in force, credit, and the platform's word beside ours."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pandas as pd
import pytest

from diskbook.design import schema
from diskbook.facts.metrics import METRICS
from diskbook.report.show import tables as show_tables
from diskbook.stats import evidence, limits, platform as platform_metrics
from diskbook.stats.compare import compare
from support import synthetic

LABELS = {"lrs-z1": "LRS", "zrs-z1": "ZRS"}
WORDS = {"randread-qd256": "deep read", "randread-qd1": "read"}
NAMES = {(metric.limit, metric.credit): metric.name for metric in METRICS}


@pytest.fixture(scope="module")
def trials() -> pd.DataFrame:
    loads = (synthetic.READ, synthetic.DEEP_READ)
    made = synthetic.tables(n_blocks=2, loads=loads)[0]
    made = made[made["arm"].isin(list(LABELS))]
    return made.assign(credit_state="full", credit_left_share=1.0, runtime_s=30.0, ramp_s=0.0)


def reported(trials: pd.DataFrame, deep: float, provenance: str = "azure") -> pd.DataFrame:
    """Metrics at a grain of 10 s in the middle of each trial: its disk's and its machine's."""
    rows = []
    for row in trials.to_dict("records"):
        share = deep if row["outstanding"] > 1 else 9.0
        values = {
            ("cap_disk_iops", False): share,
            ("cap_vm_iops", False): share * 0.8,
            ("cap_vm_iops", True): 30.0,
        }
        for key, value in values.items():
            lun = row["lun"] if key[0].startswith("cap_disk") else None
            start = (row["started_utc"] + pd.Timedelta("10s")).floor("s")
            rows.append((row["machine_id"], lun, NAMES[key], start, 10, value, value, provenance))
    columns = [column.name for column in schema.METRICS.columns]
    return schema.validate(schema.METRICS, pd.DataFrame(rows, columns=columns))


def found(trials: pd.DataFrame, table: pd.DataFrame, **more: object) -> pd.DataFrame:
    cells = evidence.with_evidence(limits.label_cells(trials), trials, table, **more)
    return cells.set_index(["arm", "workload"])


def test_limit_credit_and_metrics_stand_beside_each_label(trials: pd.DataFrame) -> None:
    cells = found(trials, reported(trials, 102.0))
    deep = cells.loc[("lrs-z1", "randread-qd256")]
    assert (deep["in_force"], round(deep["of_limit"], 2)) == ("disk limit of 5,000 IOPS", 1.02)
    assert deep["credit"] == "full"
    assert deep["platform"] == "disk IOPS 102 %, VM IOPS 82 %, VM IOPS credit used 30 %"
    assert deep["agrees"] == "2 of 2" and deep["platform_note"] == ""
    assert cells.loc[("zrs-z1", "randread-qd1"), "platform"].startswith("disk IOPS 9 %, VM IOPS 7 %")


def test_disagreement_is_counted(trials: pd.DataFrame) -> None:
    cells = found(trials, reported(trials, 81.0))
    assert cells.loc[("lrs-z1", "randread-qd256"), "agrees"] == "0 of 2"
    assert cells.loc[("lrs-z1", "randread-qd1"), "agrees"] == "2 of 2"


def test_without_metrics_the_reason_is_said_once(trials: pd.DataFrame) -> None:
    ledger = [
        {"event": "metrics", "status": "failed", "error": "the platform's metrics were not fetched: no"}
    ]
    cells = found(trials, schema.empty(schema.METRICS), ledger=ledger).reset_index()
    assert set(cells["platform"]) == {"not fetched"} and set(cells["agrees"]) == {""}
    page = show_tables.cells(SimpleNamespace(cells=cells, labels=LABELS, words=WORDS))
    assert page.count("were not fetched: no") == 1 and "What limited each cell" in page
    assert "Trials that agree" not in page


def test_emulated_metrics_are_said_to_be_emulated(trials: pd.DataFrame) -> None:
    cells = found(trials, reported(trials, 102.0, "emulated")).reset_index()
    assert "metrics are emulated, not Azure&#x27;s" in show_tables.cells(
        SimpleNamespace(cells=cells, labels=LABELS, words=WORDS)
    )


def test_credit_that_differs_within_a_cell_is_said(trials: pd.DataFrame) -> None:
    mixed = trials.assign(
        credit_state=trials["block"].map({1: "full", 2: "partial"}),
        credit_left_share=trials["block"].map({1: 1.0, 2: 0.62}),
    )
    cells = found(mixed, schema.empty(schema.METRICS))
    assert set(cells["credit"]) == {"full and partial, 62 % left or more"}


def test_the_platform_corroborates_a_cap_in_the_comparison(trials: pd.DataFrame) -> None:
    """A rate alone is no proof; what the platform reports of that very limit is."""
    trials = trials[trials["outstanding"] > 1]  # without a shallow cell to tell from
    item = [row for row in synthetic.comparisons() if row.workload == "randread-qd256"]
    by_rate = compare(trials, item).cells.set_index(["arm", "workload"])
    told = platform_metrics.consumed_by_cell(trials, reported(trials, 102.0))
    by_platform = compare(trials, item, consumed_pct=told).cells.set_index(["arm", "workload"])
    place = ("zrs-z1", "randread-qd256")
    assert (by_rate.loc[place, "label"], by_platform.loc[place, "label"]) == ("near a cap", "capped")
    assert by_platform.loc[place, "evidence"] == "the platform reports 102 % of the limit as consumed"


@pytest.mark.long
def test_a_trial_for_evidence_speaks_for_its_cell_and_others_say_why_they_have_none(
    trials: pd.DataFrame,
) -> None:
    """What it measured is in nothing but the platform's column."""
    first = trials[trials["outstanding"] > 1].iloc[[0]]
    alone = first.assign(trial="alone", started_utc=first["started_utc"] + pd.Timedelta("1h"), iops=1.0)
    metrics = reported(alone, 101.0)
    place = (first["arm"].iloc[0], first["workload"].iloc[0])
    other = next(
        cell for cell in trials[["arm", "workload"]].itertuples(index=False, name=None) if cell != place
    )
    plain = found(trials, schema.empty(schema.METRICS))
    cells = found(trials, metrics, alone=alone, reasons={other: "none: below every limit"})
    assert cells.loc[place, "platform"].startswith("disk IOPS 101 %") and cells.loc[place, "agrees"].endswith(
        "1"
    )
    assert (cells.loc[other, "platform"], cells.loc[other, "agrees"]) == ("none: below every limit", "")
    same = [name for name in plain.columns if name not in ("platform", "agrees", "platform_note")]
    pd.testing.assert_frame_equal(plain[same], cells[same])


def test_metrics_of_every_second_are_said_to_be_the_emulators_own(trials: pd.DataFrame) -> None:
    seconds = reported(trials, 102.0, "emulated").assign(grain_s=1)
    note = found(trials, seconds)["platform_note"].iloc[0]
    assert "the emulator's metrics come every second; Azure gives one a minute" in note


def test_where_no_trial_holds_a_minute_that_is_said_of_each_cell(trials: pd.DataFrame) -> None:
    ledger = [{"event": "metrics", "status": "none", "error": "no trial holds a whole minute", "files": []}]
    cells = found(trials, schema.empty(schema.METRICS), ledger=ledger)
    assert set(cells["platform"]) == {"none: no whole minute in a trial"}
    assert set(cells["platform_note"]) == {"no trial holds a whole minute"}


def test_only_a_burst_on_demand_raises_the_limit_of_a_load_curve(trials: pd.DataFrame) -> None:
    """A burst by credit does not last. Where no burst is known, an arm on demand has its base limit."""
    one = trials.iloc[0].to_dict() | {"cap_vm_iops": 25_600.0, "cap_vm_mb_s": 600.0, "cap_disk_iops": 500.0}
    bursts = {"by credit": 3500.0, "on demand": 3500.0, "unknown": math.nan}
    rows = [
        {**one, "arm": arm, "workload": f"r{rate}", "trial": f"{arm}-{rate}", "rate_offered": rate,
         "iops": rate, "cap_disk_burst_iops": burst}
        for arm, burst in bursts.items() for rate in (100.0, 200.0, 300.0)
    ]  # fmt: skip
    kinds = dict.fromkeys(("r100.0", "r200.0", "r300.0"), "read")
    points = evidence.load_curve_points(pd.DataFrame(rows), kinds, ("on demand", "unknown"))
    assert points.groupby("arm")["cap_iops"].unique().map(list).to_dict() == {
        "by credit": [500.0],
        "on demand": [3500.0],
        "unknown": [500.0],
    }
