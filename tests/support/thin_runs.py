"""`diskbook batch` with runs that have no notebooks, and can be held in the middle of a block.

`python -m support.thin_runs batch ...` is the command line. It gives its runs to this module, also on a
cluster. A run of the scenario `blocks` provisions and measures in one process, which ends with the run's as a
notebook does, and analyses nothing. Other runs go through `diskbook.batch.work` as usual.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from diskbook.batch import order as orders
from diskbook.batch.dask_engine import DaskEngine
from diskbook.batch.local import LocalEngine
from diskbook.batch.status import REPORT
from diskbook.cloud import kinds
from diskbook.design import schema
from diskbook.facts.errors import DiskbookError
from diskbook.measure.runs import stages
from diskbook.report.show import headlines
from diskbook.results import session
from diskbook.results.run import HEADLINE_FILE, Run

THIN = "blocks"
ANSWER = "nothing is analysed"
GATES = "gates"  # beside the file of the scenario


def write(folder: Path, scenario: str) -> None:
    """Write the scenario `blocks`, which is another with three blocks, and gates for the later two."""
    text = Path(scenario).read_text().replace("runtime_s = 0.2", "runtime_s = 0.2\nblocks = 3", 1)
    (folder / f"{THIN}.toml").write_text(text)
    (folder / GATES).mkdir()
    for block in (2, 3):
        gate(folder, block).touch()


def gate(folder: Path, block: int) -> Path:
    """File that holds a block from being measured for as long as it exists."""
    return folder / GATES / str(block)


def held(folder: Path, block: int) -> Path:
    """File that a block makes when it is held."""
    return folder / GATES / f"{block}-is-held"


def execute(run: Run, *, keep: bool = False, scenario: str) -> Any:
    """Do as `pipeline.execute` does, with one process for provisioning and measuring, and no analysis."""
    from diskbook.measure.runs import pipeline, stage

    command = [sys.executable, "-m", "support.thin_runs", str(run.folder), str(Path(scenario).parent)]
    if shutil.which("setpriv"):
        command = ["setpriv", "--pdeathsig", "KILL", *command]
    with session.session(run), stage.signals():
        try:
            kinds.of(run).start(run, owner=True)
            measuring = subprocess.Popen(command)
            try:
                status = measuring.wait()
            finally:
                measuring.kill()
                measuring.wait()
        finally:
            with stage.deaf():
                stages.teardown(run)
    if status:
        raise DiskbookError(f"it ended with {status}")
    (run.folder / "notebooks").mkdir(exist_ok=True)
    notebook = f"notebooks/{run.scenario.analysis_notebook}.ipynb"
    for name in (HEADLINE_FILE, REPORT, notebook):
        run.write(name, ANSWER)
    run.write(headlines.COMPARISONS, ",".join(schema.COMPARISONS.names) + "\n")
    return pipeline.Outcome(run, ANSWER, run.folder / REPORT)


def measure(run: Run, place: Path) -> None:
    """Provision and measure, and wait before a block whose gate exists."""
    append = Run.append

    def gated(self: Run, event: str, **fields: Any) -> None:
        append(self, event, **fields)
        block = fields.get("block")
        if event == "block" and fields["status"] == "begun" and gate(place, block).exists():
            held(place, block).touch()
            while gate(place, block).exists():
                time.sleep(0.05)

    Run.append = gated  # type: ignore[method-assign]
    stages.provision(run)
    stages.benchmark(run)


def main(words: list[str]) -> int:
    """Be the command line, the process of a run, or what measures in one."""
    if words[0] == "batch":
        from diskbook import cli

        LocalEngine.program = DaskEngine.program = ("-m", "support.thin_runs")
        cli.main()
    if not words[0].startswith("{"):
        measure(Run(Path(words[0])), Path(words[1]))
        return 0
    from diskbook.batch import work

    if Path(orders.read(words[0]).asked.scenario).stem == THIN:
        work.pipeline.execute = execute  # type: ignore[assignment]
    return work.main(words[0])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
