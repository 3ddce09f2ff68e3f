"""One run of a batch: what is asked for, and the name that this gives it."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from diskbook.cloud import kinds
from diskbook.design import scenario_file, scenario_tables
from diskbook.design.model import Scenario
from diskbook.facts import redact
from diskbook.facts.errors import UsageError
from diskbook.report.analysis import companion_files

DEFAULT_PROFILE = "default"
_DIGITS = 12  # of the hash in a name: that two of a million runs share it has a probability of 1 in 500
_WORDS = {"scenario": {"title", "question"}}
"""What a scenario says of itself and no run depends on: to word it better must not run all again."""


@dataclass(frozen=True)
class Asked:
    """What a matrix asks of one run, as `diskbook run` would be asked.

    `settings` are those of `--set`, by dotted key. It can be written as JSON and sent anywhere.
    """

    scenario: str
    preset: str = "quick"
    cloud: str = "emulator"
    emulator_profile: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Item:
    """A run of a batch: its name, what is asked, and the scenario that this makes.

    - `label`: what tells it from others of its batch, in words.
    """

    name: str
    asked: Asked
    scenario: Scenario
    label: str = ""

    @property
    def cloud(self) -> str:
        """Cloud that it runs on."""
        return self.asked.cloud


def item_of(asked: Asked, label: str = "") -> Item:
    """Check what is asked, as far as that can be done here, and name it.

    Raises UsageError for anything that cannot be run as asked; no cloud is asked.
    """
    kind = kinds.get(asked.cloud)
    redact.refuse({"scenario": asked.scenario, **asked.settings})
    if asked.emulator_profile is not None and asked.cloud != "emulator":
        raise UsageError(
            f'emulator_profile goes with cloud "emulator", not with "{asked.cloud}"; leave such runs out '
            "by [[exclude]], or add the others by [[include]]"
        )
    loaded = scenario_file.load(asked.scenario, asked.preset, asked.settings, asks_azure=kind.asks_azure)
    scenario = kind.fitted(loaded)
    companion_files.notebook(
        scenario, Path(asked.scenario) if scenario_file.is_file(asked.scenario) else None
    )
    kind.check(scenario, {"profile": asked.emulator_profile or DEFAULT_PROFILE})
    return Item(name_of(scenario, asked.cloud, asked.emulator_profile), asked, scenario, label)


def name_of(scenario: Scenario, cloud: str, profile: str | None) -> str:
    """Name of a run from its content: whatever is asked in other words has the same name.

    Settings at their defaults are left out of the hash, so that a setting that is new in a later version of
    the workbook renames no run.
    """
    content = scenario.model_dump(mode="json", exclude_defaults=True, exclude=_WORDS)
    content["scenario"]["article"] = scenario.scenario.article  # it had no default in earlier versions
    played = (profile or DEFAULT_PROFILE) if cloud == "emulator" else None
    text = json.dumps([content, cloud, played], sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
    return f"{scenario.name}-{scenario.preset}-{digest}"


def name_of_manifest(manifest: Mapping[str, Any]) -> str:
    """The name that the content of a run's manifest gives it."""
    scenario = scenario_tables.from_dict(manifest["scenario"], "manifest.json")
    return name_of(scenario, manifest["cloud"], (manifest.get("emulator") or {}).get("profile"))
