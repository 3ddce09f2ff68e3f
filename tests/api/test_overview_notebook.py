"""The notebook 0-overview: a card per run, links to every notebook, and six changes that run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest

import diskbook as db
from diskbook.api.runs import cards
from diskbook.facts import paths
from support.run_copies import copies

CELLS = json.loads((paths.NOTEBOOKS / "0-overview.ipynb").read_text("utf-8"))["cells"]
CHANGES = ("without", "zrs-z3", "bootstrap", "lat_p99_ms", "histogram", "pool")
"""What the code of each change has, in their order."""


def source(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def changes() -> list[str]:
    """Code below the heading "Change something"."""
    start = next(n for n, cell in enumerate(CELLS) if "## Change something" in source(cell))
    return [source(cell) for cell in CELLS[start:] if cell["cell_type"] == "code"]


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Names of the notebook once its first cells and that which opens the run were executed."""
    names: dict[str, Any] = {}
    for code in (next(source(cell) for cell in CELLS if cell["cell_type"] == "code"), changes()[0]):
        exec(code, names)
    return names


def value_of(code: str, names: dict[str, Any]) -> Any:
    """Execute a cell, and return the value of its last line."""
    *before, last = code.splitlines()
    exec("\n".join(before), names)
    return eval(last, names) if " = " not in last.partition("(")[0] else exec(last, names)


@pytest.mark.parametrize(("number", "part"), list(enumerate(CHANGES, 1)))
def test_each_change_takes_at_most_four_lines(number: int, part: str) -> None:
    assert len(changes()) == len(CHANGES) + 1
    assert part in changes()[number] and len(changes()[number].splitlines()) <= 4


@pytest.mark.long
def test_leaving_out_a_block_and_another_pair_are_exploratory(names: dict[str, Any]) -> None:
    fewer, other = (value_of(code, names) for code in changes()[1:3])
    assert 1 not in set(fewer.blocks["block"]) and "without block == 1" in fewer.exploratory
    assert (other.arm, other.base_arm) == ("zrs-z3", "lrs-z1") and other.exploratory


@pytest.mark.long
def test_the_bootstrap_ends_with_why_it_is_too_narrow(
    names: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    value_of(changes()[3], names)
    printed = capsys.readouterr().out
    assert printed.splitlines()[-1].startswith("It is too narrow")
    low, high = (100 * (2.718281828459045 ** names[end] - 1) for end in ("low", "high"))
    assert high - low < max(names["write"].scope.ci_pct) - min(names["write"].scope.ci_pct)


def test_percentiles_and_a_histogram_are_of_the_trials(
    names: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    mpl.use("agg")
    value_of(changes()[4], names)
    assert "zrs-z3" in capsys.readouterr().out
    value_of(changes()[5], names)
    assert names["axes"].get_xlabel() == "latency, ms" and names["one"]["share"].iloc[-1] == pytest.approx(1)


@pytest.mark.long
def test_two_runs_are_pooled(names: dict[str, Any], tmp_path: Path) -> None:
    code = changes()[6]
    assert value_of(code, names) == "Name a second run to pool."
    second = code.replace("[run.name]", "folders")
    pooled = value_of(second, {**names, "folders": copies(tmp_path, 2)})
    assert len(pooled.runs) == 2 and "fewer than 3 runs" in pooled.runs_like_these.reason


@pytest.mark.long
def test_there_is_a_card_per_run_and_a_link_to_every_notebook() -> None:
    shown = cards()
    for name in db.runs().index:
        assert f"{name}, " in shown
    assert shown.count("border-radius") == len(db.runs()) and "3-analyse-zone-disks.ipynb" in shown
    text = "\n".join(map(source, CELLS))
    others = {path.name for path in paths.NOTEBOOKS.glob("*.ipynb")} - {"0-overview.ipynb"}
    assert others <= set(re.findall(r"\]\(([\w-]+\.ipynb)\)", text))
