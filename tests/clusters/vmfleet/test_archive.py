"""The archive of a fleet's trial: read as it was packed, and refused in a sentence where it may not be."""

from __future__ import annotations

import io
import json
import random
import zipfile
from collections.abc import Callable

import pytest

from diskbook.clusters.vmfleet import TOOL, archive
from diskbook.facts import archives
from diskbook.importing import formats
from diskbook.tools.record import UnusableError
from support import SAMPLES, fleets

GOLDEN = (SAMPLES / "vmfleet" / "fleet.zip").read_bytes()
FILES = fleets.files_of(fleets.fleet(2))
FIRST, SECOND = (name for name in FILES if name.endswith(".xml"))
Files = dict[str, bytes]


def test_the_sample() -> None:
    """Rates of 70 + 77 + 63 and 30 + 33 + 27 a second; starts at 0, 0.1 and 0.25 s of 3 s."""
    result = TOOL.read({"fleet": GOLDEN}, "trial.fleet", runtime_s=3, series_s=1, instances=3)
    read, write = result.directions["read"], result.directions["write"]
    assert (read.iops, write.iops, read.ios, write.ios) == pytest.approx((210, 90, 578, 248))
    assert (read.lat_mean_ms, read.lat_p50_ms, read.lat_p99_ms) == pytest.approx((18.2716, 12, 40), rel=1e-4)
    assert read.runtime_ms == 2750
    assert result.series["read"].iops == pytest.approx([210, 210])
    assert [(item.vm[-8:], item.volume, item.started_s) for item in result.instances] == [
        ("ode1-001", "two-way-1", 0.0),
        ("ode1-002", "two-way-1", 0.1),
        ("ode2-001", "two-way-2", 0.25),
    ]
    assert result.started_utc == "2026-11-22T10:00:00+00:00"
    assert result.version == "vmfleet, diskspd 2.0.21 (emulated by fio-3.33)"
    assert any("91.7 % of their run" in flag for flag in result.flags)


def test_packed_files_are_the_same_bytes_and_come_back() -> None:
    assert archives.pack(FILES) == archives.pack(dict(reversed(FILES.items())))
    parsed = formats.parse(archives.pack(FILES), "f")
    assert (parsed.tool, parsed.format, len(parsed.measurements)) == ("vmfleet", "VMFleet archive", 1)
    assert parsed.measurements[0].load.instances == 2


def test_without_a_list_names_and_xml_tell() -> None:
    bare = {name: content for name, content in FILES.items() if name.endswith(".xml")}
    result = archive.read(archives.pack({**bare, "result.tsv": b"x", "perfctr-n1.blg": b"PDH"}), "f")
    assert [(item.vm[-8:], item.volume, item.node) for item in result.instances] == [
        ("ode1-001", "two-way-1", "node1"),
        ("ode2-001", "two-way-2", "node2"),
    ]


def zipped(files: Files, **how: int) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", how.get("method", zipfile.ZIP_DEFLATED)) as made:
        for name, content in files.items():
            made.writestr(name, content)
    return stream.getvalue()


def twice() -> bytes:
    with pytest.warns(UserWarning, match="Duplicate"):
        stream = io.BytesIO(archives.pack(FILES))
        with zipfile.ZipFile(stream, "a") as made:
            made.writestr(FIRST, b"other")
    return stream.getvalue()


def encrypted() -> bytes:
    content = bytearray(archives.pack({FIRST: FILES[FIRST]}))
    content[6] |= 1  # the flag, of the file and in the list
    content[content.rindex(b"PK\x01\x02") + 8] |= 1
    return bytes(content)


def listed(document: object) -> Callable[[], bytes]:
    return lambda: archives.pack({**FILES, archive.MACHINES: json.dumps(document).encode()})


def of(changes: Files, leave_out: str = "") -> Callable[[], bytes]:
    return lambda: archives.pack({n: c for n, c in {**FILES, **changes}.items() if n != leave_out})


ANOTHER = FIRST.replace("w30", "w0").replace("node1-001", "node1-003")


@pytest.mark.long
@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: b"", "no archive"),
        (lambda: b"<Results/>", "not a zip archive"),
        (lambda: archives.pack(FILES)[:-30], "the archive is damaged"),
        (
            lambda: archives.pack(FILES).replace(b"ReadMilliseconds", b"ReadMillisecondz"),
            "is damaged .Bad CRC",
        ),
        (twice, "is in it twice"),
        (encrypted, "is encrypted"),
        (lambda: zipped(FILES, method=zipfile.ZIP_LZMA), "packed in another way than deflate"),
        (lambda: zipped({FIRST: b"\0" * 20 * 2**20}), "unpacks to more than 16 MiB"),
        (lambda: zipped({f"{n}.xml": b"\0" * 15 * 2**20 for n in range(5)}), "unpacks to more than 4 MiB"),
        (lambda: archives.pack({str(n): b"" for n in range(5001)}), "more than 5,000 files"),
        (lambda: archives.MAGIC + bytes(archive.MOST_BYTES), "more than 64 MiB"),
        (of({"a/b.xml": b""}), "names a path, a/b.xml"),
        (of({"..\\b.xml": b""}), "names a path"),
        (of({"C:b.xml": b""}), "names a path"),
        (of({}, leave_out=FIRST), "the result of vm-two-way-1-node1-001 is missing"),
        (of({ANOTHER: FILES[FIRST]}), "several loads"),
        (of({FIRST.replace("-001", "-009"): FILES[FIRST]}), "which fleet.json does not list"),
        (of({FIRST: b"<Results>"}), "node1-001.*breaks off"),
        (of({FIRST: b"nothing"}), "no <Results> of DiskSpd"),
        (of({}, leave_out=archive.MACHINES), ""),
        (listed({}), "does not list machines"),
        (listed([]), "does not list machines"),
        (listed({"vms": {}}), "lists no machine"),
        (listed({"vms": {"vm-1": {"volume": 1, "node": ""}}}), "are names"),
        (listed({"vms": {"vm-1": {"volume": "", "node": "", "started_utc": "soon"}}}), "Invalid isoformat"),
        (listed({"vms": {"vm-1": {"volume": "", "node": "", "started_utc": "0001-01-01"}}}), "not a year"),
        (lambda: archives.pack({**FILES, archive.MACHINES: b"[" * 100_000}), "does not list machines"),
    ],
)
def test_what_is_no_archive_of_a_fleet_is_refused(make: Callable[[], bytes], named: str) -> None:
    content = make()
    if not named:
        archive.read(content, "f")  # what is left out there is not needed
        return
    with pytest.raises(UnusableError, match=named) as caught:
        archive.read(content, "f")
    assert "\n" not in str(caught.value) and str(caught.value).startswith("f")


def test_an_archive_of_something_else_is_left_to_the_user() -> None:
    with pytest.raises(UnusableError, match="a zip archive: unpack it first"):
        formats.parse(zipped({"readme.txt": b"x", "sub/result-qos0-vm-base-n-001.xml": b""}), "f")
    assert not archive.is_fleet(b"PK\x03\x04 and no more")


def test_damage_anywhere_is_refused_in_a_sentence() -> None:
    chance = random.Random(7)
    for _ in range(150):
        content = bytearray(GOLDEN)
        for _ in range(chance.randint(1, 4)):
            content[chance.randrange(len(content))] = chance.randrange(256)
        cut = bytes(content[: chance.randint(1, len(content))] if chance.random() < 0.3 else content)
        try:
            archive.parse(cut, "f")
        except UnusableError as error:
            assert "\n" not in str(error)
