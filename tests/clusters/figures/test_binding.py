"""What binds: a word and a colour a cell, for limits of disks, machines, bursts, and what is not known."""

from __future__ import annotations

import pandas as pd
import pytest

from diskbook.clusters.figures import binding
from diskbook.clusters.figures.binding import KINDS, kind_of
from diskbook.report.figures.style import ArmLook

LOOKS = {"a": ArmLook("one server", "#0072B2", "o", "-")}


@pytest.mark.parametrize(
    ("label", "limit", "words"),
    [
        ("capped", "cap_disk_iops", ("disk", "disk")),
        ("capped", "cap_vm_mb_s", ("VM", "VM")),
        ("capped", "cap_vm_burst_mb_s", ("burst", "VM+")),
        ("near a cap", "cap_disk_burst_iops", ("burst", "disk+?")),
        ("capped", "cap_nic_out_mb_s", ("network", "net")),
        ("saturated, limit not known", "", ("unknown", "none")),
        ("saturation not assessable", "", ("open", "?")),
        ("below cap", "", ("loop", "N/L")),
    ],
)
def test_words_of_a_cell(label: str, limit: str, words: tuple[str, str]) -> None:
    assert kind_of({"label": label, "limit": limit}) == words and words[0] in KINDS


def test_a_strip_has_a_word_a_cell() -> None:
    common = {"arm": "a", "kind": "read", "block_size_bytes": 4096, "binds": ""}
    cells = pd.DataFrame(
        [
            {**common, "outstanding": 8, "label": "below cap", "limit": ""},
            {**common, "outstanding": 96, "label": "capped", "limit": "cap_disk_iops"},
        ]
    )
    picture = binding(cells, LOOKS, 8, "A title", "run", "azure")
    words = [text.get_text() for text in picture.figure.axes[0].texts]
    assert {"N/L", "disk", "4K read"} <= set(words)
    assert "Of 2 cells the rate is set: 1 by the tool's own concurrency, 1 by a disk limit." in picture.alt
    assert binding(cells.iloc[:0], LOOKS, 8, "A title", "run", "azure").alt.endswith("No cell to show.")
