"""Narrative, analysis notebook and report."""

from __future__ import annotations

import html.parser
import math
import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import nbformat
import numpy as np
import pandas as pd
import papermill
import pytest

from diskbook.design import scenario_file, schema
from diskbook.facts import paths, quantities
from diskbook.facts.errors import DiskbookError
from diskbook.report.analysis import report as reports
from diskbook.report.analysis.run import Analysis, analyse
from diskbook.report.show import (
    facts as show_facts,
    headlines,
    run as show_run,
    sentences,
    tables as show_tables,
)
from diskbook.report.show.analysed import ReplicateCost
from diskbook.results import tables
from diskbook.results.run import Run
from support import synthetic

pytestmark = pytest.mark.emulator

OWN = """import matplotlib.pyplot as plt
print("printed by", "an analyst")
plt.plot([1, 2])
plt.show()
run.trials[["arm"]].head(1)"""
NOTEBOOK = paths.NOTEBOOKS / "3-analyse-zone-disks.ipynb"


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Run:
    """A made-up run, analysed by the notebook under another name and with a cell more."""
    found = synthetic.run_folder(tmp_path_factory.mktemp("runs") / "synthetic", draws=200)
    executed = found.folder / "notebooks" / NOTEBOOK.name
    executed.parent.mkdir()
    mine = nbformat.read(NOTEBOOK, as_version=4)
    place = next(n for n, cell in enumerate(mine.cells) if cell.source == "show.sure(a)")
    mine.cells.insert(place + 1, nbformat.v4.new_code_cell(OWN))
    nbformat.write(mine, found.folder.parent / "mine.ipynb")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IPYTHONDIR", str(found.folder.parent / "ipython"))
        papermill.execute_notebook(
            str(found.folder.parent / "mine.ipynb"),
            str(executed),
            {"run": str(found.folder)},
            progress_bar=False,
            kernel_name="python3",
        )
    return found


@pytest.fixture(scope="module")
def found(run: Run) -> Analysis:
    return analyse(run)


@pytest.fixture(scope="module")
def live(run: Run) -> bytes:
    """The report that the notebook's last cell wrote."""
    return (run.folder / "report.html").read_bytes()


@pytest.fixture(scope="module")
def page(run: Run, live: bytes) -> str:
    return reports.build(run).read_text()


class Page(html.parser.HTMLParser):
    """Headings, images and addresses of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.headings: list[str] = []
        self.images: list[dict[str, str | None]] = []
        self.addresses: list[str] = []
        self.tags: set[str] = set()
        self.lang: str | None = None
        self._heading = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags.add(tag)
        self._heading = tag in ("h1", "h2")
        if tag == "html":
            self.lang = found.get("lang")
        if tag == "img":
            self.images.append(found)
        self.addresses += [value for name, value in attrs if name in ("src", "href") and value]

    def handle_data(self, data: str) -> None:
        if self._heading:
            self.headings.append(data.strip())
            self._heading = False


def test_the_notebook_writes_what_it_says(run: Run) -> None:
    table = pd.read_csv(run.folder / "comparisons.csv")
    assert list(table.columns) == [column.name for column in schema.COMPARISONS.columns] and len(table) == 22
    slugs = {"ratios", "all-trials", "percentiles"}
    names = {path.name for path in (run.folder / "figures").iterdir()}
    ends = (
        ".svg",
        "-390px.svg",
        "@2x.png",
        ".json",
        ".md",
        ".html",
        ".caption.txt",
        ".description.txt",
        ".csv",
    )
    assert names == {f"{slug}{end}" for slug in slugs for end in ends}


def test_the_command_makes_the_same_report_as_the_last_cell(page: str, live: bytes) -> None:
    assert page.encode() == live
    assert b"Contents" in live and b"without" not in live[-3000:]


def test_the_report_is_one_page_in_the_order_of_reading(page: str) -> None:
    found = Page(page)
    wanted = [
        "How sure?",
        "What it does not say",
        "Every comparison of latency",
        "All trials",
        "Headline comparisons and controls",
        "Method",
        "For reviewers",
    ]
    assert [heading for heading in found.headings if heading in wanted] == wanted
    assert found.lang == "en" and "script" not in found.tags and "link" not in found.tags
    external = [
        address for address in found.addresses if not address.startswith(("#", "data:", "4-teardown"))
    ]
    assert external == [] and "http" not in reports.STYLE


def test_an_analysts_cell_is_in_the_report(page: str) -> None:
    own = page[page.index("printed by an analyst") :]
    assert own.index("data:image/png") < own.index("<td>") < own.index("What it does not say")


def test_reviewers_parts_are_folded_and_begin_with_the_computation(page: str) -> None:
    folded = page.partition('<details class="reviewers">')[2]
    assert "<h2" in folded.partition("</summary>")[0] and "% by the workbook" in folded
    assert folded.index("computed in the open") < folded.index("<table") and "show.gates" not in page


def test_every_figure_has_alt_text(page: str) -> None:
    texts = [image["alt"] or "" for image in Page(page).images]
    assert len(texts) == 5 and texts.count("a figure") == 1  # an analyst's own, without titles or labels
    assert all(len(text) > 60 and "No description" not in text for text in texts if text != "a figure")


def test_the_answer_comes_first_and_set_up_is_hidden(page: str) -> None:
    body = page[page.index("<main>") :]
    answer = body.index("On the emulator, one 4K write from zone 1 takes")
    assert answer < body.index('role="img"') < body.index("<figure")
    assert "from diskbook" not in body and "sample-zone-disks" not in body


def test_a_title_is_text_whatever_it_holds(run: Run, tmp_path: Path) -> None:
    other = Run(shutil.copytree(run.folder, tmp_path / "other"))
    manifest = other.manifest
    manifest["scenario"]["scenario"]["title"] = '<script>"a" & b</script>'
    other.write_manifest(manifest)
    page = reports.build(other).read_text()
    assert "<title>&lt;script&gt;&#34;a&#34; &amp; b&lt;/script&gt; (" in page


def test_an_emulated_report_says_so_whatever_the_notebook_shows(run: Run, page: str, tmp_path: Path) -> None:
    assert '<header class="banner"><p>EMULATED. <span class="wide">' in page
    bare = nbformat.v4.new_notebook()
    bare.cells = [nbformat.v4.new_code_cell("1", outputs=[nbformat.v4.new_output("stream", text="1")])]
    nbformat.write(bare, tmp_path / "bare.ipynb")
    other = reports.build(run, tmp_path / "bare.ipynb", tmp_path / "bare.html").read_text()
    assert '<header class="banner"><p>EMULATED. <span class="wide">' in other


def test_headings_get_anchors_and_links_to_nowhere_keep_their_words(tmp_path) -> None:
    (tmp_path / "there.csv").write_text("")
    mark = '<a class="anchor-link" href="#x">¶</a>'
    body = f'<h2 id="&quot;A&quot;-b">A &amp; b{mark}</h2><h2 id="A-b">A b{mark}</h2>'
    named = reports._own_anchors(body)
    assert reports._headings(named) == [("a-b", "A & b"), ("a-b-2", "A b")] and "¶" not in named
    links = '<a href="4-teardown.ipynb">next</a> <a href="there.csv">data</a> <a href="#a-b">up</a>'
    kept = 'next <a href="there.csv">data</a> <a href="#a-b">up</a>'
    assert reports._live_links(links, tmp_path) == kept


def test_headline_of_a_run(run: Run, found: Analysis) -> None:
    words = reports.headline(run)
    assert words == found.headline
    assert words.startswith("On the emulator, one 4K write from zone 1 takes ") and "95 % CI" in words


@pytest.mark.parametrize("content", [None, "", "{}", "not json"])
def test_a_damaged_notebook_is_one_sentence(run: Run, tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "executed.ipynb"
    if content is not None:
        path.write_text(content)
    with pytest.raises(DiskbookError, match="analysis"):
        reports.build(run, path, tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()


def test_an_unexecuted_notebook_makes_no_report(run: Run, tmp_path: Path) -> None:
    with pytest.raises(DiskbookError, match="not executed"):
        reports.build(run, NOTEBOOK, tmp_path / "report.html")


def test_headline_before_the_analysis(tmp_path: Path) -> None:
    with pytest.raises(DiskbookError, match=r"comparisons\.csv is missing"):
        reports.headline(synthetic.run_folder(tmp_path / "run", n_blocks=1))


def test_several_replicates_speak_of_disks_like_these(tmp_path: Path) -> None:
    found = analyse(synthetic.run_folder(tmp_path / "run", n_replicates=3, n_blocks=2).folder)
    assert "disks like these whose nearest zone is westeurope-az2" in headlines.headline(
        found.comparisons, found.scenario
    )
    more = sentences.more_measuring(found.comparisons, found.scenario)
    assert "zone is westeurope-az2 with 3 replicates; in 80 % of runs at most ±" in more[0]
    assert not any("No number of blocks" in item for item in more)


def test_a_ratio_has_its_adjusted_p_beside_it(found: Analysis) -> None:
    shown = show_tables.comparisons(found)
    assert "p, adjusted" in shown and "&lt;0.001" in shown and "nan" not in shown.lower()
    refused = found.comparisons.assign(p_adjusted=np.nan)
    assert "p, adjusted" not in show_tables.comparisons(
        SimpleNamespace(comparisons=refused, words=found.words, labels=found.labels)
    )


def test_one_replicate_is_told_what_blocks_cannot_do(found: Analysis) -> None:
    more = sentences.more_measuring(found.comparisons, found.scenario)
    assert "for these two disks in these hours with 4 blocks; in 80 % of runs at most ±" in more[0]
    assert "No number of blocks" in more[-1]


def made_up(low: float, high: float, within: tuple[float, float] = (0.0, 0.0)) -> pd.DataFrame:
    """One headline comparison of 2 replicates with 3 blocks each, with intervals of log ratios as given."""
    common = {"arm": "zrs-z1", "base_arm": "lrs-z1", "workload": "randwrite-qd1", "direction": "write"}
    common |= {"metric": "lat_mean_ms", "family": "headline", "ratio": 1.0, "level": 0.95, "warnings": ""}
    common |= {"n_replicates": 2, "n_blocks": 6, "pairing": "same-machine", "verdict": "difference"}
    scopes = (("disks like these", low, high), ("these disks", *within))
    rows = [
        {**common, "scope": scope, "ci_low": math.exp(one), "ci_high": math.exp(two)}
        for scope, one, two in scopes
    ]
    return pd.DataFrame(rows)


def test_more_replicates_by_hand() -> None:
    """Standard error 0.01 over 2 replicates, t(1) = 12.7062: +-13.5 %; m more times what 80 % of runs keep.

    m = 1: t(2) = 4.302653, F(.8; 1, 1) = 9.472136: .01 sqrt(2 / 3) sqrt(10.472136 / 2) t(2) = .080389.
    m = 5: t(6) = 2.446912, F(.8; 5, 1) = 14.008: .01 sqrt(2 / 7) sqrt(71.04 / 6) t(6) = .045005.
    m = 15: t(16) = 2.119905, F(.8; 15, 1) = 15.044: .01 sqrt(2 / 17) sqrt(226.66 / 16) t(16) = .02737.
    """
    half = 12.7062 * 0.01
    scenario = scenario_file.load("zone-disks", "quick")
    said = sentences.more_measuring(made_up(-half, half), scenario)
    assert said == [
        "write latency at queue depth 1: ±13.5 % for disks like these with 2 replicates; "
        "in 80 % of runs at most ±8.4 % with 1 more, ±4.6 % with 5 more, ±2.8 % with 15 more"
    ]


def test_another_replicate_has_its_price_in_the_last_line() -> None:
    scenario, table = scenario_file.load("zone-disks", "quick"), made_up(-0.1, 0.1)
    cost = ReplicateCost(0.42, "costs that at list price (table)")
    *_, last = sentences.more_measuring(table, scenario, cost)
    assert last.startswith(
        "Another replicate (0.42 USD) costs that at list price (table). Decide on it by the"
    )
    unpriced = ReplicateCost(None, "has no price here")
    assert sentences.more_measuring(table, scenario, unpriced)[-1].startswith(
        "Another replicate has no price here. Decide"
    )
    assert sentences.more_measuring(table.assign(family="exploratory"), scenario, cost) == []


def test_with_one_replicate_the_widths_of_more_come_from_public_measurements() -> None:
    """s = hypot(.02, .0075 / sqrt 6) = .020232; t(1) sqrt(1.642374) s / sqrt 2 = .23296: +-26 %."""
    alone = made_up(-0.1, 0.1).assign(n_replicates=1).iloc[1:].assign(ci_low=0.9, ci_high=1.1)
    said = sentences.more_measuring(alone, scenario_file.load("zone-disks", "quick"))
    assert (
        "Two in all give ±26 % or less, five ±3.1 % or less, each in 80 % of runs, at the spread" in said[-1]
    )


def test_rates_on_caps_are_no_latency_to_narrow() -> None:
    scenario = scenario_file.load("disk-options", "quick")
    arms = {"arm": "g-plus", "base_arm": "h-plain", "workload": "max-write-iops", "metric": "iops"}
    said = sentences.more_measuring(made_up(-0.01, 0.01).assign(**arms, verdict="capped"), scenario)
    assert len(said) == 1 and said[0].startswith("rate in IOPS (4K random write")
    assert said[0].endswith("capped; more of the same would measure the limits, not the disks")


def test_replicates_that_agree_by_chance_are_not_planned_on() -> None:
    scenario = scenario_file.load("zone-disks", "quick")
    said = sentences.more_measuring(made_up(-0.01, 0.01, (-0.05, 0.05)), scenario)
    assert said[0].endswith("by chance: plan on a wider one")


def test_percentile_ratios_leave_capped_comparisons_out(found: Analysis) -> None:
    capped = set(found.comparisons.loc[found.comparisons["verdict"] == "capped", "workload"])
    shown = found.percentile_ratios
    assert capped and not capped & set(shown["workload"])
    assert not shown.duplicated(["arm", "base_arm", "workload", "direction", "quantile"]).any()
    table = show_tables.percentile_ratios(found)
    first = shown[shown["quantile"] == 0.5].iloc[0]
    assert quantities.change(first["ratio"], first["ci_low"], first["ci_high"]) in table


def test_a_ratio_of_rates_on_caps_is_one_of_limits(found: Analysis) -> None:
    row = found.comparisons[found.comparisons["verdict"] == "capped"].iloc[0].to_dict()
    said = sentences.sentence({**row, "metric": "iops", "ratio": 1.6}, found.scenario)
    assert "to that of LRS from zone 1: +60 %, a ratio of limits: both arms sit on" in said


def test_words_of_every_verdict(found: Analysis) -> None:
    row = found.comparisons[found.comparisons["scope"] == "these disks"].iloc[0].to_dict()
    say = lambda **changes: sentences.sentence({**row, **changes}, found.scenario)  # noqa: E731
    assert " is equal within 5 % to that of LRS from zone 1: " in say(verdict="equivalent within 5 %")
    assert " may or may not differ " in say(verdict="inconclusive")
    assert say(verdict="capped", warnings="on a cap").startswith("no ratio for the write latency")
    assert "no interval" in say(ci_low=float("nan"), ci_high=float("nan"), verdict="inconclusive")
    assert "these two disks in these hours, 4 blocks" in say()
    assert "this disk in these hours, 4 blocks" in say(pairing="same-disk")
    zones = {"arm": "zrs-z2", "base_arm": "zrs-z1", "pairing": "same-disk"}
    assert "this disk from these two machines in these hours, 4 blocks" in say(**zones)
    assert "these disks in these hours, 3 replicates" in say(**zones, n_replicates=3)
    general = {"scope": "disks like these", "n_replicates": 3}
    assert "disks like these whose nearest zone is az2, 3 repl" in say(**general, nearest_zone="az2")
    assert "disks like these, 3 replicates" in say(**general)
    assert "p =" not in say() and "p_" not in say()


def test_differences_in_ms_stand_beside_ratios(found: Analysis, page: str) -> None:
    """ZRS 3.2 ms and LRS 1.3 ms were made up: +146 %, 1.9 ms more."""
    row = found.comparisons[found.comparisons["scope"] == "these disks"].iloc[0]
    assert row["diff_ms"] == pytest.approx(1.9, rel=0.1)
    shown = f"{row['diff_ms']:+.2f} ms, {row['diff_low_ms']:.2f} to {row['diff_high_ms']:.2f}"
    assert f">{shown}<" in re.sub("</?span[^>]*>", "", page)
    without = found.comparisons.drop(columns=["diff_ms", "diff_low_ms", "diff_high_ms"])
    assert "Difference" not in show_tables.comparisons(
        SimpleNamespace(comparisons=without, words=found.words, labels=found.labels)
    )
    assert " ms" not in headlines.headline(without, found.scenario)


def test_gates_passed_and_failed_are_counted_in_words(found: Analysis, page: str) -> None:
    gates = found.gates
    said = sentences.gates_in_words(gates)
    assert said[0] == f"{(gates['status'] == 'passed').sum()} of {len(gates)} checks passed"
    assert "2 failed: cap (2)" in said and all(item in page for item in said)


def test_each_stratum_is_shown_apart() -> None:
    columns = [
        "arm",
        "base_arm",
        "workload",
        "direction",
        "stratum",
        "n_replicates",
        "ratio",
        "ci_low",
        "ci_high",
        "reason",
    ]
    rows = [
        ("a", "b", "w", "read", "nearest 1", 2, 1.5, 1.4, 1.6, ""),
        ("a", "b", "w", "read", "nearest 2", 1, 2.5, None, None, "one"),
    ]
    frame = pd.DataFrame(rows, columns=columns)
    names = {"labels": {"a": "ZRS", "b": "LRS"}, "words": {"w": "4K write"}}
    shown = show_tables.strata(SimpleNamespace(compared=SimpleNamespace(strata=frame), **names))
    assert (
        "+50 % (95 % CI 40 to 60 %)" in shown
        and "+150 %, no interval [1]" in shown
        and "<li>One.</li>" in shown
    )
    none = SimpleNamespace(compared=SimpleNamespace(strata=frame.iloc[:0]))
    assert "nothing to tell apart" in show_tables.strata(none)


def test_the_report_of_a_run_without_raw_results_comes_from_its_tables(tmp_path: Path) -> None:
    folder = synthetic.run_folder(tmp_path / "run", n_blocks=2).folder
    before = tables.read(folder).trials
    pd.testing.assert_frame_equal(analyse(folder).trials, before)


def test_findings_and_operations_are_shown(found: Analysis) -> None:
    assert "\tyes" in repr(show_facts.findings(found))
    assert "\t10" in repr(show_facts.operations(found))
    assert show_run.operations(found.run)["unscaled_s_median"].tolist() == [10.0]


def test_environment_names_machine_zone_disk_and_date(found: Analysis) -> None:
    text = repr(show_facts.environment(found))
    for wanted in (
        "Standard_D4as_v4",
        "westeurope-az1",
        "Premium_LRS",
        "2026-11-20",
        "emulated",
        "westeurope",
    ):
        assert wanted in text


def test_a_foreign_folder_is_not_analysed(tmp_path: Path) -> None:
    with pytest.raises(DiskbookError):
        analyse(tmp_path)
    shutil.rmtree(tmp_path)
