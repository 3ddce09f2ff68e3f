"""The stages of a run, as the notebooks and the command line call them.

Each looks at what the run folder records first: on a finished run nothing is created, measured or deleted.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from importlib import metadata
from typing import Any

from azure.core.exceptions import AzureError

from diskbook import checks, clouds, design, run, scenario_file
from diskbook.azure import provision as provisioning
from diskbook.azure import teardown as deletion
from diskbook.azure.attach import group_and_name
from diskbook.azure.clients import Clients
from diskbook.benchmark import Rig, measure
from diskbook.emulator import lifecycle, truth
from diskbook.errors import DiskbookError, UsageError
from diskbook.run import Run
from diskbook.scenario import Scenario

PACKAGES = ("diskbook", "azure-mgmt-compute", "fabric", "papermill", "pandas", "scipy", "matplotlib")
EXPIRES = timedelta(hours=12)


def begin(
    name: str,
    scenario: str,
    cloud: str = "emulator",
    preset: str = "quick",
    overrides: Mapping[str, Any] | None = None,
    emulator: Mapping[str, Any] | None = None,
) -> Run:
    """Make the run folder with its manifest, or open it when it is there.

    Parameters
    ----------
    name
        Name of the run, or path of its folder.
    scenario, preset, overrides
        As for `scenario_file.load`. On an existing run they are not looked at: the manifest decides.
    cloud
        "emulator" or "azure".
    emulator
        `name`, `profile`, `seed`, `time_scale` of the emulator to use; by default one named after the run.

    Raises
    ------
    UsageError
        For anything that does not fit, before anything is created.
    """
    if (run.folder_of(name) / "manifest.json").exists():
        return run.open_run(name)
    clouds.check_kind(cloud)
    loaded = scenario_file.load(scenario, preset, overrides)
    folder = run.create(name)
    folder.write_manifest(_manifest(folder, loaded, cloud, dict(overrides or {}), emulator))
    folder.append("begin", scenario=loaded.name, preset=preset, cloud=cloud)
    return folder


def _manifest(
    folder: Run, scenario: Scenario, cloud: str, overrides: dict[str, Any], emulator: Mapping[str, Any] | None
) -> dict[str, Any]:
    # Short, since the paths of an emulator's sockets are limited; the folder makes it unique on the machine.
    own = "run-" + hashlib.sha256(str(folder.folder.resolve()).encode()).hexdigest()[:8]
    defaults = {"name": own, "profile": "default", "seed": scenario.design.seed, "time_scale": 0.01}
    played = {**defaults, **(emulator or {})}
    played["own"] = played["name"] == own
    return {
        "schema": run.SCHEMA,
        "run": folder.name,
        "created_utc": run.now_utc(),
        "provenance": clouds.provenance(cloud),
        "cloud": cloud,
        "site": scenario.site,
        "preset": scenario.preset,
        "overrides": overrides,
        "scenario": scenario.model_dump(mode="json"),
        "emulator": played if cloud == "emulator" else None,
        "versions": {"python": platform.python_version()}
        | {name: metadata.version(name) for name in PACKAGES},
        "zone_map": {},
        "resource_groups": [],
        "replicates": [],
    }


def _versions() -> dict[str, str]:
    return {"python": platform.python_version(), **{name: metadata.version(name) for name in PACKAGES}}


def scenario_of(folder: Run) -> Scenario:
    """Return the scenario as the manifest records it."""
    return scenario_file.from_dict(folder.manifest["scenario"], f"{folder.name}/manifest.json")


def finished(folder: Run) -> bool:
    """Whether every planned block has been measured."""
    return folder.done("benchmark")


def provision(folder: Run) -> None:
    """Create machines and disks for what is still to be measured, unless they stand already.

    Machines that are gone are replaced by a fresh set, which is a new replicate.

    Raises
    ------
    DiskbookError
        With Azure's own message, or the setting that is not what was asked for.
    """
    if finished(folder):
        return
    with folder.locked():
        start_emulator(folder, owner=False)
        clients, scenario = clouds.clients_of(folder.manifest), scenario_of(folder)
        for origin in range(1, scenario.design.replicates + 1):
            if remaining(folder, scenario, origin) and standing(folder, clients, origin) is None:
                _replicate(folder, clients, scenario, origin)
        folder.append("stage", stage="provision")


def benchmark(folder: Run) -> None:
    """Do the scenario's checks and measure every block that is not complete.

    Raises
    ------
    DiskbookError
        When the run cannot go on; finished trials are kept and it can be resumed.
    """
    if finished(folder):
        return
    with folder.locked():
        clients, scenario = clouds.clients_of(folder.manifest), scenario_of(folder)
        for origin in range(1, scenario.design.replicates + 1):
            blocks = remaining(folder, scenario, origin)
            if blocks:
                _measure_replicate(folder, clients, scenario, origin, blocks)
        folder.append("stage", stage="benchmark")


def teardown(folder: Run) -> None:
    """Delete what the run created, by reading back; write truth.json first where it was emulated.

    Safe to call at any time and more than once.

    Raises
    ------
    DiskbookError
        When something is left.
    """
    manifest = folder.manifest
    groups = [row["name"] for row in manifest["resource_groups"] if not row["deleted_utc"]]
    if not groups and not _has_own_emulator(manifest):
        return
    with folder.locked():
        try:
            clients = clouds.clients_of(manifest)
        except UsageError:
            if manifest["cloud"] != "emulator":
                raise
            _mark_deleted(folder, groups)  # the emulator is gone, and all it held with it
            _stop_own_emulator(manifest)
            return
        _keep_truth(folder)
        for group in groups:
            deletion.delete_group(clients, folder, group)
            _mark_deleted(folder, [group])
        _stop_own_emulator(manifest)
        _delete_keys(folder)
        folder.append("stage", stage="teardown")


def remaining(folder: Run, scenario: Scenario, origin: int) -> list[design.Block]:
    """Blocks of a planned replicate that are not complete on any machines it was measured on."""
    actual = {row["replicate"] for row in folder.manifest["replicates"] if row["origin"] == origin}
    complete = {
        event["block"]
        for event in folder.ledger()
        if event["event"] == "block" and event["status"] == "complete" and event["replicate"] in actual
    }
    return [
        block for block in design.plan(scenario) if block.replicate == origin and block.block not in complete
    ]


def standing(folder: Run, clients: Clients, origin: int) -> dict[str, Any] | None:
    """Return the latest machines of a planned replicate if they still stand, with the same disks."""
    rows = [row for row in folder.manifest["replicates"] if row["origin"] == origin]
    return rows[-1] if rows and _stands(clients, rows[-1]) else None


def _stands(clients: Clients, row: dict[str, Any]) -> bool:
    try:
        for machine in row["machines"].values():
            clients.compute.virtual_machines.get(*group_and_name(machine["id"]))
        return all(
            clients.compute.disks.get(*group_and_name(disk["id"])).unique_id == disk["unique_id"]
            for disk in row["disks"].values()
        )
    except AzureError:
        return False


def _replicate(folder: Run, clients: Clients, scenario: Scenario, origin: int) -> None:
    manifest = folder.manifest
    measured = {event["replicate"] for event in folder.ledger() if event["event"] == "trial"}
    kept = [row for row in manifest["replicates"] if row["replicate"] in measured or row["origin"] != origin]
    numbers = [row["replicate"] for row in kept]
    number = origin if origin not in numbers else max([scenario.design.replicates, *numbers]) + 1
    group = f"diskbook-{folder.name}-{len(manifest['resource_groups']) + 1}"
    tags = provisioning.group_tags(
        folder.name, scenario, (datetime.now(UTC) + EXPIRES).isoformat("T", "seconds")
    )
    place = provisioning.Place(group, scenario.region, tags, number)
    # Recorded before it is created: what is on record can always be found and deleted.
    groups = [*manifest["resource_groups"], {"name": group, "deleted_utc": None}]
    zone_map = clients.zone_map(scenario.region)
    folder.update_manifest(resource_groups=groups, replicates=kept, zone_map=zone_map)
    provisioning.create_group(clients, folder, place)
    entry = provisioning.replicate(clients, folder, scenario, place)
    folder.update_manifest(replicates=[*kept, {"origin": origin, **entry}])


def _measure_replicate(
    folder: Run, clients: Clients, scenario: Scenario, origin: int, blocks: list[design.Block]
) -> None:
    row = standing(folder, clients, origin)
    if row is None:
        raise DiskbookError(
            f"the machines of replicate {origin} are gone; make new ones: diskbook run --resume {folder.name}"
        )
    rig = Rig.of(clients, folder, scenario, row)
    try:
        checks.run_checks(rig)
        measure(rig, blocks)
    finally:
        rig.close()


def start_emulator(folder: Run, *, owner: bool) -> None:
    """Start the run's own emulator unless it runs.

    Parameters
    ----------
    folder
        The run.
    owner
        The emulator ends with this process, however that ends.

    Raises
    ------
    UsageError
        When the run uses an emulator that the user named, and that one does not run.
    """
    wanted = folder.manifest["emulator"]
    if wanted is None or _emulator_state(wanted) == "running":
        return
    if not wanted["own"]:
        start = f"diskbook emulator start {wanted['name']}"
        raise UsageError(f"emulator {wanted['name']} does not run; start it with '{start}'")
    settings = {key: wanted[key] for key in ("profile", "seed", "time_scale")}
    lifecycle.start(wanted["name"], **settings, owner=owner)


def _emulator_state(wanted: dict[str, Any]) -> str:
    """Return "running", "dead" or "absent"."""
    return next((row.state for row in lifecycle.status() if row.name == wanted["name"]), "absent")


def _has_own_emulator(manifest: dict[str, Any]) -> bool:
    """Whether something of the run's own emulator is there; one that the user named is left running."""
    wanted = manifest["emulator"]
    return bool(wanted and wanted["own"] and _emulator_state(wanted) != "absent")


def _stop_own_emulator(manifest: dict[str, Any]) -> None:
    if _has_own_emulator(manifest):
        lifecycle.stop(manifest["emulator"]["name"])


def _mark_deleted(folder: Run, groups: list[str]) -> None:
    rows = folder.manifest["resource_groups"]
    folder.update_manifest(
        resource_groups=[
            {**row, "deleted_utc": run.now_utc()} if row["name"] in groups else row for row in rows
        ]
    )


def _keep_truth(folder: Run) -> None:
    """Write what the emulator planted and played to truth.json, for tests; no analysis may read it."""
    wanted = folder.manifest["emulator"]
    if wanted is None:
        return
    trials = [
        truth.TrialWindow(
            event["trial"],
            event["machine_id"],
            event["disk_id"],
            datetime.fromisoformat(event["started_utc"]).timestamp(),
            datetime.fromisoformat(event["ended_utc"]).timestamp(),
        )
        for event in folder.ledger()
        if event["event"] == "trial"
    ]
    played = truth.build_truth(lifecycle.read_truth(lifecycle.connect(wanted["name"])), trials)
    run.write_atomic(folder.folder / "truth.json", json.dumps(played, indent=1) + "\n")


def _delete_keys(folder: Run) -> None:
    for path in (folder.folder / "keys").glob("*"):
        path.unlink()
    (folder.folder / "keys").rmdir()
