"""What a machine says of itself: facts of block devices, and the time that its cores spent."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from diskbook.hosts import guest
from diskbook.hosts.device import Device
from diskbook.hosts.stage import LocalConnection

# As a machine with a virtio disk answered, and as Linux documents it of NVMe.
VIRTIO = """kernel Linux 6.18.44
cpu_model Intel(R) Xeon(R) Processor
write_cache write back
fua 0
scheduler none [mq-deadline] kyber bfq
nr_requests 256
wbt_lat_usec 75000
logical_block_size 512
rotational 1
hardware_queues 1
driver virtio_blk
driver virtio-pci
driver pcieport
"""


def test_facts_of_a_block_device_are_read() -> None:
    assert guest.parse(VIRTIO) == {
        "kernel": "Linux 6.18.44",
        "cpu_model": "Intel(R) Xeon(R) Processor",
        "write_cache": "write back",
        "fua": 0,
        "scheduler": "mq-deadline",
        "nr_requests": 256,
        "wbt_lat_usec": 75000,
        "logical_block_size_bytes": 512,
        "rotational": 1,
        "hardware_queues": 1,
        "driver": "virtio_blk, virtio-pci",
    }


def test_what_cannot_be_read_is_left_out() -> None:
    text = (
        "kernel Linux 6.8.0\ncpu_model \nwbt_lat_usec \nnr_requests many\nscheduler none\nwhatever else\n\n"
    )
    assert guest.parse(text) == {"kernel": "Linux 6.8.0", "scheduler": "none"}


def test_nothing_that_a_machine_says_gets_out_of_its_cell() -> None:
    known = guest.parse(f"driver a\x1b[31mb\nkernel {'x' * 5000}\n")
    assert "\x1b" not in known["driver"] and len(known["kernel"]) == guest.LONGEST


def test_windows_says_bus_cache_and_sector() -> None:
    answer = {
        "kernel": "Microsoft Windows Server 2022 10.0.20348",
        "cpu_model": "AMD EPYC",
        "power_plan": "Power Scheme GUID: 381b4222  (Balanced)",
        "bus_type": 17,
        "write_cache_enabled": False,
        "logical_sector_size": 4096,
    }
    known = guest.of_windows(answer)
    assert (known["driver"], known["write_cache"]) == ("NVMe", "off")
    assert known["logical_block_size_bytes"] == 4096 and known["power_plan"].endswith("(Balanced)")
    assert "write_cache" not in guest.of_windows({**answer, "write_cache_enabled": None})
    assert guest.of_windows({**answer, "bus_type": 99})["driver"] == "bus type 99"


def _stat(*cores: tuple[int, ...]) -> bytes:
    total = [sum(column) for column in zip(*cores, strict=True)]
    rows = [("cpu ", total), *((f"cpu{number}", core) for number, core in enumerate(cores))]
    return "\n".join(f"{name} {' '.join(map(str, row))} 0 0" for name, row in rows).encode() + b"\nintr 1 2\n"


def test_steal_and_the_busiest_core_are_those_planted() -> None:
    # user nice system idle iowait irq softirq steal
    before = _stat((10, 0, 10, 1000, 0, 0, 0, 0), (0, 0, 0, 1000, 0, 0, 0, 7))
    after = _stat((70, 0, 40, 1005, 0, 2, 3, 0), (20, 0, 0, 1030, 40, 0, 0, 17))
    spent = guest.usage({"cpu_before": before, "cpu_after": after})
    assert spent == {"steal_pct": 5.0, "cores_busy_pct": [95.0, 20.0]}


@pytest.mark.parametrize("after", [b"", b"cpu 1 2 3\n", _stat((0,) * 8), b"\xff\xfe"])
def test_a_job_that_left_no_times_says_nothing(after: bytes) -> None:
    assert guest.usage({"cpu_before": _stat((0,) * 8), "cpu_after": after}) is None
    assert guest.usage({}) is None


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[str]:
    if os.geteuid() != 0:
        pytest.skip("not met: a loop device, which needs root")
    image = tmp_path / "image"
    image.write_bytes(bytes(1 << 20))
    made = subprocess.run(
        ["losetup", "-f", "--show", str(image)], capture_output=True, text=True, check=False
    )
    if made.returncode:
        pytest.skip(f"not met: a loop device ({made.stderr.strip()})")
    yield made.stdout.strip()
    subprocess.run(["losetup", "-d", made.stdout.strip()], check=False)


@pytest.mark.emulator
def test_a_loop_device_is_read_as_it_is(loop: str, tmp_path: Path) -> None:
    known = guest.facts(LocalConnection("here", str(tmp_path)), Device("libaio", loop, loop, 1 << 20))
    assert known["driver"] == "loop" and known["kernel"] == f"Linux {os.uname().release}"
    queue = Path("/sys/block") / Path(loop).name / "queue"
    assert known["write_cache"] == (queue / "write_cache").read_text().strip()
    assert known["nr_requests"] == int((queue / "nr_requests").read_text())
    assert f"[{known['scheduler']}]" in (queue / "scheduler").read_text()


@pytest.mark.emulator
def test_a_target_without_a_block_device_has_no_queue(tmp_path: Path) -> None:
    here = LocalConnection("here", str(tmp_path))
    known = guest.facts(here, Device("nbd", "nbd+unix:///lun0?socket=/tmp/s", "", 1 << 20))
    assert known["driver"] == guest.NBD and not {"write_cache", "scheduler"} & known.keys()
    assert "write_cache" not in guest.facts(here, Device("libaio", "/proc/self/status", "", 1 << 20))
