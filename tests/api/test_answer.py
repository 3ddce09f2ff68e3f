"""The answer for programs: displayed by the last cell of an analysis, read back from the notebook."""

from __future__ import annotations

import json
from pathlib import Path

import nbformat
import pytest
from IPython.core.interactiveshell import InteractiveShell

import diskbook as db
from diskbook.api import results
from diskbook.cli.documents import RunRow
from diskbook.results.run import open_run
from support import samples


def executed(path: Path, value: object) -> Path:
    """A notebook whose last cell displayed a value."""
    data, _ = InteractiveShell().display_formatter.format(value)
    cell = nbformat.v4.new_code_cell("run.report()")
    cell.outputs = [nbformat.v4.new_output("execute_result", data=data)]
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), path)
    return path


def test_an_answer_comes_back_as_list_has_it(tmp_path: Path) -> None:
    shown = results.of_run(open_run("sample-zone-disks"), "<p>Report</p>")
    again = db.read_executed(executed(tmp_path / "out.ipynb", shown))
    assert again == shown and set(again) == set(RunRow.model_fields)
    assert RunRow(**again).run == "sample-zone-disks" and again["answer"]
    bundle = shown._repr_mimebundle_()
    assert bundle["text/plain"].startswith("sample-zone-disks: ") and bundle["text/html"] == "<p>Report</p>"
    assert json.loads(json.dumps(bundle[results.MIME])) == again


def test_a_notebook_without_an_answer_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "damaged.ipynb").write_text("{")
    executed(tmp_path / "other.ipynb", 1)
    for name, words in {
        "absent": "there is no notebook",
        "damaged": "is not a notebook",
        "other": "holds no answer; execute an analysis notebook to its last cell",
    }.items():
        with pytest.raises(db.DiskbookError, match=words) as caught:
            db.read_executed(tmp_path / f"{name}.ipynb")
        assert "\n" not in str(caught.value)


@pytest.mark.long
def test_the_headline_is_the_comparison_that_answers() -> None:
    run = results.RunResults(samples.analysed("zone-disks"))
    lead = run.headline
    assert lead is not None and not lead.exploratory
    assert lead.scope.text in run.answer and db.open_run(run).name == run.name
