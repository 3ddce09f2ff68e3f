"""The emulated volume: real nbdkit, real fio, copies on the files of its disks."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from checks.bench_emulator_rig import run_fio
from diskbook.facts import paths
from diskbook.facts.errors import DiskbookError
from diskbook.facts.units import MIB
from diskbook.tools.record import Direction
from diskbook_emulator.disk import LimitsFile, build_plugin
from diskbook_emulator.layout_file import MemberModel, NodeModel, VolumeModel
from diskbook_emulator.types import ExportModel, Latency, Limits
from diskbook_emulator.volume_host import VOLUME_SOURCE, Volume, VolumeServer
from diskbook_emulator.volumes import SLAB_BYTES, arrange
from support.disturbance import load_sensitive
from support.emulated import soon

pytestmark = pytest.mark.emulator

FAST = Latency(0.1, 0.2)
# Disks a node, nodes, sizes in GiB, columns.
KINDS: dict[str, tuple[int, int, list[float], int]] = {
    "simple": (4, 1, [0.1], 4),
    "two-way": (4, 2, [0.1], 4),
    "three-way": (4, 3, [0.1], 4),
    "nested-mirror": (4, 2, [0.1], 2),
    "nested-parity": (4, 2, [0.015, 0.1], 2),
}


@dataclass
class Made:
    """A volume in a folder, and how to serve it."""

    volume: Volume
    folder: Path
    plugin: Path
    running: contextlib.ExitStack
    servers: list[VolumeServer] = field(default_factory=list)

    def serve(self, node: int = 0) -> VolumeServer:
        number = len(self.servers)
        server = VolumeServer(
            self.folder / f"{number}.sock",
            self.plugin,
            self.folder / f"w{number}",
            self.volume.file.path,
            node,
        )
        self.running.callback(server.stop)
        server.start()
        self.servers.append(server)
        return server

    def slab(self, member: int, slab: int) -> bytes:
        with self.volume.model.members[member].backing.open("rb") as file:
            file.seek(slab * SLAB_BYTES)
            return file.read(SLAB_BYTES)

    def repaired(self, limit_s: float = 120.0) -> float:
        """Wait until all is clean; return how long it took."""
        began = time.monotonic()
        while self.volume.repaired() < 1:
            assert time.monotonic() < began + limit_s, self.volume.file.counts()
            time.sleep(0.02)
        return time.monotonic() - began


@pytest.fixture(scope="session")
def plugin() -> Path:
    return build_plugin(paths.CACHE, VOLUME_SOURCE)


Make = Callable[..., Made]


@pytest.fixture
def make(tmp_path: Path, plugin: Path) -> Iterator[Make]:
    with contextlib.ExitStack() as running:

        def create(
            kind: str, disk: Limits | None = None, vm: Limits | None = None, play: Latency = FAST, **more: Any
        ) -> Made:
            disks, nodes, sizes, columns = KINDS[kind]
            sizes = more.pop("sizes", sizes)
            layout = arrange(kind, disks, nodes, sizes, columns)

            def limits(name: str, value: Limits | None) -> Path | None:
                return LimitsFile.create(tmp_path / name, value).path if value else None

            members = tuple(
                MemberModel(tmp_path / f"{i}.img", limits(f"{i}.disk", disk), play, play)
                for i in range(disks * nodes)
            )
            nics: Limits | None = more.pop("nic", None)
            places = tuple(
                NodeModel(limits(f"{i}.vm", vm), limits(f"{i}.out", nics), limits(f"{i}.in", nics))
                for i in range(nodes)
            )
            volume = Volume(tmp_path / "layout", layout, VolumeModel(places, members, **more), witness=True)
            return Made(volume, tmp_path, plugin, running)

        yield create


def fio(server: VolumeServer, *options: str, unthrottled: bool = False) -> Direction:
    """Run fio with one kind of I/O. Its own clock it would calibrate first, for longer than this takes."""
    (result,) = run_fio([server], "--clocksource=clock_gettime", *options, unthrottled=unthrottled)
    return next(iter(result.directions.values()))


def write(server: VolumeServer, mib: int, *options: str) -> None:
    """Write numbered, checksummed blocks from the beginning of a volume."""
    fio(server, "--rw=write", f"--size={mib}m", *BLOCKS, "--do_verify=0", *options)


def check(server: VolumeServer, mib: int, *options: str) -> None:
    """Read them again; fio fails where one is not what was written."""
    fio(server, "--rw=read", f"--size={mib}m", *BLOCKS, "--verify_only", *options, unthrottled=True)


BLOCKS = ["--bs=16k", "--iodepth=16", "--verify=crc32c", "--verify_fatal=1", "--randseed=7"]


# ---- where the data are ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_written_is_read_again_in_any_size_and_from_any_node(make: Make, kind: str) -> None:
    made = make(kind, local_share=0.5)
    first = made.serve()
    options = ["--size=20m", "--bs=700k", "--verify=md5", "--verify_fatal=1"]
    fio(first, "--rw=write", "--do_verify=0", "--iodepth=4", *options)
    last = made.serve(len(made.volume.model.nodes) - 1)
    fio(last, "--rw=read", "--verify_only", *options)
    odd = ["--size=256k", "--bs=512", "--offset=21m", "--verify=crc32c", "--verify_fatal=1", "--iodepth=8"]
    fio(last, "--rw=write", *odd)


@pytest.mark.parametrize("kind", ["two-way", "three-way", "nested-mirror"])
def test_every_copy_of_a_mirror_is_on_the_file_of_its_own_disk(make: Make, kind: str) -> None:
    made = make(kind)
    write(made.serve(), 24)
    tier = made.volume.layout.tiers[0]
    for band in range(2):
        copies = [
            b"".join(
                made.slab(int(member), int(slab))
                for member, slab in zip(tier.members[band, row], tier.slabs[band, row], strict=True)
            )
            for row in range(tier.members.shape[1])
        ]
        assert any(copies[0]) and all(copy == copies[0] for copy in copies)


def test_parity_is_the_xor_of_the_data_on_each_node(make: Make) -> None:
    made = make("nested-parity", rotate_at=0.0)
    server = made.serve()
    write(server, 48)
    assert made.volume.file.counts().in_place_bytes > 0  # the mirror tier of 16 MiB was full
    tier = made.volume.layout.tiers[1]
    for band in range(3):
        for row in range(2):
            slabs = [
                np.frombuffer(made.slab(int(member), int(slab)), np.uint8)
                for member, slab in zip(tier.members[band, row], tier.slabs[band, row], strict=True)
            ]
            assert slabs[0].any()
            assert (np.bitwise_xor.reduce(slabs, axis=0) == 0).all()
    check(server, 48)


# ---- what is charged to whom -----------------------------------------------------------------------------


def test_each_copy_is_an_io_of_its_disk_and_bytes_on_the_wire(make: Make) -> None:
    made = make("three-way")
    fio(made.serve(), "--rw=randwrite", "--bs=4k", "--number_ios=500", "--size=64m", "--iodepth=8")
    ios, wire = made.volume.file.member_ios(), made.volume.file.wire_bytes()
    assert [ios[node * 4 : node * 4 + 4, 1].sum() for node in range(3)] == [500, 500, 500]
    assert ios[:, 0].sum() == 0
    assert wire.tolist() == [[2 * 500 * 4096, 0], [0, 500 * 4096], [0, 500 * 4096]]


def test_in_place_a_write_of_parity_is_two_reads_and_two_writes_on_each_node(make: Make) -> None:
    made = make("nested-parity", rotate_at=0.0)
    server = made.serve()
    fio(server, "--rw=write", "--bs=1m", "--size=64m", unthrottled=True)  # the mirror holds 16 MiB
    before = made.volume.file.member_ios()
    options = ["--bs=4k", "--number_ios=300", "--offset=32m", "--size=32m", "--iodepth=8"]
    fio(server, "--rw=randwrite", *options)
    done = made.volume.file.member_ios() - before
    assert [done[:4, kind].sum() for kind in (0, 1)] == [600, 600]
    assert [done[4:, kind].sum() for kind in (0, 1)] == [600, 600]


def test_reads_are_answered_by_the_own_node_with_the_planted_share(make: Make) -> None:
    made = make("three-way", local_share=0.6)
    fio(made.serve(), "--rw=randread", "--bs=4k", "--number_ios=4000", "--size=64m", "--iodepth=16")
    counts = made.volume.file.counts()
    assert counts.local_reads + counts.remote_reads == 4000
    assert counts.local_reads / 4000 == pytest.approx(0.6, abs=0.03)
    assert made.volume.file.wire_bytes()[0, 1] == counts.remote_reads * 4096


def test_where_another_node_owns_the_volume_all_bytes_go_there_first(make: Make) -> None:
    made = make("two-way")
    made.volume.file.owner = 1
    fio(made.serve(), "--rw=randwrite", "--bs=4k", "--number_ios=200", "--size=64m", "--iodepth=8")
    # To the owner, and the other copy back.
    assert made.volume.file.wire_bytes().tolist() == [[200 * 4096, 200 * 4096]] * 2


# ---- disks and nodes that fail --------------------------------------------------------------------------


@pytest.mark.alone
def test_what_a_network_carries_holds_writes_of_64_kib(make: Make) -> None:
    """The owner of a three-way mirror sends each byte twice, so its network carries half its limit."""
    made = make("three-way", nic=Limits(mb_s=20))
    load = ["--rw=randwrite", "--bs=64k", "--iodepth=8", "--size=64m", "--time_based", "--runtime=2"]
    rate = fio(made.serve(), *load).bw_bytes
    assert rate < 1.05 * 10e6
    with load_sensitive():
        assert rate > 0.8 * 10e6
    out, into = made.volume.file.wire_bytes().T
    assert out[0] == 2 * into[1] == 2 * into[2] and out[1] == out[2] == into[0] == 0


def test_a_flush_ends_with_the_slowest_copy(make: Make) -> None:
    server = make("three-way").serve()
    server.set_model(ExportModel(Latency(0.0), Latency(0.0), Latency(0.5, 0.5)))
    fio(server, "--rw=write", "--bs=4k", "--size=1m", "--fsync=1")
    session = server.sessions()[-1]
    assert session.flushes > 200
    assert session.flush_mean_ms == pytest.approx(0.5 * 1.448, rel=0.12)  # E[max of 3] at sigma 0.5


LOSSES = [  # what is lost, whether another disk comes back, and what is lost after the repair
    ("two-way", {"members": {1}}, True, {"nodes": {1}}),
    ("two-way", {"nodes": {1}}, False, {"nodes": {0}}),
    ("three-way", {"members": {0}, "nodes": {2}}, False, {"nodes": {1}}),
    ("nested-mirror", {"members": {5}, "nodes": {0}}, False, {"nodes": {1}}),
    ("nested-mirror", {"members": {0, 1}}, True, {"nodes": {1}}),
    ("nested-parity", {"members": {2}}, True, {"nodes": {1}}),
    ("nested-parity", {"members": {5}, "nodes": {0}}, False, {"nodes": {1}}),
]


@pytest.mark.parametrize(("kind", "loss", "empty", "then"), LOSSES)
def test_no_acknowledged_block_is_lost_with_what_a_volume_survives(
    make: Make, kind: str, loss: dict[str, set[int]], empty: bool, then: dict[str, set[int]]
) -> None:
    """Written before and meanwhile; read meanwhile, and afterwards without what was there throughout."""
    made = make(kind)
    server = made.serve()
    write(server, 18)
    made.volume.lose(**loss)
    assert made.volume.online
    write(server, 4, "--offset=15m", "--randseed=8")
    check(server, 15)
    check(server, 4, "--offset=15m", "--randseed=8")
    made.volume.bring_back(**loss, empty=empty)
    made.repaired()
    assert made.volume.file.counts().repair_done >= SLAB_BYTES
    made.volume.lose(**then)
    assert made.volume.online
    check(server, 15)
    check(server, 4, "--offset=15m", "--randseed=8")


def test_beyond_that_there_are_errors_until_it_returns(make: Make) -> None:
    made = make("three-way")
    server = made.serve()
    write(server, 16)
    made.volume.lose(nodes={0, 1})
    assert not made.volume.online
    with pytest.raises(DiskbookError, match=r"error|Input/output"):
        write(server, 16)
    made.volume.bring_back(nodes={0})
    assert made.volume.online
    check(server, 16)


def test_a_state_outlives_the_processes(make: Make) -> None:
    made = make("two-way")
    write(made.serve(), 16)
    made.volume.lose(members={1})
    write(made.servers[0], 16, "--randseed=9")
    made.servers[0].stop()
    again = Volume(made.volume.file.path, made.volume.layout, made.volume.model, witness=True)
    assert again.file.dirty_bytes() > 0 and again.repaired() < 1
    made.volume = again
    server = made.serve(1)
    again.bring_back(members={1})
    made.repaired()
    check(server, 16, "--randseed=9")


# ---- mirror-accelerated parity ----------------------------------------------------------------------


def test_a_full_mirror_moves_to_parity_and_reads_move_nothing(make: Make) -> None:
    made = make("nested-parity")  # a mirror of 16 MiB
    server = made.serve()
    write(server, 32)
    assert soon(lambda: made.volume.file.mirror_fill() <= 0.85)
    assert made.volume.file.mirror_fill() > 0.5
    rotated = made.volume.file.counts().rotated_bytes
    assert rotated > 0
    check(server, 32)
    fio(server, "--rw=read", "--bs=1m", "--size=32m")
    assert made.volume.file.counts().rotated_bytes == rotated


def test_what_is_in_parity_is_written_to_the_mirror_while_it_has_room(make: Make) -> None:
    made = make("nested-parity")
    server = made.serve()
    write(server, 32)
    assert soon(lambda: made.volume.file.mirror_fill() <= 0.85)
    before = made.volume.file.counts()
    write(server, 1, "--randseed=9")
    assert made.volume.file.counts().reallocated > before.reallocated
    check(server, 1, "--randseed=9")


def test_the_whole_volume_can_be_written(make: Make) -> None:
    made = make("nested-parity", sizes=[0.008, 0.02])
    size = made.volume.layout.size_bytes // MIB
    server = made.serve()
    for seed in (1, 2):
        write(server, size, "--bs=64k", f"--randseed={seed}")
        check(server, size, "--bs=64k", f"--randseed={seed}")


def test_parity_never_written_is_read_without_an_io(make: Make) -> None:
    made = make("nested-parity", play=Latency(5.0))
    server = made.serve()
    assert fio(server, "--rw=randread", "--bs=4k", "--number_ios=50", "--size=64m").lat_min_ms < 2
    assert made.volume.file.member_ios().sum() == 0
