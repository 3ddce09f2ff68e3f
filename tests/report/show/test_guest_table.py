"""The guests as readers see them, and the words for writes that were to be durable and were plain."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from diskbook.design import scenario_file, schema
from diskbook.facts.errors import DiskbookError
from diskbook.report.show import facts, sentences


def _analysed(rows: list[dict[str, Any]], provenance: str) -> Any:
    known = [{**dict.fromkeys(schema.GUEST.names), "run": "r", "machine": "vm1", **row} for row in rows]
    trials = pd.DataFrame(
        [{"trial": "1", "arm": "a", "status": "ok"}, {"trial": "2", "arm": "b", "status": "ok"}]
    )
    tables = SimpleNamespace(guest=schema.from_rows(schema.GUEST, known))
    return SimpleNamespace(
        trials=trials, tables=tables, labels={"a": "LRS", "b": "ZRS"}, provenance=provenance
    )


def test_arms_stand_beside_each_other_and_what_nobody_told_is_no_column() -> None:
    rows = [
        {"trial": "1", "kernel": "Linux 6.8", "write_cache": "write back", "steal_pct": 0.5},
        {"trial": "2", "kernel": "Linux 6.8", "write_cache": "write through", "busiest_core_pct": 12.0},
    ]
    page = facts.guests(_analysed(rows, "azure"))
    assert "write through" in page and "0.5 %" in page and "Busiest core" in page
    assert "Power plan" not in page and "computer that emulates" not in page
    assert "computer that emulates" in facts.guests(_analysed(rows, "emulated"))


def test_an_old_run_has_a_sentence() -> None:
    assert "was not read in this run" in facts.guests(_analysed([], "emulated"))


def test_plain_writes_are_called_that() -> None:
    scenario = scenario_file.load("zone-disks")
    commit = next(item.name for item in scenario.workload if item.sync == "fdatasync")
    assert "fdatasync" in sentences.workload_words(scenario)[commit]
    assert "plain, no flush sent" in sentences.workload_words(scenario, [commit])[commit]
    table = pd.DataFrame([{"arm": "a", "base_arm": "b", "workload": commit, "warnings": None}])
    why = "plain write (the device reports write-through, so Linux sends no flush)"
    one = sentences.flagged(table, scenario, {("a", commit): why}).iloc[0].to_dict()
    both = (
        sentences.flagged(table, scenario, dict.fromkeys([("a", commit), ("b", commit)], why))
        .iloc[0]
        .to_dict()
    )
    assert one["warnings"] == f"a alone: {why}" and not sentences.is_plain(one)
    assert both["warnings"] == f"both arms: {why}" and sentences.is_plain(both)
    words = sentences.load_words(scenario.workload_named(commit), plain=True)
    assert words == "plain write latency at queue depth 1"


def test_an_engine_of_fio_is_for_machines_with_fio() -> None:
    with pytest.raises(DiskbookError, match=r"ioengine is fio's, and .* is measured with diskspd; leave"):
        scenario_file.load("tool-check", "standard", {"workload.randread-qd1.ioengine": "io_uring"})
