"""The options of a managed disk, one row each: how each is asked for, read back, changed and named.

Asking (`azure.requests`), reading back (`azure.readback`), the emulated control plane, the rules and the plan
iterate over this table, and so does the estimate of costs. `docs/recipes.md` shows how to add an option.
"""

from dataclasses import dataclass
from typing import Any, Literal, Protocol

from diskbook.facts import catalog

FREQUENT_A_DAY = 5
"""Detached more often than that a day, a disk is to be optimized for frequent attach (Microsoft, on
`optimizedForFrequentAttach` of the REST specification)."""


@dataclass(frozen=True)
class Option:
    """One option of a managed disk.

    - `name`: its field in a scenario's disk, and in what the rules judge.
    - `ask`: keys that lead to it in the properties of a request, e.g. ("creationData", "performancePlus").
    - `read`: attributes that lead to it in the SDK's disk, with dots between.
    - `default`: what Azure does when it is not asked for. None where Azure works out a value: that is
      compared only where one was asked for.
    - `words`: what a plan says of a disk that has it, with {} for the value; empty for nothing.
    - `limits`: whether the documented limits depend on it: it is a parameter of `catalog.disk_limits` then.
    - `always`: whether it is asked for even when it is the default.
    - `flexible`: whether only disks whose figures are free take it: Premium SSD v2 and Ultra.
    - `meter`: kind of the meter that bills it by the hour, in `prices.UNITS`; empty where it is free.
    - `change`: when an existing disk takes a change: "always", "detached" (not while a running machine has
      it) or "never".
    """

    name: str
    ask: tuple[str, ...]
    read: str
    default: Any
    words: str = ""
    limits: bool = False
    always: bool = False
    flexible: bool = False
    meter: str = ""
    change: Literal["always", "detached", "never"] = "always"

    @property
    def computed(self) -> bool:
        """Whether Azure works out a figure where none is asked for."""
        return self.default is None

    @property
    def parameter(self) -> str:
        """Name in Azure's messages."""
        return f"disk.{'.'.join(self.ask)}"

    def put(self, properties: dict[str, Any], value: Any) -> None:
        """Write the option into the properties of a request, where it has to be asked for."""
        if value == self.default and not self.always:
            return
        *above, last = self.ask
        for key in above:
            properties = properties.setdefault(key, {})
        properties[last] = value

    def get(self, properties: dict[str, Any]) -> Any:
        """Read the option from the properties of a request; the default where it is not there."""
        value: Any = properties
        for key in self.ask:
            value = (value or {}).get(key)
        if value is None:
            return self.default
        return value if self.computed else type(self.default)(value)

    def text(self, value: Any) -> str:
        """What a plan says of a disk with this value; empty for the default."""
        return "" if value == self.default else self.words.format(value)


OPTIONS = (
    Option(
        "max_shares", ("maxShares",), "max_shares", 1, "shared by up to {}",
        limits=True, always=True, change="detached",
    ),
    Option(
        "bursting", ("burstingEnabled",), "bursting_enabled", False, "on-demand bursting",
        limits=True, meter="burst-enablement", change="detached",
    ),
    # Billed as a disk of that tier: the estimate takes the tier's own meter.
    Option("tier", ("tier",), "tier", None, "performance tier {}", limits=True),
    Option(
        "performance_plus", ("creationData", "performancePlus"), "creation_data.performance_plus", False,
        "performance plus", limits=True, change="never",
    ),
    # From the REST specification, not seen on the wire. It changes neither limits nor price.
    Option(
        "accelerated_network", ("supportedCapabilities", "acceleratedNetwork"),
        "supported_capabilities.accelerated_network", False,
    ),
    # Such a disk does not follow its machine's fault domain (Microsoft, on the property): another object.
    Option(
        "frequent_attach", ("optimizedForFrequentAttach",), "optimized_for_frequent_attach", False,
        "optimized for frequent attach, not aligned with its machine's fault domain",
    ),
    Option(
        "iops", ("diskIOPSReadWrite",), "disk_iops_read_write", None, "{} IOPS", limits=True, flexible=True,
    ),
    Option(
        "mb_s", ("diskMBpsReadWrite",), "disk_m_bps_read_write", None, "{} MB/s", limits=True, flexible=True,
    ),
)  # fmt: skip


class Disk(Protocol):
    """A disk of a scenario, of the rules or of the emulator: SKU and size, with fields for the options."""

    @property
    def sku(self) -> str:
        """SKU, e.g. Premium_ZRS."""

    @property
    def size_gib(self) -> int:
        """Size."""


def limits(disk: Disk, tier: str | None = None) -> catalog.DiskLimits:
    """Documented limits of a disk with its options; `tier` is a performance tier chosen above its size's."""
    options = {option.name: getattr(disk, option.name) for option in OPTIONS if option.limits}
    return catalog.disk_limits(disk.sku, disk.size_gib, **{"tier": tier, **options})


def values(disk: Disk) -> dict[str, Any]:
    """Values of all options of a disk, by name."""
    return {option.name: getattr(disk, option.name) for option in OPTIONS}
