"""The emulator of a run: start it and stop it, connect to it, and keep the truth that it played.

An emulator that the user named is used and left running.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from diskbook.cloud import connect
from diskbook.cloud.azure.clients import Clients, Cloud, StaticToken
from diskbook.cloud.kinds import Asked, Check, CloudKind, Found, Leftover
from diskbook.design.model import Scenario
from diskbook.design.schedule import Block
from diskbook.design.vocabulary import Provenance
from diskbook.emulated import doctor, leftovers
from diskbook.emulated.state import emulator_name, emulator_state, own_emulator_name
from diskbook.facts.errors import DiskbookError, UsageError
from diskbook.facts.units import epoch
from diskbook.results.run import Run
from diskbook_emulator import fleet_limits, lifecycle, truth
from diskbook_emulator.profile import load_profile

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
        fleet_limits.check(profile, scenario)
        return {
            **settings,
            "hours_between_blocks": profile.noise.hours_between_blocks,
            "metrics_grain_s": profile.metrics_grain_s,
            "own": True,
        }

    def check(self, scenario: Scenario, settings: Mapping[str, Any]) -> None:
        """Refuse fleets that the emulator would distort."""
        fleet_limits.check(load_profile(settings.get("profile") or DEFAULT_PROFILE), scenario)

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
        played = truth.build_truth(lifecycle.read_truth(lifecycle.connect(name)), windows)
        earlier = run.folder / "truth.json"
        if earlier.exists():
            played = truth.merge(json.loads(earlier.read_text("utf-8")), played)
        run.write("truth.json", json.dumps(played, separators=(",", ":")) + "\n")

    def doctor(self, scenario: Scenario, asked: Asked) -> list[Check]:
        """Check what this computer needs."""
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
        """Find records of killed runs, and killed emulators."""
        return leftovers.find()


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


def _window(event: dict[str, Any]) -> truth.TrialWindow:
    started, ended = (epoch(event[key]) for key in ("started_utc", "ended_utc"))
    return truth.TrialWindow(event["trial"], event["machine_id"], event["disk_id"], started, ended)
