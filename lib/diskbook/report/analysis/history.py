"""Earlier runs as a run's history: what their spread does for the intervals of its notebook."""

from collections.abc import Sequence

from diskbook.facts import quantities
from diskbook.report.analysis import prior_runs
from diskbook.report.show.analysed import Analysed
from diskbook.stats.ratios import Estimate

NONE = "No earlier run is named: the intervals above are the plain ones."


def with_history(a: Analysed, runs: Sequence[str]) -> list[str]:
    """Say what earlier runs of the same cells, named here, do for the interval of disks like these.

    Raises UsageError when a run is not there, or is not of the same cells; the sentence says why.
    """
    if not runs:
        return [NONE]
    earlier = [prior_runs.open_prior_run(name) for name in runs]
    intervals = prior_runs.with_history(prior_runs.PriorRun(a.run), earlier)
    lines = [
        f"{a.provenance}: {measured.label}: {_ratio(moderated.estimate)} "
        f"({moderated.estimate.scope.words(measured.nearest_zone)}, {moderated.estimate.method}); "
        f"{moderated.saved}"
        for measured, moderated in intervals
    ]
    return lines or [NONE]


def _ratio(estimate: Estimate) -> str:
    return quantities.change(estimate.ratio, estimate.low, estimate.high, estimate.level)
