"""Gate: what a comparison may say when its trials were not all measured by one version of one tool.

Releases of DiskSpd count differently (2.2's I/O loop "will require rebaselining", says its release note), so
they are never pooled. On the emulator DiskSpd is played by fio, so a difference between the two is none.
"""

from __future__ import annotations

from collections.abc import Sequence

from diskbook.stats.gates import Cell, Gate
from diskbook.tables.vocabulary import GateStatus, Provenance, Verdict

NAME = "tool"
DISKSPD = "diskspd"


def tool_gate(arms: Sequence[str], cells: Sequence[Cell], provenance: str) -> Gate:
    """Each cell must be of one version of a tool, and both arms of the same one.

    Parameters
    ----------
    arms, cells
        Names, and rows of `checks.cell_checks` (`tools`: versions met in the cell), of both cells.
    provenance
        Of the run, or of several joined by "+".
    """
    met = [tuple(cell["tools"]) for cell in cells]
    if not all(met):
        return Gate(NAME, GateStatus.NOT_ASSESSABLE, "the version of the tool is not known for every trial")
    for arm, versions in zip(arms, met, strict=True):
        if len(versions) > 1:
            return _pooled(arm, versions)
    one, other = met[0][0], met[1][0]
    if one == other:
        return Gate(NAME, GateStatus.PASSED, f"every trial was measured by {one}")
    return _differing(one, other, Provenance.EMULATED in provenance)


def _pooled(arm: str, versions: Sequence[str]) -> Gate:
    cause = f"the trials of {arm} are of {' and '.join(versions)}"
    remedy = "compare trials of one version: measure again with one"
    return Gate(NAME, GateStatus.FAILED, cause, remedy, Verdict.INVALID if _any_diskspd(versions) else None)


def _differing(one: str, other: str, emulated: bool) -> Gate:
    pair = (one, other)
    if emulated and _any_diskspd(pair):
        cause = "the emulated DiskSpd is fio: no difference between tools can be measured here"
        return Gate(
            NAME, GateStatus.FAILED, cause, "measure on Azure or on hosts of your own", Verdict.INVALID
        )
    if all(version.startswith(DISKSPD) for version in pair):
        cause = f"the arms were measured by {one} and {other}, whose releases count differently"
        return Gate(NAME, GateStatus.FAILED, cause, "measure both with one release", Verdict.INVALID)
    cause = f"the arms were measured by {one} and {other}"
    remedy = "the ratio holds the difference between the tools as well as that between the disks"
    return Gate(NAME, GateStatus.FAILED, cause, remedy)


def _any_diskspd(versions: Sequence[str]) -> bool:
    return any(version.startswith(DISKSPD) for version in versions)
