"""PerfKitBenchmarker's samples, VMFleet's tables, and telling formats apart."""

from __future__ import annotations

import json

import pytest

from diskbook.clusters.vmfleet import table as vmfleet_table
from diskbook.importing import formats, perfkit
from diskbook.importing.fio import json_files
from diskbook.tools.record import UnusableError
from support import SAMPLES


def pkb_text(name: str = "fio") -> str:
    return (SAMPLES / "pkb" / f"{name}.json").read_text()


def test_samples_of_fio_give_back_the_run_they_were_made_of() -> None:
    found = {one.name: one for one in perfkit.parse(pkb_text(), "x").measurements}
    told = json_files.parse((SAMPLES / "fio" / "json-group_reporting.json").read_text(), "x").measurements
    assert list(found) == [one.name for one in told]
    for one in told:
        mine = found[one.name]
        for name, part in one.directions.items():
            assert mine.directions[name].iops == pytest.approx(part.iops)
            assert mine.directions[name].lat_p99_ms == pytest.approx(part.lat_p99_ms)
            assert mine.directions[name].ios == pytest.approx(part.ios, rel=0.01)
            assert mine.directions[name].bw_bytes == pytest.approx(part.bw_bytes, rel=0.01)
        load = ("block_size_bytes", "write_pct", "threads", "queue_depth")
        assert [getattr(mine.load, key) for key in load] == [getattr(one.load, key) for key in load]
        assert mine.target == "/dev/sdc"
    assert perfkit.parse(pkb_text(), "x").version == "3.33"


def test_samples_of_diskspd() -> None:
    found = perfkit.parse(pkb_text("diskspd"), "x")
    (one,) = found.measurements
    write = one.directions["write"]
    assert (found.tool, write.iops, write.lat_mean_ms, write.lat_p99_ms) == ("diskspd", 5099, 7.83, 9.1)
    assert write.bw_bytes == pytest.approx(39.8 * 2**20)
    assert (one.load.threads, one.load.queue_depth, one.load.write_pct) == (5, 8, 100)
    assert one.load.threads * one.load.queue_depth / write.iops * 1000 == pytest.approx(
        write.lat_mean_ms, rel=0.01
    )


def test_a_run_that_comes_again_is_another_measurement() -> None:
    assert len(perfkit.parse(pkb_text() + pkb_text(), "x").measurements) == 6


def test_lines_that_are_no_samples_are_told() -> None:
    found = perfkit.parse(pkb_text() + '{"metric": "x"}\n{"metric": "rr:read:iops", "val', "x")
    assert len(found.measurements) == 3
    assert any(flag.endswith("and 1 more: no sample, left out") for flag in found.flags)


def test_labels_may_be_an_object() -> None:
    lines = [json.loads(line) for line in pkb_text().splitlines()]
    for line in lines:
        line["labels"] = perfkit.labels_of(line["labels"])
    text = "\n".join(json.dumps(line) for line in lines)
    assert perfkit.parse(text, "x").measurements == perfkit.parse(pkb_text(), "x").measurements


def test_samples_of_other_benchmarks_alone_are_refused() -> None:
    with pytest.raises(UnusableError, match="no sample of fio or DiskSpd"):
        perfkit.parse('{"metric": "Throughput", "value": 1.0, "unit": "Mbits/sec", "labels": ""}\n', "x")


def test_vmfleets_tables() -> None:
    text = (SAMPLES / "vmfleet" / "result.tsv").read_text()
    first, second = vmfleet_table.parse_table(text, "x").measurements
    assert (first.directions["read"].iops, first.directions["write"].lat_mean_ms) == (18000, 1.32)
    assert first.directions["read"].lat_p99_ms == 2.1
    assert (first.load.write_pct, first.load.rate, second.load.rate) == (10, None, 10000)
    assert first.directions["read"].bw_bytes / first.directions["read"].iops == 4096
    assert "4 machines together" in first.flags


@pytest.mark.parametrize(
    ("name", "format_"),
    [
        ("fio/json-and-normal.txt", "fio JSON"),
        ("fio-terse/v5.txt", "fio terse"),
        ("diskspd/v2.1-rand-w30-L-D.xml", "DiskSpd XML"),
        ("diskspd/v2.1-rand-w30-L-D.txt", "DiskSpd text"),
        ("pkb/fio.json", "PerfKitBenchmarker samples"),
        ("vmfleet/result-vm-qos0.tsv", "VMFleet table"),
    ],
)
def test_formats_are_told_by_content(name: str, format_: str) -> None:
    content = (SAMPLES / name).read_bytes()
    assert formats.parse(content, "nameless").format == format_
    assert not formats.is_log(content)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"\x00\x00\x00", "the file is empty"),
        (b"PK\x03\x04rest", "a zip archive: unpack it first"),
        (b"\x89PNG\r\n", "a picture"),
        (b"<html></html>", "XML, but no result of DiskSpd"),
        (b'{"a": 1}', "JSON, but neither"),
        (b"hello", "no format that is known"),
        (b"t: (g=0): rw=randread, bs=4K\nfio-3.1\n", "fio's output for people"),
    ],
)
def test_what_is_none_of_them_is_said(content: bytes, message: str) -> None:
    with pytest.raises(UnusableError, match=message):
        formats.parse(content, "x")


@pytest.mark.parametrize(
    ("workload", "load"),
    [
        ("General4KWriteRatio30", ("random", 4096, 30, 1, 32, 4)),
        ("Peak4kRead", ("random", 4096, 0, 1, 32, 4)),
        ("Vdi", (None, None, None, None, None, None)),
    ],
)
def test_core_workloads_of_vmfleet_tell_their_load(workload: str, load: tuple[object, ...]) -> None:
    text = (SAMPLES / "vmfleet" / "result.tsv").read_text().replace("General4KWriteRatio10", workload)
    measurement = vmfleet_table.parse_table(text, "x").measurements[0]
    keys = ("pattern", "block_size_bytes", "write_pct", "threads", "queue_depth", "instances")
    assert tuple(getattr(measurement.load, key) for key in keys) == load
    assert workload in measurement.name
