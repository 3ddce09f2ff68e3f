"""Posts: what stands in them, whose they are, and what is replaced.

The samples are in tests/publish/test_samples.py.
"""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from diskbook.cli import cli
from diskbook.facts import quantities
from diskbook.facts.errors import DiskbookError, UsageError
from diskbook.publish import post, post_words
from diskbook.report.analysis import write as analysis_write
from diskbook.report.analysis.run import Analysis, analyse
from diskbook.report.show import lead
from support import synthetic

pytestmark = pytest.mark.long

LINK = re.compile(r"\]\(([^)]+)\)")


@pytest.fixture(scope="module")
def a(tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    return analyse(synthetic.run_folder(tmp_path_factory.mktemp("runs") / "synthetic"))


@pytest.fixture(scope="module")
def contents(a: Analysis) -> dict[str, bytes]:
    return post.contents(a)


@pytest.fixture(scope="module")
def markdown(contents: dict[str, bytes]) -> str:
    return next(iter(contents.values())).decode()


def with_verdicts(a: Analysis, **columns: Any) -> Analysis:
    """The same analysis with columns of its headlines changed."""
    table = a.comparisons.copy()
    rows = (table["family"] == "headline") & table["ratio"].notna()
    table.loc[rows, list(columns)] = list(columns.values())
    other = dataclasses.replace(a)
    other.__dict__["compared"] = dataclasses.replace(a.compared, table=table)
    return other


def test_it_has_all_parts_and_every_link_leads_to_a_file(a: Analysis, tmp_path: Path) -> None:
    target = post.write(a, tmp_path)
    words = target.read_text("utf-8")
    assert target == tmp_path / f"{a.run.name}.md"
    parts = [
        "---\ntitle: ",
        "# On the emulator, ",
        "say nothing about Azure",
        "*How much",
        "![",
        "| What |",
        "## Method",
        "## Limits",
    ]
    places = [words.index(part) for part in [*parts, "## Measure it again", "diskbook run zone-disks"]]
    assert places == sorted(places)
    links = LINK.findall(words)
    assert len(links) == 6 and all((tmp_path / link).is_file() for link in links)
    assert {path.name for path in (tmp_path / target.stem).iterdir()} == {Path(link).name for link in links}


def test_the_method_has_five_lines(markdown: str) -> None:
    method = markdown.partition("## Method\n\n")[2].partition("\n\n")[0].splitlines()
    assert [line[:2] for line in method] == ["1.", "2.", "3.", "4.", "5."]


def test_the_answer_is_computed_from_the_run(a: Analysis, markdown: str) -> None:
    rows = a.comparisons[(a.comparisons["family"] == "headline") & a.comparisons["ratio"].notna()]
    row = rows.iloc[0]
    number = quantities.change(row["ratio"], row["ci_low"], row["ci_high"])
    values = lead.levels_text(row.to_dict(), a.trials)
    assert f"takes {values[0]} on ZRS and {values[1]} on LRS: {number}" in markdown
    assert f"from zone 1 takes {quantities.changed(row['ratio'], 'longer', 'less time')} on ZRS" in markdown


def test_what_is_not_decided_is_counted_and_explained(a: Analysis) -> None:
    other = with_verdicts(a, verdict="inconclusive", ci_low=0.9, ci_high=3.0, warnings="")
    words = post.post(other, [], "x")
    assert "# On the emulator, no clear difference for one 4K write from zone 1, on ZRS or on LRS\n" in words
    assert "3 comparisons named before the run, 3 stayed open" in words
    assert words.count("Not clear: the change may be none (95 % CI -10 to +200 %)") == 2


def test_an_equality_leads_only_after_what_is_not_decided(a: Analysis) -> None:
    rows = a.comparisons[(a.comparisons["family"] == "headline") & a.comparisons["ratio"].notna()]
    table, (arm, load) = a.comparisons.copy(), rows.iloc[-1][["arm", "workload"]]
    named = table["family"] == "headline"
    table.loc[named, "verdict"] = "inconclusive"
    table.loc[named & (table["arm"] == arm) & (table["workload"] == load), "verdict"] = (
        "equivalent within 5 %"
    )
    other = dataclasses.replace(a)
    other.__dict__["compared"] = dataclasses.replace(a.compared, table=table)
    words = post.post(other, [], "x")
    assert "on ZRS and on LRS, within 5 %" in post_words.title(other) and "2 stayed open" in words


def test_an_arm_is_named_as_in_a_sentence(a: Analysis) -> None:
    other = dataclasses.replace(a)
    other.__dict__["labels"] = {"a": "server, 4 disks", "b": "J (v2, 8,000)", "c": "ZRS, zone 2", "d": "S2D"}
    names = [post_words.arm_words(name, other) for name in "abcd"]
    assert names == ["server (4 disks)", "J (v2, 8,000)", "ZRS from zone 2", "S2D"]


def test_what_is_refused_has_no_number_in_the_table(a: Analysis) -> None:
    other = with_verdicts(a, verdict="invalid", warnings="disks differ: measure again")
    words = post.post(other, [], "x")
    assert words.count("| refused |") == 3 and "Not decided (invalid): disks differ" in words


def test_names_and_questions_are_no_markup(a: Analysis) -> None:
    question = a.scenario.scenario.model_copy(update={"question": "<b>A*b*</b> [x](y) | `z`"})
    other = dataclasses.replace(a, scenario=a.scenario.model_copy(update={"scenario": question}))
    assert r"*\<b\>A\*b\*\</b\> \[x\](y) \| \`z\`*" in post.post(other, [], "x")


def test_a_user_may_choose_the_figures(a: Analysis) -> None:
    pictures = analysis_write.figures_of(a)
    assert [item.slug for item in post.chosen(a, pictures)] == ["ratios", "percentiles"]
    assert [item.slug for item in post.chosen(a, pictures, ["percentiles"])] == ["percentiles"]
    with pytest.raises(UsageError, match="nothing"):
        post.chosen(a, pictures, ["nothing"])
    with pytest.raises(UsageError, match="at most 2 figures"):
        post.chosen(a, pictures, ["ratios", "percentiles", "all-trials"])


def test_its_own_post_is_replaced_and_no_others(a: Analysis, tmp_path: Path) -> None:
    target = post.write(a, tmp_path)
    post.write(a, tmp_path, ["percentiles"])
    assert {path.stem for path in (tmp_path / target.stem).glob("*.svg")} == {"percentiles"}
    target.write_text(target.read_text("utf-8").replace("post of run synthetic", "post of run another"))
    with pytest.raises(UsageError, match=r"is of run another, not of synthetic.*--out.*--force"):
        post.write(a, tmp_path)
    post.write(a, tmp_path, ["percentiles"], force=True)
    target.unlink()
    with pytest.raises(UsageError, match="is of no run that is known"):
        post.write(a, tmp_path)


def test_what_a_post_links_elsewhere_is_never_removed(a: Analysis, tmp_path: Path) -> None:
    keep = tmp_path / "keep.txt"
    keep.write_text("mine")
    target = post.write(a, tmp_path, ["ratios"])
    target.write_text(f"[x]({target.stem}/../keep.txt) [y](../keep.txt)\n" + target.read_text("utf-8"))
    post.write(a, tmp_path, ["ratios"])
    assert keep.exists()


@pytest.fixture
def rendered(contents: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the command take the post that is rendered here already."""
    monkeypatch.setattr(post, "contents", lambda a, names: contents)


@pytest.mark.usefixtures("rendered")
def test_the_command_prints_where_it_wrote(a: Analysis, tmp_path: Path) -> None:
    words = ["post", str(a.run.folder), "--out", str(tmp_path), "--figure", "ratios"]
    done = CliRunner().invoke(cli, words, catch_exceptions=False)
    assert done.output == f"{tmp_path / 'synthetic.md'}\n" and (tmp_path / "synthetic.md").is_file()


@pytest.mark.usefixtures("rendered")
def test_a_folder_that_is_a_file_is_named(a: Analysis, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    words = ["post", str(a.run.folder), "--out", str(tmp_path / "file"), "--figure", "ratios"]
    error = CliRunner().invoke(cli, words).exception
    assert isinstance(error, DiskbookError) and f"'{tmp_path / 'file'}" in str(error)
