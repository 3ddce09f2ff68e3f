"""DiskSpd's flags: what each means, and which values it takes (`data/reference/diskspd-flags.csv`)."""

import csv
import re
from collections.abc import Callable
from typing import Any

from diskbook.facts.errors import UsageError
from diskbook.facts.paths import REFERENCE

with (REFERENCE / "diskspd-flags.csv").open(encoding="utf-8", newline="") as _file:
    _FLAGS = list(csv.DictReader(_file))
MEANINGS = {row["flag"]: row["meaning"] for row in _FLAGS}
_KIB = 1024
DEFAULT_BLOCK = 64 * _KIB
UNITS = {"": 1, "K": _KIB, "M": _KIB**2, "G": _KIB**3, "T": _KIB**4}
# Kept as they stand: they change how the load is made, but not how much of it. They get into a command line
# as somebody wrote them, so each takes only what DiskSpd's wiki has ("Command line and parameters").
_KEPT = {row["flag"]: row["kept_values"] for row in _FLAGS if row["kept_values"]}
_DISTRIBUTION = r"d(pct|abs)[0-9]+/[0-9]+[KMGTb]?(:[0-9]+/[0-9]+[KMGTb]?)*"
_FILE_NAME = re.compile(r"[A-Za-z0-9 _.:/\\-]{1,200}")
_NUMBER = {"C", "d", "F", "o", "O", "t", "w", "W"}
_SIZE = {"b": "block_size", "c": "create_bytes", "T": "thread_stride", "B": "base_offset"}
_COUNT = {
    "C": "cooldown_s",
    "d": "duration_s",
    "F": "total_threads",
    "o": "outstanding",
    "O": "outstanding_per_thread",
    "t": "threads_per_target",
    "w": "write_pct",
    "W": "warmup_s",
}


def wrong(flag: str, what: str) -> UsageError:
    return UsageError(f"DiskSpd argument {flag}: {what}")


def read_flag(flag: str, fields: dict[str, Any]) -> None:
    """Put what a flag says into the fields read so far."""
    letter, value = flag[1:2], flag[2:]
    if letter in _COUNT:
        _once(flag, fields, _COUNT[letter], _whole(flag, value, least=_least(letter), most=_most(letter)))
    elif letter in _SIZE:
        _once(flag, fields, _SIZE[letter], size_bytes(flag, value, fields))
    elif letter in _SPECIAL:
        _SPECIAL[letter](flag, value, fields)
    elif letter in _KEPT:
        _keep(flag, fields)
    else:
        raise _unknown(flag)


def _least(letter: str) -> int:
    return 0 if letter in "CWw" else 1


def _most(letter: str) -> int | None:
    return 100 if letter == "w" else None


def _unknown(flag: str) -> UsageError:
    letter = flag[1:2]
    if flag.startswith("--") or "=" in flag:
        return wrong(flag, "DiskSpd has no long flags, which are fio's; write for example -b8K -w100")
    if letter == "X":
        return wrong(flag, "a profile in XML is not read here; give its settings as arguments")
    if letter == "?":
        return wrong(flag, "only shows DiskSpd's help; leave it out")
    if (other := letter.swapcase()) in MEANINGS:
        return wrong(flag, f"DiskSpd has no such flag; the nearest is -{other} ({MEANINGS[other]})")
    known = " ".join(f"-{known}" for known in sorted(MEANINGS, key=str.lower))
    return wrong(flag, f"DiskSpd has no such flag; it knows {known}")


def _once(flag: str, fields: dict[str, Any], field: str, value: Any) -> None:
    if field in fields:
        raise wrong(flag, "this is said twice; leave one out")
    fields[field] = value


def _keep(flag: str, fields: dict[str, Any]) -> None:
    if not re.fullmatch(_KEPT[flag[1]], flag[2:]):
        raise wrong(flag, f"this is none of the values that -{flag[1]} ({MEANINGS[flag[1]]}) takes")
    fields["kept"] = (*fields.get("kept", ()), flag)


def _whole(flag: str, value: str, *, least: int = 1, most: int | None = None) -> int:
    """A whole number. DiskSpd itself reads "5x" as 5 and "x" as 0."""
    if not value:
        raise wrong(flag, f"the number is missing; write it without a space, for example {flag}8")
    if not value.isascii() or not value.isdigit():
        raise wrong(flag, f"'{value}' is not a whole number")
    if int(value) < least or (most is not None and int(value) > most):
        bounds = f"{least} to {most}" if most is not None else f"{least} or more"
        raise wrong(flag, f"{value} is out of range, which is {bounds}")
    return int(value)


def size_bytes(flag: str, value: str, fields: dict[str, Any]) -> int:
    """A size: bytes, or with K, M, G, T (powers of 1024), or b for blocks."""
    match = re.fullmatch(r"([0-9]+)([KMGTB]?)", value.upper())
    if match is None:
        given = f"'{value}' is not a size" if value else "the size is missing; write it without a space"
        raise wrong(flag, f"{given}; for example {flag[:2]}8K (K, M, G, T, or b for blocks)")
    number, unit = int(match[1]), match[2]
    if unit == "B" and flag[1] == "b":
        raise wrong(flag, "the block size cannot be given in blocks")
    size = number * (fields.get("block_size", DEFAULT_BLOCK) if unit == "B" else UNITS[unit])
    if size == 0 and flag[1] not in "Bs":
        raise wrong(flag, "the size is 0")
    return size


def _iops_statistics(flag: str, value: str, fields: dict[str, Any]) -> None:
    _once(flag, fields, "iops_interval_ms", _whole(flag, value) if value else 1000)


def _part_or_hints(flag: str, value: str, fields: dict[str, Any]) -> None:
    if value[:1].isdigit() or not value:
        _once(flag, fields, "max_offset", size_bytes(flag, value, fields))
    elif set(value) <= set("rst"):
        fields["kept"] = (*fields.get("kept", ()), flag)
    else:
        raise wrong(flag, "takes a size, or hints of the letters r, s and t")


def _rate(flag: str, value: str, fields: dict[str, Any]) -> None:
    _once(flag, fields, "rate", _whole(flag, value.removesuffix("i")))
    fields["rate_unit"] = "IOPS" if value.endswith("i") else "bytes/ms"


def _latency(flag: str, value: str, fields: dict[str, Any]) -> None:
    _nothing_after(flag, value)
    _once(flag, fields, "latency", True)


def _nothing_after(flag: str, value: str) -> None:
    if value:
        raise wrong(flag, f"{flag[:2]} takes no value; did you mean two flags, {flag[:2]} -{value}?")


def _random(flag: str, value: str, fields: dict[str, Any]) -> None:
    if value.startswith("s"):
        if 0 < fields.get("random_pct", 100) < 100:
            raise wrong(flag, "-rs is said twice; leave one out")
        fields["random_pct"] = _whole(flag, value[1:], most=100)
        return
    if value.startswith("d"):
        if not re.fullmatch(_DISTRIBUTION, value):
            raise wrong(flag, "write a distribution as -rdpct90/10:10/90 or -rdabs90/10G")
        _once(flag, fields, "distribution", value[1:])
        return
    _not_both(flag, fields, "interlocked")
    fields.setdefault("random_pct", 100)
    _once(flag, fields, "align", size_bytes(flag, value, fields) if value else None)


def _sequential(flag: str, value: str, fields: dict[str, Any]) -> None:
    interlocked = value.startswith("i")
    rest = value[1:] if interlocked else value
    _not_both(flag, fields, "random_pct")
    _once(flag, fields, "interlocked", interlocked)
    _once(flag, fields, "align", size_bytes(flag, rest, fields) if rest else None)


def _not_both(flag: str, fields: dict[str, Any], other: str) -> None:
    if other in fields:
        raise wrong(flag, "-r and -s do not go together; leave one out")


def _output(flag: str, value: str, fields: dict[str, Any]) -> None:
    if value not in ("text", "xml"):
        raise wrong(flag, "only -Rtext and -Rxml run a load")
    _once(flag, fields, "output", value)


def _caching(flag: str, value: str, fields: dict[str, Any]) -> None:
    for letter in value or "u":
        _cache_letter(flag, letter, fields)


def _cache_letter(flag: str, letter: str, fields: dict[str, Any]) -> None:
    if letter not in "bhmruw":
        raise wrong(flag, f"'{letter}' is none of DiskSpd's cache modes b, h, m, r, u, w")
    if letter in "bhru":
        _once(flag, fields, "cache", {"b": "on", "r": "remote"}.get(letter, "off"))
    if letter in "hw":
        _once(flag, fields, "write_through", True)
    if letter == "m":
        _once(flag, fields, "memory_mapped", True)


def _old_caching(flag: str, value: str, fields: dict[str, Any]) -> None:
    _nothing_after(flag, value)
    _cache_letter(flag, "h", fields)


def _events(flag: str, value: str, fields: dict[str, Any]) -> None:
    if value[:1] not in ("s", "f"):
        raise wrong(flag, "is for events of other programs, of which there are none here; leave it out")
    _keep(flag, fields)


def _seed(flag: str, value: str, fields: dict[str, Any]) -> None:
    if "clock_seed" in fields or "seed" in fields:
        raise wrong(flag, "this is said twice; leave one out")
    if value:
        fields["seed"] = _whole(flag, value, least=0)
    else:
        fields["clock_seed"] = True


def _buffers(flag: str, value: str, fields: dict[str, Any]) -> None:
    if value in ("", "r"):
        _once(flag, fields, "buffers", "random" if value else "zero")
        return
    size, comma, file = value.partition(",")
    if size_bytes(flag, size, fields) < fields.get("block_size", DEFAULT_BLOCK):
        raise wrong(flag, "the buffer is smaller than a block")
    if comma and not _FILE_NAME.fullmatch(file):
        raise wrong(flag, "name the file of the content with letters, digits, spaces and _ . : / \\ - alone")
    _once(flag, fields, "buffers", value)


_SPECIAL: dict[str, Callable[[str, str, dict[str, Any]], None]] = {
    "D": _iops_statistics,
    "f": _part_or_hints,
    "g": _rate,
    "h": _old_caching,
    "L": _latency,
    "r": _random,
    "R": _output,
    "s": _sequential,
    "S": _caching,
    "y": _events,
    "z": _seed,
    "Z": _buffers,
}
