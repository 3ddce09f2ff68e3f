"""A scenario from plain tables, of TOML or a manifest. Checks the form; Azure's rules are `azure_rules`.

All mistakes of a scenario are found at once, though some checks stop at the first one.

Each round checks the tables and takes out what is wrong: a key, else its row or table. Rows that need what is
gone go too, without a sentence. So every sentence is about the file as it was written.
"""

import contextlib
import re
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

from diskbook.design import consistency, derived_workloads
from diskbook.design.model import Arm, Disk, Machine, Record, Scenario, Volume
from diskbook.facts import files, paths
from diskbook.facts.errors import DiskbookError
from diskbook.facts.validation import Mistake, Wording, mistakes as say_all, refusal

_AZURE_NAMES = ("region", "size", "substitute", "sku", "error_code")
_AZURE_NAME = "{place}: {key} = {value} is not a name of Azure's; these have letters, digits, _ and - alone"
WORDING = Wording(
    sentences={
        "missing": "{place}: the key '{key}' is missing",
        "too_short": "write at least one [[{key}]]",
        "string_pattern_mismatch": "{place}: {value} is not a name; use small letters, digits and hyphens, "
        "a letter first",
        **{f"string_pattern_mismatch {key}": _AZURE_NAME for key in _AZURE_NAMES},
    }
)


def from_dict(raw: Mapping[str, Any], where: str) -> Scenario:
    """Build a scenario from plain tables, as read from TOML or from a manifest.

    Raises UsageError with a line per mistake.
    """
    try:
        return form(raw)
    except ValueError:
        raise refusal(where, every_mistake(raw, mistakes_of_form), raw) from None


def recorded(raw: Mapping[str, Any], where: str) -> Scenario:
    """Build the scenario that a manifest records, with the labels that its file gives the same arms today.

    A label is not part of what was measured. An arm that differs in anything else keeps its recorded label.
    Raises UsageError with a line per mistake.
    """
    scenario, labels = from_dict(raw, where), {}
    with contextlib.suppress(OSError, ValueError, LookupError, TypeError, DiskbookError):
        today = files.read_toml(paths.SCENARIOS / f"{scenario.name}.toml", "")
        rows = {row["name"]: row for row in raw["arm"]}
        labels = {
            row["name"]: row.get("label")
            for row in today["arm"]
            if row["name"] in rows and _asked(today, row) == _asked(raw, rows[row["name"]])
        }
    arms = [arm.model_copy(update={"label": labels.get(arm.name, arm.label)}) for arm in scenario.arm]
    return scenario.model_copy(update={"arm": tuple(arms)})


def _asked(tables: Mapping[str, Any], arm: Mapping[str, Any]) -> list[Record]:
    """An arm without its label, and the disk, machine and volume that it names."""
    parts = [
        kind.model_validate(row)
        for key, kind in (("disk", Disk), ("machine", Machine), ("volume", Volume))
        for row in tables.get(key, ())
        if row["name"] == arm.get(key)
    ]
    return [Arm.model_validate({**arm, "label": None}), *parts]


def form(raw: Mapping[str, Any]) -> Scenario:
    """Build a scenario; ValueError with the first mistake, or all of pydantic's."""
    scenario = derived_workloads.expand_probes(
        derived_workloads.expand_shares(Scenario.model_validate(dict(raw)))
    )
    consistency.check(scenario)
    return scenario


def mistakes_of_form(raw: Mapping[str, Any]) -> list[Mistake]:
    """Find what keeps tables from being a scenario: all of pydantic's mistakes, or the first of ours."""
    try:
        form(raw)
    except ValidationError as error:
        return say_all(error, Scenario, raw, WORDING)
    except ValueError as error:
        return [Mistake(str(error))]
    return []


MOST_ROUNDS = 40
Tables = dict[str, Any]
_ROW = re.compile(r"\[\[(\w+)\]\] ")
_KIND = re.compile(r"\[\[(\w+)\]\]: ")
_TABLE = re.compile(r"\[(\w+)")
_NEEDED = ("cluster", "volume")
"""Rows that stay: without them other rows would look wrong."""


class _Rest:
    """What is left of the tables, and what was taken out."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.tables: Tables = {
            key: list(value) if isinstance(value, list) else value for key, value in raw.items()
        }
        self.reported: set[tuple[str, str]] = set()
        self.gone: set[str] = set()
        self.is_less = False

    def is_new(self, mistake: Mistake) -> bool:
        """Tell whether a mistake is in the file, and does not come from what was taken out."""
        text = mistake.text
        if self.is_less and (mistake.is_gap or _KIND.match(text)):
            return False
        if place := _ROW.match(text):
            row = self._row(place[1], text[place.end() :])
            if row is not None and (place[1], _label(row, 0)) in self.reported:
                return False
        elif (place := _TABLE.match(text)) and (place[1], "") in self.reported:
            return False
        return not any(re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text) for name in self.gone)

    def report(self, mistake: Mistake) -> str:
        """Return the sentence of a mistake, and say no other about its place in later rounds."""
        if place := _ROW.match(mistake.text):
            row = self._row(place[1], mistake.text[place.end() :])
            self.reported.add((place[1], _label(row, 0)))
        elif place := _TABLE.match(mistake.text):
            self.reported.add((place[1], ""))
        return mistake.text

    def take_out(self, mistake: Mistake) -> bool:
        """Take out what is wrong; False where nothing can go."""
        text = mistake.text
        if place := _ROW.match(text):
            row = self._row(place[1], text[place.end() :])
            return row is not None and place[1] not in _NEEDED and self._take_row(place[1], row, mistake)
        if place := _KIND.match(text):
            return self._take_twins(place[1])
        name = _TABLE.match(text)
        table = self.tables.get(name[1]) if name else self.tables
        key = mistake.loc[-1] if mistake.loc else None
        if isinstance(table, dict) and key in table:
            kept = {other: value for other, value in table.items() if other != key}
            if name:
                self.tables[name[1]] = kept
            else:
                self.tables = kept
            return True
        return place is not None and self.tables.pop(place[1], None) is not None

    def _row(self, kind: str, rest: str) -> Mapping[str, Any] | None:
        listed = self.tables.get(kind)
        rows: list[Mapping[str, Any]] = listed if isinstance(listed, list) else []
        for number, row in enumerate(rows, 1):
            if re.match(rf"{re.escape(_label(row, number))}(?![\w-])", rest):
                return row
        return None

    def _take_row(self, kind: str, row: Mapping[str, Any], mistake: Mistake) -> bool:
        """Take out the key that is wrong, if it is an entry of the row, else the row."""
        rows, key = self.tables[kind], mistake.loc[2] if len(mistake.loc) == 3 else None
        at = next(number for number, other in enumerate(rows) if other is row)
        if key in row:
            rows[at] = {name: value for name, value in row.items() if name != key}
        else:
            del rows[at]
            self.gone.update({str(row["name"])} if "name" in row else ())
        return True

    def _take_twins(self, kind: str) -> bool:
        """Take out all but the first row of a name; where names differ, all rows."""
        rows = self.tables.get(kind)
        if not isinstance(rows, list) or kind in _NEEDED:
            return False
        first = {str(row.get("name", number)): row for number, row in reversed(list(enumerate(rows)))}
        self.tables[kind] = list(first.values())[::-1] if len(first) < len(rows) else []
        return True


def _label(row: Any, number: int) -> str:
    if not isinstance(row, Mapping):
        return str(number)
    pair = f"{row['arm']} / {row['base_arm']}" if {"arm", "base_arm"} <= row.keys() else number
    return str(row.get("name", pair))


def every_mistake(raw: Mapping[str, Any], find: Callable[[Tables], list[Mistake]]) -> list[str]:
    """Return a sentence for each mistake.

    - `find`: returns mistakes of such tables, all or the first; an empty list if there are none.
    """
    rest, texts = _Rest(raw), []
    for _ in range(MOST_ROUNDS):
        mistakes = find(rest.tables)
        new = [mistake for mistake in mistakes if rest.is_new(mistake)]
        texts += [rest.report(mistake) for mistake in new]
        taken = [rest.take_out(mistake) for mistake in mistakes]
        rest.is_less = True
        if not any(taken):
            break
    return texts
