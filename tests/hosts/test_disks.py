"""A disk is only written if the run created it: what machines say of disks, and emulated disks with data."""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from diskbook.facts.errors import DiskbookError
from diskbook.facts.units import MIB
from diskbook.hosts import disks as machine_disks, disks_azure
from diskbook.hosts.device import Facts
from diskbook.hosts.nbd import Export
from diskbook.hosts.ssh import Connection, Host
from diskbook_emulator import lifecycle
from support.emulated import SMALL, Azure, leftovers

OURS, OTHER = "cf8c35db-1111-4222-8333-444455556666", "00000000-1111-4222-8333-444455556666"
EMPTY = Facts((), (), bytes(4096))


# --- what is judged


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        (EMPTY, None),
        (replace(EMPTY, unique_id=OURS.upper()), None),
        (replace(EMPTY, mark=machine_disks.mark(OURS)), None),
        # After trials a disk of ours holds anything at all, even what looks like a partition table.
        (Facts(("has a partition table (dos)",), (), machine_disks.mark(OURS)), None),
        (replace(EMPTY, unique_id=OTHER), f"has the uniqueId {OTHER}, not {OURS}"),
        (replace(EMPTY, mark=machine_disks.mark(OTHER)), "carries the mark of another disk"),
        (Facts(("has a file system (ext4)",), (), bytes(4096)), "has a file system (ext4)"),
        (Facts((), ("is mounted at /data",), machine_disks.mark(OURS)), "is mounted at /data"),
    ],
)
def test_only_an_empty_disk_or_a_marked_one_may_be_written(facts: Facts, why: str | None) -> None:
    assert machine_disks.refusal(facts, OURS) == why


def test_the_mark_is_a_sector_that_names_the_disk() -> None:
    assert len(machine_disks.mark(OURS)) == 4096
    assert OURS.encode() in machine_disks.mark(OURS.upper())
    assert machine_disks.mark(OURS) != machine_disks.mark(OTHER)


# --- what Azure machines say (shapes of util-linux 2.39)

_ZERO = hashlib.sha256(bytes(MIB)).hexdigest()
_DISK = {
    "name": "sdc",
    "size": 1099511627776,
    "type": "disk",
    "pttype": None,
    "fstype": None,
    "mountpoints": [None],
    "serial": "60022480cf8c35db11112222333344445",
    "wwn": "0x60022480cf8c35db",
}


def _said(
    disk: dict[str, object] | None = None,
    wipefs: str = "",
    head: str = _ZERO,
    tail: str = _ZERO,
    mark: bytes = bytes(4096),
    special: str = "",
) -> str:
    lines = [f"special {special}"] if special else []
    lines += [
        f"lsblk {json.dumps({'blockdevices': [{**_DISK, **(disk or {})}]})}",
        f"wipefs {wipefs}",
        f"head {head}",
        f"tail {tail}",
        f"mark {base64.b64encode(mark).decode()}",
    ]
    return "\n".join(lines) + "\n"


def test_an_empty_azure_disk_is_fit_and_its_serial_is_told() -> None:
    facts = disks_azure.parse_facts(_said())
    assert machine_disks.refusal(facts, OURS) is None
    assert (facts.serial, facts.wwn, facts.unique_id) == (_DISK["serial"], _DISK["wwn"], None)


EXT4 = '{"signatures": [{"device":"sdc","offset":"0x438","type":"ext4","uuid":"1","label":null}]}'
PART = {"name": "sdc1", "type": "part", "mountpoints": ["/data", None]}


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (_said({"pttype": "gpt"}), "has a partition table (gpt)"),
        (_said({"fstype": "xfs"}), "has a file system (xfs)"),
        (_said(wipefs=EXT4), "has a signature of ext4"),
        (_said(head="0" * 64), "holds data in its first MiB"),
        (_said(tail="0" * 64), "holds data in its last MiB"),
        (_said({"mountpoints": ["/mnt/resource"]}), "is mounted at /mnt/resource"),
        (_said({"children": [PART]}), "has partitions and is mounted at /data"),
        (_said(special="resource"), "is the machine's own resource disk"),
        (_said({"type": "part"}), "is a part, not a disk"),
        (
            _said({"children": [PART]}, mark=machine_disks.mark(OURS)),
            "has partitions and is mounted at /data",
        ),
        (
            _said(head="0" * 64, tail="1" * 64, mark=machine_disks.mark(OTHER)),
            "carries the mark of another disk",
        ),
    ],
)
def test_an_azure_disk_that_is_not_ours_is_told_why(said: str, why: str) -> None:
    assert machine_disks.refusal(disks_azure.parse_facts(said), OURS) == why


def test_a_measured_azure_disk_is_known_by_its_mark() -> None:
    said = _said({"pttype": "dos"}, EXT4, "0" * 64, "1" * 64, machine_disks.mark(OURS))
    assert machine_disks.refusal(disks_azure.parse_facts(said), OURS) is None


@pytest.mark.parametrize("line", ["lsblk", "wipefs", "head", "tail", "mark"])
def test_a_machine_that_leaves_something_out_is_not_believed(line: str) -> None:
    said = "".join(row for row in _said().splitlines(True) if not row.startswith(line))
    with pytest.raises(ValueError, match=line):
        disks_azure.parse_facts(said)


def test_luns_come_from_both_kinds_of_links() -> None:
    rows = [
        ["lun0", "/dev/disk/azure/scsi1/lun0", "/dev/sdc", "1024"],
        ["0", "/dev/disk/azure/data/by-lun/0", "/dev/sdc", "1024"],
        ["7", "/dev/disk/azure/data/by-lun/7", "/dev/nvme0n3", "2048"],
    ]
    found = disks_azure.devices(rows, "vm1")
    assert {lun: (device.target, device.size_bytes) for lun, device in found.items()} == {
        0: ("/dev/disk/azure/scsi1/lun0", 1024),
        7: ("/dev/disk/azure/data/by-lun/7", 2048),
    }
    rows[1][2] = "/dev/sdd"
    with pytest.raises(DiskbookError, match="/dev/sdc and /dev/sdd both claim to be LUN 0"):
        disks_azure.devices(rows, "vm1")


def _namespace(folder: Path, name: str, model: str, number: int) -> None:
    block = folder / "class" / "block" / name
    (block / "device").mkdir(parents=True)
    (block / "device" / "model").write_text(f"{model:<40}\n")
    (block / "nsid").write_text(f"{number}\n")
    (block / "size").write_text("2097152\n")


@pytest.mark.emulator
def test_disks_behind_an_nvme_controller_are_known_by_their_namespace(tmp_path: Path) -> None:
    """As Linux shows them where no rules make links: OS disk, two data disks, local disk, partition, path."""
    azure, local = "MSFT NVMe Accelerator v1.0", "Microsoft NVMe Direct Disk v2"
    for name, model, number in (
        ("nvme0n1", azure, 1), ("nvme0n1p1", azure, 1), ("nvme0n2", azure, 2), ("nvme0n6", azure, 6),
        ("nvme0c0n2", azure, 2), ("nvme1n1", local, 1), ("nvme2n2", f"{azure}1", 2),
    ):  # fmt: skip
        _namespace(tmp_path, name, model, number)
    script = disks_azure.NAMESPACES.replace("/sys/", f"{tmp_path}/")
    text = subprocess.run(["sh", "-c", script], check=True, capture_output=True, text=True).stdout
    rows = [line.split() for line in text.splitlines()]
    assert rows == [
        ["0", "/dev/nvme0n2", "/dev/nvme0n2", str(2**30)],
        ["4", *["/dev/nvme0n6"] * 2, str(2**30)],
    ]
    linked = [["0", "/dev/disk/azure/data/by-lun/0", "/dev/nvme0n2", str(2**30)], *rows]
    found = disks_azure.devices(linked, "vm1")
    assert {lun: device.target for lun, device in found.items()} == {
        0: "/dev/disk/azure/data/by-lun/0",
        4: "/dev/nvme0n6",
    }
    linked[0][2] = "/dev/nvme0n3"
    with pytest.raises(DiskbookError, match="/dev/nvme0n3 and /dev/nvme0n2 both claim to be LUN 0"):
        disks_azure.devices(linked, "vm1")


def test_an_emulated_machine_with_nvme_tells_namespaces() -> None:
    row = {"engine": "nbd", "uri": "nbd+unix:///a", "prefill_uri": "nbd+unix:///b", "size_bytes": 1024}
    seen = {**row, "nvme": {"model": "MSFT NVMe Accelerator v1.0", "namespace": 5}}
    assert list(machine_disks.emulated_by_lun({"os": row, "3": seen, "0": row})) == [3, 0]
    wrong = {**row, "nvme": {"model": "MSFT NVMe Accelerator v1.0", "namespace": 3}}
    assert list(machine_disks.emulated_by_lun({"3": wrong})) == [1]


# --- emulated disks, through their exports


@pytest.fixture(scope="module")
def azure() -> Iterator[Azure]:
    with (
        tempfile.TemporaryDirectory(prefix="diskbook-test-", dir="/tmp") as name,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("TMPDIR", name)
        made = Azure(
            lifecycle.start("disks", profile="quiet", time_scale=0.0, owner=True), Path(name) / "run"
        )
        yield made
        lifecycle.stop("disks")
        assert leftovers(Path(name)) == []


@pytest.fixture(scope="module")
def hosts(azure: Azure) -> tuple[Host, Host]:
    return azure.machine("vm1", "1"), azure.machine("vm2", "2")


def _disk(azure: Azure, name: str) -> tuple[str, dict[str, object]]:
    disk_id = azure.disk(SMALL.model_copy(update={"name": name}))
    made = azure.clients.compute.disks.get("tests", name)
    return disk_id, {"size_bytes": SMALL.size_gib * 2**30, "unique_id": made.unique_id}


def _bytes(azure: Azure) -> dict[str, str]:
    """Digest of what is on the disks."""
    files = sorted((azure.emulator.folder / "disks").glob("*.img"))
    return {file.name: hashlib.sha256(_ends(file)).hexdigest() for file in files}


def _ends(file: Path) -> bytes:
    with file.open("rb") as stream:
        first = stream.read(4 * MIB)
        stream.seek(-4 * MIB, 2)
        return first + stream.read()


def _put(connection: Connection, lun: int, offset: int, content: bytes) -> None:
    with Export(machine_disks.by_lun(connection)[lun].prefill_target) as export:
        export.write(offset, content)
        assert export.read(offset, len(content)) == content


@pytest.mark.emulator
def test_an_empty_disk_is_marked_once_and_known_in_another_zone(
    azure: Azure, hosts: tuple[Host, Host]
) -> None:
    disk_id, made = _disk(azure, "fresh")
    azure.attach("vm1", disk_id, lun=2)
    with Connection(hosts[0]) as one, Connection(hosts[1]) as two:
        seen = machine_disks.ours(one, 2, **made)  # type: ignore[arg-type]
        assert seen.first and seen.device.lun == 2 and seen.facts.unique_id == made["unique_id"]
        assert not machine_disks.ours(one, 2, **made).first  # type: ignore[arg-type]
        _put(one, 2, 0, b"\x55\xaa" * 512)  # as trials leave it
        azure.detach("vm1", disk_id)
        azure.attach("vm2", disk_id, lun=0)
        assert not machine_disks.ours(two, 0, **made).first  # type: ignore[arg-type]
        azure.detach("vm2", disk_id)


@pytest.mark.emulator
@pytest.mark.parametrize(("offset", "edge"), [(1080, "first"), (64 * 2**30 - 512, "last")])
def test_a_disk_with_foreign_data_is_refused_and_not_changed(
    azure: Azure, hosts: tuple[Host, Host], offset: int, edge: str
) -> None:
    disk_id, made = _disk(azure, f"foreign-{edge}")
    azure.attach("vm1", disk_id, lun=0)
    with Connection(hosts[0]) as connection:
        _put(connection, 0, offset, b"\x53\xef data of somebody else")
        before = _bytes(azure)
        with pytest.raises(DiskbookError, match=rf"holds data in its {edge} MiB.*nothing was written"):
            machine_disks.ours(connection, 0, **made)  # type: ignore[arg-type]
        azure.detach("vm1", disk_id)
    assert _bytes(azure) == before


@pytest.mark.emulator
def test_another_disk_at_the_lun_is_refused_and_not_changed(azure: Azure, hosts: tuple[Host, Host]) -> None:
    (wanted_id, wanted), (other_id, _) = _disk(azure, "wanted"), _disk(azure, "other")
    assert wanted_id != other_id
    azure.attach("vm1", other_id, lun=0)
    before = _bytes(azure)
    with Connection(hosts[0]) as connection:
        with pytest.raises(DiskbookError, match="has the uniqueId"):
            machine_disks.ours(connection, 0, **wanted)  # type: ignore[arg-type]
        with pytest.raises(DiskbookError, match="bytes, not the 1 of the one created"):
            machine_disks.ours(connection, 0, size_bytes=1, unique_id=str(wanted["unique_id"]))
        azure.detach("vm1", other_id)
    assert _bytes(azure) == before
