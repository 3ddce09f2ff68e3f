"""Places: what is refused before anything is written, by what a host says of them; devices in earnest."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from diskbook.facts.errors import DiskbookError
from diskbook.facts.units import GIB, MIB
from diskbook.hosts import stage, targets
from diskbook.hosts.stage import LocalConnection
from diskbook.hosts.targets import Place
from diskbook.measure.runs import stages
from support.own_hosts import begun, disk_folder, held, written
from support.real_path import loop_device

FACTS = {"kind": "folder", "real": "/data", "writable": "yes", "system": "ext4 /dev/sda1"}
FACTS |= {"total": str(100 * GIB), "room": str(50 * GIB)}
PLACE = targets.of({"path": "/data"}, "disk", "12345678", True, 8 * GIB)


def test_a_folder_gets_a_folder_of_ours_and_a_new_file_is_the_file() -> None:
    assert PLACE.target == "/data/diskbook-12345678/disk.dat" and PLACE.folder == "/data/diskbook-12345678"
    assert targets.of({"path": "/data/f"}, "disk", "1", False, MIB).target == "/data/f"
    assert PLACE.size_bytes == 8 * GIB + MIB and PLACE.mark.startswith(
        b"diskbook created this disk\nuniqueId own-"
    )
    targets.check_folder("h", "/data", FACTS)
    kept = targets.check_file("h", PLACE, FACTS)
    assert kept["where"] == "file on ext4 (/dev/sda1)"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"kind": "nowhere"}, "host h: /data is not there, nor is the folder that it would lie in"),
        ({"real": "/mnt/x"}, "host h: /data is a way by a link to /mnt/x; name that itself"),
        ({"kind": "device"}, "host h: /data is a device; name it in devices"),
        ({"kind": "file"}, "host h: /data is there already, and is not written over"),
        ({"writable": None}, "host h: /data cannot be written by who signs in"),
        ({"system": "tmpfs tmpfs"}, "host h: /data lies in memory (tmpfs on tmpfs), which is not a disk"),
        ({"system": "ext4 /dev/zram0"}, "host h: /data lies in memory (ext4 on /dev/zram0)"),
        (
            {"room": str(9 * GIB)},
            "/data has 9.0 GiB free, and 8.0 GiB are measured with 1.0 GiB left over",
        ),
        ({"room": None}, "host h does not say how much room /data has"),
    ],
)
def test_what_would_not_measure_a_disk_is_refused(changes: dict[str, Any], sentence: str) -> None:
    facts = {name: value for name, value in {**FACTS, **changes}.items() if value is not None}
    with pytest.raises(DiskbookError) as refused:
        targets.check_folder("h", "/data", facts)
        targets.check_file("h", PLACE, facts)
    assert sentence in str(refused.value) and "\n" not in str(refused.value)


def test_a_file_over_a_network_is_told() -> None:
    assert targets.check_file("h", PLACE, FACTS | {"system": "nfs4 srv:/x"})["where"].endswith(
        ", over a network"
    )


# --- devices: of files, by the loop driver; nothing else on this machine is touched


@contextmanager
def device_of(folder: Path, content: str = "") -> Iterator[tuple[str, Path]]:
    """A block device of 32 MiB, and the file that it is of; `content` makes something on it first."""
    image = folder / "image"
    image.write_bytes(bytes(32 * MIB))
    if content == "ext4":
        mkfs = shutil.which("mkfs.ext4", path="/usr/sbin:/sbin") or pytest.skip("there is no mkfs.ext4")
        subprocess.run([mkfs, "-q", "-F", str(image)], check=True, capture_output=True)
    elif content:
        image.write_bytes(content.encode().ljust(32 * MIB, b"\0"))
    with loop_device(image) as device:
        yield device, image


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def synced(device: str, image: Path) -> str:
    """Digest of a device's file once all is written that was written to the device."""
    subprocess.run(["sync", device], check=True)
    return digest(image)


def run_on(folder: Path, name: str, device: Any, work: Path) -> Any:
    work.mkdir(exist_ok=True)
    return begun(name, hosts=written(folder, {"name": "here", "folder": str(work), "devices": [device]}))


@pytest.mark.emulator
@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("ext4", "has a signature of ext4"),
        ("letters", "holds data in its first MiB"),
        ("\0" * 5 * MIB + "in what is written", "holds data 5.0 MiB from its start"),
        ("\0" * 20 * MIB + "after it", "holds data 20.0 MiB from its start"),
    ],
    ids=["file system", "first MiB", "in the middle", "beyond the working set"],
)
def test_a_device_that_holds_something_is_written_with_leave_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str, why: str
) -> None:
    monkeypatch.setenv("DISKBOOK_RUNS", str(tmp_path / "runs"))
    with disk_folder() as folder, device_of(folder, content) as (device, image):
        before = digest(image)
        refused = run_on(tmp_path, "refused", device, folder / "work")
        looked_at = r"looked at: .* 128 blocks of 64 KiB over the 8 MiB to be written, \d+ over the rest"
        with pytest.raises(DiskbookError, match=rf"{device} .*{why}.*{looked_at}.*; nothing was written"):
            stages.provision(refused)
        assert synced(device, image) == before and refused.manifest["replicates"] == []
        assert list((folder / "work").iterdir()) == []

        if content != "letters":
            return
        leave = run_on(tmp_path, "leave", {"path": device, "allow_destroy": True}, folder / "work")
        stages.provision(leave)
        stages.benchmark(leave)
        stages.teardown(leave)
        assert [row["kind"] for row in leave.manifest["places"]] == ["folder", "device"]
        assert stage.standing(leave.manifest) == [] and list((folder / "work").iterdir()) == []
        assert {event["status"] for event in leave.ledger() if event["event"] == "trial"} == {"ok"}
        # What it has written where a run looks is gone, so that the next one needs no leave.
        again = run_on(tmp_path, "again", device, folder / "work")
        stages.provision(again)
        stages.teardown(again)


@pytest.mark.emulator
def test_a_device_in_use_is_never_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISKBOOK_RUNS", str(tmp_path / "runs"))
    with disk_folder() as folder, device_of(folder, "ext4") as (device, _):
        place = folder / "mounted"
        place.mkdir()
        if subprocess.run(["mount", device, place], check=False, capture_output=True).returncode:
            pytest.skip("nothing can be mounted here")
        try:
            run = run_on(tmp_path, "used", {"path": device, "allow_destroy": True}, folder / "work")
            with pytest.raises(DiskbookError, match=f"is mounted at {place}; nothing was written"):
                stages.provision(run)
        finally:
            subprocess.run(["umount", place], check=True)


@pytest.mark.emulator
def test_a_device_that_a_program_holds_is_never_written(tmp_path: Path) -> None:
    """Neither when it is looked at, nor marked, measured or removed; allow_destroy changes nothing."""
    with device_of(tmp_path) as (device, image), LocalConnection("h") as here:
        place = Place("disk", device, device, None, "own-1-disk", 8 * MIB, True, True)
        facts, before = targets.look(here, device), digest(image)
        in_use = f"host h: {device} is in use: .*exclusively; nothing was written: free it first"
        record = targets.check_device(here, "h", place, facts)
        with held(device):
            for attempt in (
                lambda: targets.check_device(here, "h", place, facts),
                lambda: targets.make(here, "h", place, record),
            ):
                with pytest.raises(DiskbookError, match=in_use):
                    attempt()
        assert synced(device, image) == before
        targets.make(here, "h", place, record)  # free: it is
        with held(device):
            with pytest.raises(DiskbookError, match=in_use):
                targets.known(here, "h", place, record)
            assert "is in use" in targets.remove(here, place, record, True)
        targets.known(here, "h", place, record)
        assert targets.remove(here, place, record, True) == "" and synced(device, image) == before


@pytest.mark.emulator
def test_a_file_system_made_since_is_left(tmp_path: Path) -> None:
    mkfs = shutil.which("mkfs.ext4", path="/usr/sbin:/sbin") or pytest.skip("there is no mkfs.ext4")
    with device_of(tmp_path) as (device, image), LocalConnection("h") as here:
        place = Place("disk", device, device, None, "own-1-disk", 8 * MIB, True)
        record = targets.check_device(here, "h", place, targets.look(here, device))
        targets.make(here, "h", place, record)
        subprocess.run([mkfs, "-q", "-F", device, "16M"], check=True, capture_output=True)
        before = synced(device, image)
        with pytest.raises(DiskbookError, match="a signature of ext4 since the run marked it"):
            targets.known(here, "h", place, record)
        assert "ext4" in targets.remove(here, place, record, True) and synced(device, image) == before


@pytest.mark.emulator
def test_a_device_of_a_file_in_memory_is_refused(tmp_path: Path) -> None:
    """On tmpfs, also by a file system between them, or of no file system at all (memfd)."""
    memory = Path("/dev/shm") if Path("/dev/shm").is_mount() else pytest.skip("nothing lies in memory here")
    with (
        tempfile.TemporaryDirectory(dir=memory) as shared,
        device_of(Path(shared)) as (device, image),
        LocalConnection("h") as here,
    ):
        place = Place("disk", device, device, None, "own-1-disk", 8 * MIB, True, True)
        for _ in range(2):
            with pytest.raises(DiskbookError, match=rf"{device} lies in memory \({device} on tmpfs\)"):
                targets.check_device(here, "h", place, targets.look(here, device))
            image.unlink(missing_ok=True)  # it stays in memory
    with os.fdopen(os.memfd_create("disk"), "wb") as file:
        file.truncate(32 * MIB)
        with loop_device(Path(f"/proc/{os.getpid()}/fd/{file.fileno()}")) as device:
            assert targets.look(LocalConnection("h"), device)["layers"] == f"{device} memfd"
    facts = FACTS | {"system": "ext4 /dev/loop1", "layers": "/dev/loop1 tmpfs"}
    with pytest.raises(DiskbookError, match=r"lies in memory \(ext4 on /dev/loop1 on tmpfs\)"):
        targets.check_file("h", PLACE, facts)
    targets.check_file("h", PLACE, facts | {"layers": "/dev/loop1 ext4 /dev/sda1"})


@pytest.mark.emulator
@pytest.mark.parametrize(
    ("device", "why"),
    [
        ("/dev/none-such", "is not there; name one of those that lsblk lists"),
        ("/etc/passwd", "is not a block device"),
    ],
)
def test_a_device_that_is_none_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device: str, why: str
) -> None:
    monkeypatch.setenv("DISKBOOK_RUNS", str(tmp_path / "runs"))
    with pytest.raises(DiskbookError, match=f"host here: {device} {why}"):
        stages.provision(run_on(tmp_path, "none", device, tmp_path / "work"))


@pytest.mark.emulator
def test_a_device_too_small_is_told(tmp_path: Path) -> None:
    with device_of(tmp_path) as (device, _), LocalConnection("h") as here:
        place = Place("disk", device, device, None, "own-1-disk", GIB, True)
        with pytest.raises(DiskbookError, match=r"has 0\.03 GiB, and 1\.00 GiB are measured; measure"):
            targets.check_device(here, "h", place, targets.look(here, device))
