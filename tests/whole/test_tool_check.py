"""A whole run with fio on a Linux machine and DiskSpd on a Windows machine, both emulated."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from diskbook.design import scenario_file
from diskbook.measure.runs import stages
from diskbook.report.analysis.run import Analysis, analyse
from diskbook.report.show import facts as show_facts
from diskbook.results import attached, tables as store_tables
from diskbook.results.run import Run
from diskbook_emulator import lifecycle
from support import SCENARIOS
from support.emulated import leftovers

pytestmark = pytest.mark.whole

SCENARIO = SCENARIOS / "tools.toml"


@pytest.fixture(scope="module")
def run() -> Iterator[Run]:
    """The run, measured and torn down."""
    with (
        tempfile.TemporaryDirectory(prefix="diskbook-test-", dir="/tmp") as name,
        pytest.MonkeyPatch.context() as patch,
    ):
        folder = Path(name)
        patch.setenv("TMPDIR", name)
        patch.setenv("DISKBOOK_RUNS", str(folder / "runs"))
        lifecycle.start("tools", profile="quiet", time_scale=0.0, owner=True)
        made = stages.begin("tools", str(SCENARIO), "emulator", "quick", emulator={"name": "tools"})
        stages.provision(made)
        stages.benchmark(made)
        stages.teardown(made)
        yield made
        for one in lifecycle.status():
            lifecycle.stop(one.name)
        assert leftovers(folder) == []


@pytest.fixture(scope="module")
def analysis(run: Run) -> Analysis:
    return analyse(run)


def trials(run: Run) -> dict[tuple[str, str], dict[str, Any]]:
    """The finished trials by arm and workload."""
    events = [event for event in run.ledger() if event["event"] == "trial"]
    assert [event["error"] for event in events] == [None] * 4
    return {(event["arm"], event["workload"]): event for event in events}


def test_each_machine_is_measured_by_its_tool_and_the_xml_is_kept(run: Run) -> None:
    for (arm, workload), event in trials(run).items():
        assert event["tool"] == arm
        main = {"fio": "json", "diskspd": "xml"}[arm]
        text = attached.read_bytes(run.folder, event["files"][main]).decode()
        assert ("<Results>" in text) == (arm == "diskspd")
        if workload == "write-qd2":
            depth = {"fio": r'"iodepth"\s*:\s*"2"', "diskspd": "<RequestCount>2</RequestCount>"}[arm]
            assert re.search(depth, text)
    versions = {row["os"]: row["tool_version"] for row in run.manifest["replicates"][0]["machines"].values()}
    assert versions["linux"].startswith("fio-")
    assert "emulated by fio-" in versions["windows"]


def test_the_tables_hold_both_tools(run: Run) -> None:
    tables = store_tables.build(run)
    rows = tables.trials.set_index(["arm", "workload", "direction"]).sort_index()
    for arm in ("fio", "diskspd"):
        row = rows.loc[(arm, "write-qd2", "write")]
        assert (row["tool"], row["outstanding"], row["status"]) == (arm, 2, "ok")
        assert row["iops"] > 0 and row["lat_mean_ms"] > 0
        assert set(rows.loc[(arm, "line")].index) == {"read", "write"}
    versions = rows["tool_version"].groupby("arm").unique()
    assert versions["diskspd"][0].startswith("diskspd 2.0.21 (emulated by fio-")
    assert len(tables.bins[tables.bins["trial"].str.contains("diskspd-write-qd2")]) > 0
    assert len(tables.series[tables.series["trial"].str.contains("diskspd-write-qd2")]) > 0
    # The line has no -L: DiskSpd measured no latencies, fio always does.
    assert rows.loc[("diskspd", "line"), "lat_mean_ms"].isna().all()
    assert rows.loc[("fio", "line"), "lat_mean_ms"].notna().all()


def test_the_disk_is_filled_once_here_by_diskspd(run: Run) -> None:
    assert next(event["arm"] for event in run.ledger() if event["event"] == "trial") == "diskspd"
    fills = [event for event in run.ledger() if event["event"] == "prefill"]
    assert [(event["disk"], event["bytes"], event["caps_lifted"]) for event in fills] == [
        ("lrs", 32 * 1024**2, True)
    ]


def test_no_difference_between_tools_is_reported(analysis: Analysis) -> None:
    table = analysis.comparisons
    assert set(table["verdict"]) == {"invalid"}
    assert table[["ratio", "ci_low", "ci_high"]].isna().all(axis=None)
    assert table["warnings"].str.contains("the emulated DiskSpd is fio: no difference between tools").all()


def test_what_a_line_means_for_its_readers_is_shown(analysis: Analysis) -> None:
    line = analysis.comparisons[analysis.comparisons["workload"] == "line"]
    assert line["warnings"].str.contains("reads may hit unwritten blocks").all()
    facts = repr(show_facts.environment(analysis))
    assert "the line: diskspd -c16M -w30" in facts
    assert "sends no FUA" in facts
    assert "-c became -f" in facts


def test_the_scenario_tool_check_is_an_ordinary_one() -> None:
    for preset in ("quick", "standard", "full"):
        found = scenario_file.load("tool-check", preset)
        tools = {arm.name: found.tool_of(arm) for arm in found.arm}
        assert tools == {"fio": "fio", "fio-b": "fio", "diskspd": "diskspd"}
        assert {item.pairing for item in found.comparison} == {"same-disk"}
