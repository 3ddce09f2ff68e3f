"""The answer of a run for programs: what the last cell of an analysis displays beside its text."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from diskbook.facts.errors import DiskbookError
from diskbook.measure.runs import overview
from diskbook.results.run import Run

MIME = "application/vnd.diskbook.answer+json"


class Answer(dict[str, Any]):
    """A run as `diskbook list --json` has it. Made by `RunResults.report` and `read_executed`."""

    html = ""

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        text = f"{self['run']}: {self['answer']}"
        return {MIME: dict(self), "text/plain": text, "text/html": self.html or text}


def of_run(run: Run, html: str) -> Answer:
    """Make the answer of a run whose analysis was written; `html` is shown to readers."""
    answer = Answer(asdict(overview.listed(run)))
    answer.html = html
    return answer


def read_executed(path: str | Path) -> Answer:
    """Read the answer from an analysis notebook that papermill, `diskbook run` or JupyterLab executed.

    Examples
    --------
    >>> read_executed("out.ipynb")["answer"]  # doctest: +SKIP
    'On the emulator, one 4K write from zone 1 takes 3.19 ms on ZRS and 1.30 ms on LRS: +146 % (...)'

    Raises
    ------
    DiskbookError
        When there is no such notebook, or its last cell was not executed.
    """
    import nbformat

    try:
        cells = nbformat.read(path, as_version=4).cells
    except FileNotFoundError:
        raise DiskbookError(f"there is no notebook {path}; execute one of notebooks/3-analyse-*") from None
    except Exception as error:  # nbformat raises many kinds for a damaged file
        raise DiskbookError(f"{path} is not a notebook ({error})") from None
    outputs = [output for cell in cells for output in cell.get("outputs", ())]
    answers = [output.data[MIME] for output in outputs if MIME in output.get("data", {})]
    if not answers:
        raise DiskbookError(f"{path} holds no answer; execute an analysis notebook to its last cell")
    return Answer(answers[-1])
