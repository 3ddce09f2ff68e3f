"""The beginning of a run: its folder, and the manifest that every later stage reads."""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from diskbook.cloud import kinds
from diskbook.design import scenario_file
from diskbook.design.model import Scenario
from diskbook.facts import redact
from diskbook.facts.errors import UsageError
from diskbook.facts.untrusted_text import visible
from diskbook.report.analysis import companion_files
from diskbook.results import plan as plans, run as runs
from diskbook.results.run import Run

PACKAGES = ("diskbook", "azure-mgmt-compute", "fabric", "papermill", "pandas", "scipy", "matplotlib")
LONGEST_NAME = 64  # of the 90 that a resource group's name may have
_NAME = re.compile(rf"[A-Za-z0-9][\w.-]{{0,{LONGEST_NAME - 1}}}", re.ASCII)


def begin(
    name: str,
    scenario: str,
    cloud: str = "emulator",
    preset: str = "quick",
    overrides: Mapping[str, Any] | None = None,
    emulator: Mapping[str, Any] | None = None,
    azure: Mapping[str, Any] | None = None,
    inventory: Mapping[str, Any] | None = None,
) -> Run:
    """Make the run folder with its manifest, or open it when it is there.

    Parameters
    ----------
    name
        Name of the run, or path of its folder.
    scenario, preset, overrides
        As for `scenario_file.load`. On an existing run they are not looked at: the manifest decides.
    cloud
        "emulator", "azure", "inventory" (hosts of the user's own), or that of another package.
    emulator
        `name`, `profile`, `seed`, `time_scale` of the emulator to use; by default one of the run's own.
    azure
        `subscription` (an id) and `ssh_source` (an address or CIDR) of a run on Azure; by default those of
        the environment, or the subscription of the Azure CLI.
    inventory
        `hosts` (a file that names hosts) or `folder` (of this machine) of a run on hosts of the user's own;
        by default this machine, and the run's own folder.

    Raises
    ------
    UsageError
        For anything that does not fit, before anything is created.
    """
    if (runs.folder_of(name) / "manifest.json").exists():
        return runs.open_run(name)
    check_name(runs.folder_of(name).name)
    redact.refuse({"run": name, "scenario": scenario, **(overrides or {}), **(azure or {})})
    kind = kinds.get(cloud)
    if azure and cloud != "azure":
        raise UsageError(f"a subscription or an SSH source goes with --cloud azure, not with {cloud}")
    if inventory and cloud != "inventory":
        raise UsageError(f"hosts and a folder go with --cloud inventory, not with {cloud}")
    loaded = kind.fitted(scenario_file.load(scenario, preset, overrides, asks_azure=kind.asks_azure))
    file = Path(scenario) if scenario_file.is_file(scenario) else None
    companion_files.notebook(loaded, file)
    asked = {"emulator": emulator, "azure": azure, "inventory": inventory}.get(cloud) or {}
    settings = kind.settings(asked, loaded, runs.folder_of(name))
    run = runs.create(name)
    manifest = _manifest(run, loaded, kind, dict(overrides or {}), settings)
    own = companion_files.names(loaded, file) if file else []
    run.write_manifest(manifest | ({companion_files.RECORD: own} if own else {}))
    run.append("begin", scenario=loaded.name, preset=preset, cloud=cloud)
    plans.write(run)
    return run


def check_name(name: str) -> None:
    """Raise UsageError for a name that no resource group of the run could have in its own."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{visible(name)!r} cannot be a run's name: use up to {LONGEST_NAME} letters, digits, '-', '_' "
            "and '.', a letter or digit first"
        )


def _manifest(
    run: Run,
    scenario: Scenario,
    kind: kinds.CloudKind,
    overrides: dict[str, Any],
    settings: dict[str, Any],
) -> dict[str, Any]:
    versions = {name: metadata.version(name) for name in PACKAGES}
    return {
        "schema": runs.SCHEMA,
        "run": run.name,
        "created_utc": runs.now_utc(),
        "provenance": settings.get("provenance", kind.provenance),
        "cloud": kind.name,
        "site": scenario.site,
        "preset": scenario.preset,
        "overrides": overrides,
        "scenario": scenario.model_dump(mode="json"),
        "emulator": None,
        "azure": None,
        "versions": {"python": platform.python_version(), **versions},
        "zone_map": {},
        "resource_groups": [],
        "replicates": [],
        kind.name: settings,
    }
