"""What nobody has published: the questions of the five articles, and the run that would answer each."""

import pandas as pd

from diskbook.design import scenario_file, schedule
from diskbook.measure.plan import cost, sample_size
from diskbook.stats import expected

PRESET = "standard"
PUBLIC_DATA = {
    "zone-disks": "no: no raw results of Premium ZRS with repeats",
    "shared-zrs": "no: no raw results of shared disks",
    "disk-options": "in part: the burst cap of an E10; nothing with repeats on Premium SSD v2 or Ultra",
    "s2d-azure": "no: no raw results of a cluster",
    "nested-resiliency": "no: charts alone",
}
"""Whether public raw data answer the question of an article, as of 2026-11-22."""


def questions() -> pd.DataFrame:
    """Say for each article whether public raw data answer it, and what the run that would takes.

    Returns `article`, `question`, `public_raw_data`, `command`, `hours` (in all, on Azure), `usd` (list
    price).
    """
    return pd.DataFrame([_row(name, answered) for name, answered in PUBLIC_DATA.items()])


def _row(name: str, answered: str) -> dict[str, object]:
    hours, usd = takes(name)
    return {
        "article": name,
        "question": scenario_file.load(name, PRESET).scenario.question,
        "public_raw_data": answered,
        "command": f"diskbook run {name} --cloud azure --preset {PRESET}",
        "hours": round(hours, 1),
        "usd": round(usd),
    }


def takes(name: str, replicates: int | None = None) -> tuple[float, float]:
    """Plan a run of a scenario: hours in all on Azure, and its list price in USD.

    Raises UsageError when there is no such scenario.
    """
    settings = {} if replicates is None else {"design.replicates": replicates}
    scenario = scenario_file.load(name, PRESET, settings)
    apart_s = sample_size.around_s(scenario) + expected.seconds(scenario)  # per replicate, as the plan's text
    seconds = schedule.seconds(scenario) + scenario.design.replicates * apart_s
    return seconds / 3600, cost.creation(scenario).estimate.usd or 0.0
