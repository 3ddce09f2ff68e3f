"""Reading scenario files: TOML, preset, overrides, and messages that name file, key and remedy.

A preset can leave out rows of a scenario's file by name, with everything that concerns only them.
"""

import reprlib
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from diskbook.design import azure_rules, company_rules, derived_workloads, scenario_tables
from diskbook.design.model import PRESETS, Scenario
from diskbook.design.scenario_tables import WORDING, form, mistakes_of_form
from diskbook.facts import files, neighbours, paths
from diskbook.facts.errors import UsageError, one_line, unknown
from diskbook.facts.rules import UNKNOWN_SIZE
from diskbook.facts.validation import Mistake, MistakesError, mistakes as say_all, refusal

KINDS = frozenset({"machine", "disk", "cluster", "volume", "arm", "workload", "check", "drill", "loss"})
Names = Sequence[Any]
"""Names as a file has them, which may be anything: nothing of it has been checked yet."""


def left_out(raw: Mapping[str, Any], names: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Take rows out of a file's tables, and with them comparisons and shares of workloads.

    - `raw`: the file's tables; lists of tables are lists.
    - `names`: by kind of row, e.g. ``{"arm": ["s2d-3-zones"]}``. Losses of a volume go with it.

    Returns the tables without those rows, without the comparisons of those arms and workloads, and without
    the workloads that were for those arms only.
    """
    arms = names.get("arm", ())
    left = {kind: [row for row in rows if row.get("name") not in names[kind]] if kind in names else rows
            for kind, rows in raw.items()}  # fmt: skip
    gone = names.get("volume", ())
    if "loss" in left:
        left["loss"] = [row for row in left["loss"] if row.get("volume") not in gone]
    workloads = [_pruned(row, arms) for row in left.get("workload", [])]
    left["workload"] = [row for row in workloads if row is not None]
    there = _names(left["workload"])
    loads = [name for name in _names(raw.get("workload", [])) if name not in there]
    if "comparison" in left:
        left["comparison"] = [row for row in left["comparison"] if not _is_about(row, arms, loads)]
    return left


def _names(rows: Sequence[Mapping[str, Any]]) -> Names:
    return [row.get("name") for row in rows]


def _pruned(row: Mapping[str, Any], arms: Names) -> Mapping[str, Any] | None:
    """A workload without some of its arms; None where it had no others."""
    listed = row.get("arms")
    if not isinstance(listed, list) or not any(name in arms for name in listed):
        return row
    kept = [name for name in listed if name not in arms]
    return {**row, "arms": kept} if kept else None


def _is_about(comparison: Mapping[str, Any], arms: Names, loads: Names) -> bool:
    named = comparison.get("arm"), comparison.get("base_arm")
    return any(name in arms for name in named) or comparison.get("workload") in loads


SAMPLE = "sample"
"""Preset of the committed sample run, which a scenario may have; it lies over quick."""
ANSWER = "answer"
"""Preset of a scenario that has one: only what its headline needs, as cheap as it can be."""
SOME = (ANSWER, SAMPLE)
"""Presets that some scenarios have."""
LISTS = frozenset({"machine", "disk", "arm", "workload", "sweep", "comparison", "check", "drill"})
LISTS |= {"cluster", "volume", "loss"}
TABLES = ("azure", "design", "network", "scenario")
"""Tables of a scenario that presets and overrides lie over key by key."""
CHECKS = {"tools": "diskbook.tools.registry:check"}
"""Checks by packages above this one. Each takes a scenario and returns a sentence per mistake."""


def names() -> list[str]:
    """Names of the scenarios that come with the workbook."""
    return sorted(path.stem for path in paths.SCENARIOS.glob("*.toml"))


def sampled() -> list[str]:
    """Names of the scenarios that have a preset for a committed sample run."""
    return [name for name in names() if SAMPLE in files.read_toml(_path(name), name).get("preset", {})]


def load(
    scenario: str,
    preset: str = "standard",
    overrides: Mapping[str, Any] | None = None,
    *,
    asks_azure: bool = False,
) -> Scenario:
    """Read a scenario, apply a preset and overrides, and check it whole.

    - `scenario`: a name in data/scenarios, or the path of a TOML file.
    - `preset`: quick, standard or full; or answer or sample, where the file has it.
    - `overrides`: dotted keys and values that win over the preset, e.g. ``{"design.replicates": 2}``,
      ``{"workload.randwrite-qd1.blocks": 8}`` or ``{"all_workloads.runtime_s": 10}``.
    - `asks_azure`: whether Azure is asked before anything is created: it then decides about sizes that no
      table has.

    Raises UsageError with a line per mistake, which names file, place and remedy.
    """
    path = _path(scenario)
    try:
        return _load(path, preset, overrides or {}, asks_azure)
    except MistakesError:
        raise
    except UsageError as error:
        raise UsageError(one_line(str(error))) from None


def _load(path: Path, preset: str, overrides: Mapping[str, Any], asks_azure: bool) -> Scenario:
    raw = files.read_toml(path, f"there is no scenario file {path}")
    _check_shape(raw, path.name)
    if "name" in raw:
        raise UsageError(f"{path.name}: a scenario has the name of its file; leave the key 'name' out")
    presets = raw.pop("preset", {})
    if preset not in PRESETS and (preset not in SOME or preset not in presets):
        raise unknown("preset", preset, [*PRESETS, *({ANSWER} & presets.keys())])
    wrong = _wrong_presets(raw, presets, path.name)
    if wrong:  # the rest of the file is checked without any preset
        presets = {}
    applied = ("quick", SAMPLE) if preset == SAMPLE else (preset,)
    layers = {f"{path.name}: [preset.{name}]": presets.get(name, {}) for name in applied}
    try:
        _lay_over(raw, {**layers, "overrides": _nested({} if wrong else overrides)}, path.name)
    except UsageError as error:
        if not wrong:
            raise
        raise refusal(path.name, [*wrong, *_lines(error, path.name)], raw) from None
    tables = {"name": path.stem, "preset": preset, **raw}
    try:
        made = form(tables)
    except ValueError:
        find = partial(_find, asks_azure=asks_azure)
        raise refusal(path.name, [*wrong, *scenario_tables.every_mistake(tables, find)], tables) from None
    if wrong:
        raise refusal(path.name, [*wrong, *_broken(made, asks_azure)], tables)
    return check(made, path.name, asks_azure=asks_azure)


def _wrong_presets(raw: Mapping[str, Any], presets: Mapping[str, Any], file: str) -> list[str]:
    """Say what is wrong with the presets of a file, each laid over the rest alone."""
    wrong: list[str] = []
    for name, table in presets.items():
        where = f"{file}: [preset.{name}]"
        try:
            if name not in (*PRESETS, *SOME):
                raise unknown("preset", name, PRESETS, file)
            _lay_over(_copy(raw), {where: _table(table, where)}, file)
        except UsageError as error:
            wrong += _lines(error, file)
    return wrong


def _lines(error: UsageError, file: str) -> list[str]:
    """Lines of a message, without the file that each begins with."""
    lines = str(error).splitlines() if isinstance(error, MistakesError) else [str(error)]
    return [line.removeprefix(f"{file}: ") for line in lines]


def _check_shape(raw: Mapping[str, Any], where: str) -> None:
    """Make sure that tables are tables and lists of tables are such, before presets are laid over them."""
    for key in raw.keys() & {"preset", *TABLES}:
        _table(raw[key], f"{where}: [{key}]")
    for key in raw.keys() & LISTS:
        if not isinstance(raw[key], list):
            raise UsageError(f"{where}: write [[{key}]], once for each; '{key}' is not a list of tables")
        for number, row in enumerate(raw[key], 1):
            _table(row, f"{where}: [[{key}]] {number}")


def _table(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise UsageError(f"{where}: this must be a table of keys, not {reprlib.repr(value)}")
    return value


def _find(raw: Mapping[str, Any], asks_azure: bool) -> list[Mistake]:
    """Find mistakes of the form, or else all broken rules."""
    return mistakes_of_form(raw) or [Mistake(text) for text in _broken(form(raw), asks_azure)]


def check(scenario: Scenario, where: str, *, asks_azure: bool = False) -> Scenario:
    """Check a scenario by Azure's rules; raise UsageError with a line per rule that it breaks."""
    if broken := _broken(scenario, asks_azure):
        raise refusal(where, broken, scenario.model_dump())
    return scenario


def _broken(scenario: Scenario, asks_azure: bool) -> list[str]:
    rules = azure_rules.check(scenario)
    if asks_azure:
        rules = [rule for rule in rules if rule.rule != UNKNOWN_SIZE]
    broken = [*rules, *azure_rules.failover_problems(scenario)]
    for what, hook in CHECKS.items():
        broken += neighbours.imported(hook, f"the check of {what}")(scenario)
    return [
        str(rule)
        for rule in (*broken, *company_rules.check_network(scenario.network), *company_rules.check(scenario))
    ]


def is_file(scenario: str) -> bool:
    """Whether a scenario is given by its file, and not by its name."""
    return scenario.endswith(".toml") or "/" in scenario


def _path(scenario: str) -> Path:
    if is_file(scenario):
        path = Path(scenario)
        if not path.is_file():
            raise UsageError(f"there is no scenario file {scenario}")
        return path
    if scenario not in names():
        raise unknown("scenario", scenario, names())
    return paths.SCENARIOS / f"{scenario}.toml"


def _copy(raw: Mapping[str, Any]) -> dict[str, Any]:
    return {key: list(value) if isinstance(value, list) else value for key, value in raw.items()}


def _nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for key, value in flat.items():
        *parents, last = key.split(".")
        node = tree
        for part in parents:
            node = node.setdefault(part, {})
            if not isinstance(node, dict):
                raise UsageError(f"overrides: '{key}' goes below a value that is set as well")
        node[last] = dict(value) if isinstance(value, Mapping) else value
    return tree


def _together(table: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Lay changes over a table and the tables in it."""
    both = [key for key in changes if isinstance(changes[key], dict) and isinstance(table.get(key), dict)]
    return {**table, **changes, **{key: {**table[key], **changes[key]} for key in both}}


def _lay_over(raw: dict[str, Any], layers: Mapping[str, Mapping[str, Any]], file: str) -> None:
    """Lay presets and overrides over a scenario, in place: over its sweeps, then over what these make."""
    for where, changes in layers.items():
        _merge(raw, {key: table for key, table in changes.items() if key == "sweep"}, where)
    if "sweep" in raw:
        _make_workloads(raw, file)
    if "loss" in raw:
        raw["loss"] = neighbours.volume_rules.loss_rows(raw["loss"])
    for where, changes in layers.items():
        _merge(
            raw, {key: table for key, table in changes.items() if key not in ("sweep", "leave_out")}, where
        )
    for where, changes in layers.items():
        raw.update(left_out(raw, _left_out(raw, changes.get("leave_out", {}), where)))


def _left_out(raw: Mapping[str, Any], names: Any, where: str) -> Mapping[str, list[str]]:
    """Check what a preset leaves out: kinds that there are, and lists of names that there are."""
    place = f"{where} leave_out"
    for kind, listed in _table(names, place).items():
        if kind not in KINDS:
            raise unknown("key", kind, KINDS, place)
        if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
            raise UsageError(f'{place}: write {kind} as a list of names, for example {kind} = ["a", "b"]')
        known = [str(row.get("name")) for row in raw.get(kind, [])]
        for name in listed:
            if name not in known:
                raise unknown(kind, name, known, place)
    return dict(names)


def _make_workloads(raw: dict[str, Any], file: str) -> None:
    try:
        made = derived_workloads.workloads(raw)
    except ValidationError as error:
        texts = [mistake.text for mistake in say_all(error, derived_workloads.Sweeps, raw, WORDING)]
        raise refusal(file, texts, raw) from None
    except ValueError as error:
        raise UsageError(f"{file}: {error}") from None
    del raw["sweep"]
    raw["workload"] = [*raw.get("workload", []), *made]


def _merge(raw: dict[str, Any], changes: Mapping[str, Any], where: str) -> None:
    """Lay changes over the tables of a scenario, in place.

    Keys are `design`, `network`, `scenario` (tables), `all_workloads` (every workload), and a kind with a
    name below it (`workload.randread-qd1`). A list of a sweep replaces that of the file.
    """
    kinds = LISTS - {"comparison"}
    for key, table in changes.items():
        if not isinstance(table, Mapping):
            raise UsageError(f"{where}: '{key}' needs a name below it, for example design.seed")
        if key in TABLES:
            raw[key] = _together(raw.get(key, {}), table)
        elif key == "all_workloads":
            raw["workload"] = [{**row, **table} for row in raw.get("workload", [])]
        elif key in kinds:
            _merge_named(raw, key, table, where)
        else:
            raise unknown("key", key, {*TABLES, "all_workloads", *kinds}, where)


def _merge_named(raw: dict[str, Any], kind: str, tables: Mapping[str, Any], where: str) -> None:
    rows = raw.get(kind, [])
    known = [str(row.get("name")) for row in rows]
    for name, table in tables.items():
        if name not in known:
            raise unknown(kind, name, known, where)
        if not isinstance(table, Mapping):
            raise UsageError(f"{where}: {kind}.{name} needs a key below it, for example {kind}.{name}.zone")
        position = known.index(name)
        rows[position] = {**rows[position], **table}
