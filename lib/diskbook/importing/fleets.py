"""Results of VMFleet's machines joined to the trials of their fleet: those of one cell of a sweep are one."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from diskbook.facts.neighbours import vmfleet_results as vmfleet
from diskbook.importing.files import Source
from diskbook.importing.fio.logs_of_a_job import added
from diskbook.tools.record import Direction, Measurement, Parsed, UnusableError

XML = "DiskSpd XML"
_ALONE = 2
"""With fewer machines a result is that of a machine, not of a fleet."""

Result = tuple[Source, Parsed]


@dataclass(frozen=True)
class Fleet:
    """One trial: its joined measurement, and the file of each machine."""

    measurement: Measurement
    version: str
    files: dict[str, Source]


def split(results: Iterable[Result], refused: list[str]) -> tuple[list[Fleet], list[Result]]:
    """Join the results of fleets; return them, and what is of none.

    Files of one folder belong together. A fleet that lacks a machine which others of its volumes have there,
    or whose machines cannot be joined, is added to `refused` in a sentence.
    """
    by_folder: dict[Path, dict[str, Result]] = {}
    rest = []
    for source, parsed in results:
        if parsed.format == XML and vmfleet.cell_and_machine(source.name):
            by_folder.setdefault(source.path.parent, {})[source.name] = (source, parsed)
        else:
            rest.append((source, parsed))
    fleets = []
    for folder in by_folder.values():
        cells = {
            cell: {vm: folder[named[0]] for vm, named in files.items()}
            for cell, files in vmfleet.grouped(folder).items()
        }
        if all(len(machines) < _ALONE for machines in cells.values()):
            rest += folder.values()
        else:
            fleets += list(_of_folder(cells, refused))
    return fleets, rest


def _of_folder(cells: dict[str, dict[str, Result]], refused: list[str]) -> Iterator[Fleet]:
    for cell, machines in cells.items():
        first = next(iter(machines.values()))[0]
        shown = f"{first.shown.removesuffix(first.path.name)}result-{cell}"
        try:
            _check_missing(shown, machines, cells)
            yield _joined(shown, machines)
        except UnusableError as error:
            refused.append(str(error))


def _check_missing(shown: str, machines: dict[str, Result], cells: dict[str, dict[str, Result]]) -> None:
    """Every machine of the volumes that are in a cell must have a result in it."""
    volumes = {vmfleet.place_of(vm)[0] for vm in machines}
    fleet_of_all = {vm for others in cells.values() for vm in others if vmfleet.place_of(vm)[0] in volumes}
    if missing := sorted(fleet_of_all - machines.keys()):
        raise UnusableError(
            shown,
            f"{len(machines)} of the {len(fleet_of_all)} machines that others of this folder have are in it; "
            f"{missing[0]} is missing (keep sweeps of another fleet in another folder)",
        )


def _joined(shown: str, machines: dict[str, Result]) -> Fleet:
    read = [vmfleet.machine(vm, parsed, source.shown) for vm, (source, parsed) in machines.items()]
    files = {vm: source for vm, (source, _) in machines.items()}
    return Fleet(vmfleet.join(read, shown), read[0].version, files)


def together(measurements: Mapping[str, Measurement], name: str) -> Measurement:
    """Add up what clients of one trial measured; rates add up, latencies are weighted by I/Os."""
    first = next(iter(measurements.values()))
    items = list(measurements.values())
    clients, load = len(items), first.load
    flags = [flag for item in items for flag in item.flags]
    kinds = {kind for item in items for kind in item.directions}
    names = ", ".join(list(measurements)[:2]) + (" ..." if clients > 2 else "")
    flags.append(
        f"{clients} clients measured at the same time ({names}): their sum is one trial (--layout with "
        "{replicate} for their folder takes them for machines with disks of their own)"
    )
    return replace(
        first,
        name=name,
        load=replace(
            load,
            threads=load.threads and load.threads * clients,
            rate=load.rate and load.rate * clients,
        ),
        directions={kind: _sum(items, kind) for kind in ("read", "write", "sync") if kind in kinds},
        series={},
        started_utc=min((item.started_utc for item in items if item.started_utc), default=None),
        flags=tuple(dict.fromkeys(flags)),
        rates={},
    )


def _sum(items: Sequence[Measurement], kind: str) -> Direction:
    parts = [item.directions[kind] for item in items if kind in item.directions]
    rates = {name: sum(getattr(part, name) for part in parts) for name in ("iops", "bw_bytes")}
    return replace(added(parts), **rates)
