"""Published figures: what they support, and that an emulated run reproduces none of them."""

from __future__ import annotations

from types import SimpleNamespace

import pandas as pd
import pytest

from diskbook.design import scenario_file
from diskbook.report import figures
from diskbook.report.analysis import published, published_claims, published_compared
from diskbook.report.show import tables as show_tables
from diskbook.stats import limits
from support import samples, synthetic


@pytest.fixture(scope="module")
def assessed() -> pd.DataFrame:
    return published.assess(published.read())


def one(assessed: pd.DataFrame, **wanted: object) -> pd.Series:
    rows = assessed
    for name, value in wanted.items():
        rows = rows[rows[name] == value]
    return rows.iloc[0]


@pytest.mark.long
@pytest.mark.parametrize(
    ("value", "limit", "said"),
    [
        # shared-zrs: "2 % overhead" is the difference of two throttled rates, latency is 40 / IOPS.
        (5099.82, "disk limit of 5,000 IOPS", "102 %"),
        (7.830, "disk limit of 5,000 IOPS", "40 outstanding / 5,100 IOPS = 7.84 ms, queueing"),
        (4994.63, "disk limit of 5,000 IOPS", "100 %"),
        (7.998, "disk limit of 5,000 IOPS", "40 outstanding / 4,995 IOPS = 8.01 ms, queueing"),
        # zone-disks: "the same IOPS".
        (5140, "disk limit of 5,000 IOPS", "256 give no more"),
        (5180, "disk limit of 5,000 IOPS", "256 give no more"),
        # s2d-azure: disks and machine have the same limit.
        (20000, "disk limit of 20,000 IOPS and the VM uncached limit of 20,000 IOPS", "100 %"),
        # disk-options: performance plus, P30, bursting, provisioned, and the machine's own limits.
        (8157, "disk limit of 8,000 IOPS", "102 %"),
        (304, "disk limit of 300 MB/s", "106 %"),
        (5101, "disk limit of 5,000 IOPS", "102 %"),
        (203, "disk limit of 200 MB/s", "106 %"),
        (30596, "disk burst limit of 30,000 IOPS", "102 %"),
        (30550, "disk burst limit of 30,000 IOPS", "102 %"),
        (32718, "VM cached/local limit of 32,000 IOPS", "102 %"),
        (815, "VM burst limit of 800 MB/s", "107 %"),
        (25131, "VM uncached limit of 25,600 IOPS", "98 %"),
        (8160, "disk limit of 8,000 IOPS", "102 %"),
        (40776, "disk limit of 40,000 IOPS and the VM burst limit of 40,000 IOPS", "102 %"),
        (814, "VM burst limit of 800 MB/s", "107 %"),
    ],
)
def test_figures_that_sit_on_a_limit(assessed: pd.DataFrame, value: float, limit: str, said: str) -> None:
    measured = assessed[assessed["label"] != "stated"]
    rows = measured[measured["value"] == value]
    assert len(rows) and rows["on_cap"].all() and set(rows["limit"]) == {limit}
    assert (rows["label"] == "capped").all() and rows["supports"].str.contains(said, regex=False).all()


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"value": 4079.72}, "82 % of the nearest limit; but 4,080 IOPS is 1.02 x 4,000"),
        ({"value": 9.8}, "possibly another cap"),
        ({"article": "zone-disks", "value": 1.3}, "latency at queue depth 1, below every cap; 1 run"),
        ({"value": 1985}, "the response time at 8 outstanding, 4.03 ms, at 10 % of the nearest limit"),
        ({"value": 585}, "between the VM's base of 384 and its burst of 800 MB/s"),
        ({"value": 672}, "between the VM's base of 384 and its burst of 800 MB/s"),
        ({"value": 0.079}, "the host cache may have answered"),
        ({"value": 2.19}, "an access time as HD Tune counts it"),
        ({"value": 2, "article": "s2d-azure"}, "quoted, not measured: 1 / 2 ms is 500 IOPS"),
    ],
)
def test_figures_that_sit_on_no_known_limit(assessed: pd.DataFrame, wanted: dict, said: str) -> None:
    row = one(assessed, **wanted)
    assert not row["on_cap"] and said in row["supports"]


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (
            {"metric": "lat_min", "vm_size": "Standard_D32s_v3"},
            "8 / 1,985 IOPS = 4.03 ms is the response time",
        ),
        ({"metric": "lat_min", "vm_size": "Standard_L16s"}, "capped (96 / 20,000 IOPS = 4.80 ms)"),
        ({"metric": "threads_at_limit"}, "20,000 IOPS at 4.03 ms need 81 in flight, 10 threads"),
        ({"metric": "cap_iops"}, "a stated disk limit, not a measurement; data/reference agrees"),
        ({"metric": "vm_cap_throughput"}, "a stated VM uncached limit"),
        ({"metric": "vm_burst_cap_iops", "value": 10000}, "a stated VM burst limit"),
        ({"metric": "grid"}, "no number is printed"),
    ],
)
def test_figures_that_are_stated(assessed: pd.DataFrame, wanted: dict, said: str) -> None:
    row = one(assessed, **wanted)
    assert row["label"] == "stated" and said in row["supports"] and "interval" not in row["supports"]


@pytest.mark.parametrize(
    ("value", "little"),
    [
        (5099.82, "39.93 in flight of 40"),  # 5099.82 x 7.830 ms
        (7.998, "39.95 in flight of 40"),
        (9.800, "39.98 in flight of 40"),
        (1.3, "769 IOPS"),
        (1985, "4.03 ms"),
        (5140, "49.81 ms"),
        (40776, "12.56 ms"),
        (1.02, "980 IOPS"),
    ],
)
def test_littles_law(assessed: pd.DataFrame, value: float, little: str) -> None:
    assert one(assessed, value=value)["little"] == little


def test_the_tools_mb_are_mib(assessed: pd.DataFrame) -> None:
    """DiskSpd prints MiB/s: 7.76 are 8.14 MB/s, as 1,985 x 4,096 bytes are; stated limits are in MB/s."""
    row = one(assessed, value=7.76)
    assert (row["unit"], row["base"]) == ("MB/s", pytest.approx(1985 * 4096 / 1e6, rel=2e-3))
    assert one(assessed, metric="vm_cap_throughput")["base"] == 768


def test_every_figure_gets_a_sentence_and_says_what_it_assumes(assessed: pd.DataFrame) -> None:
    assert len(assessed) == len(published.read()) == 74 and (assessed["supports"].str.len() > 20).all()
    assert assessed["supports"].str.contains("assumed: ").eq(assessed["assumed"] != "").all()
    assert "assumed: disk (1 TiB Premium SSD = P30)" in one(assessed, value=5140)["supports"]
    measured = assessed[(assessed["label"] != "stated") & (assessed["tool"] != "quoted")]
    assert measured["supports"].str.contains("no interval").all() and (measured["little"] != "").all()


def test_a_measured_trial_of_the_same_numbers_gets_the_same_label(assessed: pd.DataFrame) -> None:
    """Published and measured data go through the same functions."""
    trials = published.as_trials(published.read("zone-disks"))
    cells = limits.label_cells(trials)
    deep = cells[cells["outstanding"] == 256]
    assert len(deep) == 8 and set(deep["label"]) == {"capped"}
    assert set(cells.loc[cells["outstanding"] == 1, "label"]) == {"below cap"}
    assert deep["predicted_lat_ms"].tolist() == [limits.predicted_latency_ms(256, 5000)] * 8


def test_an_article_without_numbers() -> None:
    found = published.assess(published.read("nested-resiliency"))
    assert len(found) == 1 and "no number is printed" in found["supports"].iloc[0]


@pytest.mark.parametrize(
    ("disk", "redundancy", "options", "expected"),
    [
        ("P30", "LRS", "none", (5000, 200, None)),
        ("4 x P30 (Storage Spaces Simple; 4 columns)", "LRS", "none", (20000, 800, None)),
        ("1 TiB Premium SSD", "ZRS", "bursting", (5000, 200, 30000)),
        ("1 TiB Premium SSD", "ZRS", "bursting + performance plus", (8000, 300, 30000)),
        ("1 TiB Premium SSD v2", "LRS", "40000 IOPS + 1200 MB/s", (40000, 1200, None)),
    ],
)
def test_limits_of_a_disk_named_in_words(disk: str, redundancy: str, options: str, expected: tuple) -> None:
    found = published.disk_limits(disk, redundancy, options)
    assert found and (found.iops, found.mb_s, found.burst_iops) == expected


def test_an_unknown_disk_has_no_limits() -> None:
    assert published.disk_limits("P31", "LRS", "none") is None
    row = {"disk": "", "redundancy": "", "options": "", "vm_size": "no such", "write_pct": "0"}
    assert pd.Series(published.caps(row)).isna().all()


@pytest.mark.long
@pytest.mark.parametrize(
    ("provenance", "calibrated", "verdicts"),
    [
        ("emulated", True, {"calibration input"}),
        ("emulated", False, {"not comparable: this profile plays other numbers"}),
        ("azure", True, {"shown beside: one run without an interval", "capped: rates of two limits"}),
    ],
)
def test_beside_measured(
    assessed: pd.DataFrame, provenance: str, calibrated: bool, verdicts: set[str]
) -> None:
    trials, _, series = synthetic.tables()
    scenario = scenario_file.load("zone-disks", "quick")
    zone_disks = assessed[assessed["article"] == "zone-disks"]
    found = published_compared.beside(
        zone_disks, limits.label_cells(trials, series), scenario, provenance, calibrated
    )
    assert len(found) == 16 and set(found["verdict"]) == verdicts
    row = found[(found["arm"] == "zrs-z3") & (found["load"] == "randwrite-qd1")].iloc[0]
    assert row["value"] == 4.8 and row["ratio"] == pytest.approx(1, abs=0.06)
    assert not found.astype(str).apply(lambda column: column.str.contains("reproduced")).any(axis=None)


@pytest.fixture(scope="module")
def shared_zrs(assessed: pd.DataFrame) -> pd.DataFrame:
    return of_the_sample(assessed, "shared-zrs")


@pytest.fixture(scope="module")
def disk_options(assessed: pd.DataFrame) -> pd.DataFrame:
    return of_the_sample(assessed, "disk-options")


def of_the_sample(assessed: pd.DataFrame, article: str) -> pd.DataFrame:
    """Figures of an article beside the cells of its sample run."""
    return beside_cells(assessed, article, cells_of_the_sample(article))


def cells_of_the_sample(article: str) -> pd.DataFrame:
    return samples.analysed(article).cells


def beside_cells(assessed: pd.DataFrame, article: str, cells: pd.DataFrame) -> pd.DataFrame:
    return published_compared.beside(
        assessed[assessed["article"] == article], cells, scenario_file.load(article, "quick"), "emulated"
    )


@pytest.mark.long
def test_every_figure_of_both_articles_stands_beside_ours(
    assessed: pd.DataFrame, shared_zrs: pd.DataFrame, disk_options: pd.DataFrame
) -> None:
    for article, found in (("shared-zrs", shared_zrs), ("disk-options", disk_options)):
        assert len(found) == (assessed["article"] == article).sum()
        kinds = set(found["verdict"].str.partition(":")[0])
        known = {
            published_compared.ARTEFACT,
            published_compared.CALIBRATION,
            published_compared.DERIVED,
            published_compared.NOT_COMPARABLE,
        }
        assert kinds <= known and not found.isna().any(axis=None)


@pytest.mark.long
def test_two_rates_on_two_limits_are_not_compared(disk_options: pd.DataFrame) -> None:
    """D's writes end at the disk's burst there and in the cache here; I's on the VM's base there."""
    writes = disk_options[disk_options["load"] == "max-write-iops"].set_index("arm")["verdict"]
    cached = writes["d-all-and-cache"]
    assert cached.startswith("not comparable: it sits on the disk burst limit of 30,000 IOPS, ours on the VM")
    assert cached.endswith("limit of 32,000 IOPS")
    assert "it sits on the VM uncached limit of 25,600 IOPS, ours on the disk burst" in writes["i-burst"]
    assert writes["h-plain"] == "calibration input"


@pytest.mark.long
def test_a_rate_below_every_limit_is_not_compared_with_one_on_it(assessed: pd.DataFrame) -> None:
    cells = cells_of_the_sample("shared-zrs")
    # Whether the remote arm is called capped, or only near a cap, is the sample's noise.
    near, far = (
        cells.index[(cells["arm"] == arm) & (cells["workload"] == "article")] for arm in ("zrs-n1", "zrs-n2")
    )
    columns = ["label", "evidence", "limit", "limit_value"]
    cells.loc[far, columns] = cells.loc[near, columns].to_numpy()
    beside = beside_cells(assessed, "shared-zrs", cells)
    remote = beside[beside["published"] == "ZRS, remote zone, shared"]
    assert set(remote["verdict"]) == {
        "not comparable: it lies below the limits known, ours sits on the disk limit of 5,000 IOPS"
    }


def test_stated_limits_stand_beside_the_highest_rate(disk_options: pd.DataFrame) -> None:
    stated = disk_options[disk_options["published"].str.endswith("stated limit")]
    assert stated["value"].tolist() == [40_000, 800, 10_000] and set(stated["verdict"]) == {
        published_compared.ENFORCED
    }
    assert stated["measured"].to_numpy() == pytest.approx([40_000, 800, 10_000], rel=0.05)
    assert not stated["arm"].eq("d-all-and-cache").any()  # its cache passes the limit by


def test_a_set_up_is_in_words_and_has_its_printed_value(disk_options: pd.DataFrame) -> None:
    row = disk_options[disk_options["printed"] == "304 MiB/s"].iloc[0]
    assert row["published"].startswith("ZRS, performance plus") and row["value"] == pytest.approx(
        318.77, abs=0.01
    )
    assert "101 % if the limit counts MiB as well" in row["supports"]
    shown = show_tables.published(
        SimpleNamespace(published=disk_options, words={name: name for name in disk_options["load"]})
    )
    assert "304 MiB/s = 318.8 MB/s" in shown and "5,101 IOPS" in shown


def test_only_arms_that_were_measured_are_shown(assessed: pd.DataFrame) -> None:
    trials = synthetic.tables(n_blocks=1)[0]
    cells = limits.label_cells(trials[trials["arm"] == "lrs-z1"])
    found = published_compared.beside(assessed, cells, scenario_file.load("zone-disks", "quick"), "emulated")
    assert set(found["arm"]) == {"lrs-z1"} and len(found) == 4


def test_every_figure_and_claim_is_shown(assessed: pd.DataFrame) -> None:
    judged = published_claims.judge(assessed)
    shown = "".join(published_claims.figures_of(assessed, name) for name in assessed["article"].unique())
    assert shown.count("<tr>") == len(assessed) + 5 and shown.count("(published)</caption>") == 5
    assert "40 outstanding / 5,100 IOPS = 7.84 ms" in shown and "nan" not in shown.lower()
    said = published_claims.claims_of(judged, "shared-zrs")
    assert said.count("<tr>") == 7 and "Capped" in said and "+23 %" in said
    counts = published_claims.verdict_counts(judged)
    assert all(f">{verdict}</th>" in counts for verdict in published_claims.ClaimVerdict)


def test_the_figure_of_shares_counts_what_it_draws(assessed: pd.DataFrame) -> None:
    picture = figures.shares(assessed)
    assert (
        picture.title
        == f"{picture.data['on_cap'].sum()} of {len(picture.data)} published figures sit on a limit"
    )
    assert "shared-zrs 4 of 6, zone-disks 8 of 16" in picture.alt and picture.provenance == "published"
    drawn = sum(len(line.get_xdata()) for line in picture.figure.axes[0].lines)
    assert drawn == len(picture.data) + 2 + 2  # two points of the limit's line, two of the key


def test_figures_of_volumes_stand_beside_arms_on_such_volumes(assessed: pd.DataFrame) -> None:
    """4 disks in 4 columns, on one server or on each of three nodes in one zone; not 8, nor an owner away."""
    arms, loads = ("ss-8", "ss-4", "s2d-3-remote", "s2d-3"), ("read-4k-1x8", "read-4k-12x8")
    rows = [
        {"arm": arm, "workload": name, "iops": 2000.0, "mb_s": 8.0, "lat_mean_ms": 4.0, "label": "below cap"}
        for arm in arms
        for name in loads
    ]
    scenario = scenario_file.load("s2d-azure", "quick")
    beside = published_compared.beside(assessed, pd.DataFrame(rows), scenario, "azure")
    of_article = beside[beside["published"].str.contains("LRS")]
    assert set(of_article["arm"]) == {"ss-4", "s2d-3"}
    values = {(row.arm, row.load, row.value) for row in of_article.itertuples()}
    assert ("ss-4", "read-4k-1x8", 1985.0) in values and ("s2d-3", "read-4k-12x8", 20000.0) in values
