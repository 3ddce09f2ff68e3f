"""How much real Azure varies, from the component tables: for the notebook `7-real-noise`."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from diskbook.cost import estimate
from diskbook.design.model import Scenario
from diskbook.design.vocabulary import Provenance
from diskbook.facts import noise_series, paths
from diskbook.facts.units import percent
from diskbook.importing.noise import figures
from diskbook.report.figures.style import Picture
from diskbook.report.show.html import Html, table
from diskbook.results.run import folder_of
from diskbook.stats import power

PUBLISHED = f"{Provenance.IMPORTED}: Azure, published by Microsoft (CC-BY-4.0)"
IMPORTED = "azure, imported"
POWER = 0.8
REGIONS = {"eastus": "East US", "westus2": "West US 2"}
PER_CELL = ("nugget", "run", "run-robust", "day", "week", "long-vm", "fresh", "fresh-robust", "calendar-day")
SLOW = {
    "median-iops": "median rate, IOPS",
    "slow-runs-10": "runs over 10 % slower",
    "slow-runs-50": "runs over 50 % slower",
    "slow-pairs-10": "fresh pairs over 10 % slower than the day's median",
    "slow-pairs-20": "fresh pairs over 20 % slower",
    "level-shifts": "level shifts over 3 %, per machine and month",
}


@dataclass(frozen=True)
class Noise:
    """The tables of one source: components and shares as frames, and where they are from."""

    components: pd.DataFrame
    shares: pd.DataFrame
    provenance: str
    source: str

    @property
    def latency(self) -> pd.DataFrame:
        """Components of remote disks, one I/O at a time: the only cells whose rate is a latency."""
        frame = self.components
        return frame[(frame["operation"] == noise_series.LATENCY) & (frame["place"] == "remote")]

    @property
    def spreads(self) -> Picture:
        """Components with their intervals."""
        return figures.spreads(self.latency, self.source, self.provenance)

    @property
    def apart(self) -> Picture:
        """Two runs of one machine, by the hours between them."""
        return figures.apart(self.latency, self.source, self.provenance)


def read(name: str = "") -> Noise:
    """Read the tables: those of data/reference, or of a folder that `diskbook import --dataset` made.

    Raises DiskbookError when a table is missing or damaged.
    """
    folder = folder_of(name) if name else paths.REFERENCE
    rows = noise_series.components(Path(folder) / noise_series.COMPONENTS)
    shares = noise_series.shares(Path(folder) / noise_series.SHARES)
    components, rates = (pd.DataFrame([asdict(row) for row in part]) for part in (rows, shares))
    provenance = str(Provenance.IMPORTED) if IMPORTED in rows[0].source else PUBLISHED
    return Noise(components, rates, provenance, noise_series.attribution([*rows, *shares]))


def spreads_table(data: Noise) -> Html:
    """Components of the latency-bound cells, one column a machine size and region."""
    latency = _in_order(data.latency)
    rows = []
    for name in PER_CELL:
        part = latency[latency["component"] == name]
        cells = {_head(row): _interval(row) for row in part.to_dict("records")}
        rows.append({"Component": noise_series.WORDS[name], **cells})
    frame = pd.DataFrame(rows).fillna("")
    caption = f"Standard deviations of the rate in percent, with 95 % intervals ({data.provenance})"
    return table(frame, caption)


def _in_order(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows by machine size and region, in the order of the figures."""
    known = [cell for cell in figures.LOOKS if cell in set(zip(frame["size"], frame["region"], strict=True))]
    place = {cell: number for number, cell in enumerate(known)}
    order = [place.get(cell, len(place)) for cell in zip(frame["size"], frame["region"], strict=True)]
    return frame.iloc[pd.Series(order).argsort(kind="stable")]


def _head(row: Mapping[Any, Any]) -> str:
    return f"{row['size']}, {REGIONS.get(row['region'], row['region'])}"


def _interval(row: Mapping[Any, Any]) -> str:
    value, low, high = (f"{100 * row[name]:.2g}" for name in ("sd_log", "ci_low_log", "ci_high_log"))
    return f"{value} ({low} to {high})"


def kinds_table(data: Noise) -> Html:
    """What each cell shows: a cap, credit, the page cache, or a latency; and how much single runs vary."""
    runs = data.components[data.components["component"] == "run"]
    rows: list[dict[str, Any]] = []
    for (operation, place, size), part in runs.groupby(["operation", "place", "size"], sort=False):
        low, high = 100 * part["sd_log"].min(), 100 * part["sd_log"].max()
        words = " or ".join(dict.fromkeys(noise_series.KINDS[kind] for kind in part["kind"]))
        rows.append(
            {
                "Load": figures.LOADS.get(str(operation), str(operation)),
                "Disk": "Premium SSD v2" if place == "remote" else "Premium SSD (local)",
                "Machine": size,
                "Runs": int(part["n"].sum()),
                "S.d. of runs, %": f"{low:.2g} to {high:.2g}"
                if f"{low:.2g}" != f"{high:.2g}"
                else f"{low:.2g}",
                "Shows": words,
            }
        )
    rows.sort(key=lambda row: str(row["Shows"]))
    return table(rows, f"What was measured, and what it can show ({data.provenance})")


def slow_table(data: Noise) -> Html:
    """Rates, and shares of slow runs and slow fresh pairs, of the latency-bound cells."""
    frame = data.shares
    chosen = _in_order(frame[(frame["operation"] == noise_series.LATENCY) & (frame["place"] == "remote")])
    rows = []
    for name, words in SLOW.items():
        part = chosen[chosen["quantity"] == name]
        if len(part):
            rows.append({"": words, **{_head(row): _share(row) for row in part.to_dict("records")}})
    return table(pd.DataFrame(rows).fillna(""), f"Slow runs, slow pairs and shifts ({data.provenance})")


def _share(row: Mapping[Any, Any]) -> str:
    if row["unit"] != "share":
        return f"{row['value']:,.4g}"
    value = percent(row["value"], ".2g")
    if pd.isna(row["ci_low"]):
        return value
    return f"{value} ({100 * row['ci_low']:.2g} to {100 * row['ci_high']:.2g})"


def pairs_table(scenario: Scenario, blocks: int) -> Html:
    """Tabulate how many pairs it takes to find a difference, and their cost; power 80 %, two-sided 5 %.

    The numbers follow from the spreads to plan with (`diskbook.stats.power`). Those of fresh machines are
    resampled from real runs. A replicate of the scenario is priced with so many blocks of each workload.
    """
    priced = estimate.another_replicate(_with_blocks(scenario, blocks), Provenance.AZURE)
    rows: dict[str, dict[str, str]] = {}
    for row in noise_series.pairs():
        spread = "" if row.sd_log is None else f" (s.d. {percent(row.sd_log)})"
        cells = rows.setdefault(f"{row.size}, {row.case}{spread}", {})
        low, high = row.pairs_low, row.pairs_high
        if row.sd_log is not None:
            low = high = power.for_power(row.sd_log, row.effect_pct / 100, POWER)
        cells[f"{row.effect_pct:g} %"] = _pairs(low, high, priced.usd)
    frame = pd.DataFrame([{"Pairs on": name, **cells} for name, cells in rows.items()])
    each = "" if priced.usd is None else f", {priced.usd:.2f} USD,"
    caption = f"Pairs for a difference of that size. One replicate of {scenario.name}{each} {priced.basis}"
    return table(frame, caption)


def _pairs(low: int, high: int | None, usd: float | None) -> str:
    number = f"{low}" if low == high else f"{low} or more" if high is None else f"{low} to {high}"
    if usd is None:
        return f"{number} (price unknown)"
    dollars = f"{low * usd:,.0f}" if low == high or high is None else f"{low * usd:,.0f} to {high * usd:,.0f}"
    return f"{number} ({dollars} USD{' or more' if high is None else ''})"


def _with_blocks(scenario: Scenario, blocks: int) -> Scenario:
    loads = tuple(item.model_copy(update={"blocks": blocks}) for item in scenario.workload)
    return scenario.model_copy(update={"workload": loads})


def sentences(data: Noise) -> list[str]:
    """What the tables say, in sentences made from their numbers, of the size that plans stand on."""
    frame, shares = data.latency, data.shares
    own = frame[frame["size"] == noise_series.PLANNED_SIZE].set_index("component")["sd_log"]
    remote = (shares["size"] == noise_series.PLANNED_SIZE) & (shares["place"] == "remote")
    slow = shares[
        remote & (shares["quantity"] == "slow-pairs-10") & (shares["operation"] == noise_series.LATENCY)
    ]
    lines = []
    if {"run-robust", "week", "fresh-robust", "fresh"} <= set(own.index):
        lines.append(
            f"runs of one {noise_series.PLANNED_SIZE} vary by {_range(own, 'run-robust')} about the 25 "
            f"around them, its weeks by {_range(own, 'week')}; fresh machines of one day by "
            f"{_range(own, 'fresh-robust')} without slow ones, and by {_range(own, 'fresh')} with them"
        )
    if len(slow):
        low, high = (percent(value, ".1f") for value in (slow["value"].min(), slow["value"].max()))
        lines.append(
            f"{low} to {high} of fresh pairs are over 10 % slower than the day's median: of fewer than 5 "
            "pairs a slow one decides"
        )
    runs = data.components[data.components["component"] == "run"]
    capped = int((runs["sd_log"] < noise_series.ON_CAP_SD).sum())
    lines.append(
        f"{capped} of {len(runs)} cells sit on a cap (s.d. of runs under {percent(noise_series.ON_CAP_SD)}): "
        "they show the throttle, which is nearly constant, and nothing about the disk"
    )
    return lines


def _range(values: pd.Series, name: str) -> str:
    part = values.loc[[name]]
    low, high = (f"{100 * value:.2g}" for value in (part.min(), part.max()))
    return f"{low} %" if low == high else f"{low} to {high} %"
