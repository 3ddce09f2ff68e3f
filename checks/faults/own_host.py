"""Hosts of one's own for faults: an sshd on loopback, a small disk and a device, and what befalls them."""

import hashlib
import shutil
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path

from checks.faults.moments import measuring
from checks.faults.scene import OWN_PLACE, NotStruck, Scene
from checks.faults.spoil import FILLER, fill
from diskbook.cloud.azure import keys
from diskbook.facts.units import MIB
from diskbook_emulator.machine import Machine
from diskbook_emulator.types import VmAddress, VmSpec

SMALL_BYTES = 64 * MIB


def over_ssh(scene: Scene) -> None:
    """Have a host behind an sshd, with a folder to measure in."""
    folder = scene.folder / "own"
    (folder / OWN_PLACE).mkdir(parents=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    host_key, private = keys.new_pair("host"), keys.run_key(folder)
    spec = VmSpec(
        id="/own",
        name="own",
        size="",
        zone=None,
        os="linux",
        admin_username="diskbook",
        authorized_keys=(private.with_suffix(".pub").read_text().strip(),),
        custom_data=keys.cloud_init(host_key),
    )
    machine = Machine(folder / "host", "faults/own", VmAddress("127.0.0.1", port))
    machine.prepare(spec)
    machine.start()
    scene.after.callback(machine.delete)
    scene.host = machine
    line = " ".join(host_key.public.split()[:2])
    how = [f'address = "127.0.0.1"\nport = {port}\nuser = "{spec.admin_username}"']
    how += [f'identity_file = "{private}"\nhost_key = "{line}"']
    _write_hosts(scene, *how, f'paths = ["{folder / OWN_PLACE}"]')


def vanish(scene: Scene) -> None:
    """Switch the host off in the middle of a trial."""
    measuring(scene)
    assert scene.host is not None
    scene.host.stop()


def come_back(scene: Scene) -> None:
    """Switch it on again; the run has said what it left there."""
    if not scene.said("left: host here"):
        raise NotStruck("the run did not say what is left on the host")
    assert scene.host is not None
    scene.host.start()


def small_disk(scene: Scene) -> None:
    """Have a folder on a small disk of its own on this machine."""
    place = scene.folder / "own" / OWN_PLACE
    place.mkdir(parents=True)
    _run(["mount", "-o", "loop", str(_image(scene, "ext4")), str(place)])
    scene.after.callback(subprocess.run, ["umount", "-l", str(place)], check=False)
    shutil.rmtree(place / "lost+found")
    _write_hosts(scene, f'paths = ["{place}"]')


def fill_it(scene: Scene) -> None:
    """Fill the disk when it has been looked at, and before the file is written."""
    scene.until(lambda: scene.events("stage", stage="provision"), "the file was made")
    fill(scene.folder / "own" / OWN_PLACE)


def make_room(scene: Scene) -> None:
    """Make room again."""
    (scene.folder / "own" / OWN_PLACE / FILLER).unlink()


def device_with_data(scene: Scene) -> None:
    """Have a device with a file system on it, which nobody has given leave to write over."""
    (scene.folder / "own" / OWN_PLACE).mkdir(parents=True)
    image = _image(scene, "ext4")
    device = _run(["losetup", "-f", "--show", str(image)])
    scene.after.callback(subprocess.run, ["losetup", "-d", device], check=False)
    scene.notes.append(_digest(image))
    _write_hosts(scene, f'folder = "{scene.folder / "own" / OWN_PLACE}"\ndevices = ["{device}"]')


def wipe(scene: Scene) -> None:
    """Empty the device by hand, which must not have been touched before."""
    image = scene.folder / "own.image"
    subprocess.run(["sync"], check=True)
    if _digest(image) != scene.notes.pop():
        raise NotStruck("the device was written, though it held a file system")
    with image.open("r+b") as file:
        file.write(bytes(SMALL_BYTES))
    _run(["blockdev", "--flushbufs", _run(["losetup", "-n", "-O", "NAME", "-j", str(image)])])


def _image(scene: Scene, file_system: str) -> Path:
    """Make a file that stands for a disk, with a file system on it."""
    image = scene.folder / "own.image"
    image.write_bytes(bytes(SMALL_BYTES))
    _run([f"mkfs.{file_system}", "-q", "-F", "-m", "0", str(image)])
    return image


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _write_hosts(scene: Scene, *lines: str) -> None:
    text = "\n".join(["[[host]]", 'name = "here"', *lines])
    (scene.folder / "own" / "hosts.toml").write_text(f"{text}\n")


def _run(command: Sequence[str]) -> str:
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True)
    except FileNotFoundError:
        raise NotStruck(f"there is no {command[0]}") from None
    if done.returncode:
        raise NotStruck(f"{command[0]}: {done.stderr.strip()}")
    return done.stdout.strip()
