"""Quotas of vCPUs that the runs of a batch share: taken when a run starts, given back when it has ended.

Named as `diskbook plan` and Azure name them, behind the region: "westeurope/standardDASv4Family", and
"westeurope/cores" for all families together.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from diskbook.batch.batch_run import Item
from diskbook.cloud.azure.preflight import CORES
from diskbook.facts import catalog
from diskbook.facts.errors import UsageError, unknown


class Quotas:
    """What runs on Azure may take at once; whatever has no quota here is not bounded here.

    - `limits`: vCPUs by "region/family".
    """

    def __init__(self, limits: Mapping[str, int]) -> None:
        self._limits = {name.lower(): limit for name, limit in limits.items()}
        self._taken: Counter[str] = Counter()

    def has_room(self, item: Item) -> bool:
        """Whether a run fits beside those that are under way."""
        return all(self._taken[name] + n <= self._limits[name] for name, n in self._need(item).items())

    def take(self, item: Item) -> None:
        """Take what a run needs."""
        self._taken.update(self._need(item))

    def give_back(self, item: Item) -> None:
        """Give back what a run took."""
        self._taken.subtract(self._need(item))

    def check(self, items: Iterable[Item]) -> None:
        """Raise UsageError for a run that alone takes more than there is."""
        for item in items:
            for name, number in self._need(item).items():
                if number > self._limits[name]:
                    raise UsageError(
                        f"run '{item.label}' takes {number} vCPUs of {name}, of which [quota] gives "
                        f"{self._limits[name]}; raise that, or take fewer replicates or smaller machines"
                    )

    def _need(self, item: Item) -> dict[str, int]:
        if not self._limits or item.cloud != "azure":
            return {}
        need = {name.lower(): number for name, number in needed(item).items()}
        return {name: number for name, number in need.items() if name in self._limits}


def needed(item: Item) -> Counter[str]:
    """vCPUs that a run takes at once, by region and family, and by region in all."""
    scenario, need = item.scenario, Counter[str]()
    for machine in scenario.machine:
        size = catalog.find_vm_size(machine.size)
        for family in (size.family, CORES) if size else ():
            if family:
                vcpus = size.vcpus * scenario.design.replicates if size else 0
                need[f"{scenario.region}/{family}"] += vcpus
    return need


def check_names(limits: Iterable[str], where: str) -> None:
    """Raise UsageError for a quota whose region or family does not exist."""
    families = {size.family for size in catalog.vm_sizes().values() if size.family} | {CORES}
    for quota in limits:
        region, slash, family = quota.partition("/")
        if not slash:
            raise UsageError(
                f'{where}: write REGION/FAMILY, for example "westeurope/standardDASv4Family", not "{quota}"'
            )
        for kind, given, known in (
            ("region", region, catalog.regions()),
            ("family of sizes", family, families),
        ):
            if given.lower() not in {name.lower() for name in known}:
                raise unknown(kind, given, known, where)
