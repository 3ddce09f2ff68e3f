"""docs/reference/formats.md: every row of it is tried, and the page is what the rows say."""

from __future__ import annotations

import io
import json
from typing import Any

import pandas as pd
import pytest

from checks.formats import FLAGGED, READ, REFUSED, ROWS, Row
from diskbook.importing import formats, table
from diskbook.tools.record import Parsed, UnusableError
from support import SAMPLES, diskspd_texts, fio_texts, other_tools
from support.other_tools import elbencho_row, old_sysbench_result, sysbench_result

GROUPED = SAMPLES / "fio" / "json-group_reporting.json"


def sample(name: str) -> bytes:
    return (SAMPLES / name).read_bytes()


def changed_job(**changes: Any) -> bytes:
    """The sample's document with one job, whose write part is changed; None takes a key out."""
    document = json.loads(GROUPED.read_text())
    job = next(job for job in document["jobs"] if job["write"]["total_ios"])
    document["jobs"] = [job]
    for name, value in changes.items():
        part = job["job options"] if name in ("rw", "disable_lat") else job["write"]
        if value is None:
            del part[name]
        else:
            part[name] = value
    return json.dumps(document, indent=1).encode()


_ANEW = {
    "iops": 100,
    "runtime": 9000,
    "total_ios": 900,
    "io_bytes": 3686400,
    "io_kbytes": 3600,
    "clat_ns": {},
}
_JOB = {"jobname": "a", "job options": {"rw": "randread", "bs": "4k"}, "read": _ANEW, "write": {}}
_TRIMS = {"jobname": "a", "job options": {"rw": "trim"}, "trim": {"total_ios": 9}}
_CLASS = {"metadata": {"name": "premium"}, "parameters": {"skuName": "Premium_LRS"}}


def document(job: dict[str, Any]) -> dict[str, Any]:
    """What a program that reads and writes fio's JSON makes of one job."""
    return {"fio version": "fio-3.20", "jobs": [job]}


def excel_of(frame: pd.DataFrame) -> bytes:
    """Make an Excel file of a table."""
    packed = io.BytesIO()
    frame.to_excel(packed, index=False)
    return packed.getvalue()


KUBESTR = json.dumps({"Raw": {"size": "1Gi", "storageClass": _CLASS, "result": document(_JOB)}}).encode()
ROW = elbencho_row()
OTHERS = {
    "elbencho CSV": other_tools.elbencho_csv(ROW, elbencho_row(operation="RMFILES")),
    "elbencho JSON": other_tools.elbencho_json(ROW),
    "elbencho CSV of two versions": other_tools.elbencho_csv(ROW, elbencho_row(version="2.3-1")),
    "elbencho CSV of object storage": other_tools.elbencho_csv(elbencho_row(**{"path type": "bucket"})),
    "sysbench": sysbench_result(),
    "sysbench before 1.0": old_sysbench_result(),
    "sysbench of two processes at once": sysbench_result(threads=16, banner=1),
    "sysbench with an fsync per 100": sysbench_result(test="random write", every=100),
    "sysbench that was ended": sysbench_result().partition("File operations:")[0],
    "sysbench prepare": "sysbench 1.0.20\n\n99 bytes written in 1 seconds (0 MiB/sec).\n",
    "sysbench of another test": "sysbench 1.0.20\n\nCPU speed:\n",
}
FRAME = pd.DataFrame({"disk": ["a", "b"], "op": ["read", "write"], "bs": ["4k", "4k"], "IOPS": [500, 400]})
COLUMNS = table.columns_of("arm=disk,operation=op,block_size=bs,iops=IOPS")
TABLES = {
    "CSV table": FRAME.to_csv(index=False, sep=";").encode("utf-16"),
    "Parquet table": FRAME.to_parquet(index=False),
    "Excel table": excel_of(FRAME),
    "table whose rows have no rate": FRAME.assign(IOPS="").to_csv(index=False).encode(),
}
CASES: dict[str, bytes] = {
    "json": GROUPED.read_bytes(),
    "json without total_ios": changed_job(total_ios=None),
    "json after other output": sample("fio/json-and-normal.txt"),
    "json cut within a job": GROUPED.read_bytes()[:1500],
    "json of a job without I/O": GROUPED.read_bytes().replace(b'"total_ios" :', b'"total_ios" : 0, "was" :'),
    "json of unlike jobs reported as one": changed_job(rw="randread"),
    "json of a job that only trims": json.dumps(document(_TRIMS)).encode(),
    "json written again without zeros": json.dumps(document(_JOB)).encode(),
    "json with disable_lat": changed_job(
        disable_lat="1", lat_ns={"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0}
    ),
    "text of fio 2": fio_texts.FIO_2.encode(),
    "text with a bare version": fio_texts.FIO_2.replace("fio-2.1.3", "2.0.8").encode(),
    "text of fio 3": fio_texts.FIO_3.encode(),
    "text quoted and with Windows line ends": "\r\n".join(
        f"> {line}" for line in fio_texts.FIO_3.splitlines()
    ).encode(),
    "text without its report": fio_texts.FIO_3.partition("writer: (groupid")[0].encode(),
    "terse": sample("fio-terse/v3.txt"),
    "latency log": sample("fio-logs/mean_lat.1.log"),
    "histogram log": sample("fio-logs/hist_clat_hist.1.log"),
    "DiskSpd text": diskspd_texts.text_of("2.0.12").encode(),
    "DiskSpd text for Linux": diskspd_texts.text_of("linux").encode(),
    "DiskSpd text, interrupted": diskspd_texts.interrupted().encode(),
    "DiskSpd XML 2.0.17": sample("diskspd/v2.0.17-rand-w30-L-D.xml"),
    "DiskSpd XML 2.2": sample("diskspd/v2.2-rand-w30-L-D.xml"),
    "DiskSpd XML without -L": sample("diskspd/v2.2-readonly-noL.xml"),
    "DiskSpd XML of a missing file": sample("diskspd/v2.2-missing-file.xml"),
    "VMFleet archive": sample("vmfleet/fleet.zip"),
    "VMFleet table": sample("vmfleet/result.tsv"),
    "kubestr JSON": KUBESTR,
    "kubestr JSON, cut": KUBESTR[:-20],
    **{name: text.encode() for name, text in OTHERS.items()},
    "PerfKitBenchmarker samples": sample("pkb/fio.json"),
    "samples of another benchmark": b'{"metric": "Throughput", "value": 1.0, "unit": "Mb/s", "labels": ""}\n',
    **TABLES,
    "Windows performance counters": b"PDH\x00\x01",
    "zip archive": b"PK\x03\x04rest",
    "picture": b"\x89PNG\r\n",
    "HTML page": b"<html></html>",
    "JSON of something else": b'{"a": 1}',
    "table without --columns": sample("tables/made-up.csv"),
    "Parquet table without --columns": b"PAR1" + bytes(9),
    "any other text": b"hello",
    "empty file": b"\x00\x00",
}


def test_every_row_has_an_example() -> None:
    assert [row.case for row in ROWS] == list(CASES)
    assert len(ROWS) >= 25


def parse(row: Row, content: bytes) -> Parsed:
    """Read an example, a table with its columns named."""
    is_table = row.case in TABLES
    return table.parse(content, "x", COLUMNS) if is_table else formats.parse(content, "x")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.case)
def test_what_the_page_says_of_a_format_is_so(row: Row) -> None:
    content = CASES[row.case]
    if formats.is_log(content):
        assert row.outcome == READ  # what a log tells is tried with the job that it is of
        return
    if row.outcome == REFUSED:
        with pytest.raises(UnusableError) as refusal:
            parse(row, content)
        assert row.words in str(refusal.value)
        return
    parsed = parse(row, content)
    assert parsed.measurements
    flags = [*parsed.flags, *(flag for item in parsed.measurements for flag in item.flags)]
    assert any(row.words in flag for flag in flags) or row.outcome != FLAGGED
