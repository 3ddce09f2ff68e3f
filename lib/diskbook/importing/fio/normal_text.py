"""What fio's output for people says, line by line: runs, their jobs' start lines, and the reports of jobs.

Read as fio 1.5 to 3.4x print it (`show_thread_status_normal` and `show_ddir_status` in fio's stat.c), and as
people keep it: after shell prompts, between progress lines, indented, quoted or fenced. fio 2, then fio 3::

    rr: (g=0): rw=randread, bs=4K-4K/4K-4K/4K-4K, ioengine=libaio, iodepth=64
    rr: (groupid=0, jobs=4): err= 0: pid=71: Tue Sep 20 22:00:38 2022
      read : io=1024.0MB, bw=61460KB/s, iops=15365, runt= 17061msec

    rr: (g=0): rw=randread, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, ioengine=libaio, iodepth=64
      read: IOPS=15.4k, BW=60.0MiB/s (62.9MB/s)(1024MiB/17061msec)

Compute only, no I/O.
"""

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from diskbook.facts.units import NS_PER_MS, NS_PER_US
from diskbook.importing.fio import shown_options
from diskbook.importing.fio.shown_options import JobFile, Jobs

NS_OF_UNIT = {"nsec": 1, "usec": NS_PER_US, "msec": NS_PER_MS, "sec": 1000 * NS_PER_MS}
_LONGEST_LINE = 4000
_MOST_JOINED = 60
_DIGITS = r"\d{1,15}(?:,\d{3}){0,5}(?:\.\d{1,9})?"  # fio 1 writes 2,523
_ESCAPE = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]")
_TAG = re.compile(
    r"</?(?:a|b|body|br|code|div|em|font|html|li|p|pre|samp|span|strong|td|tr|tt|ul)\b[^<>]{0,200}>",
    re.IGNORECASE,
)
_HOST = re.compile(r"^<([^<>\s]{1,100})>\s*")
_VERSION = re.compile(r"^fio[- ](\d[\w.+-]{0,39})$")
_BARE_VERSION = re.compile(
    r"^\d{1,2}(?:\.\d{1,3}){1,2}(?:-[\w.+-]{1,30})?$"
)  # of fio 2.0.x, after the start lines
_STARTING = re.compile(
    r"^Starting (\d{1,6}) (?:process|thread)(?:e?s)?(?: (?:and|&) (\d{1,6}) (?:process|thread))?"
)
_START = re.compile(
    r"^(?P<name>.{0,200}?): \(g=(?P<group>\d{1,6})\): rw=(?P<rw>\w{1,20}),\s?(?P<bs>.{1,200}?),\s?"
    r"ioengine=(?P<engine>[\w:./-]{1,60}),\s?iodepth=(?P<depth>\d{1,7})"
)
_REPORT = re.compile(
    r"^(?P<name>.{0,200}?): \(groupid=(?P<group>\d{1,6}), jobs=(?P<jobs>\d{1,6})\): err=\s*"
    r"(?P<error>-?\d{1,6})(?: \((?P<why>.{0,200})\))?(?:: pid=(?P<pid>-?\d{1,10})(?:: (?P<ended>.{0,40}))?)?"
)
_DONE_2 = re.compile(
    rf"^(?P<kind>read|write|trim|mixed)\s*: io=(?P<io>{_DIGITS}\s*\w{{0,5}}),"
    rf"\s*bw=(?P<bw>{_DIGITS}\s*\w{{0,6}})/s,\s*iops=(?P<iops>{_DIGITS}\s?[kKMGT]?)\s*,\s*runt=\s*(?P<ms>\d{{1,12}})\s*msec"
)
_DONE_3 = re.compile(
    rf"^(?P<kind>read|write|trim|mixed)\s*: IOPS=(?P<iops>{_DIGITS}\s?[kKMGT]?), "
    rf"BW=(?P<bw>{_DIGITS}\s?\w{{0,6}})/s \((?P<other>{_DIGITS}\s?\w{{0,6}})/s\)"
    rf"\s?\((?P<io>{_DIGITS}\s?\w{{0,5}})/(?P<ms>\d{{1,12}})msec\)"
)
_LATENCY = re.compile(
    rf"^(?P<of>slat|clat|lat|sync)\s*\((?P<unit>[num]?sec)\)\s*: min=\s*(?P<min>{_DIGITS}[kKMGT]?)\s*,"
    rf"\s*max=\s*(?P<max>{_DIGITS}[kKMGT]?)\s*,\s*avg=\s*(?P<mean>{_DIGITS})\s*,\s*stdev=\s*(?P<spread>{_DIGITS})"
)
_PERCENTILES = re.compile(r"^(?P<of>slat|clat|lat|sync) percentiles \((?P<unit>[num]?sec)\)\s*:")
_PERCENTILE = re.compile(rf"({_DIGITS})th=\[\s*>?=?\s*({_DIGITS})\s*\]")
_CPU = re.compile(rf"^cpu\s*: usr=({_DIGITS})%, sys=({_DIGITS})%")
_DEPTHS = re.compile(rf"(>?=?\d{{1,3}})=({_DIGITS})%")
_ISSUED = re.compile(
    r"^issued[^:]{0,20}: total=(?:r=)?(\d{1,15})[,/](?:w=)?(\d{1,15})(?:[,/](?:[dt]=)?(\d{1,15}))?"
    r"(?:,(\d{1,15}))?,?\s*short="
)
_SYNCS_AS_SHORT = re.compile(r"\bshort=(\d{1,15}),")
_TARGET = re.compile(r"^latency\s*: target=(\d{1,15}),")
_STATUS_GROUP = re.compile(r"^Run status group (\d{1,6})")
_TOTAL = re.compile(rf"^(READ|WRITE)\s*: .{{0,80}}?\b(?:aggrb|bw)=({_DIGITS}\s?\w{{0,6}})/s")
_DISK = re.compile(r"^([\w!-]{1,60}): ios=\d")
_RATE = re.compile(r"^Jobs: \d+ \(f=\d+\),\s*(?:CR=)?([^:\[]{1,60}?)\s*:")
_RANGE = re.compile(r"(\d{1,12}(?:\.\d{1,4})?[kKMGT]?i?B?)-(\d{1,12}(?:\.\d{1,4})?[kKMGT]?i?B?)")
_SECTOR = 512
_PREFIX = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}


@dataclass(frozen=True)
class Start:
    """What fio says of a job before it runs it; `several` where it leaves clones out of the list."""

    name: str
    group: str
    options: dict[str, str]
    several: bool = False


@dataclass(frozen=True)
class Spread:
    """Mean, deviation and ends of a latency in ns; `unit_ns` is what they are printed in."""

    mean_ns: float
    spread_ns: float
    min_ns: float
    max_ns: float
    unit_ns: float


@dataclass
class Done:
    """One direction of a report: `bw` are its rates in bytes as printed, `percentiles` are in ns."""

    iops: float
    bw: tuple[float, ...]
    runtime_ms: float
    iops_text: str = ""
    latencies: dict[str, Spread] = field(default_factory=dict)
    percentiles: dict[str, dict[float, float]] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)


@dataclass
class Report:
    """What fio says of a job, or with group_reporting of a group, when it is done.

    `issued` are reads, writes, trims and, in newer releases, syncs; `short` the number after these, which in
    fio 3.33 is that of the syncs (seen: total=0,15930,0,0 short=15930,0,0,0 with fdatasync=1).
    """

    name: str
    host: str
    group: str
    jobs: int
    pid: str
    line: int
    error: str = ""
    ended: str = ""
    done: dict[str, Done] = field(default_factory=dict)
    issued: tuple[int, ...] = ()
    short: int = 0
    cpu: tuple[float, float] | None = None
    depths: tuple[float, ...] = ()
    latency_target: bool = False

    @property
    def syncs(self) -> int:
        """Number of syncs; 0 where it is not told."""
        counted = self.issued[3] if len(self.issued) > 3 else 0
        return counted or (self.short if "sync" in self.done else 0)


@dataclass
class Run:
    """One call of fio: what was shown of its options, and what it printed."""

    line: int
    version: str = ""
    jobs: Jobs = field(default_factory=dict)
    starts: list[Start] = field(default_factory=list)
    started: int = 0
    reports: list[Report] = field(default_factory=list)
    totals: dict[tuple[str, str], float] = field(default_factory=dict)
    disks: list[str] = field(default_factory=list)
    rate: str = ""
    signal: bool = False


def lines_of(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their numbers, freed of what shells, terminals and pages put around them."""
    marked = "&gt;" in text or "&lt;" in text or "<" in text
    for number, whole in enumerate(text.split("\n"), 1):
        for piece in whole.split("\r"):
            line = piece[-_LONGEST_LINE:]
            eta = line.rfind("[eta ")
            end = line.find("]", eta) if eta >= 0 else -1
            if end >= 0 and end + 1 < len(line.rstrip()):
                line = line[end + 1 :]
            if "\x1b" in line:
                line = _ESCAPE.sub("", line)
            if marked:
                line = html.unescape(_TAG.sub("", line))
            yield number, re.sub(r"^[\s>│]+(?!=)", "", line).rstrip()


def runs(text: str) -> list[Run]:
    """All calls of fio that the text shows; those without a report are left out."""
    reader = _Reader()
    for number, line in lines_of(text):
        if line:
            reader.take(number, line)
    reader.end_command()
    return [run for run in reader.runs if run.reports]


class _Reader:
    """Takes lines one after another."""

    def __init__(self) -> None:
        self.runs = [Run(1)]
        self._command: list[str] = []
        self._file: JobFile | None = None
        self._report: Report | None = None
        self._done: Done | None = None
        self._of: tuple[str, float] | None = None
        self._group = ""

    def take(self, number: int, line: str) -> None:
        """Take a line."""
        if self._asked(number, line) or self._begun(number, line):
            return
        report = self._report
        if report is not None and (_figures(report, line) or self._latencies(report, line)):
            return
        self._around(line)

    def _run(self, number: int) -> Run:
        """The run that a line which comes before all reports belongs to."""
        if self.runs[-1].reports:
            self.runs.append(Run(number))
            self._report = self._done = self._of = None
            self._group = ""
        return self.runs[-1]

    def _asked(self, number: int, line: str) -> bool:
        """Whether the line is of a command or of a job file."""
        if self._command or shown_options.is_command(line):
            self._command.append(line)
            if not shown_options.goes_on(line) or len(self._command) > _MOST_JOINED:
                jobs = shown_options.of_command("\n".join(self._command))
                self._command = []
                if jobs:
                    self._run(number).jobs = jobs
            return True
        if line.startswith("[") or self._file is not None:
            return self._in_file(number, line)
        return False

    def end_command(self) -> None:
        """Forget a command that the text ends in."""
        self._command = []

    def _in_file(self, number: int, line: str) -> bool:
        file = self._file or JobFile()
        if not file.add(line):
            self._file = None
            return False
        self._file = file
        if file.jobs:
            self._run(number).jobs = file.jobs
        return True

    def _begun(self, number: int, line: str) -> bool:
        """Whether the line is fio's before it measures, or begins a report."""
        if version := _VERSION.match(line):
            self._run(number).version = version[1]
        elif self.runs[-1].starts and not self.runs[-1].reports and _BARE_VERSION.match(line):
            self.runs[-1].version = line
        elif ": (g=" in line and (start := _START.match(line)):
            self._run(number).starts.append(_start(start))
        elif line == "..." and self.runs[-1].starts and not self.runs[-1].reports:
            last = self.runs[-1].starts[-1]
            self.runs[-1].starts[-1] = Start(last.name, last.group, last.options, several=True)
        elif line.startswith("Starting ") and (counts := _STARTING.match(line)):
            self._run(number).started = sum(int(count) for count in counts.groups() if count)
        elif "(groupid=" in line:
            return self._report_begun(number, line)
        else:
            return False
        return True

    def _report_begun(self, number: int, line: str) -> bool:
        host = _HOST.match(line)
        begun = _REPORT.match(line[host.end() :] if host else line)
        if begun is None:
            return False
        error = begun["error"] + (f" ({begun['why']})" if begun["why"] else "")
        self._report = Report(
            name=begun["name"],
            host=host[1] if host else "",
            group=begun["group"],
            jobs=max(int(begun["jobs"]), 1),
            pid=begun["pid"] or "",
            line=number,
            error="" if int(begun["error"]) == 0 else error,
            ended=begun["ended"] or "",
        )
        self._done = self._of = None
        self.runs[-1].reports.append(self._report)
        return True

    def _latencies(self, report: Report, line: str) -> bool:
        """Whether the line is of one direction of a report."""
        if done := _DONE_3.match(line) or _DONE_2.match(line):
            self._done, self._of = _done(done), None
            report.done[done["kind"]] = self._done
        elif line.startswith("fsync/"):
            self._done, self._of = Done(0.0, (), 0.0), None
            report.done["sync"] = self._done
        elif self._done is not None and (spread := _LATENCY.match(line)):
            self._of = None
            self._done.latencies.setdefault(spread["of"], _spread(spread))
        elif self._done is not None and (head := _PERCENTILES.match(line)):
            self._of = (head["of"], NS_OF_UNIT[head["unit"]])
            self._done.units[head["of"]] = head["unit"]
            self._percentiles(line)
        elif "th=[" in line:
            self._percentiles(line)
        else:
            # Of one priority only, say: its rows are not those of all.
            self._of = None
            return False
        return True

    def _percentiles(self, line: str) -> None:
        if self._done is None or self._of is None:
            return
        of, unit_ns = self._of
        values = self._done.percentiles.setdefault(of, {})
        for percentile, value in _PERCENTILE.findall(line):
            if 0 < float(percentile) <= 100:
                values[float(percentile)] = _float(value) * unit_ns

    def _around(self, line: str) -> None:
        """Take what stands before and after the reports."""
        run = self.runs[-1]
        if group := _STATUS_GROUP.match(line):
            self._group, self._report, self._done, self._of = group[1], None, None, None
        elif self._group and (total := _TOTAL.match(line)):
            run.totals[self._group, total[1].lower()] = amount(total[2])
        elif self._report is None and self._group and (disk := _DISK.match(line)):
            run.disks.append(disk[1])
        elif line.startswith("Jobs: ") and (rate := _RATE.match(line)):
            run.rate = rate[1]
        elif "terminating on signal" in line:
            run.signal = True


def _figures(report: Report, line: str) -> bool:
    """Whether the line is of all directions of a report together."""
    if shares := _CPU.match(line):
        report.cpu = (float(shares[1]), float(shares[2]))
    elif line.startswith("IO depths"):
        report.depths = tuple(float(share) for _, share in _DEPTHS.findall(line))
    elif counts := _ISSUED.match(line):
        report.issued = tuple(int(count) for count in counts.groups() if count)
        if misplaced := _SYNCS_AS_SHORT.search(line):
            report.short = int(misplaced[1])
    elif target := _TARGET.match(line):
        report.latency_target = int(target[1]) > 0
    else:
        return False
    return True


def amount(text: str) -> float:
    """Bytes, or a count, of text such as "61460KB", "60.0MiB", "62.9MB", "8.1Mbit" or "15.4k".

    fio 3 writes kB and MB for powers of 1000. KB in capitals is 1024 bytes of fio 2, whose MB are read by
    `binary`.
    """
    return _amount(text, {"KB"})


def binary(text: str) -> float:
    """As `amount`, in powers of 1024 throughout, as fio 2 counts."""
    return _amount(text, {"KB", "MB", "GB", "TB"})


def _amount(text: str, of_1024: set[str]) -> float:
    number = re.match(_DIGITS, text)
    assert number is not None
    unit = text[number.end() :].strip()
    power = _PREFIX.get(unit[:1].lower(), 0)
    base = 1024 if unit[1:2] == "i" or unit in of_1024 else 1000
    bits = 8 if unit.endswith("bit") else 1
    return _float(number.group()) * float(base) ** power / bits


def _float(text: str) -> float:
    return float(text.replace(",", ""))


def _done(match: re.Match[str]) -> Done:
    values = match.groupdict()
    runtime_ms = float(values["ms"])
    of_2 = "other" not in values
    size = binary if of_2 else amount
    rates = [size(values["bw"])] + ([] if of_2 else [amount(values["other"])])
    if runtime_ms:
        rates.append(size(values["io"]) / runtime_ms * 1000)
    return Done(amount(values["iops"]), tuple(rates), runtime_ms, values["iops"])


def _spread(match: re.Match[str]) -> Spread:
    unit = NS_OF_UNIT[match["unit"]]
    mean, spread = _float(match["mean"]) * unit, _float(match["spread"]) * unit
    return Spread(mean, spread, amount(match["min"]) * unit, amount(match["max"]) * unit, unit)


def _start(match: re.Match[str]) -> Start:
    options = {"rw": match["rw"], "ioengine": match["engine"], "iodepth": match["depth"]}
    return Start(match["name"], match["group"], {**options, **_block(match["bs"], match["rw"])})


def _block(text: str, access: str) -> dict[str, str]:
    """Block size of what is done, as options: "4K-4K/8K-8K", or "(R) 64.0KiB-64.0KiB, (W) 8192B-8192B"."""
    ranges = [(_size(low), _size(high)) for low, high in _RANGE.findall(text)]
    kind = access.removeprefix("rand")
    if len(ranges) > 1 and kind in ("read", "write"):
        ranges = [ranges[kind == "write"]]
    ranges = ranges[:2]
    if any(low != high for low, high in ranges):
        return {"bsrange": "-".join(ranges[0])}
    sizes = list(dict.fromkeys(low for low, _ in ranges))
    return {"bs": ",".join(sizes)} if sizes else {}


def _size(text: str) -> str:
    """Block size that is printed; of one with decimals, which is rounded, the nearest number of sectors."""
    number = re.match(r"\d+\.(\d+)", text)
    if number is None:
        return text.removesuffix("B").removesuffix("i")
    unit = text[number.end() :]
    base = 1000.0 if unit[1:] == "B" else 1024.0
    size, step = (
        float(part) * base ** _PREFIX[unit[:1].lower()] for part in (number[0], f"1e-{len(number[1])}")
    )
    whole = round(size / _SECTOR) * _SECTOR
    return str(whole if abs(whole - size) <= step else round(size))
