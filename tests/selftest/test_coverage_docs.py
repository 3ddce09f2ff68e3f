"""docs/coverage.md: all that is simulated stands in it, with a reason wherever something is withheld."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from diskbook.base import paths
from diskbook.base.errors import UsageError
from diskbook.selftest import (
    coverage,
    coverage_cells,
    coverage_docs,
    coverage_noise,
    coverage_percentiles,
)
from diskbook.selftest.coverage_cells import Condition, Row
from diskbook.selftest.simulate import LEVELS, Design
from diskbook.tables.vocabulary import Scope

DOCUMENT = paths.ROOT / "docs" / "coverage.md"
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
        replace(GOOD, condition=limited, coverage=0.85, refused=0.25, flagged=0.05, n_printed=7_000),
        replace(
            GOOD, condition=limited, scope=Scope.LIKE_THESE, design=Design(1, 5), refused=1.0, n_printed=0
        ),
    ]
    (line,) = coverage_docs.of_cells(rows)
    shown = coverage_docs.table([line]).splitlines()[2]
    assert shown == (
        "| a condition | these disks | 85.0 to 95.0 | 2 | 10 to 25 | 0 to 5 | "
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
    row = replace(GOOD, coverage=coverage)
    assert row.status == status
    meant = replace(row, condition=replace(row.condition, conservative="a bound"))
    assert meant.status == ("conservative" if coverage > 0.97 else status)


def test_tables_go_between_the_marks_and_nowhere_else(tmp_path: Path) -> None:
    path = tmp_path / "doc.md"
    path.write_text(f"before\n{coverage_docs.BEGIN}\nold\n{coverage_docs.END}\nafter\n")
    coverage_docs.write(path, [GOOD], [], [], [], [], [], [], [])
    text = path.read_text()
    assert text.startswith("before\n") and text.endswith("after\n")
    assert "old" not in text and "| a condition | these disks | 95.0 to 95.0 | 1 |" in text
    path.write_text("no marks")
    with pytest.raises(UsageError, match="put them where the tables belong"):
        coverage_docs.write(path, [GOOD], [], [], [], [], [], [], [])


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
