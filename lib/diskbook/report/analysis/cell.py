"""What must be equal for two runs to have measured the same cell: all settings, but those left out by name.

A setting that a scenario gains later is compared without anybody thinking of it.
"""

from collections.abc import Mapping
from typing import Any

from diskbook.design import arm_words, model

_A_NAME = "a name; what it stands for is compared"
_A_ZONE = "a subscription's own name of a zone; the pattern of zones is compared, strata hold the rest"
_JUDGED = "how a ratio is judged, not how it is measured"
_APART = "done apart from the trials"
LEFT_OUT: Mapping[type[model.Record], Mapping[str, str]] = {
    model.Scenario: {
        "name": _A_NAME,
        "preset": "what it sets is compared",
        "scenario": "compared by its own fields",
        "machine": "those of the comparison are compared",
        "disk": "those of the comparison are compared",
        "arm": "those of the comparison are compared",
        "workload": "that of the comparison is compared",
        "design": "compared by its own fields",
        "comparison": "compared by its own fields",
        "check": _APART,
        "drill": _APART,
        "loss": _APART,
        "cluster": "those of the comparison are compared",
        "volume": "those of the comparison are compared",
    },
    model.Question: {
        "title": "words",
        "article": "words; the conditions that it stands for are in site",
        "question": "words",
        "analysis": "what is done with the results",
    },
    model.Machine: {
        "name": _A_NAME,
        "zone": _A_ZONE,
        "substitute": "a proposal for when the size is retired; size is what was measured",
    },
    model.Disk: {"name": _A_NAME, "zone": _A_ZONE},
    model.Cluster: {"name": _A_NAME, "nodes": "names; their number, sizes and zones are compared"},
    model.Volume: {"name": _A_NAME, "disk": _A_NAME, "cluster": _A_NAME, "machine": _A_NAME},
    model.Arm: {
        "name": _A_NAME,
        "disk": _A_NAME,
        "volume": _A_NAME,
        "machine": _A_NAME,
        "owner": "a name; whether it is the machine of the load is compared",
        "label": "words",
    },
    model.Workload: {
        "name": _A_NAME,
        "remarks": "words on verbatim, which is compared; another version may word them otherwise",
        "series_s": "the grain of the series kept, not of what is measured",
        "arms": "what others are given",
    },
    model.Design: {
        "replicates": "the history is the variance between them, with its own degrees of freedom",
        "seed": "the order is drawn again",
        "max_cost_usd": "a limit that did not bind, since the run was made",
        "evidence_s": "of trials after all that is compared",
    },
    model.Comparison: {
        "arm": _A_NAME,
        "base_arm": _A_NAME,
        "workload": _A_NAME,
        "family": _JUDGED,
        "margin": _JUDGED,
    },
}
"""Fields that do not make a cell another one, each with the reason.

The number of blocks and repeats is not among them: the spread of replicate means depends on it.
"""


def settings(record: model.Record) -> dict[str, Any]:
    """Fields of a record that make its cell what it is, with their values."""
    kind = next(kind for kind in type(record).__mro__ if kind in LEFT_OUT)
    names = [name for name in type(record).model_fields if name not in LEFT_OUT[kind]]
    return {name: getattr(record, name) for name in names}


def of(scenario: model.Scenario, item: model.Comparison, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Collect what must be equal for another run to have measured the same cell, in words and values.

    - `scenario`, `item`: a run's scenario, and the comparison of it that is asked about.
    - `manifest`: of the run: whether it was emulated, and by what profile.
    """
    values = {
        "provenance": manifest["provenance"],
        "emulator profile": (manifest.get("emulator") or {}).get("profile"),
        **settings(scenario),
        **settings(scenario.scenario),
        **settings(scenario.design),
        **settings(item),
        "pattern of zones (disk and machine of the arm, of the base arm)": _zones(scenario, item),
    }
    for role, name in (("arm", item.arm), ("base arm", item.base_arm)):
        arm = scenario.arm_named(name)
        machine, disk = scenario.machine_named(arm.machine), scenario.disk_of(arm)
        values |= {f"{role}: {key}": value for key, value in settings(arm).items()}
        values |= {f"{role}: {key}": value for key, value in _volume(scenario, arm).items()}
        values |= {f"{role}: {key} of the disk": value for key, value in settings(disk).items()}
        values |= {f"{role}: {key} of the machine": value for key, value in settings(machine).items()}
    load = scenario.workload_named(item.workload)
    return values | {f"workload: {key}": value for key, value in settings(load).items()}


def _volume(scenario: model.Scenario, arm: model.Arm) -> dict[str, Any]:
    """What makes an arm's volume what it is; of an arm on a disk only that it has none."""
    if not arm.volume:
        return {"kind of the volume": None}
    volume = scenario.volume_named(arm.volume)
    nodes = [scenario.machine_named(name) for name in scenario.nodes_of(volume)]
    clusters = [item for item in scenario.cluster if item.name == volume.cluster]
    parts = {f"{key} of the volume": value for key, value in settings(volume).items()}
    parts |= {f"{key} of the cluster": value for item in clusters for key, value in settings(item).items()}
    parts["nodes"] = sorted(str(sorted(settings(node).items())) for node in nodes)
    return {**parts, "load away from the owner": arm_words.is_remote(arm)}


def _zones(scenario: model.Scenario, item: model.Comparison) -> str:
    """Which of the disks and machines share a zone, without its name, e.g. "none a, a a".

    Of a volume the machine of the load comes first, then its owner and all nodes.
    """
    arms = [scenario.arm_named(name) for name in (item.arm, item.base_arm)]
    pairs = [_places(scenario, arm) for arm in arms]
    names = dict.fromkeys(zone for pair in pairs for zone in pair if zone is not None)
    letters = {zone: "abcd"[number] for number, zone in enumerate(names)}
    return ", ".join(" ".join(letters[zone] if zone else "none" for zone in pair) for pair in pairs)


def _places(scenario: model.Scenario, arm: model.Arm) -> list[str | None]:
    """Zones of an arm's disk and machine, or of the machines of its volume."""
    if not arm.volume:
        return [scenario.disk_named(arm.disk).zone, scenario.machine_named(arm.machine).zone]
    nodes = scenario.nodes_of(scenario.volume_named(arm.volume))
    names = (arm.machine, arm.owner or arm.machine, *nodes)
    return [scenario.machine_named(name).zone for name in names]


def difference(here: Mapping[str, Any], there: Mapping[str, Any]) -> str:
    """Say the first thing in which another run's cell differs; empty where it is the same cell."""
    for key, value in here.items():
        if there[key] != value:
            return f"{key} is {there[key]}, not {value}"
    return ""
