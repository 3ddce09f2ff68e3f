"""The stages of a run, as the notebooks and the command line call them.

Each looks at what the run folder records first: on a finished run nothing is created, measured or deleted.
"""

import contextlib
import os
import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any

from azure.core.exceptions import AzureError, ResourceNotFoundError, ServiceRequestError, ServiceResponseError

from diskbook.cloud import connect, kinds
from diskbook.cloud.azure import (
    expiry,
    inventory,
    keys,
    monitor,
    named_group,
    provision as provisioning,
    refusals,
    teardown as deletion,
)
from diskbook.cloud.azure.attach import group_and_name
from diskbook.cloud.azure.clients import Clients
from diskbook.cost import budget
from diskbook.design import schedule
from diskbook.design.model import Scenario
from diskbook.facts.catalog import EPHEMERAL
from diskbook.facts.errors import DiskbookError, UsageError
from diskbook.hosts import stage
from diskbook.measure.bench import checks, steps
from diskbook.measure.bench.rig import OwnRig
from diskbook.measure.bench.trials import Rig, measure
from diskbook.measure.runs import debug, looks
from diskbook.measure.runs.begin import begin
from diskbook.measure.runs.refused import is_unmade
from diskbook.results import plan as plans, run as runs, session

__all__ = ["begin", "benchmark", "finished", "provision", "running_machines", "teardown"]


def finished(run: runs.Run) -> bool:
    """Whether every planned block has been measured."""
    return run.done("benchmark")


def provision(run: runs.Run) -> None:
    """Create machines and disks for what is still to be measured, unless they stand already.

    Machines that are gone are replaced by a fresh set, which is a new replicate.

    Raises DiskbookError with Azure's own message, or the setting that is not what was asked for.
    """
    if finished(run):
        return
    run.check_signed()
    if stage.is_own(run.manifest):
        with run.locked():
            stage.provision(run)
            run.append("stage", stage="provision", requests={})
        return
    with run.locked(), _cloud_told(run):
        kinds.of(run).start(run, owner=False)
        clients, scenario = connect.clients_of(run), run.scenario
        _drop_unreachable(run, clients)
        missing = [
            origin
            for origin in origins(scenario)
            if (plans.remaining(run, origin) or _apart(run, scenario, origin))
            and running_machines(run, clients, origin) is None
        ]
        if missing:
            _drop_expired(run, clients)
            left = [block for origin in missing for block in plans.remaining(run, origin)]
            parallel = at_once(run.manifest["cloud"], len(missing))
            expiry.check_fits(run.manifest, scenario, left, parallel)
            budget.check(run, clients, scenario, len(missing))
            _create(run, clients, scenario, missing)
        run.append("stage", stage="provision", requests=dict(clients.requests))


def benchmark(run: runs.Run) -> None:
    """Do the scenario's checks, measure every block that is not complete, and do the drills and losses.

    Raises DiskbookError when the run cannot go on; finished trials are kept and it can be resumed.
    """
    if finished(run):
        return
    run.check_signed()
    with run.locked(), _cloud_told(run):
        scenario = run.scenario
        left = {origin: plans.remaining(run, origin) for origin in origins(scenario)}
        apart = {origin for origin in left if _apart(run, scenario, origin)}
        left = {origin: blocks for origin, blocks in left.items() if blocks or origin in apart}
        if stage.is_own(run.manifest):
            _measure_on_own_hosts(run, left.get(stage.REPLICATE, []))
        else:
            _measure_all(run, scenario, left)
            monitor.keep(run, connect.clients_of(run))
        run.append("stage", stage="benchmark")


def _apart(run: runs.Run, scenario: Scenario, origin: int) -> bool:
    """Whether something is left to do that comes after the blocks of a replicate."""
    return steps.of(scenario).is_left(run, scenario, origin)


def teardown(run: runs.Run, say: deletion.Say | None = None) -> None:
    """Delete what the run created, by reading back; write truth.json first where it was emulated.

    Safe to call at any time and more than once. `say` takes progress lines, which also go into the ledger.
    Raises DiskbookError when something is left.
    """
    manifest = run.manifest
    groups = [row["name"] for row in manifest["resource_groups"] if not row["deleted_utc"]]
    if stage.standing(manifest):
        _leave_own_hosts(run, say or print)
        return
    if not groups and not kinds.of(run).is_there(run):
        return
    run.check_signed()
    # A kernel whose parent was killed takes a moment to notice, and holds the run until then.
    with run.locked(patience_s=20), _cloud_told(run):
        try:
            clients = connect.clients_of(run)
        except UsageError:
            if not kinds.of(run).is_gone(run):
                raise
            _mark_deleted(run, groups)
            kinds.of(run).stop(run)
        else:
            _delete_all(run, clients, groups, say)
        shutil.rmtree(run.folder / "keys", ignore_errors=True)
        run.append("stage", stage="teardown")


def _leave_own_hosts(run: runs.Run, say: deletion.Say) -> None:
    """Remove what a run has made on hosts of the user's own."""
    run.check_signed()
    with run.locked(patience_s=20):
        stage.teardown(run, say)
        run.append("stage", stage="teardown")


def _delete_all(run: runs.Run, clients: Clients, groups: list[str], say: deletion.Say | None) -> None:
    """Keep the truth, delete the groups, stop the emulator: each also when the ones before failed.

    A full disk, for one, is no reason to leave machines standing.
    """
    with contextlib.ExitStack() as steps:  # taken from the last to the first
        steps.callback(kinds.of(run).stop, run)
        steps.callback(_drop_keys, run, clients, groups)
        steps.callback(inventory.tell_elsewhere, clients, run)
        for group in reversed(groups):
            steps.callback(_delete_group, run, clients, group, say)
        kinds.of(run).keep_truth(run)


def _drop_keys(run: runs.Run, clients: Clients, groups: list[str]) -> None:
    """Remove the run's keys when no machine is left that they open, also where nothing can be recorded."""
    with contextlib.suppress(AzureError):
        own = [group for group in groups if not inventory.prefix_in(run, group)]
        if own and not any(clients.resource.resource_groups.check_existence(group) for group in own):
            shutil.rmtree(run.folder / "keys", ignore_errors=True)


def _drop_expired(run: runs.Run, clients: Clients) -> None:
    """Delete groups of an earlier session whose machines are down: they cost, and count against the quota."""
    for group in expiry.expired_groups(run.manifest):
        _delete_group(run, clients, group, None)


def _drop_unreachable(run: runs.Run, clients: Clients) -> None:
    """Delete what another client made for the run: its machines' key is there, so they serve nothing."""
    if not keys.has_run_key(run.folder):
        for row in run.manifest["resource_groups"]:
            if not row["deleted_utc"]:
                _delete_group(run, clients, row["name"], None)


def _delete_group(run: runs.Run, clients: Clients, group: str, say: deletion.Say | None) -> None:
    expiry.note_found(clients, run, group)
    deletion.delete_group(clients, run, group, say)
    _mark_deleted(run, [group])


@contextlib.contextmanager
def _cloud_told(run: runs.Run) -> Iterator[None]:
    """Put into one sentence what the cloud refuses, or that it is away, where no operation did so before."""
    try:
        yield
    except AzureError as error:
        away = isinstance(error, ServiceRequestError | ServiceResponseError)
        what = "cannot be reached" if away else "refuses"
        kept = f"; what is finished is kept: 'diskbook run --resume {run.name}' goes on"
        again = "" if is_unmade(run) else kept
        raise DiskbookError(f"the cloud {what} ({refusals.message(error)}){again}") from error


def running_machines(run: runs.Run, clients: Clients, origin: int) -> dict[str, Any] | None:
    """Return the latest machines of a planned replicate if they still stand, with the same disks."""
    manifest = run.manifest
    rows = [row for row in manifest["replicates"] if row["origin"] == origin]
    if not rows or rows[-1]["resource_group"] in expiry.expired_groups(manifest):
        return None
    return rows[-1] if _is_running(clients, rows[-1]) else None


def _is_running(clients: Clients, row: dict[str, Any]) -> bool:
    try:
        for machine in row["machines"].values():
            clients.compute.virtual_machines.get(*group_and_name(machine["id"]))
        return all(
            clients.compute.disks.get(*group_and_name(disk["id"])).unique_id == disk["unique_id"]
            for disk in row["disks"].values()
            if disk["sku"] != EPHEMERAL  # stands with its machine
        )
    except ResourceNotFoundError:  # anything else does not say that they are gone
        return False


def _create(run: runs.Run, clients: Clients, scenario: Scenario, missing: list[int]) -> None:
    """Create machines and disks of planned replicates, all in one resource group."""
    manifest = run.manifest
    measured = {event["replicate"] for event in run.ledger() if event["event"] == "trial"}
    kept = [
        row for row in manifest["replicates"] if row["replicate"] in measured or row["origin"] not in missing
    ]
    origin_of = _numbered(scenario, missing, [row["replicate"] for row in kept])
    row = _group_row(run, clients, scenario)
    group, prefix = row["name"], row.get("prefix", "")
    tags = provisioning.group_tags(run.name, scenario, row["expires_utc"])
    tags |= session.tags(run, clients.cloud.subscription, group, prefix)
    place = provisioning.Place(group, scenario.region, tags, prefix)
    # Recorded before it is created: what is on record can always be found and deleted.
    groups = [*(known for known in manifest["resource_groups"] if known["name"] != group), row]
    zone_map = clients.zone_map(scenario.region)
    run.update_manifest(resource_groups=groups, replicates=kept, zone_map=zone_map)

    def keep(entry: dict[str, Any]) -> None:
        rows = [*run.manifest["replicates"], {"origin": origin_of[entry["replicate"]], **entry}]
        run.update_manifest(replicates=sorted(rows, key=lambda row: row["replicate"]))

    try:
        if not prefix:
            provisioning.create_group(clients, run, place)
        provisioning.replicates(clients, run, scenario, place, zone_map, list(origin_of), keep)
    except BaseException:  # an interrupt, too: what is half made serves nothing and costs
        if not run.manifest.get("kept") and not debug.is_asked(run):
            _drop_incomplete(run, clients, group, list(origin_of))
        raise


def _group_row(run: runs.Run, clients: Clients, scenario: Scenario) -> dict[str, Any]:
    """Entry of the manifest for the group that machines are created in: a new one, or that of the user.

    In that all that stands of a run has one prefix and one expiry.
    """
    manifest, named = run.manifest, scenario.azure.resource_group
    row = {"expires_utc": expiry.from_now(manifest), "deleted_utc": None}
    if not named:
        return {"name": inventory.new_group(clients, run, len(manifest["resource_groups"]) + 1), **row}
    named_group.check(clients, named)
    standing = named_group.standing(manifest["resource_groups"], named)
    return standing or {"name": named, "prefix": named_group.new_prefix(), **row}


def _drop_incomplete(run: runs.Run, clients: Clients, group: str, numbers: list[int]) -> None:
    """Delete at once what replicates have made that did not become complete; with none complete, the group.

    A failure is told, and hides none that led here; the teardown deletes the rest.
    """
    complete = {row["replicate"] for row in run.manifest["replicates"] if row["resource_group"] == group}
    try:
        if not complete:
            _delete_group(run, clients, group, None)
            _drop_keys(run, clients, [row["name"] for row in run.manifest["resource_groups"]])
        for number in numbers if complete else ():
            if number not in complete:
                named_group.remove_replicate(clients, run, group, number)
    except (AzureError, DiskbookError) as error:
        _tell_left(run, clients, "what was half made", error)


def _tell_left(run: runs.Run, clients: Clients, what: str, error: Exception) -> None:
    reason = refusals.message(error) if isinstance(error, AzureError) else str(error)
    clients.tell(f"{what} still stands ({reason}); 'diskbook teardown {run.name}' deletes it")


def _numbered(scenario: Scenario, missing: list[int], used: list[int]) -> dict[int, int]:
    """Number fresh replicates: as planned, or with the next free number where that one has been measured."""
    by_block: dict[int, int] = {}
    for origin in missing:
        taken = [*used, *by_block]
        number = origin if origin not in taken else max([scenario.design.replicates, *taken]) + 1
        by_block[number] = origin
    return by_block


def at_once(cloud: str, replicates: int) -> int:
    """How many replicates are measured at the same time.

    Replicates share no limit of Azure's, so all of them. Emulated ones share this machine's cores, and each
    needs about two for its tool and its disk when it sits on a cap.
    """
    return max(1, min(replicates, (os.cpu_count() or 1) // 2)) if kinds.get(cloud).is_local else replicates


def _measure_all(run: runs.Run, scenario: Scenario, left: dict[int, list[schedule.Block]]) -> None:
    """Measure what is left of each replicate; when one fails the others end with their current trial."""
    stop = threading.Event()
    with ThreadPoolExecutor(at_once(run.manifest["cloud"], max(1, len(left)))) as pool:
        running = [
            pool.submit(_measure_replicate, run, scenario, origin, blocks, stop)
            for origin, blocks in left.items()
        ]
        try:
            for future in as_completed(running):
                future.result()
        except BaseException:
            stop.set()
            raise


def _measure_replicate(
    run: runs.Run, scenario: Scenario, origin: int, blocks: list[schedule.Block], stop: threading.Event
) -> None:
    if stop.is_set():  # another has failed before this one began
        return
    # Clients of its own: they add up the waiting of this replicate's operations only.
    clients = connect.clients_of(run)
    try:
        _play(run, clients, scenario, origin, blocks, stop)
    except BaseException:
        stop.set()
        # By hand (nobody has said) it can be resumed; `diskbook run` deletes all of it, but only later.
        if not run.manifest.get("kept", True) and not debug.is_asked(run):
            _drop_failed(run, clients, origin)
        raise


def _drop_failed(run: runs.Run, clients: Clients, origin: int) -> None:
    """Delete the machines and disks of a replicate that failed, while others end their trials.

    As in `_drop_incomplete` a failure is told, and hides none that led here.
    """
    row = [row for row in run.manifest["replicates"] if row["origin"] == origin][-1:]
    try:
        for made in row:
            expiry.note_found(clients, run, made["resource_group"])
            named_group.remove_replicate(clients, run, made["resource_group"], made["replicate"])
    except (AzureError, DiskbookError) as error:
        _tell_left(run, clients, f"the failed replicate {origin}", error)


def _play(
    run: runs.Run,
    clients: Clients,
    scenario: Scenario,
    origin: int,
    blocks: list[schedule.Block],
    stop: threading.Event,
) -> None:
    """Measure a replicate, with its checks before and its drills and losses after."""
    row = running_machines(run, clients, origin)
    if row is None:
        raise DiskbookError(
            f"the machines of replicate {origin} are gone; make new ones: diskbook run --resume {run.name}"
        )
    rig, around = Rig.of(clients, run, scenario, row, stop), steps.of(scenario)
    try:
        around.make(rig, clients)
        checks.run_checks(rig)
        compared = [block for block in blocks if not block.evidence]
        measure(rig, kinds.of(run).blocks(run, row, looks.until_decided(run, compared)))
        around.play(rig, clients)
        # Last of all, so that it draws no credit that anything else needs.
        measure(rig, [block for block in blocks if block.evidence])
    finally:
        rig.close()


def _measure_on_own_hosts(run: runs.Run, blocks: list[schedule.Block]) -> None:
    """Measure what is left on hosts of the user's own, where nothing is checked, failed or made but files."""
    if not run.manifest["replicates"]:
        raise DiskbookError(
            f"nothing was made on the hosts of run {run.name}: diskbook run --resume {run.name}"
        )
    rig = OwnRig.on_hosts(run, threading.Event())
    try:
        measure(rig, looks.until_decided(run, blocks))
    except DiskbookError as error:
        stage.check_room(run, error)
        raise
    finally:
        rig.close()


def origins(scenario: Scenario) -> range:
    """Numbers of the planned replicates."""
    return range(1, scenario.design.replicates + 1)


def _mark_deleted(run: runs.Run, groups: list[str]) -> None:
    rows = run.manifest["resource_groups"]
    run.update_manifest(
        resource_groups=[
            {**row, "deleted_utc": runs.now_utc(), "deletion": None} if row["name"] in groups else row
            for row in rows
        ]
    )
