"""Packed files: read up to a limit, past which one sentence is all that comes."""

from __future__ import annotations

import gzip
import resource
import zlib
from pathlib import Path

import pytest

from diskbook.facts import files
from diskbook.facts.units import GIB, MIB


def bomb(path: Path, size: int, line: bytes = b"1, 1, 0, 4096\n") -> Path:
    """Write a small file that unpacks to that many bytes or a few more."""
    piece = gzip.compress(line * (MIB // len(line)), 9)
    path.write_bytes(piece * (size // (MIB // len(line) * len(line)) + 1))
    return path


def test_a_file_is_read_whole_up_to_its_limit(tmp_path: Path) -> None:
    content = bytes(range(256)) * 5000
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(content))
    assert files.read_packed(path, most=len(content)) == content
    with files.open_packed(path, most=len(content)) as stream:
        assert stream.read(7) == content[:7] and stream.read() == content[7:]
    with pytest.raises(files.TooLargeError, match=r"a\.gz: more than .* MiB unpacked, which is too large"):
        files.read_packed(path, most=len(content) - 1)
    (tmp_path / "plain").write_bytes(content)
    assert files.read_packed(tmp_path / "plain", packed=False) == content
    with pytest.raises(files.TooLargeError, match=r"^results: more than 1 MiB, which"):
        files.read_packed(tmp_path / "plain", "results", MIB, packed=False)


def test_a_bomb_is_refused_in_bounded_memory(tmp_path: Path) -> None:
    path = bomb(tmp_path / "a.gz", GIB)
    assert path.stat().st_size < 8 * MIB
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with (
        pytest.raises(files.TooLargeError, match="more than 256 MiB"),
        files.open_packed(path, most=files.WHOLE) as stream,
    ):
        while stream.read(MIB):
            pass
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024  # KiB


@pytest.mark.parametrize(
    "damage", [lambda packed: packed[:40], lambda packed: b"no gzip", lambda packed: packed[:30] + b"\0" * 20]
)
def test_damage_is_what_callers_expect(tmp_path: Path, damage: object) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(damage(gzip.compress(zlib.compress(b"some words") * 9)))  # type: ignore[operator]
    with pytest.raises(files.BrokenError, match=r"a\.gz: it cannot be read \(.*\)$"):
        files.read_packed(path)
