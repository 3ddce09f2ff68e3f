"""Parameters that papermill injects: a typo or a wrong type stops the notebook, an analyst's names do not."""

from __future__ import annotations

import pytest

from diskbook.facts.errors import UsageError
from diskbook.report.show import parameters

OWN = 'run: str = "sample-zone-disks"\nhistory: list = []  # earlier runs\n'


@pytest.mark.parametrize(
    ("injected", "words"),
    [
        ('runn = "mine"', "papermill: there is no parameter 'runn'; did you mean 'run'?"),
        ("run = 3", "papermill: parameter 'run' is a int, 3; give it a str"),
        ('history = "run-1"', "parameter 'history' is a str, 'run-1'; give it a list"),
    ],
)
def test_a_mistake_is_one_sentence(injected: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        parameters.check_cells(["", OWN, f"# Parameters\n{injected}\n"])
    assert words in str(caught.value) and "\n" not in str(caught.value)
    assert caught.value._render_traceback_() == [f"UsageError: {caught.value}"]


@pytest.mark.parametrize(
    "cells",
    [
        [OWN, '# Parameters\nrun = "mine"\nhistory = ["a"]\n'],
        [OWN, '# Parameters\nrun = "mine"\nscenario = "zone-disks"\npreset = "quick"\n'],
        [OWN, "runn = 3", "my_own_table = 1"],
        [OWN, '# Parameters\nhistory = float("nan")\n'],
    ],
    ids=["its own", "another notebook's", "an analyst's", "no literal"],
)
def test_what_the_workbook_knows_and_what_is_not_papermills_passes(cells: list[str]) -> None:
    parameters.check_cells(["", *cells])
    parameters.check_parameters()  # outside of a notebook it says nothing
