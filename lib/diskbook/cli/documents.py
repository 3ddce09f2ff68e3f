"""What commands print with --json: one record each, whose keys stay; docs/reference/json.md lists them.

Units stand in the names (`_s`, `_ms`, `_iops`, `_mb_s`, `_usd`), times are ISO 8601 in UTC. A key may be
added; where one goes or means something else, the number behind the command's name in `schema` goes up.
"""

import json
import math
from typing import Annotated, Any, ClassVar

from pydantic import AliasPath, BaseModel, BeforeValidator, ConfigDict, Field

from diskbook.facts.table_writers import rounded


def _number(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


Number = Annotated[float | None, BeforeValidator(_number)]
"""A number, or null where there is none; JSON has no NaN."""


class Record(BaseModel):
    """Keys and values of a part of a document."""

    model_config = ConfigDict(extra="forbid", frozen=True, from_attributes=True, populate_by_name=True)


class Document(Record):
    """All that a command prints."""

    COMMAND: ClassVar[str]
    VERSION: ClassVar[int] = 1

    def __init_subclass__(cls, *, command: str) -> None:
        cls.COMMAND = command

    @classmethod
    def schema_name(cls) -> str:
        """Command and version, as the key `schema` names them."""
        return f"diskbook/{cls.COMMAND}/{cls.VERSION}"

    @property
    def text(self) -> str:
        """The document as JSON text."""
        content = {"schema": self.schema_name(), **rounded(self.model_dump(mode="json"))}
        return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)


class ScenarioRow(Record):
    """A scenario that comes with the workbook."""

    scenario: str
    question: str = Field(description="what its runs answer")
    n_arms: int = Field(validation_alias="arms")
    n_workloads: int = Field(validation_alias="workloads")
    region: str


class RunRow(Record):
    """A run in the run folder."""

    run: str
    scenario: str
    preset: str
    provenance: str = Field(description="azure, emulated, inventory, imported")
    state: str = Field(description="measured or unfinished")
    begun_utc: str
    answer: str = Field(description='the answer in a sentence; "" before the analysis')
    report: str = Field(description='path of report.html; "" where there is none')
    standing: str = Field(description='what stands, and until when; "" where nothing does')


class Overview(Document, command="list"):
    """Scenarios, emulator profiles and runs."""

    scenarios: list[ScenarioRow]
    profiles: list[str] = Field(description="of the emulator")
    runs: list[RunRow]
    unreadable: list[str] = Field(description="a sentence for each run that cannot be read")


class CellRow(Record):
    """What holds one arm under one workload."""

    arm: str
    workload: str
    verdict: str = Field(
        description="throttled, credit ran out, saturated, limit not known, perhaps, unknown, not throttled"
    )
    cause: str
    remedy: str = Field(description='"" where there is none')
    iops: Number = Field(description="median of the trials")
    mb_s: Number = Field(description="median, in 10^6 bytes/s")
    lat_mean_ms: Number = Field(description="mean latency, median of the trials")
    platform: str = Field(description="evidence of the platform's metrics, or why there is none")


class Why(Document, command="why"):
    """What throttles the cells of a run."""

    run: str
    provenance: str
    doubts: list[str] = Field(description="what speaks against the numbers, a sentence each")
    cells: list[CellRow]


class PointRow(Record):
    """A point of the protocol that a comparison lacks."""

    number: int = Field(validation_alias=AliasPath("point", "number"))
    name: str = Field(validation_alias=AliasPath("point", "name"))
    why: str = Field(validation_alias=AliasPath("answer", "why"))
    remedy: str = Field(validation_alias=AliasPath("answer", "remedy"))


class ComparisonRow(Record):
    """A comparison, judged by the protocol."""

    arm: str
    base_arm: str
    workload: str
    metric: str
    family: str
    closed: bool = Field(validation_alias="is_closed")
    missing: list[PointRow]


class Protocol(Document, command="why-protocol"):
    """What the comparisons of a run lack of docs/reference/protocol.md."""

    run: str
    provenance: str
    comparisons: list[ComparisonRow]


class Compared(Record):
    """What tells a comparison."""

    arm: str
    base_arm: str
    workload: str
    direction: str
    metric: str


class Judged(Compared):
    """A row of comparisons.csv: a ratio, in one scope."""

    scope: str
    family: str
    ratio: Number
    ci_low: Number
    ci_high: Number
    level: Number = Field(description="of the interval, 0.95 for 95 %")
    p_adjusted: Number
    diff_ms: Number
    diff_low_ms: Number
    diff_high_ms: Number
    n_replicates: int
    n_blocks: int
    verdict: str


class Report(Document, command="report"):
    """The analysed run: its answer, its comparisons, its report."""

    run: str
    provenance: str
    answer: str
    protocol: str = Field(description='whether the headline comparisons are closed; "" where none is named')
    report: str = Field(description="path of report.html")
    comparisons: list[Judged]


class Tables(Document, command="tables"):
    """Tables that were rebuilt, with their number of rows."""

    run: str
    n_trials: int = Field(description="rows of trials")
    n_bins: int = Field(description="rows of bins")
    n_series: int = Field(description="rows of series")


class Import(Document, command="import"):
    """What was imported, or would be."""

    run: str
    written: bool = Field(description="false with --dry-run")
    arms: dict[str, int] = Field(description="measurements of each arm")
    n_measurements: int
    remarks: list[str] = Field(description="what must be known of the measurements")
    not_used: list[str] = Field(description="what was left out, and why")
    paths_read_as: list[str] = Field(description="how paths were read")
    report: str = Field(description='path of report.html, with --report; else ""')


class GroupRow(Record):
    """A resource group that a run left behind, or that only looks like one."""

    cloud: str
    group: str
    run: str = Field(description='"" where its tags are not those of a run')
    expires_utc: str
    holds: str
    state: str
    goes: bool = Field(description="whether --delete deletes it")


class LeftoverRow(Record):
    """Something left on this computer."""

    what: str = Field(validation_alias="text")
    goes: bool


class Sweep(Document, command="sweep"):
    """What runs have left; with --delete before it is deleted."""

    groups: list[GroupRow]
    here: list[LeftoverRow]
    notes: list[str] = Field(description="what could not be looked at")
    n_to_go: int
    not_deleted: list[str] = Field(description="with --delete: what was left, and why")


class StoredRow(Record):
    """A run in a store, read whole."""

    name: str
    files: int = Field(description="files compared with their hashes, of all its states")
    size: int = Field(description="bytes of them")
    state: str = Field(description="whole, cut off, or who works on it")
    unused: int = Field(description="objects left by copies that were cut off; no fault")
    faults: list[str]


class Verify(Document, command="verify"):
    """The files of a store, each compared with its hash."""

    runs: list[StoredRow]
    n_faults: int


class ComparedRun(Record):
    """A run that was compared; its keys are those of the table."""

    letter: str = Field(description="A is the run that the others are compared with")
    Run: str
    Provenance: str
    Measured: str = Field(description="hours in which it was measured")
    Replicates: int


class ChangedRow(Record):
    """What is not the same in all runs."""

    kind: str
    what: str
    values: dict[str, str] = Field(description="by run")


class PairRow(Compared):
    """A comparison in two runs."""

    family: str
    first_run: str
    run: str
    scope: str
    first_ratio: Number
    first_ratio_low: Number
    first_ratio_high: Number
    first_n_replicates: int
    first_n_blocks: int
    ratio: Number
    ratio_low: Number
    ratio_high: Number
    n_replicates: int
    n_blocks: int
    ratio_of_ratios: Number = Field(description="ratio of run / ratio of first_run")
    low: Number
    high: Number
    level: Number = Field(description="of the interval, 0.95 for 95 %")
    p: Number = Field(description="of: the ratios are one")
    p_adjusted: Number = Field(description="among all that were compared")
    verdict: str = Field(description='"" where none may be given')
    notes: str = Field(description="why, and what would help")
    provenance: str


class SpreadRow(Compared):
    """Spread of a comparison between three runs or more."""

    sd: Number = Field(description="standard deviation of log ratios between runs")
    low: Number
    high: Number
    p: Number = Field(description="of: all runs share one ratio")
    n_runs: int
    has_disks: bool = Field(description="whether the difference between disks is in it")


class LeftOutRow(Record):
    """What asked another question."""

    run: str
    what: str
    why: str


class FailOver(Record):
    """The outcome of --fail-over."""

    exit_code: int
    words: str


class Compare(Document, command="compare"):
    """Runs compared with the first of them."""

    provenance: str
    runs: list[ComparedRun]
    changed: list[ChangedRow]
    comparisons: list[PairRow]
    between_runs: list[SpreadRow]
    left_out: list[LeftOutRow]
    fail_over: FailOver | None = Field(description="null without --fail-over")


class OverRunsRow(Compared):
    """A comparison in all runs of a kind: provenance, scope and stratum."""

    family: str
    provenance: str
    scope: str
    stratum: str = Field(description='from where zone-redundant disks answer; "" where that is not known')
    n_runs: int
    n_without_ratio: int = Field(description="runs whose ratio is withheld, by a cap or a gate")
    verdicts: dict[str, int] = Field(description="runs by the verdict of their own analysis")
    ratio_median: Number = Field(description="median of the ratios of the runs; no run is pooled")
    ratio_smallest: Number
    smallest_run: str
    ratio_largest: Number
    largest_run: str
    log_sd: Number = Field(description="standard deviation of log ratios between runs; null of fewer than 3")
    log_sd_low: Number
    log_sd_high: Number
    p: Number = Field(description="of: all runs share one ratio; null where replicates say nothing about it")
    has_disks: bool = Field(description="whether the difference between disks is in log_sd")


class LeftOutRuns(Record):
    """What asked another question, or could not be read."""

    n_runs: int
    what: str
    why: str


class CompareRuns(Document, command="compare-scenario"):
    """One scenario over all its runs (`compare --scenario`)."""

    scenario: str
    provenance: str
    n_runs: int
    n_replicates: int
    first_day_utc: str
    last_day_utc: str
    comparisons: list[OverRunsRow]
    left_out: list[LeftOutRuns]


class Catalog(Document, command="catalog"):
    """The rebuilt catalogue, with its number of rows."""

    folder: str = Field(description="of the catalogue, or its address")
    n_runs: int
    n_comparisons: int = Field(description="rows: a comparison in one scope")
    n_trials: int = Field(description="rows: a trial in one direction")
    n_bins: int = Field(description="bins of latency histograms")
    left_out: list[str] = Field(description="runs that are not in it, and why")


class BatchPlanRow(Record):
    """A run of a batch, before it is begun."""

    run: str
    label: str
    state: str
    reason: str
    expected_usd: float
    seconds: float
    prices: str = Field(description="where they are from")


class BatchPlan(Document, command="batch-plan"):
    """What a batch would cost and take (`batch --dry-run`)."""

    batch: str
    runs: list[BatchPlanRow]
    expected_usd: float
    spent_usd: float
    limit_usd: Number = Field(description="null where there is none")
    fits: bool = Field(description="whether the limit allows all of it")
    seconds: float


class BatchRow(Record):
    """A run of a batch."""

    run: str
    folder: str = Field(description="of the run, or of what is here of a stored one, from the batch's folder")
    label: str
    scenario: str
    preset: str
    cloud: str
    emulator_profile: str | None
    settings: dict[str, Any]
    region: str
    provenance: str
    state: str
    reason: str
    answer: str
    report: str | None = Field(description="address from the batch's page; null where there is none")
    log: str | None
    still_stands: str
    expected_usd: float = Field(description="still to come")
    estimated_usd: float = Field(description="what the machines made so far were expected to cost")
    spent_usd: float
    seconds: float


class Batch(Document, command="batch"):
    """What a batch came to."""

    batch: str
    exit_code: int
    runs: int
    finished: int
    failed: int
    left: int
    limit_usd: Number = Field(description="null where there is none")
    spent_usd: float
    notebook: str | None = Field(description="the campaign's, from the batch's page; null until it is made")
    rows: list[BatchRow]


class EmulatorRow(Record):
    """An emulator of this user."""

    name: str
    state: str = Field(description="running, kept or dead")
    profile: str
    endpoint: str = Field(description='"" unless it runs')


class Emulators(Document, command="emulator-status"):
    """The emulators of this user."""

    emulators: list[EmulatorRow]


class CheckRow(Record):
    """What a run needs, and whether it is there."""

    name: str
    state: str = Field(description="ok, fails or not asked")
    text: str = Field(description="what was seen, or what is wrong with its remedy")


class Doctor(Document, command="doctor"):
    """Whether all is there that a run needs."""

    of: str = Field(description="what was looked at: scenario, preset and place")
    ok: bool
    checks: list[CheckRow]


class CostRow(Record):
    """Something that a run is billed for, all replicates."""

    what: str
    count: Number
    hours: Number = Field(description="null where it is billed by use")
    expected_usd: Number = Field(validation_alias="usd", description="null where no price is known")
    at_worst_usd: Number = Field(
        validation_alias="worst_usd", description="never torn down, until it expires"
    )


class NeedRow(Record):
    """One way to reach the precision or power that was asked for, for disks like these."""

    n_blocks: int = Field(validation_alias="blocks")
    n_replicates: int = Field(validation_alias="replicates")
    n_trials: int = Field(validation_alias="trials")
    total_s: float
    usd: float | None


class Plan(Document, command="plan"):
    """What a run would be: design, time, price, and how many replicates it needs."""

    scenario: str
    preset: str
    region: str
    n_replicates: int
    n_trials: int
    trials_s: float = Field(description="time of all trials")
    around_s: float = Field(description="machines, disks, fill, moves and teardown of a replicate, on Azure")
    expected_usd: Number = Field(description="null for hosts of one's own, which cost nothing there")
    at_worst_usd: Number
    prices: str = Field(description="where they are from")
    costs: list[CostRow]
    needs: list[NeedRow] = Field(description="with --half-width or --effect; else empty")
    words: str = Field(description="all that the command prints without --json")


class LimitRow(Record):
    """Limits of a VM size for one attachment and kind of disk (docs/reference/limits.md)."""

    schema_version: int
    size: str
    attachment: str = Field(description='SCSI or NVMe; "" where no page says it')
    disk_kind: str = Field(description="premium_ssd, premium_ssd_host_cache, premium_ssd_v2_or_ultra")
    iops: Number = Field(description="null where it is unknown")
    mb_s: Number
    burst_iops: Number
    burst_mb_s: Number
    source: str
    licence: str = Field(description='of the source; "none" where it states none')
    read_on: str
    note: str


class SeenCap(Record):
    """A cap that others saw on a VM size (docs/reference/public-data.md)."""

    size: str
    what: str = Field(description="which of its disks, and how it was reached")
    rate: str
    documented: str = Field(description="empty where no limit is known")
    machines: Number = Field(description="null where it is not told")
    date: str
    source: str


class Limits(Document, command="limits"):
    """Documented disk limits of a VM size, and the caps that others saw."""

    rows: list[LimitRow]
    seen: list[SeenCap] = Field(description="measured by others")


class NeededRow(Record):
    """What is needed."""

    peak_iops: Number
    mean_iops: Number
    block_bytes: Number = Field(description="mean size of an I/O")
    peak_mb_s: Number
    read_share: Number
    size_gib: int
    survive: str = Field(description="none, machine or zone")
    region: str
    os: str


class CandidateRow(Record):
    """A machine with its disks that carries the need."""

    candidate: str = Field(description="as --why and --current read it")
    usd_per_month: Number = Field(description="list price")
    priced_from: str = Field(description='date of the oldest price of the sum; "" where none has a date')
    priced_to: str
    inferred: bool = Field(description="whether a price of the sum is inferred")
    lasting_iops: Number = Field(description="rate of the need's block size that takes no credit")
    headroom: Number = Field(description="smallest limit over the highest rate, minus 1")
    binds: str
    burst_iops: Number
    burst_s: Number = Field(description="how long a burst lasts from full credit; null: without end")
    drawn_share: Number = Field(description="most of the credit that the load draws")
    least_outstanding: Number = Field(description="I/Os in flight that the highest rate takes at least")
    survives: str
    latency: str = Field(description="what is measured of the latency")
    front: bool = Field(description="whether nothing cheaper lasts at as high a rate and survives as much")


class ExplainedRow(Record):
    """A candidate that was asked for."""

    name: str = Field(description="why or current")
    candidate: str
    limits: list[str] = Field(description="a sentence per limit")


class Choose(Document, command="choose"):
    """Machines and disks that carry a load, cheapest first."""

    need: NeededRow
    trace: list[str] = Field(description="what was recorded, a line each")
    clipped: str = Field(description='why the demand may be higher than recorded; "" where nothing shows it')
    candidates: list[CandidateRow]
    n_sizes: int
    n_sets: int
    price_unknown: list[str] = Field(description="other sizes that carry it, without a price")
    nearest: str = Field(description='what can be had, where nothing carries it; else ""')
    explained: list[ExplainedRow]
    prices: str
    plan: str = Field(description='command that would measure the choice; "" without one')
    search_s: Number


DOCUMENTS = (
    Overview,
    Plan,
    Limits,
    Choose,
    Doctor,
    Why,
    Protocol,
    Report,
    Tables,
    Import,
    Sweep,
    Verify,
    Compare,
    CompareRuns,
    Catalog,
    BatchPlan,
    Batch,
    Emulators,
)
