"""The step `verify` of an emulated machine: real fio on a real volume, while disks go and come back."""

from __future__ import annotations

import contextlib
import io
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from diskbook.clusters.powershell import steps
from diskbook.facts import paths
from diskbook_emulator import FOLDER_VARIABLE, windows_diskspd, windows_steps
from diskbook_emulator.disk import build_plugin
from diskbook_emulator.layout_file import MemberModel, NodeModel, VolumeModel
from diskbook_emulator.types import Latency
from diskbook_emulator.volume_host import VOLUME_SOURCE, Volume, VolumeServer
from diskbook_emulator.volumes import SLAB_BYTES, arrange
from support.emulated import soon

pytestmark = pytest.mark.emulator

PATH = r"C:\ClusterStorage\vol"
BLOCKS = 64
FAST = Latency(1.0, 0.2)


class Machine:
    """A machine with a two-way mirror of four disks."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        layout = arrange("two-way", 2, 2, [0.1], 2)
        members = tuple(MemberModel(folder / f"{i}.img", None, FAST, FAST) for i in range(4))
        model = VolumeModel((NodeModel(), NodeModel()), members)
        self.volume = Volume(folder / "layout", layout, model, witness=True)
        plugin = build_plugin(paths.CACHE, VOLUME_SOURCE)
        self.server = VolumeServer(folder / "s", plugin, folder / "w", folder / "layout", 0)
        self.server.start()
        self.files = folder / "files"
        self.files.mkdir()
        row = {"path": PATH, "uri": self.server.uri(), "files": str(self.files)}
        row |= {"size_bytes": layout.size_bytes}
        (folder / "volumes.json").write_text(json.dumps([row]), "utf-8")

    def call(self, action: str, tag: str = "0123456789abcdef", **more: Any) -> Any:
        volume = steps.VerifyVolume(name="vol", path=PATH)
        asked = {"volumes": (volume,), "tag": tag, "file": "loss", "blocks": BLOCKS, "bin_s": 0.1, **more}
        request = steps.Verify.model_validate({"action": action, "wait_s": 30, **asked})
        return windows_steps.answer(request.model_dump(mode="json"))

    @contextlib.contextmanager
    def load(self, **more: Any) -> Iterator[None]:
        """Write meanwhile, from the first block on."""
        before = self.writes()
        thread = threading.Thread(target=self.call, args=("write",), kwargs=more)
        thread.start()
        assert soon(lambda: self.writes() > before + 4)
        yield
        self.call("end", **more)
        thread.join()

    def writes(self) -> int:
        return int(self.volume.file.node_ios()[0, 1])


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("v")
        patch.setenv(FOLDER_VARIABLE, str(folder))
        made = Machine(folder)
        yield made
        made.server.stop()


def test_what_was_acknowledged_is_read_back_and_its_times_are_told(machine: Machine) -> None:
    began = time.time()
    with machine.load():
        before = machine.writes()
        assert soon(lambda: machine.writes() > before + 8)
    answer = machine.call("read")
    (row,) = answer["state"]["volumes"]
    assert answer["ok"] and 4 < row["written"] <= BLOCKS
    assert (row["verified"], row["errors"], row["last_error"]) == (row["written"], 0, "")
    assert sum(row["counts"]) >= row["written"]
    ended = row["began_s"] + 0.1 * len(row["counts"])
    assert began < row["began_s"] < ended < answer["state"]["now_s"] + 0.1
    assert row["volume"] == "vol" and machine.call("end")["state"]["volumes"][0]["verified"] is None


def test_a_block_that_fails_is_tried_again_and_what_was_acknowledged_is_not_lost(machine: Machine) -> None:
    machine.volume.lose(members={0})
    with machine.load(tag="aa" * 8, blocks=512):
        (writer,) = (one for one in threading.enumerate() if isinstance(one, windows_steps._Writer))
        machine.volume.lose(members={2})
        assert not machine.volume.online
        assert soon(lambda: writer._errors > 0)
        stalled = machine.writes()
        machine.volume.bring_back(members={0, 2})
        assert soon(lambda: machine.writes() > stalled + 10)
    (row,) = machine.call("read", tag="aa" * 8, blocks=512)["state"]["volumes"]
    assert row["errors"] > 0 and row["last_error"]
    assert row["verified"] == row["written"] > 10
    again = sum(row["counts"]) - row["written"]
    assert again == 0 or row["written"] == 512  # it resumes the first block that was not acknowledged
    assert soon(lambda: machine.volume.repaired() == 1)


def test_a_block_that_is_not_what_was_written_is_counted(machine: Machine) -> None:
    with machine.load(tag="bb" * 8):
        before = machine.writes()
        assert soon(lambda: machine.writes() > before)
    tier = machine.volume.layout.tiers[0]
    offset = (machine.volume.layout.size_bytes - 2 * BLOCKS * 65536) // 2**20 * 2**20
    band, within = divmod(offset, tier.data_columns * SLAB_BYTES)
    column, at = within % (2 * 262144) // 262144, within // (2 * 262144) * 262144
    for row in range(2):  # of both copies
        member, slab = int(tier.members[band, row, column]), int(tier.slabs[band, row, column])
        with machine.volume.model.members[member].backing.open("r+b") as file:
            file.seek(slab * SLAB_BYTES + at + 65536 + 100)
            file.write(b"lost")
    (row_,) = machine.call("read", tag="bb" * 8)["state"]["volumes"]
    assert row_["verified"] == row_["written"] - 1
    (stale,) = _as_if_of(machine, "cc" * 8, row_)["state"]["volumes"]
    assert stale["verified"] == 0


def _as_if_of(machine: Machine, tag: str, row: dict[str, Any]) -> Any:
    """Read blocks of another loss, which are whole, but not those of this one."""
    left = machine.folder / "verify" / f"loss-{tag}.json"
    left.write_text(json.dumps({"now_s": 0.0, "volumes": [row]}), "utf-8")
    return machine.call("read", tag=tag)


def test_what_cannot_be_done_is_told_in_one_sentence(machine: Machine) -> None:
    unknown = steps.VerifyVolume(name="vol", path=r"C:\ClusterStorage\none")
    said = machine.call("write", tag="dd" * 8, volumes=(unknown,))
    assert not said["ok"] and "none" in said["error"]["message"]
    said = machine.call("end", tag="ee" * 8, wait_s=0)
    assert "the end of the writing was waited for" in said["error"]["message"]
    windows_diskspd.make_files(machine.files, {"vm-001.dat": 64 * 2**20}, machine.volume.layout.size_bytes)
    assert machine.call("end", tag="aa" * 8)["ok"]  # what loads have made is in nobody's way
    windows_diskspd.make_files(machine.files, {"vm-002.dat": 36 * 2**20}, machine.volume.layout.size_bytes)
    assert "not enough space" in machine.call("write", tag="ff" * 8)["error"]["message"]


def test_the_machine_does_it_itself_where_the_script_is_there(
    machine: Machine, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = steps.path("verify")
    assert windows_steps.run(path) == 1 and "does not exist" in capsys.readouterr().err
    windows_steps.put(path, steps.script("verify").encode())
    asked = steps.Verify(action="end", volumes=(), tag="12" * 8, file="loss", blocks=1, wait_s=0)
    monkeypatch.setattr("sys.stdin", io.StringIO(steps.standard_input(asked).decode()))
    assert windows_steps.run(path) == 1
    with pytest.raises(steps.StepFailed, match=r"^the end of the writing was waited.*step verify on n1"):
        steps.outcome("verify", capsys.readouterr().out, "n1")
