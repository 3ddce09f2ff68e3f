"""Check sizes, zones, disks, quotas and Azure Policy before anything is created.

Pure but for `problems_of`. Each problem is one sentence that says what to change: another zone or region, a
similar size, or fewer replicates.

Azure Policy says what it would refuse: regions, sizes, tags, public addresses (Policy Restrictions - Check At
Subscription Scope, or At Resource Group Scope, Microsoft.PolicyInsights, learn.microsoft.com/rest). A denial
names the fields that led to it in `evaluationDetails`.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Any

from azure.core.rest import HttpRequest

from diskbook.cloud.azure import named_group, offers, private
from diskbook.cloud.azure.clients import Clients
from diskbook.cloud.azure.offers import Offer, Quota, Region
from diskbook.design import azure_rules
from diskbook.design.company_rules import OURS
from diskbook.design.model import Disk, Machine, Scenario
from diskbook.facts import catalog
from diskbook.facts.rules import ULTRA

POLICY_API = "2023-03-01"
NETWORK_API, COMPUTE_API, GROUP_API = "2024-05-01", "2024-07-01", "2021-04-01"
_GROUP = "Microsoft.Resources/subscriptions/resourceGroups"
_MACHINE, _DISK = "Microsoft.Compute/virtualMachines", "Microsoft.Compute/disks"
_INTERFACE, _ADDRESS = "Microsoft.Network/networkInterfaces", "Microsoft.Network/publicIPAddresses"
_ROUTE = (
    "use an existing subnet: --set network.kind=private --set network.subnet=ID, and network.jump_host or "
    "network.bastion"
)


@dataclass(frozen=True)
class Content:
    """A resource that a run would create: what it is, how its size is set, what Policy is asked."""

    what: str
    key: str
    api: str
    body: Mapping[str, Any]


def contents(scenario: Scenario, subscription: str) -> list[Content]:
    """Resources that a run creates, each kind, size and SKU once."""
    common = {"location": scenario.region, "tags": {**dict.fromkeys(OURS, "-"), **scenario.azure.tags}}

    def content(what: str, key: str, api: str, kind: str, **more: Any) -> Content:
        return Content(what, key, api, {"type": kind, **common, **more})

    rows = [] if scenario.azure.resource_group else [content("resource groups", "", GROUP_API, _GROUP)]
    for size, machine in {machine.size: machine for machine in scenario.machine}.items():
        asked, key = {"hardwareProfile": {"vmSize": size}}, f"machine.{machine.name}.size=SIZE"
        rows.append(content(f"size {size}", key, COMPUTE_API, _MACHINE, properties=asked))
    for sku, disk in {disk.sku: disk for disk in scenario.data_disks}.items():
        key, size_gib = f"disk.{disk.name}.sku=SKU", {"diskSizeGB": disk.size_gib}
        rows.append(content(f"{sku} disks", key, COMPUTE_API, _DISK, sku={"name": sku}, properties=size_gib))
    return [*rows, *_of_network(scenario, subscription, content)]


def _of_network(scenario: Scenario, subscription: str, content: Any) -> Iterator[Content]:
    address: dict[str, Any] = {}
    if not scenario.network.is_private:
        name = f"/subscriptions/{subscription}/resourceGroups/diskbook/providers/{_ADDRESS}/ip"
        address = {"publicIPAddress": {"id": name}}
        static = {"publicIPAllocationMethod": "Static"}
        yield content("public addresses", "", NETWORK_API, _ADDRESS, properties=static)
    ip = {"ipConfigurations": [{"name": "primary", "properties": address}]}
    yield content("network interfaces", "", NETWORK_API, _INTERFACE, properties=ip)


def policy_problems(clients: Clients, scenario: Scenario) -> list[str]:
    """Sentences on what Azure Policy would refuse, none twice; none if it cannot be asked."""
    public = not scenario.network.is_private
    sentences = [
        _sentence(content, scenario.region, denial, public=public)
        for content in contents(scenario, clients.cloud.subscription)
        for denial in _denials(clients, scenario, content)
    ]
    return list(dict.fromkeys(sentences))


def _denials(clients: Clients, scenario: Scenario, content: Content) -> list[Mapping[str, Any]]:
    """Evaluations of the policies that deny such a resource."""
    named = scenario.azure.resource_group
    scope = f"/subscriptions/{clients.cloud.subscription}" + (f"/resourceGroups/{named}" if named else "")
    url = f"{scope}/providers/Microsoft.PolicyInsights/checkPolicyRestrictions"
    details = {"resourceContent": content.body, "apiVersion": content.api}
    request = HttpRequest("POST", url, params={"api-version": POLICY_API}, json={"resourceDetails": details})
    answer = clients.resource.send_request(request)
    if answer.status_code != 200:
        return []  # who may create may not be allowed to ask; Azure then says so at the first create
    evaluated = (answer.json().get("contentEvaluationResult") or {}).get("policyEvaluations") or []
    return [
        row
        for row in evaluated
        if row.get("evaluationResult") == "NonCompliant"
        and (row.get("effectDetails") or {}).get("policyEffect", "Deny").lower() == "deny"
    ]


def _sentence(content: Content, region: str, denial: Mapping[str, Any], *, public: bool) -> str:
    """Say which policy refuses what, by the field that it names, and what to change."""
    policy = (
        f"policy {str((denial.get('policyInfo') or {}).get('policyAssignmentId', '?')).rpartition('/')[2]}"
    )
    fields = _fields(denial)
    if tag := re.search(r"tags[.\[]'?([^'\]|]+)", "|".join(fields)):
        return f"{policy} requires the tag {tag[1]!r}: give it with --tag '{tag[1]}=VALUE'"
    if "location" in fields:
        allowed = f" ({fields['location']})" if fields["location"] else ""
        return f"{policy} allows other regions{allowed} than {region}: --set scenario.region=REGION"
    sized = next((name for name in fields if re.search(r"sku|size", name, re.IGNORECASE)), None)
    if content.key and sized:
        allowed = f"; it allows {fields[sized]}" if fields[sized] else ""
        return f"{policy} does not allow {content.what}{allowed}: --set {content.key}"
    if public and content.body["type"] in (_INTERFACE, _ADDRESS):
        return f"{policy} refuses public addresses here; {_ROUTE}"
    named = f" ({', '.join(fields)})" if fields else ""
    return f"{policy} refuses {content.what} as the run makes them{named}; ask its owner"


def _fields(denial: Mapping[str, Any]) -> dict[str, str]:
    """Fields by which a policy met its condition, each with the values that it allows, if named."""
    fields: dict[str, str] = {}
    for row in (denial.get("evaluationDetails") or {}).get("evaluatedExpressions") or []:
        name, values = str(row.get("path") or row.get("expression")), row.get("targetValue")
        if str(row.get("result", "True")).lower() != "true" or name.lower() == "type":
            continue
        is_list = isinstance(values, list) and str(row.get("operator")).lower() == "notin"
        fields[name] = " or ".join(map(str, values[:5])) if is_list else fields.get(name, "")
    return fields


Elsewhere = Callable[[], list[Region]]
# Names of the quota of public addresses; general knowledge, not seen on the wire.
ADDRESSES = ("IPv4StandardSkuPublicIpAddresses", "StandardSkuPublicIpAddresses", "PublicIPAddresses")
CORES = "cores"


def problems_of(clients: Clients, scenario: Scenario, replicates: int, today: date) -> list[str]:
    """Ask the subscription, and say all that stands in the way of so many replicates."""
    here = offers.ask(clients, scenario.region)

    @cache
    def elsewhere() -> list[Region]:
        """Asked only when another region has to be found."""
        names = [name for name in catalog.regions() if name != scenario.region]
        return [offers.ask(clients, name, quotas=False) for name in names]

    return [
        *problems(scenario, here, elsewhere, replicates, today),
        *private.problems(clients, scenario, replicates),
        *filter(None, [named_group.missing(clients, scenario.azure.resource_group)]),
        *policy_problems(clients, scenario),
    ]


def problems(
    scenario: Scenario, here: Region, elsewhere: Elsewhere, replicates: int, today: date
) -> list[str]:
    """Compare a scenario with what a region offers; one sentence a problem, none twice.

    `elsewhere` is called for the other regions when one has to be found. Retired sizes are judged by `today`.
    """
    sentences: list[str] = []
    for machine in scenario.machine:
        sentences += _machine(scenario, machine, here, elsewhere, today)
    for disk in scenario.data_disks:
        for zone in dict.fromkeys(made.zone for made, _ in scenario.made_of(disk)):
            sentences += _disk(scenario, disk.model_copy(update={"zone": zone}), here, elsewhere)
    sentences += _quotas(scenario, here, replicates)
    return list(dict.fromkeys(sentences))


# Machines


def _machine(
    scenario: Scenario, machine: Machine, here: Region, elsewhere: Elsewhere, today: date
) -> Iterator[str]:
    where = f"[[machine]] {machine.name}"
    size = here.sizes.get(machine.size.lower())
    retired = offers.retired_on(machine.size, size)
    if retired is not None and retired <= today:
        remedy = _other_sizes_text(scenario, machine, here, today)
        yield f"{where}: {machine.size} was retired on {retired}; {remedy}"
        return
    if size is None or not size.everywhere:
        what = "offers no" if size is None else "does not offer this subscription"
        remedy = _remedy(scenario, machine, here, elsewhere, today)
        yield f"{where}: region {here.name} {what} {machine.size}; {remedy}"
        return
    if not size.offered(machine.zone):
        others = " or ".join(sorted(size.zones))
        zones = f"take zone {others}, or " if others else ""
        remedy = _remedy(scenario, machine, here, elsewhere, today)
        yield (
            f"{where}: {machine.size} cannot be had in zone {machine.zone} of {here.name}; {zones}{remedy}"
        )
    yield from _abilities(scenario, machine, size, where, here, today)
    traits = {machine.size: offers.traits(machine.size, size)}
    for name, why in azure_rules.size_problems(scenario, traits):
        if name == machine.name:
            yield f"{where}: {why}; {_other_sizes_text(scenario, machine, here, today)}"


def _abilities(
    scenario: Scenario, machine: Machine, size: Offer, where: str, here: Region, today: date
) -> Iterator[str]:
    disks = disks_of(scenario, machine)
    remedy = _other_sizes_text(scenario, machine, here, today)
    most = int(size.number("MaxDataDiskCount"))
    if "MaxDataDiskCount" in size.capabilities and len(disks) > most:
        yield f"{where}: {machine.size} takes {most} data disks and the arms need {len(disks)}; {remedy}"
    if any(disk.sku.startswith(("Premium", "Ultra")) for disk in disks) and not size.has("PremiumIO"):
        yield f"{where}: {machine.size} takes no premium disks; {remedy}"
    if scenario.os_disk_of(machine.name) and not size.has("EphemeralOSDiskSupported"):
        yield f"{where}: {machine.size} holds no ephemeral OS disk; {remedy}"
    if ULTRA in scenario.skus_of(machine.name) and not size.takes_ultra(machine.zone):
        zones = ", ".join(sorted(size.ultra_zones))
        what = f"in zones {zones} of {here.name}; take one of these" if zones else f"nowhere in {here.name}"
        yield f"{where}: {machine.size} takes Ultra disks {what}" + ("" if zones else f"; {remedy}")


def disks_of(scenario: Scenario, machine: Machine) -> list[Disk]:
    """Disks that a machine is to have attached at some time, each as often as it has it."""
    counts = scenario.disks_of(machine.name)
    return [scenario.disk_named(name) for name, count in counts.items() for _ in range(count)]


def _remedy(scenario: Scenario, machine: Machine, here: Region, elsewhere: Elsewhere, today: date) -> str:
    """Another size here, or another region."""
    regions = [region.name for region in elsewhere() if _machines_fit(scenario, region)]
    sizes = _other_sizes_text(scenario, machine, here, today)
    return f"{sizes}, or region {' or '.join(regions[:3])}" if regions else sizes


def _machines_fit(scenario: Scenario, region: Region) -> bool:
    """Whether a region has all sizes and all disks of the scenario, in their zones."""
    for machine in scenario.machine:
        size = region.sizes.get(machine.size.lower())
        if size is None or not size.offered(machine.zone):
            return False
    return all(_offered(disk, region) for disk, _ in scenario.made_disks())


def _other_sizes_text(scenario: Scenario, machine: Machine, here: Region, today: date) -> str:
    """Name sizes of the region that would do: the documented substitute first, then the smallest similar."""
    documented = catalog.find_vm_size(machine.size)
    named = [machine.substitute, documented.substitute if documented else None]
    suitable = [name for name in named if name and _is_suitable(scenario, machine, here, name, today)]
    suitable += similar(scenario, machine, here, today)
    names = list(dict.fromkeys(suitable))[:3]
    return f"take {' or '.join(names)} instead" if names else "take another size"


def _is_suitable(scenario: Scenario, machine: Machine, here: Region, name: str, today: date) -> bool:
    size = here.sizes.get(name.lower())
    if size is None or not size.offered(machine.zone) or not _may_stand_in(machine, here, size):
        return False
    retired = offers.retired_on(name, size)
    disks = disks_of(scenario, machine)
    premium = any(disk.sku.startswith(("Premium", "Ultra")) for disk in disks)
    enough = size.number("MaxDataDiskCount") >= len(disks)
    local = scenario.os_disk_of(machine.name) is None or size.has("EphemeralOSDiskSupported")
    ultra = ULTRA not in scenario.skus_of(machine.name) or size.takes_ultra(machine.zone)
    return (
        enough
        and local
        and ultra
        and (size.has("PremiumIO") or not premium)
        and (retired is None or retired > today)
    )


def _may_stand_in(machine: Machine, here: Region, other: Offer) -> bool:
    """Whether the workbook knows a size, and the machine's image fits it: else it would be refused next."""
    if other.name.lower() not in catalog.vm_sizes():
        return False
    own = offers.traits(machine.size, here.sizes.get(machine.size.lower()))
    traits = offers.traits(other.name, other)
    return traits.stands_in_for(own) and azure_rules.misfit(machine.os, traits) is None


def similar(scenario: Scenario, machine: Machine, here: Region, today: date) -> list[str]:
    """Sizes of the same letter with as many vCPUs and uncached IOPS at least, the smallest first."""
    documented = catalog.find_vm_size(machine.size)
    size = here.sizes.get(machine.size.lower())
    if size is None and documented is None:
        return []
    vcpus = size.number("vCPUs") if size else float(documented.vcpus)  # type: ignore[union-attr]
    iops = size.number("UncachedDiskIOPS") if size else float(documented.uncached_iops)  # type: ignore[union-attr]
    letter = _letter(machine.size)
    able = [
        other
        for key, other in here.sizes.items()
        if key != machine.size.lower()
        and _letter(other.name) == letter
        and other.number("vCPUs") >= vcpus
        and other.number("UncachedDiskIOPS") >= iops
        and _is_suitable(scenario, machine, here, other.name, today)
    ]
    series = _series(machine.size)
    able.sort(
        key=lambda other: (
            *(other.number(name) for name in ("vCPUs", "UncachedDiskIOPS")),
            _series(other.name) != series,
            other.name,
        )
    )
    return [other.name for other in able]


def _series(size: str) -> str:
    """Letters of a size but its version, e.g. "das" of Standard_D4as_v5."""
    return re.sub(r"_v\d+$|[-\d]", "", size.lower().removeprefix("standard_"))


def _letter(size: str) -> str:
    return size.lower().removeprefix("standard_")[:1]


# Disks


def _disk(scenario: Scenario, disk: Disk, here: Region, elsewhere: Elsewhere) -> Iterator[str]:
    where, tier = f"[[disk]] {disk.name}", tier_of(disk)
    offer = here.disk(disk.sku, tier)
    what = f"{disk.sku} disks{f' of the size {tier}' if tier else ''}"
    if offer is None or not offer.everywhere:
        regions = [region.name for region in elsewhere() if _machines_fit(scenario, region)]
        remedy = f"take region {' or '.join(regions[:3])}" if regions else "take another SKU"
        yield f"{where}: region {here.name} offers no {what}; {remedy}"
    elif not offer.offered(disk.zone):
        others = ", ".join(sorted(offer.zones)) or "none"
        yield f"{where}: {what} cannot be had in zone {disk.zone} of {here.name}; take one of: {others}"
    elif disk.max_shares > int(offer.number("MaxValueOfMaxShares") or disk.max_shares):
        most = int(offer.number("MaxValueOfMaxShares"))
        yield f"{where}: {what} may be shared by {most} machines, not {disk.max_shares}; lower max_shares"


def tier_of(disk: Disk) -> str | None:
    """The tier of a disk by its size, None for Premium SSD v2 and Ultra."""
    return None if disk.sku in catalog.flexible_skus() else catalog.disk_tier(disk.sku, disk.size_gib).tier


def _offered(disk: Disk, region: Region) -> bool:
    offer = region.disk(disk.sku, tier_of(disk))
    return offer is not None and offer.offered(disk.zone)


# Quotas


def needed(scenario: Scenario, here: Region) -> Counter[str]:
    """What one replicate takes of each quota: vCPUs by family and in all, and public addresses."""
    need: Counter[str] = Counter()
    for machine in scenario.machine:
        size = here.sizes.get(machine.size.lower())
        documented = catalog.find_vm_size(machine.size)
        if size is not None:
            family, vcpus = size.family, int(size.number("vCPUs"))
        elif documented is not None:
            family, vcpus = documented.family, documented.vcpus
        else:
            continue
        need.update({family: vcpus, CORES: vcpus} if family else {CORES: vcpus})
    if not scenario.network.is_private:
        need.update({name: len(scenario.machine) for name in ADDRESSES})
    return need


def quota_rows(scenario: Scenario, here: Region, replicates: int) -> list[tuple[Quota, int]]:
    """Each quota that the run takes from, with what it takes; only those that the API lists."""
    listed = {name.lower(): quota for name, quota in here.quotas.items()}
    need = needed(scenario, here)
    return [
        (listed[name.lower()], number * replicates) for name, number in need.items() if name.lower() in listed
    ]


def _quotas(scenario: Scenario, here: Region, replicates: int) -> Iterator[str]:
    for quota, need in quota_rows(scenario, here, replicates):
        if need <= quota.free:
            continue
        public = quota.name in ADDRESSES
        what = "public addresses" if public else f"vCPUs ({quota.name})"
        fit = quota.free // (need // replicates)
        fewer = f"set design.replicates to {fit}, " if 0 < fit < replicates else ""
        remedy = (
            "delete addresses that are not needed, use a private network (network.kind), or another region"
            if public
            else "take smaller sizes, another family or another region"
        )
        yield (
            f"quota: the run needs {need} {what} in {here.name} at a time and {quota.free} of {quota.limit} "
            f"are free; {fewer}{remedy}, or ask for {quota.used + need} (portal, Quotas)"
        )
