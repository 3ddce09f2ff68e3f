"""The beginning of a run: its folder, and the manifest that every later stage reads.

A run without trials can change its settings, such as a size that Azure has no room for.
"""

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
from diskbook.facts.errors import UsageError, visible
from diskbook.report.analysis import companion_files
from diskbook.results import plan as plans, run as runs, session

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
) -> runs.Run:
    """Make the run folder with its manifest, or open it when it is there.

    - `name`: name of the run, or path of its folder.
    - `scenario`, `preset`, `overrides`: as for `scenario_file.load`. On an existing run they are not looked
      at: the manifest decides.
    - `cloud`: "emulator", "azure", "inventory" (hosts of the user's own), or that of another package.
    - `emulator`: `name`, `profile`, `seed`, `time_scale` of the emulator to use; by default one of the run's
      own.
    - `azure`: `subscription` (an id) and `ssh_source` (an address or CIDR) of a run on Azure; by default
      those of the environment, or the subscription of the Azure CLI.
    - `inventory`: `hosts` (a file that names hosts) or `folder` (of this machine) of a run on hosts of the
      user's own; by default this machine, and the run's own folder.

    Raises UsageError for anything that does not fit, before anything is created.
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
    run: runs.Run,
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


def change_settings(run: runs.Run, file: str | None, settings: Mapping[str, Any]) -> None:
    """Plan a run again with settings that win over those it was begun with; `file` as the user named it.

    Raises UsageError if the run has trials, or something of it stands, or anything does not fit.
    """
    run.check_signed()
    _check_changeable(run)
    manifest = run.manifest
    overrides = _together(manifest.get("overrides", {}), settings)
    before, after = (_load(run, file, chosen) for chosen in (manifest.get("overrides", {}), overrides))
    if before.model_dump(mode="json") != run.scenario.model_dump(mode="json"):
        raise UsageError(
            f"--set cannot change run {run.name}: its scenario {before.name} is not as it was when the run "
            "began; start a new run"
        )
    if after.network != before.network:
        raise UsageError(f"--set cannot change the network of run {run.name}: start a new run")
    companion_files.notebook(after, companion_files.check_file(run, Path(file)) if file else None)
    kinds.of(run).check(after, manifest.get(manifest["cloud"]) or {})
    with session.session(run):
        # The versions of images are those of a region, and the replicates those of the earlier plan.
        changed = {"scenario": after.model_dump(mode="json"), "site": after.site, "overrides": overrides}
        run.update_manifest(**changed, replicates=[], images={})
        plans.write(run)


def _together(earlier: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a run, and over them those that are new; tags are added to those that it has."""
    tags = {**earlier.get("azure.tags", {}), **settings.get("azure.tags", {})}
    return {**earlier, **settings, **({"azure.tags": tags} if tags else {})}


def _check_changeable(run: runs.Run) -> None:
    """Raise UsageError with the reason why a run keeps its settings."""
    standing = [row["name"] for row in run.manifest["resource_groups"] if not row["deleted_utc"]]
    reason = ""
    if run.has_trials():
        reason = "it has trials of the settings that it was begun with: start a new run"
    elif run.manifest["cloud"] in ("inventory", kinds.NONE):
        reason = "it uses no cloud: start a new run"
    elif standing:
        reason = (
            f"{', '.join(standing)} of its earlier plan still stands: first 'diskbook teardown {run.name}'"
        )
    if reason:
        raise UsageError(f"--set cannot change run {run.name}: {reason}")


def _load(run: runs.Run, file: str | None, overrides: Mapping[str, Any]) -> Scenario:
    """Load the scenario of a run from where it was begun."""
    manifest = run.manifest
    name = run.scenario.name
    if file is None and name not in scenario_file.names():
        raise UsageError(
            f"--set cannot change run {run.name} without its scenario's file: name it, 'diskbook run "
            f"DIR/{name}.toml --resume {run.name} --set ...'"
        )
    return scenario_file.load(
        file or name, manifest["preset"], overrides, asks_azure=manifest["cloud"] == "azure"
    )
