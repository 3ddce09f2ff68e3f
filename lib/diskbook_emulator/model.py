"""From a profile and a seed to the numbers an attached disk plays. Pure: no I/O, the same draws each time."""

import hashlib
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import lru_cache

import numpy as np

from diskbook.facts import catalog, disk_options
from diskbook.facts.units import GIB
from diskbook_emulator import noise
from diskbook_emulator.profile import DEFAULT, Noise, Profile, Single
from diskbook_emulator.types import Cache, DiskSpec, ExportModel, Latency, Limits, VmSpec

SITE_TAG = "diskbook-site"
CREDIT_TAG = "diskbook-credit-scale"
DEPTH_TAG = "diskbook-depth"
ZONES = ("1", "2", "3")
TABLE_TRIALS = 512
SLOW_BEFORE = 16  # entities that a slow one may follow from: a memory of 23 % is gone by then
LEAST_OFFSET = -0.5  # of a mean latency: what a fast machine takes off a short one at most; chosen
VM_CREDIT_S = 30 * 60  # documented: a VM that bursts has credit for 30 minutes
UNKNOWN_CACHE_GIB = 100  # chosen, where Microsoft's tables have no size for a VM's host cache
_NUMBER = re.compile(r"\d{1,9}", re.ASCII)


@dataclass(frozen=True)
class Population:
    """What the profile says of a disk seen from a machine: means without any noise, in ms."""

    site: str
    option: str
    zone_relation: str
    read_mean_ms: float
    write_mean_ms: float
    flush_mean_ms: float


@dataclass(frozen=True)
class Model:
    """All that one emulator plays, from its profile and seed.

    Every draw depends on the seed and the entity alone (for a trial also on how often the disk was attached
    to the machine), so order and timing of requests change nothing. `entity` turns an ARM id into what names
    the entity; by default that is the id.
    """

    profile: Profile
    seed: int
    entity: Callable[[str], str] = str.lower

    def home_zone(self, disk: DiskSpec) -> str | None:
        """Return the zone a ZRS disk answers from, None for all other disks."""
        if not disk.sku.endswith("_ZRS"):
            return None
        if self.profile.home_zone is not None:
            return self.profile.home_zone
        return str(self._random("home", self.entity(disk.id)).choice(ZONES))

    def zone_relation(self, vm: VmSpec, disk: DiskSpec) -> str:
        """Return "home", "other-a" (the VM is one zone after the disk's home, cyclically) or "other-b" (two).

        A VM without a zone counts as being at home.
        """
        home = self.home_zone(disk)
        if home is None or vm.zone is None:
            return "home"
        return ("home", "other-a", "other-b")[(int(vm.zone) - int(home)) % 3]

    def machine_log(self, vm_id: str) -> float:
        """Return the constant of a machine: latencies are multiplied by its exponential."""
        return self._constant("machine", vm_id, self.profile.noise.machine)

    def disk_log(self, disk_id: str) -> float:
        """Return the constant of a disk: latencies are multiplied by its exponential."""
        return self._constant("disk", disk_id, self.profile.noise.disk)

    def machine_us(self, vm_id: str) -> float:
        """Return the microseconds that a machine adds to every latency."""
        return self._constant("machine us", vm_id, self.profile.noise.machine_us)

    def machine_moves(self, vm_id: str, blocks: int) -> list[float]:
        """Return the slow moves common to the disks of a machine, at the beginning of each block."""
        return self._moves("machine moves", vm_id, blocks, self.profile.noise.shared)

    def disk_moves(self, disk_id: str, blocks: int) -> list[float]:
        """Return a disk's own slow moves, at the beginning of each block."""
        return self._moves("disk moves", disk_id, blocks, 1 - self.profile.noise.shared)

    def slow_machine_log(self, vm_id: str) -> float:
        """Return how much slower all of a machine's pairs are than others of their kind: mostly 0."""
        return self._slow("slow machine", vm_id, self.profile.noise.shared)

    def slow_disk_log(self, disk_id: str) -> float:
        """Return how much slower a disk is than others of its kind: mostly 0."""
        return self._slow("slow disk", disk_id, 1 - self.profile.noise.shared)

    def credit_share(self, vm_id: str) -> float:
        """Return the share of its burst credit that a fresh machine begins with."""
        return noise.credit_share(self.profile.noise, self._random("credit", self.entity(vm_id)))

    def pair_log(self, vm_id: str, disk_id: str) -> float:
        """Return the constant of a disk at a machine: latencies are multiplied by its exponential."""
        machine = self.machine_log(vm_id) + self.slow_machine_log(vm_id)
        return machine + self.disk_log(disk_id) + self.slow_disk_log(disk_id)

    def offset_ms(self, vm_id: str, mean_ms: float) -> float:
        """Return what a machine adds to a latency of this mean."""
        return max(self.machine_us(vm_id) / 1000, LEAST_OFFSET * mean_ms)

    def population(self, vm: VmSpec, disk: DiskSpec) -> Population:
        """Return what the profile says of this disk from this machine, without noise and without a cache."""
        option, relation = option_of(disk), self.zone_relation(vm, disk)
        site = site_of(vm, disk)
        read, write, flush = (self._latency(vm, disk, op).mean_ms for op in ("read", "write", "flush"))
        return Population(site, option, relation, read, write, flush)

    def export_model(
        self, vm: VmSpec, disk: DiskSpec, caching: str, attachment: int, block: int = 1
    ) -> ExportModel:
        """Return the numbers of a disk attached to a machine.

        - `caching`: none, ReadOnly or ReadWrite.
        - `attachment`: how many times this disk was attached to this machine before.
        - `block`: block of the run, from 1: where the noise clock stands.

        Raises RuntimeError: the profile says nothing about this kind of disk.
        """
        moved = self.machine_moves(vm.id, block)[-1] + self.disk_moves(disk.id, block)[-1]
        return ExportModel(
            read=self._latency(vm, disk, "read"),
            write=self._latency(vm, disk, "write"),
            flush=self._latency(vm, disk, "flush"),
            cache=self._cache(vm, disk, caching),
            log_factor=self.pair_log(vm.id, disk.id) + moved,
            second_log=self.second_log(vm.id, disk.id, block),
            trial_log=self._trials(self.entity(vm.id), self.entity(disk.id), str(attachment)),
        )

    def second_log(self, vm_id: str, disk_id: str, block: int) -> tuple[float, ...]:
        """Return what a disk at a machine plays in every second: noise, and what is planted in it.

        Noise is the machine's share, and the disk's own.

        Returns logs of the factors; shape (1,) where nothing varies.
        """
        levels, planted = self.profile.noise, _planted_seconds(self._single(disk_id))
        if not (levels.block or levels.second or levels.drift):
            return tuple(planted.tolist())
        clock = (str(block),) if levels.hours_between_blocks else ()
        names = ("second", self.entity(vm_id)), ("disk second", self.entity(disk_id))
        machine, own = (_seconds(levels, self.seed, *name, *clock) for name in names)
        both = math.sqrt(levels.shared) * machine + math.sqrt(1 - levels.shared) * own
        return tuple((both + planted).tolist())

    def fresh(self, export: ExportModel, sku: str, attached_at: float) -> ExportModel:
        """Return what a disk attached at a time (`time.monotonic()`) plays: slow at first, where planted."""
        planted = self.profile.attach
        if planted.sku not in (None, sku):
            return export
        until = attached_at + planted.slow_s
        return replace(export, fresh_log=math.log(planted.factor), fresh_until_s=until)

    def disk_limits(self, disk: DiskSpec) -> Limits:
        """Return the caps of a disk, one budget over all machines that share it.

        On-demand bursting has no credit: its limits are simply the higher ones. An ephemeral OS disk has
        none of its own: the machine's cached ones hold. What is planted in a site holds for its disks.
        """
        if disk.sku == catalog.EPHEMERAL:
            return Limits()
        planted = self.profile.drives.get(disk.tags.get(SITE_TAG, DEFAULT))
        if planted is not None:
            return self._scaled(Limits(planted.iops, planted.mb_s))
        own = self._single(disk.id).caps_factor
        documented = disk_options.limits(disk, disk.tier)
        limits = Limits(documented.iops, documented.mb_s)
        if documented.burst_iops is not None and documented.burst_mb_s is not None:
            if documented.credit_ios or documented.credit_mb:
                burst = replace(limits, burst_iops=documented.burst_iops, burst_mb_s=documented.burst_mb_s)
                limits = replace(burst, credit_ios=documented.credit_ios, credit_mb=documented.credit_mb)
            else:
                limits = Limits(
                    max(documented.iops, documented.burst_iops), max(documented.mb_s, documented.burst_mb_s)
                )
        return self._scaled(limits, credit_scale(disk), own)

    def vm_limits(self, vm: VmSpec) -> tuple[Limits, Limits]:
        """Return the caps of a machine's two paths: uncached (with burst) and cached."""
        size = catalog.vm_size(vm.size)
        uncached = Limits(size.uncached_iops, size.uncached_mb_s)
        if size.uncached_burst_iops is not None and size.uncached_burst_mb_s is not None:
            uncached = replace(
                uncached,
                burst_iops=size.uncached_burst_iops,
                burst_mb_s=size.uncached_burst_mb_s,
                credit_ios=(size.uncached_burst_iops - size.uncached_iops) * VM_CREDIT_S,
                credit_mb=(size.uncached_burst_mb_s - size.uncached_mb_s) * VM_CREDIT_S,
            )
        cached = Limits(size.cached_iops, size.cached_mb_s)
        credit = credit_scale(vm) * self.credit_share(vm.id)
        return self._scaled(uncached, credit), self._scaled(cached)

    def network_limits(self) -> tuple[Limits | None, Limits | None]:
        """Return the caps of what a machine sends, and of what it receives; None where there is none."""
        volumes = self.profile.volumes
        out, into = (Limits(mb_s=cap) if cap else None for cap in (volumes.nic_out_mb_s, volumes.nic_in_mb_s))
        return out, into

    def trials_of_volume(self, vm_id: str, volume_id: str) -> tuple[float, ...]:
        return self._trials(self.entity(vm_id), self.entity(volume_id), "0")

    def _latency(self, vm: VmSpec, disk: DiskSpec, op: str) -> Latency:
        relation = self.zone_relation(vm, disk)
        latency = self.profile.latency(site_of(vm, disk), disk.sku, option_of(disk), relation, op)
        return replace(latency, offset_ms=self.offset_ms(vm.id, latency.mean_ms))

    def _cache(self, vm: VmSpec, disk: DiskSpec, caching: str) -> Cache | None:
        size = catalog.vm_size(vm.size)
        if caching == "None" or not size.host_cache:
            return None
        hit = self._latency(vm, disk, "cache-hit")
        return Cache(hit, (size.cache_gib or UNKNOWN_CACHE_GIB) * GIB, writes=caching == "ReadWrite")

    def _single(self, disk_id: str) -> Single:
        """What is planted in a disk by its name."""
        name = disk_id.rpartition("/")[2].lower()
        return next(
            (of for pattern, of in self.profile.disks.items() if fnmatchcase(name, pattern)), Single()
        )

    def _scaled(self, limits: Limits, credit: float = 1.0, factor: float | None = None) -> Limits:
        """Limits in force: nominal ones times the profile's factors, or times one in their place."""
        caps = self.profile.caps
        ios, mb = (caps.iops_factor, caps.mb_s_factor) if factor is None else (factor, factor)
        return Limits(
            iops=_times(limits.iops, ios),
            mb_s=_times(limits.mb_s, mb),
            burst_iops=_times(limits.burst_iops, ios),
            burst_mb_s=_times(limits.burst_mb_s, mb),
            credit_ios=limits.credit_ios * ios * credit,
            credit_mb=limits.credit_mb * mb * credit,
        )

    def _random(self, *names: str) -> np.random.Generator:
        return _generator(self.seed, *names)

    def _constant(self, kind: str, arm_id: str, deviation: float) -> float:
        return float(deviation * self._random(kind, self.entity(arm_id)).normal()) if deviation else 0.0

    def _moves(self, kind: str, arm_id: str, blocks: int, share: float) -> list[float]:
        levels = self.profile.noise
        if not (levels.wander or levels.shifts_a_month):
            return [0.0] * blocks
        random = self._random(kind, self.entity(arm_id))
        drawn: list[float] = noise.moves(levels, share, random, (blocks,)).tolist()
        return drawn

    def _slow(self, kind: str, arm_id: str, share: float) -> float:
        """Draw whether an entity is slow; the next one, named alike but for its number, may be too."""
        levels = self.profile.noise
        if not levels.slow_pairs:
            return 0.0
        name, number = _succession(self.entity(arm_id))
        places = range(max(0, number - SLOW_BEFORE), number + 1)
        chances = [self._random(kind, name, str(place)).random() for place in places]
        return float(noise.slow(levels, share, np.array(chances))[-1])

    def _trials(self, *names: str) -> tuple[float, ...]:
        levels = self.profile.noise
        if not (levels.trial or levels.slow_runs):
            return (0.0,)
        usual = levels.trial * self._random("trial", *names).normal(0.0, 1.0, TABLE_TRIALS)
        slow = noise.slow_runs(levels, self._random("slow run", *names), (TABLE_TRIALS,))
        return tuple((usual + slow).tolist())


def site_of(vm: VmSpec, disk: DiskSpec) -> str:
    """Return the article's site from the tags of the disk or the machine."""
    return disk.tags.get(SITE_TAG) or vm.tags.get(SITE_TAG) or DEFAULT


def credit_scale(thing: VmSpec | DiskSpec) -> float:
    """Return the share of Azure's burst bucket that a machine or disk has, from its tags."""
    return float(thing.tags.get(CREDIT_TAG, 1.0))


def option_of(disk: DiskSpec) -> str:
    """Return the options of a disk as profiles name them."""
    options = [
        name for name, on in (("bursting", disk.bursting), ("performance-plus", disk.performance_plus)) if on
    ]
    return "+".join(options) or "none"


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def _generator(seed: int, *names: str) -> np.random.Generator:
    text = "\n".join((str(seed), *names))
    return np.random.default_rng(int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "big"))


@lru_cache(maxsize=256)
def _seconds(levels: Noise, seed: int, *names: str) -> noise.Array:
    """Draw the noise of every second of a machine or disk, in a block of its run; shape (TABLE_SECONDS,)."""
    return noise.seconds(levels, _generator(seed, *names))


def _planted_seconds(planted: Single) -> noise.Array:
    """Logs of what is planted in each second; shape (TABLE_SECONDS,), or (1,) for nothing."""
    if not (planted.rise_a_minute or planted.stall_every_s):
        return np.zeros(1)
    second = np.arange(noise.TABLE_SECONDS)
    rise: noise.Array = math.log1p(planted.rise_a_minute) * second / 60
    stalls = second % planted.stall_every_s == 0 if planted.stall_every_s else second < 0
    return rise + np.where(stalls, math.log(planted.stall_factor), 0.0)


def _succession(entity: str) -> tuple[str, int]:
    """Split the name of an entity at its first number: `r2-zrs` is the second of `r-zrs`."""
    path, _, name = entity.rpartition("/")
    number = _NUMBER.search(name)
    if number is None:
        return entity, 0
    return f"{path}/{name[: number.start()]}{name[number.end() :]}", int(number[0])
