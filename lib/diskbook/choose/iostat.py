"""Reading what `iostat` prints: text of all generations of sysstat, and `iostat -o JSON`.

The first block after each start is a mean since boot, so it is left out. A partition, and md, dm and loop
devices repeat the I/O of the disks below them, so only whole disks count.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from diskbook.choose import trace
from diskbook.choose.trace import Trace
from diskbook.facts.errors import DiskbookError, visible
from diskbook.facts.units import KIB, MIB

# Sectors of iostat have 512 bytes whatever the disk's have; its kB and MB are powers of two (iostat(1)).
_UNITS = {"sec": 512, "Blk": 512, "kB": KIB, "MB": MIB, "GB": 1024 * MIB}
_BYTES = re.compile(r"([rw])(sec|kB|MB)/s|(Blk|kB|MB|GB)_(read|wrtn)/s|(sec|kB|MB)/s")
_PARTITION = re.compile(r"((?:sd|vd|hd|xvd)[a-z]+)\d+|((?:nvme\d+n\d+|mmcblk\d+|nbd\d+))p\d+")
_DISK = re.compile(r"(sd|vd|hd|xvd)[a-z]+|nvme\d+n\d+|mmcblk\d+|nbd\d+|dasd[a-z]+")
_NEVER = re.compile(r"(loop|ram|zram|sr|fd)\d+|nvme\d+c\d+n\d+")
_START = re.compile(r"(Linux|AIX|FreeBSD|SunOS) \S+")


@dataclass
class _Block:
    """One report: its time as written, whether it is the first after a start, and rows by device."""

    time: str | None
    first: bool
    rows: dict[str, dict[str, float]] = field(default_factory=dict)


def is_iostat(text: str) -> bool:
    """Whether a text looks like what iostat prints."""
    return bool(re.search(r"^\s*Device:?\s", text, re.MULTILINE)) or '"sysstat"' in text[:200]


def read(text: str, where: str, device: str | None = None, interval_s: float | None = None) -> Trace:
    """Read what iostat printed, text or JSON; DiskbookError with a sentence where nothing can be made of it.

    `where` is the file, for messages, `device` the disk that counts (by default all whole disks, added up),
    `interval_s` the interval of a log without timestamps.
    """
    cut: list[str] = []
    blocks = _json_blocks(text, where) if text.lstrip().startswith("{") else _text_blocks(text, where, cut)
    if not blocks:
        raise DiskbookError(f"{where}: it has no table of devices; record with iostat -xt 5")
    kept = [block for block in blocks if not block.first]
    if not kept:
        raise DiskbookError(
            f"{where}: its only report is a mean since boot; give iostat an interval, such as iostat -xt 5"
        )
    notes = cut + ["the first report is a mean since boot, so it is left out"] * (len(kept) < len(blocks))
    names = list(dict.fromkeys(name for block in kept for name in block.rows))
    disks = [device] if device in names else _whole(names)
    left = [name for name in names if name not in disks]
    if left and device is None:
        notes.append(f"{_few(left)} repeat the I/O of whole disks or are none, so they are left out")
    rows = {name: _columns(kept, name) for name in disks}
    gone = [name for name in disks if any(name not in block.rows for block in kept)]
    if gone:
        notes.append(f"{_few(gone)} appeared or vanished in between; while absent they count as idle")
    own = [block.rows[name] for block in kept for name in disks if name in block.rows]
    if any("tps" in row and "r/s" not in row for row in own):
        split = "all count as reads" if any("" in _bytes(row) for row in own) else "their bytes split them"
        notes.append(f"reads and writes are not counted apart, so {split}; iostat -x counts them")
    other = sum(row.get("d/s", 0.0) + row.get("f/s", 0.0) for row in own) / len(kept)
    if other > 0:
        notes.append(f"{other:,.3g} discards and flushes per second are not counted as I/O")
    return trace.made([block.time for block in kept], rows, device, interval_s, where, notes)


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _whole(names: Sequence[str]) -> list[str]:
    """Whole disks; where there is none, what is not a partition of another."""
    disks = [name for name in names if _DISK.fullmatch(name)]
    rest = [name for name in names if not _NEVER.fullmatch(name) and not _is_part(name, names)]
    return disks or rest or list(names)


def _is_part(name: str, names: Sequence[str]) -> bool:
    match = _PARTITION.fullmatch(name)
    return match is not None and (match[1] or match[2]) in names


def _columns(blocks: Sequence[_Block], name: str) -> dict[str, np.ndarray]:
    """Rates of one device in every report; transfers without a direction are split as their bytes are."""
    rows = [block.rows.get(name, {}) for block in blocks]
    moved = [_bytes(row) for row in rows]
    shares = [each.get("w", 0.0) / (sum(each.values()) or 1.0) for each in moved]
    known = [
        next((row[key] for key in ("aqu-sz", "avgqu-sz") if key in row), np.nan if row else 0.0)
        for row in rows
    ]
    splits = [(row, row.get("tps", 0.0), share) for row, share in zip(rows, shares, strict=True)]
    return {
        "reads": np.array([row.get("r/s", each * (1 - share)) for row, each, share in splits]),
        "writes": np.array([row.get("w/s", each * share) for row, each, share in splits]),
        "bytes": np.array([sum(each.values()) for each in moved]),
        "outstanding": np.array(known),
    }


def _bytes(row: Mapping[str, float]) -> dict[str, float]:
    """Bytes a second by direction, "r", "w" or "" where not told apart; old tables have them in two units."""
    by_direction: dict[str, float] = {}
    for name, value in row.items():
        match = _BYTES.fullmatch(name)
        if match is not None:
            bytes_s = value * _UNITS[match[2] or match[3] or match[5]]
            by_direction.setdefault((match[1] or match[4] or "")[:1], bytes_s)
    return by_direction


def _text_blocks(text: str, where: str, cut: list[str]) -> list[_Block]:
    """Reports of a text; what is cut short at its end is left out, with a note."""
    blocks: list[_Block] = []
    columns: list[str] = []
    time, first, lines = None, True, text.splitlines()
    for position, line in enumerate(lines):
        words = line.split()
        if _START.match(line):
            first, columns, time = True, [], None
        elif words and words[0] in ("Device", "Device:"):
            columns = words[1:]
            _known_columns(columns, where)
            blocks.append(_Block(time, first))
            first, time = False, None
        elif words and words[-1] == "Device":
            raise DiskbookError(
                f"{where}: it was printed with -h or --human, which rounds; record with iostat -xt 5"
            )
        elif not words or words[0].startswith("avg-cpu"):
            columns = []
        elif columns and not _row(blocks[-1], words, columns):  # cut short, if it is the end
            if position < len(lines) - 2:
                raise DiskbookError(
                    f"{where}, line {position + 1}: its {len(words)} cells do not fit the header above"
                )
            blocks.pop()
            cut.append("the last report is cut short, so it is left out")
            break
        elif not columns and ":" in line:
            time = line.strip()
    return blocks


def _known_columns(columns: Sequence[str], where: str) -> None:
    if not {"r/s", "w/s"} <= {*columns} and "tps" not in columns:
        raise DiskbookError(
            f"{where}: its columns have no rates of reads and writes; record with iostat -xt 5"
        )
    if not any(_BYTES.fullmatch(name) for name in columns):
        raise DiskbookError(f"{where}: its columns have no bytes per second; record with iostat -xt 5")


def _row(block: _Block, words: Sequence[str], columns: Sequence[str]) -> bool:
    """Read a row of a report; False where it does not fit the header."""
    if len(words) != len(columns) + 1:
        return False
    try:
        block.rows[visible(words[0])] = dict(zip(columns, map(trace.number, words[1:]), strict=True))
    except ValueError:
        return False
    return True


def _json_blocks(text: str, where: str) -> list[_Block]:
    try:
        hosts = json.loads(text)["sysstat"]["hosts"]
        blocks = [block for host in hosts for block in _of_host(host["statistics"])]
    except json.JSONDecodeError as error:
        raise DiskbookError(
            f"{where}, line {error.lineno}: the JSON of iostat ends early or has decimal commas; stop it "
            "with Ctrl-C, and record with LC_ALL=C"
        ) from None
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError):
        raise DiskbookError(f"{where}: it is not JSON of iostat; record with iostat -xt -o JSON 5") from None
    for block in blocks:
        for row in block.rows.values():
            _known_columns(list(row), where)
    return blocks


def _of_host(reports: Iterable[Mapping[str, Any]]) -> list[_Block]:
    blocks = []
    for position, report in enumerate(report for report in reports if report.get("disk")):
        block = _Block(str(report["timestamp"]) if "timestamp" in report else None, position == 0)
        for row in report["disk"]:
            cells = {str(key): value for key, value in row.items() if key != "disk_device"}
            block.rows[visible(str(row["disk_device"]))] = {key: float(value) for key, value in cells.items()}
        blocks.append(block)
    return blocks
