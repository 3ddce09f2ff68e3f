"""Emulator profiles: the truth the emulator plays, read from TOML and checked.

A profile may say ``extends = "default"``: its own latency rows replace those with the same site, SKU, option,
zone relation and operation, its own keys those of the same table.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from diskbook.base.errors import UsageError, unknown
from diskbook.base.paths import PROFILES
from diskbook.emulator.types import Latency
from diskbook.reference.catalog import EPHEMERAL, sku_names
from diskbook.reference.delays import DELAYS_S

DEFAULT = "default"
SITES = (DEFAULT, "shared-zrs", "zone-disks", "s2d-azure", "disk-options", "nested-resiliency")
OPTIONS = ("none", "bursting", "performance-plus", "bursting+performance-plus")
RELATIONS = ("home", "other-a", "other-b")
OPS = ("read", "write", "flush", "cache-hit")
TABLES = ("description", "extends", "latency", "noise", "caps", "control_plane", "zones")
ROW_KEYS = ("site", "sku", "option", "zone_relation", "op", "mean_ms", "sigma", "parallelism")


@dataclass(frozen=True)
class LatencyKey:
    """What a latency is looked up by."""

    site: str
    sku: str
    option: str
    zone_relation: str
    op: str


@dataclass(frozen=True)
class Noise:
    """Noise levels: standard deviations on the log scale.

    `machine` and `disk` are constant for a machine or disk, `trial` for one opening of a disk. `block`
    changes over about `block_s` seconds, `second` each second (autocorrelation `phi` from one second to the
    next), `drift` over an hour; these three are common to all disks of a machine.
    """

    machine: float = 0.0
    disk: float = 0.0
    block: float = 0.0
    trial: float = 0.0
    second: float = 0.0
    drift: float = 0.0
    phi: float = 0.6
    block_s: float = 30.0


@dataclass(frozen=True)
class Caps:
    """How far the limits in force lie above the nominal ones (1.02: 2 % above)."""

    iops_factor: float = 1.0
    mb_s_factor: float = 1.0


@dataclass(frozen=True)
class Profile:
    """A checked profile.

    `home_zone` is the zone ZRS disks answer from; None: drawn for each disk by the seed. `delays_s` overrides
    the control plane's own times, by kind of operation.
    """

    name: str
    latencies: Mapping[LatencyKey, Latency]
    noise: Noise = field(default_factory=Noise)
    caps: Caps = field(default_factory=Caps)
    delays_s: Mapping[str, float] = field(default_factory=dict)
    home_zone: str | None = None

    def latency(self, site: str, sku: str, option: str, zone_relation: str, op: str) -> Latency:
        """Find a latency; what a site, option or zone relation does not say is inherited.

        The order: this site, then the default site; in each this zone relation before "home", and in each of
        those this option before "none".

        Raises
        ------
        RuntimeError
            The profile says nothing about this SKU and operation.
        """
        for key in _candidates(site, sku, option, zone_relation, op):
            if key in self.latencies:
                return self.latencies[key]
        raise RuntimeError(f"the emulator profile '{self.name}' has no {op} latency for {sku} disks")


def _candidates(site: str, sku: str, option: str, zone_relation: str, op: str) -> Iterator[LatencyKey]:
    for some_site in dict.fromkeys((site, DEFAULT)):
        for relation in dict.fromkeys((zone_relation, "home")):
            for some_option in dict.fromkeys((option, "none")):
                yield LatencyKey(some_site, sku, some_option, relation, op)


def profile_names() -> list[str]:
    """Return the names of the profiles that come with the workbook."""
    return sorted(path.stem for path in PROFILES.glob("*.toml"))


def load_profile(name: str) -> Profile:
    """Read and check a profile.

    Parameters
    ----------
    name
        A name, e.g. "default", or the path of a TOML file (ending in ``.toml``).

    Raises
    ------
    UsageError
        There is no such profile, or something in it is unknown, missing or out of range.
    """
    path = _path_of(name, PROFILES)
    return parse_profile(_merged(path, ()), path.stem, str(path.name))


def _path_of(name: str, folder: Path) -> Path:
    path = Path(name) if name.endswith(".toml") else folder / f"{name}.toml"
    if path.is_file():
        return path
    if name.endswith(".toml"):
        raise UsageError(f"there is no emulator profile file {name}.")
    if (PROFILES / f"{name}.toml").is_file():
        return PROFILES / f"{name}.toml"
    raise unknown("emulator profile", name, profile_names())


def _merged(path: Path, inside: tuple[Path, ...]) -> dict[str, Any]:
    """Read a file and what it extends into one document."""
    if path.resolve() in inside:
        raise UsageError(f"{path.name}: 'extends' goes round in a circle.")
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path.name}: not valid TOML: {error}.") from None
    parent = document.pop("extends", None)
    if parent is None:
        return document
    if not isinstance(parent, str):
        raise UsageError(f"{path.name}: extends must be the name of a profile.")
    base = _merged(_path_of(parent, path.parent), (*inside, path.resolve()))
    return _overlay(base, document)


def _overlay(base: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    result = dict(base)
    for key, value in own.items():
        before = base.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            result[key] = _overlay(before, value)
        elif isinstance(value, list) and isinstance(before, list):
            result[key] = before + value  # later rows win
        else:
            result[key] = value
    return result


def parse_profile(document: Mapping[str, Any], name: str, where: str) -> Profile:
    """Check a profile document and turn it into a :class:`Profile`.

    Parameters
    ----------
    document
        As read from TOML, `extends` already resolved.
    name
        The profile's name.
    where
        The file, for error messages.
    """
    _known(document, TABLES, "key", where)
    rows = document.get("latency", [])
    if not isinstance(rows, list) or not rows:
        raise UsageError(f"{where}: a profile needs [[latency]] rows, at least one for each operation.")
    latencies = dict(_latency(row, f"{where}: latency row {number}") for number, row in enumerate(rows, 1))
    control_plane = _table(document, "control_plane", where)
    _known(control_plane, ("delays_s",), "key", f"{where}: [control_plane]")
    return Profile(
        name=name,
        latencies=latencies,
        noise=_record(Noise, _table(document, "noise", where), f"{where}: [noise]"),
        caps=_record(Caps, _table(document, "caps", where), f"{where}: [caps]", smallest=0.01),
        delays_s=_delays(_table(control_plane, "delays_s", where), f"{where}: [control_plane.delays_s]"),
        home_zone=_home(_table(document, "zones", where), f"{where}: [zones]"),
    )


def _known(names: Collection[str], known: Collection[str], kind: str, where: str) -> None:
    for name in names:
        if name not in known:
            raise unknown(kind, name, known, where)


def _table(document: Mapping[str, Any], key: str, where: str) -> Mapping[str, Any]:
    table = document.get(key, {})
    if not isinstance(table, dict):
        raise UsageError(f"{where}: {key} must be a table.")
    return table


def _number(value: object, smallest: float, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= smallest:
        raise UsageError(f"{where} must be a number of at least {smallest:g}, not {value!r}.")
    return float(value)


def _latency(row: object, where: str) -> tuple[LatencyKey, Latency]:
    if not isinstance(row, dict):
        raise UsageError(f"{where}: must be a table.")
    _known(row, ROW_KEYS, "key", where)
    for key in ("sku", "op", "mean_ms"):
        if key not in row:
            raise UsageError(f"{where}: '{key}' is missing.")
    names = {
        "site": SITES,
        "sku": (*sku_names(), EPHEMERAL),
        "option": OPTIONS,
        "zone_relation": RELATIONS,
        "op": OPS,
    }
    values = {"site": DEFAULT, "option": "none", "zone_relation": "home"} | row
    for key, known in names.items():
        _known([str(values[key])], known, key, where)
    parallelism = _number(row.get("parallelism", 0), 0, f"{where}: parallelism")
    if parallelism != int(parallelism):
        raise UsageError(f"{where}: parallelism must be a whole number, not {parallelism:g}.")
    latency = Latency(
        mean_ms=_number(row["mean_ms"], 0.001, f"{where}: mean_ms"),
        sigma=_number(row.get("sigma", 0.0), 0.0, f"{where}: sigma"),
        parallelism=int(parallelism),
    )
    return LatencyKey(**{key: str(values[key]) for key in names}), latency


_Record = TypeVar("_Record", Noise, Caps)


def _record(kind: type[_Record], table: Mapping[str, Any], where: str, smallest: float = 0.0) -> _Record:
    _known(table, [entry.name for entry in fields(kind)], "key", where)
    values = {key: _number(value, smallest, f"{where} {key}") for key, value in table.items()}
    if values.get("phi", 0.0) >= 1.0:
        raise UsageError(f"{where} phi must be below 1, not {values['phi']:g}.")
    if "block_s" in values and values["block_s"] < 1.0:
        raise UsageError(f"{where} block_s must be at least 1, not {values['block_s']:g}.")
    return kind(**values)


def _delays(table: Mapping[str, Any], where: str) -> dict[str, float]:
    if table:
        _known(table, DELAYS_S, "operation", where)
    return {key: _number(value, 0.0, f"{where} {key}") for key, value in table.items()}


def _home(table: Mapping[str, Any], where: str) -> str | None:
    _known(table, ("home",), "key", where)
    home = str(table.get("home", "seed"))
    _known([home], ("seed", "1", "2", "3"), "home zone", where)
    return None if home == "seed" else home
