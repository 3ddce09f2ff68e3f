"""The points of the protocol as one table, for docs/reference/protocol.md, whose text is written by hand.

`make format` writes it there; a test compares page and code.
"""

from diskbook.facts import paths
from diskbook.stats.protocol import POINTS, VERSION, Point

PAGE = paths.ROOT / "docs" / "reference" / "protocol.md"
BEGIN, END = "<!-- points: made by make format -->\n", "<!-- end of points -->\n"
COLUMNS = ("No.", "Point", "What must hold", "How the workbook knows", "Where it is missing")


def points() -> str:
    """All points as a Markdown table, with the version that they are of."""
    rows = [COLUMNS, ("---:", "---", "---", "---", "---"), *map(_row, POINTS)]
    table = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    return f"{BEGIN}### Protocol {VERSION}\n\n{table}{END}"


def with_points(page: str, drawn: str) -> str:
    """Put the table in the place of the one that the page has."""
    before, _, rest = page.partition(BEGIN)
    return before + drawn + rest.partition(END)[2]


def known_by(point: Point) -> str:
    """How a point is decided: its gates, and what else is looked at."""
    gates = ", ".join(f"`{name}`" for name in point.gates)
    kind = "gates" if len(point.gates) > 1 else "gate"
    return "; ".join(filter(None, [f"{kind} {gates}" if gates else "", point.facts]))


def _row(point: Point) -> tuple[str, ...]:
    return str(point.number), point.name, point.demands, known_by(point), point.remedy
