"""`diskbook batch` with runs that have no notebooks, and can be held in the middle of a block.

`python -m support.thin_runs batch ...` is the command line. It gives its runs to this module, also on a
cluster. A run of the scenario `blocks` does its stages in its own process and analyses nothing, nor does the
batch in the end. Other runs execute their notebooks as usual.
"""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path
from typing import Any

from diskbook.batch import order as orders
from diskbook.batch.dask_engine import DaskEngine
from diskbook.batch.local import LocalEngine
from diskbook.batch.status import REPORT
from diskbook.design import schema
from diskbook.facts.errors import DiskbookError
from diskbook.measure.runs import outcome, stage, stages
from diskbook.measure.runs.progress import Progress
from diskbook.report.show import headlines
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


def execute(run: Run, source: Path, place: Path, progress: Progress, file: Path | None) -> None:
    """Do the work of a stage's notebook here; an analysis says that there is none."""
    match source.stem[0]:
        case "1":
            stages.provision(run)
        case "2":
            measure(run, Path(str(file)).parent)
        case "4":
            stages.teardown(run)
        case _:
            (run.folder / "notebooks").mkdir(exist_ok=True)
            for name in (HEADLINE_FILE, REPORT, f"notebooks/{source.name}"):
                run.write(name, ANSWER)
            run.write(headlines.COMPARISONS, ",".join(schema.COMPARISONS.names) + "\n")


def measure(run: Run, place: Path) -> None:
    """Measure, and wait before a block whose gate exists; who is asked to end waits no longer."""
    append, end, asked = Run.append, signal.getsignal(signal.SIGTERM), list[int]()

    def stop(number: int, frame: Any) -> None:
        asked.append(number)  # the signal comes twice: an event's lock would be waited for forever
        end(number, frame)  # type: ignore[misc,operator]

    def gated(self: Run, event: str, **fields: Any) -> None:
        append(self, event, **fields)
        block: Any = fields.get("block")
        if event == "block" and fields["status"] == "begun" and gate(place, block).exists():
            held(place, block).touch()
            while gate(place, block).exists():
                time.sleep(0.05)
                if asked:
                    raise DiskbookError("asked to end")

    Run.append = gated  # type: ignore[method-assign]
    signal.signal(signal.SIGTERM, stop)
    stages.benchmark(run)


def main(words: list[str]) -> int:
    """Be the command line, or the process of a run."""
    if words[0] == "batch":
        from diskbook import cli
        from diskbook.batch import notebook

        notebook.make = lambda folder: ""
        LocalEngine.program = DaskEngine.program = ("-m", "support.thin_runs")
        cli.main()
    from diskbook.batch import work

    if Path(orders.read(words[0]).asked.scenario).stem == THIN:
        stage.execute = execute
        outcome.of = lambda run: outcome.Outcome(run, ANSWER, run.folder / REPORT)
    return work.main(words[0])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
