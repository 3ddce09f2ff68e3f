"""Reader of files with fio's JSON in them, as an import meets them: several runs, repeated or cut.

`parse` takes everything usable from whatever somebody's fio left, and says in flags what a reader must know
of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from diskbook.tools.fio.documents import Document, documents
from diskbook.tools.fio.json_output import entries_of, jobs_of, measurement_of, number_or_0, printed_s
from diskbook.tools.record import Measurement, Parsed, UnusableError, one_version

_TOGETHER = "it ran at the same time as other jobs of the file"


def parse(text: str, source: str) -> Parsed:
    """Read everything usable in a file of fio's JSON, with text before, between and after.

    Returns a measurement a job (clones and hosts' jobs of the same name together).
    Raises UnusableError when nothing can be used: why, and the line where it can be determined.
    """
    pieces = documents(text, source)
    runs, flags = _runs(pieces)
    versions = (str(run.content.get("fio version"))[:40].removeprefix("fio-") for run in runs)
    version = one_version(versions, source, "runs of different versions of fio")
    measurements: list[Measurement] = []
    problems: list[str] = []
    for run in runs:
        flags += run.flags
        measurements += _measurements(run, problems)
    if not measurements:
        reasons = "; ".join(dict.fromkeys(problems)) or "fio did no I/O"
        raise UnusableError(source, reasons, runs[-1].line)
    if "terminating on signal" in text:
        flags.append("fio was interrupted by a signal")
    return Parsed("fio", version, "fio JSON", tuple(measurements), tuple(dict.fromkeys([*flags, *problems])))


def _runs(pieces: list[Document]) -> tuple[list[Document], list[str]]:
    """Drop what a later document repeats or includes: the same run printed twice, or by status-interval."""
    runs: list[Document] = []
    flags = []
    for document in pieces:
        before = runs[-1] if runs else None
        if before and before.content == document.content:
            flags.append("the same document is there twice and counts once")
        elif before and _includes(document, before):
            flags.append("cumulative documents (status-interval): the last complete one counts")
            if document.cut:
                continue
        else:
            runs.append(document)
            continue
        runs[-1] = document
    if len(runs) > 1:
        flags.append(f"the file holds {len(runs)} runs")
    return runs, list(dict.fromkeys(flags))


def _includes(later: Document, earlier: Document) -> bool:
    """Whether a document goes on where the earlier one was printed: clock and counts went on alike."""
    names = [[str(job.get("jobname")) for job in entries_of(document)] for document in (earlier, later)]
    if names[0][: len(names[1])] != names[1] and names[1][: len(names[0])] != names[0]:
        return False
    passed = printed_s(later) - printed_s(earlier)
    worked = _greatest(later, "elapsed") - _greatest(earlier, "elapsed")
    return worked >= 0 and abs(passed - worked) <= 1.5 and (later.cut or _ios(later) >= _ios(earlier))


def _greatest(document: Document, key: str) -> float:
    return max((number_or_0(job.get(key)) for job in entries_of(document)), default=0.0)


def _ios(document: Document) -> float:
    parts = [job.get(name) for job in entries_of(document) for name in ("read", "write")]
    return sum(number_or_0(part.get("total_ios")) for part in parts if isinstance(part, Mapping))


def _measurements(document: Document, problems: list[str]) -> list[Measurement]:
    jobs = jobs_of(document)
    if not jobs:
        problems.append("fio's JSON lists no jobs")
    grouped = []
    for job in jobs:
        try:
            grouped.append((job.group, measurement_of(job, document)))
        except ValueError as error:
            problems.append(f"job '{job.name}' cannot be used: {error}")
    return told_of_others(grouped)


def told_of_others(grouped: Sequence[tuple[str, Measurement]]) -> list[Measurement]:
    """Flag the measurements, each with the group it is of, that ran at the same time as others."""
    groups = [group for group, _ in grouped]
    return [
        replace(measurement, flags=(*measurement.flags, _TOGETHER))
        if groups.count(group) > 1
        else measurement
        for group, measurement in grouped
    ]
