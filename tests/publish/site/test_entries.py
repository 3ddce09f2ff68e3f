"""What the site says of a run: words and numbers of its manifest and its comparisons."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from checks import many_runs
from diskbook.facts import paths
from diskbook.facts.errors import DiskbookError
from diskbook.publish import site
from diskbook.report.analysis import report
from diskbook.results.run import Run
from support import few_runs

SAMPLE = Run(paths.RUNS / "sample-zone-disks")


def test_a_run_is_shown_with_its_answer_and_its_circumstances() -> None:
    entry = site.read(SAMPLE)
    assert entry.answer.lower() == report.headline(SAMPLE).removeprefix("emulated: ").lower()
    assert (entry.scenario, entry.provenance, entry.preset) == ("zone-disks", "emulated", "sample")
    assert entry.date == SAMPLE.manifest["created_utc"][:16].replace("T", " ")
    assert entry.banner[0].startswith("EMULATED. ")
    assert entry.report == SAMPLE.folder / "report.html"
    assert dict(entry.facts)["Emulator's profile"] == "default"


@pytest.mark.parametrize("sample", [folder.name for folder in many_runs.SAMPLES])
def test_the_lead_is_the_first_decided_headline(sample: str) -> None:
    lead = site.read(Run(paths.RUNS / sample)).lead
    assert lead is not None
    assert lead.family == "headline" and "% CI " in lead.value
    assert lead.verdict.startswith(("difference", "equivalent"))


def test_a_withheld_ratio_is_not_shown(tmp_path: Path) -> None:
    folder = many_runs.many(tmp_path, 1) / "disk-options-000"
    table = folder / "comparisons.csv"
    text = table.read_text().replace(",difference,", ",capped,").replace(",inconclusive,", ",invalid,")
    table.write_text(text.replace(",equivalent within 5 %,", ",saturated,"))
    estimates = site.read(Run(folder)).estimates
    assert {item.value for item in estimates} == {"no ratio"}
    assert {item.numbers for item in estimates} == {None}


def test_runs_come_newest_first_and_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    folder = many_runs.many(tmp_path, 3)
    for name, text in {
        "broken": "{",
        "foreign": '{"a": 1}',
        "hollow": '{"schema": 1, "run": "hollow"}',
    }.items():
        (folder / name).mkdir()
        (folder / name / "manifest.json").write_text(text)
    shutil.copytree(folder / "disk-options-000", folder / "older")
    (folder / "older" / "comparisons.csv").write_text("arm\n")
    shown, unreadable = site.read_all(folder)
    assert [entry.date[:10] for entry in shown] == ["2026-09-03", "2026-09-02", "2026-09-01"]
    assert [line.split(":")[0] for line in unreadable] == ["broken", "foreign", "hollow", "older"]
    assert "comparisons.csv: table comparisons: column 'base_arm' is missing" in unreadable[-1]


def test_a_run_that_was_not_analysed_says_so(tmp_path: Path) -> None:
    run = Run(many_runs.write(tmp_path / "young", few_runs.manifest_of("sample-zone-disks")))
    entry = site.read(run)
    assert entry.answer == "No answer yet: it was not analysed"
    assert (entry.lead, entry.estimates, entry.report) == (None, (), None)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DiskbookError, match="nowhere is not a folder; name one that holds runs"):
        site.read_all(tmp_path / "nowhere")


def test_a_slug_is_plain_and_tells_names_apart() -> None:
    assert site.slug("sample-zone-disks") == "sample-zone-disks"
    names = ["a b", "a/b", "a-b", "..", "", "\u202e", "a" * 300]
    slugs = [site.slug(name) for name in names]
    assert len(set(slugs)) == len(names)
    assert all(len(slug) < 100 and not slug.startswith(".") and slug.isascii() for slug in slugs)
