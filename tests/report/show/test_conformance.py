"""Closed and open in words: the golden text of `diskbook why --protocol`, and what a report shows."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

from diskbook.report.show import conformance
from diskbook.stats.protocol import POINTS, Answer, Conformance, Finding, Status

LABELS, WORDS = {"zrs": "ZRS", "lrs": "LRS <b>"}, {"write": "4K write", "read": "4K read"}
MET = tuple(Finding(point, Answer(Status.MET, "fine")) for point in POINTS)
CLOSED = Conformance("zrs", "lrs", "write", "lat_mean_ms", "headline", "emulated", MET)


def lacking(item: Conformance, *numbers: int) -> Conformance:
    gone = {
        number: Finding(POINTS[number - 1], Answer(Status.MISSING, "why", "a remedy")) for number in numbers
    }
    return dataclasses.replace(item, findings=tuple(gone.get(f.point.number, f) for f in item.findings))


READ = lacking(dataclasses.replace(CLOSED, workload="read"), 18, 6)
IOPS = lacking(dataclasses.replace(CLOSED, metric="iops", family="exploratory"), 6, 18)
ONE = lacking(dataclasses.replace(CLOSED, metric="lat_p99_ms", family="exploratory"), 6)
GOLDEN = """\
all 3 that are open lack
  6 attachment: why
    do: a remedy

headline: zrs / lrs, write, mean latency: closed (emulated)
  every point that applies is met

headline: zrs / lrs, read, mean latency: open (emulated), 2 points missing
exploratory: zrs / lrs, write, IOPS: open (emulated), 2 points missing
  18 guest: why
    do: a remedy

exploratory: zrs / lrs, write, p99 of a typical trial: open (emulated), 1 point missing
  nothing besides"""
ALONE = """\
headline: zrs / lrs, read, mean latency: open (emulated), 2 points missing
exploratory: zrs / lrs, write, IOPS: open (emulated), 2 points missing
  6 attachment: why
    do: a remedy
  18 guest: why
    do: a remedy"""


def shown_of(items: list[Conformance]) -> str:
    return conformance.protocol(SimpleNamespace(protocol=items, labels=LABELS, words=WORDS))


def test_the_text_is_by_number_and_says_what_several_lack_once() -> None:
    assert conformance.text([CLOSED, READ, IOPS, ONE]) == GOLDEN
    assert conformance.text([READ, IOPS]) == ALONE
    assert conformance.text([]) == ""


def test_counts_and_what_all_lack() -> None:
    assert conformance.counted([]) == "no comparison is named, so nothing is closed or open by protocol 1"
    assert conformance.summary([CLOSED]) == "by protocol 1: 1 of 1 comparison closed, 0 open (emulated)"
    assert conformance.summary([CLOSED, READ, ONE], "headline comparison") == (
        "by protocol 1: 1 of 3 headline comparisons closed, 2 open (emulated); "
        "all that are open lack 6 attachment"
    )
    assert conformance.summary([CLOSED, READ]).endswith("; what is open lacks 6 attachment, 18 guest")
    assert conformance.summary([lacking(READ), ONE, lacking(CLOSED, 3)]).endswith("3 open (emulated)")


def test_the_section_folds_its_list_and_escapes_names() -> None:
    shown = shown_of([CLOSED, READ])
    assert "By protocol 1: 1 of 2 comparisons closed, 1 open (emulated)" in shown
    assert shown.count("<details>") == shown.count("</details>") == 2 and "LRS &lt;b&gt;" in shown
    assert "6, 18" in shown and "a remedy" in shown and "20 other gates" in shown
    assert "<p>Nothing.</p>" in shown_of([CLOSED])
    assert "no comparison is named" in shown_of([]).lower()
