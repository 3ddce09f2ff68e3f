"""The committed sample runs: whole, small, labelled, and read by the notebook of their scenario."""

from __future__ import annotations

import io
import re
import shutil
import warnings
from collections.abc import Iterator

import pandas as pd
import pytest
from PIL import Image

from diskbook.api.results import RunResults
from diskbook.design import scenario_file
from diskbook.facts import paths
from diskbook.publish import post
from diskbook.report.analysis import write
from diskbook.report.analysis.run import Analysis, analyse
from diskbook.report.figures import Picture, style
from diskbook.report.figures.export import as_png
from diskbook.report.show import lead
from diskbook.results import tables
from diskbook.results.run import Run
from support import drawn_words
from support.notebooks import run_cells

MOST_BYTES = 5_000_000  # logs of every I/O of held rates take 1.3 MB of the largest one
DRAWN = {".png", ".svg", ""}  # stand in figures/ as well, and are not committed here
NAMES = scenario_file.sampled()
OF_ALL = {"ratios", "all-trials", "percentiles"}
RESULT = re.compile(r"[\d.,]+ (?:ms|IOPS|MB/s)|[+-][\d.,]+ % \(95 % CI [^)]*\)")


@pytest.fixture(scope="module", params=NAMES)
def copy(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A copy of a sample, since an analysis writes into its run."""
    target = tmp_path_factory.mktemp("samples") / f"sample-{request.param}"
    shutil.copytree(paths.RUNS / target.name, target)
    return Run(target)


@pytest.fixture(scope="module")
def a(copy: Run) -> Analysis:
    return analyse(copy)


@pytest.fixture(scope="module")
def pictures(a: Analysis) -> Iterator[tuple[Picture, ...]]:
    """The figures of a sample, drawn once: for its post and its notebook as well."""
    made = write.figures_of(a)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(write, "figures_of", lambda a: made)
        yield made


def test_a_scenario_with_a_sample_is_one_that_can_be_run() -> None:
    assert set(NAMES) <= set(scenario_file.names())
    assert {path.name for path in paths.RUNS.glob("sample-*")} == {f"sample-{name}" for name in NAMES}


@pytest.mark.long
def test_a_sample_is_small_finished_and_emulated(copy: Run) -> None:
    size = sum(path.stat().st_size for path in copy.folder.rglob("*") if path.suffix not in DRAWN)
    assert size <= MOST_BYTES
    assert copy.manifest["provenance"] == "emulated" and copy.done("benchmark") and copy.done("teardown")
    assert all(row["deleted_utc"] for row in copy.manifest["resource_groups"])
    assert not (copy.folder / "keys").exists() and "EMULATED" in (copy.folder / "report.html").read_text()


def test_a_sample_was_made_by_the_scenario_as_it_stands(copy: Run) -> None:
    made, name = copy.manifest["scenario"], copy.manifest["scenario"]["name"]
    now = scenario_file.load(name, scenario_file.SAMPLE).model_dump(mode="json")
    for kind in ("machine", "disk", "arm", "workload", "comparison"):
        assert len(made[kind]) == len(now[kind])
        for one, other in zip(made[kind], now[kind], strict=True):
            # A key that was added since has its default then; "any" tool was fio before; labels may change.
            known = one.keys() - {"tool", "label"}
            assert {key: one[key] for key in known} == {key: other[key] for key in known}


def test_its_tables_are_those_of_its_raw_results(a: Analysis) -> None:
    """Other tests read them. Python 3.12 and later add floats more exactly: the last digit may differ."""
    committed = tables.read(paths.RUNS / a.run.name)
    for name in ("trials", "bins", "series", "guest"):
        pd.testing.assert_frame_equal(getattr(committed, name), getattr(a.tables, name), rtol=1e-14, atol=0)


@pytest.mark.long
def test_every_trial_succeeded(a: Analysis) -> None:
    assert set(a.trials["status"]) == {"ok"} and len(lead.answers(a)) >= 3


@pytest.mark.long
def test_its_answer_is_short_and_says_where_it_is_from(a: Analysis) -> None:
    sentence = RunResults(a).answer
    assert sentence.startswith("On the emulator, ")
    assert lead.words(sentence) <= lead.MOST_WORDS
    without_load = re.sub(r" at [\d,]+ IOPS", "", sentence)
    assert len(RESULT.findall(without_load)) == 3 and " and " in sentence


@pytest.mark.long
@pytest.mark.usefixtures("pictures")
def test_the_committed_post_is_that_of_the_sample(a: Analysis) -> None:
    """Before figures are drawn once more below, which may move what is in them by a fraction of a pixel."""
    name = a.scenario.name
    renew = f"'diskbook post sample-{name}' writes it again, 'make samples' those of all samples"
    files = post.contents(a)
    there = {f"{name}/{path.name}" for path in (paths.POSTS / name).glob("*")}
    assert there | {f"{name}.md"} == files.keys(), renew
    for path, content in files.items():
        assert (paths.POSTS / path).read_bytes() == content, f"docs/posts/{path}: {renew}"


@pytest.mark.long
def test_every_letter_of_its_figures_is_inside_wide_and_narrow(
    a: Analysis, pictures: tuple[Picture, ...]
) -> None:
    """Figures that all scenarios have: of the two with the most arms and the longest words."""
    for picture in pictures:
        if picture.slug in OF_ALL and a.scenario.name not in ("zone-disks", "disk-options"):
            continue
        for pixels in (720, style.NARROW_PX):
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # a layout that did not work out
                shown = picture.at(pixels)
                assert drawn_words.near_the_edge(shown.figure, pixels) == [], (picture.slug, pixels)
            assert drawn_words.colliding(shown) == [], f"{picture.slug} at {pixels} px"


@pytest.mark.long
def test_what_is_exported_has_room_at_its_edges(a: Analysis, pictures: tuple[Picture, ...]) -> None:
    """Letters are wider in an exported picture than in the pixels that it is laid out for."""
    for picture in pictures:
        if (a.scenario.name, picture.slug) == ("disk-options", "ratios"):
            with Image.open(io.BytesIO(as_png(picture))) as image:
                inked = image.convert("L").point(lambda value: 255 * (value < 200))
                left, _, right, _ = inked.getbbox()
                assert left >= 8 and image.width - right >= 8


@pytest.mark.long
def test_its_figures_have_words_and_are_committed(a: Analysis, pictures: tuple[Picture, ...]) -> None:
    for picture in pictures:
        assert drawn_words.odd(picture) == [], picture.slug
        assert picture.caption.startswith("Emulated, not measured on Azure. ")
        assert picture.description.startswith("Emulated") and "emulated" in picture.alt
        for suffix in (".svg", "@2x.png", ".json"):
            assert (paths.FIGURES / a.scenario.name / f"{picture.slug}{suffix}").exists()


def test_its_post_says_at_once_that_it_is_emulated(copy: Run) -> None:
    words = (paths.POSTS / f"{copy.scenario.name}.md").read_text("utf-8")
    title, first, *_ = [line for line in words.split("\n---\n", 1)[1].splitlines() if line]
    assert title.startswith("# On the emulator, ") and first.startswith("On the emulator, ")
    assert words.count("![") == 2 and words.count("\n| --- |") == 1


@pytest.mark.long
def test_arms_on_two_machines_once_measured_are_no_finding(a: Analysis) -> None:
    """Among them h-plain / h-nic-off of disk-options: 0.90 times, which is the machines' own noise."""
    apart = a.comparisons["pairing"] != "same-machine"
    rows = a.comparisons[apart & (a.comparisons["n_replicates"] == 1)]
    assert set(rows["verdict"]) <= {"inconclusive", "capped", "saturated", "invalid"}
    if a.scenario.name == "disk-options":
        row = rows[(rows["base_arm"] == "h-nic-off") & (rows["scope"] == "these disks")].iloc[0]
        assert row["verdict"] in ("inconclusive", "invalid") and "different machines" in row["warnings"]
        assert "h-nic-off" not in set(a.percentile_ratios["base_arm"])


@pytest.mark.whole
@pytest.mark.usefixtures("pictures")
def test_the_notebook_of_the_scenario_reads_it(a: Analysis) -> None:
    run_cells(a.scenario.name, a)
