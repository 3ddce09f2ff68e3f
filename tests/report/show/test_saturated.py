"""What a reader sees of a run whose deep cells are held by a limit that no table names."""

from __future__ import annotations

from pathlib import Path

import pytest

from diskbook.report import show
from diskbook.report.analysis.run import Analysis, analyse
from diskbook.report.show import sentences
from diskbook.results import tables as store_tables
from support import synthetic


@pytest.fixture(scope="module")
def a(tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    """Deep cells run at 5,100 IOPS, where the tables name twice as much and more."""
    run = synthetic.run_folder(Path(tmp_path_factory.mktemp("saturated")) / "run")
    tables = store_tables.read(run.folder)
    caps = [name for name in tables.trials if name.startswith("cap_")]
    trials = tables.trials.assign(**{name: 2.0 * tables.trials[name] for name in caps})
    store_tables.write(store_tables.Tables(trials, tables.bins, tables.series), run.folder)
    return analyse(run)


@pytest.mark.long
def test_cells_carry_the_label_and_the_evidence(a: Analysis) -> None:
    page = show.cells(a)
    assert page.count("saturated, limit not known") == 10 and "a limit that is not known" in page
    assert "I/Os in flight at the" in page


@pytest.mark.long
def test_the_refusal_is_said_with_its_reason(a: Analysis) -> None:
    page = show.capped(a)
    assert page.count("(saturated)") == 2 and "saturated by a limit that is not known" in page
    assert "measure at queue depth 1" in page


def test_a_ratio_of_rates_is_one_of_limits(a: Analysis) -> None:
    row = a.comparisons[a.comparisons["verdict"] == "saturated"].iloc[0].to_dict()
    sentence = sentences.sentence({**row, "metric": "iops", "ratio": 1.001}, a.scenario)
    assert "to that of LRS from zone 1: +0.10 %, a ratio of limits: saturated by a limit" in sentence


def test_a_ratio_of_rates_that_nothing_explains_is_one_of_disks_or_of_limits(a: Analysis) -> None:
    row = a.comparisons[a.comparisons["verdict"] == "saturated"].iloc[1].to_dict()
    numbers = {"ratio": 0.64, "ci_low": 0.63, "ci_high": 0.65, "metric": "iops", "verdict": "inconclusive"}
    why = "whether a disk or a queue is measured is not known of lrs-z1 (no cell at depth 1)"
    sentence = sentences.sentence({**row, **numbers, "warnings": why}, a.scenario)
    assert "to that of LRS from zone 1: -36 % (95 % CI -37 to -35 %) (" in sentence
    assert f"a ratio of disks or of limits (inconclusive): {why}" in sentence


def test_more_of_the_same_is_not_advised(a: Analysis) -> None:
    deep = a.comparisons[a.comparisons["verdict"] == "saturated"].assign(family="headline")
    assert "saturated; more of the same would measure the limits" in " ".join(
        sentences.more_measuring(deep, a.scenario)
    )


@pytest.mark.long
def test_percentiles_of_a_queue_are_left_out(a: Analysis) -> None:
    assert "depth 256" not in show.percentiles(a) and "depth 1" in show.percentiles(a)
    assert not a.percentile_ratios["workload"].str.contains("256").any()


def test_the_figure_names_it(a: Analysis) -> None:
    assert [text.get_text() for text in a.ratios.figure.axes[0].texts].count(
        "no latency ratio: saturated"
    ) == 2
