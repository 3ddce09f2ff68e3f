"""The analysis of `disk-options`: predicted limits beside measured rates, and what nobody can use."""

import math
from typing import Any

import numpy as np
import pandas as pd

from diskbook.cost import estimate
from diskbook.design.model import Arm, Disk
from diskbook.design.series import diagnose
from diskbook.design.vocabulary import Label, Provenance
from diskbook.facts import disk_options, quantities
from diskbook.facts.prices import HOURS_A_MONTH, PriceList, from_table, table
from diskbook.report import figures
from diskbook.report.analysis import published, published_claims
from diskbook.report.analysis.companion_files import Section
from diskbook.report.analysis.run import Analysis, once
from diskbook.report.figures.credit import credit as draw_credit
from diskbook.report.figures.strip import drives as draw_drives
from diskbook.report.show import facts, sentences
from diskbook.report.show.html import Html, table as table_of
from diskbook.report.show.lead import comparison_in_words
from diskbook.stats import diagnosis, expected
from diskbook.stats.limits import BY_COLUMN, limit_words

ARTICLE = "disk-options"
PANELS: dict[str, tuple[str, str]] = {
    "max-write-iops": ("iops", "4K random writes, depth 512"),
    "max-throughput": ("mb_s", "128K random writes, depth 512"),
    "max-read-iops": ("iops", "4K random reads, depth 512"),
}
_SLUGS = {"max-write-iops": "drives", "max-throughput": "drives-throughput", "max-read-iops": "drives-reads"}
"""Names of the figures of these loads."""
BURST = "burst-until-dry"
WRITES: str = "max-write-iops"
SINGLE: str = "access-time"
SECTIONS = (
    Section("what each option buys", loads=(WRITES, SINGLE)),
    Section("access times", loads=(SINGLE,)),
    *(Section(f"the rates of {name}", loads=(name,)) for name in PANELS),
    Section("the end of a burst", loads=(BURST,)),
)
_KINDS = {"Premium_ZRS": "Premium ZRS", "Premium_LRS": "Premium LRS", "PremiumV2_LRS": "Premium v2"}


def predictions(a: Analysis) -> pd.DataFrame:
    """What should set the rate of every cell (`expected.predicted`)."""
    return expected.predicted(a.trials, on_demand(a))


def on_demand(a: Analysis) -> list[str]:
    """Arms whose disk bursts on demand, without credit."""
    return [arm.name for arm in a.scenario.arm if a.scenario.disk_of(arm).bursting]


def drives(a: Analysis) -> pd.DataFrame:
    """Cells of many I/Os in flight: predicted and measured rate, limit predicted and limit in the data."""
    labels = a.cells[["arm", "workload", "label", "binds", "limit", "limit_value", "rivals"]]
    cells = predictions(a).drop(columns=["limit", "limit_value"]).merge(labels, on=["arm", "workload"])
    cells = cells[cells["workload"].isin([*PANELS, BURST])]
    arms, loads = ([item.name for item in items] for items in (a.scenario.arm, a.scenario.workload))
    cells["place"] = cells["workload"].map(loads.index) * len(arms) + cells["arm"].map(arms.index)
    rows = []
    for row in cells.sort_values("place").to_dict("records"):
        kind = PANELS.get(row["workload"], ("iops",))[0]
        unit = "MB/s" if kind == "mb_s" else "IOPS"
        rows.append(
            {
                "Load": a.words[row["workload"]],
                "Drive": a.labels[row["arm"]],
                "Predicted limit": _by(row),
                "Predicted": _rate(row[f"predicted_{kind}"], unit),
                "Measured": _rate(row[f"measured_{kind}"], unit),
                "Ratio": row["ratio"],
                "In the data": _binding(row),
            }
        )
    return pd.DataFrame(rows)


def bought(a: Analysis) -> pd.DataFrame:
    """What each option buys: rate, latency and price of the drives of one machine, each with its limit.

    Drives of one kind stand together, that without options first. The price is that of the rate that lasts
    (`costs`).
    """
    machine = a.scenario.arm[0].machine
    arms = [arm for arm in a.scenario.arm if arm.machine == machine]
    kinds = list(dict.fromkeys(a.scenario.disk_of(arm).sku for arm in arms))
    arms.sort(key=lambda arm: _kind_and_options(a.scenario.disk_of(arm), kinds))
    prices = costs(a).set_index("Drive")
    rows = [_bought(a, arm, prices.loc[[a.labels[arm.name]]].iloc[0]) for arm in arms]
    return pd.DataFrame([row for row in rows if row])


def bought_table(a: Analysis) -> Html:
    """What each option buys, as the table that the header card leads with."""
    return table_of(*post_table(a))


def post_table(a: Analysis) -> tuple[pd.DataFrame, str]:
    """What each option buys, with its caption, as the table of a post (`diskbook.publish.post`)."""
    size = a.scenario.machine_named(a.scenario.arm[0].machine).size
    caption = f"What each option buys on {size}: rate, latency, price, each with its limit ({a.provenance})"
    return bought(a), caption


def _bought(a: Analysis, arm: Arm, price: pd.Series) -> dict[str, Any]:
    """Row of one drive; empty where it was not measured."""
    cells = a.cells[a.cells["arm"] == arm.name].set_index("workload")
    if not {WRITES, SINGLE} <= set(cells.index):
        return {}
    rate, single = cells.loc[[WRITES]].iloc[0], cells.loc[[SINGLE]].iloc[0]
    return {
        "Drive": a.labels[arm.name],
        "Option": option_words(a.scenario.disk_of(arm)),
        "4K writes, IOPS": rate["iops"],
        "Set by": rate["binds"] or rate["label"],
        "4K read at depth 1, ms": single["lat_mean_ms"],
        "By": _sets_latency(single, a.scenario.disk_of(arm)),
        "IOPS that last": price["IOPS that last"],
        "USD per month for them": price["USD per month at that rate"],
    }


def _sets_latency(cell: pd.Series, disk: Disk) -> str:
    """What a single read waits for: the disk or the host cache, or what else the cell's label says."""
    if cell["label"] != Label.BELOW_CAP:
        return str(cell["label"])
    return "the disk" if disk.cache == "None" else "host cache and disk"


def option_words(disk: Disk) -> str:
    """Kind of a disk and its options in words, e.g. "Premium ZRS 1,024 GiB, performance plus"."""
    kind = f"{_KINDS.get(disk.sku, disk.sku)} {disk.size_gib:,} GiB"
    return ", ".join([kind, *(_options(disk) or ["no option"])])


def _options(disk: Disk) -> list[str]:
    asked = {option: getattr(disk, option.name) for option in disk_options.OPTIONS}
    words = [option.words.format(f"{value:,}") for option, value in asked.items() if option.text(value)]
    words += ["label accelerated network"] * disk.accelerated_network
    return [*filter(None, words), *([] if disk.cache == "None" else [f"host cache {disk.cache}"])]


def _kind_and_options(disk: Disk, kinds: list[str]) -> tuple[int, int]:
    return kinds.index(disk.sku), len(_options(disk))


def access_times(a: Analysis) -> pd.DataFrame:
    """Latency at queue depth 1 of every drive, in ms."""
    cells = a.cells[a.cells["workload"] == SINGLE].set_index("arm")
    rows = [
        {
            "Drive": label,
            "Latency at depth 1, ms": cells.loc[arm, "lat_mean_ms"],
            "Trials": cells.loc[arm, "n_trials"],
        }
        for arm, label in a.labels.items()
        if arm in cells.index
    ]
    return pd.DataFrame(rows, columns=["Drive", "Latency at depth 1, ms", "Trials"])


@once
def _rates(a: Analysis) -> dict[str, figures.Picture]:
    cells = predictions(a)
    loads = {name: (_SLUGS[name], name, *PANELS[name]) for name in PANELS if name in set(cells["workload"])}
    return {name: draw_drives(a.trials, cells, a.looks, load, a.source) for name, load in loads.items()}


def rates(a: Analysis, workload: str = WRITES) -> figures.Picture | None:
    """Figure: rates of all trials of a workload and the predicted limits; None where it was not measured."""
    return _rates(a).get(workload)


@once
def access(a: Analysis) -> figures.Picture:
    """Figure: every trial of single reads."""
    return figures.strip(a.trials, a.looks, a.words, [SINGLE], _access_title(a), a.source)


def _access_title(a: Analysis) -> str:
    """Say what single reads take, of arms with a host cache and of others."""
    times = a.cells[a.cells["workload"] == SINGLE].set_index("arm")["lat_mean_ms"].dropna()
    cached = [arm.name for arm in a.scenario.arm if a.scenario.disk_of(arm).cache != "None"]
    parts = {
        "through the host cache": times[times.index.isin(cached)],
        "without it" if cached else "": times[~times.index.isin(cached)],
    }
    groups = [
        f"{quantities.reach(lat_ms.min(), lat_ms.max(), '.2f')} ms {how}".strip()
        for how, lat_ms in parts.items()
        if len(lat_ms)
    ]
    return f"Single reads take {', '.join(groups)}" if groups else "No single reads were measured"


@once
def burst(a: Analysis) -> figures.Picture:
    """Figure: the moment a burst credit runs out."""
    scale = a.scenario.scenario.emulated_credit_scale if a.provenance == Provenance.EMULATED else 1.0
    return draw_credit(a.trials, a.tables.series, a.looks, BURST, scale, a.source)


def pictures(a: Analysis) -> tuple[figures.Picture, ...]:
    """Figures of this analysis, in the order of the notebook."""
    load_curve = (a.load_curve,) if a.load_curve else ()
    return (*_rates(a).values(), access(a), *load_curve, a.ratios, burst(a))


def unusable(a: Analysis) -> list[str]:
    """Say of every disk that is paid for more than its machine lets through."""
    lines = []
    for arm in a.scenario.arm:
        spec, rows = a.scenario.disk_of(arm), a.trials[a.trials["arm"] == arm.name]
        if spec.iops is None or rows.empty:
            continue
        limits = {
            kind: _highest(rows, f"cap_{kind}_iops", f"cap_{kind}_burst_iops") for kind in ("disk", "vm")
        }
        if not limits["disk"] > limits["vm"]:
            continue
        base, size = rows["cap_vm_iops"].median(), a.scenario.machine_named(arm.machine).size
        best = a.cells.loc[a.cells["arm"] == arm.name, "iops"].max()
        lines.append(
            f"{a.labels[arm.name]}: of the {spec.iops:,} IOPS that are paid for, {size} lets through "
            f"{limits['vm']:,.0f} on credit and {base:,.0f} after it ({100 * base / spec.iops:.0f} %); "
            f"{best:,.0f} were measured"
        )
    return lines or ["every disk's limit lies within its machine's"]


def credit_words(a: Analysis) -> list[str]:
    """Say which credit the trials had, since all drives of a machine share its bucket."""
    states = a.trials.drop_duplicates("trial")["credit_state"].value_counts(sort=False)
    shares = (
        a.trials["credit_left_share"].dropna() if "credit_left_share" in a.trials else pd.Series(dtype=float)
    )
    least = (
        f"; least left at the start of a trial: {100 * shares.min():.0f} % of a bucket" if len(shares) else ""
    )
    return [
        "credit of the trials: " + ", ".join(f"{state} {number}" for state, number in states.items()) + least
    ]


def burst_words(a: Analysis) -> list[str]:
    """Say which credit the trials had, and what changed within those that burst until it is spent."""
    return [*credit_words(a), *facts.within(diagnosed(a))]


PAIRS = (("f-plus-label", "g-plus"), ("l-label", "h-plain"))
"""Arms that differ by the label alone; the article names its drives by their first letters."""


def label_claim(a: Analysis) -> list[str]:
    """Set the claim that the label lowers access times against the article's own table and this run."""
    printed = _printed_access_times()
    parts = []
    for names in PAIRS:
        labelled, plain = (printed[name[0].upper()] for name in names)
        change, (first, second) = quantities.change(labelled / plain), (a.labels.get(n, n) for n in names)
        parts.append(f"{labelled:g} ms on {first} against {plain:g} ms on {second} ({change})")
    lines = [f"published: {', but '.join(parts)}: the two pairs contradict each other"]
    flagged = {arm.name for arm in a.scenario.arm if a.scenario.disk_of(arm).accelerated_network}
    rows = sentences.chosen(a.comparisons[a.comparisons["workload"] == SINGLE])
    measured = rows[rows["arm"].isin(flagged) & (rows["family"] == "headline")].to_dict("records")
    return lines + [f"{row['provenance']}: {sentences.sentence(row, a.scenario)}" for row in measured]


def _printed_access_times() -> dict[str, float]:
    """Access times of the article by drive letter, in ms."""
    rows = published.read(ARTICLE)
    rows = rows[rows["metric"] == "access_time"]
    drives_of = rows["note"].str.extract(r"drive ([A-Z])")[0]
    return dict(zip(drives_of, rows["value"].astype(float), strict=True))


def diagnosed(a: Analysis) -> pd.DataFrame:
    """Time within the trials that burst until their credit is spent (`stats.series.diagnose`)."""
    trials = a.trials.loc[a.trials["workload"] == BURST, "trial"]
    return diagnose(a.tables.series[a.tables.series["trial"].isin(trials)])


def findings(a: Analysis) -> list[diagnosis.Finding]:
    """What holds every cell (`diagnosis.findings`)."""
    return diagnosis.findings(a.trials, a.tables.series, a.cells, on_demand(a))


def costs(a: Analysis) -> pd.DataFrame:
    """List prices of every drive, idle and at the rate that it sustains all month.

    What lasts is the base of disk and machine. With on-demand bursting the burst lasts as well, and the price
    at that rate includes the bill for every I/O above the base. The machine is not included.
    """
    prices = _prices(a)
    rows = []
    for arm in a.scenario.arm:
        trials = a.trials[a.trials["arm"] == arm.name]
        disk = a.scenario.disk_of(arm)
        idle = _number(estimate.month(disk, prices))
        lasting = _lasting_iops(trials, disk.bursting)
        billed = _burst_use(disk, lasting - _highest(trials, "cap_disk_iops"), prices)
        rows.append(
            {
                "Drive": a.labels[arm.name],
                "USD per month, idle": idle,
                "IOPS that last": lasting,
                "USD per month at that rate": idle + billed,
                "USD per month and 1,000 IOPS": 1000 * (idle + billed) / lasting,
                "Note": _note(disk, billed),
            }
        )
    return pd.DataFrame(rows)


def _note(disk: Disk, billed: float) -> str:
    if disk.ephemeral:
        return "comes with the machine, and goes with it"
    return f"includes {billed:,.0f} USD for I/Os above the base" if billed > 0 else ""


def _lasting_iops(rows: pd.DataFrame, on_demand: bool) -> float:
    """IOPS past the host cache that need no credit: the lower of the disk's and the machine's.

    Of a disk within the machine, which has no limit of its own, those of the machine's local path.
    """
    disk = _highest(rows, "cap_disk_iops", *(["cap_disk_burst_iops"] if on_demand else []))
    if math.isnan(disk):
        return _highest(rows, "cap_vm_cached_iops")
    return float(np.minimum(disk, _highest(rows, "cap_vm_iops")))  # not known where one of them is not


def _burst_use(disk: Disk, iops_above_base: float, prices: PriceList) -> float:
    """USD per month for on-demand bursting at a rate above the base; 0 for a disk without it."""
    if not disk.bursting:
        return 0.0
    price = prices.of("burst-transactions", disk.sku.partition("_")[2])
    each = math.nan if price is None else price.usd / 1e4
    return float(np.maximum(0.0, iops_above_base)) * 3600 * HOURS_A_MONTH * each


def price_source(a: Analysis) -> str:
    """Where the prices are from, their dates, and which are inferred."""
    prices = _prices(a)
    inferred = sorted(str(meter) for meter, price in prices.prices.items() if price.quality == "inferred")
    parts = [f"{prices.source}, {a.scenario.region}", *prices.notes]
    return "; ".join(parts + [f"inferred, not read: {', '.join(inferred)}"] * bool(inferred))


def _prices(a: Analysis) -> PriceList:
    disks = [
        meter for meter in estimate.meters(a.scenario) if not meter.kind.startswith(("vm-", "public-ip"))
    ]
    return from_table(a.scenario.region, disks, table())


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def claims_table(a: Analysis) -> Html:
    """The article's claims with verdicts and reasons, and what this run says of each."""
    judged = published_claims.judge(published.assess(published.read()))
    return published_claims.claims_of(judged, ARTICLE, answers(a), a.provenance)


def answers(a: Analysis) -> dict[str, str]:
    """What this run says of each claim, by the claim's first words."""
    lowest_v2 = comparison_in_words(a, "j-v2-8000", "h-plain", SINGLE)
    return {
        "the VM size caps": "; ".join(unusable(a)),
        "accelerated networking lowers": "; ".join(label_claim(a)[1:]) or "not compared",
        "Premium SSD v2 has the lowest": f"{_lowest(a)}; {lowest_v2}",
        "performance plus is free": _price_of_plus(a),
        "bursting and performance plus add up": "; ".join(
            (
                comparison_in_words(a, "e-burst-plus", "i-burst", "max-write-iops", "iops"),
                comparison_in_words(a, "e-burst-plus", "g-plus", "max-write-iops", "iops"),
            )
        ),
    }


def _lowest(a: Analysis) -> str:
    times = access_times(a).sort_values("Latency at depth 1, ms")
    if times.empty:
        return "not measured"
    first = times.iloc[0]
    return f"the lowest is {first['Latency at depth 1, ms']:.3f} ms of {first['Drive']}"


def _price_of_plus(a: Analysis) -> str:
    """List price of two drives that differ in performance plus alone."""
    month = costs(a).set_index("Drive")["USD per month, idle"]
    pair = [a.labels[name] for name in ("g-plus", "h-plain") if a.labels.get(name) in month.index]
    if len(pair) < 2:
        return "not compared"
    return " and ".join(f"{name} costs {month[name]:,.2f} USD per month" for name in pair)


def _highest(rows: pd.DataFrame, *columns: str) -> float:
    known = [rows[name].median() for name in columns if name in rows]
    return max((float(value) for value in known if not math.isnan(value)), default=math.nan)


def _by(row: dict[Any, Any]) -> str:
    if row["by"] in BY_COLUMN:
        return BY_COLUMN[row["by"]].name
    return {"concurrency": "outstanding / latency", "offered": "offered rate"}.get(row["by"], "not known")


def _binding(row: dict[Any, Any]) -> str:
    if row["label"] == Label.SATURATED:
        return f"saturated: {row['binds']}"
    if row["limit"] == "":
        return row["label"]
    if row["by"] in (row["limit"], *(rival.limit.column for rival in row["rivals"])):
        return f"{row['label']}, as predicted"
    return f"{row['label']}: {limit_words(row)}"


def _rate(value: float, unit: str) -> str:
    return "" if math.isnan(value) else f"{value:,.0f} {unit}"
