"""Play what volumes outlive: members are taken away under a load that is verified, and brought back.

Volumes of one pool lose the same members at the same moment, clusters are played side by side. A drive is
lost when Azure detaches its disk, a node when its power is cut. The load writes one block after another to
each volume, from the cluster's first node, which is never lost; what was acknowledged is read back from it
while the members are away, or, of a volume that is offline, once they are back. A second load runs while what
was missed is copied back. Unverified on Azure.
"""

import contextlib
import json
import secrets
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from diskbook.cloud.azure.attach import Power
from diskbook.cloud.azure.clients import Clients
from diskbook.clusters.design import rules, volume_rules
from diskbook.clusters.measure import loss_record, node_steps, pools
from diskbook.clusters.powershell import steps
from diskbook.design.model import Loss, Scenario
from diskbook.facts.errors import DiskbookError
from diskbook.facts.units import MIB
from diskbook.hosts.ssh_windows import WindowsConnection
from diskbook.measure.bench.rig import Rig
from diskbook.results.run import Run, now_utc

ATTEMPTS = 2
FAILURE = "crash"
"""How a node fails: its power is cut."""
BEFORE_S, DURING_S = 30.0, 30.0
"""For how long the load writes before members are taken away, and once that is noticed."""
LEAST_BEFORE_S, LEAST_DURING_S = 1.8, 1.0  # where waits are scaled: a load must have begun
WAIT_S, LEAST_WAIT_S = 3600.0, 60.0  # at most, for a loss to be noticed, and for all to be whole again
FILE_BYTES = 1024 * MIB
"""Of each file that is written round and round; a volume has two, which take an eighth of it at most."""
PAUSE_S, LEAST_PAUSE_S = 5.0, 0.05  # between two looks at a repair


@dataclass(frozen=True)
class Group:
    """Losses that are one: those of volumes of a pool that lose the same members."""

    pool: pools.Pool
    lost: str
    losses: tuple[Loss, ...]

    @property
    def nodes(self) -> list[str]:
        return self._taken_away.nodes

    @property
    def drives(self) -> dict[str, list[str]]:
        return self._taken_away.disks

    @property
    def _taken_away(self) -> rules.TakenAway:
        return rules.taken_away(self.lost, self.pool.disk, self.pool.nodes)


def remaining(run: Run, scenario: Scenario, origin: int) -> list[Loss]:
    """Losses of a planned replicate that were not played to their end on any machines it was measured on."""
    numbers = {row["replicate"] for row in run.manifest["replicates"] if row["origin"] == origin}
    done = {
        event["name"]
        for event in run.ledger()
        if event["event"] == "loss" and event["status"] == "ok" and event["replicate"] in numbers
    }
    return [loss for loss in scenario.loss if loss.name not in done]


def play(rig: Rig, clients: Clients) -> None:
    """Play the losses that this replicate has not played yet, and record each.

    What fails is recorded with the reason and tried once more; then the next one is played. All members are
    there, and all volumes whole, in the end.

    Raises DiskbookError when that does not come about.
    """
    left = {loss.name for loss in remaining(rig.run, rig.scenario, rig.replicate["origin"])}
    clusters: dict[str, list[Group]] = {}
    for group in groups(rig.scenario):
        losses = tuple(loss for loss in group.losses if loss.name in left)
        if losses:
            clusters.setdefault(group.pool.first, []).append(Group(group.pool, group.lost, losses))
    node_steps.side_by_side(
        (first, partial(_play_all, rig, clients, listed)) for first, listed in clusters.items()
    )


def groups(scenario: Scenario) -> list[Group]:
    """Group the losses of a scenario as they are played."""
    made = {(pool.cluster, pool.disk): pool for pool in pools.of(scenario)}
    played = rules.played_together(scenario)
    return [
        Group(made[cluster, disk], lost, tuple(losses)) for (cluster, disk, lost), losses in played.items()
    ]


def mend(rig: Rig, clients: Clients) -> None:
    """Bring members back that a killed run has left away, before volumes are looked at.

    Raises DiskbookError when they do not come back, or what they missed is not copied back.
    """
    open_losses: dict[tuple[str, str], bool] = {}
    for event in rig.run.ledger():
        if event["event"] == "loss" and event["replicate"] == rig.number:
            open_losses[event["pool"], event["lost"]] = event["status"] == "begun"
    for group in groups(rig.scenario):
        if open_losses.get((group.pool.key, group.lost)):
            _Members(rig, clients, group).bring_back(sought=True)


def _play_all(rig: Rig, clients: Clients, listed: Iterable[Group]) -> None:
    for group in listed:
        for attempt in range(1, ATTEMPTS + 1):
            if rig.stop.is_set():
                return
            if _try(rig, clients, group, attempt):
                break


def _try(rig: Rig, clients: Clients, group: Group, attempt: int) -> bool:
    """Play a loss once and record it; tell whether it was played to its end."""
    about = {"replicate": rig.number, "pool": group.pool.key, "lost": group.lost, "attempt": attempt}
    members = {"nodes": group.nodes, "drives": group.drives}
    names = [loss.name for loss in group.losses]
    rig.run.append("loss", status="begun", name=", ".join(names), members=members, **about)
    played = _Played(rig, clients, group)
    try:
        rows = played.run()
    except DiskbookError as error:
        if played.members.away:
            raise
        for loss in group.losses:
            rig.run.append("loss", status="failed", error=str(error), **about, **played.row(loss))
        return False
    for row in rows:
        rig.run.append("loss", status="ok", error=None, **about, **row)
    return True


class _Members:
    """The members of a group: taken away, noticed, and brought back."""

    def __init__(self, rig: Rig, clients: Clients, group: Group) -> None:
        self.rig, self.group = rig, group
        self.away = False
        self._known: set[str] = set()  # jobs that had ended before the loss
        self._power = Power(clients, rig.run, rig.replicate)
        entries = rig.replicate.get("volumes", {}).values()
        self.volumes = tuple(entry["volume"] for entry in entries if entry["pool"] == group.pool.key)
        self.wait_s = round(max(LEAST_WAIT_S, WAIT_S * rig.time_scale))

    def take_away(self) -> None:
        """Have Azure take them all away, side by side."""
        self.away = True
        rig = self.rig
        actions = [(node, partial(self._power.off, FAILURE, node)) for node in self.group.nodes]
        drives = self.group.drives.items()
        actions += [(node, partial(rig.attachments.detach_all, disks, node)) for node, disks in drives]
        node_steps.side_by_side(actions)

    def noticed(self) -> dict[str, dict[str, Any]]:
        """Wait until the cluster has noticed; return how each volume is."""
        state = [self._step("fail", request) for request in self._requests()][-1]
        return {row["volume"]: row for row in state["health"]}

    def bring_back(self, *, sought: bool = False) -> None:
        """Have Azure bring them back; `sought`: and wait until all volumes are whole again."""
        rig, pool = self.rig, self.group.pool
        specs = {node: pools.specs(rig, pool, node) for node in self.group.drives}
        actions: list[tuple[str, Callable[[], object]]]
        actions = [(node, partial(self._power.on, node)) for node in self.group.nodes]
        actions += [(node, partial(rig.attachments.attach_all, disks, node)) for node, disks in specs.items()]
        node_steps.side_by_side(actions)
        for node in self.group.nodes:
            rig.forget_connections(node)
        rig.owners.clear()
        rig.counted.clear()
        if sought:
            self.restored()

    def settle(self) -> None:
        """Wait until all volumes are whole before a loss, and learn what jobs have ended by then."""
        state, _ = self._until_whole()
        self._known = {row["id"] for row in state.get("ended", [])}

    def restored(self) -> dict[str, float]:
        """Wait until all volumes are whole again; return the bytes copied back, of those that are told.

        Raises DiskbookError when that takes too long, or a member does not come back.
        """
        state, seen = self._until_whole()
        self.away = False
        ended = [row for row in state.get("ended", []) if row["id"] not in self._known]
        return seen | loss_record.bytes_of(ended, "bytes_done", self.volumes)

    def _until_whole(self) -> tuple[dict[str, Any], dict[str, float]]:
        """Ask until all is done; return the last state, and the bytes that jobs on the way had to copy."""
        requests, seen = self._requests(), dict[str, float]()
        until = time.monotonic() + self.wait_s
        state = [self._step("restore", request) for request in requests][-1]
        while not state["done"]:
            seen |= loss_record.bytes_of(state["jobs"], "bytes_total", self.volumes)
            if time.monotonic() > until:
                ill = [row["volume"] for row in state["health"] if row["health"] != "Healthy"]
                raise DiskbookError(
                    f"replicate {self.rig.number}: {', '.join(ill) or 'a repair'} is not whole again "
                    f"{self.wait_s:.0f} s after the loss of {volume_rules.WORDS[self.group.lost]}"
                )
            time.sleep(max(LEAST_PAUSE_S, PAUSE_S * self.rig.time_scale))
            state = self._step("restore", requests[-1])
        return state, seen

    def _requests(self) -> list[steps.Loss]:
        """Name each member as the steps take it."""
        rig, common = self.rig, {"volumes": self.volumes, "wait_s": self.wait_s}
        drives = [rig.replicate["pool_disks"][disk] for disks in self.group.drives.values() for disk in disks]
        asked = [{"kind": "disk", "unique_id": drive["unique_id"]} for drive in drives]
        asked += [{"kind": "node", "node": node_steps.name_of(rig, node)} for node in self.group.nodes]
        return [steps.Loss.model_validate({**common, **each}) for each in asked]

    def _step(self, step: str, request: steps.Loss) -> dict[str, Any]:
        first = self.group.pool.first
        return node_steps.run(self.rig, first, step, request, wait_s=request.wait_s).state


@dataclass
class _Played:
    """One loss of a group, played."""

    rig: Rig
    clients: Clients
    group: Group
    members: _Members = field(init=False)
    marks: dict[str, float] = field(default_factory=dict)  # client's clock, seconds since 1970

    def __post_init__(self) -> None:
        self.members = _Members(self.rig, self.clients, self.group)
        self._tag, self._began_utc = secrets.token_hex(8), now_utc()
        self._entries = [loss_record.entry_of(self.rig, loss) for loss in self.group.losses]
        self._pool = ThreadPoolExecutor(2, thread_name_prefix="loss-writer")
        self._writing: dict[str, Future[Any]] = {}  # calls of the load, by file

    def run(self) -> list[dict[str, Any]]:
        """Play it; return a row for each volume. Whatever happens, members come back."""
        try:
            return self._run()
        finally:
            try:
                self._abandon()
                if self.members.away:
                    self.members.bring_back(sought=True)
            finally:
                self._pool.shutdown()

    def _run(self) -> list[dict[str, Any]]:
        self.members.settle()
        self._write("loss")
        self._pause(BEFORE_S, LEAST_BEFORE_S)
        self._mark("lost")
        self.members.take_away()
        health = self.members.noticed()
        self._mark("noticed")
        self._pause(DURING_S, LEAST_DURING_S)
        online = {name for name, row in health.items() if loss_record.is_online(row)}
        self._mark("ended")
        self._write("resync")
        written = self._read("loss", online)
        self.members.bring_back()
        self._mark("back")
        copied = self.members.restored()
        self._mark("whole")
        beside = self._read("resync", set())
        offline = {entry["volume"] for entry in self._entries} - online
        if offline:
            later = self._read("loss", offline)
            written = {name: later[name] if name in offline else row for name, row in written.items()}
        return self._rows(loss_record.Outcome(self.marks, health, written, beside, copied))

    def _rows(self, outcome: loss_record.Outcome) -> list[dict[str, Any]]:
        kept = self.rig.run.write_raw(
            f"loss-{self.group.pool.key}-{self.group.lost}-r{self.rig.number}-{self._tag[:8]}.json",
            json.dumps(outcome.document(), separators=(",", ":")).encode(),
        )
        names = [entry["volume"] for entry in self._entries]
        return [
            {**self.row(loss), **outcome.row(name), "file": kept}
            for loss, name in zip(self.group.losses, names, strict=True)
        ]

    def row(self, loss: Loss) -> dict[str, Any]:
        """What is known of a loss before it is played."""
        scenario = self.rig.scenario
        volume = scenario.volume_named(loss.volume)
        expected = volume_rules.of_volume(scenario, volume, loss.lost)
        return {
            "name": loss.name,
            "volume": loss.volume,
            "kind": volume.kind,
            "started_utc": self._began_utc,
            "expected_online": "yes" if expected else "no",
        }

    # the load

    def _write(self, file: str) -> None:
        request = self._verify("write", file, {entry["volume"] for entry in self._entries})
        self._writing[file] = self._pool.submit(self._step_beside, request)

    def _read(self, file: str, volumes: set[str]) -> dict[str, dict[str, Any]]:
        """Have the load end, and read back what it wrote to these volumes; return what it did on each."""
        request = self._verify("read" if volumes else "end", file, volumes)
        state = self._step(request)
        skew_s = loss_record.skew_s(state["now_s"], time.time())
        if file in self._writing:
            self._writing.pop(file).result()
        about = {"bin_s": request.bin_s}
        return {
            row["volume"]: {**row, **about, "began_s": row["began_s"] - skew_s} for row in state["volumes"]
        }

    def _abandon(self) -> None:
        """Have loads end that are still there since something failed."""
        for file, writing in self._writing.items():
            with contextlib.suppress(DiskbookError):
                if not writing.done():
                    self._step(self._verify("end", file, set(), wait_s=1))
                writing.result()
        self._writing.clear()

    def _verify(self, action: str, file: str, volumes: set[str], wait_s: int = 0) -> steps.Verify:
        entries = [entry for entry in self._entries if entry["volume"] in volumes]
        smallest = min(int(entry["size_bytes"]) for entry in self._entries)
        block_bytes: int = steps.Verify.model_fields["block_bytes"].default
        return steps.Verify.model_validate(
            {
                "action": action,
                "volumes": [{"name": entry["volume"], "path": entry["path"]} for entry in entries],
                "tag": self._tag,
                "file": file,
                "blocks": min(FILE_BYTES, smallest // 16) // block_bytes,
                "bin_s": 1.0 if self.rig.time_scale >= 1 else 0.1,
                "wait_s": wait_s or self.members.wait_s,
            }
        )

    def _step_beside(self, request: steps.Verify) -> dict[str, Any]:
        """Run a step beside others; a connection that two threads share breaks when either reconnects."""
        with self.rig.new_connection(self.group.pool.first) as connection:
            assert isinstance(connection, WindowsConnection)
            return self._step(request, connection)

    def _step(self, request: steps.Verify, connection: WindowsConnection | None = None) -> dict[str, Any]:
        place = self.rig, self.group.pool.first, "verify"
        return node_steps.run(*place, request, wait_s=request.wait_s, connection=connection).state

    def _pause(self, seconds: float, least_s: float) -> None:
        """Let the load write; raises what it ended with, where it did."""
        until = time.monotonic() + max(least_s, seconds * self.rig.time_scale)
        while time.monotonic() < until:
            for writing in [writing for writing in self._writing.values() if writing.done()]:
                writing.result()
                raise DiskbookError(
                    f"replicate {self.rig.number}: the load on {self.group.pool.first} ended of itself"
                )
            time.sleep(0.05)

    def _mark(self, what: str) -> None:
        self.marks[what] = time.time()
