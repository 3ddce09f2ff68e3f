"""A whole run: the notebooks in order, each its own process, and the teardown, also after an error."""

import contextlib
import shutil
import signal
import sys
from collections.abc import Iterator, Mapping
from datetime import date

from diskbook.cloud import kinds
from diskbook.cloud.azure import expiry
from diskbook.cost import budget, durations
from diskbook.design import schedule
from diskbook.facts import paths
from diskbook.facts.errors import DiskbookError, Stopped
from diskbook.facts.quantities import many
from diskbook.facts.units import duration
from diskbook.measure.runs import debug, notebook_process, outcome, stage, stages
from diskbook.measure.runs.outcome import Outcome
from diskbook.measure.runs.progress import Progress
from diskbook.measure.runs.refused import is_unmade, is_void
from diskbook.results import plan as plans, session
from diskbook.results.run import Run
from diskbook.stats import expected

NOTEBOOK_S = 15.0
"""Roughly what a stage takes apart from its work: a kernel starts, and its tables are drawn."""


def announcement(run: Run, *, keep: bool = False) -> str:
    """Say what a run does from here to its end, how long that takes, and what it costs."""
    planned, left = count_trials(run)
    if not left:
        return "everything is measured: analyse it and write the report"
    of_all = f" of {planned:,}" if left < planned else ""
    end = "keep the machines" if keep else "delete everything again"
    work = [_made(run), f"measure {left:,}{of_all} trials", "analyse them", end]
    time = duration(sum(stage_seconds(run).values()))
    return f"it will {', '.join(work)}\nit takes about {time}; {_cost(run)}"


def count_trials(run: Run) -> tuple[int, int]:
    """Count the planned trials, and those of them in blocks that are not complete."""
    blocks = plans.blocks_of(run)
    left = [block for origin in stages.origins(run.scenario) for block in plans.remaining(run, origin)]
    return sum(len(block.trials) for block in blocks), sum(len(block.trials) for block in left)


def stage_seconds(run: Run) -> Mapping[str, float]:
    """Expect how long each stage takes, in seconds, by the number that its notebook's name begins with."""
    scenario, manifest, (planned, left) = run.scenario, run.manifest, count_trials(run)
    parallel = stages.at_once(manifest["cloud"], scenario.design.replicates)
    share = left / planned / parallel if planned else 0.0
    waiting_s = schedule.waiting_s(scenario) * share * scenario.design.replicates
    around_s = (durations.around_s(scenario) - schedule.waiting_s(scenario)) * scenario.design.replicates
    around_s *= share * (manifest.get("emulator") or {}).get("time_scale", 1.0)
    trials_s = (schedule.seconds(scenario) + expected.seconds(scenario)) * share
    return {
        "1": NOTEBOOK_S + around_s / 2,
        "2": NOTEBOOK_S + around_s / 2 + waiting_s + trials_s,
        "3": 2 * NOTEBOOK_S,
        "4": NOTEBOOK_S,
    }


def _made(run: Run) -> str:
    """Say what is created first."""
    scenario = run.scenario
    if run.manifest["cloud"] == "inventory":
        return "write test files on the hosts"
    machines, disks = (len(part) * scenario.design.replicates for part in (scenario.machine, scenario.disk))
    return f"create {many(machines, 'machine')} and {many(disks, 'disk')}"


def _cost(run: Run) -> str:
    """Say what it costs, by the dated price table: no price list is asked before the run's own check."""
    manifest = run.manifest
    if manifest["cloud"] == "inventory":
        return "it costs nothing"
    estimate = budget.estimated(run.scenario, None, expiry.lifetime(manifest), date.today())
    usd = f"about {estimate.usd:.2f} USD"
    if manifest["cloud"] == "emulator":
        return f"it costs nothing (on Azure {usd})"
    return f"it costs {usd} ({estimate.source}), and current prices are checked before anything is created"


@contextlib.contextmanager
def dropped_if_refused(run: Run) -> Iterator[None]:
    """Remove the folder of a run that is refused before it made anything, so that its name is free again."""
    try:
        yield
    except DiskbookError as error:
        if is_void(run, error):
            shutil.rmtree(run.folder, ignore_errors=True)
        raise


def execute(run: Run, *, keep: bool = False, scenario: str | None = None) -> Outcome:
    """Take a begun run, or one to resume, through all its stages or the rest of them.

    `scenario` is as the user named it: beside a file lie its notebook and module (`companion_files`). Raises
    UsageError when the run is analysed by such files, and that is not named. Raises DiskbookError when a
    stage fails; what was finished is kept and, without `keep`, no resources are left. Raises Stopped after
    SIGINT or SIGTERM, when all is torn down.
    """
    run.check_signed()
    sources, file = stage.notebooks(run, scenario)
    planned, left = count_trials(run)
    progress = Progress(run.folder / "ledger.jsonl", planned, planned - left, stage_seconds(run))
    with session.session(run), stage.signals(), notebook_process.scratch() as scratch:
        try:
            session.record_kept(run, keep)
            if not stages.finished(run):
                # Unless kept, the emulator ends with this process, however that ends.
                kinds.of(run).start(run, owner=not keep)
            for source in sources if keep else [*sources, paths.NOTEBOOKS / "4-teardown.ipynb"]:
                stage.execute(run, source, scratch, progress, file)
        except Stopped as stop:
            stop.hint = f"; resume with '{stage.resume(run, file)}'"
            raise
        finally:
            progress.close()
            if not keep or is_unmade(run):
                _tear_down(run, sys.exc_info()[1])
        return outcome.of(run)


def _tear_down(run: Run, failure: BaseException | None) -> None:
    """Tear down after success or failure; if the teardown fails as well, report both errors.

    An analysed run still gets its report. The exit status is the teardown's: 3 if a group still exists.
    """
    if isinstance(failure, DiskbookError) and not isinstance(failure, Stopped):
        # Ctrl-C ends the wait, and nothing that goes wrong with it may keep machines standing.
        with contextlib.suppress(Stopped, Exception):
            debug.hold(run, failure)
    try:
        with stage.deaf():
            stages.teardown(run)
    except DiskbookError as left:
        if failure is None:
            raise
        first: object = failure
        if isinstance(failure, Stopped):  # whose own words are that no resources are left
            first = f"stopped by {signal.Signals(failure.number).name}"
        is_told = str(left) in str(first)  # the stage 4-teardown has failed by the same
        both = DiskbookError(str(first) if is_told else f"{first}; and the teardown failed: {left}")
        both.exit_code = left.exit_code
        if (run.folder / "comparisons.csv").is_file():
            with contextlib.suppress(DiskbookError):  # what stands matters more
                outcome.of(run)
        raise both from failure
