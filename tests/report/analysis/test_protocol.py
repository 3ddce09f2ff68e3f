"""Facts of a run that no gate tells, from its manifest, ledger and tables; and `diskbook why --protocol`."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner

from diskbook import cli
from diskbook.design import schema
from diskbook.facts import paths
from diskbook.facts.errors import DiskbookError, UsageError
from diskbook.report.analysis import protocol, report, why_text
from diskbook.report.analysis.run import Analysis
from diskbook.results import tables as store_tables
from diskbook.results.run import Run
from diskbook.stats.gates.plan import Plan
from diskbook.stats.protocol import Conformance
from support import synthetic

PLAN = Plan(12, 12)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Make up a run of two replicates, without raw results."""
    return synthetic.run_folder(tmp_path_factory.mktemp("runs") / "made-up", n_replicates=2)


@pytest.fixture(scope="module")
def made_up(folder: Run) -> Analysis:
    """Analyse it once."""
    return Analysis(folder, folder.scenario, folder.manifest, store_tables.read(folder.folder))


def of_sample(name: str) -> Analysis:
    run = Run(paths.RUNS / f"sample-{name}")
    return Analysis(run, run.scenario, run.manifest, store_tables.read(run.folder))


def with_changes(a: Analysis, run: Run | None = None, **tables: pd.DataFrame) -> Any:
    """What the protocol reads of an analysis, with other tables or ledger; nothing is compared again."""
    changed = replace(a.tables, **tables)
    return SimpleNamespace(
        run=run or a.run,
        ledger=(run or a.run).ledger(),
        scenario=a.scenario,
        provenance=a.provenance,
        tables=changed,
        trials=changed.trials,
        comparisons=a.comparisons,
        gates=a.gates,
    )


def first(a: Any, plan: Plan | None = PLAN) -> Conformance:
    return protocol.conformances(a, plan)[0]


def missing(item: Conformance) -> set[str]:
    return {finding.point.name for finding in item.missing}


@pytest.mark.long
def test_headlines_come_first_and_every_comparison_is_judged(made_up: Analysis) -> None:
    families = [item.family for item in made_up.protocol]
    assert len(families) == len(made_up.scenario.comparison)
    assert families == sorted(families, key=["headline", "control", "exploratory"].index)


@pytest.mark.long
def test_what_was_done_to_disks_is_read_from_the_ledger(made_up: Analysis, tmp_path: Path) -> None:
    run = Run(Path(shutil.copytree(made_up.run.folder, tmp_path / "run")))
    item = first(with_changes(made_up, run))
    measured = made_up.trials[made_up.trials["arm"].isin([item.arm, item.base_arm])]
    assert {"fill", "raw results"} <= missing(item)
    for event in ("prefill", "overwrite"):
        for disk in sorted(set(measured["disk_id"])):
            assert "fill" in missing(first(with_changes(made_up, run)))
            run.append(event, replicate=1, disk_id=disk)
    (run.folder / "raw").mkdir()
    assert not {"fill", "raw results"} & missing(first(with_changes(made_up, run)))


@pytest.mark.long
def test_machines_must_be_read_in_every_trial(made_up: Analysis) -> None:
    nothing = dict.fromkeys(schema.GUEST.names) | {"run": "r", "machine": "vm"}
    read = schema.from_rows(
        schema.GUEST, [nothing | {"trial": name} for name in set(made_up.trials["trial"])]
    )

    def guest(rows: pd.DataFrame) -> str:
        findings = first(with_changes(made_up, guest=rows)).findings
        return next(item.answer.why for item in findings if item.point.name == "guest")

    assert guest(read.iloc[:0]) == "the machine was read in no trial"
    assert not guest(read).startswith("the machine was read in")


def test_a_plan_that_nobody_wrote_is_missing(made_up: Analysis) -> None:
    assert "plan" in missing(first(made_up, None))
    assert "plan" in missing(first(made_up, replace(PLAN, written=False)))
    assert "plan" not in missing(first(made_up))


def test_protocol_csv_is_read_back_and_said_in_a_line(made_up: Analysis, tmp_path: Path) -> None:
    run = Run(Path(shutil.copytree(made_up.run.folder, tmp_path / "run")))
    assert report.protocol(run) == ""
    a = with_changes(made_up, run)
    a.protocol = made_up.protocol
    path = protocol.write(a)
    assert protocol.read(run) == list(made_up.protocol)
    words = report.protocol(run)
    assert words.startswith(
        "by protocol 1: 0 of 3 headline comparisons closed, 3 open (emulated); all that are open"
    )
    assert words.endswith("; 'diskbook why --protocol run' lists what is missing, with remedies")
    path.write_text("a,b\n1\n")
    with pytest.raises(
        DiskbookError, match=r"table protocol: column 'arm' is missing; run the analysis again"
    ):
        report.protocol(run)
    path.write_text("")
    with pytest.raises(DiskbookError, match=r"protocol\.csv is damaged .*; run the analysis again"):
        report.protocol(run)


def test_the_command_lists_points_with_remedies(made_up: Analysis) -> None:
    text = why_text.protocol_text(made_up, workload="randwrite-qd1")
    assert text.startswith("run made-up, by protocol 1: 0 of ") and "randread" not in text
    assert "  7 fill: nothing says that all of what it measures was filled\n    do: measure again" in text
    assert text.index("headline: ") < text.index("control: ") < text.index("exploratory: ")


def test_the_command_takes_an_arm_on_either_side(made_up: Analysis) -> None:
    text = why_text.protocol_text(made_up, arm="lrs-b-z1")
    heads = [line for line in text.splitlines() if line.startswith(("headline", "control", "exploratory"))]
    assert heads and all("lrs-b-z1" in line for line in heads)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"arm": "zrs-z9"}, r"there is no arm 'zrs-z9'; did you mean 'zrs-z[123]'\?"),
        ({"workload": "nothing"}, r"there is no workload 'nothing'; known: commit-qd1"),
        ({"arm": "lrs-b-z1", "workload": "commit-qd1"}, r"none of lrs-b-z1 with commit-qd1; leave --arm or"),
    ],
)
def test_a_name_that_fits_nothing_is_one_sentence(made_up: Analysis, options: dict, words: str) -> None:
    with pytest.raises(UsageError, match=rf"run made-up \(its comparisons\): {words}"):
        why_text.protocol_text(made_up, **options)


@pytest.mark.long
def test_the_option_is_there(folder: Run) -> None:
    done = CliRunner().invoke(cli.cli, ["why", "--protocol", str(folder.folder)])
    assert done.exit_code == 0 and "points: docs/reference/protocol.md" in done.output
    assert (paths.ROOT / "docs" / "reference" / "protocol.md").exists()


@pytest.mark.long
def test_volumes_are_not_attached_and_fleets_write_their_files_anew() -> None:
    findings = {item.point.name: item.answer for item in first(of_sample("nested-resiliency")).findings}
    assert findings["attachment"].status == "does not apply"
    assert findings["fill"].status == "met" and "before each block" in findings["fill"].why


@pytest.mark.long
def test_a_held_rate_needs_latency_from_the_intended_start() -> None:
    a = of_sample("shared-zrs")
    trials = a.trials.assign(lat_mean_intended_ms=a.trials["lat_mean_ms"], lat_bound="")
    trials["lat_mean_least_ms"] = trials["lat_mean_ms"]

    def held(trials: pd.DataFrame) -> set[str]:
        changed = with_changes(a, trials=trials)
        changed.gates = a.gates.assign(status="passed")  # a host that was busy may have missed the rate
        items = protocol.conformances(changed, PLAN)
        return missing(next(item for item in items if item.workload == "rate-50"))

    assert "held rate" not in held(trials)
    assert "held rate" in held(trials.assign(lat_bound="lower"))
    assert "held rate" in held(trials.assign(lat_mean_intended_ms=float("nan")))
