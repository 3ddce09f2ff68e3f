"""What changed from run to run, by manifests: settings, versions, sizes, limits, region, hour, profile."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from diskbook.design.vocabulary import Provenance
from diskbook.report.comparing.measured import Measured

WORDS_ALONE = {
    "name",
    "label",
    "remarks",
    "substitute",
    "arms",
    "verbatim",
    "series_s",
    "seed",
    "max_cost_usd",
}
"""Settings that are words, or that hold nothing of what is measured."""
_PARTS = ("machine", "disk", "arm", "volume", "cluster", "workload")
_EMULATOR = {"profile": "emulator profile", "seed": "emulator seed", "time_scale": "emulator time scale"}
MISSING = "–"


class Change(NamedTuple):
    """One thing that is not the same in all runs: kind, name, and its value in each run."""

    kind: str
    what: str
    values: tuple[str, ...]


def hours(item: Measured) -> str:
    """Hours in which a run was measured: "2026-11-22 21:35 to 21:40 UTC"."""
    times = item.manifest["trials_utc"]
    if not times:
        return "hours unknown"
    first, last = (time[:16].replace("T", " ") for time in times)
    if first == last:
        return f"{first} UTC"
    return f"{first} to {last[11:] if first[:10] == last[:10] else last} UTC"


def between(runs: Sequence[Measured], names: Iterable[str]) -> list[Change]:
    """List what is not the same in all runs.

    - `names`: arms and workloads that are compared: settings of others do not count.
    """
    compared = set(names)
    facts = [dict(_facts(item, compared)) for item in runs]
    keys = dict.fromkeys(key for of_run in facts for key in of_run)
    rows = [Change(*key, tuple(of_run.get(key, MISSING) for of_run in facts)) for key in keys]
    return [row for row in rows if len(set(row.values)) > 1]


def _facts(item: Measured, names: set[str]) -> Iterator[tuple[tuple[str, str], str]]:
    """All that may differ, by kind and name."""
    manifest = item.manifest
    yield ("run", "provenance"), item.provenance
    yield ("run", "scenario"), item.scenario.name
    yield ("run", "preset"), str(manifest.get("preset"))
    yield ("region", "region"), item.scenario.region
    for zone, place in (manifest.get("zone_map") or {}).items():
        yield ("region", f"physical zone of zone {zone}"), str(place)
    yield ("hour", "measured"), hours(item)
    if item.provenance == Provenance.EMULATED:
        for key, words in _EMULATOR.items():
            yield ("profile", words), str((manifest.get("emulator") or {}).get(key, MISSING))
    scenario = item.scenario.model_dump(mode="json")
    for key, value in _leaves(scenario["design"]):
        yield ("setting", f"design.{key}"), value
    places = _places(scenario, names)
    for part in _PARTS:
        for record in scenario[part]:
            if record["name"] in places[part]:
                yield from (
                    ((_kind(part, key), f"{part}.{record['name']}.{key}"), value)
                    for key, value in _leaves(record)
                )
    yield from _limits(manifest, places)
    yield from _versions(manifest, places)


def _kind(part: str, key: str) -> str:
    return "size" if (part, key) in {("machine", "size"), ("disk", "size_gib")} else "setting"


def _leaves(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key, value in record.items():
        if key not in WORDS_ALONE:
            yield key, MISSING if value is None else str(value)


def _places(scenario: Mapping[str, Any], names: set[str]) -> dict[str, set[str]]:
    """Names of what the compared cells are on, by part of the scenario."""
    arms = [arm for arm in scenario["arm"] if arm["name"] in names]
    volumes = {arm["volume"] for arm in arms} - {""}
    of_volumes = [volume for volume in scenario["volume"] if volume["name"] in volumes]
    clusters = {volume["cluster"] for volume in of_volumes}
    nodes = {
        name for cluster in scenario["cluster"] if cluster["name"] in clusters for name in cluster["nodes"]
    }
    return {
        "arm": names,
        "workload": names,
        "machine": {arm["machine"] for arm in arms} | nodes,
        "disk": {part["disk"] for part in (*arms, *of_volumes)},
        "volume": volumes,
        "cluster": clusters,
    }


def _limits(
    manifest: Mapping[str, Any], places: Mapping[str, set[str]]
) -> Iterator[tuple[tuple[str, str], str]]:
    """Limits of disks and machines, over all replicates."""
    for part in ("disk", "machine"):
        for name in sorted(places[part]):
            entries = [row.get(f"{part}s", {}).get(name) or {} for row in manifest["replicates"]]
            keys = dict.fromkeys(key for entry in entries for key in entry.get("limits") or {})
            for key in keys:
                values = (entry.get("limits", {}).get(key) for entry in entries)
                yield ("limit", f"{part} {name}: {key}"), _listed(values)


def _versions(
    manifest: Mapping[str, Any], places: Mapping[str, set[str]]
) -> Iterator[tuple[tuple[str, str], str]]:
    """Versions of what measures and analyses: the workbook's, and those of the machines."""
    for key, value in (manifest.get("versions") or {}).items():
        yield ("version", key), str(value)
    for key, value in (manifest.get("images") or {}).items():
        yield ("version", f"image for {key}"), str(value)
    machines = [
        machine
        for row in manifest["replicates"]
        for name, machine in row.get("machines", {}).items()
        if name in places["machine"]
    ]
    for key, words in (("tool_version", "tool"), ("kernel", "kernel")):
        yield ("version", words), _listed(machine.get(key) for machine in machines)


def _listed(values: Iterable[Any]) -> str:
    """Values met, each once: "5000", "fio-3.33, fio-3.36"."""
    met = dict.fromkeys(_short(value) for value in values if value is not None)
    return ", ".join(met) or MISSING


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
