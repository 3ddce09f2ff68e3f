"""Figures: the same bytes from the same data, "emulated" always in them, words made from the numbers."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text
from PIL import Image

from diskbook.report import figures
from diskbook.report.analysis.run import Analysis, analyse
from diskbook.report.figures import Picture
from diskbook.report.figures.export import as_png, as_svg, data_hash
from diskbook.report.figures.forest import rows as forest_rows
from diskbook.report.figures.scales import percent, reach, value_words
from diskbook.report.figures.style import DIFFERENCE, GROUND
from diskbook.report.show import tables as show_tables
from support import synthetic

ENDS = (".svg", "@2x.png", ".json", ".md", ".html", ".caption.txt", ".description.txt", ".csv", "-390px.svg")
PLOTS = ("ratios", "all_trials", "percentile_plot")
SMALL: dict[str, Any] = {"n_blocks": 2, "draws": 100, "loads": (synthetic.READ, synthetic.WRITE)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return synthetic.run_folder(tmp_path_factory.mktemp("runs") / "synthetic").folder


@pytest.fixture(scope="module")
def emulated(folder: Path) -> Analysis:
    return analyse(folder)


def picture(analysis: Analysis, name: str) -> Picture:
    return getattr(analysis, name)


@pytest.mark.long
def test_exported_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    """Two analyses of the same files, drawn and written apart."""
    folder = synthetic.run_folder(tmp_path / "run", **SMALL).folder
    first, second = (figures.export(analyse(folder).all_trials, tmp_path / name) for name in "ab")
    slug = first[0].stem
    assert {path.name for path in first} == {f"{slug}{end}" for end in ENDS}
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()


@pytest.mark.long
@pytest.mark.parametrize("name", PLOTS)
def test_emulated_stands_once_in_the_figure_and_in_its_words(emulated: Analysis, name: str) -> None:
    found = picture(emulated, name)
    assert sum("EMULATED" in text.get_text() for text in found.figure.findobj(Text)) == 1
    (source,) = [text.get_text() for text in found.figure.texts if text.get_gid() == "source"]
    words = source.replace("\n", " ")
    assert words.startswith(f"Run synthetic, {emulated.trials['started_utc'].min():%Y-%m-%d}, westeurope; ")
    assert "Premium_LRS 1,024 GiB" in words and words.endswith("diskbook (emulated), MIT licence")
    assert "mulated" in found.caption and "mulated" in found.alt and found.provenance == "emulated"
    assert b'id="emulated"' in as_svg(found)


@pytest.mark.long
def test_an_azure_run_is_not_called_emulated(tmp_path: Path) -> None:
    azure = analyse(synthetic.run_folder(tmp_path / "run", provenance="azure", **SMALL).folder)
    for found in (picture(azure, name) for name in PLOTS):
        assert not any("EMULATED" in text.get_text() for text in found.figure.findobj(Text))
        assert "mulated" not in found.caption + found.alt


@pytest.mark.long
def test_png_is_twice_the_page_width(emulated: Analysis, tmp_path: Path) -> None:
    path = tmp_path / "x.png"
    path.write_bytes(as_png(emulated.ratios))
    with Image.open(path) as image:
        assert image.width == 1440
        assert (
            image.info["Source"] == "run synthetic, emulated"
            and "changes between arms" in image.info["Description"]
        )


def test_the_sidecar_holds_words_and_hash(emulated: Analysis, tmp_path: Path) -> None:
    facts = json.loads(figures.export(emulated.ratios, tmp_path)[2].read_text())
    assert set(facts) == {
        "slug",
        "title",
        "caption",
        "alt",
        "description",
        "data_sha256",
        "run",
        "provenance",
    }
    assert facts["data_sha256"] == data_hash(emulated.ratios.data)
    ratio = emulated.comparisons.query("workload == 'randwrite-qd1' and scope == 'these disks'").iloc[0][
        "ratio"
    ]
    assert (
        f"+{percent(ratio):.0f} %" in facts["description"]
        and f"{percent(ratio):.0f} % longer" in facts["title"]
    )


@pytest.mark.long
def test_a_title_claims_no_difference_that_was_not_found(tmp_path: Path) -> None:
    same = {"write": 1.3, "read": 2.2, "commit": 1.9}
    truth = synthetic.Truth(dict.fromkeys(synthetic.Truth().latency_ms, same))
    found = analyse(synthetic.run_folder(tmp_path / "run", truth=truth, n_blocks=5).folder)
    assert found.ratios.title == "One 4K write from zone 1 takes the same time on ZRS and on LRS, within 5 %"


def test_the_hash_follows_the_data(emulated: Analysis) -> None:
    data = emulated.ratios.data
    assert data_hash(data) != data_hash(data.assign(ratio=data["ratio"] * 1.000001))
    last_digit = data.assign(ratio=np.nextafter(data["ratio"], math.inf))
    assert data_hash(data) == data_hash(last_digit), "it depends on the build of numpy"


def test_capped_rows_show_no_number(emulated: Analysis) -> None:
    texts = [text.get_text() for text in emulated.ratios.figure.axes[0].texts]
    assert texts.count("refused") == 2 and texts.count("no latency ratio: on a cap") == 2
    assert "2 comparisons refused" in emulated.ratios.description


def test_a_ratio_of_two_machines_is_not_drawn_as_a_difference(emulated: Analysis) -> None:
    """One replicate, arms on two machines: whatever the interval, no colour of a finding."""
    row = forest_rows(emulated.comparisons).iloc[[0]]
    draw = partial(figures.forest, looks=emulated.looks, words=emulated.words, title="t", run="r")
    alone = draw(row.assign(pairing="replicate", verdict="inconclusive", method="t over blocks"))
    paired = draw(row)
    marks = [line for one in (paired, alone) for line in one.figure.axes[0].lines if line.get_marker() == "D"]
    assert row["ci_low"].iloc[0] > 1
    assert [mark.get_markerfacecolor() for mark in marks] == [DIFFERENCE, GROUND]
    assert "inconclusive, since the machines may differ as well" in alone.description
    assert "1 change can tell nothing" in alone.alt
    assert "machines may differ" not in paired.description + paired.alt
    refused = draw(row.assign(pairing="replicate", verdict="inconclusive", ratio=np.nan, ci_low=np.nan))
    texts = [text.get_text() for text in refused.figure.axes[0].texts]
    assert "one replicate: machines may differ" in texts


def test_the_nearest_zone_that_replicates_share_is_part_of_the_scope(emulated: Analysis) -> None:
    rows = forest_rows(emulated.comparisons).assign(scope="disks like these", n_replicates=3)
    draw = partial(figures.forest, looks=emulated.looks, words=emulated.words, title="t", run="r")
    zoned = rows["arm"].str.startswith("zrs")
    near = draw(rows.assign(nearest_zone=np.where(zoned, "az2", "")))
    assert "scope: disks like these, zone-redundant ones nearest to az2;" in near.description
    assert (
        near.description.count("disks like these whose nearest zone is az2") == rows["ratio"][zoned].count()
    )
    both = draw(rows.assign(nearest_zone=np.where(zoned, "az2", "az3")))
    assert "scope: disks like these, zone-redundant ones by their nearest zone;" in both.description
    older = draw(rows.drop(columns="nearest_zone"))
    assert "scope: disks like these;" in older.description and "nearest" not in older.description
    general = emulated.comparisons["scope"] == "disks like these"
    told = emulated.comparisons.assign(nearest_zone=np.where(general, "az2", ""))
    a = SimpleNamespace(comparisons=told, words=emulated.words, labels=emulated.labels)
    table = show_tables.comparisons(a)
    assert "Holds for disks like these whose nearest zone is az2" in table


def test_forest_rows_are_in_the_order_of_the_scenario_within_their_family(emulated: Analysis) -> None:
    rows = forest_rows(emulated.comparisons)
    assert rows["family"].drop_duplicates().tolist() == ["headline", "exploratory", "control"]
    names = ["family", "arm", "base_arm", "workload"]
    order = [[getattr(item, name) for name in names] for item in emulated.scenario.comparison]
    for family, group in rows.groupby("family"):
        assert group[names].to_numpy().tolist() == [
            row for row in order if row[0] == family and row in group[names].to_numpy().tolist()
        ]


def row(ratio: float, half: float = 0.01, verdict: str = "difference") -> dict[str, object]:
    return {"arm": "a", "base_arm": "b", "workload": f"w{ratio}", "metric": "lat_mean_ms",
            "family": "headline", "scope": "these disks", "verdict": verdict,
            "pairing": "same-machine", "n_replicates": 1,
            "n_blocks": 4, "level": 0.95, "method": "t", "provenance": "azure", "nearest_zone": "",
            "ratio": ratio, "ci_low": ratio * (1 - half), "ci_high": ratio * (1 + half)}  # fmt: skip


def forest(*rows: dict[str, object]) -> Picture:
    looks = {name: figures.ArmLook(name, "#0072B2", "o", "-") for name in ("a", "b")}
    return figures.forest(pd.DataFrame(list(rows)), looks, {}, "A title", "run")


@pytest.mark.long
@pytest.mark.parametrize("verdict", ["difference", "equivalent", "inconclusive", "interim"])
def test_a_filled_mark_means_a_difference_and_nothing_else(verdict: str) -> None:
    """Whatever the interval says: the verdict knows more, such as the margin, the gates and the family."""
    shown = {1.02: 0.005, 1.0: 0.05, 2.0: 0.01, 1.3: np.nan}
    (axes,) = forest(*(row(ratio, half, verdict) for ratio, half in shown.items())).figure.axes
    marks = [line for line in axes.lines if line.get_marker() == "D"]
    assert {mark.get_markerfacecolor() == DIFFERENCE for mark in marks} == {verdict == "difference"}
    assert sorted(x for mark in marks for x in mark.get_xdata()) == sorted(map(percent, shown))


def test_changes_have_one_axis_in_percent_whose_ends_say_which_is_faster() -> None:
    picture = forest(row(2.46), row(0.9), row(1.3))
    (axes,) = picture.figure.axes
    low, high = axes.get_xlim()
    assert low < -10 and 148 < high < 180 and axes.get_xscale() == "linear"
    texts = [text.get_text() for text in axes.texts]
    assert texts[:2] == ["← faster", "slower →"] and "+146 %, 144 to 148 %" in texts
    assert not any(sign in "".join(texts) for sign in ("×", "times", "log"))


def test_a_change_ten_times_as_far_as_the_others_is_an_arrow_at_the_end() -> None:
    picture = forest(row(1.02), row(0.97), row(0.04), row(1.01), row(9.0))
    (axes,) = picture.figure.axes
    assert max(abs(end) for end in axes.get_xlim()) < 10 and "Arrow: beyond the axis." in picture.description
    texts = [text.get_text() for text in axes.texts]
    assert (texts.count("←"), texts.count("→")) == (1, 1) and "-96.0 %, -96.0 to -96.0 %" not in texts
    assert "Arrow" not in forest(row(1.02), row(0.97)).description
    assert reach([]) == (-4.0, 4.0)


def test_small_changes_keep_their_digits() -> None:
    words = {"ratio": 0.9986, "ci_low": 0.9974, "ci_high": 0.9991, "level": 0.95}
    assert value_words(words) == "-0.14 %, -0.26 to -0.09 %"
    assert value_words({**words, "ci_low": math.nan, "ci_high": math.nan}) == "-0.14 %, no interval"


@pytest.mark.long
@pytest.mark.parametrize("name", ["all_trials"])
def test_a_panel_names_only_arms_that_it_has(emulated: Analysis, name: str) -> None:
    """An empty row looks like a disk that gave nothing; a commit is another load than a random write."""
    a, trials = emulated, emulated.trials
    gone = (trials["arm"] == "zrs-z3") & trials["workload"].str.startswith("randwrite")
    part = Analysis(a.run, a.scenario, a.manifest, replace(a.tables, trials=trials[~gone]))
    for axes in picture(part, name).figure.axes:
        shown = {text.get_text() for text in axes.get_yticklabels()}
        assert (part.labels["zrs-z3"] in shown) == ("random write" not in axes.get_title(loc="left"))


def test_lrs_is_a_solid_blue_circle_and_zrs_a_dashed_vermillion_square(emulated: Analysis) -> None:
    looks = emulated.looks
    assert (looks["lrs-z1"].colour, looks["lrs-z1"].marker, looks["lrs-z1"].line) == ("#0072B2", "o", "-")
    assert (looks["zrs-z1"].colour, looks["zrs-z1"].marker) == ("#D55E00", "s") and looks[
        "zrs-z1"
    ].line != "-"
    shapes = {(look.marker, look.filled) for look in looks.values()}
    assert len(shapes) == len(looks)  # told apart without colour


def test_html_has_alt_text_and_caption(emulated: Analysis) -> None:
    markup = figures.html(emulated.ratios)
    assert (
        markup.startswith('<figure id="ratios"><picture><source media="(max-width:480px)" srcset="data:')
        and '<img alt="9 emulated latency changes' in markup
        and "<figcaption>Emulated" in markup
        and '<details class="description"><summary>In words</summary>' in markup
    )


@pytest.mark.long
def test_a_run_without_a_finished_trial_is_still_drawn(tmp_path: Path) -> None:
    run = synthetic.run_folder(tmp_path / "run", **SMALL)
    whole = analyse(run.folder)
    nothing = whole.tables.trials.assign(status="incomplete_block")
    empty = type(whole.tables)(nothing, whole.tables.bins.iloc[:0], whole.tables.series.iloc[:0])
    a = Analysis(run, whole.scenario, whole.manifest, empty)
    assert all(len(as_svg(picture(a, name))) > 1000 for name in PLOTS)


@pytest.mark.long
def test_loads_that_are_none_of_them_single_or_unheld_are_drawn_all_the_same(tmp_path: Path) -> None:
    """A scenario of one's own may hold rates only, at any depth."""
    run = synthetic.run_folder(tmp_path / "run", **SMALL)
    manifest = run.manifest
    for load in manifest["scenario"]["workload"]:
        load |= {"queue_depth": 8, "rate": 1000.0}
    (run.folder / "manifest.json").write_text(json.dumps(manifest))
    found = analyse(run.folder)
    for name in PLOTS:
        assert len(picture(found, name).figure.axes) >= 1
    assert "In every trial, " in found.all_trials.title and "depth 8" in found.percentile_plot.title
