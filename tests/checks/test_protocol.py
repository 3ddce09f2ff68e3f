"""docs/reference/protocol.md lists the points that the code decides by."""

from __future__ import annotations

from checks import protocol
from diskbook.report.show import conformance
from diskbook.stats.protocol import POINTS


def test_reports_name_the_page() -> None:
    assert str(protocol.PAGE).endswith(conformance.PAGE)


def test_every_point_says_how_it_is_known() -> None:
    lines = protocol.points().splitlines()
    for point in POINTS:
        (line,) = [line for line in lines if line.startswith(f"| {point.number} |")]
        assert line.count(" | ") == 4 and protocol.known_by(point)
    assert protocol.known_by(POINTS[17]) == "gate `guest`; table `guest`"
