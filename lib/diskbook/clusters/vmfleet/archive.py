"""Reader and writer of a fleet trial's archive: a zip of every machine's XML, and when each measured.

``fleet.json`` says what the XML does not: ``{"vms": {"vm-two-way-1-node1-001": {"volume": "two-way-1",
"node": "node1", "started_utc": "2026-11-22T10:00:00.123+00:00", "ended_utc": "..."}}}``; without it (a
folder of VMFleet's own) names and XML tell. An archive may be of a stranger: nothing is unpacked to a disk,
nor more of it than a result can hold. Reads bytes, touches no file.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from diskbook.clusters.vmfleet import fleet, line
from diskbook.facts import archives, files as files_read
from diskbook.facts.archives import is_plain_name
from diskbook.facts.errors import visible
from diskbook.facts.units import MIB
from diskbook.tools.diskspd import xml as diskspd_xml
from diskbook.tools.record import Measurement, Parsed, UnusableError

MACHINES = "fleet.json"
MOST_BYTES, MOST_FILES = 64 * MIB, 5000
"""Of an archive, packed and unpacked; and the files in it."""
_MOST_OF_FILE = 16 * MIB
_MOST = {"most_bytes": MOST_BYTES, "most_files": MOST_FILES}
_YEARS = range(2000, 2200)


def is_fleet(content: bytes) -> bool:
    """Whether an archive holds results of a fleet, by the names in it."""
    entries = archives.names(content, **_MOST)
    return MACHINES in entries or any(map(line.cell_and_machine, entries))


def parse(content: bytes, source: str) -> Parsed:
    """Read the archive of a trial that others measured; raises UnusableError as `read` does."""
    measurement, number = _joined(content, source)
    return Parsed("vmfleet", number, "VMFleet archive", (measurement,))


def read(
    content: bytes, source: str, *, runtime_s: float | None = None, instances: int | None = None
) -> Measurement:
    """Read the archive of a trial.

    - `source`: its name, for messages.
    - `runtime_s`, `instances`: how long each machine was to measure, and how many were; what falls short is
      refused.

    Raises UnusableError for an archive that is none, is too large, names paths, lacks a machine, or whose
    machines did different things; one sentence.
    """
    return _joined(content, source, runtime_s=runtime_s, instances=instances)[0]


def version(number: str) -> str:
    """Name VMFleet and the version of its DiskSpd as a run's tables do."""
    return f"vmfleet, {diskspd_xml.version(number)}"


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
    try:
        return archives.unpack(content, source, most_of_file=_MOST_OF_FILE, check_name=is_plain_name, **_MOST)
    except archives.ArchiveError as error:
        raise UnusableError(source, error.why) from None


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
        raise ValueError(f"{time.year} is not a year of a measurement")
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _results(files: Mapping[str, bytes], known: Mapping[str, Any], source: str) -> dict[str, str]:
    """File of each machine, all of one cell."""
    cells = line.grouped(files, known)
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


def _machine(vm: str, content: bytes, known: Mapping[str, Any] | None, source: str) -> fleet.Machine:
    place = f"{source}, {visible(vm)}"
    text, flags = files_read.text_of(content)
    parsed = diskspd_xml.parse(text, place)
    made = fleet.machine(vm, replace(parsed, flags=(*flags, *parsed.flags)), place)
    return replace(made, **known) if known else made
