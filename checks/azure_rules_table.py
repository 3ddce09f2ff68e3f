"""Documented rules of Azure: a request that breaks each, the nearest that does not, and Azure's answer.

`tests/checks/test_azure_rules_table.py` sends every row to the emulated control plane, and holds its
scenario against the rules that are checked before a run; `azure_rules` writes the page from it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from checks.azure_requests import (
    MACHINE,
    SECOND,
    Request,
    address,
    attach,
    change,
    deallocate,
    delete,
    detach,
    disk,
    encoded,
    entry,
    get,
    group,
    network,
    nic,
    nsg,
    resize,
    vm,
)

Overrides = Mapping[str, Any]


@dataclass(frozen=True)
class Rule:
    """One rule of Azure.

    - `name`: in plain words, what must hold.
    - `breaks`, `neighbour`: a request that breaks it, and the nearest one that does not.
    - `status`, `code`: of Azure's answer.
    - `source`: where the rule, and Azure's words for it, are from.
    - `given`: what must be there before.
    - `says`: what must stand in the message, where Azure's own words are known.
    - `quoted`: whether `code` was read; else it is inferred.
    - `known`, `scenario`: the rule of `reference.rules`, `scenario` or `azure.preflight` by which a run is
      refused before its first create, and the overrides of a small scenario with that mistake; empty where
      none can have it.
    - `day`: when the request is made, where that matters.
    """

    name: str
    breaks: Request
    neighbour: Request
    status: int
    code: str
    source: str
    given: tuple[Request, ...] = ()
    says: str = ""
    quoted: bool = False
    known: str = ""
    scenario: Overrides = field(default_factory=dict)
    day: str = ""


TYPES = "Microsoft, disks-types.md"
SHARED = "Microsoft, disks-shared.md"
ULTRA_PAGE = "Microsoft, disks-enable-ultra-ssd.md"
V2_PAGE = "Microsoft, disks-deploy-premium-v2.md"
BURST = "Microsoft, disks-enable-bursting.md"
PLUS = "Microsoft, disks-enable-performance.md"
TIERS = "Microsoft, disks-change-performance.md"
CODES = "Microsoft, error-messages.md (common virtual machine error codes)"
ZRS_PAGE = "Microsoft, disks-redundancy.md"
EPHEMERAL_PAGE = "Microsoft, ephemeral-os-disks.md"
NETWORK_PAGE = "Microsoft, public-ip-addresses.md"
ARM = "Microsoft, Azure Resource Manager's common errors"
NAMES = "Microsoft, resource-name-rules.md"
TAGS_PAGE = "Microsoft, tag-resources.md, limitations"

ULTRA: dict[str, Any] = {"sku": "UltraSSD_LRS", "size": 64}
V2: dict[str, Any] = {"sku": "PremiumV2_LRS", "size": 1024}
ZRS: dict[str, Any] = {"sku": "Premium_ZRS", "zones": None}
LOCAL = {"option": "Local", "placement": "CacheDisk"}
EPHEMERAL_VM: dict[str, Any] = {
    "size": "Standard_E4ads_v5",
    "local": LOCAL,
    "os_cache": "ReadOnly",
    "os_size": 30,
}
WINDOWS: dict[str, Any] = {
    "linux": None,
    "windows": {"provisionVMAgent": True},
    "password": "Abc-12345678-xyz",
}
FIVE = tuple(disk(f"d{number}") for number in range(5))
FOUR_HELD = [entry(f"d{number}", number) for number in range(4)]

DISKS = (
    Rule(
        "a disk has a name that Azure takes",
        disk("-d"), disk("d-d"), 400, "InvalidParameter", NAMES,
        says="is invalid according to its validation rule",
    ),
    Rule(
        "a disk SKU exists",
        disk(sku="Premium_GRS"), disk(), 400, "InvalidParameter",
        f"{TYPES}; ansible-collections/azure, issue 792",
        says="SKU Premium_GRS is not available.", quoted=True,
        known="sku", scenario={"disk.lrs.sku": "Premium_GRS"},
    ),
    Rule(
        "the region offers the disk SKU",
        disk(**{**ZRS, "sku": "StandardSSD_ZRS", "location": "westus"}), disk(zones=None, location="westus"),
        400, "BadRequest", f"{ZRS_PAGE}; a recorded answer",
        says="Disks with sku 'StandardSSD_ZRS' are not available in this region.", quoted=True,
        known="sku-region", scenario={"scenario.region": "westus"},
    ),
    Rule(
        "a disk's region exists",
        disk(location="atlantis"), disk(), 400, "LocationNotAvailableForResourceType",
        f"{ARM}; Azure/azure-dev, issue 305", quoted=True,
        known="region", scenario={"scenario.region": "atlantis"},
    ),
    Rule(
        "a disk is in a zone only where the region has zones",
        disk(location="westus"), disk(location="westus", zones=None),
        400, "LocationNotSupportAvailabilityZones", "Microsoft, availability-zones-region-support.md",
        known="zone", scenario={"scenario.region": "westus"},
    ),
    Rule(
        "a disk's zone exists in its region",
        disk(zones=["4"]), disk(zones=["3"]), 400, "InvalidParameter",
        "Microsoft, availability-zones-region-support.md",
    ),
    Rule(
        "a disk is in one zone",
        disk(zones=["1", "2"]), disk(zones=["2"]), 400, "ResourceTypeNotSupportMultiZones",
        "ansible/ansible, pull request 53788",
        says="The resource type 'disks' does not support multiple availability zones. The provided zones are "
        "'1,2'.", quoted=True,
    ),
    Rule(
        "a ZRS disk is created without a zone",
        disk(sku="Premium_ZRS"), disk(**ZRS), 409, "OperationNotAllowed",
        f"{ZRS_PAGE}; Azure/terraform-azurerm-avm-res-compute-virtualmachine, issue 236",
        says="A disk with sku 'Premium_ZRS' cannot be created in an availability zone.", quoted=True,
        known="zrs-zone", scenario={"disk.zrs.zone": "1"},
    ),
    Rule(
        "a Premium SSD v2 has a zone where the region has zones",
        disk(**V2, zones=None), disk(**V2), 400, "InvalidParameter", V2_PAGE,
        known="zone-required", scenario={"disk.zrs.sku": "PremiumV2_LRS"},
    ),
    Rule(
        "an Ultra disk has a zone where the region has zones",
        disk(**ULTRA, zones=None), disk(**ULTRA), 400, "InvalidParameter", ULTRA_PAGE,
        known="zone-required", scenario={"disk.zrs.sku": "UltraSSD_LRS"},
    ),
    Rule(
        "a disk is no larger than its SKU allows",
        disk(size=32768), disk(size=32767), 400, "InvalidParameter", TYPES,
        known="size", scenario={"disk.lrs.size_gib": 32768},
    ),
    Rule(
        "an Ultra disk has 4 GiB or more",
        disk(sku="UltraSSD_LRS", size=3), disk(sku="UltraSSD_LRS", size=4), 400, "InvalidParameter", TYPES,
        known="size", scenario={"disk.lrs.sku": "UltraSSD_LRS", "disk.lrs.size_gib": 3},
    ),
    Rule(
        "an empty disk has a size",
        disk(size=None), disk(size=4), 400, "InvalidParameter", "Microsoft, REST specification of disks",
    ),
    Rule(
        "a disk is shared by no more machines than its size allows",
        disk(shares=6), disk(shares=5), 400, "BadRequest",
        f"{SHARED}; hashicorp/terraform-provider-azurerm, issue 13584",
        says="MaxShares '6' for disk 'd' of size '1024' GB is invalid.", quoted=True,
        known="max-shares", scenario={"disk.zrs.max_shares": 6},
    ),
    Rule(
        "a small Premium SSD is shared by few machines",
        disk(size=512, shares=4), disk(size=512, shares=2), 400, "BadRequest",
        f"{SHARED}; kubernetes-sigs/azuredisk-csi-driver, pull request 867",
        says="MaxShares '4' for disk 'd' of size '512' GB is invalid.", quoted=True,
        known="max-shares", scenario={"disk.zrs.size_gib": 512, "disk.zrs.max_shares": 4},
    ),
    Rule(
        "on-demand bursting is for disks above 512 GiB",
        disk(size=512, bursting=True), disk(size=513, bursting=True), 400, "InvalidParameter", BURST,
        known="bursting", scenario={"disk.lrs.size_gib": 512, "disk.lrs.bursting": True},
    ),
    Rule(
        "on-demand bursting is for Premium SSD",
        disk(sku="StandardSSD_LRS", bursting=True), disk(bursting=True), 400, "InvalidParameter", BURST,
        known="bursting", scenario={"disk.lrs.sku": "StandardSSD_LRS", "disk.lrs.bursting": True},
    ),
    Rule(
        "a shared Premium SSD does not burst on demand",
        disk(shares=2, bursting=True), disk(shares=2), 400, "InvalidParameter", f"{SHARED}, limitations",
        known="shared-bursting", scenario={"disk.zrs.max_shares": 2, "disk.zrs.bursting": True},
    ),
    Rule(
        "performance plus is for disks of 513 GiB or more",
        disk(size=512, plus=True), disk(size=513, plus=True), 400, "BadRequest",
        f"{PLUS}; kubernetes-sigs/azuredisk-csi-driver, pull request 1894 and issue 1949",
        says="The performancePlus flag can only be set on disks at least 512 GB in size.", quoted=True,
        known="performance-plus", scenario={"disk.lrs.size_gib": 512, "disk.lrs.performance_plus": True},
    ),
    Rule(
        "performance plus is not for Premium SSD v2",
        disk(**V2, plus=True), disk(plus=True), 400, "BadRequest", PLUS,
        known="performance-plus",
        scenario={"disk.lrs.sku": "PremiumV2_LRS", "disk.lrs.performance_plus": True},
    ),
    Rule(
        "a performance tier is not below that of the disk's size",
        disk(tier="P20"), disk(tier="P30"), 400, "InvalidParameter", TIERS,
    ),
    Rule(
        "disks up to P50 are not raised above P50",
        disk(tier="P60"), disk(tier="P50"), 400, "InvalidParameter", TIERS,
    ),
    Rule(
        "performance tiers are for Premium SSD",
        disk(sku="StandardSSD_LRS", tier="P40"), disk(tier="P40"), 400, "InvalidParameter", TIERS,
    ),
    Rule(
        "a disk of fixed performance takes no IOPS",
        disk(iops=8000), disk(**V2, iops=8000), 400, "BadRequest", "Microsoft, REST specification of disks",
        known="performance-fixed", scenario={"disk.lrs.iops": 8000},
    ),
    Rule(
        "IOPS of a Premium SSD v2 follow its size",
        disk(sku="PremiumV2_LRS", size=8, iops=4001), disk(sku="PremiumV2_LRS", size=8, iops=4000),
        400, "BadRequest", f"{TYPES}; kubernetes-sigs/azuredisk-csi-driver, pull request 1445",
        says="The value 4001 of parameter disk.diskIOPSReadWrite is not valid. The supported range for a "
        "PremiumV2_LRS disk of size 8 GB is between 3000 and 4000.", quoted=True,
        known="iops-range",
        scenario={"disk.lrs.sku": "PremiumV2_LRS", "disk.lrs.size_gib": 8, "disk.lrs.iops": 4001},
    ),
    Rule(
        "IOPS of an Ultra disk follow its size",
        disk(sku="UltraSSD_LRS", size=8, iops=400000), disk(sku="UltraSSD_LRS", size=8, iops=2400),
        400, "BadRequest", f"{TYPES}; MicrosoftDocs/azure-docs, issue 49144",
        says="is not valid. The supported range for a UltraSSD_LRS disk of size 8 GB is between", quoted=True,
        known="iops-range",
        scenario={"disk.lrs.sku": "UltraSSD_LRS", "disk.lrs.size_gib": 8, "disk.lrs.iops": 400000},
    ),
    Rule(
        "MB/s follow the IOPS",
        disk(**V2, iops=3000, mb_s=751), disk(**V2, iops=3000, mb_s=750), 400, "BadRequest",
        f"{TYPES}; kubernetes-sigs/azuredisk-csi-driver, pull request 1445",
        says="of parameter disk.diskMBpsReadWrite is not valid", quoted=True,
        known="mb-s-range",
        scenario={"disk.lrs.sku": "PremiumV2_LRS", "disk.lrs.iops": 3000, "disk.lrs.mb_s": 751},
    ),
    Rule(
        "only Ultra and Premium SSD v2 have a sector size to choose",
        disk(sector=4096), disk(**V2, sector=4096), 400, "InvalidParameter", f"{TYPES}; {V2_PAGE}",
    ),
    Rule(
        "a sector has 512 or 4,096 bytes",
        disk(**ULTRA, sector=1024), disk(**ULTRA, sector=512), 400, "InvalidParameter",
        "Microsoft, REST specification of disks; Azure/azure-cli, issue 14899",
    ),
)  # fmt: skip

CHANGES = (
    Rule(
        "a disk does not shrink",
        change(size=1023), change(size=1025), 409, "OperationNotAllowed",
        "Microsoft, expand-disks.md; MicrosoftDocs/azure-docs, pull request 57951", given=(disk(),),
        says="cannot be resized down. Reducing disk/snapshot size is not supported",
    ),
    Rule(
        "a disk stays in its zone",
        disk(zones=["2"]), disk(size=1025), 400, "BadRequest",
        "hashicorp/terraform-provider-azurerm, issue 16059", given=(disk(),),
        says="Availability zone must not be changed on existing resource 'd'.", quoted=True,
    ),
    Rule(
        "performance plus is chosen at creation",
        change(plus=True), change(tier="P40"), 400, "BadRequest", f"{PLUS}; jrudlin/Azure, issue 5",
        given=(disk(),),
        says="is not allowed for existing disk 'd'.", quoted=True,
    ),
    Rule(
        "a disk does not become zone-redundant",
        change(sku="Premium_ZRS"), change(sku="StandardSSD_LRS"), 400, "BadRequest", ZRS_PAGE,
        given=(disk(),),
    ),
    Rule(
        "a disk does not become an Ultra disk",
        change(sku="UltraSSD_LRS"), change(sku="StandardSSD_LRS"), 400, "BadRequest", ULTRA_PAGE,
        given=(disk(),),
    ),
    Rule(
        "bursting is switched on while the disk is detached, or its machine deallocated",
        change(bursting=True), change(size=2048), 409, "OperationNotAllowed", BURST,
        given=(*MACHINE, disk(), attach()),
    ),
    Rule(
        "bursting is not switched off within 12 hours",
        change(bursting=False), change(size=2048), 409, "OperationNotAllowed", BURST,
        given=(disk(bursting=True),),
    ),
    Rule(
        "the number of sharers is changed while the disk is detached",
        change(shares=2), change(size=2048), 409, "OperationNotAllowed", SHARED,
        given=(*MACHINE, disk(), attach()),
    ),
    Rule(
        "a disk is not deleted while a machine has it",
        delete("disks/d"), delete("disks/d2"), 409, "OperationNotAllowed", "a recorded answer",
        given=(*MACHINE, disk(), disk("d2"), attach()), says="Disk d is attached to VM ", quoted=True,
    ),
)  # fmt: skip

ATTACHMENTS = (
    Rule(
        "a LUN is between 0 and 63",
        attach(lun=64), attach(lun=63), 400, "InvalidParameter", "microsoft/lisa, pull request 692",
        given=(*MACHINE, disk()), quoted=True,
        says="The value '64' of parameter 'dataDisk.lun' is out of range. Value '64' must be between '0' "
        "and '63' "
        "inclusive.",
    ),
    Rule(
        "a LUN is taken once",
        attach(diskId="<disks/d2>"), attach(diskId="<disks/d2>", lun=1), 400, "InvalidParameter", CODES,
        given=(*MACHINE, disk(), disk("d2"), attach()), says="A disk at LUN 0 already exists.", quoted=True,
    ),
    Rule(
        "a size takes so many data disks",
        attach(diskId="<disks/d4>", lun=4), attach("vm2", diskId="<disks/d4>", lun=4),
        409, "OperationNotAllowed", CODES,
        given=(
            network(), address(), nic(), *FIVE, vm(size="Standard_E2as_v5", data_disks=FOUR_HELD), *SECOND,
        ),
        says="The maximum number of data disks allowed to be attached to a VM of this size is 4.",
        quoted=True,
        known="max-data-disks",
    ),
    Rule(
        "a zonal disk attaches to machines in its zone",
        attach(), attach(diskId="<disks/d1>"), 400, "BadRequest", f"{ZRS_PAGE}; quoted in azuredisk issues",
        given=(*MACHINE, disk(zones=["2"]), disk("d1")),
        says="is not in the same zone as the VM. VM zone: '1'. Disk zone: '2'.", quoted=True,
        known="attach-zone", scenario={"disk.lrs.zone": "2"},
    ),
    Rule(
        "a disk without zone does not attach to a machine in one, unless it is zone-redundant",
        attach(), attach(diskId="<disks/zrs>"), 400, "BadRequest", "jrudlin/Azure, pull request 7",
        given=(*MACHINE, disk(zones=None), disk("zrs", **ZRS)),
        says="cannot be attached to the VM because it is not in zone '1'.", quoted=True,
        known="attach-zone", scenario={"disk.lrs.zone": None},
    ),
    Rule(
        "a disk attaches to machines in its region",
        attach(), attach(diskId="<disks/here>"), 400, "BadRequest", "Microsoft, managed-disks-overview.md",
        given=(*MACHINE, disk(location="northeurope"), disk("here")),
    ),
    Rule(
        "a disk has one owner unless it is shared",
        attach("vm2"), attach("vm2", diskId="<disks/s>"), 409, "ConflictingUserInput", CODES,
        given=(*MACHINE, *SECOND, disk(), disk("s", shares=2), attach(), attach(diskId="<disks/s>", lun=1)),
        says="cannot be attached as the disk is already owned by VM", quoted=True,
    ),
    Rule(
        "a disk that is being detached is not attached",
        attach("vm2"), attach("vm2", diskId="<disks/d1>"), 409, "AttachDiskWhileBeingDetached", CODES,
        given=(*MACHINE, *SECOND, disk(), disk("d1"), attach(), detach(waits=False)),
        says="because the disk is currently being detached.", quoted=True,
    ),
    Rule(
        "a shared disk is not deleted with a machine: attached",
        attach(deleteOption="Delete"), attach(deleteOption="Detach"), 400, "InvalidParameter",
        "Microsoft, delete.md, FAQ: \"you can't set the 'deleteOption' property to 'Delete'\"",
        given=(*MACHINE, disk(shares=2)),
    ),
    Rule(
        "a shared disk is not deleted with a machine: made with it",
        vm(data_disks=[entry("d", 0, deleteOption="Delete")]), vm(data_disks=[entry("d", 0)]),
        400, "InvalidParameter", "Microsoft, delete.md, "
        "FAQ", given=(network(), address(), nic(), disk(shares=2)),
    ),
    Rule(
        "a shared disk is not deleted with a machine: changed later",
        vm(data_disks=[entry("d", 0, deleteOption="Delete")]), vm(data_disks=[entry("d", 0)]),
        400, "InvalidParameter", "Microsoft, delete.md, FAQ", given=(*MACHINE, disk(shares=2), attach()),
    ),
    Rule(
        "a shared disk has no host cache",
        attach(caching="ReadOnly"), attach(), 400, "BadRequest",
        f"{SHARED}; MicrosoftDocs/azure-docs, issue 85683", given=(*MACHINE, disk(shares=3)),
        says="Shared disk 'd' with maxShares 3 supports only Disk CachingType 'None'.", quoted=True,
        known="cache-shared", scenario={"disk.zrs.max_shares": 2, "disk.zrs.cache": "ReadOnly"},
    ),
    Rule(
        "a Premium SSD v2 has no host cache",
        attach(caching="ReadOnly"), attach(), 400, "InvalidParameter",
        f"{V2_PAGE}; kubernetes-sigs/azuredisk-csi-driver, issue 1715", given=(*MACHINE, disk(**V2)),
        says="Storage Account type PremiumV2_LRS is not supported with caching type ReadOnly. Please use "
        "caching "
        "type None.", quoted=True,
        known="cache-sku", scenario={"disk.lrs.sku": "PremiumV2_LRS", "disk.lrs.cache": "ReadOnly"},
    ),
    Rule(
        "an Ultra disk has no host cache",
        attach(caching="ReadWrite"), attach(), 400, "InvalidParameter",
        f"{ULTRA_PAGE}; MicrosoftDocs/azure-docs, issue 83535",
        given=(network(), address(), nic(), vm(ultra=True), disk(**ULTRA)),
        says="Storage Account type UltraSSD_LRS is not supported with caching type ReadWrite.", quoted=True,
        known="cache-sku", scenario={"disk.lrs.sku": "UltraSSD_LRS", "disk.lrs.cache": "ReadWrite"},
    ),
    Rule(
        "host caching is for disks up to 4,095 GiB",
        attach(caching="ReadOnly"), attach(diskId="<disks/d1>", caching="ReadOnly"), 400, "InvalidParameter",
        "Microsoft, premium-storage-performance.md; MicrosoftDocs/azure-docs, issue 35583",
        given=(*MACHINE, disk(size=4096), disk("d1", size=4095)),
        known="cache-size", scenario={"disk.lrs.size_gib": 4096, "disk.lrs.cache": "ReadOnly"},
    ),
    Rule(
        "the old storage optimized sizes have no host cache",
        attach(caching="ReadOnly"), attach(), 400, "InvalidParameter", "Microsoft, lsv2-series.md",
        given=(network(), address(), nic(), vm(size="Standard_L16s"), disk()),
        known="cache-vm", scenario={"machine.vm1.size": "Standard_L16s", "disk.lrs.cache": "ReadOnly"},
    ),
    Rule(
        "a machine takes Ultra disks where it was made for them",
        attach(), attach("vm2"), 400, "InvalidParameter",
        f"{ULTRA_PAGE}; Azure/azure-sdk-for-java, issue 41529",
        given=(
            *MACHINE, address("ip2"), nic("nic2", address="<publicIPAddresses/ip2>"),
            vm("vm2", nics=[{"id": "<networkInterfaces/nic2>"}], ultra=True), disk(**ULTRA),
        ),
        says="StorageAccountType UltraSSD_LRS can be used only when additionalCapabilities.ultraSSDEnabled "
        "is set.",
        quoted=True,
    ),
    Rule(
        "Write Accelerator is for the M series",
        attach(writeAcceleratorEnabled=True), attach(), 400, "InvalidParameter",
        "Microsoft, how-to-enable-write-accelerator.md", given=(*MACHINE, disk()),
    ),
    Rule(
        "only an attached disk is detached",
        detach(), detach("d2"), 400, "InvalidParameter", "Microsoft, REST specification of virtual machines",
        given=(*MACHINE, disk(), disk("d2"), attach(diskId="<disks/d2>")),
    ),
    Rule(
        "a disk that is attached is there",
        attach(), attach(diskId="<disks/d1>"), 404, "ResourceNotFound", f"{ARM}; a recorded answer",
        given=(*MACHINE, disk("d1")), quoted=True,
    ),
)  # fmt: skip

MACHINES = (
    Rule(
        "a VM size exists",
        vm(size="Standard_X1"), vm(), 400, "InvalidParameter", CODES, given=(network(), address(), nic()),
        says="The requested VM size Standard_X1 is not available in the current region.", quoted=True,
        known="vm-size", scenario={"machine.vm1.size": "Standard_X1"},
    ),
    Rule(
        "a VM size is not retired",
        vm(size="Standard_DS3_v2"), vm(size="Standard_D8s_v5"), 409, "SkuNotAvailable",
        "Microsoft, retirements-and-capacity-restrictions.md; words of a quoted refusal",
        given=(network(), address(), nic()), day="2028-06-01",
        says="is currently not available in location 'westeurope'.",
        known="vm-size-retired", scenario={"machine.vm1.size": "Standard_DS3_v2"},
    ),
    Rule(
        "cores of a family are within its quota (here 4)",
        vm("vm2", size="Standard_DS3_v2", nics=[{"id": "<networkInterfaces/nic2>"}]),
        vm("vm2", nics=[{"id": "<networkInterfaces/nic2>"}]),
        409, "OperationNotAllowed", f"{ARM}; Microsoft, error-resource-quota.md",
        given=(
            network(), address(), nic(), vm(size="Standard_DS3_v2"),
            address("ip2"), nic("nic2", address="<publicIPAddresses/ip2>"),
        ),
        says="Operation could not be completed as it results in exceeding approved standardDSv2Family "
        "Cores quota.",
        quoted=True, known="quota",
    ),
    Rule(
        "a machine's zone exists in its region",
        vm(zones=["4"]), vm(), 400, "InvalidAvailabilityZone",
        "Microsoft, availability-zones-region-support.md",
        given=(network(), address(), nic()),
        known="zone", scenario={"scenario.region": "westus"},
    ),
    Rule(
        "a machine stays in its zone",
        vm(zones=["2"]), vm(), 409, "PropertyChangeNotAllowed",
        "hashicorp/terraform-provider-azurerm, issue 3277", given=MACHINE,
        says="Changing property 'zones' is not allowed.", quoted=True,
    ),
    Rule(
        "a machine that takes Ultra disks is in a zone where the region has zones",
        vm(zones=None, ultra=True), vm(ultra=True), 400, "InvalidParameter",
        f"{ULTRA_PAGE}; hashicorp/terraform-provider-azurerm, pull request 3860",
        given=(network(), address(), nic()),
        says="UltraSSD can be used only with Virtual Machine in an Availability Zone.", quoted=True,
        known="ultra-zone", scenario={"machine.vm1.zone": None, "disk.lrs.sku": "UltraSSD_LRS"},
    ),
    Rule(
        "a machine that takes Ultra disks is of a size that does",
        vm(size="Standard_DS3_v2", ultra=True), vm(size="Standard_D4s_v3", ultra=True), 400,
        "InvalidParameter",
        f"{ULTRA_PAGE} (UltraSSDAvailable of the resource SKUs)", given=(network(), address(), nic()),
        known="ultra-size", scenario={"machine.vm1.size": "Standard_DS3_v2", "disk.lrs.sku": "UltraSSD_LRS"},
    ),
    Rule(
        "a machine that takes Ultra disks is in a region that has them",
        vm(zones=None, location="norwaywest", ultra=True), vm(zones=None, location="norwaywest"),
        400, "InvalidParameter", ULTRA_PAGE,
        given=(
            network(location="norwaywest"), address(location="norwaywest", zones=None),
            nic(location="norwaywest"),
        ),
        known="ultra-region", scenario={"scenario.region": "norwaywest", "disk.lrs.sku": "UltraSSD_LRS"},
    ),
    Rule(
        "an OS disk is no Ultra disk and no Premium SSD v2",
        vm(os_disk="PremiumV2_LRS"), vm(os_disk="Premium_LRS"), 400, "InvalidParameter", TYPES,
        given=(network(), address(), nic()),
    ),
    Rule(
        "an ephemeral OS disk fits where it is placed",
        vm(**{**EPHEMERAL_VM, "os_size": 101}), vm(**{**EPHEMERAL_VM, "os_size": 100}), 400, "NotSupported",
        f"{EPHEMERAL_PAGE}; cloudfoundry/bosh-azure-cpi-release, pull request 674",
        given=(network(), address(), nic()), quoted=True,
        says="OS disk of Ephemeral VM with size greater than 100 GB is not allowed for VM size "
        "Standard_E4ads_v5 "
        "when the DiffDiskPlacement is CacheDisk.",
        known="ephemeral-os",
        scenario={"disk.zrs.sku": "EphemeralOS", "machine.vm1.size": "Standard_E4ads_v5"},
    ),
    Rule(
        "a size without cache and local disk has no ephemeral OS disk",
        vm(**{**EPHEMERAL_VM, "size": "Standard_D4s_v5"}), vm(**EPHEMERAL_VM), 400, "OperationNotAllowed",
        EPHEMERAL_PAGE, given=(network(), address(), nic()),
        known="ephemeral-os", scenario={"disk.zrs.sku": "EphemeralOS", "machine.vm1.size": "Standard_D4s_v5"},
    ),
    Rule(
        "the cache of an ephemeral OS disk is ReadOnly",
        vm(**{**EPHEMERAL_VM, "os_cache": "ReadWrite"}), vm(**EPHEMERAL_VM), 400, "InvalidParameter",
        EPHEMERAL_PAGE, given=(network(), address(), nic()),
    ),
    Rule(
        "an ephemeral OS disk goes with its machine",
        vm(**EPHEMERAL_VM, os_delete="Detach"), vm(**EPHEMERAL_VM), 400, "InvalidParameter",
        EPHEMERAL_PAGE, given=(network(), address(), nic()),
    ),
    Rule(
        "a machine with an ephemeral OS disk is not deallocated",
        deallocate(), deallocate("vm2"), 400, "OperationNotAllowed", EPHEMERAL_PAGE,
        given=(network(), address(), nic(), vm(**EPHEMERAL_VM), *SECOND),
    ),
    Rule(
        "accelerated networking is for sizes that have it",
        vm(size="Standard_L16s"), vm(), 400, "VMSizeIsNotPermittedToEnableAcceleratedNetworking",
        "Azure/acs-engine, pull request 3600", given=(network(), address(), nic(accelerated=True)),
        says="Virtual Machine size Standard_L16s is not in the allowed list of VM sizes for accelerated "
        "networking",
        quoted=True,
    ),
    Rule(
        "a machine has an interface",
        vm(nics=[]), vm(), 400, "InvalidParameter", "Microsoft, REST specification of virtual machines",
        given=(network(), address(), nic()),
    ),
    Rule(
        "a size has so many interfaces",
        vm(nics=[{"id": f"<networkInterfaces/nic{n}>"} for n in range(3)]),
        vm(nics=[{"id": f"<networkInterfaces/nic{n}>"} for n in range(2)]),
        400, "NetworkInterfaceCountExceeded", "Microsoft, pages of VM sizes (network interfaces)",
        given=(network(), *(nic(f"nic{n}", address=None) for n in range(3))),
    ),
    Rule(
        "an interface belongs to one machine",
        vm("vm2"), vm("vm2", nics=[{"id": "<networkInterfaces/nic2>"}]), 400, "NicInUse",
        "Microsoft, network-interface pages", given=(*MACHINE, nic("nic2", address=None)),
    ),
    Rule(
        "a machine is in the region of its interface",
        vm(location="northeurope"), vm(), 400, "InvalidResourceReference",
        "Microsoft, virtual-network-network-interface.md; MicrosoftDocs/azure-docs, issue 32363",
        given=(network(), address(), nic()),
        says="Please make sure that the referenced resource exists, and that both resources are in the "
        "same region.",
        quoted=True,
    ),
    Rule(
        "a machine's public address is in its zone",
        vm(zones=["2"]), vm(zones=["1"]), 400,
        "ComputeResourceZoneConstraintDoesNotMatchPublicIPAddressZoneConstraint",
        f"{NETWORK_PAGE}; fortinet/azure-templates, issue 43", given=(network(), address(), nic()),
        says="used by the compute resource via NetworkInterface or LoadBalancer has a different zone "
        "constraint 1.",
        quoted=True,
    ),
    Rule(
        "a Linux host name has up to 64 characters",
        vm(computer="v" * 65), vm(computer="v" * 64), 400, "InvalidParameter", CODES,
        given=(network(), address(), nic()), says="Linux host name cannot exceed 64 characters", quoted=True,
    ),
    Rule(
        "an administrator has no name that attackers try first",
        vm(admin="root"), vm(admin="amy"), 400, "InvalidParameter",
        "Microsoft, specification of osProfile.adminUsername; Azure/azure-cli, issue 582",
        given=(network(), address(), nic()), says="The Admin Username specified is not allowed", quoted=True,
    ),
    Rule(
        "a Windows administrator's name has up to 20 characters",
        vm(**WINDOWS, admin="a" * 21), vm(**WINDOWS, admin="a" * 20), 400, "InvalidParameter",
        "Microsoft, specification of osProfile.adminUsername",
        given=(network(), address(), nic()), says="The Admin Username specified is not allowed",
    ),
    Rule(
        "a Windows computer name has up to 15 characters",
        vm(**WINDOWS, computer="v" * 16), vm(**WINDOWS, computer="v" * 15), 400, "InvalidParameter", CODES,
        given=(network(), address(), nic()),
        says="Windows computer name cannot be more than 15 characters long", quoted=True,
    ),
    Rule(
        "custom data are in Base64",
        vm(custom_data="#cloud-config"), vm(custom_data=encoded("#cloud-config")), 400, "InvalidParameter",
        CODES,
        given=(network(), address(), nic()), says="Custom data in OSProfile must be in Base64 encoding",
        quoted=True,
    ),
    Rule(
        "a smaller size takes the data disks that are attached",
        resize(size="Standard_E2as_v5"), resize(size="Standard_E16as_v5"), 409, "OperationNotAllowed", CODES,
        given=(
            network(), address(), nic(), *FIVE,
            vm(data_disks=[*FOUR_HELD, entry("d4", 4)]),
        ),
        says="The maximum number of data disks allowed to be attached to a VM of this size is 4.",
        quoted=True,
    ),
)  # fmt: skip

NETWORKS = (
    Rule(
        "a public address is a Standard one; Basic is retired",
        address(sku="Basic", zones=None), address(zones=None), 400, "IPv4BasicSkuPublicIpCountLimitReached",
        "skypilot-org/skypilot, issue 7977; Azure/azure-quickstart-templates, issue 14512",
        says="Cannot create more than 0 IPv4 Basic SKU public IP addresses for this", quoted=True,
    ),
    Rule(
        "a public address without a SKU is a Basic one",
        address(sku=None, zones=None), address(), 400, "IPv4BasicSkuPublicIpCountLimitReached",
        "nickvourd/SkyFall-Pack, pull request 5; skypilot-org/skypilot, issue 7977",
        says="Cannot create more than 0 IPv4 Basic SKU public IP addresses for this", quoted=True,
    ),
    Rule(
        "a standard public address is static",
        address(method="Dynamic"), address(), 400, "StandardSkuPublicIPAddressesMustBeStatic",
        f"{NETWORK_PAGE}; fortinet/azure-templates, issue 43",
        says="must have AllocationMethod set to Static.", quoted=True,
    ),
    Rule(
        "a public address is in a zone only where the region has zones",
        address(location="westus"), address(location="westus", zones=None), 400,
        "ResourceTypeNotSupportAvailabilityZones", "Azure/azure-quickstart-templates, issue 3984",
        says="The resource type 'publicIPAddresses' does not support availability zones at location 'westus'",
        quoted=True,
    ),
    Rule(
        "an interface is in the region of its network",
        nic(location="northeurope"), nic(), 400, "InvalidResourceReference",
        "Microsoft, virtual-network-network-interface.md; MicrosoftDocs/azure-docs, issue 32363",
        given=(network(), address()), quoted=True,
        says="was not found. Please make sure that the referenced resource exists, and that both resources "
        "are in "
        "the same region.",
    ),
    Rule(
        "an interface is in the region of its public address",
        nic(address="<publicIPAddresses/far>"), nic(), 400, "InvalidResourceReference",
        f"{NETWORK_PAGE}; MicrosoftDocs/azure-docs, issue 32363",
        given=(network(), address(), address("far", location="northeurope")),
        says="publicIPAddresses/far referenced by resource", quoted=True,
    ),
    Rule(
        "an interface's subnet is there",
        nic(subnet="<virtualNetworks/net/subnets/other>"), nic(), 400, "InvalidResourceReference",
        "MicrosoftDocs/azure-docs, issue 81734", given=(network(), address()),
        says="/subnets/other referenced by resource", quoted=True,
    ),
    Rule(
        "a public address belongs to one interface",
        nic("nic2"), nic("nic2", address=None), 400, "PublicIPAddressInUse", NETWORK_PAGE,
        given=(network(), address(), nic()),
    ),
    Rule(
        "a public address in use is not deleted",
        delete("publicIPAddresses/ip"), delete("publicIPAddresses/ip2"), 400,
        "PublicIPAddressCannotBeDeleted",
        NETWORK_PAGE, given=(network(), address(), address("ip2"), nic()),
    ),
    Rule(
        "the interface of a machine is not deleted",
        delete("networkInterfaces/nic"), delete("networkInterfaces/nic2"), 400, "NicInUse",
        "Microsoft, virtual-network-network-interface.md", given=(*MACHINE, nic("nic2", address=None)),
    ),
    Rule(
        "the priority of a security rule is between 100 and 4,096",
        nsg(priority=99), nsg(priority=100), 400, "SecurityRuleInvalidPriority",
        "Microsoft, network-security-groups-overview.md",
    ),
)  # fmt: skip

GROUPS = (
    Rule(
        "a request names its api-version",
        Request("GET", "disks/d", query=""), get("disks/d"), 400, "MissingApiVersionParameter", ARM,
        given=(disk(),), says="The api-version query parameter (?api-version=) is required for all requests.",
        quoted=True,
    ),
    Rule(
        "the version of an API exists: of what is made",
        disk(query="api-version=2025-01-01"), disk(query="api-version=2025-01-02"),
        400, "NoRegisteredProviderFound",
        "claranet/terraform-azurerm-windows-vm, issue 7; Azure/azure-cli, issue 27154",
        says="No registered resource provider found for location 'westeurope' and API version '2025-01-01' "
        "for type 'disks'. The supported api-versions are '2016-04-30-preview, 2017-03-30, ", quoted=True,
    ),
    Rule(
        "the version of an API exists: of what is there",
        get("disks/d", "api-version=2023-11-01"), get("disks/d"), 400, "NoRegisteredProviderFound",
        "Azure/azure-cli, issue 28496", given=(disk(),),
        says="for location 'westeurope' and API version '2023-11-01' for type 'disks'.", quoted=True,
    ),
    Rule(
        "the version of an API exists: of a list",
        get("virtualNetworks", "api-version=2020-04-02"), get("virtualNetworks", "api-version=2020-04-01"),
        404, "InvalidResourceType", "Azure/azure-powershell, issues 12061 and 10299",
        says="The resource type 'virtualNetworks' could not be found in the namespace 'Microsoft.Network' "
        "for api version '2020-04-02'. The supported api-versions are '2015-05-01-preview,2015-06-15,",
        quoted=True,
    ),
    Rule(
        "the version of an API exists: of a group",
        group(query="api-version=2023-02-01"), group(query="api-version=2022-09-01"),
        400, "InvalidApiVersionParameter", "Azure/azure-cli, issue 28038",
        says="The api-version '2023-02-01' is invalid. The supported versions are '", quoted=True,
    ),
    Rule(
        "a resource has up to 50 tags",
        disk(tags={f"t{n}": "" for n in range(51)}), disk(tags={f"t{n}": "" for n in range(50)}),
        400, "TooManyTags", TAGS_PAGE,
    ),
    Rule(
        "a group has up to 50 tags",
        group(tags={f"t{n}": "" for n in range(51)}), group(tags={f"t{n}": "" for n in range(50)}),
        400, "TooManyTags", TAGS_PAGE,
    ),
    Rule(
        "the name of a tag has up to 512 characters",
        disk(tags={"t" * 513: ""}), disk(tags={"t" * 512: ""}), 400, "InvalidTagName",
        f"{TAGS_PAGE}; words quoted in public PowerShell scripts",
        says="exceeded the maximum length. Maximum allowed length for tag name - '512' characters.",
        quoted=True,
    ),
    Rule(
        "the value of a tag has up to 256 characters",
        disk(tags={"t": "v" * 257}), disk(tags={"t": "v" * 256}), 400, "InvalidTagValueLength",
        f"{TAGS_PAGE}; words quoted in public PowerShell scripts",
        says="exceeded the maximum length. Maximum allowed length for tag value - '256' characters.",
        quoted=True,
    ),
    Rule(
        "the name of a tag has no `<`, `>`, `%`, `&`, `\\`, `?` or `/`",
        address(tags={"cost<center": "1"}), address(tags={"cost:center": "< 1"}),
        400, "InvalidTagNameCharacters", f"{TAGS_PAGE}; MicrosoftDocs/azure-docs-cli, get-started tutorial",
        says="The tag names 'cost<center' have reserved characters '<,>,%,&,\\,?,/'", quoted=True,
    ),
    Rule(
        "the outermost members of a body are known",
        disk(AccountType="Premium_LRS"), disk(managedBy=""), 400, "InvalidRequestContent",
        "Azure/azure-sdk-for-net, issue 3487",
        says="could not be deserialized: 'Could not find member 'AccountType' on object of type "
        "'ResourceDefinition'. Path 'AccountType'", quoted=True,
    ),
    Rule(
        "a machine's properties are known",
        vm(unknown={}), vm(events={}),
        400, "BadRequest", "as scale sets: Microsoft, virtual-machine-scale-sets-terminate-notification.md; "
        "Azure/azure-cli, issue 18855", given=(network(), address(), nic()),
        says="Could not find member 'scheduledEvents' on object of type '",
    ),
    Rule(
        "a disk's properties are known; those that can only be read are ignored",
        disk(unknown=True), disk(state="Attached"),
        400, "BadRequest", "as scale sets, inferred",
        says="Could not find member 'plus' on object of type '",
    ),
    Rule(
        "a network resource's properties are known",
        address(unknown="Standard"), address(idle_minutes=5),
        400, "InvalidRequestFormat", "microsoft/sql-server-samples, pull request 1294",
        says="Cannot parse the request.", quoted=True,
    ),
    Rule(
        "what is read is there",
        get("disks/d"), get("disks/d1"), 404, "ResourceNotFound", f"{ARM}; a recorded answer",
        given=(disk("d1"),),
        says="/d' under resource group ", quoted=True,
    ),
    Rule(
        "nothing is made in a group that is being deleted",
        disk("d1"), get("disks/d"), 409, "ResourceGroupBeingDeleted",
        "Azure/azure-cli, issues 21121 and 28679",
        given=(disk(), delete("", waits=False)),
        says="is in deprovisioning state and cannot perform this operation.", quoted=True,
    ),
    Rule(
        "a group stays in its region",
        group(location="northeurope"), group(tags={"a": "b"}), 409, "InvalidResourceGroupLocation", ARM,
    ),
)  # fmt: skip

SECTIONS: Mapping[str, tuple[Rule, ...]] = {
    "Making a disk": DISKS,
    "Changing and deleting a disk": CHANGES,
    "Attaching and detaching": ATTACHMENTS,
    "Machines": MACHINES,
    "Networks": NETWORKS,
    "Groups and requests": GROUPS,
}
RULES = tuple(rule for rules in SECTIONS.values() for rule in rules)
