"""What speaks against the numbers of a run, in words: each kind once, the worst first, everything escaped."""

from __future__ import annotations

from types import SimpleNamespace

import pandas as pd

from diskbook.report.show import caveats
from diskbook.stats.plausibility import Doubt, Kind


def doubt(kind: Kind, trial: str, arm: str = "a", words: str = "10 s measured") -> Doubt:
    return Doubt(arm, "w", kind, words, False, trial)


ITEMS = [
    *(doubt(Kind.TIME, f"t{n}", f"a{n}", f"{n} s measured") for n in range(5)),
    doubt(Kind.IN_FLIGHT, "t1", words="0.001 times"),
    doubt(Kind.DEPTHS, "", words="1 and 128 outstanding give one rate"),
]


def test_each_kind_is_one_sentence_with_its_number_and_remedy() -> None:
    lines = caveats.sentences(ITEMS, 40)
    assert len(lines) == 3
    assert lines[0].startswith("I/Os in flight, 1 of 40 measurements: a, w: 0.001 times. ")
    assert lines[1].startswith("time, 5 of 40 measurements: a0, w: 0 s measured; a1, w: 1 s measured; ...")
    assert lines[2].startswith("equal rates over depths, 1 cell: a, w: 1 and 128")
    assert all("What helps: " in line for line in lines)


def test_a_report_begins_with_what_does_and_names_every_cell() -> None:
    labels = {"a": "A <b>", **{f"a{n}": f"A{n}" for n in range(5)}}
    trials = pd.DataFrame({"trial": ["t"], "status": ["ok"]})
    compared = SimpleNamespace(doubts=ITEMS)
    page = caveats.doubts(
        SimpleNamespace(compared=compared, trials=trials, labels=labels, words={"w": "4K read"})
    )
    assert "Look at these before any number below" in page and "A &lt;b&gt;" in page
    assert page.count("4K read") == 7
