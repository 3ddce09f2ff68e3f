"""Answers of public data: the figures of the reports, whose they are, and what they are not compared with."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

import diskbook as db
from diskbook.cli.plan import limits
from diskbook.facts import paths
from diskbook.facts.errors import UsageError
from diskbook.importing import public, run as importer
from diskbook.importing.answers import claims, of_run, post, questions, seen, unpublished
from diskbook.publish import post_words, site as entries
from diskbook.report import figures
from diskbook.report.analysis import why_text
from diskbook.report.analysis.run import analyse
from diskbook.report.comparing import measured
from diskbook.results.run import Run

NUMBERS = {
    "real-temporary-disk": (
        *("-29.6 % (95 % CI -33.3 to -25.8 %)", "within 0.14 %", "0.635 ms against 0.446 ms: 42 % higher"),
        *("256.0 MB/s (255.0 to 257.0)", "263 with 64", "documents 256", "H16r reached no cap"),
    ),
    "real-e10": (
        *("609.5 (600.3 to 618.8)", "612.0 IOPS", "440 to 539 IOPS", "2.488 (2.422 to 2.556)"),
        *(
            "2.144 (2.034 to 2.260)",
            "-0.160 (-0.301 to -0.019)",
            "4 of 12 cells",
            "+0.109 (+0.042 to +0.176)",
        ),
    ),
    "real-second-zone": ("-2.7 % on one and -13.9 % on the other", "-52.8 % is -51.5 %", "(-20 to +7 %)"),
}


@pytest.mark.long
@pytest.mark.parametrize("answer", questions.every(), ids=lambda answer: answer.slug)
def test_an_answer_has_its_numbers_and_says_who_measured(answer: questions.Answer) -> None:
    """Recomputed independently from the authors' raw files (sources and commits: source.toml)."""
    told = " ".join((answer.headline, *answer.findings))
    for number in NUMBERS[answer.slug]:
        assert number in told
    page = post.text(answer)
    assert "MEASURED BY OTHERS" in page and answer.source["attribution"].split(",")[0] in page
    assert b"MEASURED BY OTHERS" in figures.as_svg(answer.picture)
    assert answer.picture.provenance == "imported" and answer.picture.caption.startswith(
        "Measured by others."
    )
    files = post.files(answer)
    for name in (f"{answer.slug}.md", f"{answer.slug}/{answer.slug}.csv"):
        assert (paths.POSTS / name).read_bytes() == files[name], "run 'make format'"


@pytest.mark.long
def test_what_nobody_published_has_a_run_with_hours_and_dollars() -> None:
    table = unpublished.questions().set_index("article")
    assert list(table.index) == ["zone-disks", "shared-zrs", "disk-options", "s2d-azure", "nested-resiliency"]
    assert table.loc["zone-disks", "usd"] == round(db.plan("zone-disks").expected_usd or 0)
    assert f"{table.loc['zone-disks', 'hours']} h in all" in db.plan("zone-disks").text
    assert not table["public_raw_data"].str.startswith("yes").any() and (table["hours"] > 1).all()


@pytest.fixture(scope="module")
def e10(tmp_path_factory: pytest.TempPathFactory) -> Path:
    name = f"{tmp_path_factory.mktemp('real')}/cloud-storage-bench-2026"
    return importer.write_run(public.plan("cloud-storage-bench-2026", name)).run.folder


@pytest.mark.long
def test_the_run_of_a_set_leads_with_its_answer(e10: Path) -> None:
    a = analyse(str(e10))
    answer = of_run.answer_of(a)
    assert answer is not None and a.headline == answer.headline
    assert (
        post_words.title(a) == answer.title
        and answer.caption in post_words.table(a)[1] + of_run.post_table(a)[1]
    )
    assert of_run.pictures(a)[0].slug == answer.slug


@pytest.mark.long
def test_emulated_runs_stand_beside_no_others(e10: Path, tmp_path: Path) -> None:
    """Compare and pool refuse them; the site gives them tables of their own."""
    sample = paths.RUNS / "sample-zone-disks"
    with pytest.raises(UsageError, match=r"cloud-storage-bench-2026 is imported.* are not compared"):
        measured.read_runs([str(sample), str(e10)])
    with pytest.raises(UsageError, match="pool: emulated runs say nothing about Azure"):
        db.pool([str(sample), str(e10)])
    emulated = entries.read(Run(sample))
    twin = entries.Entry(**{**emulated.__dict__, "name": "other", "provenance": "imported"})
    asked = list(entries._questions([emulated, twin]))
    assert all(len({entry.provenance for entry, _, _ in question.rows}) == 1 for question in asked)
    assert len(asked) == 2 * len(list(entries._questions([emulated])))
    assert emulated.banner[1].startswith("EMULATED") and twin.banner[1] == "MEASURED BY OTHERS."


def test_runs_by_others_and_by_us_may_stand_together_with_a_sentence() -> None:
    measured._check_provenance({"theirs": "imported", "ours": "azure"})
    with pytest.raises(UsageError, match="emulated"):
        measured._check_provenance({"theirs": "imported", "ours": "emulated"})


def test_claims_of_publications_have_a_verdict_and_a_computed_figure() -> None:
    table = claims.judged().set_index("Claim")
    assert set(table["Data set"]) == set(public.names())
    assert Counter(table["Verdict"]) == {"not supported": 5, "capped": 2, "not measured": 1}
    whys = " ".join(table["Why"])
    for figure in (
        "+0.109 (+0.042 to +0.176)",
        "612 IOPS",
        "-51.5 %",
        "-13.9 %",
        "62.8 times",
        "5 of 8 sizes",
    ):
        assert figure in whys


@pytest.mark.long
def test_caps_that_others_saw_stand_beside_documented_ones(e10: Path) -> None:
    (cap,) = seen.caps("Standard_D16s_v3")
    assert (
        cap.documented == "256 MB/s"
        and cap.machines == 2
        and cap.rate.startswith("255.3 MB/s")
        and "Cockroach Labs" in cap.source
    )
    assert seen.caps("Standard_H16r") == () and "894,399" in seen.caps("Standard_L8s_v3")[0].rate
    done = CliRunner().invoke(limits, ["Standard_D16s_v3"])
    assert "seen by others" in done.output and "256 MB/s, burst unknown" in done.output
    assert "documented: 256 MB/s" in " ".join(done.output.split())
    (e10_cap,) = seen.caps("Standard_D4s_v3")
    assert (e10_cap.rate, e10_cap.documented) == ("612.0 IOPS", "600 IOPS in a burst")
    told = why_text.of_run(str(e10))
    assert "Standard_D4s_v3, seen by others: E10 Standard SSD" in told
    assert "seen by others" not in why_text.of_run("sample-zone-disks")
