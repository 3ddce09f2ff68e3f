"""The emulator of a run: start it and stop it, connect to it, and keep the truth that it played.

An emulator that the user named is used and left running.
"""

import contextlib
import hashlib
import json
import time
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from diskbook.cloud import connect
from diskbook.cloud.azure import expiry
from diskbook.cloud.azure.clients import Clients, Cloud, StaticToken
from diskbook.cloud.kinds import Asked, Check, CloudKind, Found, Leftover
from diskbook.design.model import Arm, Scenario, Workload
from diskbook.design.schedule import Block
from diskbook.design.vocabulary import Provenance
from diskbook.emulated import doctor
from diskbook.facts import catalog, disk_options
from diskbook.facts.errors import DiskbookError, UsageError
from diskbook.facts.units import MB, MS_PER_S, epoch
from diskbook.measure.runs.sweep import close, has_ended, local_runs
from diskbook.results.run import Run
from diskbook_emulator import folders, lifecycle, played
from diskbook_emulator.profile import DEFAULT, Profile, load_profile

TIME_SCALE = 0.01  # of Azure's delays, slept by the emulator
DEFAULT_PROFILE = "default"


def check_runs(name: str) -> None:
    """Raise UsageError when an emulator that the user named does not run."""
    if emulator_state(name) != "running":
        raise UsageError(f"emulator {name} does not run; start it with 'diskbook emulator start {name}'")


def clients(name: str) -> Clients:
    """Make the clients of a running emulator of this user; UsageError when there is none."""
    return Clients(_cloud(name), connect.say)


def title(name: str) -> str:
    """Name an emulator in a list of clouds."""
    return f"emulator {name} (emulated)"


class _Emulator(CloudKind):
    """A miniature Azure on this computer."""

    name = "emulator"
    provenance = Provenance.EMULATED
    is_local = True
    where = "on the emulator, on this machine"

    def settings(self, asked: Mapping[str, Any], scenario: Scenario, folder: Path) -> dict[str, Any]:
        """Decide on the emulator; `own` says that it is the run's own and ends with it."""
        if "name" in asked:
            running = _of_running(asked)
            self.check(scenario, running)
            return {**running, "own": False}
        name, seed = own_emulator_name(folder), scenario.design.seed
        defaults = {"name": name, "profile": DEFAULT_PROFILE, "seed": seed, "time_scale": TIME_SCALE}
        settings = {**defaults, **asked}
        profile = load_profile(settings["profile"])
        check(profile, scenario)
        return {
            **settings,
            "hours_between_blocks": profile.noise.hours_between_blocks,
            "metrics_grain_s": profile.metrics_grain_s,
            "own": True,
        }

    def check(self, scenario: Scenario, settings: Mapping[str, Any]) -> None:
        """Refuse fleets that the emulator would distort."""
        check(load_profile(settings.get("profile") or DEFAULT_PROFILE), scenario)

    def connect(self, run: Run) -> Cloud:
        """Return the endpoint of the run's emulator; UsageError if it does not run."""
        name = emulator_name(run)
        return super().connect(run) if name is None else _cloud(name)

    def start(self, run: Run, *, owner: bool) -> None:
        """Start the run's own emulator unless it runs; UsageError if one that the user named does not."""
        name = emulator_name(run)
        if name is None or emulator_state(name) == "running":
            return
        emulator = run.manifest["emulator"]
        if not emulator["own"]:
            check_runs(name)
        settings = {key: emulator[key] for key in ("profile", "seed", "time_scale")}
        lifecycle.start(name, **settings, owner=owner)

    def stop(self, run: Run) -> None:
        """Stop the run's own emulator, and remove what it has left."""
        name = emulator_name(run)
        if name is not None and self.is_there(run):
            lifecycle.stop(name)

    def is_there(self, run: Run) -> bool:
        """Tell whether anything of the run's own emulator is there, running or dead."""
        name = emulator_name(run)
        return name is not None and run.manifest["emulator"]["own"] and emulator_state(name) != "absent"

    def is_gone(self, run: Run) -> bool:
        """Tell whether the emulator is gone; one that the user named may have kept its state."""
        name = emulator_name(run)
        return name is not None and (run.manifest["emulator"]["own"] or emulator_state(name) == "absent")

    def blocks(self, run: Run, replicate: Mapping[str, Any], blocks: Iterable[Block]) -> Iterable[Block]:
        """Have the noise clock set on before each block, where the profile has hours between blocks."""
        emulator = run.manifest.get("emulator") or {}
        return _clocked(run, replicate, blocks) if emulator.get("hours_between_blocks") else blocks

    def keep_truth(self, run: Run) -> None:
        """Write what the emulator planted and played to truth.json, for tests; no analysis may read it."""
        name = emulator_name(run)
        if name is None:
            return
        windows = [_window(event) for event in run.ledger() if event["event"] == "trial"]
        truth = played.build_truth(lifecycle.read_truth(lifecycle.connect(name)), windows)
        earlier = run.folder / "truth.json"
        if earlier.exists():
            truth = played.merge(json.loads(earlier.read_text("utf-8")), truth)
        run.write("truth.json", json.dumps(truth, separators=(",", ":")) + "\n")

    def doctor(self, scenario: Scenario, asked: Asked) -> list[Check]:
        return doctor.checks(scenario)

    def find(self, *, must: bool, only: str | None = None) -> Found:
        """Look at all emulators that run, or at one."""
        if only is not None:
            check_runs(only)
            return Found({title(only): clients(only)})
        rows = lifecycle.status()
        kept = [row.name for row in rows if row.state == "kept"]
        return Found(
            {title(row.name): clients(row.name) for row in rows if row.state == "running"},
            tuple(f"emulator {name} is stopped with its state kept: it was not looked into" for name in kept),
        )

    def leftovers(self) -> Iterator[Leftover]:
        return find_leftovers()


EMULATOR = _Emulator()


def _of_running(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of an emulator that the user named; what it plays was decided when it was started."""
    check_runs(asked["name"])
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


def _cloud(name: str) -> Cloud:
    connection = lifecycle.connect(name)
    return Cloud(
        kind="emulator",
        subscription=connection.subscription_id,
        credential=StaticToken(connection.token),
        endpoint=connection.endpoint,
        ca=connection.ca_path,
        time_scale=connection.time_scale,
        admin_user=connection.admin_user,
        ssh_source="127.0.0.0/8",
    )


def _clocked(run: Run, replicate: Mapping[str, Any], blocks: Iterable[Block]) -> Iterator[Block]:
    name, machines = str(emulator_name(run)), [row["id"] for row in replicate["machines"].values()]
    for block in blocks:
        try:
            lifecycle.begin_block(lifecycle.connect(name), machines, block.round)
        except OSError as error:
            raise DiskbookError(f"the noise clock of emulator {name} cannot be set on: {error}") from error
        yield block


def _window(event: dict[str, Any]) -> played.TrialWindow:
    started, ended = (epoch(event[key]) for key in ("started_utc", "ended_utc"))
    return played.TrialWindow(event["trial"], event["machine_id"], event["disk_id"], started, ended)


MOST_IOPS = 12_000


def check(profile: Profile, scenario: Scenario) -> None:
    """Refuse fleets that would do more than the emulator plays undistorted.

    Raises UsageError, naming the load, what it could do, and what to change.
    """
    for arm, load in scenario.cells:
        if load.instances == 1 or not arm.volume:
            continue
        most = most_iops(profile, scenario, arm, load)
        if most > MOST_IOPS:
            raise UsageError(
                f"workload {load.name}: {load.instances} machines on {arm.name} would do up to {most:,.0f} "
                f"IOPS under the emulator's profile '{profile.name}', of which at most {MOST_IOPS:,} are "
                f"played undistorted; plant slower drives ([drives.{scenario.site}] in a profile), or give "
                "it a rate"
            )


def most_iops(profile: Profile, scenario: Scenario, arm: Arm, load: Workload) -> float:
    """Most IOPS that a fleet can do: by its rate, its queue, the drives and the nodes; reads of one copy."""
    volume = scenario.volume_named(arm.volume)
    nodes, disk = scenario.nodes_of(volume), scenario.disk_named(volume.disk)
    planted = profile.drives.get(scenario.site)
    drive = planted or disk_options.limits(disk)
    drives = len(nodes) * disk.count
    sizes = [catalog.vm_size(scenario.machine_named(node).size) for node in nodes]
    caps = profile.caps
    bounds = [
        drives * drive.iops * caps.iops_factor,
        drives * drive.mb_s * caps.mb_s_factor * MB / load.block_size_bytes,
        sum(size.uncached_burst_iops or size.uncached_iops or 0 for size in sizes) * caps.iops_factor,
        load.outstanding * MS_PER_S / _latency_ms(profile, scenario.site, disk.sku),
    ]
    return min(bound for bound in (load.rate, *bounds) if bound)


def _latency_ms(profile: Profile, site: str, sku: str) -> float:
    """Return the shorter of the latencies of reads and writes."""
    return min(profile.latency(site or DEFAULT, sku, "none", "home", op).mean_ms for op in ("read", "write"))


def emulator_state(name: str) -> str:
    """Return "running", "kept" (stopped, its state kept), "dead" (killed) or "absent"."""
    return next((row.state for row in lifecycle.status() if row.name == name), "absent")


def own_emulator_name(folder: Path) -> str:
    """Name of the own emulator of the run in a folder.

    Short, since the paths of an emulator's sockets are limited; the folder makes it unique on the machine.
    """
    return "run-" + hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:8]


def emulator_name(run: Run) -> str | None:
    """Name of a run's emulator, None for a run on Azure; a manifest can name none as its own but its own."""
    emulator = run.manifest.get("emulator")
    if emulator is None:
        return None
    return own_emulator_name(run.folder) if emulator["own"] else str(emulator["name"])


def find_leftovers() -> Iterator[Leftover]:
    """Find records first: closing one also removes its emulator."""
    yield from _records()
    yield from _dead_emulators()


def _records() -> Iterator[Leftover]:
    """Runs that were killed and whose own emulator has ended with them: a record of groups, and a key."""
    for run in local_runs():
        manifest = run.manifest
        own = (manifest.get("emulator") or {}).get("own", False)
        name = emulator_name(run) or ""
        if not own or emulator_state(name) == "running" or not has_ended(run):
            continue
        stand = any(not row["deleted_utc"] for row in manifest["resource_groups"])
        if stand or (run.folder / "keys").exists():
            yield Leftover(
                f"key and open record of run {run.name}, which was killed", True, partial(close, run)
            )


def _dead_emulators() -> Iterator[Leftover]:
    users: dict[str | None, list[Run]] = {}
    for run in local_runs():
        users.setdefault(emulator_name(run), []).append(run)
    for row in lifecycle.status():
        if row.state != "dead":
            continue
        needed = [run.name for run in users.get(row.name, []) if not has_ended(run)]
        text = f"emulator {row.name}, which was killed, with its folder {row.folder}"
        remove = partial(_stop, row.name)
        if needed:
            yield Leftover(f"{text}: run {needed[0]} may resume it", False, remove)
        elif row.name not in users and _age_s(row.folder) < expiry.LONGEST_H * 3600:
            yield Leftover(f"{text}: no run here uses it, one elsewhere may", False, remove)
        else:
            yield Leftover(text, True, remove)


def _stop(emulator: str) -> None:
    """Remove a killed emulator, unless that has been done with its run's record."""
    if emulator_state(emulator) == "dead":
        lifecycle.stop(emulator)


def _age_s(state: Path) -> float:
    with contextlib.suppress(OSError):
        return time.time() - (state / folders.CONFIG).stat().st_mtime
    return 0.0
