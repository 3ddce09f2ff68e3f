"""Limits that no table names, played and measured by a real fio: no deep cell passes for a latency."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from diskbook.analysis import diagnosis as of_runs, run as analysis_run
from diskbook.analysis.run import Analysis
from diskbook.throttling import diagnosis
from diskbook.throttling.diagnosis import Diagnosis
from support import SCENARIOS, emulated

pytestmark = [pytest.mark.whole, pytest.mark.alone]

DEEP = ("read-qd64", "read-qd256", "write-qd64", "write-qd256", "read-128k-qd32", "write-128k-qd32")


@pytest.fixture(scope="module")
def hidden() -> Iterator[Analysis]:
    """All limits 20 % under nominal; one of the disks works on 8 reads at a time."""
    with emulated.own_place():
        yield analysis_run.analyse(
            emulated.measured("hidden", str(SCENARIOS / "hidden.toml"), "hidden-limit")
        )


def test_all_twelve_deep_cells_are_refused_and_by_no_table(hidden: Analysis) -> None:
    cells = hidden.compared.cells
    deep = cells[cells["workload"].isin(DEEP)]
    assert len(deep) == 12 and (deep["in_flight"] > 2.5 * deep["needed"]).all()
    assert set(deep["label"]) == {"saturated, limit not known"} and set(deep["limit"]) == {""}
    assert deep["share"].max() < 0.85


def test_no_verdict_on_a_latency_stands_on_them(hidden: Analysis) -> None:
    rows = hidden.comparisons[hidden.comparisons["workload"].isin(DEEP)]
    assert set(rows["verdict"]) == {"saturated"}
    assert rows.loc[rows["metric"] == "lat_mean_ms", ["ratio", "ci_low", "diff_ms"]].isna().all(axis=None)
    (rate,) = rows.loc[(rows["metric"] == "iops") & (rows["scope"] == "these disks"), "ratio"]
    assert rate == pytest.approx(1.0, abs=0.03)
    assert not set(DEEP) & set(hidden.percentile_ratios["workload"])


def test_cells_without_a_queue_keep_their_ratio(hidden: Analysis) -> None:
    cells = hidden.compared.cells
    assert set(cells.loc[~cells["workload"].isin(DEEP), "label"]) == {"below cap"}
    rows = hidden.comparisons[hidden.comparisons["scope"] == "these disks"].set_index("workload")
    for load in ("read-qd1", "read-qd3"):
        assert rows.loc[load, "ci_low"] < 3.1 / 2.2 * 1.05 and rows.loc[load, "ci_high"] > 3.1 / 2.2 / 1.05


def test_why_names_the_saturation_and_no_limit(hidden: Analysis) -> None:
    findings = diagnosis.findings(hidden.trials, hidden.tables.series, hidden.compared.cells)
    assert sum(finding.verdict == Diagnosis.SATURATED for finding in findings) == 12
    text = of_runs.of_run(str(hidden.run.folder))
    assert "saturated, limit not known: 12 of 22 cells" in text
    assert "throttling by the host or the account" in text


def test_the_answer_and_the_figure_say_so(hidden: Analysis) -> None:
    assert "a limit that is not known sets the rate" in hidden.iops_and_caps.title
    assert "12 cells saturated by a limit that is not known" in hidden.iops_and_caps.caption
    assert "refused" in hidden.ratios.caption
