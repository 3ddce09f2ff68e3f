"""`diskbook why` of an import: the limits that follow from what is said of its disk and machine then."""

from collections.abc import Mapping
from typing import Any

from diskbook.design.vocabulary import Provenance
from diskbook.facts.errors import UsageError
from diskbook.importing import named_limits, scenario
from diskbook.importing.named_limits import Named
from diskbook.importing.scenario import Settings
from diskbook.report.analysis import why_text
from diskbook.report.analysis.why_text import Diagnosed
from diskbook.results.run import open_run


def of_run(name: str, arm: str | None, workload: str | None, options: Mapping[str, Any]) -> Diagnosed:
    """Say what throttled an imported run, with limits of a disk or machine that are named for this answer.

    What was named at the import holds besides, as far as it is not named again.
    Raises UsageError when there is no such run, arm or workload, it was not imported, or an option names
    nothing.
    """
    manifest, given = open_run(name).manifest, Named(**options)
    if manifest["provenance"] != Provenance.IMPORTED:
        raise UsageError(
            f"run {name} was not imported: its limits are those that were read back; leave {given.words} out"
        )
    if error := scenario.no_such_size(given.vm_size):
        raise error
    together = given.beside(Named.of_manifest(manifest))
    known = scenario.limits(Settings(**together.given))
    changed = named_limits.with_limits(manifest, known, given)
    return why_text.diagnosed(name, arm, workload, changed, named_limits.head(changed, given))
