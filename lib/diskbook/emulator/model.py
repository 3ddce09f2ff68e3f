"""From a profile and a seed to the numbers an attached disk plays. Pure: no I/O, the same draws each time."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from diskbook.base.units import GIB
from diskbook.emulator.profile import DEFAULT, Noise, Profile
from diskbook.emulator.types import Cache, DiskSpec, ExportModel, Latency, Limits, VmSpec
from diskbook.reference import catalog, disk_options

SITE_TAG = "diskbook-site"
CREDIT_TAG = "diskbook-credit-scale"
ZONES = ("1", "2", "3")
TABLE_SECONDS = 3600  # the noise of seconds repeats after an hour
TABLE_TRIALS = 512
VM_CREDIT_S = 30 * 60  # documented: a VM that bursts has credit for 30 minutes
UNKNOWN_CACHE_GIB = 100  # chosen, where Microsoft's tables have no size for a VM's host cache


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

    def population(self, vm: VmSpec, disk: DiskSpec) -> Population:
        """Return what the profile says of this disk from this machine, without noise and without a cache."""
        option, relation = option_of(disk), self.zone_relation(vm, disk)
        site = site_of(vm, disk)
        read, write, flush = (self._latency(vm, disk, op).mean_ms for op in ("read", "write", "flush"))
        return Population(site, option, relation, read, write, flush)

    def export_model(self, vm: VmSpec, disk: DiskSpec, caching: str, attachment: int) -> ExportModel:
        """Return the numbers of a disk attached to a machine.

        Parameters
        ----------
        vm, disk
            The machine and the disk.
        caching
            None, ReadOnly or ReadWrite.
        attachment
            How many times this disk was attached to this machine before.

        Raises
        ------
        RuntimeError
            The profile says nothing about this kind of disk.
        """
        noise = self.profile.noise
        pair = self.entity(vm.id), self.entity(disk.id)
        trials = self._random("trial", *pair, str(attachment)).normal(0.0, 1.0, TABLE_TRIALS)
        return ExportModel(
            read=self._latency(vm, disk, "read"),
            write=self._latency(vm, disk, "write"),
            flush=self._latency(vm, disk, "flush"),
            cache=self._cache(vm, disk, caching),
            log_factor=self.machine_log(vm.id) + self.disk_log(disk.id),
            second_log=_seconds(noise, self.seed, pair[0]),
            trial_log=tuple(float(value) for value in noise.trial * trials) if noise.trial else (0.0,),
        )

    def disk_limits(self, disk: DiskSpec) -> Limits:
        """Return the caps of a disk, one budget over all machines that share it.

        On-demand bursting has no credit: its limits are simply the higher ones. An ephemeral OS disk has
        none of its own: the machine's cached ones hold.
        """
        if disk.sku == catalog.EPHEMERAL:
            return Limits()
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
        return self._scaled(limits, credit_scale(disk))

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
        return self._scaled(uncached, credit_scale(vm)), self._scaled(cached)

    def _latency(self, vm: VmSpec, disk: DiskSpec, op: str) -> Latency:
        relation = self.zone_relation(vm, disk)
        return self.profile.latency(site_of(vm, disk), disk.sku, option_of(disk), relation, op)

    def _cache(self, vm: VmSpec, disk: DiskSpec, caching: str) -> Cache | None:
        size = catalog.vm_size(vm.size)
        if caching == "None" or not size.host_cache:
            return None
        hit = self._latency(vm, disk, "cache-hit")
        return Cache(hit, (size.cache_gib or UNKNOWN_CACHE_GIB) * GIB, writes=caching == "ReadWrite")

    def _scaled(self, limits: Limits, credit: float = 1.0) -> Limits:
        ios, mb = self.profile.caps.iops_factor, self.profile.caps.mb_s_factor
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
def _seconds(noise: Noise, seed: int, machine: str) -> tuple[float, ...]:
    """Draw the noise of every second for a machine: blocks, seconds and drift added.

    Returns
    -------
    tuple of float, shape (TABLE_SECONDS,)
        Logs of the factors; shape (1,) without noise.
    """
    if not (noise.block or noise.second or noise.drift):
        return (0.0,)
    random = _generator(seed, "second", machine)
    total = _blocks(noise, random) + _autoregressive(noise, random) + _drift(noise, random)
    return tuple(float(value) for value in total)


def _blocks(noise: Noise, random: np.random.Generator) -> NDArray[np.float64]:
    """Draw one value each `block_s` and join them by straight lines, so that no trial sees a jump."""
    count = int(np.ceil(TABLE_SECONDS / noise.block_s)) + 1
    knots = random.normal(
        0.0, noise.block * np.sqrt(1.5), count
    )  # the lines have 2/3 of the variance of the knots
    knots[-1] = knots[0]  # the table repeats
    return np.interp(np.arange(TABLE_SECONDS), np.linspace(0, TABLE_SECONDS, count), knots)


def _autoregressive(noise: Noise, random: np.random.Generator) -> NDArray[np.float64]:
    shocks = random.normal(0.0, noise.second, TABLE_SECONDS)
    shocks[1:] *= np.sqrt(1.0 - noise.phi**2)  # the first is a draw from the stationary distribution
    return np.array(list(accumulate(shocks, lambda before, shock: noise.phi * before + shock)))


def _drift(noise: Noise, random: np.random.Generator) -> NDArray[np.float64]:
    """One slow wave an hour with this standard deviation, starting anywhere."""
    angle = 2 * np.pi * (np.arange(TABLE_SECONDS) / TABLE_SECONDS + random.uniform())
    return noise.drift * np.sqrt(2.0) * np.sin(angle)
