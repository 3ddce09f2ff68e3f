"""What a run's folder holds, read while others write to it."""

from __future__ import annotations

import fcntl
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from diskbook.batch.stores.contents import MANIFEST, Folder
from diskbook.batch.stores.record import Entry
from diskbook.facts import files
from diskbook.results.run import Run


def test_what_is_being_added_to_a_file_is_waited_for(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.append_bytes("arm.jsonl.gz", b"one")
    with ThreadPoolExecutor(1) as pool:
        with files.appending(tmp_path / "arm.jsonl.gz") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # as `append_bytes`, which may write in several pieces
            file.write(b"t")
            file.flush()
            read = pool.submit(Folder(tmp_path).read, "arm.jsonl.gz")
            with pytest.raises(TimeoutError):
                read.result(0.2)
            file.write(b"wo")
        assert read.result(20) == (Entry.of(b"onetwo"), b"onetwo")


def test_a_file_that_goes_meanwhile_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b", MANIFEST):
        (tmp_path / name).write_text(name)
    is_file = Path.is_file

    def vanishing(path: Path) -> bool:
        was = is_file(path)
        (tmp_path / "a").unlink(missing_ok=True)
        return was

    monkeypatch.setattr(Path, "is_file", vanishing)
    assert Folder(tmp_path).entries() == {"b": Entry.of(b"b"), MANIFEST: Entry.of(MANIFEST.encode())}
