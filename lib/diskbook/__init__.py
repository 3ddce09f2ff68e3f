"""diskbook: measure Azure disks honestly.

`import diskbook as db`, then `db.open_run("sample-zone-disks")`. docs/reference/api.md has all names.
"""

import importlib
import sys
from typing import Any

__version__ = "0.3.0"

# An optional check of jsonschema's, for internationalised addresses, which no notebook has: building its
# grammar takes longer than importing all the rest of papermill, nbformat or nbconvert.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

_PLACES = {
    "Answer": "diskbook.api.results",
    "ComparisonResult": "diskbook.api.comparison",
    "DiskbookError": "diskbook.facts.errors",
    "FigureView": "diskbook.api.results",
    "PlanResult": "diskbook.api.planned",
    "PooledComparison": "diskbook.sharing.pooled",
    "PooledRuns": "diskbook.sharing.pooled",
    "RunResults": "diskbook.api.results",
    "RunsComparison": "diskbook.api.runs",
    "ScopeEstimate": "diskbook.api.comparison",
    "UsageError": "diskbook.facts.errors",
    "compare_runs": "diskbook.api.runs",
    "open_run": "diskbook.api.results",
    "plan": "diskbook.api.planned",
    "pool": "diskbook.sharing.pooled",
    "read_executed": "diskbook.api.results",
    "runs": "diskbook.api.runs",
}
"""Where the public names are; each is loaded when it is first used, so that the import stays quick."""
__all__ = [*_PLACES, "__version__"]  # noqa: PLE0604  # names, listed once


if "IPython" in sys.modules and (_shell := sys.modules["IPython"].get_ipython()):
    importlib.import_module("diskbook.facts.alt_text").describe_figures(_shell)


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'diskbook' has no attribute '{name}'")
    return getattr(importlib.import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
