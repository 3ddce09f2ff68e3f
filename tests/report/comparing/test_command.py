"""`diskbook compare`: what it prints, and how it ends."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner, Result

from diskbook.cli import document_of
from diskbook.cli.compare import compare
from diskbook.report.comparing import compared
from diskbook.report.comparing.pairs import LeftOut, label
from diskbook.report.figures.export import as_svg
from diskbook.results.run import Run
from support import beside

pytestmark = pytest.mark.long


def command(*arguments: object) -> Result:
    return CliRunner().invoke(compare, [str(item) for item in arguments])


def test_the_text_fits_80_columns_and_says_what_would_help(runs: dict[str, Run]) -> None:
    done = command("-v", *(runs[name].folder for name in ("default", "again", "slower")))
    assert done.exit_code == 0 and max(map(len, done.stdout.splitlines())) <= 80
    assert "  C/A  +2" in done.stdout and "difference (p 0.012), n 3+3" in done.stdout
    assert (
        "s.d. between 3 runs" in done.stdout
        and "replicates of each run, from this spread" in done.stdout.replace("\n    ", " ")
    )


@pytest.mark.parametrize(
    ("names", "status"),
    [
        (("default", "again"), 0),
        (("default", "slower"), 3),
        (("slower", "default"), 0),
        (("default", "single"), 4),
        (("null-1", "default"), 3),
    ],
)
def test_fail_over_ends_by_what_the_intervals_say(
    runs: dict[str, Run], names: tuple[str, ...], status: int
) -> None:
    done = command("--fail-over", "5%", "--json", *(runs[name].folder for name in names))
    assert done.exit_code == status
    assert json.loads(done.stdout)["fail_over"]["exit_code"] == status


def test_a_rate_is_worse_when_it_falls(runs: dict[str, Run], tmp_path: Path) -> None:
    copies = []
    for name, factor in (("default", 1.0), ("again", 0.8)):
        copy = beside.copied(runs[name], tmp_path / name, scenario=_of_rates(runs[name]))
        table = pd.read_csv(copy.folder / "comparisons.csv")
        table["metric"] = "iops"
        table[["ratio", "ci_low", "ci_high"]] *= factor
        table.to_csv(copy.folder / "comparisons.csv", index=False)
        copies.append(copy.folder)
    assert command("--fail-over", "5%", *copies).exit_code == 3
    assert command("--fail-over", "5%", *copies[::-1]).exit_code == 0


def _of_rates(run: Run) -> object:
    scenario = json.loads((run.folder / "manifest.json").read_text())["scenario"]
    for item in scenario["comparison"]:
        item["metric"] = "iops"
    return scenario


def test_each_comparison_has_one_line_as_in_benchstat(runs: dict[str, Run]) -> None:
    done = command(*(runs[name].folder for name in ("default", "slower")))
    lines = done.stdout.splitlines()
    head = next(line for line in lines if line.startswith("comparison"))
    assert head.split() == ["comparison", "A", "B", "change", "p", "n"]
    rows = [line for line in lines if " / " in line]
    assert len(rows) == 11 and all(len(row) <= 80 for row in rows)
    first = rows[0].removeprefix("zrs-z1 / lrs-z1, randwrite-qd1").split()
    assert first[1] == first[3] == first[5] == "%" and first[4].startswith("+2") and first[-1] == "3+3"
    assert "-v shows them" in lines[-1]


def test_csv_and_markdown_have_a_row_a_comparison(runs: dict[str, Run]) -> None:
    folders = [runs[name].folder for name in ("default", "slower")]
    rows = command("--csv", *folders).stdout.splitlines()
    assert rows[0].startswith("family,arm,base_arm,workload") and len(rows) == 12
    shown = command("--md", *folders).stdout
    assert "| Comparison | A: its change | B: its change | B / A | Verdict | n |" in shown
    assert "1. " in shown and shown.startswith("**emulated**")
    assert command("--csv", "--md", *folders).exception is not None


def test_json_has_no_nan(runs: dict[str, Run]) -> None:
    held = compared.compare([str(runs[name].folder) for name in ("default", "slower")])
    left_out = (LeftOut("slower", "randread", "another question"),)
    other = replace(held, paired=replace(held.paired, left_out=left_out))
    content = json.loads(document_of.compare(other).text, parse_constant=pytest.fail)
    assert content["left_out"] == [{"run": "slower", "what": "randread", "why": "another question"}]
    assert {row["verdict"] for row in content["comparisons"]} >= {"difference", ""}
    assert content["schema"] == "diskbook/compare/1" and content["fail_over"] is None


def test_the_spread_between_runs_holds_what_was_planted(runs: dict[str, Run]) -> None:
    three = compared.compare([str(runs[name].folder) for name in ("default", "again", "slower")])
    item = next(item for item in three.spreads if item.key[2] == "randwrite-qd1" and item.key[0] == "zrs-z1")
    assert 0.05 < item.spread.sd < 0.2 and item.spread.p < 0.01 and "more than their replicates" in item.words
    one = compared.compare([str(runs[name].folder) for name in ("default", "again", "single")])
    assert all(item.has_disks for item in compared.between(one.pairs))


def test_the_figure_has_a_row_a_run_and_words_for_who_cannot_see_it(runs: dict[str, Run]) -> None:
    three = compared.compare([str(runs[name].folder) for name in ("default", "again", "slower")])
    picture = three.picture
    assert len(picture.data) == 9 and picture.alt.startswith("Forest plot of 3 comparisons over 3 runs")
    assert picture.caption.startswith("Emulated, not measured on Azure.")
    assert "slower +19" in picture.description
    assert picture.title == "3 of 3 changes differ between 3 runs"
    assert as_svg(picture)


def test_latencies_are_written_for_continuous_benchmarking(runs: dict[str, Run], tmp_path: Path) -> None:
    folders = [runs[name].folder for name in ("default", "slower")]
    done = command(*folders, "--bench-json", tmp_path / "bench.json")
    assert done.exit_code == 0 and "left out: 0 rates, of which more is better" in done.stderr
    rows = json.loads((tmp_path / "bench.json").read_text())
    found = json.loads(command("--json", *folders).stdout)["comparisons"]
    keys = ("arm", "base_arm", "workload", "direction", "metric")
    records = {label([row[key] for key in keys]): row for row in found}
    assert rows and len(rows) <= len(records)
    for row in rows:
        assert set(row) == {"name", "unit", "value", "range", "extra"}
        pair = records[row["name"]]
        assert row["value"] == pytest.approx(pair["ratio_of_ratios"], rel=1e-5)
        assert float(row["range"].removeprefix("± ")) == pytest.approx(
            (pair["high"] - pair["low"]) / 2, rel=1e-3
        )
        assert row["extra"].split(";")[0] == (pair["verdict"] or "no verdict")
    assert any(row["extra"].startswith("difference") for row in rows)
    three = command(*folders, runs["again"].folder, "--bench-json", tmp_path / "three.json")
    assert three.exit_code and "--bench-json takes two runs" in str(three.exception)
