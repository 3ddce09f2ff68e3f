"""Planning a run: sample sizes against known numbers, pilots, histories; a mistake is one sentence."""

from __future__ import annotations

import itertools
import math
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.power import TTestPower

from diskbook.cli import main
from diskbook.cost import durations
from diskbook.design import scenario_file, schedule
from diskbook.facts.errors import UsageError
from diskbook.measure.plan import sample_size
from diskbook.measure.plan.sample_size import Target
from diskbook.report.analysis import prior_runs as prior_runs_of
from diskbook.results import tables as store_tables
from diskbook.results.run import Run
from diskbook.stats import intervals, power, prior_runs, ratios
from support import synthetic


def log_ratios(values: list[list[float]]) -> pd.Series:
    """Log ratios by replicate and block."""
    index = [(r + 1, b + 1) for r, row in enumerate(values) for b in range(len(row))]
    flat = [value for row in values for value in row]
    return pd.Series(flat, index=pd.MultiIndex.from_tuples(index, names=["replicate", "block"]))


# Sample sizes


def test_two_percent_at_a_cv_of_two_percent() -> None:
    solved = TTestPower().solve_power(effect_size=1.0, alpha=0.05, power=0.8)
    assert solved == pytest.approx(9.94, abs=0.01)
    # The same standardised effect: a ratio whose log is one standard deviation.
    assert power.for_power(math.log(1.02), 0.02, 0.8) == math.ceil(solved)


@pytest.mark.parametrize(
    ("sd_disk", "cv", "one", "several"),
    [
        (0.005, 0.01, 5, {1: 5}),
        (0.01, 0.02, 11, {1: 13, 2: 9, 3: 7, 5: 6}),
        (0.01, 0.03, 21, {1: 23, 3: 11}),
        (0.02, 0.02, 11, {1: 19, 2: 15, 3: 13}),
        (0.03, 0.03, 21, {1: 38, 2: 29}),
    ],
)
def test_runs_needed_to_detect_two_percent(
    sd_disk: float, cv: float, one: int, several: dict[int, int]
) -> None:
    """Replicates by number of blocks, 80 % power, 2 runs an arm and block: as simulated for the design."""
    spread = power.assumed(sd_disk, cv, repeats=2)
    assert spread.sd_block == pytest.approx(cv)
    assert power.for_power(spread.sd_block, 0.02, 0.8) == one
    found = {blocks: power.for_power(spread.sd_replicate(blocks), 0.02, 0.8) for blocks in several}
    assert found == several


def test_power_is_the_share_of_simulated_runs_that_differ() -> None:
    sd, n, rng = 0.02, 9, np.random.default_rng(1)
    runs = rng.normal(math.log(1.02), sd, (4000, n))
    found = (stats.ttest_1samp(runs, 0, axis=1).pvalue < 0.05).mean()
    assert power.power_of(sd, 0.02, n) == pytest.approx(found, abs=0.02)


def test_power_is_a_number_for_any_effect() -> None:
    powers = [
        power.power_of(sd, effect, n)
        for sd in (0.02, 1e-4, 1e-9)
        for effect in (0.02, 0.9)
        for n in (2, 3, 99)
    ]
    assert all(0 < one <= 1 for one in powers)
    assert power.for_power(1e-9, 0.9, 0.99) <= 3


def test_assured_width_by_hand() -> None:
    # s.d. 2 %, h = log 1.015 = .0148886. 12 units: t(11) = 2.200985, chi2(.8, 11) = 14.6314, so
    # 2.200985 * .02 * sqrt(14.6314 / 11) / sqrt(12) = .014656; with 11 units .015578.
    assert power.for_half_width(0.02, 0.015) == 12
    # A pilot of 5: t(19) = 2.093024, F(.8; 19, 4) = 2.44584, so .014639 with 20 units; .015079 with 19.
    assert power.for_half_width(0.02, 0.015, df=4, least=5) == 20
    assert power.for_half_width(0.002, 0.015, df=4, least=5) == 5
    assert power.for_half_width(0.02, 0.0001) > 100_000  # found by halving, not by counting


@pytest.mark.long
@pytest.mark.parametrize("n_pilot", [None, 5, 10])
def test_the_promised_width_is_kept_in_four_of_five_runs(n_pilot: int | None) -> None:
    """With an assumed spread that is true, and with the spread of a pilot."""
    rng, sd, half, kept, runs = np.random.default_rng(2), 0.03, 0.015, 0, 2000
    for _ in range(runs):
        known, df = sd, math.inf
        if n_pilot:
            known, df = float(rng.normal(0, sd, n_pilot).std(ddof=1)), n_pilot - 1.0
        n = power.for_half_width(known, half, df)
        kept += _shown(rng.normal(0, sd, n)) <= half
    assert 0.77 <= kept / runs <= 0.86  # whole numbers of units keep a little more


def _shown(values: np.ndarray) -> float:
    """Relative half-width that a run prints."""
    found = ratios.over_replicates(values[:, None])
    return math.sqrt(found.high / found.low) - 1


@pytest.mark.long
@pytest.mark.parametrize("n_pilot", [None, 3, 5])
def test_the_width_of_a_design_as_it_stands_is_kept_in_four_of_five_runs(n_pilot: int | None) -> None:
    rng, kept, runs = np.random.default_rng(4), 0, 1000
    for _ in range(runs):
        known, df = 0.02, math.inf
        if n_pilot:
            known, df = float(rng.normal(0, 0.02, n_pilot).std(ddof=1)), n_pilot - 1.0
        kept += _shown(rng.normal(0, 0.02, 4)) <= power.half_width_of(known, 4, df_pilot=df)
    assert 0.76 <= kept / runs <= 0.84


def test_no_spread_needs_the_fewest() -> None:
    assert power.for_half_width(0.0, 0.01) == power.for_power(0.0, 0.01, 0.8) == 2
    assert math.isnan(power.half_width_of(0.01, 1))


@pytest.mark.parametrize(("replicates", "blocks"), [(1, 4), (3, 3), (5, 5), (10, 10)])
def test_a_promised_width_over_blocks_of_replicates_is_kept_in_80_percent(
    replicates: int, blocks: int
) -> None:
    values = np.random.default_rng(7).normal(0, 0.02, (20_000, replicates, blocks))
    shown = intervals.within_replicates(values)
    promised = power.half_width_within(0.02, replicates, blocks)
    kept = (np.expm1((shown.high - shown.low) / 2) <= promised).mean()
    assert kept == pytest.approx(0.8, abs=0.025)


def test_components_by_hand() -> None:
    # Means .1 and .4: their variance .045 holds half of the blocks' variance .0013.
    found = power.measured(log_ratios([[0.08, 0.12], [0.37, 0.43]]))
    assert found.sd_block == pytest.approx(math.sqrt(0.0013))
    assert found.sd_disk == pytest.approx(math.sqrt(0.045 - 0.00065))
    assert (found.df_disk, found.df_block) == (1, 2)
    # At the pilot's number of blocks both together are what was seen.
    assert found.sd_replicate(2) == pytest.approx(math.sqrt(0.045))


@pytest.mark.long
def test_components_are_found_again() -> None:
    rng = np.random.default_rng(6)
    found = [
        power.measured(log_ratios((rng.normal(0, 0.01, (5, 1)) + rng.normal(0, 0.02, (5, 3))).tolist()))
        for _ in range(300)
    ]
    assert np.mean([one.sd_block**2 for one in found]) == pytest.approx(0.0004, rel=0.05)
    # Above the truth, since negative estimates become zero.
    assert 0.0001 < np.mean([one.sd_disk**2 for one in found]) < 0.00016


def test_components_need_blocks() -> None:
    with pytest.raises(ValueError, match="one block a replicate"):
        power.measured(log_ratios([[0.1], [0.2]]))
    with pytest.raises(ValueError, match="every log ratio is the same"):
        power.measured(log_ratios([[0.1, 0.1]]))


# Time


def test_moves_follow_the_order_of_trials() -> None:
    scenario = synthetic.every_block("quick", {"all_workloads.blocks": 1})
    attached, detached = durations.moves(scenario)
    # Each of three disks once, to be filled; then the ZRS disk to three machines, the others as often.
    assert (attached, detached) == (12, 9)
    assert durations.attached_anew(scenario) == (9, 5)


def test_settling_is_part_of_the_time() -> None:
    scenario = synthetic.every_block("quick", {"all_workloads.blocks": 60})
    settled = scenario.model_copy(update={"design": scenario.design.model_copy(update={"settle_s": 30.0})})
    assert durations.attached_anew(scenario) == (9 * 60, 5 * 60)
    more = durations.around_s(settled) - durations.around_s(scenario)
    assert more == pytest.approx(5 * 60 * 30) == pytest.approx(durations.settling_s(settled))
    standard = synthetic.every_block("standard", {"design.settle_s": 1})
    visits = durations.attached_anew(standard)[1]
    assert durations.settling_s(standard) == visits * (30 + 30 + 0.6)  # as long as the trial
    stays = scenario_file.load("disk-options", "quick")
    assert durations.attached_anew(stays) == (0, 0)


def test_time_grows_with_what_is_done() -> None:
    scenario = scenario_file.load("zone-disks", "standard")
    more = sample_size.with_numbers(scenario, 6, 10)
    assert sample_size.trials(scenario) == sum(len(block.trials) for block in schedule.plan(scenario))
    assert sample_size.trials(more) == sum(len(block.trials) for block in schedule.plan(more))
    assert durations.around_s(scenario) > 168
    few, many = (sample_size.with_numbers(synthetic.every_block("standard"), 1, n) for n in (50, 400))
    assert durations.around_s(many) == pytest.approx(8 * durations.around_s(few), rel=0.2)


@pytest.mark.long
def test_moves_between_placements_do_not_grow_with_blocks() -> None:
    """Four LRS disks attached once; the ZRS disk to three zones and back to two; a settling time for each."""
    for blocks in (2, 5, 60):
        scenario = scenario_file.load("zone-disks", "standard", {"all_workloads.blocks": blocks})
        assert durations.moves(scenario) == (4 + 5, 4)
        assert durations.attached_anew(scenario) == (0, 0)
    at_once = scenario.model_copy(update={"design": scenario.design.model_copy(update={"settle_s": 0.0})})
    assert durations.around_s(scenario) - durations.around_s(at_once) == pytest.approx(5 * 120)
    shared = scenario_file.load("shared-zrs", "standard")
    # To both nodes, to the probe, and to both nodes again; no node keeps it while the probe reads.
    assert durations.moves(shared) == (1 + 2 + 1 + 2, 2 + 1)


def test_a_plan_says_what_fewer_moves_save_and_what_the_disks_cost(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = said(capsys, monkeypatch, "zone-disks", "--preset", "standard")
    every = scenario_file.load("zone-disks", "standard")
    arms = tuple(arm.model_copy(update={"placement": None}) for arm in every.arm)
    calls = sum(durations.moves(every.model_copy(update={"arm": arms})))
    assert calls > 93  # of an earlier design with three disks
    assert (
        f"takes 13 attach and detach calls per replicate; moves in every block would take {calls:.0f}" in text
    )
    assert "moved between groups of blocks: zrs, with 120 s to settle after each move, 10 min in all" in text
    # 3 replicates of 2 disks for 3 begun hours, at 148.68 USD a month of 730 h.
    assert (
        f"of it lrs-z2, lrs-z3, to compare with in the other placements: about {18 * 148.68 / 730:.2f} USD"
        in text
    )
    text = said(capsys, monkeypatch, "disk-options")
    assert "moved between" not in text and "in the other placements" not in text


# What is needed


@pytest.mark.long
def test_needs_take_the_worst_comparison_and_holms_step() -> None:
    scenario = scenario_file.load("zone-disks", "standard")
    calm = sample_size.Evidence("calm", power.assumed(0.001, 0.002), "")
    rough = sample_size.Evidence("rough", power.assumed(0.01, 0.02), "")
    wanted = Target(effect=0.02, power=0.8)
    both = sample_size.needs(scenario, [calm, rough], wanted, family=3)
    assert both == sample_size.needs(scenario, [rough], wanted, family=3)
    alone = sample_size.needs(scenario, [rough], wanted, family=1)
    assert both.these.blocks > alone.these.blocks
    assert both.cheapest.total_s == min(need.total_s for need in both.like_these)
    by_blocks = {need.blocks: need.replicates for need in both.like_these}
    assert list(by_blocks) == [2, 3, 5, 10] and by_blocks[2] > by_blocks[10]


# Runs as pilot and history


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DISKBOOK_RUNS", str(tmp_path))
    return tmp_path


_MADE: dict[tuple[Any, ...], dict[str, bytes]] = {}


def made(runs: Path, name: str, replicates: int = 3, **options: Any) -> Run:
    """A measured run of three loads at depth 1; made once for names of a length, then written from memory."""
    key = (len(name), replicates, *sorted(options.items()))
    if key in _MADE:
        (runs / name).mkdir()
        for file, content in _MADE[key].items():
            (runs / name / file).write_bytes(content)
        run = Run(runs / name)
        run.write_manifest({**run.manifest, "run": name})
        return run
    truth = synthetic.Truth(synthetic.BY_ZONE, disk=0.01)
    loads = (synthetic.READ, synthetic.WRITE, synthetic.COMMIT)
    scenario = scenario_file.load("zone-disks", "quick")
    options = {"scenario": scenario, "seed": len(name), "n_blocks": 3, "samples": 20, "draws": 5, **options}
    run = synthetic.run_folder(runs / name, truth=truth, n_replicates=replicates, loads=loads, **options)
    manifest = run.manifest
    manifest["scenario"]["design"]["replicates"] = replicates
    run.write_manifest(manifest)
    _MADE[key] = {path.name: path.read_bytes() for path in run.folder.iterdir()}
    return run


def said(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: str) -> str:
    """What `diskbook plan` prints, in lines as long as they are written."""
    monkeypatch.setenv("COLUMNS", "1000")
    monkeypatch.setattr(sys, "argv", ["diskbook", "plan", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    return capsys.readouterr().out


def test_a_plan_without_a_request(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = said(capsys, monkeypatch, "zone-disks", "--preset", "standard")
    assert "3 replicates of fresh machines and disks, 342 trials" in text and "seed 20261" in text
    assert "then write over once at random (64 KiB), about 4 min on Azure" in text
    assert "zrs-z2    Premium_ZRS 1024 GiB on vm2 (Standard_D4as_v4, zone 2)" in text
    assert "as it stands, 3 replicates x 5 blocks" in text and "pilot of 5 replicates x 3 blocks" in text
    assert "needed for" not in text


def test_names_of_arms_and_workloads_stand_in_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also for names longer than most: the longest arm has 17 characters."""
    lines = said(capsys, monkeypatch, "disk-options").splitlines()
    for head, end in (("arms:", "workloads:"), ("workloads:", "order of")):
        start = lines.index(head) + 1
        rows = list(itertools.takewhile(lambda line, end=end: not line.startswith(end), lines[start:]))
        assert len(rows) >= 7
        assert len({re.match(r"  \S+  +", line).end() for line in rows}) == 1, rows


def test_without_a_pilot_the_spread_is_that_of_public_measurements(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = said(capsys, monkeypatch, "zone-disks", "--preset", "standard", "--effect", "5%")
    public = "from public measurements of Azure"
    assert f"between disk pairs 2 %, {public}; of one tool run 0.53 %, {public})" in text
    # t(2) = 4.302653, s = hypot(.02, .0075 / sqrt 5) = .020278 for 3 replicates of 5 blocks; 80 % of runs
    # show up to sqrt(3.218876 / 2) = 1.268636 times s.
    assert "disks like these: ±6.6 %" in text
    assert "2.5 to 3.6 % are over 10 % slower" in text and "with them the s.d. between pairs is 4 %" in text
    number = power.for_power(math.hypot(0.04, 0.016 / math.sqrt(5)), 0.05, 0.8, alpha=0.05 / 5)
    assert f"it takes {number} replicates x 5 blocks. Plan 5 pairs or more, spread over hours." in text
    assert "CC-BY-4.0" in text
    rows = text.partition("disks like these:\n    blocks")[2].splitlines()[1:5]
    assert {int(row.split()[1]) for row in rows} == {6}  # fewer would do, but for slow pairs


def test_pairs_on_one_machine_are_told_from_pairs_on_two() -> None:
    one, two = sample_size.from_assumed(scenario_file.load("shared-zrs", "standard"), None, 0.02)
    assert (one.spread.sd_disk, two.spread.sd_disk) == (0.02, 0.0385)
    assert "2 %, from public measurements of Azure; of one tool run 2 %, assumed" in one.source
    (given,) = sample_size.from_assumed(scenario_file.load("shared-zrs", "standard"), 0.01, None)
    assert given.with_slow_pairs is None and given.least_replicates == 2


def test_one_disk_on_one_machine_is_paired_by_that_machine() -> None:
    scenario = scenario_file.load("tool-check", "standard")
    item = sample_size.headline(scenario)[0]
    assert item.pairing == "same-disk" and not sample_size.is_on_one_machine(scenario, item)
    machine = scenario.arm_named(item.base_arm).machine
    arms = tuple(arm.model_copy(update={"machine": machine}) for arm in scenario.arm)
    together = scenario.model_copy(update={"arm": arms})
    (evidence,) = sample_size.from_assumed(together, None, None)
    assert evidence.spread.sd_disk == 0.02
    apart = item.model_copy(update={"pairing": "replicate"})
    assert not sample_size.is_on_one_machine(together, apart)


@pytest.mark.long
def test_no_number_of_blocks_is_promised_to_decide_between_machines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `stats.gates.design.unpaired` has it: of these disks they stay inconclusive."""
    between = "these disks in these hours (comparisons between machines): no number of blocks"
    text = said(capsys, monkeypatch, "tool-check", "--effect", "2%")
    assert between in text and "in one replicate, " not in text
    text = said(capsys, monkeypatch, "shared-zrs", "--preset", "standard", "--effect", "5%")
    assert between in text and "these disks in these hours (comparisons on one machine): " in text
    assert between not in said(capsys, monkeypatch, "zone-disks", "--effect", "5%")


def test_waiting_between_blocks_is_planned(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five rounds of three zones, 2 h apart: four waits, shorter by the 0.4 h or so that a round takes."""
    scenario = scenario_file.load("zone-disks", "standard", {"design.hours_between_blocks": 2})
    waiting_h = schedule.waiting_s(scenario) / 3600
    assert 6 < waiting_h < 8 and schedule.waiting_s(scenario_file.load("zone-disks", "standard")) == 0
    text = said(
        capsys, monkeypatch, "zone-disks", "--preset", "standard", "--set", "design.hours_between_blocks=2"
    )
    assert f"a replicate on Azure, {waiting_h:.1f} h of waiting, blocks 2 h apart;" in text


@pytest.mark.long
def test_a_plan_with_assumed_spread(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["zone-disks", "--set", "design.repeats=2", "--effect", "2%", "--half-width", "1.5 %"]
    text = said(capsys, monkeypatch, *words, "--sd-disk", "0%", "--sd-run", "2%")
    assert (
        "needed for ±1.5 % (95 %, in 80 % of runs) and 80 % power for a difference of 2 % "
        "(at 5 %/5, Holm's hardest step)" in text
    )
    # alpha 5 %/5 and d = log 1.02 / .02.
    solved = TTestPower().solve_power(effect_size=math.log(1.02) / 0.02, alpha=0.05 / 5, power=0.8)
    assert f"these disks in these hours: {math.ceil(solved)} blocks in one replicate" in text
    assert "diskbook run zone-disks --preset quick --set design.repeats=2 --set design.replicates=" in text
    assert "fixed before the run" in text


@pytest.mark.long
def test_a_plan_from_a_pilot(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = made(runs, "pilot", replicates=5).folder
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    text = said(capsys, monkeypatch, "zone-disks", "--half-width", "1%", "--pilot", "pilot")
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before  # planning writes nothing
    found = prior_runs_of.open_prior_run("pilot").measured(
        sample_size.headline(scenario_file.load("zone-disks", "quick"))
    )
    assert len(found) == 5 and "left out" not in text and "assumed" not in text
    # At the pilot's own blocks the spread of its replicate means.
    worst = 0
    for measured in found:
        sd = max(
            measured.log_ratios.groupby(level=0).mean().std(ddof=1),
            power.measured(measured.log_ratios).sd_replicate(3),
        )
        worst = max(worst, power.for_half_width(sd, 0.01, 4, 5))
    rows = text.partition("disks like these:\n    blocks")[2].splitlines()
    row = next(line.split() for line in rows if line.split()[:1] == ["3"])
    assert int(row[1]) == worst
    assert "(df 10)" in text and "(df 4)" in text
    assert "The pilot is emulated: its spread is that of its disks, not of Azure's." in text
    assert "is unknown" not in text


@pytest.mark.long
def test_a_pilot_of_one_replicate_assumes_the_disks(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made(runs, "single", replicates=1)
    text = said(capsys, monkeypatch, "zone-disks", "--effect", "2%", "--pilot", "single", "--sd-disk", "1.5%")
    assert "between disk pairs 1.5 % assumed, since the pilot has one replicate" in text
    assert "is unknown" in text and "disks like these: refused with one replicate" in text


@pytest.mark.long
def test_a_pilot_of_one_replicate_on_two_machines_takes_their_spread(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(runs, "single", replicates=1)
    pilot, scenario = prior_runs_of.open_prior_run("single"), scenario_file.load("zone-disks", "quick")
    scenario = scenario.model_copy(update={"comparison": sample_size.headline(scenario)[:1]})
    one, _ = sample_size.from_pilot(pilot, scenario)
    monkeypatch.setattr(sample_size, "is_on_one_machine", lambda *_: False)
    two, _ = sample_size.from_pilot(pilot, scenario)
    assert {item.spread.sd_disk for item in one} == {0.02}
    assert {item.spread.sd_disk for item in two} == {0.0385}


@pytest.mark.long
def test_a_capped_pilot_comparison_is_left_out(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = made(runs, "pilot", replicates=2)
    tables = prior_runs_of.open_prior_run("pilot").tables
    writes = tables.trials["workload"] == "randwrite-qd1"
    tables.trials.loc[writes, "iops"] *= 0.8  # breaks Little's law
    store_tables.write(tables, run.folder)
    text = said(capsys, monkeypatch, "zone-disks", "--half-width", "2%", "--pilot", "pilot")
    assert "left out: zrs-z1 / lrs-z1, randwrite-qd1 (write): invalid" in text


@pytest.mark.long
def test_a_history_is_shown_with_what_it_saves(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("first", "the-second"):
        made(runs, name)
    text = said(
        capsys,
        monkeypatch,
        "zone-disks",
        "--half-width",
        "5%",
        "--history",
        "first",
        "--history",
        "the-second",
    )
    assert "with the history of first, the-second (emulated), disks like these (widths that 80 % of" in text
    scenario = scenario_file.load("zone-disks", "quick")
    old = [prior_runs_of.open_prior_run(name) for name in ("first", "the-second")]
    item = sample_size.headline(scenario)[0]
    prior = prior_runs_of.history_of(old, scenario, [item])[item, "write"]
    plain, with_it = prior_runs.expected_half_widths(2, prior)
    assert prior.df == 4 and prior.runs == "first, the-second"
    assert f"2 replicates: ±{100 * with_it:.3g} % instead of ±{100 * plain:.3g} %" in text
    values = old[0].measured([item])[0].log_ratios
    assert prior.pasts[0].variance == pytest.approx(values.groupby(level=0).mean().var(ddof=1))


def refused(runs: list[prior_runs_of.PriorRun], manifest: dict[str, Any] | None = None) -> str:
    scenario = scenario_file.load("zone-disks", "quick")
    with pytest.raises(UsageError) as error:
        prior_runs_of.history_of(runs, scenario, sample_size.headline(scenario)[:1], manifest)
    return str(error.value)


@pytest.mark.long
def test_a_history_of_another_cell_is_refused(runs: Path) -> None:
    def changed(name: str, kind: str, row: int, **values: Any) -> prior_runs_of.PriorRun:
        run = made(runs, name, provenance=values.pop("provenance", "emulated"))
        manifest = run.manifest
        manifest["scenario"][kind][row].update(values)
        run.write_manifest(manifest)
        return prior_runs_of.open_prior_run(name)

    same = changed("same", "disk", 0)
    now = {**same.manifest, "run": "now"}
    assert "arm: size_gib of the disk is 512, not 1024" in refused(
        [same, changed("small", "disk", 4, size_gib=512)]
    )
    large = changed("large", "machine", 0, size="Standard_D8as_v4")
    assert "size of the machine is Standard_D8as_v4, not Standard_D4as_v4" in refused([large], now)
    assert "workload: runtime_s is 2.0, not 1.0" in refused(
        [changed("long", "workload", 1, runtime_s=2.0)], now
    )
    assert "provenance is azure, not emulated" in refused(
        [changed("real", "disk", 0, provenance="azure")], now
    )
    assert "not its own history" in refused([same], same.manifest)
    assert "named twice" in refused([same, same])
    assert "1 replicate, so it shows no spread" in refused(
        [prior_runs_of.PriorRun(made(runs, "one", replicates=1))], now
    )
    assert "at least one run" in refused([])


@pytest.mark.long
@pytest.mark.parametrize(
    ("change", "difference"),
    [
        ({"scenario": {"region": "northeurope"}}, "region is northeurope, not westeurope"),
        ({"scenario": {"site": "default"}}, "site is default, not zone-disks"),
        (
            {"machine": {"accelerated_networking": False}},
            "arm: accelerated_networking of the machine is False, not True",
        ),
        ({"machine": {"os": "windows"}}, "arm: os of the machine is windows, not linux"),
        ({"disk": {"cache": "ReadOnly"}}, "base arm: cache of the disk is ReadOnly, not None"),
        ({"design": {"repeats": 3}}, "repeats is 3, not 1"),
        (
            {"machine": {"zone": "2"}},
            "pattern of zones (disk and machine of the arm, of the base arm) is none a",
        ),
    ],
)
def test_a_history_of_other_machines_or_another_place_is_refused(
    runs: Path, change: dict[str, dict[str, Any]], difference: str
) -> None:
    now = {**made(runs, "same").manifest, "run": "now"}
    run = made(runs, "other")
    manifest = run.manifest
    for kind, values in change.items():
        row = manifest["scenario"][kind]
        (row[0] if isinstance(row, list) else row).update(values)
    run.write_manifest(manifest)
    assert f"--history other: another cell ({difference}" in refused([prior_runs_of.PriorRun(run)], now)


@pytest.mark.long
def test_what_makes_no_other_cell_is_no_reason_to_refuse_a_history(runs: Path) -> None:
    """Words and seeds differ, zones have other names, and an old manifest lacks settings that came later."""
    run = made(runs, "old")
    manifest = run.manifest
    raw = manifest["scenario"]
    raw["scenario"] |= {"title": "Another", "question": "Which?", "analysis": "shared-zrs"}
    raw["design"] |= {"seed": 7, "max_cost_usd": 3.0}
    raw["machine"][0] |= {"zone": "3", "substitute": "Standard_D4as_v5"}
    for disk in raw["disk"]:
        disk |= {"zone": disk["zone"] and "3"}
        del disk["accelerated_network"]
    del raw["machine"][0]["accelerated_networking"], raw["machine"][0]["os"]
    run.write_manifest(manifest)
    scenario = scenario_file.load("zone-disks", "quick")
    items = sample_size.headline(scenario)[:1]
    assert prior_runs_of.history_of([prior_runs_of.PriorRun(run)], scenario, items)


@pytest.mark.long
def test_a_run_is_analysed_with_its_named_history(runs: Path) -> None:
    names = ("first", "the-second")
    old = [prior_runs_of.PriorRun(made(runs, name)) for name in names]
    new = prior_runs_of.PriorRun(made(runs, "the-new-one", replicates=2))
    found = prior_runs_of.intervals_with_history(new, old)
    assert [measured.item.workload for measured, _ in found] == [
        *["randwrite-qd1"] * 3,
        "randread-qd1",
        "commit-qd1",
    ]
    used = [(measured, one) for measured, one in found if not one.refusal][-2:]
    assert used
    past = [run.measured([measured.item for measured, _ in used]) for run in (*old, new)]
    for number, (measured, one) in enumerate(used):
        assert one.estimate.method.endswith("history first, the-second")
        assert one.estimate.ratio == one.plain.ratio and one.estimate.df == 5 and one.coverage >= 0.93
        # 2 df from each of the old runs, 1 from the new one; the old s.d. counts 1.25 times.
        assert all(of_run[number].item == measured.item for of_run in past)
        means = [of_run[number].log_ratios.groupby(level=0).mean() for of_run in past]
        s2 = [values.var(ddof=1) for values in means]
        moderated = (2 * 1.5625 * s2[0] + 2 * 1.5625 * s2[1] + s2[2]) / 5
        half = stats.t.ppf(0.975, 5) * math.sqrt(moderated / 2)
        assert one.estimate.high == pytest.approx(math.exp(means[2].mean() + half))


def in_two_strata(runs: Path, name: str) -> prior_runs_of.PriorRun:
    """A run whose ZRS disk answers from zone 1 in its first replicate, and from zone 2 in the others."""
    run = made(runs, name, replicates=3)
    tables = prior_runs_of.PriorRun(run).tables
    near = (tables.trials["arm"] == "zrs-z1") & (tables.trials["workload"] == "randread-qd1")
    near &= tables.trials["replicate"] == 1
    tables.trials.loc[near, "lat_mean_ms"] /= 4
    tables.trials.loc[near, "iops"] *= 4
    store_tables.write(tables, run.folder)
    return prior_runs_of.PriorRun(run)


@pytest.mark.long
def test_strata_are_no_spread(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    mixed, same = in_two_strata(runs, "mixed"), prior_runs_of.PriorRun(made(runs, "same"))
    assert "lie in 2 strata, whose difference is no noise" in refused([mixed])
    assert {one.refusal for _, one in prior_runs_of.intervals_with_history(mixed, [same])} == {
        "the replicates lie in 2 strata, each of which is judged apart"
    }
    text = said(capsys, monkeypatch, "zone-disks", "--half-width", "2%", "--pilot", "mixed")
    assert "the pilot's replicates lie in 2 strata (" in text and "each needs replicates of its own" in text


# Mistakes


@pytest.mark.long
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("zone-disk",), "there is no scenario 'zone-disk'; did you mean 'zone-disks'?"),
        (("zone-disks", "--preset", "fast"), "there is no preset 'fast'"),
        (("zone-disks", "--half-width", "1.5"), "--half-width 1.5: write a percentage with its sign"),
        (("zone-disks", "--half-width", "little"), "--half-width little: write a percentage"),
        (("zone-disks", "--half-width", "nan%"), "write a percentage with its sign"),
        (("zone-disks", "--half-width", "0%"), "it must be more than 0 % and less than 100 %"),
        (("zone-disks", "--half-width", "-1%"), "it must be more than 0 %"),
        (("zone-disks", "--effect", "inf%"), "less than 100 %"),
        (("zone-disks", "--effect", "2%", "--power", "100%"), "--power 100%: it must be"),
        (("zone-disks", "--power", "80%"), "--power needs the difference to find"),
        (("zone-disks", "--sd-disk", "1"), "--sd-disk 1: write a percentage"),
        (("zone-disks", "--pilot", "absent"), "there is no run 'absent'"),
        (("zone-disks", "--history", "absent"), "there is no run 'absent'"),
        (("zone-disks", "--pilot", "blocks-1"), "one block a replicate shows no spread between blocks"),
        (("zone-disks", "--pilot", "pilot", "--sd-run", "1%"), "--sd-run: the pilot measures this spread"),
        (("zone-disks", "--pilot", "pilot", "--sd-disk", "1%"), "--sd-disk: the pilot measures this spread"),
        (("zone-disks", "--history", "blocks-1", "--set", "design.repeats=2"), "repeats is 1, not 2"),
    ],
)
def test_a_mistake_is_one_sentence(
    words: tuple[str, ...],
    sentence: str,
    runs: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if "blocks-1" in words:
        made(runs, "blocks-1", replicates=2, n_blocks=1)
    if "pilot" in words:
        made(runs, "pilot", replicates=2)
    monkeypatch.setattr(sys, "argv", ["diskbook", "plan", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    err = capsys.readouterr().err
    assert sentence in err
    assert ended.value.code == 2 and err.startswith("diskbook: ") and err.count("\n") == 1


def test_a_scenario_without_headline_cannot_be_planned(tmp_path: Path) -> None:
    scenario = scenario_file.load("zone-disks", "quick").model_copy(update={"comparison": ()})
    with pytest.raises(UsageError, match="names no headline comparison"):
        sample_size.from_assumed(scenario, None, None)


def test_two_runs_are_planned_at_the_level_at_which_they_are_compared() -> None:
    scenario = scenario_file.load("zone-disks", "quick")
    known = sample_size.from_assumed(scenario, 0.08, None)
    ways = sample_size.for_two_runs(scenario, known, sample_size.Target(between_runs=0.1))
    sd, alpha = known[0].spread.sd_replicate(3) * math.sqrt(2), 0.05 * 0.8 / 5
    number = next(need.replicates for need in ways if need.blocks == 3)
    assert power.power_of(sd, 0.1, number, alpha) >= 0.8 > power.power_of(sd, 0.1, number - 1, alpha)


def test_the_price_of_unlike_spreads_is_stated(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = said(capsys, monkeypatch, "zone-disks", "--between-runs", "50%", "--sd-disk", "1%")
    # t(2) and t(4) at 0.05 x 0.8 / 5, two-sided.
    assert "with 3 replicates each, a difference is 11.1 standard errors or more, in place of 4.9 for" in text
    assert "below 3 replicates there is no verdict" in text
