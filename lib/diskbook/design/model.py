"""Scenarios: a question with its set-up, as frozen records.

`diskbook.design.scenario_file` reads them from TOML, and checks them against one another
(`diskbook.design.consistency`) and against Azure's own rules.
"""

import math
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from diskbook.design import diskspd_arguments
from diskbook.design.diskspd_arguments import parse
from diskbook.facts import paths
from diskbook.facts.catalog import EPHEMERAL
from diskbook.facts.errors import LINES, is_visible
from diskbook.facts.units import GIB, KIB, MIB
from diskbook.facts.validation import known_name

PRESETS = ("quick", "standard", "full")
_SIZES = {"": 1, "K": KIB, "M": MIB, "G": GIB}


def block_bytes(text: Any) -> Any:
    """Turn "4K", "128K" or "1M" (powers of 1024, as fio reads them) into bytes; leave numbers alone."""
    if not isinstance(text, str):
        return text
    number, unit = text.rstrip("KMGkmg"), text[len(text.rstrip("KMGkmg")) :].upper()
    if not number.isdigit() or unit not in _SIZES:
        raise ValueError(f'\'{text}\' is not a block size; write for example "4K" or "128K"')
    return int(number) * _SIZES[unit]


LONGEST_NAME = 40
Name = Annotated[str, Field(pattern=rf"^[a-z][a-z0-9-]{{0,{LONGEST_NAME - 1}}}$")]
# Azure's own names of regions, sizes, SKUs and errors: they get into addresses and requests.
AzureName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,80}$")]
Zone = Literal["1", "2", "3"]
IMPORTED = "imported"
"""What stands for the article where results were imported."""
NO_ARTICLE = "none"
"""And in a scenario of one's own, which is compared with nobody's figures."""
LEAST_EVIDENCE_S = 120.0
"""A trial of that length holds a whole minute of the clock, whenever it begins."""
_OF_SEVERAL_LINES = frozenset({"question", "verbatim"})


class Record(BaseModel):
    """A part of a scenario: frozen, strict about its keys, and without characters that steer a terminal."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    @field_validator("*", mode="before")
    @classmethod
    def _visible(cls, value: Any, info: ValidationInfo) -> Any:
        keep = LINES if info.field_name in _OF_SEVERAL_LINES else ""
        texts = value if isinstance(value, list | tuple) else [value]
        if not all(is_visible(text, keep) for text in texts if isinstance(text, str)):
            raise ValueError(
                "control characters, and those that turn the direction of writing, are not allowed"
            )
        return value


class Question(Record):
    """What the scenario asks, and where; `article` names the one whose figures it is compared with."""

    title: str
    question: str
    region: AzureName
    article: Annotated[str, known_name("article", lambda: (*paths.article_names(), IMPORTED, NO_ARTICLE))] = (
        NO_ARTICLE
    )
    # The article whose conditions the emulator plays; one kind of disk had other latencies elsewhere.
    site: Name = "default"
    # The notebook that analyses it, notebooks/3-analyse-<analysis>.ipynb; by default the scenario's own name.
    analysis: Name | None = None
    # Share of Azure's burst buckets that the emulator gives machines and disks, since its trials are shorter
    # too; Azure's own are what they are.
    emulated_credit_scale: Annotated[float, Field(gt=0, le=1, strict=False)] = 1.0


ToolName = Literal["fio", "diskspd", "vmfleet", "elbencho", "sysbench", "other"]
TOOLS_OF_SYSTEM: Mapping[str, tuple[ToolName, ...]] = {"linux": ("fio",), "windows": ("diskspd", "vmfleet")}
"""Tools that machines have, by their system, the usual one first. What they do is in `tools.registry`.

The other tools are those of imported results (`tools.protocol`).
"""
FLEET: ToolName = "vmfleet"
"""The tool that runs one load on many machines at once."""


class Machine(Record):
    """A virtual machine. `substitute` is a documented size for when `size` is retired.

    `accelerated_networking` is asked for where the size has it.
    """

    name: Name
    size: AzureName
    zone: Zone | None = None
    os: Literal["linux", "windows"] = "linux"
    substitute: AzureName | None = None
    accelerated_networking: bool = True

    @property
    def tools(self) -> tuple[ToolName, ...]:
        """Measuring tools that it has, the usual one first."""
        return TOOLS_OF_SYSTEM[self.os]


class Disk(Record):
    """A managed disk. `zone` must be empty for ZRS; `iops` and `mb_s` are for Premium SSD v2 and Ultra.

    With `sku` "EphemeralOS" it is the OS disk of the machine that its arms name, on that machine's local
    storage; it is measured by a file.

    `count` is for a pool: as many of it are made for each machine of a volume, in the machine's zone where
    `zone` is empty.

    `tier` is a performance tier of Premium SSD above that of its size, e.g. P40 for 1024 GiB.

    `accelerated_network` is the disk's label of that name, made for images; a machine's own setting is
    `Machine.accelerated_networking`. `frequent_attach` is Azure's optimizedForFrequentAttach.
    """

    name: Name
    sku: AzureName
    size_gib: Annotated[int, Field(gt=0)]
    zone: Zone | None = None
    max_shares: Annotated[int, Field(ge=1)] = 1
    cache: Literal["None", "ReadOnly", "ReadWrite"] = "None"
    bursting: bool = False
    tier: AzureName | None = None
    performance_plus: bool = False
    accelerated_network: bool = False
    frequent_attach: bool = False
    iops: Annotated[int, Field(gt=0)] | None = None
    mb_s: Annotated[int, Field(gt=0)] | None = None
    count: Annotated[int, Field(ge=1, le=64)] = 1

    @property
    def ephemeral(self) -> bool:
        """Whether it is a machine's ephemeral OS disk."""
        return self.sku == EPHEMERAL


class Cluster(Record):
    """Machines that are the nodes of a failover cluster; `witness` has a vote of its own among them."""

    name: Name
    nodes: Annotated[tuple[str, ...], Field(strict=False, min_length=1)]
    witness: Literal["none", "cloud"] = "none"


VolumeKind = Literal["simple", "two-way", "three-way", "nested-mirror", "nested-parity"]


class Volume(Record):
    """A volume on a pool of disks: of the nodes of `cluster`, or, `simple`, of one `machine`.

    `disk` names the pool's disks, of which each machine has `count`. Data are striped over `columns` disks,
    `interleave_kib` on each in turn, and every copy is. A nested-parity volume has two tiers, `mirror_gib`
    and `parity_gib`, which may be parts of a GiB; all others have one size. Of several (`count`) each node
    owns one in turn.
    """

    name: Name
    kind: VolumeKind
    disk: str
    cluster: str | None = None
    machine: str | None = None
    columns: Annotated[int, Field(ge=1, le=8)]
    interleave_kib: Annotated[int, Field(ge=16, le=4096, multiple_of=16)] = 256
    size_gib: Annotated[int, Field(gt=0)] | None = None
    mirror_gib: Annotated[float, Field(gt=0, le=65536, strict=False)] | None = None
    parity_gib: Annotated[float, Field(gt=0, le=65536, strict=False)] | None = None
    count: Annotated[int, Field(ge=1, le=64)] = 1

    @property
    def nested(self) -> bool:
        """Whether each of two nodes keeps data that stand the loss of one of its own disks."""
        return self.kind.startswith("nested-")

    @property
    def room_gib(self) -> float:
        """What it holds, in GiB: its size, or that of its tiers together."""
        return self.size_gib or (self.mirror_gib or 0) + (self.parity_gib or 0)


class Arm(Record):
    """A disk or a volume as seen from a machine, which runs the load.

    `label` is its name for readers, where redundancy and zone do not tell it. Runs that were measured earlier
    show today's label. `owner` is the node that owns the volume meanwhile, by default the arm's machine. With
    several volumes of one entry a fleet runs on the nodes that own them. If it is not `aligned`, each part
    of it runs on another node than its volume's owner. `placement` names a group of arms whose disks are
    attached at the same time. A block measures the arms of one placement, so that disks move between groups
    of blocks only (`scenario.schedule`).
    """

    name: Name
    disk: str = ""
    volume: str = ""
    machine: str
    owner: str | None = None
    aligned: bool = True
    label: Annotated[str, Field(min_length=1, max_length=40)] | None = None
    placement: Name | None = None


PERIOD_S = 0.04
"""Time that a job of a held rate has for each I/O: as long as 99.9 % of the slower arm's single I/Os take."""


def depth_of_rate(rate: float) -> int:
    """I/Os that may be outstanding of a held rate in IOPS, where nothing says how many."""
    return min(max(math.ceil(PERIOD_S * rate), 16), 1024)


def _with_jobs(raw: Any) -> Any:
    """Add a depth to a load that has a rate, and nothing that says how many I/Os may be outstanding."""
    if not isinstance(raw, Mapping) or raw.keys() & {"threads", "queue_depth", "verbatim"}:
        return raw
    rate = raw.get("rate")
    if not isinstance(rate, int | float) or not 0 < rate < math.inf:
        return raw
    return {**raw, "queue_depth": depth_of_rate(rate)}


class Workload(Record):
    """A load, offered to all arms or to those named in `arms`.

    `rate` is the total in IOPS; `rate_of_cap` are shares of each arm's cap, of which each becomes a load
    at that rate when the file is read (`scenario.load_curves`). fio offers a rate by as many jobs of one I/O
    as may be outstanding; without `threads` and `queue_depth` each has `PERIOD_S` for an I/O. `blocks` is the
    number of blocks it is measured in, of each placement where arms have one, `series_s` the grain of the
    series kept. `region` is the part of the disk: what was filled, or what nobody wrote to before; `data`
    what is written, random or such that it compresses.
    `cache_state` is what a host cache holds at the start: nothing of the working set, or all that fits.
    `ioengine` is fio's, for block devices and files.
    `instances` are the machines of a fleet, all together: each has `threads`, `queue_depth`
    and a file of `working_set_gib` of its own, and they are spread evenly over the arm's volumes; a single
    one, of `tool` "vmfleet", has the first of them. `tool` is "any" for the usual one of the arm's machine:
    fio on Linux, DiskSpd on Windows; of a fleet it is VMFleet.
    `verbatim` is a whole load as a line of DiskSpd; what it means is in the other keys, and `remarks` holds
    what a reader of its results must know.
    """

    name: Name
    tool: ToolName | Literal["any"] = "any"
    verbatim: str | None = None
    remarks: Annotated[tuple[str, ...], Field(strict=False)] = ()
    pattern: Literal["random", "sequential"] = "random"
    block_size: Annotated[int, BeforeValidator(block_bytes), Field(gt=0, le=64 * MIB, multiple_of=512)]
    write_pct: Annotated[int, Field(ge=0, le=100)]
    threads: Annotated[int, Field(ge=1, le=64)] = 1
    queue_depth: Annotated[int, Field(ge=1, le=1024)] = 1
    instances: Annotated[int, Field(ge=1, le=4096)] = 1
    rate: Annotated[float, Field(gt=0, le=1e7, strict=False)] | None = None
    # Not part of a manifest, which has the loads that it became.
    rate_of_cap: Annotated[tuple[float, ...], Field(strict=False, max_length=20, exclude=True)] = ()
    sync: Literal["fdatasync", "dsync"] | None = None
    working_set_gib: Annotated[float, Field(gt=0, le=65536, strict=False)] = 1.0
    ramp_s: Annotated[float, Field(ge=0, le=86400, strict=False)] = 0.0
    runtime_s: Annotated[float, Field(gt=0, le=86400, strict=False)] = 30.0
    blocks: Annotated[int, Field(ge=1, le=1000)] = 1
    series_s: Annotated[float, Field(gt=0, le=3600, strict=False)] = 1.0
    arms: Annotated[tuple[str, ...], Field(strict=False)] = ()
    region: Literal["filled", "unwritten"] = "filled"
    data: Literal["random", "compressible"] = "random"
    cache_state: Literal["any", "cold", "warm"] = "any"
    ioengine: Literal["libaio", "io_uring"] = "libaio"

    @field_validator("rate_of_cap", mode="before")
    @classmethod
    def _are_shares(cls, value: Any) -> Any:
        numbers = isinstance(value, list | tuple) and all(type(item) in (int, float) for item in value)
        if not numbers or list(value) != sorted({share for share in value if 0 < share <= 1}):
            raise ValueError(
                "write shares of a cap that grow, above 0 and at most 1, for example [0.1, 0.5, 0.9]"
            )
        return value

    @model_validator(mode="before")
    @classmethod
    def _of_line(cls, raw: Any) -> Any:
        return diskspd_arguments.expand_workload(_with_jobs(raw))

    def meets(self, arm: str) -> bool:
        """Whether the arm is measured with this workload."""
        return not self.arms or arm in self.arms

    @property
    def is_fleet(self) -> bool:
        """Whether many machines run it at once."""
        return self.instances > 1 or self.tool == FLEET

    @property
    def outstanding(self) -> int:
        """I/Os in flight: threads x queue depth, of all machines of a fleet."""
        return self.instances * self.threads * self.queue_depth

    @property
    def block_size_bytes(self) -> int:
        """Block size in bytes."""
        return self.block_size

    @property
    def prefill_bytes(self) -> int:
        """What is prefilled for it: nothing where a line makes its own file or nothing is written."""
        made_anew = self.verbatim is not None and parse(self.verbatim).create_bytes is not None
        return 0 if made_anew or self.region == "unwritten" else self.working_set_bytes

    @property
    def first_writes(self) -> bool:
        """Whether its writes are to be the first to their blocks."""
        return self.region == "unwritten" and self.write_pct > 0

    @property
    def working_set_bytes(self) -> int:
        """Part of the disk that is prefilled and measured, in bytes, whole MiB."""
        return max(1, round(self.working_set_gib * 1024)) * MIB


class Design(Record):
    """How often: fresh machines and disks (`replicates`), and trials of a cell in a block (`repeats`).

    `looks` are numbers of complete replicates at which the run is judged before its end, and at it; with
    `look_unit` "blocks", of blocks of its one replicate (of arms with placements, of each placement).
    `spread` is the time from the first block of a replicate to its last, in hours ("6h") or days ("2d"): each
    may begin so much later than the one before it. `hours_between_blocks` is the older key for the same.
    Arms with placements have a block of each placement at a time.
    `settle_s` passes between an attach and the first trial that is compared; a trial right after the attach
    comes before (`early`).
    After its fill a working set is written over once, in random order, unless `no_overwrite` says why not.
    `evidence_s` is how long each cell that may sit on a limit is measured once more, at the end, for metrics
    of the platform, which come one a minute; 0 for not at all (`throttling.expected`).
    `probe_s` is the length of the probes that show that single I/Os are on no limit; 0 for none (`probes`).
    """

    replicates: Annotated[int, Field(ge=1, le=99)] = 1
    repeats: Annotated[int, Field(ge=1, le=10)] = 1
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    looks: Annotated[tuple[Annotated[int, Field(ge=2, le=99)], ...], Field(strict=False)] = ()
    look_unit: Literal["replicates", "blocks"] = "replicates"
    spread: str | None = None
    hours_between_blocks: Annotated[float, Field(ge=0, le=24, strict=False, allow_inf_nan=False)] = 0.0
    settle_s: Annotated[float, Field(ge=0, le=3600, strict=False, allow_inf_nan=False)] = 0.0
    evidence_s: Annotated[float, Field(ge=0, le=3600, strict=False, allow_inf_nan=False)] = 0.0
    probe_s: Annotated[float, Field(ge=0, le=3600, strict=False, allow_inf_nan=False)] = 0.0
    no_overwrite: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    # No run starts that is expected to cost more, with a margin; see diskbook.cost.budget.
    max_cost_usd: Annotated[float, Field(gt=0, strict=False, allow_inf_nan=False)] | None = None

    @field_validator("spread")
    @classmethod
    def _is_a_time(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"\d{1,3}(\.\d{1,3})?[hd]", value):
            raise ValueError(f'\'{value}\' is not a time; write hours or days, for example "6h" or "2d"')
        return value

    @field_validator("evidence_s")
    @classmethod
    def _holds_a_minute(cls, value: float) -> float:
        if 0 < value < LEAST_EVIDENCE_S:
            raise ValueError(
                f"a trial of {value:g} s may hold no whole minute of the platform's metrics; write "
                f"{LEAST_EVIDENCE_S:g} or more, or 0 for no such trials"
            )
        return value


class Comparison(Record):
    """A ratio of two arms, named before the run. `margin` is the relative difference that matters.

    `as_delivered` judges a rate as a caller gets it, also where a limit sets it.
    """

    arm: str
    base_arm: str
    workload: str
    metric: Literal["lat_mean_ms", "lat_p50_ms", "lat_p99_ms", "iops", "throughput_mb_s"] = "lat_mean_ms"
    pairing: Literal["same-machine", "same-disk", "replicate"]
    family: Literal["headline", "exploratory", "control"] = "exploratory"
    margin: Annotated[float, Field(gt=0, lt=1)] = 0.05
    as_delivered: bool = False

    @model_validator(mode="after")
    def _is_a_rate(self) -> "Comparison":
        if self.as_delivered and self.metric.startswith("lat"):
            raise ValueError('as_delivered is for rates; write metric = "iops" or "throughput_mb_s"')
        return self


class Check(Record):
    """A check besides the trials: what Azure must refuse, keep intact or fence.

    attach-refused: attaching `disk` to `machine` must fail with Azure's error `error_code`.
    data-intact: what is written from `from_machine` is verified, block by block, from `machine`.
    reservation: a persistent reservation of `from_machine` keeps `machine` out, until that takes it over.
    """

    name: Name
    kind: Literal["attach-refused", "data-intact", "reservation"]
    disk: str
    machine: str
    from_machine: str | None = None
    error_code: AzureName = "BadRequest"
    size_mib: Annotated[int, Field(ge=1, le=65536)] = 64


class Drill(Record):
    """A machine fails while it writes, and another one takes its disk over.

    cold: `machine` is deallocated before, started then, and the disk attached to it; standby: it runs, and
    the disk is moved to it; shared: it has the disk all the time. crash: power cut; stop: shutdown;
    deallocate: shutdown, and the machine gives its place up. `write_s` is for how long `from_machine` writes
    before it fails.
    """

    name: Name
    disk: str
    kind: Literal["cold", "standby", "shared"]
    failure: Literal["crash", "stop", "deallocate"]
    from_machine: str
    machine: str
    write_s: Annotated[float, Field(gt=0, le=60, strict=False)] = 1.0


LostMembers = Literal["drive", "two-drives", "drive-each", "node", "node-and-drive", "two-nodes"]


class Loss(Record):
    """Members that a volume loses at once while it is written to, and gets back.

    drive, two-drives: of one node; drive-each: one of each of two nodes; node-and-drive: a node, and a drive
    of another one. Volumes of one pool lose the same members at the same moment. Of a volume with `count`
    the first is written to.
    """

    name: Name
    volume: str
    lost: LostMembers


class Network(Record):
    """The network of the machines: one of the run's own with public addresses, or a subnet that is there.

    `subnet` is the id of a subnet, or "network/subnet" in `resource_group`. Machines in it have no public
    address and are reached through `jump_host`, "[user@]host[:port]" as of OpenSSH's ProxyJump, or by a
    tunnel of Azure Bastion: `bastion` is its name, in `bastion_group`, by default the subnet's group.
    """

    kind: Literal["public", "private"] = "public"
    subnet: Annotated[str, Field(max_length=500)] = ""
    resource_group: Annotated[str, Field(max_length=90)] = ""
    jump_host: Annotated[str, Field(max_length=300)] = ""
    bastion: Annotated[str, Field(max_length=80)] = ""
    bastion_group: Annotated[str, Field(max_length=90)] = ""

    @property
    def is_private(self) -> bool:
        """Whether machines are in a subnet that is there, without public addresses."""
        return self.kind == "private"


PUBLIC = Network()
"""A network of the run's own, with public addresses."""


class Company(Record):
    """What a company's subscription asks of a run; see `company_rules`.

    `tags` go on everything created, in addition to the run's own. `resource_group` exists already: the run
    creates in it, deletes its own resources from it, and never the group.
    """

    tags: dict[str, str] = {}
    resource_group: Annotated[str, Field(max_length=90)] = ""


NO_COMPANY = Company()


class Scenario(Record):
    """A whole scenario with a preset applied."""

    name: Name
    preset: str
    scenario: Question
    machine: Annotated[tuple[Machine, ...], Field(min_length=1)]
    disk: Annotated[tuple[Disk, ...], Field(min_length=1)]
    arm: Annotated[tuple[Arm, ...], Field(min_length=1)]
    workload: Annotated[tuple[Workload, ...], Field(min_length=1)]
    design: Design = Design()
    comparison: tuple[Comparison, ...] = ()
    check: tuple[Check, ...] = ()
    drill: tuple[Drill, ...] = ()
    cluster: tuple[Cluster, ...] = ()
    volume: tuple[Volume, ...] = ()
    loss: tuple[Loss, ...] = ()
    network: Network = PUBLIC
    azure: Company = NO_COMPANY

    model_config = ConfigDict(frozen=True, extra="forbid", strict=False)

    @property
    def region(self) -> str:
        """Azure region."""
        return self.scenario.region

    @property
    def site(self) -> str:
        """The article whose conditions the emulator plays."""
        return self.scenario.site

    @property
    def analysis_notebook(self) -> str:
        """Name of the notebook that analyses a run of this scenario."""
        return f"3-analyse-{self.scenario.analysis or self.name}"

    @property
    def most_blocks(self) -> int:
        """Blocks of a replicate; of arms with placements, of the placement that has most."""
        return max(load.blocks for load in self.workload)

    @property
    def gap_h(self) -> float:
        """Hours from the start of a block to that of the next in its replicate and placement; 0 for none."""
        if self.design.spread is None:
            return self.design.hours_between_blocks
        hours = float(self.design.spread[:-1]) * (24 if self.design.spread.endswith("d") else 1)
        return hours / max(1, self.most_blocks - 1)

    @property
    def cells(self) -> list[tuple[Arm, Workload]]:
        """Every arm with each workload that it is measured with."""
        return [(arm, load) for arm in self.arm for load in self.workload if load.meets(arm.name)]

    def tool_of(self, arm: Arm, load: Workload | None = None) -> ToolName:
        """Tool that an arm is measured with: a fleet's, the load's own, or its machine's usual one."""
        if load is not None and load.is_fleet:
            return FLEET
        usual = self.machine_named(arm.machine).tools[0]
        return usual if load is None or load.tool == "any" else load.tool

    def machine_named(self, name: str) -> Machine:
        """Return the machine of that name."""
        return next(item for item in self.machine if item.name == name)

    def disk_named(self, name: str) -> Disk:
        """Return the disk of that name."""
        return next(item for item in self.disk if item.name == name)

    def volume_named(self, name: str) -> Volume:
        """Return the volume of that name."""
        return next(item for item in self.volume if item.name == name)

    def members_of(self, volume: Volume) -> list[str]:
        """Names of the volumes made of one entry: its own, or `{name}-{n}`, n from 1 to its count."""
        numbers = range(1, volume.count + 1)
        return [f"{volume.name}-{n}" for n in numbers] if volume.count > 1 else [volume.name]

    def owners_of(self, arm: Arm) -> dict[str, str]:
        """Volumes that an arm measures, each with the node that is to own it meanwhile.

        Of several of one entry each node owns one in turn; of a single one the arm says which.
        """
        volume = self.volume_named(arm.volume)
        members, nodes = self.members_of(volume), self.nodes_of(volume)
        if len(members) == 1:
            return {members[0]: arm.owner or arm.machine}
        return {name: nodes[number % len(nodes)] for number, name in enumerate(members)}

    def nodes_of(self, volume: Volume) -> tuple[str, ...]:
        """Names of the machines whose disks hold a volume."""
        if volume.machine is not None:
            return (volume.machine,)
        return next(item.nodes for item in self.cluster if item.name == volume.cluster)

    def disks_of(self, machine: str) -> dict[str, int]:
        """Data disks of a machine, by name, with how many of each: those of its arms, and of its pools."""
        pools = {item.disk for item in self.volume if machine in self.nodes_of(item)}
        names = {arm.disk for arm in self.arm if arm.machine == machine} | pools
        return {disk.name: disk.count for disk in self.data_disks if disk.name in names}

    def skus_of(self, machine: str) -> set[str]:
        """SKUs of the data disks that a machine has at some time, by its arms, pools, checks and drills."""
        moves: list[Check | Drill] = [*self.check, *self.drill]
        moved = {item.disk for item in moves if machine in (item.machine, item.from_machine)}
        return {disk.sku for disk in self.data_disks if disk.name in {*self.disks_of(machine), *moved}}

    def made_disks(self) -> list[tuple[Disk, str | None]]:
        """Disks that are created by themselves, each with the machine whose pool it is for, if any.

        Those of a pool are named `{disk}-{machine}-{n}`, n from 1 to the disk's count.
        """
        return [made for disk in self.data_disks for made in self.made_of(disk)]

    def made_of(self, disk: Disk) -> list[tuple[Disk, str | None]]:
        """What is made of one disk of the scenario: itself, or those of the pools that it is for."""
        machines = [self.machine_named(name) for name in self.pool_machines(disk.name)]
        pools: list[tuple[Disk, str | None]] = [
            (_of_pool(disk, machine, n), machine.name)
            for machine in machines
            for n in range(1, disk.count + 1)
        ]
        return pools or [(disk, None)]

    def is_pooled(self, machine: str) -> bool:
        """Whether a machine has disks of a volume's pool."""
        return any(machine in self.nodes_of(item) for item in self.volume)

    def pool_machines(self, disk: str) -> list[str]:
        """Machines that have `count` of a disk each, for the volumes on it; none for a disk by itself."""
        volumes = [item for item in self.volume if item.disk == disk]
        return list(dict.fromkeys(name for item in volumes for name in self.nodes_of(item)))

    def disk_of(self, arm: Arm) -> Disk:
        """Return the disk that an arm measures, or each disk of its volume's pool."""
        return self.disk_named(self.volume_named(arm.volume).disk if arm.volume else arm.disk)

    def room_gib(self, arm: Arm) -> float:
        """Size of what an arm measures, in GiB."""
        return self.volume_named(arm.volume).room_gib if arm.volume else self.disk_named(arm.disk).size_gib

    def arm_named(self, name: str) -> Arm:
        """Return the arm of that name."""
        return next(item for item in self.arm if item.name == name)

    def workload_named(self, name: str) -> Workload:
        """Return the workload of that name."""
        return next(item for item in self.workload if item.name == name)

    @property
    def data_disks(self) -> list[Disk]:
        """Disks that are created by themselves, and attached."""
        return [disk for disk in self.disk if not disk.ephemeral]

    def os_disk_of(self, machine: str) -> Disk | None:
        """Return the ephemeral OS disk that a machine is to have; None for an ordinary one."""
        names = {arm.disk for arm in self.arm if arm.machine == machine}
        return next((disk for disk in self.disk if disk.ephemeral and disk.name in names), None)

    @property
    def has_clusters(self) -> bool:
        """Whether it names clusters, volumes, fleets or losses, or what only these have."""
        rows = (self.cluster, self.volume, self.loss)
        arms = (arm.volume or arm.owner or not (arm.aligned and arm.disk) for arm in self.arm)
        fleets = (load.is_fleet for load in self.workload)
        return any(rows) or any(arms) or any(fleets) or any(disk.count > 1 for disk in self.disk)

    @property
    def witness_redundancy(self) -> str | None:
        """Redundancy of the storage account of all cloud witnesses; None where no cluster has one.

        LRS, and ZRS where nodes of a cluster are in several zones ("Deploy a quorum witness",
        windowsserverdocs, read 2026-11-22).
        """
        clusters = [item for item in self.cluster if item.witness == "cloud"]
        zones = [{self.machine_named(name).zone for name in item.nodes} for item in clusters]
        return ("ZRS" if any(len(each) > 1 for each in zones) else "LRS") if clusters else None

    @property
    def zone_redundant_arms(self) -> frozenset[str]:
        """Arms on zone-redundant disks, which answer from a zone that Azure does not tell."""
        zone_redundant = {disk.name for disk in self.disk if disk.sku.endswith("_ZRS")}
        return frozenset(arm.name for arm in self.arm if self.disk_of(arm).name in zone_redundant)


def _of_pool(disk: Disk, machine: Machine, number: int) -> Disk:
    """One disk of a machine's pool, in the machine's zone where the disk names none."""
    zone = disk.zone if disk.zone or disk.sku.endswith("_ZRS") else machine.zone
    name = f"{disk.name}-{machine.name}-{number}"
    return disk.model_copy(update={"name": name, "count": 1, "zone": zone})
