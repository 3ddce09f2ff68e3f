"""Which arm measures which kind of volume, and what it is compared with; also where files alone tell it.

Of a run that was made here the scenario says it. Imported results have a folder's name and no more: one
that names a kind ("two-way", "nested mirror", "MAP") is taken at its word.
"""

import re
from collections.abc import Mapping

import numpy as np
import pandas as pd

from diskbook.clusters.design import rules
from diskbook.design.model import Arm, Scenario, Volume
from diskbook.design.vocabulary import Provenance
from diskbook.report.show.analysed import Analysed

BASE = "two-way"
WORDS: Mapping[str, str] = {
    "simple": "simple volume",
    "two-way": "two-way mirror",
    "three-way": "three-way mirror",
    "nested-mirror": "nested mirror",
    "nested-parity": "accelerated parity",
}
"""Kinds of volumes as a reader knows them."""
_SPELT = (
    ("three-way", r"three.?way|3.?way"),
    ("nested-parity", r"parity|\bmap\b|accelerated"),
    ("nested-mirror", r"nested"),
    ("two-way", r"two.?way|2.?way|mirror"),
)


def kind(scenario: Scenario, name: str) -> str:
    """Kind of an arm's volume; of an imported arm by its name, and empty where that names none."""
    arm = scenario.arm_named(name)
    if arm.volume:
        return scenario.volume_named(arm.volume).kind
    text = f"{arm.name} {arm.label or ''}".lower()
    return next((kind for kind, pattern in _SPELT if re.search(pattern, text)), "")


def kinds(a: Analysed) -> dict[str, str]:
    """Kind of every arm that was measured and has one."""
    measured = set(a.trials["arm"])
    names = [arm.name for arm in a.scenario.arm if arm.name in measured]
    return {name: of for name in names if (of := kind(a.scenario, name))}


def volume(scenario: Scenario, name: str) -> Volume | None:
    """Volume of an arm; None of an imported one."""
    arm = scenario.arm_named(name)
    return scenario.volume_named(arm.volume) if arm.volume else None


def is_moved(arm: Arm) -> bool:
    """Whether a fleet runs on other nodes than those that own its volumes."""
    return not arm.aligned or (arm.volume == "" and "moved" in arm.name)


def base(a: Analysed) -> str | None:
    """The arm that all kinds are compared with: the first two-way mirror; None where none was measured."""
    return next(iter(_aligned(a, BASE)), None)


def others(a: Analysed) -> list[str]:
    """Arms of other kinds, each beside its owner, in the order of the scenario."""
    return [name for of in WORDS if of != BASE for name in _aligned(a, of)]


def first(a: Analysed, of: str, *, inside: bool = False) -> str | None:
    """Return the first arm of a kind, or None.

    `inside` asks for accelerated parity whose data all fit into its mirror tier; by default for any other.
    """
    return next((name for name in _aligned(a, of) if is_inside(a.scenario, name) == inside), None)


def moved(a: Analysed) -> list[tuple[str, str]]:
    """Arms away from their owners, each with the arm of the same kind beside its owner."""
    pairs = [(name, of) for name, of in kinds(a).items() if is_moved(a.scenario.arm_named(name))]
    return [(name, at_home) for name, of in pairs if (at_home := next(iter(_aligned(a, of)), None))]


def is_inside(scenario: Scenario, name: str) -> bool:
    """Whether all data of an arm of accelerated parity have room in its mirror tier, and stay there."""
    made = volume(scenario, name)
    if made is None:
        return kind(scenario, name) == "nested-parity" and "inside" in name
    return made.kind == "nested-parity" and rules.stays_in_mirror(scenario, made)


def in_order(a: Analysed, rows: pd.DataFrame) -> pd.DataFrame:
    """Rows by arm and load, in the order of the scenario; trials were in a random one."""
    named = [item.name for item in a.scenario.arm], [item.name for item in a.scenario.workload]
    places = [{name: place for place, name in enumerate(names)} for names in named]
    keys = [rows[name].map(order) for name, order in zip(("arm", "workload"), places, strict=True)]
    return rows.iloc[np.lexsort(keys[::-1])]


def words(a: Analysed, name: str) -> str:
    """An arm as a sentence names it."""
    return a.labels.get(name, name)


def standing(provenance: str) -> list[str]:
    """Say which numbers of a run are findings, by where they come from."""
    if Provenance.EMULATED in provenance:
        return [
            "emulated: copies, parity and what a loss leaves are real, each in the file of its own disk; "
            "latencies, limits and networks are planted, so that every number shows the method, and no drive"
        ]
    if Provenance.AZURE in provenance:
        return [
            "on Azure findings are latency ratios of single I/Os and of held rates, the efficiency that was "
            "read back, and the resync",
            "rates of full queues are ratios of documented limits there, and drives are no drives: a premium "
            "disk keeps three copies of its own, none fails, and there is neither an NVMe cache nor RDMA; "
            "the level that the article measured needs hardware",
        ]
    if Provenance.INVENTORY in provenance:
        return ["hosts of your own: rates and latencies are findings about these very drives and networks"]
    return [
        "imported: rates and latencies are those of the drives that were measured; nobody here watched how, "
        "and where kinds followed one another what drifted meanwhile is in every ratio"
    ]


def _aligned(a: Analysed, of: str) -> list[str]:
    return [
        name
        for name, kind_of in kinds(a).items()
        if kind_of == of and not is_moved(a.scenario.arm_named(name))
    ]
