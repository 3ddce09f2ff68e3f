"""Reader and writer of a fleet trial's archive: a zip of every machine's XML, and when each measured.

``fleet.json`` says what the XML does not: ``{"vms": {"vm-two-way-1-node1-001": {"volume": "two-way-1",
"node": "node1", "started_utc": "2026-11-22T10:00:00.123+00:00", "ended_utc": "..."}}}``; without it (a
folder of VMFleet's own) names and XML tell. An archive may be of a stranger: nothing is unpacked to a disk,
nor more of it than a result can hold. Reads bytes, touches no file.
"""

import io
import json
import struct
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

from diskbook.clusters.vmfleet import fleet, names
from diskbook.clusters.vmfleet.fleet import Machine
from diskbook.facts.errors import visible
from diskbook.facts.units import MIB
from diskbook.tools import decode
from diskbook.tools.diskspd import command as diskspd_command, xml as diskspd_xml
from diskbook.tools.record import Measurement, Parsed, UnusableError

MACHINES = "fleet.json"
MAGIC = b"PK\x03\x04"
MOST_BYTES, MOST_FILES = 64 * MIB, 5000
"""Of an archive, packed and unpacked; and the files in it."""
_MOST_OF_FILE = 16 * MIB
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENTRY = b"PK\x01\x02"  # each file has one in the archive's list
_BROKEN = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, RuntimeError, ValueError)
_YEARS = range(2000, 2200)
_EPOCH = (1980, 1, 1, 0, 0, 0)


def pack(files: Mapping[str, bytes]) -> bytes:
    """Make an archive of files; the same ones give the same bytes.

    They are stored as they are: raw results are packed anyway, and better together, being alike.
    """
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, content in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), content)
    return stream.getvalue()


def is_fleet(content: bytes) -> bool:
    """Whether an archive holds results of a fleet, by the names in it."""
    try:
        _check_size(content, "")
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = archive.namelist()
    except (UnusableError, NotImplementedError, *_BROKEN):
        return False
    return MACHINES in entries or any(map(names.cell_and_machine, entries))


def parse(content: bytes, source: str) -> Parsed:
    """Read the archive of a trial that others measured; raises UnusableError as `read` does."""
    measurement, number = _joined(content, source)
    return Parsed("vmfleet", number, "VMFleet archive", (measurement,))


def read(
    content: bytes, source: str, *, runtime_s: float | None = None, instances: int | None = None
) -> Measurement:
    """Read the archive of a trial.

    - `content`: the zip.
    - `source`: its name, for messages.
    - `runtime_s`, `instances`: how long each machine was to measure, and how many were; what falls short is
      refused.

    Raises UnusableError for an archive that is none, is too large, names paths, lacks a machine, or whose
    machines did different things; one sentence.
    """
    return _joined(content, source, runtime_s=runtime_s, instances=instances)[0]


def version(number: str) -> str:
    """Name VMFleet and the version of its DiskSpd as a run's tables do."""
    return f"vmfleet, {diskspd_command.version(number)}"


def _joined(content: bytes, source: str, **expected: Any) -> tuple[Measurement, str]:
    files = _files(content, source)
    known = _known(files.get(MACHINES), source)
    results = _results(files, known, source)
    machines = [_machine(vm, files[file], known.get(vm), source) for vm, file in results.items()]
    measurement = fleet.join(machines, source, **expected)
    number = machines[0].version
    return replace(measurement, version=version(number)), number


def _files(content: bytes, source: str) -> dict[str, bytes]:
    """Unpack what may be in it: plain files, none twice, all together no larger than a result."""
    if not content:
        raise UnusableError(source, "there is no archive of the machines' results")
    if not content.startswith(MAGIC):
        raise UnusableError(source, "this is no zip archive")
    _check_size(content, source)
    files: dict[str, bytes] = {}
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            left = MOST_BYTES
            for entry in archive.infolist():
                _check_entry(entry, files, source)
                files[entry.filename] = _unpacked(archive, entry, min(left, _MOST_OF_FILE), source)
                left -= len(files[entry.filename])
    except (NotImplementedError, *_BROKEN) as error:
        raise UnusableError(source, f"the archive is damaged ({visible(str(error))})") from None
    return files


def _check_size(content: bytes, source: str) -> None:
    """Hold an archive against its bounds before its list is read, each entry of which takes memory."""
    if len(content) > MOST_BYTES:
        raise UnusableError(source, f"more than {MOST_BYTES // MIB} MiB, which is too large to be a result")
    if content.count(_ENTRY) > MOST_FILES:
        raise UnusableError(source, f"there are more than {MOST_FILES:,} files in it")


def _check_entry(entry: zipfile.ZipInfo, files: Mapping[str, bytes], source: str) -> None:
    name = entry.filename
    shown = visible(name)[:100]
    if PurePosixPath(name).name != name or PureWindowsPath(name).name != name or ".." in name:
        raise UnusableError(source, f"it names a path, {shown}; results lie in it side by side")
    if name in files:
        raise UnusableError(source, f"{shown} is in it twice")
    if entry.flag_bits & 1:
        raise UnusableError(source, f"{shown} is encrypted")
    if entry.compress_type not in _METHODS:
        raise UnusableError(source, f"{shown} is packed in another way than deflate")


def _unpacked(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, most: int, source: str) -> bytes:
    """Unpack a file, and no more of it than it may hold, whatever size it claims."""
    with archive.open(entry) as stream:
        content = stream.read(most + 1)
    if len(content) > most:
        shown = visible(entry.filename)[:100]
        raise UnusableError(source, f"{shown} unpacks to more than {most / MIB:.3g} MiB, which is no result")
    return content


def _known(content: bytes | None, source: str) -> dict[str, dict[str, Any]]:
    """What fleet.json says of the machines; empty without it."""
    if content is None:
        return {}
    try:
        listed = json.loads(content)["vms"]
        known = {vm: _details(details) for vm, details in listed.items()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError) as error:
        why = visible(str(error))[:100]
        raise UnusableError(
            source, f"{MACHINES} does not list machines with volume and node ({why})"
        ) from None
    if not known:
        raise UnusableError(source, f"{MACHINES} lists no machine")
    return known


def _details(details: Mapping[str, Any]) -> dict[str, Any]:
    texts = {key: details[key] for key in ("volume", "node")}
    if not all(isinstance(text, str) for text in texts.values()):
        raise TypeError("volume and node are names")
    return {**texts, "started": _moment(details.get("started_utc"))}


def _moment(text: Any) -> datetime | None:
    if text is None:
        return None
    time = datetime.fromisoformat(text)
    if time.year not in _YEARS:
        raise ValueError(f"{time.year} is no year of a measurement")
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _results(files: Mapping[str, bytes], known: Mapping[str, Any], source: str) -> dict[str, str]:
    """File of each machine, all of one cell."""
    cells = names.grouped(files, known)
    if len(cells) > 1:
        first, second = map(visible, sorted(cells)[:2])
        raise UnusableError(source, f"it holds several loads ({first} and {second})")
    results = next(iter(cells.values()), {})
    for vm, listed in results.items():
        if known and vm not in known:
            raise UnusableError(source, f"it holds a result of {visible(vm)}, which {MACHINES} does not list")
        if len(listed) > 1:
            raise UnusableError(source, f"there are several results of {visible(vm)}")
    if missing := sorted(known.keys() - results.keys()):
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise UnusableError(source, f"the result of {visible(missing[0])}{more} is missing")
    return {vm: listed[0] for vm, listed in results.items()}


def _machine(vm: str, content: bytes, known: Mapping[str, Any] | None, source: str) -> Machine:
    place = f"{source}, {visible(vm)}"
    text, flags = decode.text_of(content)
    parsed = diskspd_xml.parse(text, place)
    made = fleet.machine(vm, replace(parsed, flags=(*flags, *parsed.flags)), place)
    return replace(made, **known) if known else made
