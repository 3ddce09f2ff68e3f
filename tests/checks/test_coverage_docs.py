"""docs/explanation/coverage.md has all that is simulated, with a reason wherever something is withheld."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

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
from checks.coverage_cells import Condition, Row
from checks.simulate import LEVELS, Design
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
    condition=Condition("a condition", LEVELS[1]),
    design=Design(3, 5),
    scope=Scope.THESE,
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
    false_positive=0.05,
)


def test_the_document_has_every_condition_and_nothing_that_failed() -> None:
    text = DOCUMENT.read_text("utf-8")
    names = {condition.name for condition in coverage_cells.conditions()}
    names |= {condition.name for condition in coverage_noise.conditions()}
    names |= {f"p{100 * cell.quantile:g}, trials ±{cell.trial:.1%}" for cell in coverage_percentiles.cells()}
    assert not [name for name in names if f"| {name}" not in text]
    assert "FAILED" not in text and "NO REASON" not in text


def test_a_line_has_the_range_over_designs_and_what_is_said() -> None:
    limited = replace(GOOD.condition, known_limit="it shows in no data", refused="few blocks are left")
    rows = [
        replace(GOOD, condition=limited),
        replace(
            GOOD,
            condition=limited,
            design=Design(3, 10),
            coverage=0.85,
            refused=0.25,
            flagged=0.05,
            n_printed=7_000,
        ),
        replace(
            GOOD, condition=limited, scope=Scope.LIKE_THESE, design=Design(1, 5), refused=1.0, n_printed=0
        ),
    ]
    (line,) = coverage_docs.of_cells(rows)
    shown = coverage_docs.table([line]).splitlines()[2]
    assert shown == (
        "| a condition | these disks | 85.0 to 95.0 | 3 x 10 | 2 | 10 to 25 | 0 to 5 | 5.0 to 5.0 | "
        "known limit: it shows in no data; few blocks are left |"
    )
    assert not coverage_docs.without_reason(rows)


def test_what_is_often_refused_needs_a_reason() -> None:
    often = replace(GOOD, refused=0.3, n_printed=7_000)
    assert coverage_docs.without_reason([GOOD, often]) == ["a condition"]
    assert "NO REASON GIVEN" in coverage_docs.table(coverage_docs.of_cells([often]))


@pytest.mark.parametrize(
    ("coverage", "status"), [(0.92, "FAILED"), (0.925, "ok"), (0.975, "conservative"), (0.99, "FAILED")]
)
def test_a_cell_fails_beyond_three_standard_errors_on_either_side(coverage: float, status: str) -> None:
    row = replace(GOOD, coverage=coverage, design=Design(3, 10))
    assert row.status == status
    few_blocks = replace(row, design=Design(3, 5))
    assert few_blocks.status == ("conservative" if coverage > 0.97 else status)
    assert replace(row, flagged=0.3).status == few_blocks.status
    one_replicate = replace(row, design=Design(1, 5))
    assert one_replicate.status == replace(few_blocks, scope=Scope.LIKE_THESE).status == status


def test_tables_go_between_the_marks_with_their_summary_first(tmp_path: Path) -> None:
    path = tmp_path / "doc.md"
    path.write_text(f"before\n{coverage_docs.BEGIN}\nold\n{coverage_docs.END}\nafter\n")
    coverage_docs.write(path, [GOOD], [], [], [], [], [], [], [], [], [], [])
    text = path.read_text()
    assert text.startswith("before\n") and text.endswith("after\n") and "old" not in text
    summed_up, of_condition = (
        "| a condition, 3 x 5 | 1 |",
        "| a condition | these disks | 95.0 to 95.0 | 3 x 5 | 1 |",
    )
    assert text.index(summed_up) < text.index(of_condition)
    path.write_text("no marks")
    with pytest.raises(UsageError, match="put them where the tables belong"):
        coverage_docs.write(path, [GOOD], [], [], [], [], [], [], [], [], [], [])


def test_the_worst_cell_comes_first_and_known_limits_are_left_out_beside_it() -> None:
    limited = replace(GOOD.condition, name="a limit", known_limit="it shows in no data")
    bad = replace(GOOD, condition=limited, design=Design(1, 5), coverage=0.456, false_positive=0.5)
    general = replace(GOOD, scope=Scope.LIKE_THESE, coverage=0.941)
    lines = list(coverage_docs.of_cells([general, GOOD, bad]))
    assert coverage_docs.table(lines).splitlines()[2].startswith("| a limit | these disks | 45.6 to 45.6 |")
    summed_up = coverage_docs.summary({"Ratios": lines}).splitlines()[2:]
    assert summed_up == [
        "| Ratios | these disks | 45.6 | a limit, 1 x 5 | 2 | 45.6 to 95.0 | 95.0 to 95.0 | 50.0 |",
        "| Ratios | disks like these | 94.1 | a condition, 3 x 5 | 1 | 94.1 to 94.1 | 94.1 to 94.1 | 5.0 |",
    ]


def test_an_interval_for_losses_that_differ_has_a_line_with_its_bound() -> None:
    lost = replace(GOOD.condition, slow_lost=0.1, refused="losses")
    flagged = replace(
        GOOD, condition=lost, flagged=1.0, n_printed=0, coverage_flagged=0.3, coverage_bound=0.97
    )
    _, bound = coverage_docs.of_cells([flagged])
    assert (bound.claim, bound.coverages) == ("these disks, with the bound on losses", [0.97])
    assert bound.words == "intervals that are flagged cover 30.0 to 30.0 % without it"


def test_false_alarms_and_false_verdicts_are_summed_up() -> None:
    calm, loud = coverage_stationarity.Cell(0.03, 0.0, 4), coverage_stationarity.Cell(0.1, 0.8, 4)
    steady = [
        coverage_stationarity.Row(cell, 1_000, share, {}) for cell, share in ((calm, 0.0), (loud, 0.035))
    ]
    kept = coverage_limits.Row(coverage_limits.Cell("both arms", 1.5, 4), 160, 0.0, 0.0, 0.9, 0.0, 80, 0.01)
    false = kept._replace(cell=coverage_limits.Cell("one arm", 1.05, 2), false=0.006, decided=0.1)
    free = coverage_limits.Row(
        coverage_limits.Cell("none, slow alike", math.nan, 2), 160, 0.0, 1.0, 0.03, 0.0, 0, math.nan
    )
    said = coverage_docs.gates_and_limits(steady, [kept, false, free])
    assert "at most 3.5 % (CV of seconds 10.0%, autocorrelation 0.8)" in said
    assert "at most 0.6 % of comparisons of a cell (one arm, 1.05 times below)" in said
    assert "1.0 to 1.0 % get a verdict" in said and "3.0 to 3.0 % are refused where both" in said


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
