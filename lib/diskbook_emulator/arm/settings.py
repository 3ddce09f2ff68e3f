"""What one emulated control plane is set to."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from diskbook.facts.arm import DELAYS_S
from diskbook_emulator.profile import Schedules
from diskbook_emulator.types import Json

DEFAULT_QUOTAS: Mapping[str, int] = {"cores": 350, "PublicIPAddresses": 1000}


@dataclass(frozen=True)
class Restriction:
    """A SKU that the subscription may not have in a region, or in some of its zones."""

    sku: str
    location: str
    zones: tuple[str, ...] = ()


@dataclass(frozen=True)
class Settings:
    """Settings of a control plane.

    `time_scale` is the share of Azure's waiting times that is really slept, `delays_s` overrides
    `reference.delays` by kind of operation, `drives` are IOPS and MB/s that data disks of a site have instead
    of the documented ones (by the tag `diskbook-site`), `quotas` gives cores by "cores" (region) or VM family
    (350 where nothing is said) and public addresses, `restrictions` are sizes that the subscription may not
    have, `role` is the account's (`access.ROLES`), `unregistered` are namespaces of providers that the
    subscription has not registered, `metrics_grain_s` is a grain of metrics that is served beside Azure's
    own, `seed` draws its mapping of logical to physical zones, `faults` are as in `faults.py`. With
    `public_addresses` "refused" Azure Policy denies them, and what `policies` does not allow: names of
    "tags" that are required, "locations" and "sizes" (`company.py`). `schedules` is what
    auto-shutdown does.
    """

    subscription_id: str
    tenant_id: str
    token: str = field(repr=False)
    time_scale: float = 1.0
    delays_s: Mapping[str, float] = field(default_factory=dict)
    drives: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    seed: int = 1
    faults: tuple[Json, ...] = ()
    quotas: Mapping[str, int] = field(default_factory=dict)
    restrictions: tuple[Restriction, ...] = ()
    role: str = "Contributor"
    unregistered: tuple[str, ...] = ()
    public_addresses: str = "allowed"
    policies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    metrics_grain_s: int = 60
    schedules: Schedules = field(default_factory=Schedules)

    def delay_s(self, kind: str) -> float:
        """Azure's time for an operation of this kind, in unscaled seconds."""
        return self.delays_s.get(kind, DELAYS_S.get(kind, 0.0))

    def quota(self, name: str) -> int:
        """Cores allowed for a VM family, or for the region with "cores"; public addresses."""
        return self.quotas.get(name, DEFAULT_QUOTAS.get(name, 350))

    def restricted(self, sku: str, location: str, zone: str | None) -> bool:
        """Whether the subscription may not have a size or disk SKU there; `zone` None asks for the region."""
        return any(
            restriction.sku == sku
            and restriction.location == location
            and (not restriction.zones or zone in restriction.zones)
            for restriction in self.restrictions
        )
