"""The beginning of a run: its folder, and the manifest that every later stage reads."""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from diskbook.cloud import connect
from diskbook.design import scenario_file
from diskbook.design.model import Scenario
from diskbook.facts import redact
from diskbook.facts.errors import UsageError
from diskbook.facts.visible import visible
from diskbook.hosts import fit
from diskbook.report.analysis import beside
from diskbook.results import plan as plans, run as runs
from diskbook.results.run import Run
from diskbook_emulator import fleet_limits, lifecycle
from diskbook_emulator.profile import load_profile

PACKAGES = ("diskbook", "azure-mgmt-compute", "fabric", "papermill", "pandas", "scipy", "matplotlib")
LONGEST_NAME = 64  # of the 90 that a resource group's name may have
_NAME = re.compile(rf"[A-Za-z0-9][\w.-]{{0,{LONGEST_NAME - 1}}}", re.ASCII)
TIME_SCALE = 0.01  # of Azure's delays, slept by the emulator


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
        "emulator", "azure", or "inventory": hosts of the user's own.
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
    _check_name(runs.folder_of(name).name)
    redact.refuse({"run": name, "scenario": scenario, **(overrides or {}), **(azure or {})})
    connect.check_kind(cloud)
    if azure and cloud != "azure":
        raise UsageError(f"a subscription or an SSH source goes with --cloud azure, not with {cloud}")
    if inventory and cloud != "inventory":
        raise UsageError(f"hosts and a folder go with --cloud inventory, not with {cloud}")
    loaded = scenario_file.load(scenario, preset, overrides, asks_azure=cloud == "azure")
    loaded = fit.as_own(loaded) if cloud == "inventory" else loaded
    file = Path(scenario) if scenario_file.is_file(scenario) else None
    beside.notebook(loaded, file)
    played = _emulator(runs.folder_of(name), loaded, emulator or {}) if cloud == "emulator" else None
    used = connect.choose_azure(azure or {}, loaded.region, loaded.network) if cloud == "azure" else None
    folder = runs.folder_of(name)
    hosts = connect.choose_hosts(inventory or {}, loaded, folder) if cloud == "inventory" else None
    run = runs.create(name)
    manifest = _manifest(run, loaded, cloud, dict(overrides or {}), played, used)
    own = beside.names(loaded, file) if file else []
    manifest |= {beside.RECORD: own} if own else {}
    run.write_manifest(manifest | ({"inventory": hosts} if hosts else {}))
    run.append("begin", scenario=loaded.name, preset=preset, cloud=cloud)
    plans.write(run)
    return run


def _check_name(name: str) -> None:
    """Raise UsageError for a name that no resource group of the run could have in its own."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{visible(name)!r} cannot be a run's name: use up to {LONGEST_NAME} letters, digits, '-', '_' "
            "and '.', a letter or digit first"
        )


def _emulator(folder: Path, scenario: Scenario, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of the emulator, checked; `own` says that it is the run's own and ends with it."""
    if "name" in asked:
        running = _of_running(asked)
        fleet_limits.check(load_profile(running["profile"]), scenario)
        return {**running, "own": False}
    name = connect.own_emulator_name(folder)
    defaults = {"name": name, "profile": "default", "seed": scenario.design.seed, "time_scale": TIME_SCALE}
    settings = {**defaults, **asked}
    profile = load_profile(settings["profile"])
    fleet_limits.check(profile, scenario)
    return {
        **settings,
        "hours_between_blocks": profile.noise.hours_between_blocks,
        "metrics_grain_s": profile.metrics_grain_s,
        "own": True,
    }


def _of_running(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of an emulator that the user named; what it plays was decided when it was started."""
    connect.check_emulator_runs(asked["name"])
    emulator = lifecycle.connect(asked["name"])
    settings = {key: getattr(emulator, key) for key in ("name", "profile", "seed", "time_scale")}
    for key, value in asked.items():
        if settings[key] != value:
            raise UsageError(
                f"emulator {emulator.name} runs with {key} {settings[key]}, not {value}; leave that out, "
                "or start another emulator"
            )
    kept = ("hours_between_blocks", "metrics_grain_s")
    return {**settings, **{key: getattr(emulator, key) for key in kept}}


def _manifest(
    run: Run,
    scenario: Scenario,
    cloud: str,
    overrides: dict[str, Any],
    emulator: dict[str, Any] | None,
    azure: dict[str, Any] | None,
) -> dict[str, Any]:
    versions = {name: metadata.version(name) for name in PACKAGES}
    return {
        "schema": runs.SCHEMA,
        "run": run.name,
        "created_utc": runs.now_utc(),
        "provenance": azure["provenance"] if azure else connect.provenance(cloud),
        "cloud": cloud,
        "site": scenario.site,
        "preset": scenario.preset,
        "overrides": overrides,
        "scenario": scenario.model_dump(mode="json"),
        "emulator": emulator,
        "azure": azure,
        "versions": {"python": platform.python_version(), **versions},
        "zone_map": {},
        "resource_groups": [],
        "replicates": [],
    }
