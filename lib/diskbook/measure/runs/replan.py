"""Change settings of a run that has measured nothing, such as a size that Azure has no room for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from diskbook.cloud import kinds
from diskbook.design import scenario_file
from diskbook.design.model import Scenario
from diskbook.facts.errors import UsageError
from diskbook.report.analysis import companion_files
from diskbook.results import plan as plans, session
from diskbook.results.run import Run


def change(run: Run, file: str | None, settings: Mapping[str, Any]) -> None:
    """Plan a run again with settings that win over those it was begun with.

    Parameters
    ----------
    run
        The run; its manifest gets the new scenario, and its ledger the new plan.
    file
        The scenario's file, if the user named it.
    settings
        As the overrides of `scenario_file.load`.

    Raises
    ------
    UsageError
        If the run has trials, or something of it stands, or the settings or the scenario do not fit.
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


def _check_changeable(run: Run) -> None:
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


def _load(run: Run, file: str | None, overrides: Mapping[str, Any]) -> Scenario:
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
