"""Write the table of docs/how-to/measure-zrs.md: what one, three and five replicates take, cost and tell."""

from collections.abc import Iterator

from checks import markdown
from diskbook.cloud.azure import preflight
from diskbook.cloud.azure.offers import Region
from diskbook.design import scenario_file
from diskbook.design.model import Scenario
from diskbook.facts import paths
from diskbook.facts.units import duration, percent
from diskbook.measure.plan import sample_size
from diskbook.stats import power

PAGE = paths.ROOT / "docs" / "how-to" / "measure-zrs.md"
REPLICATES = (1, 3, 5)
COLUMNS = (
    *("Scenario", "Replicates", "Time", "USD", "vCPUs", "Addresses"),
    *("These disks", "Disks like these", "With slow pairs"),
)
SCENARIOS = ("zone-disks", "shared-zrs")


def table() -> str:
    """One row per scenario and number of replicates."""
    scenarios = [scenario_file.load(name, scenario_file.ANSWER) for name in SCENARIOS]
    return markdown(COLUMNS, [row for scenario in scenarios for row in _rows(scenario)])


def _rows(scenario: Scenario) -> Iterator[list[str]]:
    (evidence,) = sample_size.from_assumed(scenario, None, None)
    slow = evidence.with_slow_pairs
    assert slow is not None  # the spread is that of public measurements
    blocks = sample_size.planned_blocks(scenario)
    for number in REPLICATES:
        way = sample_size.way_of(scenario, number, blocks)
        quota = preflight.needed(scenario, Region(scenario.region))[preflight.CORES] * number
        these = power.half_width_within(evidence.spread.sd_block, number, blocks, evidence.spread.df_block)
        spreads = (evidence.spread, slow) if number > 1 else ()
        like = [power.half_width_of(item.sd_replicate(blocks), number) for item in spreads]
        widths = [f"±{percent(width)}" for width in (these, *like)] + ["nothing"] * (2 - len(like))
        taken = duration(way.replicate_s), f"{way.usd:.2f}", quota, number * len(scenario.machine)
        cells = (f"`{scenario.name}`", number, *taken, *widths)
        yield [str(cell) for cell in cells]
