"""Timers that shut a run's machines down if nobody is left to delete them.

Two timers follow the tag `diskbook-expires`, which a sweep reads:

- Azure's auto-shutdown (`Microsoft.DevTestLab/schedules`) deallocates the machine and so ends its bill. It
  knows a time of day, not a date, so it is set only if the run expires within a day.
- A timer in the machine, set by cloud-init (Linux) or the task scheduler (Windows), shuts it down
  `GUEST_LATER` after that. It knows the date, but Azure goes on billing a machine that is only stopped.

The machine's timer comes second: no documentation says that Azure's schedule deallocates a machine that has
already stopped. The ledger (`expired`) records the state of each machine when a sweep or the run found it.

Disks and addresses cost money until a teardown or a sweep deletes them.
"""

import contextlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from azure.core.exceptions import AzureError

from diskbook.cloud.azure import refusals
from diskbook.cloud.azure.clients import Clients
from diskbook.design.model import Scenario
from diskbook.design.schedule import Block, PlannedTrial, offered
from diskbook.facts.errors import DiskbookError, UsageError
from diskbook.facts.units import span
from diskbook.results.run import Run

DEFAULT_H, LEAST_H, LONGEST_H = 12.0, 1.0, 72.0
GUEST_LATER = timedelta(minutes=10)
LEAST_AHEAD = timedelta(minutes=30)
"""A schedule set less ahead may first run a day later: so much with notifications, unknown without."""
API = "2018-09-15"
DAY = timedelta(hours=24)
TIMER = "/etc/systemd/system/diskbook-expiry.timer"
SERVICE = "/etc/systemd/system/diskbook-expiry.service"
_TOOL_START_S = 0.6  # what a tool's start and the fetching of its output cost, as in the plan


def check_hours(hours: float) -> float:
    """Check a lifetime in hours: UsageError when Azure's schedule might miss it, or it caps nothing."""
    if not LEAST_H <= hours <= LONGEST_H:
        raise UsageError(
            f"--expires {hours:g}: give {LEAST_H:g} to {LONGEST_H:g} hours; Azure's auto-shutdown may run a "
            "day late where it is set less than half an hour ahead"
        )
    return hours


def lifetime(manifest: Mapping[str, Any]) -> timedelta:
    """How long what a run creates may stand."""
    return timedelta(hours=manifest.get("expires_h", DEFAULT_H))


def from_now(manifest: Mapping[str, Any]) -> str:
    """Return the expiry of what a run creates now, as its tag has it."""
    return (datetime.now(UTC) + lifetime(manifest)).isoformat("T", "seconds")


def latest(manifest: Mapping[str, Any]) -> datetime | None:
    """Latest expiry of the resource groups that are on record as standing; None where nothing stands."""
    rows = [row for row in manifest["resource_groups"] if not row["deleted_utc"]]
    # Groups made before expiry was recorded have none that is known here.
    known = [str(row["expires_utc"]) for row in rows if row.get("expires_utc")]
    return max((datetime.fromisoformat(text) for text in known), default=None)


def uptime_text(manifest: Mapping[str, Any]) -> str:
    """Say what of a run stands, and until when its machines run; "" where nothing is on record."""
    rows = [row for row in manifest["resource_groups"] if not row["deleted_utc"]]
    if not rows:
        return ""
    expires = latest(manifest)
    if expires is None:
        return "not torn down"
    if expires <= datetime.now(UTC):
        return f"not torn down, expired {expires.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    return f"stands until {expires.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def is_past(manifest: Mapping[str, Any]) -> bool:
    """Whether nothing of a run stands that has not expired."""
    rows = [row for row in manifest["resource_groups"] if not row["deleted_utc"]]
    return all(_is_past(row) for row in rows)


def expired_groups(manifest: Mapping[str, Any]) -> list[str]:
    """Names of the groups of a run that stand beyond their expiry: their machines are down."""
    rows = manifest["resource_groups"]
    return [row["name"] for row in rows if not row["deleted_utc"] and _is_past(row)]


def check_not_past(run: Run, group: str) -> None:
    """Raise DiskbookError when a resource group has expired: its machines are down on purpose."""
    if group in expired_groups(run.manifest):
        raise DiskbookError(
            f"resource group {group} has expired, so its machines have shut down; "
            f"'diskbook run --resume {run.name}' makes new ones"
        )


def check_stands_at(run: Run, group: str, when: datetime) -> None:
    """Raise DiskbookError when the machines of a group will be down at a time for which they would wait."""
    rows = [row for row in run.manifest["resource_groups"] if row["name"] == group]
    expires = next((row["expires_utc"] for row in rows if row.get("expires_utc")), None)
    if expires is not None and datetime.fromisoformat(expires) <= when:
        raise DiskbookError(
            f"the next block is due at {when:%Y-%m-%d %H:%M} UTC, and the machines of {group} shut down "
            f"before, at {datetime.fromisoformat(expires).astimezone(UTC):%H:%M} UTC; "
            f"'diskbook run --resume {run.name}' then makes new ones (--expires makes them last longer)"
        )


def _is_past(row: Mapping[str, Any]) -> bool:
    expires = row.get("expires_utc")
    return expires is not None and datetime.fromisoformat(expires) <= datetime.now(UTC)


def check_fits(
    manifest: Mapping[str, Any], scenario: Scenario, blocks: Iterable[Block], at_once: int
) -> None:
    """Make sure that what is to be measured, so many replicates at once, fits before the machines shut down.

    Raises UsageError when it does not; with the lifetime that would do.
    """
    listed = list(blocks)
    busy_s = {
        (block.replicate, block.block): sum(_trial_s(scenario, trial) for trial in block.trials)
        for block in listed
    }
    compared: dict[tuple[int, int], float] = {}
    for block in listed:
        if not block.evidence:
            key = block.replicate, block.round
            compared[key] = compared.get(key, 0.0) + busy_s[block.replicate, block.block]
    all_s = sum(busy_s.values()) + _waiting_s(manifest, scenario, compared)
    needed_h, lifetime_s = all_s / max(1, at_once) / 3600, lifetime(manifest).total_seconds()
    if needed_h * 3600 > lifetime_s:
        hours = round(needed_h * 1.25 + 1)
        waits = " and the waits between blocks" if scenario.gap_h else ""
        raise UsageError(
            f"the trials alone{waits} take {span(needed_h * 3600)}, but the machines shut down after "
            f"{span(lifetime_s)}: "
            + (f"give --expires {hours}" if hours <= LONGEST_H else "plan fewer blocks, or split the run")
        )


def _trial_s(scenario: Scenario, trial: PlannedTrial) -> float:
    load = offered(scenario, trial)
    return load.ramp_s + load.runtime_s + _TOOL_START_S


def _waiting_s(
    manifest: Mapping[str, Any], scenario: Scenario, busy_s: Mapping[tuple[int, int], float]
) -> float:
    """Time that replicates wait between blocks: after each block but the last of its replicate."""
    scale = (manifest.get("emulator") or {}).get("time_scale", 1.0)
    gap_s = 3600 * scenario.gap_h * scale
    last = dict(sorted(busy_s))
    waits = (gap_s - each for (replicate, block), each in busy_s.items() if block != last[replicate])
    return sum(max(0.0, wait_s) for wait_s in waits)


# --- in the machine


def cloud_config(expires_utc: str) -> dict[str, Any]:
    """Part of a cloud-config that shuts a Linux machine down `GUEST_LATER` after it expires.

    A timer unit, so a machine that is started again after its time is shut down at once (`Persistent`).
    """
    at = _rounded_up(_guest_time(expires_utc), timedelta(seconds=1))
    timer = (
        "[Unit]\nDescription=Shut down when the diskbook run expires\n"
        f"[Timer]\nOnCalendar={at:%Y-%m-%d %H:%M:%S} UTC\nPersistent=true\nAccuracySec=1s\n"
        "[Install]\nWantedBy=timers.target\n"
    )
    service = (
        "[Unit]\nDescription=Shut down: the diskbook run has expired\n"
        "[Service]\nType=oneshot\nExecStart=/usr/bin/systemctl poweroff\n"
    )
    return {
        "write_files": [{"path": TIMER, "content": timer}, {"path": SERVICE, "content": service}],
        "runcmd": [["systemctl", "daemon-reload"], ["systemctl", "enable", "--now", "diskbook-expiry.timer"]],
    }


def powershell(expires_utc: str) -> str:
    """PowerShell that shuts a Windows machine down `GUEST_LATER` after it expires, by its task scheduler."""
    at = _guest_time(expires_utc)
    return (
        f"$at = [datetimeoffset]::FromUnixTimeSeconds({at.timestamp():.0f}).LocalDateTime\n"
        "$task = @{ TaskName = 'diskbook-expiry'; User = 'SYSTEM'; Force = $true }\n"
        "$task.Trigger = New-ScheduledTaskTrigger -Once -At $at\n"
        "$task.Action = New-ScheduledTaskAction -Execute shutdown.exe -Argument '/s /f /t 0'\n"
        "Register-ScheduledTask @task\n"
    )


def _guest_time(expires_utc: str) -> datetime:
    """When the machine's own timer shuts it down."""
    return datetime.fromisoformat(expires_utc).astimezone(UTC) + GUEST_LATER


# --- by Azure


def schedule(
    clients: Clients,
    run: Run,
    machine: str,
    machine_id: str,
    region: str,
    tags: dict[str, str],
    local: bool = False,
) -> bool:
    """Ask Azure to deallocate a machine when it expires (tag `diskbook-expires`); return whether it will.

    What comes of it goes into the ledger. A refusal stops nothing: the timer in the machine is set, and the
    group is swept after its expiry. With an ephemeral OS disk (`local`) Azure deallocates no machine.
    """
    expires = datetime.fromisoformat(tags["diskbook-expires"])
    at = None if local else shutdown_time(expires, datetime.now(UTC))
    own_time = _guest_time(tags["diskbook-expires"])
    itself = f"it stops itself at {own_time:%Y-%m-%d %H:%M} UTC, billed until swept"
    note = f"more than a day away: Azure's daily shutdown would come too early; {itself}"
    if local:
        note = f"Azure deallocates no machine with an ephemeral OS disk; {itself}"
    if at is not None:
        try:
            _create(clients, machine, machine_id, at, region, tags)
            note = (
                f"Azure deallocates it at {at:%H:%M} UTC, which ends its bill; disks and address cost until "
                f"they are deleted. Should that fail, {itself}"
            )
        except AzureError as error:
            note = f"Azure will not deallocate it ({refusals.message(error)}); {itself}"
            at = None
    shown = None if at is None else at.isoformat("T", "minutes")
    run.append(
        "expiry", machine=machine, expires_utc=tags["diskbook-expires"], deallocated_utc=shown, note=note
    )
    return at is not None


def shutdown_time(expires: datetime, now: datetime) -> datetime | None:
    """Return the minute for Azure's daily shutdown; None when its first one would come too early."""
    at = _rounded_up(max(expires, now + LEAST_AHEAD + timedelta(minutes=1)), timedelta(minutes=1))
    return at if at - now < DAY else None


def note_found(clients: Clients, run: Run, group: str) -> None:
    """Write into the ledger in which state the machines of an expired group are, before they are deleted.

    Nobody has seen on Azure which of the two timers acts; what cannot be read is left out.
    """
    if group not in expired_groups(run.manifest):
        return
    with contextlib.suppress(AzureError, DiskbookError):
        noted = {event["machine_id"] for event in run.ledger() if event["event"] == "expired"}
        for machine in clients.compute.virtual_machines.list(group):
            view = clients.compute.virtual_machines.instance_view(group, machine.name)
            codes = [row.code for row in view.statuses or [] if row.code.startswith("PowerState/")]
            seen = {"power": codes[0].rpartition("/")[2] if codes else "unknown", "machine_id": machine.id}
            if machine.id not in noted:
                billed = seen["power"] not in ("deallocating", "deallocated")
                run.append("expired", machine=machine.name, **seen, billed=billed)


def _create(
    clients: Clients, machine: str, machine_id: str, at: datetime, region: str, tags: dict[str, str]
) -> None:
    """Create the schedule. Shape from the REST specification (2018-09-15), not seen on the wire."""
    stem = machine_id[: machine_id.lower().index("/providers/")]
    # Azure takes a compute schedule by this name only.
    schedule_id = f"{stem}/providers/Microsoft.DevTestLab/schedules/shutdown-computevm-{machine}"
    properties = {
        "status": "Enabled",
        "taskType": "ComputeVmShutdownTask",
        "dailyRecurrence": {"time": f"{at:%H%M}"},
        "timeZoneId": "UTC",
        "targetResourceId": machine_id,
        "notificationSettings": {"status": "Disabled", "timeInMinutes": 30},
    }
    body: Any = {"location": region, "tags": tags, "properties": properties}
    clients.resource.resources.begin_create_or_update_by_id(schedule_id, body, api_version=API).result()


def _rounded_up(time: datetime, unit: timedelta) -> datetime:
    """Round a time up to whole seconds or minutes, in UTC."""
    start = datetime(2000, 1, 1, tzinfo=UTC)
    return start - (start - time.astimezone(UTC)) // unit * unit
