"""A run stops at the first planned look at which every headline that can be decided is decided."""

from __future__ import annotations

import html
import json
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

import diskbook as db
from diskbook.design.vocabulary import Verdict
from diskbook.measure.runs import looks
from diskbook.publish import post_words
from diskbook.report.show import first_screen
from diskbook.report.show.facts import environment
from diskbook.results import plan as plans
from diskbook.results.run import Run
from support import synthetic

ROWS = pd.DataFrame(
    {
        "arm": "zrs",
        "base_arm": "lrs",
        "workload": "write",
        "direction": "write",
        "family": "headline",
        "scope": "these disks",
        "verdict": [Verdict.DIFFERENCE, Verdict.CAPPED, Verdict.INCONCLUSIVE],
        "p_adjusted": [0.01, float("nan"), float("nan")],
    }
)
OPEN = ROWS.assign(verdict=Verdict.INCONCLUSIVE, p_adjusted=0.5)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A run that has measured 2 of 4 blocks, and is to be judged there."""
    asked = {"design.looks": [2, 4], "design.look_unit": "blocks"}
    made = synthetic.run_folder(tmp_path / "one", scenario=synthetic.every_block("quick", asked), n_blocks=2)
    ledger = made.folder / "ledger.jsonl"
    events = [line for line in ledger.read_text().splitlines() if json.loads(line).get("block", 0) <= 2]
    ledger.write_text("\n".join(events) + "\n")
    return made


def _left(run: Run, table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Numbers of the blocks that are measured yet, where the look finds these comparisons."""
    seen = SimpleNamespace(compared=SimpleNamespace(table=table))
    monkeypatch.setattr(looks, "computed", lambda run: seen)
    return [block.block for block in looks.until_decided(run, plans.remaining(run, 1))]


@pytest.mark.long
def test_what_gates_withhold_holds_nothing_up(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert plans.progress(run).whole == 2
    assert _left(run, ROWS, monkeypatch) == plans.remaining(run, 1) == []
    stop = plans.stopped_at(run)
    assert stop is not None and stop["number"] == 2
    assert "look after 2 of 4 blocks" in stop["text"] and "this saves 2 blocks and" in stop["text"]
    assert "USD (on Azure)" in stop["text"] and plans.early_stop(run) == stop["text"]
    results = db.open_run(run.folder)
    assert "stopped at the look after 2 of 4 blocks" in results.caption
    shown = post_words.lines(results.analysis)[2], first_screen.sure(results.analysis)
    assert all("this saves 2 blocks and" in text for text in shown)
    assert html.escape(stop["text"], quote=False) in str(environment(results.analysis))


def test_an_open_headline_goes_on_and_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _left(run, pd.concat([ROWS, OPEN.head(1)]), monkeypatch) == [3, 4]
    assert plans.stopped_at(run) is None and plans.early_stop(run) == ""
    assert run.ledger()[-1]["text"].endswith("not decided yet: zrs / lrs, write (write)")


@pytest.mark.parametrize("change", [{"family": "exploratory"}, {"scope": "disks like these"}])
def test_without_a_headline_of_its_scope_it_goes_on(
    run: Run, monkeypatch: pytest.MonkeyPatch, change: dict[str, str]
) -> None:
    assert _left(run, ROWS.assign(**change), monkeypatch) == [3, 4]


@pytest.mark.long
def test_the_interval_of_a_look_never_contradicts_its_verdict(run: Run) -> None:
    table = looks.computed(run).compared.table
    judged = table[table["p_adjusted"].notna() & table["ci_low"].notna() & (table["family"] == "headline")]
    leaves_out_1 = (judged["ci_low"] > 1) | (judged["ci_high"] < 1)
    differs = judged["verdict"] == Verdict.DIFFERENCE
    assert len(judged) and (judged["level"] > 0.95).all() and leaves_out_1[differs].all()
