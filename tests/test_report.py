"""Narrative, analysis notebook and report."""

from __future__ import annotations

import html.parser
import json
import shutil
from pathlib import Path

import nbformat
import pandas as pd
import papermill
import pytest

import synthetic
from diskbook import narrative, paths, report, results, schema, summary
from diskbook.analysis import analyse
from diskbook.errors import DiskbookError
from diskbook.run import Run

NOTEBOOK = paths.NOTEBOOKS / "3-analyse-zone-disks.ipynb"


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Run:
    """A made-up run, analysed by the notebook."""
    found = synthetic.run_folder(tmp_path_factory.mktemp("runs") / "synthetic")
    executed = found.folder / "notebooks" / NOTEBOOK.name
    executed.parent.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IPYTHONDIR", str(found.folder.parent / "ipython"))
        papermill.execute_notebook(
            str(NOTEBOOK),
            str(executed),
            {"run": str(found.folder)},
            progress_bar=False,
            kernel_name="python3",
        )
    return found


@pytest.fixture(scope="module")
def page(run: Run) -> str:
    return report.build(run).read_text()


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
    slugs = {"ratios", "all-trials", "percentiles", "iops-and-caps"}
    names = {path.name for path in (run.folder / "figures").iterdir()}
    assert names == {f"{slug}{end}" for slug in slugs for end in (".svg", "@2x.png", ".json")}


def test_the_report_is_one_page_in_the_order_of_reading(page: str) -> None:
    found = Page(page)
    wanted = [
        "The answer",
        "All comparisons, both scopes",
        "All trials",
        "Method",
        "Environment",
        "Limitations",
        "Raw data",
    ]
    assert [heading for heading in found.headings if heading in wanted] == wanted
    assert found.lang == "en" and "script" not in found.tags and "link" not in found.tags
    external = [
        address for address in found.addresses if not address.startswith(("#", "data:", "4-teardown"))
    ]
    assert external == [] and "http" not in report.STYLE


def test_every_figure_has_alt_text(page: str) -> None:
    images = Page(page).images
    assert len(images) == 4 and all(len(image["alt"] or "") > 60 for image in images)


def test_the_answer_comes_first_and_inputs_are_hidden(page: str) -> None:
    body = page[page.index("<main>") :]
    answer = body.index("times that of LRS from zone 1 (95 % CI")
    assert answer < body.index("<table") < body.index("<figure")
    assert "from diskbook" not in body and "sample-zone-disks" not in body


def test_an_emulated_report_says_so_whatever_the_notebook_shows(run: Run, page: str, tmp_path: Path) -> None:
    assert '<div class="banner" role="note">EMULATED.' in page
    bare = nbformat.v4.new_notebook()
    bare.cells = [nbformat.v4.new_code_cell("1", outputs=[nbformat.v4.new_output("stream", text="1")])]
    nbformat.write(bare, tmp_path / "bare.ipynb")
    other = report.build(run, tmp_path / "bare.ipynb", tmp_path / "bare.html").read_text()
    assert '<div class="banner" role="note">EMULATED.' in other


def test_headline_of_a_run(run: Run) -> None:
    words = report.headline(run)
    assert words == analyse(run).headline
    assert words.startswith("emulated: write latency at queue depth 1 of ZRS from zone 1 is 2.")
    assert "95 % CI" in words and words.endswith("these two disks, 4 blocks)")


@pytest.mark.parametrize("content", [None, "", "{}", "not json"])
def test_a_damaged_notebook_is_one_sentence(run: Run, tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "executed.ipynb"
    if content is not None:
        path.write_text(content)
    with pytest.raises(DiskbookError, match="analysis"):
        report.build(run, path, tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()


def test_an_unexecuted_notebook_makes_no_report(run: Run, tmp_path: Path) -> None:
    with pytest.raises(DiskbookError, match="not executed"):
        report.build(run, NOTEBOOK, tmp_path / "report.html")


def test_headline_before_the_analysis(tmp_path: Path) -> None:
    with pytest.raises(DiskbookError, match=r"comparisons\.csv is missing"):
        report.headline(synthetic.run_folder(tmp_path / "run", n_blocks=1))


def test_several_replicates_speak_of_disks_like_these(tmp_path: Path) -> None:
    found = analyse(synthetic.run_folder(tmp_path / "run", n_replicates=3, n_blocks=2).folder)
    assert found.headline.endswith("disks like these, 3 replicates, 6 blocks)")
    more = narrative.more_measuring(found.comparisons, found.scenario)
    assert "3 replicates more would narrow it to about" in more[0]


def test_one_replicate_is_told_what_blocks_cannot_do(run: Run) -> None:
    found = analyse(run)
    more = narrative.more_measuring(found.comparisons, found.scenario)
    assert "4 blocks more" in more[0] and "No number of blocks" in more[-1]


def test_narrowing_by_hand() -> None:
    # Half-width of 4 blocks: 3.182446 s / 2; of 8: 2.364624 s / sqrt(8): a factor of 0.5254.
    assert narrative._narrowed(1.0, 4, 8) == pytest.approx(0.52540, abs=1e-4)


def test_the_noise_floor_is_judged_by_its_margin(run: Run) -> None:
    found = analyse(run)
    said = narrative.noise_floor(found.comparisons, found.scenario)
    assert len(said) == 2 and all("two disks of one kind differ by" in item for item in said)
    assert all("equivalent within 5 %" in item for item in said)


def test_words_of_every_verdict(run: Run) -> None:
    found = analyse(run)
    row = found.comparisons[found.comparisons["scope"] == "these disks"].iloc[0].to_dict()
    say = lambda **changes: narrative.sentence({**row, **changes}, found.scenario)  # noqa: E731
    assert " is equal within 5 % to that of LRS from zone 1: " in say(verdict="equivalent within 5 %")
    assert " may or may not differ " in say(verdict="inconclusive")
    assert say(verdict="capped", warnings="on a cap").startswith("no ratio for the write latency")
    assert "no interval" in say(ci_low=float("nan"), ci_high=float("nan"), verdict="inconclusive")
    assert "this disk" in say(pairing="same-disk")
    assert "p =" not in say() and "p_" not in say()


def test_the_report_of_a_run_without_raw_results_comes_from_its_tables(tmp_path: Path) -> None:
    folder = synthetic.run_folder(tmp_path / "run", n_blocks=2).folder
    before = results.read(folder).trials
    pd.testing.assert_frame_equal(analyse(folder).trials, before)


def test_findings_and_operations_are_shown(run: Run) -> None:
    found = analyse(run)
    assert found.findings["As expected"].tolist() == ["yes"]
    assert found.operations["Median, s (unscaled)"].tolist() == [10.0]
    assert summary.operations(run)["unscaled_s_median"].tolist() == [10.0]


def test_environment_names_machine_zone_disk_and_date(run: Run) -> None:
    text = json.dumps(analyse(run).environment().to_dict("records"))
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
