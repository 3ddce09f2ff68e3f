"""The notebook of a batch, executed at its end beside its page: what came of all runs together."""

from pathlib import Path

from diskbook.facts import paths
from diskbook.facts.errors import DiskbookError
from diskbook.measure.runs import notebook_process

SOURCE = paths.NOTEBOOKS / "8-campaign.ipynb"
LIMIT_S = 1800.0
"""A thousand runs are read within a minute or two; what takes this long hangs."""


def make(folder: Path) -> str:
    """Execute the notebook on what a batch's folder records.

    Returns why it could not be made, in a sentence, since that is no failure of the batch; empty where it
    was.
    """
    target = folder / SOURCE.name
    try:
        target.unlink(missing_ok=True)  # an earlier one would say what is no longer so
        parameters = {"batch": str(folder.resolve())}  # it is executed from another folder
        notebook_process.execute(SOURCE, target, parameters, LIMIT_S)
    except (DiskbookError, OSError) as error:
        return " ".join(f"the notebook of the batch was not made: {error}".split())
    return ""
