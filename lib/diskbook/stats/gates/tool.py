"""Gate: what a comparison may say when its trials were not all measured by one version of one tool.

A tool whose releases count differently (`Tool.releases`) is never pooled over them. On the emulator another
tool may stand in for it, so a difference between the two is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from diskbook.design.vocabulary import Provenance, Verdict
from diskbook.stats.gates import Cell, Gate, failed, not_assessable, passed
from diskbook.tools import registry

TOOL = "tool"


def tool_gate(arms: Sequence[str], cells: Sequence[Cell], provenance: str) -> Gate:
    """Each cell must be of one version of a tool, and both arms of the same one; the gravest finding counts.

    Parameters
    ----------
    arms, cells
        Names, and rows of `cell_checks.cell_checks` (`tools`: versions met in the cell), of both cells.
    provenance
        Of the run, or of several joined by "+".
    """
    by_arm = [tuple(cell["tools"]) for cell in cells]
    emulated = Provenance.EMULATED in provenance
    findings = [
        _pooled(arm, versions) for arm, versions in zip(arms, by_arm, strict=True) if len(versions) > 1
    ]
    pairs = product(by_arm[0], by_arm[1])
    findings += [_differing(version, other, emulated) for version, other in pairs if version != other]
    if findings:
        return min(findings, key=lambda gate: gate.verdict is None)
    if not all(by_arm):
        return not_assessable(TOOL, "the version of the tool is not known for every trial")
    return passed(TOOL, f"every trial was measured by {by_arm[0][0]}")


def _pooled(arm: str, versions: Sequence[str]) -> Gate:
    cause = f"the trials of {arm} are of {' and '.join(versions)}"
    remedy = "compare trials of one version: measure again with one"
    return failed(
        TOOL, cause, remedy, None if all(_alike(version) for version in versions) else Verdict.INVALID
    )


def _differing(version: str, base_version: str, emulated: bool) -> Gate:
    tools = [registry.of_version(name) for name in (version, base_version)]
    played = next((tool for tool in tools if tool and tool.releases.emulated_by), None)
    if emulated and played:
        by = played.releases.emulated_by
        cause = f"the emulated {played.title} is {by}: no difference between tools can be measured here"
        return failed(TOOL, cause, "measure on Azure or on hosts of your own")
    if tools[0] is tools[1] and not _alike(version):
        cause = f"the arms were measured by {version} and {base_version}, whose releases count differently"
        return failed(TOOL, cause, "measure both with one release")
    cause = f"the arms were measured by {version} and {base_version}"
    cause += ", and the ratio holds the difference between these as well"
    remedy = "measure both arms with one release of one tool"
    return failed(TOOL, cause, remedy, None)


def _alike(version: str) -> bool:
    """Whether the releases of this version's tool count alike; a tool that is not named is taken for such."""
    tool = registry.of_version(version)
    return tool is None or tool.releases.alike
