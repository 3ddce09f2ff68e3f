"""Versions of tools are not pooled, and the emulated DiskSpd is never compared with fio."""

from __future__ import annotations

import numpy as np
import pytest

from diskbook.design.model import Comparison
from diskbook.stats.compare import Compared, compare
from diskbook.stats.gates.tool import tool_gate
from support import synthetic

ARMS = ("new", "base")
EMULATED = "diskspd 2.0.21 (emulated by fio-3.33)"


@pytest.mark.parametrize(
    ("tools", "provenance", "status", "verdict", "words"),
    [
        ((["fio-3.33"], ["fio-3.33"]), "emulated", "passed", "", "fio-3.33"),
        ((["diskspd 2.2.0"], ["diskspd 2.2.0"]), "azure", "passed", "", "diskspd 2.2.0"),
        (([], ["fio-3.33"]), "azure", "not assessable", "", "not known"),
        ((["diskspd 2.1", "diskspd 2.2"], ["diskspd 2.2"]), "azure", "failed", "invalid", "of new are of"),
        ((["fio-3.33"], ["fio-3.33", "fio-3.41"]), "azure", "failed", "", "of base are of"),
        (([], ["diskspd 2.1", "diskspd 2.2"]), "azure", "failed", "invalid", "of base are of"),
        (
            (["fio-3.33", "fio-3.41"], ["diskspd 2.1", "diskspd 2.2"]),
            "azure",
            "failed",
            "invalid",
            "of base are of",
        ),
        ((["diskspd 2.1"], ["diskspd 2.2"]), "azure", "failed", "invalid", "count differently"),
        (
            ([EMULATED], ["fio-3.33", "fio-3.41"]),
            "emulated",
            "failed",
            "invalid",
            "the emulated DiskSpd is fio",
        ),
        ((["diskspd 2.1"], ["fio-3.33"]), "azure", "failed", "", "measured by diskspd 2.1 and fio-3.33"),
        (
            ([EMULATED], ["fio-3.33"]),
            "emulated",
            "failed",
            "invalid",
            "the emulated DiskSpd is fio: no difference between tools can be measured here",
        ),
    ],
)
def test_tools_of_a_comparison(
    tools: tuple[list[str], list[str]], provenance: str, status: str, verdict: str, words: str
) -> None:
    gate = tool_gate(ARMS, [{"tools": tuple(versions)} for versions in tools], provenance)
    assert (gate.status, gate.verdict or "") == (status, verdict)
    assert words in gate.cause


def compared(version_of_zrs: str, provenance: str) -> Compared:
    """Compare ZRS with LRS, measured by another version of a tool; the synthetic LRS is fio's."""
    trials, _, series = synthetic.tables()
    trials = trials.assign(provenance=provenance)
    trials.loc[trials["arm"] == "zrs-z1", "tool_version"] = version_of_zrs
    asked = [
        Comparison(
            arm="zrs-z1", base_arm="lrs-z1", workload="randwrite-qd1", pairing="same-machine", metric=metric
        )
        for metric in ("lat_mean_ms", "iops")
    ]
    return compare(trials, asked, series, {})


def test_no_difference_between_tools_is_printed_on_the_emulator() -> None:
    table = compared(EMULATED, "emulated").table
    assert set(table["verdict"]) == {"invalid"}
    assert table[["ratio", "ci_low", "ci_high", "diff_ms"]].isna().all(axis=None)
    assert table["warnings"].str.contains("the emulated DiskSpd is fio").all()


def test_rates_without_latencies_are_compared_and_littles_law_is_not() -> None:
    """DiskSpd without -L counts I/Os only."""
    trials, _, series = synthetic.tables(n_replicates=2)
    trials["lat_mean_ms"] = np.nan
    pair = {"arm": "zrs-z1", "base_arm": "lrs-z1", "workload": "randwrite-qd1", "pairing": "same-machine"}
    found = compare(trials, [Comparison(**pair, metric="iops")], series, {})
    assert "invalid" not in set(found.table["verdict"])
    law = found.gates[found.gates["gate"] == "Little's law"].iloc[0]
    assert (law["status"], "no latency was measured" in law["cause"]) == ("not assessable", True)


def test_on_azure_two_tools_are_compared_and_it_is_said() -> None:
    table = compared("diskspd 2.0.21", "azure").table
    assert table.loc[table["scope"] == "these disks", "ratio"].notna().all()
    assert table["warnings"].str.contains("measured by diskspd 2.0.21 and fio-3.33").all()
