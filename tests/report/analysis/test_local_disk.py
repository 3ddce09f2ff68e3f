"""local-disk: planted latency and rate meet at their knee; the answer says so, and whose disk it is."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from diskbook.design import scenario_file, schema
from diskbook.hosts import hosts_file
from diskbook.report.analysis import local_disk
from diskbook.report.analysis.run import Analysis
from diskbook.report.show import facts
from diskbook.results.run import Run
from diskbook.results.tables import Tables
from support.own_hosts import OWN

LATENCY_MS, CAP_IOPS = 0.1, 80_000.0


def made_up(folder: Path, cap_iops: float = CAP_IOPS) -> Analysis:
    """A run of three blocks on a disk that takes so long for an I/O, and does so many a second at most."""
    rng = np.random.default_rng(1)
    scenario = hosts_file.as_own(scenario_file.load(OWN, "standard"))
    rows = []
    for block in (1, 2, 3):
        for position, item in enumerate(scenario.workload, 1):
            free = item.outstanding / LATENCY_MS * 1000
            iops = min(free, cap_iops) * np.exp(rng.normal(0, 0.002))
            direction = "commit" if item.sync else "read"
            rows.append(
                {
                    **dict.fromkeys(("run", "scenario", "site"), "own"),
                    "provenance": "inventory",
                    **{"replicate": 1, "block": block, "repeat": 1, "position": position, "attempt": 1},
                    "trial": f"r1-b{block}-{item.name}",
                    **{"arm": "disk", "workload": item.name, "direction": direction, "status": "ok"},
                    **{"volume": "", "owner": "", "ramp_s": 0.0},
                    **{"tool": "fio", "tool_version": "fio-3.33", "machine_id": "own/here-1"},
                    **{"disk_id": "own/here-1/disk", "vm_size": "own-host", "credit_state": "none"},
                    "started_utc": pd.Timestamp("2026-11-22T10:00:00Z"),
                    **{"outstanding": item.outstanding, "block_size_bytes": 4096, "runtime_s": 10.0},
                    **{"ios": int(10 * iops), "iops": iops, "throughput_mb_s": iops * 4096 / 1e6},
                    "lat_mean_ms": 1000 * item.outstanding / iops,
                }
            )
    trials = schema.from_rows(schema.TRIALS, rows)
    tables = Tables(trials, schema.empty(schema.BINS), schema.empty(schema.SERIES))
    entry = {"size": "own-host", "where": "this machine", "kernel": "Linux", "tool_version": "fio-3.33"}
    disk = {"sku": "own-disk", "where": "file on ext4 (/dev/sdx)", "read_back": {"kind": "file"}}
    manifest = {
        **{"provenance": "inventory", "cloud": "inventory", "scenario": scenario.model_dump(mode="json")},
        "replicates": [{"replicate": 1, "machines": {"here": entry}, "disks": {"disk": disk}}],
    }
    return Analysis(Run(folder), scenario, manifest, tables)


@pytest.mark.long
def test_the_planted_knee_is_found(tmp_path: Path) -> None:
    a = made_up(tmp_path)
    (row,) = local_disk._chosen(a).to_dict("records")
    assert row["knee"] == pytest.approx(CAP_IOPS * LATENCY_MS / 1000, rel=0.01)
    assert row["low"] < row["knee"] < row["high"] and row["n_blocks"] == 3
    read, commit = local_disk.answer(a)
    assert re.match(r"One 4K read on this disk takes 0\.(1|0999|100) ms; the highest rate is ", read)
    assert "the knee is at 8.0, 95 % CI " in read and "where 1 of 3 depths wait in a queue" in read
    assert commit.startswith("This disk: a write that is durable before the next takes 0.")
    assert read.startswith(local_disk.headline(a))
    assert "8.0, 95 % CI " in local_disk.knee_table(a)


@pytest.mark.long
def test_without_a_limit_there_is_no_knee_and_the_figure_says_so(tmp_path: Path) -> None:
    a = made_up(tmp_path, cap_iops=1e9)
    picture = local_disk.curves(a)
    assert picture.title == "Rates rise with I/Os in flight as far as was measured: no knee was met"
    assert "no knee: no cell sits on a limit" in local_disk.answer(a)[0]


def test_figures_say_whose_disk_it_is_and_never_azure(tmp_path: Path) -> None:
    picture = local_disk.curves(made_up(tmp_path))
    assert picture.title == "The rate stops rising at 8 I/Os in flight; more of them only wait"
    assert picture.caption.startswith("Own hardware, not Azure. ") and "Dotted" not in picture.caption
    words = [text.get_text() for text in picture.figure.texts]
    assert words.count("OWN DISK, not Azure") == 1 and not any("EMULATED" in word for word in words)
    assert "I/Os in flight" in {axes.get_xlabel() for axes in picture.figure.axes}


def test_the_environment_names_host_and_file_and_no_region(tmp_path: Path) -> None:
    a = made_up(tmp_path)
    (tmp_path / "ledger.jsonl").write_text("")
    shown = dict(
        line.split("\t", 1) for line in repr(facts.environment(replace(a))).splitlines() if "\t" in line
    )
    assert shown["machine here"] == "own-host, this machine, Linux, fio-3.33"
    assert shown["disk disk"] == "own-disk, file on ext4 (/dev/sdx)" and "region" not in shown
