"""Limits that no table names, played and measured by a real fio: no deep cell passes for a latency."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pytest

from diskbook.report.analysis import run as analysis_run, why_text as of_runs
from diskbook.report.analysis.run import Analysis
from diskbook.stats import diagnosis
from diskbook.stats.diagnosis import Diagnosis
from support import SCENARIOS, emulated, played
from support.disturbance import load_sensitive

pytestmark = [pytest.mark.whole, pytest.mark.alone]

DEEP = ("read-qd256", "write-qd64", "write-128k-qd32")


@pytest.fixture(scope="module")
def hidden() -> Iterator[Analysis]:
    """All limits 20 % under nominal; one of the disks works on 8 reads at a time."""
    with emulated.own_place():
        yield analysis_run.analyse(
            emulated.measured("hidden", str(SCENARIOS / "hidden.toml"), "hidden-limit")
        )


def test_all_deep_cells_are_refused_and_by_no_table(hidden: Analysis) -> None:
    cells = hidden.compared.cells
    deep = cells[cells["workload"].isin(DEEP)]
    assert len(deep) == 6 and set(deep["limit"]) == {""} and deep["share"].max() < 0.85
    with load_sensitive():
        assert (deep["in_flight"] > 2.5 * deep["needed"]).all()
        assert set(deep["label"]) == {"saturated, limit not known"}


def test_no_verdict_on_a_latency_stands_on_them(hidden: Analysis) -> None:
    rows = hidden.comparisons[hidden.comparisons["workload"].isin(DEEP)]
    with load_sensitive():
        assert set(rows["verdict"]) == {"saturated"}
        assert rows.loc[rows["metric"] == "lat_mean_ms", ["ratio", "ci_low", "diff_ms"]].isna().all(axis=None)
        assert not set(DEEP) & set(hidden.percentile_ratios["workload"])
    (rate,) = rows.loc[(rows["metric"] == "iops") & (rows["scope"] == "these disks"), "ratio"]
    rates = hidden.trials[hidden.trials["workload"] == "write-qd64"].set_index(["arm", "block"])["iops"]
    assert rate == pytest.approx(np.exp(np.log(rates["zrs-z1"] / rates["lrs-z1"]).mean()))
    with load_sensitive():
        assert rate == pytest.approx(1, abs=0.15)  # equal limits are planted


def test_a_limit_just_below_what_disks_would_reach_gives_no_false_verdict(hidden: Analysis) -> None:
    """Single I/Os take 1.41 times as long; both arms of 12 wait 1.4 and 1.5 times as long as they would."""
    cells = hidden.compared.cells
    just_below = cells[cells["workload"] == "read-qd12"]
    rows = hidden.comparisons[hidden.comparisons["workload"] == "read-qd12"]
    assert not rows["verdict"].str.startswith("equivalent").any()
    assert (rows.loc[rows["verdict"] == "difference", "ratio"] > 1).all()
    # A busy machine may hold 12 in flight back more than the limit does, which 256 then show.
    held = just_below[~just_below["shown"]]
    assert len(held) == 0 or rows["diff_ms"].isna().all()
    assert not held["binds"].str.startswith("the tool's own").any()


def test_cells_without_a_queue_keep_their_ratio(hidden: Analysis) -> None:
    cells = hidden.compared.cells
    rows = hidden.comparisons[hidden.comparisons["scope"] == "these disks"].set_index("workload")
    truth = json.loads((hidden.run.folder / "truth.json").read_text())
    least, most = played.as_seen(3.1 / 2.2, 2.2, hidden.trials, truth)
    drawn = played.analysis_as_drawn(hidden, truth).comparisons.query("scope == 'these disks'")
    (ratio,) = drawn.loc[drawn["workload"] == "read-qd1", "ratio"]  # intervals of two blocks hold much
    with load_sensitive():  # a rate at depth that is too low for these latencies leaves no ratio
        assert ratio == pytest.approx(3.1 / 2.2, rel=0.1)
        assert set(cells.loc[~cells["workload"].isin([*DEEP, "read-qd12"]), "label"]) == {"below cap"}
        for load in ("read-qd1", "read-qd3"):  # the noise of machines and disks is 1 %
            assert rows.loc[load, "ci_low"] < most * 1.02 and rows.loc[load, "ci_high"] > least / 1.02


def test_why_names_the_saturation_and_no_limit(hidden: Analysis) -> None:
    findings = diagnosis.findings(hidden.trials, hidden.tables.series, hidden.compared.cells)
    text = of_runs.of_run(str(hidden.run.folder))
    with load_sensitive():
        queues = sum(finding.verdict == Diagnosis.SATURATED for finding in findings)
        assert 6 <= queues <= 8  # those of 12 in flight may be as well
        assert f"saturated, limit not known: {queues} of 16 cells" in text
        assert "throttling by the host or the account" in text


def test_the_figure_says_so(hidden: Analysis) -> None:
    with load_sensitive():
        assert "refused" in hidden.ratios.description
