"""What a campaign of a thousand runs takes, by the numbers that `diskbook plan` and `diskbook batch` go by.

`make format` writes its tables into docs/how-to/campaign.md, for the
batch of docs/how-to/campaign.toml; a test compares. No network is asked: prices are those of the dated table.
"""

import heapq
import math
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from checks import campaign_requests as requests, markdown
from checks.campaign_requests import RESOURCE_MANAGER, Bucket, Requests
from diskbook.batch import price as prices
from diskbook.batch.batch_run import Asked, Item
from diskbook.batch.status import Standing, State
from diskbook.cloud.azure import preflight
from diskbook.cloud.azure.offers import Region
from diskbook.cost import estimate
from diskbook.cost.estimate import MARGIN
from diskbook.design import azure_rules, scenario_file
from diskbook.design.model import Scenario
from diskbook.facts import catalog, paths
from diskbook.facts.arm import POLICIES
from diskbook.facts.prices import from_table, table as price_table
from diskbook.facts.units import duration
from diskbook.measure.plan import sample_size

PAGE = paths.ROOT / "docs" / "how-to" / "campaign.md"
BATCH = paths.ROOT / "docs" / "how-to" / "campaign.toml"
REGION = "scenario.region"
MINUTE_S = 60.0


@dataclass(frozen=True, eq=False)  # told apart by what they are, not by all that they hold
class Part:
    """A scenario of the campaign in one region, and what one run of it takes there."""

    scenario: Scenario
    price: prices.Price
    requests: Requests
    refusal: str
    """Why `diskbook batch` refuses such a run so far; empty where it does not."""

    @property
    def region(self) -> str:
        """Where it is."""
        return self.scenario.region

    @cached_property
    def need(self) -> Mapping[str, int]:
        """vCPUs that a run takes of each quota, all replicates at a time."""
        need = preflight.needed(self.scenario, Region(self.region))
        replicates = self.scenario.design.replicates
        return {name: number * replicates for name, number in need.items() if name not in preflight.ADDRESSES}

    @property
    def moves_a_minute(self) -> float:
        """Attachments and detachments of a run in a minute of its machines' life."""
        return self.requests.moves / (self.price.seconds / MINUTE_S)


@dataclass(frozen=True, eq=False)
class Campaign:
    """All runs of a batch in order, each by its part, and how many run at once."""

    runs: tuple[Part, ...]
    jobs: int
    limit_usd: float

    @property
    def parts(self) -> list[Part]:
        return list(dict.fromkeys(self.runs))

    @property
    def allowed(self) -> "Campaign":
        """The same of those regions that the batch takes so far."""
        return Campaign(tuple(run for run in self.runs if not run.refusal), self.jobs, self.limit_usd)

    @property
    def usd(self) -> float:
        return math.fsum(run.price.expected_usd for run in self.runs)

    def requests(self, name: str) -> int:
        """Requests of one kind, or in all."""
        return sum(getattr(run.requests, name) for run in self.runs)

    @cached_property
    def schedule(self) -> "Schedule":
        """When each runs."""
        return schedule(self.runs, self.jobs)


@dataclass(frozen=True)
class Schedule:
    """How long all runs take, and the most of each quota at one time: by region, and of vCPUs anywhere."""

    seconds: float
    most: Mapping[tuple[str, str], int]
    in_all: int


def schedule(runs: Sequence[Part], jobs: int) -> Schedule:
    """Start runs in order, each when one of so many places is free, as `batch.loop` does."""
    ends: list[tuple[float, int]] = []
    taken: Counter[tuple[str, str]] = Counter()
    most: Counter[tuple[str, str]] = Counter()
    now = last = 0.0
    in_all = 0
    for number, run in enumerate(runs):
        if len(ends) == jobs:
            now, ended = heapq.heappop(ends)
            taken.subtract(_taken(runs[ended]))
        taken.update(_taken(run))
        most |= taken
        in_all = max(in_all, sum(count for (_, quota), count in taken.items() if quota == preflight.CORES))
        heapq.heappush(ends, (now + run.price.seconds, number))
        last = max(last, now + run.price.seconds)
    return Schedule(last, most, in_all)


def _taken(run: Part) -> dict[tuple[str, str], int]:
    return {(run.region, name): number for name, number in run.need.items()} | {(run.region, "runs"): 1}


def read(path: Path = BATCH) -> Campaign:
    """Read the batch, and price a run of each scenario and region.

    Regions that the table of regions lacks are planned as the others are: what they are known by is their
    price alone, which is then the dearest that is known.
    """
    raw = tomllib.loads(path.read_text("utf-8"))
    matrix = raw["matrix"]
    made = (
        part
        for scenario in matrix["scenario"]
        for preset in matrix["preset"]
        for part in _parts(scenario, preset, matrix[REGION])
    )
    by_key = {(part.scenario.name, part.scenario.preset, part.region): part for part in made}
    order = [by_key[values] for values in _combinations(matrix)]
    return Campaign(tuple(order), raw["jobs"], raw["max_cost_usd"])


def _combinations(matrix: Mapping[str, Sequence[Any]]) -> Iterator[tuple[str, str, str]]:
    """Scenario, preset and region of each run, the first key of the matrix turning slowest."""
    rows: list[dict[str, Any]] = [{}]
    for key, values in matrix.items():
        rows = [{**row, key: value} for row in rows for value in values]
    for row in rows:
        yield row["scenario"], row["preset"], row[REGION]


def _parts(name: str, preset: str, regions: Sequence[str]) -> Iterator[Part]:
    """A run of a scenario in each region; its seed changes the order of its trials only."""
    known = scenario_file.load(name, preset, asks_azure=True)
    sent, asked = requests.of_run(known), Asked(name, preset, "azure")
    for region in regions:
        scenario = known.model_copy(update={"scenario": known.scenario.model_copy(update={"region": region})})
        item = Item(f"{name}-{region}", asked, scenario)
        price = prices.pricing([item], None, ask=False)(item, Standing(State.NEW, scenario.design.replicates))
        yield Part(scenario, price, sent, "; ".join(map(str, azure_rules.check(scenario))))


# The page


def tables(campaign: Campaign) -> str:
    return "\n\n".join(part(campaign) for part in (_whole, _by_scenario, _buckets, _regions))


def _whole(campaign: Campaign) -> str:
    """The whole, for all regions and for those that can be asked for so far."""
    columns = [_of_whole(campaign), _of_whole(campaign.allowed)]
    heads = [
        f"all {_regions_of(campaign)} regions",
        f"the {_regions_of(campaign.allowed)} that it takes so far",
    ]
    return markdown(["", *heads], [[words, *(column[words] for column in columns)] for words in columns[0]])


def _of_whole(campaign: Campaign) -> dict[str, str]:
    """A column of it."""
    runs = campaign.runs
    return {
        "runs": f"{len(runs):,}",
        "trials": f"{sum(sample_size.trials(run.scenario) for run in runs):,}",
        f"time, {campaign.jobs} runs at once": _days(campaign.schedule.seconds),
        "time, one run after the other": _days(sum(run.price.seconds for run in runs)),
        "USD, expected": f"{campaign.usd:,.0f}",
        f"USD, with the margin of {100 * (MARGIN - 1):.0f} %": f"{campaign.usd * MARGIN:,.0f}",
        "runs at one time in a region, at most": f"{_most(campaign, 'runs')}",
        "vCPUs at one time in a region, at most": f"{_most(campaign, preflight.CORES)}",
        "vCPUs at one time in all regions": f"{campaign.schedule.in_all:,}",
        **{words: f"{campaign.requests(name):,}" for name, words in _KINDS.items()},
    }


_KINDS = {
    "total": "requests to Azure",
    "polls": "of these, polls of operations",
    "writes": "creates",
    "moves": "attach and detach",
}


def _regions_of(campaign: Campaign) -> int:
    return len({run.region for run in campaign.runs})


def _most(campaign: Campaign, quota: str) -> int:
    return max(number for (_, name), number in campaign.schedule.most.items() if name == quota)


def _days(seconds: float) -> str:
    return f"{seconds / 86_400:.1f} days" if seconds > 2 * 86_400 else duration(seconds)


def _by_scenario(campaign: Campaign) -> str:
    """One run of each scenario."""
    by_name: dict[str, list[Part]] = {}
    for part in campaign.parts:
        by_name.setdefault(part.scenario.name, []).append(part)
    rows = [_one_run(parts) for parts in by_name.values()]
    return markdown(list(rows[0]), [list(row.values()) for row in rows])


def _one_run(parts: Sequence[Part]) -> dict[str, str]:
    """A run of a scenario; its price depends on the region."""
    part, scenario = parts[0], parts[0].scenario
    quotas = [f"{count} {quota}" for quota, count in part.need.items() if quota != preflight.CORES]
    usd = sorted(other.price.expected_usd for other in parts)
    replicates = scenario.design.replicates
    return {
        "One run of": f"{scenario.name}, {scenario.preset}",
        "machines": f"{replicates * len(scenario.machine)}",
        "disks": f"{replicates * len(scenario.made_disks())}",
        "vCPUs, by quota": ", ".join(quotas),
        "machines live": duration(estimate.life_s(scenario)),
        "USD": f"{usd[0]:.2f} to {usd[-1]:.2f}",
        "requests": f"{part.requests.total:,}",
        "attach and detach": f"{part.requests.moves:,}",
    }


def _buckets(campaign: Campaign) -> str:
    """Documented buckets, what one run draws from them, and how many runs a minute that allows."""
    heads = [
        *("Bucket", "of", "holds", "refilled a minute", "drawn by a run in a minute, at most"),
        *("runs that fit into a minute", "of this batch, at most"),
    ]
    return markdown(heads, [*_compute_buckets(campaign), *_manager_buckets(campaign)])


def _compute_buckets(campaign: Campaign) -> Iterator[list[str]]:
    """Azure Compute's, which are a region's."""
    machines = max(_machines(part) for part in campaign.parts)
    drawn = {
        "PutVM": machines,
        "GetOperation": machines * requests.polls(MINUTE_S, requests.NAMED_S),
        "AttachDetachVMDisks": math.ceil(max(part.moves_a_minute for part in campaign.parts)),
        "DeleteVM": machines,
    }
    for name, number in drawn.items():
        rate = POLICIES[name].subscription
        bucket = Bucket(f"{name}, Compute", rate.capacity, rate.refill / MINUTE_S)
        yield _bucket(bucket, "a subscription in a region", number, _most(campaign, "runs"))


def _manager_buckets(campaign: Campaign) -> Iterator[list[str]]:
    """Resource Manager's, which are a sign-in's; a run draws most in its first minute."""
    drawn: Counter[str] = Counter({"deletes": 1})
    for part in campaign.parts:
        made = requests.creating(part.scenario)
        writes = sum(count for kind, count in made.items() if kind.startswith("PUT"))
        polls = _machines(part) * requests.polls(MINUTE_S, requests.NAMED_S)
        drawn |= Counter({"writes": writes, "reads": made.total() - writes + polls})
    for bucket in RESOURCE_MANAGER:
        named = replace(bucket, name=f"{bucket.name}, Resource Manager")
        yield _bucket(named, "a sign-in in a region", drawn[bucket.name], campaign.jobs)


def _bucket(bucket: Bucket, of: str, drawn: int, runs: int) -> list[str]:
    refill = bucket.refill_per_s * MINUTE_S
    fit = int((bucket.capacity + refill) / drawn)
    most = f"{runs}" if runs <= fit else f"**{runs}**"
    return [bucket.name, of, f"{bucket.capacity:,.0f}", f"{refill:,.0f}", f"{drawn:,}", f"{fit:,}", most]


def _machines(part: Part) -> int:
    return part.scenario.design.replicates * len(part.scenario.machine)


def _regions(campaign: Campaign) -> str:
    """What the tables of this workbook know of each region; those of which they know the same in one row."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for name in dict.fromkeys(part.region for part in campaign.parts):
        alike.setdefault(_of_region(campaign, name), []).append(name)
    heads = ["Regions", "zones", "Premium ZRS", "the batch takes them", "prices", "USD, each"]
    return markdown(heads, [[", ".join(names), *facts] for facts, names in alike.items()])


def _of_region(campaign: Campaign, name: str) -> tuple[str, ...]:
    parts = [part for part in campaign.parts if part.region == name]
    region = catalog.regions().get(name)
    usd = math.fsum(run.price.expected_usd for run in campaign.runs if run.region == name)
    zones, redundant = "not in the table", "not in the table"
    if region is not None:
        zones, redundant = f"{len(region.zones)}", "yes" if "Premium_ZRS" in region.zrs_skus else "no"
    return zones, redundant, _allowed(parts), _priced(parts), f"{usd:,.0f}"


def _allowed(parts: Sequence[Part]) -> str:
    refused = [part.scenario.name for part in parts if part.refusal]
    if not refused:
        return "yes"
    return "no" if len(refused) == len(parts) else f"not {', '.join(refused)}"


def _priced(parts: Iterable[Part]) -> str:
    """How many prices of a region were read, and as of when; of the others where they are from."""
    region = next(iter(parts)).region
    meters = list(dict.fromkeys(meter for part in parts for meter in estimate.meters(part.scenario)))
    own = price_table().get(region, {})
    listed = from_table(region, meters, price_table()).prices
    read = [own[meter] for meter in meters if meter in own and own[meter].quality == "read"]
    inferred = sum(meter in own and own[meter].quality != "read" for meter in meters)
    elsewhere = sum(meter in listed and meter not in own for meter in meters)
    dates = sorted({price.as_of for price in read if price.as_of})
    when = f" of {dates[0]} to {dates[-1]}" if dates else ""
    words = [
        f"{len(read)} read{when}" if read else "",
        f"{inferred} inferred" if inferred else "",
        f"{elsewhere} of the dearest other region" if elsewhere else "",
    ]
    return ", ".join(filter(None, words))
