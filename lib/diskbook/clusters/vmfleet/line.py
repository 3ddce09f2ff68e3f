"""Builder of the line that VMFleet runs DiskSpd with in each of its machines. No I/O here.

Flags and their order are those of its own script (microsoft/diskspd, Frameworks/VMFleet/VMFleet.psm1,
`Set-FleetBaseScript`)::

    diskspd.exe -Z20M -z -h -t10 -o8 -g.. -b4k -r4k -w30 -W60 -C30 -d30 -D -L -Rxml <file>

with `-f`, its profiles' MaxOffset, where a load uses a part of the file.
"""

import math
import re
from collections.abc import Collection, Iterable
from dataclasses import replace

from diskbook.design.diskspd_arguments import Arguments, parse, render, size_text
from diskbook.design.model import Workload
from diskbook.facts.errors import UsageError
from diskbook.facts.units import KIB
from diskbook.tools.diskspd import command as diskspd_command
from diskbook.tools.protocol import Job, Target
from diskbook.tools.record import Measurement

CLOCK_SEED = "-z without a number: every machine draws its offsets from its clock, none can be drawn again"
_BUFFERS = "20M"
_COOL_SHARE = 0.5
"""Cool-down by the warm-up, as VMFleet's defaults are: 30 s after 60 s. Who is ready first loads on."""


def command(workload: Workload) -> Job:
    """Build the line of one machine of a fleet, without program and target.

    A total rate is spread over the machines and their threads. VMFleet's `-h` writes through caches, so a
    load with `sync = "dsync"` and one without are the same here.

    Raises UsageError for what DiskSpd, or VMFleet's line, cannot do.
    """
    if workload.verbatim is not None:
        return _verbatim(parse(workload.verbatim))
    asked = _arguments(workload)
    return Job(tuple(words(asked)), notes=(CLOCK_SEED,), content=diskspd_command.content_words(asked))


def words(asked: Arguments) -> list[str]:
    """Write arguments as VMFleet does; `diskspd_arguments.parse_words` reads them back equal."""
    block = f"{asked.block_size // KIB}k"
    rate = [] if asked.rate is None else [f"-g{asked.rate}"]
    cool = [f"-C{asked.cooldown_s}"] if asked.cooldown_s else []
    grain = "-D" if asked.iops_interval_ms in (None, 1000) else f"-D{asked.iops_interval_ms}"
    part = [] if asked.max_offset is None else [f"-f{size_text(asked.max_offset)}"]
    return [
        *(f"-Z{asked.buffers}", "-z", "-h", f"-t{asked.threads_per_target}", f"-o{asked.outstanding}"),
        *(*rate, f"-b{block}", f"-{'r' if asked.random_pct else 's'}{block}", f"-w{asked.write_pct}"),
        *(f"-W{asked.warmup_s}", *cool, f"-d{asked.duration_s}", *part, grain, "-L", "-Rxml"),
    ]


def prefill(size_bytes: int, target: Target, written: Measurement | None = None) -> Job | None:
    """Build the line that fills each machine's file, as DiskSpd's own prefilling does.

    - `size_bytes`: of the file of one machine.
    - `target`: any file: the line names none.
    - `written`: what the fleet before has written; the machine that wrote least tells how long the next must
      take.

    Returns without program and target; None when every machine has written all of its file.
    """
    job = diskspd_command.prefill_command(size_bytes, target, _slowest(written))
    if job is None:
        return None
    return replace(job, argv=tuple(word for word in job.argv[1:] if word != target.target))


def _slowest(written: Measurement | None) -> Measurement | None:
    """What the machine did that wrote least; all of it where no machines are told."""
    if written is None or not written.instances:
        return written
    least = min(written.instances, key=lambda vm: vm.directions["write"].ios)
    return replace(written, directions=least.directions)


def _arguments(workload: Workload) -> Arguments:
    if workload.block_size_bytes % KIB:
        raise UsageError(
            f"workload {workload.name}: VMFleet's blocks are whole KiB, not {workload.block_size_bytes} bytes"
        )
    if workload.pattern != "random" and workload.threads > 1:
        raise UsageError(
            f"workload {workload.name}: VMFleet's threads would share one offset when they go in order; "
            'use threads = 1, or pattern = "random"'
        )
    plain = diskspd_command.arguments_of(workload, "")
    return replace(
        plain,
        targets=(),
        align=plain.block_size,
        write_through=True,
        cooldown_s=math.ceil(_COOL_SHARE * plain.warmup_s),
        buffers=_BUFFERS,
        seed=None,
        clock_seed=True,
    )


def _verbatim(asked: Arguments) -> Job:
    """Keep a line but for its targets, and -c: each machine's file is there, and filled."""
    if asked.n_targets > 1:
        raise UsageError(f"DiskSpd line: a machine of a fleet has one file, not {asked.n_targets}")
    ends = [end for end in (asked.create_bytes, asked.max_offset) if end is not None]
    there = replace(
        asked, create_bytes=None, max_offset=min(ends) if ends else None, targets=(), output="xml"
    )
    notes = ["-c became -f: the file of each machine is there"] if asked.create_bytes is not None else []
    if asked.clock_seed:
        notes.append(CLOCK_SEED)
    kept = diskspd_command.plain(render(there))
    if any(" " in word for word in kept):
        raise UsageError("DiskSpd line: a fleet's line is cut at its spaces, so no argument may hold one")
    return Job(kept, notes=tuple(notes), content=diskspd_command.content_words(there))


LONGEST = 255
"""Characters of a file's name, as file systems have it."""
_RESULT = re.compile(r"result-(?P<cell>.+)-(?P<vm>vm-.+-\d{1,6})\.xml", re.IGNORECASE)
_MACHINE = re.compile(r"vm-(?P<volume>.+)-(?P<node>[^-]+)-\d{1,6}", re.IGNORECASE)
_CELL = re.compile(r"baseline|qos\d+|b\d+t\d+o\d+w\d+p(?:r|si?)(?:g\d+)?(?:-(?P<spec>.+))?", re.IGNORECASE)
_GROUP_OF_ALL = "base"


def machine(volume: str, node: str, number: int) -> str:
    """Name the machine of that number, from 1, among those of a volume and node."""
    return f"vm-{volume}-{node}-{number:03d}"


def result_file(asked: Arguments, spec: str, vm: str) -> str:
    """Name the file of a machine's result as VMFleet does.

    - `asked`: the line that it ran.
    - `spec`: what tells this run from others of the same load: VMFleet's AddSpec.
    """
    pattern = "r" if asked.random_pct else "si" if asked.interlocked else "s"
    rate = "" if asked.rate is None else f"g{asked.rate}"
    load = f"b{asked.block_size // KIB}t{asked.threads}o{asked.depth}w{asked.write_pct}p{pattern}{rate}"
    return "-".join(("result", load, *filter(None, (spec,)), vm)) + ".xml"


def cell_and_machine(file: str) -> tuple[str, str] | None:
    """Return what a result's name tells: the cell, which its machines share, and the machine; else None."""
    match = _RESULT.fullmatch(file) if len(file) <= LONGEST else None
    return (match["cell"], match["vm"]) if match else None


def grouped(files: Iterable[str], listed: Collection[str] = ()) -> dict[str, dict[str, list[str]]]:
    """Group results: those of one cell are one trial of a fleet.

    - `files`: names; those of no result are left out.
    - `listed`: machines that are known, whatever they are called; without them names tell.

    Returns cell to machine to files, of which there should be one.
    """
    cells: dict[str, dict[str, list[str]]] = {}
    for file in files:
        named = _listed(file, listed) or cell_and_machine(file)
        if named is not None:
            cells.setdefault(named[0], {}).setdefault(named[1], []).append(file)
    return cells


def spec_of(cell: str) -> str:
    """Return the word of a sweep (AddSpec) in a cell's name; "" for Measure-FleetCoreWorkload's own."""
    match = _CELL.fullmatch(cell)
    return (match["spec"] or "") if match else cell


def _listed(file: str, machines: Collection[str]) -> tuple[str, str] | None:
    """Cell and machine of a result's name, for a machine that is listed: the one with the longest name."""
    stem = file.removeprefix("result-").removesuffix(".xml")
    ends = (at for at, letter in enumerate(stem) if letter == "-" and stem[at + 1 :] in machines)
    at = next(ends, None) if file.endswith(".xml") else None
    return None if at is None else (stem[:at], stem[at + 1 :])


def place_of(vm: str) -> tuple[str, str]:
    """Return the volume (VMFleet's group) and the node in a machine's name; "" for what it does not tell.

    A node's name is taken for one without a hyphen; VMFleet's usual group, base, says nothing.
    """
    match = _MACHINE.fullmatch(vm[:LONGEST])
    if match is None:
        return "", ""
    return ("" if match["volume"].lower() == _GROUP_OF_ALL else match["volume"]), match["node"]
