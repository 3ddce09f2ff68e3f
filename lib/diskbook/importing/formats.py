"""Tells by a file's content, never by its name, which tool wrote it, and calls that format's parser."""

import re
from collections.abc import Callable

from diskbook.facts import files
from diskbook.facts.neighbours import vmfleet_results as vmfleet
from diskbook.importing import elbencho, kubestr, perfkit, sysbench
from diskbook.importing.diskspd import text_output as diskspd_text
from diskbook.importing.fio import json_files, log_histogram, normal, terse
from diskbook.tools.diskspd import xml as diskspd_xml
from diskbook.tools.record import Parsed, UnusableError


def _is_table_of_a_fleet(text: str) -> bool:
    return vmfleet.is_table(text)


def _table_of_a_fleet(text: str, source: str) -> Parsed:
    return vmfleet.parse_table(text, source)


_ZIP = b"PK\x03\x04"
_BY_COLUMNS = "name its columns by --columns"
_FORMATS: tuple[tuple[Callable[[str], bool], Callable[[str, str], Parsed]], ...] = (
    (lambda text: "<Results" in text, diskspd_xml.parse),
    (kubestr.is_kubestr, kubestr.parse),
    (lambda text: '"fio version"' in text, json_files.parse),
    (perfkit.is_samples, perfkit.parse),
    (_is_table_of_a_fleet, _table_of_a_fleet),
    (elbencho.is_elbencho, elbencho.parse),
    (sysbench.is_sysbench, sysbench.parse),
    (normal.is_normal, normal.parse),
    (terse.is_terse, terse.parse),
    (diskspd_text.is_text, diskspd_text.parse),
)
"""How each format is told, and read; the first that fits."""
_LOG_LINE = re.compile(rb"\s*\d{1,18}, ?\d{1,18}, ?[0-3], ?\d{1,18}")
_MAGIC = {
    b"PAR1": f"a Parquet table: {_BY_COLUMNS}",
    _ZIP: "a zip archive: unpack it first",
    b"\x1f\x8b": "a gzip file: unpack it first",
    b"\x89PNG": "a picture",
    b"PDH\x00": "Windows performance counters, which are not read",
    b"%PDF": "a PDF",
}


def is_log(head: bytes) -> bool:
    """Whether a file that begins like this is a log of fio (latency, IOPS, bandwidth, histogram)."""
    return _LOG_LINE.match(head) is not None or log_histogram.is_histogram(head)


def parse(content: bytes, source: str) -> Parsed:
    """Read a whole result file of any tool and format, other than a log.

    Raises UnusableError when the format is not known, or nothing in the file can be used: one sentence.
    """
    if not content.strip(b"\x00 \t\r\n"):
        raise UnusableError(source, "the file is empty")
    if content.startswith(_ZIP) and vmfleet.is_fleet(content):
        return vmfleet.parse_archive(content, source)
    if content.startswith(_ZIP) and b"xl/worksheets/" in content:
        raise UnusableError(source, f"this is an Excel table: {_BY_COLUMNS}")
    for magic, what in _MAGIC.items():
        if content.startswith(magic):
            raise UnusableError(source, f"this is {what}")
    text, flags = files.text_of(content)
    parsed = _parse_text(text, source)
    return Parsed(parsed.tool, parsed.version, parsed.format, parsed.measurements, (*flags, *parsed.flags))


def _parse_text(text: str, source: str) -> Parsed:
    for is_of, parse_as in _FORMATS:
        if is_of(text):
            return parse_as(text, source)
    raise UnusableError(source, _unknown(text))


def _unknown(text: str) -> str:
    head = text.lstrip()[:200]
    if head.startswith("<"):
        return "this is XML, but no result of DiskSpd"
    if head.startswith(("{", "[")):
        return "this is JSON, but neither of fio, kubestr or elbencho nor samples of PerfKitBenchmarker"
    cells = [{line.count(mark) for line in head.splitlines()[:2]} for mark in ",;\t"]
    if any(len(counts) == 1 and max(counts) > 1 for counts in cells):
        return f"no output of a known tool; if it is a table of results, {_BY_COLUMNS}"
    return "no format that is known here"
