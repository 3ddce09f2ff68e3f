"""How a run ended, as a sentence."""

import sys
from dataclasses import dataclass
from pathlib import Path

from diskbook.facts import neighbours
from diskbook.report.analysis import report as reports
from diskbook.results import plan as plans
from diskbook.results.run import Run


@dataclass(frozen=True)
class Outcome:
    """What a run ended in: the headline, whether that is closed by the protocol, and its report."""

    run: Run
    headline: str
    report: Path
    protocol: str = ""

    @property
    def words(self) -> str:
        """Last words of a command."""
        answer = [*filter(None, [self.headline, self.protocol, plans.early_stop(self.run)])]
        return "\n".join(["", *answer, "", f"report: {self.report}"])


def of(run: Run) -> Outcome:
    """Write the report of a run whose analysis notebook was executed, and read what the run ended in.

    With its report the run joins the catalogue. Raises DiskbookError when it was not analysed.
    """
    ended = Outcome(run, reports.headline(run), reports.build(run), reports.protocol(run))
    join_catalogue(run)
    return ended


def join_catalogue(run: Run) -> None:
    """Let a run that was analysed join the catalogue, as it is now; say what kept it from that."""
    if why := neighbours.catalogue_join.join_finished(run):
        print(f"diskbook: {why}", file=sys.stderr)
