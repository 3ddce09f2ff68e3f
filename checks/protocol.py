"""The points of the protocol as one table, for docs/reference/protocol.md, whose text is written by hand.

`make format` writes it there; a test compares page and code.
"""

from checks import markdown
from diskbook.facts import paths
from diskbook.stats.protocol import POINTS, VERSION, Point

PAGE = paths.ROOT / "docs" / "reference" / "protocol.md"
COLUMNS = ("No.", "Point", "What must hold", "How the workbook knows", "Where it is missing")


def points() -> str:
    """All points as a Markdown table, with the version that they are of."""
    return f"### Protocol {VERSION}\n\n{markdown(COLUMNS, map(_row, POINTS))}"


def known_by(point: Point) -> str:
    """How a point is decided: its gates, and what else is looked at."""
    gates = ", ".join(f"`{name}`" for name in point.gates)
    kind = "gates" if len(point.gates) > 1 else "gate"
    return "; ".join(filter(None, [f"{kind} {gates}" if gates else "", point.facts]))


def _row(point: Point) -> tuple[str, ...]:
    return str(point.number), point.name, point.demands, known_by(point), point.remedy
