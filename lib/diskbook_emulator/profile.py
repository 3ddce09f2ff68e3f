"""Emulator profiles: the truth the emulator plays, read from TOML and checked.

A profile may say ``extends = "default"``, or name a file relative to its own folder: its own latency rows
replace those with the same site, SKU, option, zone relation and operation, its own keys those of the same
table.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, with_config

from diskbook.facts import files, paths
from diskbook.facts.arm import DELAYS_S
from diskbook.facts.catalog import EPHEMERAL, sku_names
from diskbook.facts.errors import UsageError, unknown
from diskbook.facts.validation import Wording, known_name, mistakes, refusal
from diskbook_emulator.types import Latency

DEFAULT = "default"
SITES = (DEFAULT, *paths.article_names())
OPTIONS = ("none", "bursting", "performance-plus", "bursting+performance-plus")
RELATIONS = ("home", "other-a", "other-b")
OPS = ("read", "write", "flush", "cache-hit")
WORDING = Wording(
    row="latency row {number}",
    sentences={
        **dict.fromkeys(("model_type", "dataclass_type", "dict_type"), "{at} must be a table, not {value}."),
        **dict.fromkeys(
            ("missing latency", "too_short", "tuple_type"),
            "a profile needs [[latency]] rows, at least one for each operation.",
        ),
        "float_type": "{at} must be a number, not {value}.",
        "finite_number": "{at} must be a finite number, not {value}.",
        "greater_than_equal": "{at} must be a number of at least {ge:g}, not {value}.",
        "greater_than": "{at} must be a number above {gt:g}, not {value}.",
        "less_than": "{at} must be below {lt:g}, not {value}.",
        "less_than_equal": "{at} must be at most {le:g}, not {value}.",
        "missing": "{place}: '{key}' is missing.",
        "tuple_type wander": "wander needs [[noise.wander]] rows with hours and sd, not {value}.",
        "multiple_of": "{at} must be a whole number, not {value}.",
        "string_type": "{at} must be a text, not {value}.",
        "literal_error": "{at} must be {expected}, not {value}.",
    },
)

Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Level = Annotated[Number, Field(ge=0)]
Share = Annotated[Number, Field(ge=0, le=1)]
Factor = Annotated[Number, Field(ge=0.01)]
_FIXED = ConfigDict(frozen=True, extra="forbid")


@dataclass(frozen=True)
class LatencyKey:
    """What a latency is looked up by."""

    site: str
    sku: str
    option: str
    zone_relation: str
    op: str


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True)
class Wander:
    """Slow drift of log latency: an Ornstein-Uhlenbeck process, by time constant and standard deviation."""

    hours: Annotated[Number, Field(gt=0)]
    sd: Level


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True)
class Noise:
    """Noise levels: standard deviations on the log scale.

    `machine` and `disk` are constant for a machine or disk, `trial` for one opening of a disk. `block`
    changes over about `block_s` seconds, `second` each second (autocorrelation `phi` from one second to the
    next), `drift` over an hour.

    - `machine_us`: standard deviation of what a machine adds to every latency, in microseconds.
    - `wander`: processes over hours to weeks. They move from block to block, with the hours between blocks,
      and stand still within one.
    - `shared`: share of the variance of `block`, `second`, `drift` and `wander`, and of the rate of shifts,
      that is the machine's and common to its disks. The rest is each disk's own. The nodes of a volume play
      the `block`, `second` and `drift` of their first disk.
    - `shifts_a_month`, `shift`: rate of shifts of level, and their size (log); one goes up or down, the next
      one back.
    - `slow_pairs`, `slow_pair_next`, `slow_pair_factor`: share of fresh pairs of machine and disk that are
      slow, the share after a slow one, and the factor on their IOPS. It is the machine in `shared` of them,
      else the disk. Those named alike but for their first number follow one another by it.
    - `slow_runs`, `slow_run_up_to`: share of trials slower by 10 % or more, each by itself, and the largest
      factor.
    - `credit_empty`, `credit_partial`: shares of fresh machines whose burst credit is spent, or spent in
      part, when they begin.
    - `hours_between_blocks`: how far the noise clock is set on from one block of a run to the next.
    """

    machine: Level = 0.0
    disk: Level = 0.0
    block: Level = 0.0
    trial: Level = 0.0
    second: Level = 0.0
    drift: Level = 0.0
    phi: Annotated[Level, Field(lt=1)] = 0.6
    block_s: Annotated[Number, Field(ge=1)] = 30.0
    machine_us: Level = 0.0
    wander: tuple[Wander, ...] = ()
    shared: Share = 0.0
    shifts_a_month: Level = 0.0
    shift: Level = 0.05
    slow_pairs: Share = 0.0
    slow_pair_next: Share = 0.0
    slow_pair_factor: Annotated[Factor, Field(le=1)] = 0.82
    slow_runs: Share = 0.0
    slow_run_up_to: Annotated[Number, Field(ge=1.1)] = 6.0
    credit_empty: Share = 0.0
    credit_partial: Share = 0.0
    hours_between_blocks: Level = 0.0


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True)
class Caps:
    """How far the limits in force lie above the nominal ones (1.02: 2 % above)."""

    iops_factor: Factor = 1.0
    mb_s_factor: Factor = 1.0


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True)
class Drives:
    """Limits of all data disks of a site instead of the documented ones; the control plane reports them."""

    iops: Annotated[Number, Field(ge=1, multiple_of=1)]
    mb_s: Annotated[Number, Field(ge=1, multiple_of=1)]


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True)
class Volumes:
    """What volumes of several disks play besides their disks' latencies.

    - `local_share`: share of reads that the owner's own copies answer.
    - `hop_ms`, `hop_sigma`: what the network adds between two nodes: mean and sigma of a lognormal.
    - `zone_hop_ms`: the same between nodes in different zones.
    - `nic_out_mb_s`, `nic_in_mb_s`: what a machine's network sends, and what it receives; 0 for no limit.
    - `software_ms`: what the software of volumes adds to every I/O.
    - `rotate_at`: how full a mirror tier is when data begin to move to parity; 0 for never.
    - `repair_depth`: chunks that a repair copies at a time.
    """

    local_share: Share = 1.0
    hop_ms: Level = 0.1
    hop_sigma: Level = 0.3
    zone_hop_ms: Level = 1.0
    nic_out_mb_s: Level = 2000.0
    nic_in_mb_s: Level = 0.0
    software_ms: Level = 0.0
    rotate_at: Share = 0.85
    repair_depth: Annotated[Number, Field(ge=1, le=64, multiple_of=1)] = 8


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True)
class Attach:
    """What an attach does to a disk: latencies times `factor` for `slow_s` seconds, not scaled.

    It slows disks of one `sku`, or all disks where there is none. The disks of volumes are attached before
    all else, and play nothing of it.
    """

    slow_s: Level = 0.0
    factor: Annotated[Factor, Field(le=100)] = 1.0
    sku: Annotated[str, known_name("sku", sku_names)] | None = None


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True)
class Single:
    """What is planted in disks by their names (`[disks."r2-*"]`). The control plane does not report it.

    - `caps_factor`: limits in force as a multiple of the nominal ones, in place of `[caps]`.
    - `rise_a_minute`: relative rise of their latencies per minute, from the start of the emulator.
    - `stall_every_s`, `stall_factor`: latencies are multiplied by the factor for one second in so many; 0:
      never.
    """

    caps_factor: Factor | None = None
    rise_a_minute: Level = 0.0
    stall_every_s: Annotated[Level, Field(multiple_of=1)] = 0
    stall_factor: Annotated[Factor, Field(le=10_000)] = 1.0


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True)
class Network:
    """What a company has decided before any run.

    - `public_addresses`: "refused": Azure Policy denies public addresses.
    - `existing`: whether there are subnets, a Bastion and a jump host.
    """

    public_addresses: Literal["allowed", "refused"] = "allowed"
    existing: Annotated[bool, Field(strict=True)] = False


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True)
class Schedules:
    """What Azure's auto-shutdown does where no documentation says it.

    - `stopped_machine`: what becomes of a machine that is already stopped from inside: "left" (stopped and
      billed) or "deallocated".
    - `least_ahead_min`: a schedule that is set less ahead first runs on the next day.
    """

    stopped_machine: Literal["left", "deallocated"] = "left"
    least_ahead_min: Level = 30.0


@dataclass(frozen=True)
class Profile:
    """A checked profile.

    `home_zone` is the zone ZRS disks answer from; None: drawn for each disk by the seed. `delays_s` overrides
    the control plane's own times, by kind of operation. `drives` are by site; `disks` are by shell pattern of
    names, and the first that matches counts. `metrics_grain_s` is the grain of the platform's metrics:
    Azure's minute, or 1 s for trials that are short, which Azure does not have.
    """

    name: str
    latencies: Mapping[LatencyKey, Latency]
    noise: Noise = field(default_factory=Noise)
    caps: Caps = field(default_factory=Caps)
    volumes: Volumes = field(default_factory=Volumes)
    drives: Mapping[str, Drives] = field(default_factory=dict)
    disks: Mapping[str, Single] = field(default_factory=dict)
    attach: Attach = field(default_factory=Attach)
    network: Network = field(default_factory=Network)
    schedules: Schedules = field(default_factory=Schedules)
    delays_s: Mapping[str, float] = field(default_factory=dict)
    home_zone: str | None = None
    metrics_grain_s: int = 60

    def latency(self, site: str, sku: str, option: str, zone_relation: str, op: str) -> Latency:
        """Find a latency; what a site, option or zone relation does not say is inherited.

        The order: this site, then the default site; in each this zone relation before "home", and in each of
        those this option before "none".

        Raises RuntimeError: the profile says nothing about this SKU and operation.
        """
        for key in _candidates(site, sku, option, zone_relation, op):
            if key in self.latencies:
                return self.latencies[key]
        raise RuntimeError(f"the emulator profile '{self.name}' has no {op} latency for {sku} disks")


class _Row(BaseModel):
    """A row of the table of latencies."""

    model_config = _FIXED

    site: Annotated[str, known_name("site", SITES)] = DEFAULT
    sku: Annotated[str, known_name("sku", lambda: (*sku_names(), EPHEMERAL))]
    option: Annotated[str, known_name("option", OPTIONS)] = "none"
    zone_relation: Annotated[str, known_name("zone_relation", RELATIONS)] = "home"
    op: Annotated[str, known_name("op", OPS)]
    mean_ms: Annotated[Number, Field(ge=0.001)]
    sigma: Level = 0.0
    parallelism: Annotated[Level, Field(multiple_of=1)] = 0

    @property
    def entry(self) -> tuple[LatencyKey, Latency]:
        """The latency and what it is looked up by."""
        key = LatencyKey(self.site, self.sku, self.option, self.zone_relation, self.op)
        return key, Latency(self.mean_ms, self.sigma, int(self.parallelism))


class _ControlPlane(BaseModel):
    model_config = _FIXED

    delays_s: dict[Annotated[str, known_name("operation", DELAYS_S)], Level] = Field(default_factory=dict)


class _Zones(BaseModel):
    model_config = _FIXED

    home: Annotated[str, known_name("home zone", ("seed", "1", "2", "3"))] = "seed"


class _Document(BaseModel):
    """A profile's file, with what it extends."""

    model_config = _FIXED

    description: str = ""
    metrics_grain_s: Literal[1, 60] = 60
    latency: Annotated[tuple[_Row, ...], Field(min_length=1)]
    control_plane: _ControlPlane = _ControlPlane()
    noise: Noise = Noise()
    caps: Caps = Caps()
    volumes: Volumes = Volumes()
    drives: dict[Annotated[str, known_name("site", SITES)], Drives] = Field(default_factory=dict)
    disks: dict[str, Single] = Field(default_factory=dict)
    zones: _Zones = _Zones()
    attach: Attach = Attach()
    network: Network = Network()
    schedules: Schedules = Schedules()


_TAKEN_OVER = (
    "noise", "caps", "volumes", "drives", "disks", "attach", "network", "schedules", "metrics_grain_s",
)  # fmt: skip


def _candidates(site: str, sku: str, option: str, zone_relation: str, op: str) -> Iterator[LatencyKey]:
    for some_site in dict.fromkeys((site, DEFAULT)):
        for relation in dict.fromkeys((zone_relation, "home")):
            for some_option in dict.fromkeys((option, "none")):
                yield LatencyKey(some_site, sku, some_option, relation, op)


def profile_names() -> list[str]:
    """Return the names of the profiles that come with the workbook."""
    return sorted(path.stem for path in paths.PROFILES.glob("*.toml"))


def load_profile(name: str) -> Profile:
    """Read and check a profile.

    - `name`: a name, e.g. "default", or the path of a TOML file (ending in ``.toml``).

    Raises UsageError: there is no such profile, or something in it is unknown, missing or out of range.
    """
    path = _path_of(name, Path() if name.endswith(".toml") else paths.PROFILES)
    return parse_profile(_merged(path, ()), path.stem, str(path.name))


def _path_of(name: str, folder: Path) -> Path:
    """Find a profile: a file, relative to the folder that names it, or a name there or in the workbook."""
    path = folder / (name if name.endswith(".toml") else f"{name}.toml")
    if path.is_file():
        return path
    if name.endswith(".toml"):
        raise UsageError(f"there is no emulator profile file {path}.")
    if (paths.PROFILES / f"{name}.toml").is_file():
        return paths.PROFILES / f"{name}.toml"
    raise unknown("emulator profile", name, profile_names())


def _merged(path: Path, inside: tuple[Path, ...]) -> dict[str, Any]:
    """Read a file and what it extends into one document."""
    if path.resolve() in inside:
        raise UsageError(f"{path.name}: 'extends' goes round in a circle.")
    document = files.read_toml(path, f"there is no emulator profile file {path}.")
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
        elif key == "latency" and isinstance(value, list) and isinstance(before, list):
            result[key] = before + value  # later rows win
        else:
            result[key] = value
    return result


def parse_profile(document: Mapping[str, Any], name: str, where: str) -> Profile:
    """Check a profile document and turn it into a :class:`Profile`.

    - `document`: as read from TOML, `extends` already resolved.
    - `where`: the file, for error messages.
    """
    try:
        checked = _Document.model_validate(document)
    except ValidationError as error:
        texts = [mistake.text for mistake in mistakes(error, _Document, document, WORDING)]
        raise refusal(where, texts, document) from None
    home = checked.zones.home
    return Profile(
        name=name,
        latencies=dict(row.entry for row in checked.latency),
        delays_s=checked.control_plane.delays_s,
        home_zone=None if home == "seed" else home,
        **{name: getattr(checked, name) for name in _TAKEN_OVER},
    )
