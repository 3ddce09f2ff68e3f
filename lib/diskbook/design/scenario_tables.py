"""A scenario from plain tables, of TOML or a manifest. Checks the form; Azure's rules are `azure_rules`."""

import contextlib
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from diskbook.design import consistency, derived_workloads, mistakes
from diskbook.design.model import Arm, Disk, Machine, Record, Scenario, Volume
from diskbook.facts import input_files, paths
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
        raise refusal(where, mistakes.every(raw, mistakes_of_form), raw) from None


def recorded(raw: Mapping[str, Any], where: str) -> Scenario:
    """Build the scenario that a manifest records, with the labels that its file gives the same arms today.

    A label is not part of what was measured. An arm that differs in anything else keeps its recorded label.
    Raises UsageError with a line per mistake.
    """
    scenario, labels = from_dict(raw, where), {}
    with contextlib.suppress(OSError, ValueError, LookupError, TypeError, DiskbookError):
        today = input_files.read_toml(paths.SCENARIOS / f"{scenario.name}.toml", "")
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
