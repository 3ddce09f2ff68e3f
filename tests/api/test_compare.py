"""Comparisons that an analyst asks for: any two arms, any load and metric, after all gates."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from scipy import stats

import diskbook as db
from diskbook.api.results import RunResults
from diskbook.design.vocabulary import Verdict
from diskbook.facts import alt_text
from support import samples

QD1 = {"workload": "randwrite-qd1"}


@pytest.fixture(scope="module")
def run() -> db.RunResults:
    return RunResults(samples.analysed("zone-disks"))


def log_ratios(run: db.RunResults, arm: str, base: str, metric: str = "lat_mean_ms") -> np.ndarray:
    """Mean log ratio of each replicate, in plain pandas."""
    rows = run.trials.query("workload == 'randwrite-qd1' and status == 'ok'")
    blocks = np.log(rows.groupby(["replicate", "block", "arm"])[metric].mean()).unstack()
    return np.array((blocks[arm] - blocks[base]).groupby("replicate").mean())


@pytest.mark.long
@pytest.mark.parametrize(
    ("arm", "base", "metric", "exploratory", "exact"),
    [("zrs-z1", "lrs-z1", "lat_mean_ms", False, 1e-9), ("zrs-z1", "lrs-z2", "lat_p99_ms", True, 1e-5)],
)  # intervals of percentiles also hold the rounding of what the tool prints
def test_the_number_is_that_of_pandas_and_scipy(
    run: db.RunResults, arm: str, base: str, metric: str, exploratory: bool, exact: float
) -> None:
    result = run.compare(arm, base, **QD1, metric=metric)
    logs = log_ratios(run, arm, base, metric)
    interval = stats.ttest_1samp(logs, 0).confidence_interval(result.scope.level)
    assert result.scope is result.disks_like_these
    assert result.scope.ci == pytest.approx((np.exp(interval.low), np.exp(interval.high)), rel=exact)
    assert result.change_pct == pytest.approx(100 * np.expm1(logs.mean()), rel=1e-9)
    assert result.value / result.base_value == pytest.approx(result.scope.ratio, rel=1e-9)
    assert result.worse is True and result.unit == "ms" and result.verdict == Verdict.DIFFERENCE
    assert bool(result.exploratory) == exploratory == ("exploratory" in repr(result))
    assert len(result.blocks) == result.these_disks.n and "EMULATED" not in result.exploratory
    assert "emulator" in repr(result) and "emulator" in result._repr_html_()


@pytest.mark.long
def test_turned_round_the_ratio_is_the_inverse_and_better(run: db.RunResults) -> None:
    there, back = (run.compare(*arms, **QD1) for arms in (("zrs-z1", "lrs-z1"), ("lrs-z1", "zrs-z1")))
    assert back.scope.ratio == pytest.approx(1 / there.scope.ratio, rel=1e-9)
    assert back.worse is False and back.exploratory and not there.exploratory


def test_a_capped_latency_is_withheld_with_its_reason(run: db.RunResults) -> None:
    result = run.compare("zrs-z1", "lrs-z1", workload="randwrite-qd256")
    assert np.isnan(result.change_pct) and result.worse is None and result.verdict == Verdict.CAPPED
    assert "5,000 IOPS" in result.reason and "withheld" in repr(result)
    assert (result.gates["status"] != "passed").any()


@pytest.mark.long
def test_a_family_allows_for_the_number_of_comparisons(run: db.RunResults) -> None:
    results = run.compare_all(["zrs-z1", "zrs-z2", "zrs-z3"], base="lrs-z1", **QD1)
    assert [item.arm for item in results] == ["zrs-z1", "zrs-z2", "zrs-z3"]
    assert all(item.exploratory and item.verdict == Verdict.DIFFERENCE for item in results)


@pytest.mark.long
def test_without_some_trials_the_gates_stay_on_and_all_is_exploratory(run: db.RunResults) -> None:
    fewer = run.without("block == 1")
    result = fewer.compare("zrs-z1", "lrs-z1", **QD1)
    assert set(result.blocks["block"]) == set(run.trials["block"]) - {1}
    assert "without block == 1" in result.exploratory and len(result.gates) > 10
    assert set(fewer.comparisons["family"]) == {"exploratory"} and fewer.answer.startswith("exploratory")
    assert "without block == 1" in fewer.figures["ratios"].caption and "without" in fewer.caption
    capped = run.without("block == 2").compare("zrs-z1", "lrs-z1", workload="randwrite-qd256")
    assert capped.verdict == Verdict.CAPPED and capped.exploratory


@pytest.mark.long
def test_the_figures_draw_and_save_themselves(run: db.RunResults, tmp_path: object) -> None:
    axes = run.compare("zrs-z1", "lrs-z1", **QD1).plot()
    assert [text.get_text() for text in axes.texts] == ["EMULATED"] and axes.get_xlabel() == "change, %"
    alt = alt_text.alternative(axes.figure)["image/png"]["alt"]
    assert alt.startswith("Changes in percent, zrs-z1 against lrs-z1") and "these disks: +" in alt
    path = run.figures["ratios"].save(f"{tmp_path}/ratios.svg", width=390)
    assert path.read_bytes().startswith(b"<svg") or b"<svg" in path.read_bytes()[:400]
    assert run.figures["all-trials"].draw().images


def test_a_histogram_holds_every_io_of_its_trial(run: db.RunResults) -> None:
    trial = run.trials.query("status == 'ok'").iloc[0]
    table = run.histogram(trial["trial"])
    assert table["ios"].sum() == pytest.approx(trial["ios"], abs=2)  # in flight as the time ended
    assert table["share"].iloc[-1] == pytest.approx(1)
    assert "disk limit of 5,000 IOPS" in run.why("zrs-z1", "randwrite-qd256")


@pytest.mark.long
@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda run: run.compare("zrs-z1", "lrs-zone1", **QD1), "did you mean 'lrs-z"),
        (lambda run: run.compare("zrs-z1", "lrs-z1", workload="randrite-qd1"), "did you mean 'rand"),
        (lambda run: run.compare("zrs-z1", "lrs-z1", **QD1, metric="lat"), "known: iops, lat_mean_ms"),
        (lambda run: run.compare("zrs-z1", "lrs-z1", **QD1, direction="read"), "no direction 'read'"),
        (
            lambda run: run.without("arm == 'zrs-z1'").compare("zrs-z1", "lrs-z1", **QD1),
            "arm 'zrs-z1' has no finished trial of workload 'randwrite-qd1'",
        ),
        (lambda run: run.without("blok == 1"), "'blok' is not defined"),
        (lambda run: run.without("block > 0"), "leaves no trial"),
        (lambda run: run.figures["ratio"], "did you mean 'ratios'"),
        (lambda run: run.histogram("r1"), "known: r1-b01-p001-"),
        (lambda _: db.open_run("sample-zone-disk"), "did you mean 'sample-zone-disks'"),
        (lambda _: db.pool(["sample-zone-disks"]), "needs two runs"),
        (
            lambda run: db.pool([run, RunResults(samples.analysed("disk-options"))]),
            "no comparison in common",
        ),
    ],
)
def test_a_mistake_gets_one_sentence(run: db.RunResults, call: object, words: str) -> None:
    with pytest.raises(db.UsageError) as caught:
        call(run)  # type: ignore[operator]
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_the_interface_is_small() -> None:
    assert len(db.__all__) <= 25 and dir(db) == sorted(db.__all__)
    for name in db.__all__:
        item = getattr(db, name)
        assert item.__doc__, name
        if inspect.isclass(item):
            assert len([member for member in vars(item) if not member.startswith("_")]) <= 20, name
    with pytest.raises(AttributeError, match="no attribute 'opne_run'"):
        db.opne_run  # noqa: B018
