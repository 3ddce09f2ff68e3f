r"""Names of VMFleet's machines and of their results: how they are spelled, and what they tell. No I/O here.

``result-b4t10o8w30pr-<addspec>-vm-base-node1-001.xml``: the load's cell, the sweep's word, the machine
(microsoft/diskspd, Frameworks/VMFleet/VMFleet.psm1, `Set-FleetBaseScript`); `Measure-FleetCoreWorkload` has
``baseline`` and ``qos<n>`` for the cell. A machine is ``vm-<group>-<node>-<n>``, padded to three digits in
later versions; ours have the volume for the group.
"""

import re
from collections.abc import Collection, Iterable

from diskbook.design.diskspd_arguments import Arguments
from diskbook.facts.units import KIB

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
