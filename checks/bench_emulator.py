"""Check the emulated disk against its set points with real fio: `python -m checks.bench_emulator`.

Prints a row a set point: measured (median of the trials), error, limit, verdict. A row that misses its limit
while others used more than 0.3 of a core is marked "machine busy": it says nothing about the emulator.

Two cores do not hold every figure; such a row is marked "two cores" up to the error that they are known for.
A cap of 40,000 IOPS leaves fio and nbdkit 50 us of processor time per I/O. With 40 I/Os in flight each late
wake-up leaves the disk without work for longer than it can make up for. A fleet of 28 machines is 280 threads
of fio. They begin when a core is free for them, and each notices the end of the warm-up when one of its own
I/Os ends, of which it has 43 per second. So the machines measure at times that lie up to 0.6 s apart, and
those that measure while others do not get more than their share.
"""

import argparse
import fnmatch
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from checks.bench_emulator_fleet import fleet_values
from checks.bench_emulator_rig import OtherCpu, Rig, run_fio, run_fio_together
from diskbook.facts.errors import DiskbookError
from diskbook.facts.units import GIB, MB
from diskbook.tools.record import Direction, Measurement
from diskbook_emulator.disk import Server
from diskbook_emulator.layout_file import Hop
from diskbook_emulator.types import Cache, Latency, Limits
from diskbook_emulator.volumes import SLAB_BYTES, expected_write_ms

TRIALS = 3
BUSY_CORES = 0.3
FEW_CORES = 2
FAST = Latency(0.2, 0.3)  # where a cap is what matters
FAST_IOPS, FEW_IN_FLIGHT = 20_000, 64
"""Caps above the one, and depths below the other, of which two cores may miss 4 %."""

Values = list[float]
Trial = Callable[[], Values]


@dataclass(frozen=True)
class Target:
    """A set point. The measured value may be off by `relative` of it plus `absolute`; `least`, `most`: or
    any amount higher, or lower. Two cores may make an error of `two_cores`, in the target's unit."""

    label: str
    set_point: float
    unit: str
    relative: float
    absolute: float = 0.0
    least: bool = False
    most: bool = False
    two_cores: float = 0.0

    @property
    def limit(self) -> float:
        """Largest error allowed, in the target's unit."""
        return self.relative * self.set_point + self.absolute


@dataclass(frozen=True)
class Check:
    """Targets measured together. `prepare` sets the disks up and returns what makes one trial."""

    targets: tuple[Target, ...]
    prepare: Callable[[Rig], Trial]


@dataclass(frozen=True)
class Row:
    """A target and what the trials gave."""

    target: Target
    measured: float
    other_cores: float

    @property
    def error(self) -> float:
        """Measured less set point."""
        return self.measured - self.target.set_point

    @property
    def verdict(self) -> str:
        """`ok`, `MISSED`, `two cores` where these are the reason, or `machine busy` where others may be."""
        open_side = (self.target.least and self.error > 0) or (self.target.most and self.error < 0)
        if abs(self.error) <= self.target.limit or open_side:
            return "ok"
        if (os.cpu_count() or 1) <= FEW_CORES and abs(self.error) <= self.target.two_cores:
            return "two cores"
        return "machine busy" if self.other_cores > BUSY_CORES else "MISSED"


# ---- one fio run -----------------------------------------------------------------------------------------


def _timed(runtime_s: float, ramp_s: float = 0.0) -> list[str]:
    """Options for a time; in ms, since fio cuts fractions of seconds off.

    After a ramp fio leaves out the I/Os then in flight, so a rate comes out low by depth / I/Os; the emulated
    disk needs no ramp.
    """
    times = [f"--runtime={1e3 * runtime_s:.0f}ms", f"--ramp_time={1e3 * ramp_s:.0f}ms"]
    return ["--time_based", *times, "--norandommap"]


def _load(direction: str, block: str, jobs: int, depth: int) -> list[str]:
    return [f"--rw=rand{direction}", f"--bs={block}", f"--numjobs={jobs}", f"--iodepth={depth}"]


def _only(result: Measurement) -> Direction:
    (direction,) = result.directions.values()
    return direction


def _rates(exports: Sequence[Server], block_kib: int, unit: str, options: list[str]) -> Values:
    """Rates of the exports, measured at the same time."""
    scale = block_kib * 1024 / MB if unit == "MB/s" else 1.0
    return [_only(result).iops * scale for result in run_fio(exports, *options)]


# ---- the checks ------------------------------------------------------------------------------------------


def _latency_check(mean_ms: float, direction: str) -> Check:
    def prepare(rig: Rig) -> Trial:
        disk = rig.disk(Latency(mean_ms, 0.2))
        options = [*_load(direction, "4k", 1, 1), *_timed(1.2)]
        return lambda: [_only(run_fio([disk], *options)[0]).lat_mean_ms]

    return Check((Target(f"{direction} latency, depth 1", mean_ms, "ms", 0.03, 0.08),), prepare)


def _cap(unit: str, value: float) -> Limits:
    return Limits(iops=value) if unit == "IOPS" else Limits(mb_s=value)


def _cap_check(value: float, unit: str, jobs: int, depth: int, relative: float, disks: int = 1) -> Check:
    block_kib = 4 if unit == "IOPS" else 128
    load = f"cap, {jobs} x {depth}, {block_kib}K read"
    if disks == 1:
        labels = [load]
    else:
        labels = [f"{load}, disk {number} of {disks} at once" for number in range(1, disks + 1)]

    def prepare(rig: Rig) -> Trial:
        exports = [rig.disk(FAST, _cap(unit, value), data="ab"[number]) for number in range(disks)]
        options = [*_load("read", f"{block_kib}k", jobs, depth), *_timed(2.5)]
        return lambda: _rates(exports, block_kib, unit, options)

    two_cores = 0.04 * value if value > FAST_IOPS and jobs * depth < FEW_IN_FLIGHT else 0.0
    return Check(
        tuple(Target(label, value, unit, relative, two_cores=two_cores) for label in labels), prepare
    )


def _credit_check() -> Check:
    """Measure before the credit is used up, throughout, and after."""
    base, burst, credit = 500, 2000, 1500  # lasts 1 s
    limits = Limits(iops=base, burst_iops=burst, credit_ios=credit)
    load = _load("read", "4k", 1, 4)

    def prepare(rig: Rig) -> Trial:
        def with_full_credit(timed: list[str]) -> Direction:
            disk = rig.disk(FAST, limits)
            result = _only(run_fio([disk], *load, *timed)[0])
            disk.stop()
            return result

        def trial() -> Values:
            peak = with_full_credit(_timed(0.6)).iops
            whole = with_full_credit(_timed(2.0))
            after = with_full_credit(_timed(1.5, 1.5)).iops
            return [peak, whole.ios - base * whole.runtime_ms / 1e3, after]

        return trial

    return Check(
        (
            Target("burst while credit lasts", burst, "IOPS", 0.02),
            Target("I/Os beyond the base rate: the credit", credit, "I/Os", 0.02),
            Target("base rate when credit is used up", base, "IOPS", 0.02),
        ),
        prepare,
    )


def _vm_cap_check() -> Check:
    vm_iops = 3000

    def prepare(rig: Rig) -> Trial:
        vm = rig.limits(Limits(iops=vm_iops))
        exports = [rig.disk(FAST, Limits(iops=5000), data=data, vm_uncached=vm) for data in "ab"]
        options = [*_load("read", "4k", 1, 32), *_timed(2.5)]

        def trial() -> Values:
            together = _only(run_fio_together(exports, *options)).iops
            first, second = (export.sessions()[-1].reads for export in exports)
            return [together, first / (first + second)]

        return trial

    targets = (
        Target("VM cap over two disks, together", vm_iops, "IOPS", 0.01),
        Target("VM cap over two disks, share of the first", 0.5, "", 0.05),
    )
    return Check(targets, prepare)


def _cache_check() -> Check:
    cap, hit_ms = 5000, 0.3

    def prepare(rig: Rig) -> Trial:
        cached = rig.limits(Limits(iops=cap))
        cache = Cache(Latency(hit_ms, 0.2), size_bytes=GIB)
        disk = rig.disk(Latency(2.2, 0.3), Limits(iops=500), cache=cache, vm_cached=cached)
        small = ["--size=16m"]
        run_fio([disk], "--rw=read", "--bs=1m", "--iodepth=16", *small)

        def trial() -> Values:
            alone = _only(run_fio([disk], *_load("read", "4k", 1, 1), *_timed(1.2), *small)[0])
            many = _only(run_fio([disk], *_load("read", "4k", 1, 16), *_timed(1.5), *small)[0])
            return [alone.lat_mean_ms, many.iops]

        return trial

    targets = (
        Target("cached read latency, depth 1", hit_ms, "ms", 0.03, 0.08),
        Target("VM's cached cap (disk's is 500)", cap, "IOPS", 0.01),
    )
    return Check(targets, prepare)


def _parallelism_check() -> Check:
    servers, mean_ms = 4, 2.0

    def prepare(rig: Rig) -> Trial:
        disk = rig.disk(Latency(mean_ms, 0.0, servers))

        def trial() -> Values:
            alone = _only(run_fio([disk], *_load("read", "4k", 1, 1), *_timed(1.2))[0])
            many = _only(run_fio([disk], *_load("read", "4k", 1, 32), *_timed(2.0))[0])
            return [alone.lat_mean_ms, many.iops]

        return trial

    targets = (
        Target(f"{servers} internal servers: latency, depth 1", mean_ms, "ms", 0.03, 0.08),
        Target(f"{servers} internal servers: rate, depth 32", servers / mean_ms * 1e3, "IOPS", 0.02),
    )
    return Check(targets, prepare)


# ---- volumes of four disks a node ------------------------------------------------------------------------

P30 = Limits(iops=5100, mb_s=204)  # caps are seen about 2 % above nominal
L16S = Limits(iops=20_400, mb_s=510)
P30_LATENCY = Latency(4.03, 0.2)


def _volume_write_latency_check() -> Check:
    hop = Hop(0.2)
    mean_ms = expected_write_ms([P30_LATENCY.mean_ms] * 3, P30_LATENCY.sigma, [0.0, hop.mean_ms, hop.mean_ms])

    def prepare(rig: Rig) -> Trial:
        _, server = rig.volume("three-way", 3, P30_LATENCY, P30, vm=L16S, hop=hop)
        options = [*_load("write", "4k", 1, 1), *_timed(2.5)]
        return lambda: [_only(run_fio([server], *options)[0]).lat_mean_ms]

    return Check((Target("volume, write, depth 1: slowest of 3", mean_ms, "ms", 0.03, 0.08),), prepare)


def _volume_speed_check() -> Check:
    def prepare(rig: Rig) -> Trial:
        _, server = rig.volume("three-way", 3, P30_LATENCY, P30, vm=L16S)
        small = [*_load("write", "4k", 18, 8), *_timed(2.5)]
        large = [*_load("write", "64k", 18, 8), *_timed(2.5)]
        return lambda: [*_rates([server], 4, "IOPS", small), *_rates([server], 64, "MB/s", large)]

    targets = (
        Target("volume, 18 x 8, 4K write: at least", 19_000, "IOPS", 0.0, least=True),
        Target("volume, 18 x 8, 64K write: at least", 500, "MB/s", 0.0, least=True),
    )
    return Check(targets, prepare)


def _volume_read_check(local_share: float) -> Check:
    """Reads that a node answers are capped by its VM: so a plateau tells the local share."""
    vm_iops = 5000.0
    plateau = vm_iops / max(local_share, (1 - local_share) / 2)

    def prepare(rig: Rig) -> Trial:
        _, server = rig.volume("three-way", 3, FAST, vm=Limits(iops=vm_iops), local_share=local_share)
        options = [*_load("read", "4k", 16, 8), *_timed(2.5)]
        return lambda: _rates([server], 4, "IOPS", options)

    return Check((Target(f"volume, reads, {local_share:.2g} local", plateau, "IOPS", 0.01),), prepare)


def _volume_copies_check(kind: str, nodes: int, ios: int) -> Check:
    """At saturation the VMs carry every disk I/O of a write, `ios` on each node."""
    vm_iops = 4000.0

    def prepare(rig: Rig) -> Trial:
        _, server = rig.volume(kind, nodes, FAST, vm=Limits(iops=vm_iops))
        # Behind what the prefill left in the mirror, where writes are in place.
        options = [*_load("write", "4k", 8, 8), *_timed(2.5), "--offset=64m"]
        return lambda: _rates([server], 4, "IOPS", options)

    return Check((Target(f"volume, {kind}: writes", vm_iops / ios, "IOPS", 0.01),), prepare)


def _volume_repair_check() -> Check:
    """A node that was away is copied back: what was written meanwhile, as fast as its disks let it."""
    limits = Limits(mb_s=20.0)
    written_mib = 128

    def prepare(rig: Rig) -> Trial:
        volume, server = rig.volume("three-way", 3, FAST, limits)

        def trial() -> Values:
            volume.lose(nodes=[2])
            run_fio([server], "--rw=write", "--bs=1m", f"--size={written_mib}m", unthrottled=True)
            began, dirty = time.monotonic(), volume.file.dirty_bytes()
            volume.bring_back(nodes=[2])
            while volume.repaired() < 1:
                time.sleep(0.005)
            return [dirty / MB / (time.monotonic() - began), dirty / SLAB_BYTES]

        return trial

    targets = (
        Target("volume, repair of a node (4 disks)", 4 * 20.0, "MB/s", 0.1),
        Target("volume, slabs copied back", written_mib / 4, "", 0.0),
    )
    return Check(targets, prepare)


# ---- fleets: many machines at once on two nodes of four drives ------------------------------------------

FLEET = "fleet, 28 x 10 x 8"
DRIVE = Limits(iops=1500)  # 8 of them are as much as two cores play without favouring machines
FLEET_LINE = "-b4K -t10 -o8 -r4K -w{write} -z1 -Sh -W1 -d4 -L -Rxml"


def _fleet_check() -> Check:
    """Reads of 28 machines; two volumes, each read from the node that serves it."""

    def prepare(rig: Rig) -> Trial:
        servers = rig.pool("two-way", FAST, DRIVE)
        return lambda: fleet_values(rig.folder, servers, FLEET_LINE.format(write=0), 14)

    targets = (
        Target(f"{FLEET}: reads", 8 * 1500, "IOPS", 0.02, two_cores=0.05 * 8 * 1500),
        Target(f"{FLEET}: cv of machines, at most", 0.05, "", 0.0, most=True, two_cores=0.1),
        Target(f"{FLEET}: common window, at least", 0.95, "", 0.0, least=True, two_cores=0.15),
        Target(f"{FLEET}: starts, at most", 2.5, "s", 0.0, most=True),
        Target(f"{FLEET}: ends, at most", 2.5, "s", 0.0, most=True),
    )
    return Check(targets, prepare)


def _fleet_ratio_check(kind: str, ratio: float) -> Check:
    """Saturated writes of 8 machines against those of a two-way mirror on drives alike."""

    def prepare(rig: Rig) -> Trial:
        base, own = (rig.pool(name, FAST, DRIVE) for name in ("two-way", kind))
        # Behind what the prefill left in the mirror, where writes are in place.
        line = FLEET_LINE.format(write=100) + " -B64M"

        def trial() -> Values:
            of_base, of_kind = (fleet_values(rig.folder, servers, line, 4)[0] for servers in (base, own))
            return [of_kind / of_base]

        return trial

    return Check((Target(f"fleet, 8 x 10 x 8: writes, {kind} / two-way", ratio, "", 0.0, 0.01),), prepare)


def _fleet_checks() -> Iterator[Check]:
    yield _fleet_check()
    yield _fleet_ratio_check("nested-mirror", 0.5)
    yield _fleet_ratio_check("nested-parity", 0.25)


def _volume_checks() -> Iterator[Check]:
    yield _volume_write_latency_check()
    yield _volume_speed_check()
    for share in (1.0, 0.6, 1 / 3):
        yield _volume_read_check(share)
    yield _volume_copies_check("two-way", 2, 1)
    yield _volume_copies_check("nested-mirror", 2, 2)
    yield _volume_copies_check("nested-parity", 2, 4)
    yield _volume_repair_check()


def checks() -> Iterator[Check]:
    """Yield every check, the table's order."""
    for mean_ms in (0.35, 1.3, 2.2, 4.8):
        yield _latency_check(mean_ms, "read")
        yield _latency_check(mean_ms, "write")
    yield _cap_check(500, "IOPS", 1, 32, 0.01)
    yield _cap_check(5000, "IOPS", 1, 64, 0.01)
    yield _cap_check(25, "MB/s", 1, 32, 0.01)
    yield _cap_check(200, "MB/s", 1, 32, 0.01)
    for depth in (64, 5):
        yield _cap_check(20_000, "IOPS", 8, depth, 0.02)
        yield _cap_check(40_000, "IOPS", 8, depth, 0.02)
        yield _cap_check(800, "MB/s", 8, depth, 0.02)
    yield _cap_check(5000, "IOPS", 1, 64, 0.01, disks=2)
    yield _cap_check(200, "MB/s", 1, 32, 0.01, disks=2)
    yield _credit_check()
    yield _vm_cap_check()
    yield _cache_check()
    yield _parallelism_check()
    yield from _volume_checks()
    yield from _fleet_checks()


# ---- the run ---------------------------------------------------------------------------------------------


def measure(check: Check, rig: Rig, trials: int) -> list[Row]:
    """Make the trials of a check and take medians, of the quiet trials where there are any."""
    trial = check.prepare(rig)
    made: list[tuple[float, Values]] = []
    for _ in range(trials):
        with OtherCpu() as other:
            values = trial()
        made.append((other.cores, values))
    used = [attempt for attempt in made if attempt[0] <= BUSY_CORES] or made
    cores = statistics.median(cores for cores, _ in used)
    return [
        Row(target, statistics.median(values[column] for _, values in used), cores)
        for column, target in enumerate(check.targets)
    ]


def _line(row: Row) -> str:
    target = row.target
    return (
        f"{target.label:<46} {target.set_point:>9,.6g} {row.measured:>10,.5g} {target.unit:<5}"
        f"{row.error / target.set_point:>+8.2%} {target.limit / target.set_point:>7.2%}"
        f"{row.other_cores:>7.2f}  {row.verdict}"
    )


HEADER = (
    f"{'emulated disk':<46} {'set point':>9} {'measured':>10} {'unit':<5}"
    f"{'error':>8} {'limit':>7}{'others':>7}  verdict"
)


def _selected(pattern: str | None) -> list[Check]:
    return [
        check
        for check in checks()
        if pattern is None
        or any(fnmatch.fnmatch(f"{t.label} {t.set_point:g} {t.unit}", f"*{pattern}*") for t in check.targets)
    ]


def _run(pattern: str | None, trials: int) -> list[Row]:
    selected = _selected(pattern)
    rows: list[Row] = []
    print(f"{len(selected)} checks, median of {trials} trials; others: cores used by others meanwhile")
    print(HEADER, flush=True)
    with tempfile.TemporaryDirectory(prefix="diskbench-") as folder:
        rig = Rig(Path(folder))
        for number, check in enumerate(selected, 1):
            print(f"[{number}/{len(selected)}] {check.targets[0].label} ...", file=sys.stderr, flush=True)
            with rig:
                new = measure(check, rig, trials)
            rows += new
            for row in new:
                print(_line(row), flush=True)
    return rows


def main(arguments: list[str] | None = None) -> int:
    """Run the checks; return 1 when one is missed, 2 when it cannot be run."""
    parser = argparse.ArgumentParser(
        prog="python -m checks.bench_emulator", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--only", metavar="PATTERN", help="checks whose label, set point and unit match")
    parser.add_argument("--trials", type=int, default=TRIALS)
    options = parser.parse_args(arguments)
    try:
        rows = _run(options.only, options.trials)
    except DiskbookError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    verdicts = [row.verdict for row in rows]
    counts = [verdicts.count(verdict) for verdict in ("ok", "MISSED", "two cores", "machine busy")]
    print("{} ok, {} missed, {} beyond two cores, {} not judged (machine busy)".format(*counts))
    return 1 if counts[1] else 0


if __name__ == "__main__":
    sys.exit(main())
