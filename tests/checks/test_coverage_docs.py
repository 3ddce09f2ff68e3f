"""docs/explanation/coverage.md has all that is simulated, with a reason wherever something is withheld."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from checks import (
    coverage,
    coverage_cells,
    coverage_docs,
    coverage_limits,
    coverage_noise,
    coverage_percentiles,
    coverage_stationarity,
)
from checks.coverage_cells import Cell, Condition, Row
from checks.simulate import LEVELS
from diskbook.design.vocabulary import Scope
from diskbook.facts import paths
from diskbook.facts.errors import UsageError

DOCUMENT = paths.ROOT / "docs" / "explanation" / "coverage.md"
PAGES = sorted(
    str(path.relative_to(paths.ROOT))
    for path in (paths.ROOT / "docs").glob("*/*.md")
    if path.parent != paths.POSTS
)
CLAIM = re.compile(
    r"simulated (runs|pairs|comparisons|cells)|intervals? (then )?(cover|h[eo]ld)|they cover"
    r"|false (positive|verdict)|show a difference",
    re.IGNORECASE,
)
SHARE = re.compile(r"\d %")
GOOD = Row(
    cell=Cell(Condition("a condition", LEVELS[1]), 3, 5),
    claim=Scope.THESE,
    n_runs=10_000,
    n_printed=9_000,
    refused=0.1,
    flagged=0.0,
    noisy=0.0,
    coverage=0.95,
    coverage_quiet=0.95,
    coverage_flagged=float("nan"),
    coverage_bound=float("nan"),
    half_width=0.02,
    false=0.05,
)


def test_the_document_has_every_condition_and_nothing_that_failed() -> None:
    text = DOCUMENT.read_text("utf-8")
    names = {condition.name for condition in coverage_cells.conditions()}
    names |= {condition.name for condition in coverage_noise.conditions()}
    names |= {f"p{100 * cell.quantile:g}, trials ±{cell.trial:.1%}" for cell in coverage_percentiles.cells()}
    assert not [name for name in names if f"| {name}" not in text]
    assert "FAILED" not in text and "NO REASON" not in text


def of(
    condition: Condition = GOOD.cell.condition, replicates: int = 3, blocks: int = 5, **shares: Any
) -> Row:
    return replace(GOOD, cell=Cell(condition, replicates, blocks), **shares)


def columns(table: str) -> list[dict[str, str]]:
    """Lines of a Markdown table by their heads."""
    heads, _, *lines = ([part.strip() for part in line.split(" | ")] for line in table.splitlines())
    return [dict(zip(heads, line, strict=True)) for line in lines]


def test_a_line_has_the_range_over_designs_and_what_is_said() -> None:
    limited = replace(GOOD.cell.condition, known_limit="it shows in no data", refused="few blocks are left")
    rows = [
        of(limited),
        of(limited, blocks=10, coverage=0.85, refused=0.25, flagged=0.05, n_printed=7_000),
        of(limited, replicates=1, claim=Scope.LIKE_THESE, refused=1.0, n_printed=0),
    ]
    line, of_others = columns(coverage_docs.table(rows))
    assert line["| Condition"] == "| a condition" and line["Claim"] == "these disks"
    assert (
        line["Coverage, %"] == "85.0 to 95.0" and line["Worst design"] == "3 x 10" and line["Designs"] == "2"
    )
    assert line["Refused, %"] == "10.0 to 25.0" and line["Flagged, %"] == "0.0 to 5.0"
    assert line["Said of it |"] == "known limit: it shows in no data; few blocks are left |"
    assert of_others["Coverage, %"] == "" and of_others["Said of it |"] == "|"
    assert not coverage_cells.without_reason(rows)


def test_what_is_often_refused_needs_a_reason() -> None:
    often = of(refused=0.3, n_printed=7_000)
    assert coverage_cells.without_reason([GOOD, often]) == ["a condition"]
    assert "NO REASON GIVEN" in coverage_docs.table([often])


@pytest.mark.parametrize(
    ("coverage", "status"), [(0.92, "off"), (0.925, "ok"), (0.975, "conservative"), (0.99, "off")]
)
def test_a_cell_fails_beyond_three_standard_errors_on_either_side(coverage: float, status: str) -> None:
    row = of(blocks=10, coverage=coverage)
    assert status_of(row) == status
    few_blocks = of(coverage=coverage)
    assert status_of(few_blocks) == ("conservative" if coverage > 0.97 else status)
    assert status_of(replace(row, flagged=0.3)) == status_of(few_blocks)
    one_replicate = of(replicates=1, coverage=coverage)
    assert status_of(one_replicate) == status_of(replace(few_blocks, claim=Scope.LIKE_THESE)) == status


def status_of(row: Row) -> str:
    return "off" if row.is_off else "conservative" if row.is_conservative else "ok"


def test_tables_go_between_the_marks_with_their_summary_first(tmp_path: Path) -> None:
    path = tmp_path / "doc.md"
    path.write_text(f"before\n{coverage_docs.BEGIN}\nold\n{coverage_docs.END}\nafter\n")
    coverage_docs.write(path, {"Ratios": [GOOD]})
    text = path.read_text()
    assert text.startswith("before\n") and text.endswith("after\n") and "old" not in text
    assert text.index("| a condition, 3 x 5 | 1 |") < text.index("| a condition | these disks |")
    path.write_text("no marks")
    with pytest.raises(UsageError, match="put them where the tables belong"):
        coverage_docs.write(path, {"Ratios": [GOOD]})


def test_the_worst_cell_comes_first_and_known_limits_are_left_out_beside_it() -> None:
    limited = replace(GOOD.cell.condition, name="a limit", known_limit="it shows in no data")
    bad = of(limited, replicates=1, coverage=0.456, false=0.5)
    rows = [replace(GOOD, claim=Scope.LIKE_THESE, coverage=0.941), GOOD, bad]
    assert coverage_docs.table(rows).splitlines()[2].startswith("| a limit | these disks |")
    assert coverage_docs.summary({"Ratios": rows}).splitlines()[2:] == [
        "| Ratios | these disks | 45.6 | a limit, 1 x 5 | 2 | 45.6 to 95.0 | 95.0 to 95.0 | 50.0 |",
        "| Ratios | disks like these | 94.1 | a condition, 3 x 5 | 1 | 94.1 to 94.1 | 94.1 to 94.1 | 5.0 |",
    ]


def test_false_alarms_and_false_verdicts_are_summed_up() -> None:
    calm, loud = coverage_stationarity.Cell(0.03, 0.0, 4), coverage_stationarity.Cell(0.1, 0.8, 4)
    steady = [
        coverage_stationarity.Row(cell, "steady", 1_000, share, {})
        for cell, share in ((calm, 0.0), (loud, 0.035))
    ]
    kept = coverage_limits.Row(
        coverage_limits.Cell("both arms", 1.5, 4), "verdict", 160, 0.0, 0.0, 0.9, 0.0, 80, 0.01
    )
    false = replace(kept, cell=coverage_limits.Cell("one arm", 1.05, 2), false=0.006, decided=0.1)
    of_gate, of_limits = coverage_docs.summary({"gate": steady, "limits": [kept, false]}).splitlines()[2:]
    assert of_gate == (
        "| gate | steady |  | CV of seconds 10.0%, autocorrelation 0.8, 4 trials an arm | 2 |  |  | 3.5 |"
    )
    assert of_limits == "| limits | verdict |  | one arm, 1.05 times below, 2 blocks | 2 |  |  | 0.6 |"


def generated(document: Path) -> str:
    """Text between the marks."""
    return (
        document.read_text("utf-8").partition(coverage_docs.BEGIN)[2].partition(coverage_docs.END)[0].strip()
    )


@pytest.mark.parametrize("name", ["README.md", *PAGES])
def test_no_figure_of_coverage_is_written_by_hand(name: str) -> None:
    """Shares of simulated runs stand between the marks only, where `make coverage` writes them."""
    document = paths.ROOT / name
    text = document.read_text("utf-8").replace(generated(document), "")
    sentences = re.split(r"(?<=[.:;])\s+|\n\n|\n- ", text)
    assert not [found for found in sentences if CLAIM.search(found) and SHARE.search(found)]


@pytest.mark.parametrize(("content", "message"), [(None, "cannot be read"), ("no marks", "put them where")])
def test_a_document_that_cannot_take_tables_is_told_before_anything_is_simulated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str | None, message: str
) -> None:
    if content:
        (tmp_path / "doc.md").write_text(content)
    with pytest.raises(SystemExit) as ended:
        coverage.main(["--docs", str(tmp_path / "doc.md")])
    printed = capsys.readouterr()
    assert ended.value.code == 2 and message in printed.err and not printed.out
