"""Published figures beside measured cells of the same set-up and load, each with a verdict.

On the emulator that comparison is circular, since its default profile was calibrated on these very figures:
such a row is a `calibration input` and is never called reproduced. What was not put in but follows (a rate
that documented limits set) may be.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from diskbook.design import arm_words
from diskbook.design.model import Arm, Disk, Scenario, Workload
from diskbook.design.vocabulary import Label, Provenance
from diskbook.facts import quantities
from diskbook.report.analysis import published
from diskbook.stats import limits

CALIBRATION = "calibration input"
ARTEFACT = "capped artefact"
DERIVED = "reproduced (derived from documented limits)"
NOT_COMPARABLE = "not comparable"
ENFORCED = f"{CALIBRATION}: a documented limit, which the emulator enforces"
ALIKE = 0.1
"""Relative distance up to which a number that was put in may lie from the printed one."""
VALUES = {"IOPS": "iops", "MB/s": "mb_s", "ms": "lat_mean_ms"}
COLUMNS = [
    "published",
    "load",
    "value",
    "unit",
    "little",
    "on_cap",
    "arm",
    "measured",
    "measured_label",
    "ratio",
    "verdict",
    "supports",
    "printed",
]
_WORDS = {
    "bursting": "bursting",
    "performance plus": "performance_plus",
    "accelerated networking": "accelerated_network",
    "read/write cache": "cache",
    "shared": "shared",
}


def beside(
    assessed: pd.DataFrame, cells: pd.DataFrame, scenario: Scenario, provenance: str, calibrated: bool = True
) -> pd.DataFrame:
    """Put measured cells beside the published figures of the same set-up.

    - `assessed`: from `published.assess`.
    - `cells`: from `limits.label_cells`.
    - `scenario`: says what each arm and workload is.
    - `calibrated`: whether the emulator's profile was calibrated on published figures.

    Returns `COLUMNS`; one row a published figure that the scenario repeats. A limit that is only stated
    stands beside the highest rate of a machine of that size.
    """
    measured = cells.set_index(["arm", "workload"]).to_dict("index")
    rows = []
    for row in assessed.to_dict("records"):
        match = next(_matches(row, scenario, measured), None) or _highest(row, scenario, measured)
        if match is None:
            continue
        arm, workload = match
        cell: dict[Any, Any] = measured[match]
        value = float(cell[VALUES[row["unit"]]])
        ratio = value / row["base"]
        numbers = (_setup_words(row), workload, row["base"], row["unit"], row["little"], row["on_cap"], arm)
        verdict = _verdict(row, cell, ratio, provenance, calibrated)
        rows.append((*numbers, value, cell["label"], ratio, verdict, row["supports"], _printed(row)))
    return pd.DataFrame(rows, columns=COLUMNS)


def _setup_words(row: Mapping[Any, Any]) -> str:
    """Set-up in words; the size where it names none."""
    options = "" if row["options"] == "none" else row["options"]
    zone = "" if "disk_zone_relation" in row["assumed"] else row["disk_zone_relation"]
    return ", ".join(filter(None, [row["redundancy"], zone, options])) or f"{row['vm_size']}, stated limit"


def _printed(row: Mapping[Any, Any]) -> str:
    """Value as the article prints it, where its unit is not the one used here: DiskSpd's MB/s are MiB/s."""
    return f"{row['printed']} MiB/s" if row["value"] != row["base"] else ""


def _verdict(
    row: Mapping[Any, Any], cell: Mapping[Any, Any], ratio: float, provenance: str, calibrated: bool
) -> str:
    if provenance == Provenance.EMULATED:
        return (
            _emulated(row, cell, ratio)
            if calibrated
            else f"{NOT_COMPARABLE}: this profile plays other numbers"
        )
    if row["label"] == Label.STATED:
        return "shown beside: a documented limit"
    if cell["label"] == Label.UNASSESSED and not row["on_cap"]:
        return "shown beside: one run without an interval, either may be the rate of a limit"
    if cell["label"] == Label.SATURATED:
        return "saturated: not comparable as latency" if row["unit"] == "ms" else "saturated: a limit's rate"
    if row["on_cap"] or cell["label"] != Label.BELOW_CAP:
        return "capped: not comparable as latency" if row["unit"] == "ms" else "capped: rates of two limits"
    return "shown beside: one run without an interval"


def _emulated(row: Mapping[Any, Any], cell: Mapping[Any, Any], ratio: float) -> str:
    """Verdict on a figure beside one that the calibrated emulator played."""
    alike = abs(ratio - 1) <= ALIKE
    if row["label"] == Label.STATED:
        return ENFORCED if alike else f"{NOT_COMPARABLE}: no rate here comes near it"
    if row["on_cap"] and row["unit"] == "ms":
        return ARTEFACT
    other = _other_limit(row, cell)
    if other:
        return f"{NOT_COMPARABLE}: {other}"
    if row["on_cap"] and row["unit"] == "MB/s" and alike:
        return DERIVED
    if alike or _is_of_one_zone(row):
        return CALIBRATION
    return f"{NOT_COMPARABLE}: {published.between_limits(row) or _distance(ratio)}"


def _distance(ratio: float) -> str:
    return f"ours is {quantities.changed(ratio)}"


def _other_limit(row: Mapping[Any, Any], cell: Mapping[Any, Any]) -> str:
    """Say that the measured cell sits on another limit than the figure; empty when it does not."""
    if cell["label"] != Label.CAPPED:
        return ""
    ours, names = limits.limit_words(cell), limits.limit_names(cell)
    if not row["on_cap"]:
        where = published.between_limits(row) or "below the limits known"
        return f"it lies {where}, ours sits on the {ours}"
    return (
        ""
        if any(name in row["limit"] for name in names)
        else f"it sits on the {row['limit']}, ours on the {ours}"
    )


def _is_of_one_zone(row: Mapping[Any, Any]) -> bool:
    """Whether the figure depends on the zone that a disk answers from, which differs from disk to disk."""
    return row["redundancy"] == "ZRS" and row["disk_zone_relation"].startswith("vm zone")


def _matches(
    row: Mapping[Any, Any], scenario: Scenario, measured: Mapping[Any, Any]
) -> Iterator[tuple[str, str]]:
    """Cells of the scenario with the set-up of a published figure, in the scenario's order."""
    if row["unit"] not in VALUES or row["label"] == Label.STATED:
        return
    for arm in scenario.arm:
        if not _same_setup(row, scenario, arm):
            continue
        for load in scenario.workload:
            if _same_load(row, load) and (arm.name, load.name) in measured:
                yield arm.name, load.name


def _highest(
    row: Mapping[Any, Any], scenario: Scenario, measured: Mapping[Any, Any]
) -> tuple[str, str] | None:
    """Cell of the highest rate past the host cache on a machine of the size whose limit is stated."""
    if row["label"] != Label.STATED or row["metric"] not in published.LIMITS_STATED:
        return None
    if not row["metric"].startswith("vm_"):
        return None
    names = [
        arm.name
        for arm in scenario.arm
        if scenario.machine_named(arm.machine).size == row["vm_size"]
        and scenario.disk_of(arm).cache != "ReadWrite"
    ]
    cells = [place for place in measured if place[0] in names]
    return max(cells, key=lambda place: measured[place][VALUES[row["unit"]]], default=None)


def _same_setup(row: Mapping[Any, Any], scenario: Scenario, arm: Arm) -> bool:
    machine, disk = scenario.machine_named(arm.machine), scenario.disk_of(arm)
    v2 = disk.sku.startswith("PremiumV2")
    return (
        row["vm_size"] in (machine.size, machine.substitute)
        and disk.sku.startswith("Premium")
        and row["redundancy"] == disk.sku.rpartition("_")[2]
        and ("v2" in row["disk"]) == v2
        and disk.size_gib == 1024  # every published disk that a scenario repeats is of 1 TiB (P30)
        and _options(row["options"]) == _options_of(disk)
        and _same_zone(row["disk_zone_relation"], scenario, arm)
        and _same_volume(row["disk"].lower(), scenario, arm)
    )


def _same_volume(text: str, scenario: Scenario, arm: Arm) -> bool:
    """Whether a row's disks, in its words, are those of the arm: of a volume its kind, disks and columns."""
    if not arm.volume:
        return " columns" not in text
    volume = scenario.volume_named(arm.volume)
    zones = {scenario.machine_named(name).zone for name in scenario.nodes_of(volume)}
    words = (volume.kind, f"{scenario.disk_of(arm).count} x ", f"{volume.columns} columns")
    return all(word in text for word in words) and len(zones) == 1 and not arm_words.is_remote(arm)


def _same_zone(relation: str, scenario: Scenario, arm: Arm) -> bool:
    """Whether the arm lies as the row says; "same zone" is the zone of the disk's first arm."""
    zone = scenario.machine_named(arm.machine).zone
    if relation.startswith("vm zone"):
        return relation == f"vm zone {zone}"
    first = next(item for item in scenario.arm if (item.disk, item.volume) == (arm.disk, arm.volume))
    same = scenario.machine_named(first.machine).zone == zone
    return same if relation == "same zone" else not same


def _options(text: str) -> frozenset[str]:
    """Options of a published row: words, and numbers with their units."""
    parts = [part.strip() for part in text.split(" + ")]
    known = {_WORDS[part] for part in parts if part in _WORDS}
    return frozenset(known | {part.lower() for part in parts if re.match(r"\d+ (IOPS|MB/s)$", part)})


def _options_of(disk: Disk) -> frozenset[str]:
    """Options of a scenario's disk in the same words."""
    on = {name for name in ("bursting", "performance_plus", "accelerated_network") if getattr(disk, name)}
    on |= {"cache"} if disk.cache == "ReadWrite" else set()
    on |= {"shared"} if disk.max_shares > 1 else set()
    on |= {f"{disk.iops} iops"} if disk.iops else set()
    return frozenset(on | ({f"{disk.mb_s} mb/s"} if disk.mb_s else set()))


def _same_load(row: Mapping[Any, Any], load: Workload) -> bool:
    """Whether the load is the row's; an access time is a read at queue depth 1."""
    if load.sync == "fdatasync" or load.rate is not None:
        return False
    if (str(load.write_pct), load.outstanding) != (row["write_pct"], row["outstanding"]):
        return False
    pattern, size = row["pattern"], published.bytes_of(row["block_size"])
    return row["metric"] == "access_time" or (load.pattern, load.block_size) == (pattern, size)
