"""disk-options: planted limits, a planted end of a burst and planted latencies are found, end to end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from diskbook.report.analysis import disk_options
from diskbook.report.analysis.run import Analysis, analyse
from diskbook.report.show import tables as show_tables
from diskbook.stats import ratios
from support import SCENARIOS, emulated, played, samples
from support.disturbance import load_sensitive

OPTIONS = str(SCENARIOS / "options.toml")


@pytest.fixture(scope="module")
def measured() -> Iterator[tuple[Analysis, dict[str, Any]]]:
    """The scenario on a profile without noise between machines, disks and blocks; runs and truth."""
    with emulated.own_place():
        folder = emulated.measured("options", OPTIONS, "quiet")
        yield analyse(folder), json.loads((folder.folder / "truth.json").read_text())


@pytest.fixture(scope="module")
def a(measured: tuple[Analysis, dict[str, Any]]) -> Analysis:
    return measured[0]


@pytest.mark.measures
@pytest.mark.parametrize(("arm", "limit"), [("h-plain", 5000), ("j-v2-8000", 8000)])
def test_the_limit_predicted_is_the_limit_found(a: Analysis, arm: str, limit: int) -> None:
    found = disk_options.predictions(a).set_index(["arm", "workload"]).loc[(arm, "max-write-iops")]
    assert (found["by"], found["predicted_iops"]) == ("cap_disk_iops", limit)
    assert found["ratio"] < 1.05  # the profile's limits lie 2 % above
    shown = disk_options.drives(a)
    row = shown[(shown["Drive"] == a.labels[arm]) & shown["Load"].str.contains("depth 128")].iloc[0]
    assert (row["Predicted limit"], row["Predicted"]) == ("disk limit", f"{limit:,} IOPS")
    with load_sensitive():
        assert found["ratio"] > 0.95


@pytest.mark.measures
@pytest.mark.parametrize(("arm", "planted"), [("j-v2-8000", 0.34 / 2.0), ("l-label", 1.0)])
def test_planted_access_times_are_found(
    measured: tuple[Analysis, dict[str, Any]], arm: str, planted: float
) -> None:
    """By the latencies that the disks drew: a busy machine adds to what fio sees."""
    trials = played.as_drawn(measured[0].tables, measured[1]).trials
    means = ratios.log_means(trials[trials["workload"] == "access-time"], "lat_mean_ms")
    found = ratios.block_log_ratios(means, arm, "h-plain", "access-time", "read")
    # 50 I/Os in each trial are enough.
    assert ratios.estimates(found)[1].ratio == pytest.approx(planted, rel=0.12)


@pytest.mark.measures
def test_the_end_of_the_burst_is_found_where_it_was_planted(a: Analysis) -> None:
    """1,800 s x 0.001 at the burst rate: 1.8 s of 3,570 IOPS, then 2,346."""
    fell = disk_options.diagnosed(a).iloc[0]
    state = a.trials.loc[a.trials["workload"] == "burst-until-dry", "credit_state"]
    with load_sensitive():
        assert 1.6 < fell["fell_at_s"] < 2.1
        assert fell["rate_before"] == pytest.approx(3570, rel=0.08)
        assert fell["rate_after"] == pytest.approx(2346, rel=0.08)
        assert set(state) == {"drained"}
    picture = disk_options.burst(a)
    assert "(1 : 1,000)" in picture.description and "1.8 s in place of 30 minutes" in picture.description
    assert "Emulated" in picture.description and len(picture.data) > 30


@pytest.mark.measures
def test_words_and_costs(a: Analysis) -> None:
    said = disk_options.label_claim(a)
    assert "2.02 ms on ZRS with network label against 1.02 ms on plain ZRS (+98 %)" in said[0]
    assert len(said) == 2 and said[1].startswith("emulated: ")
    assert disk_options.unusable(a) == ["every disk's limit lies within its machine's"]
    assert disk_options.costs(a)["USD per month, idle"].min() > 20
    source = disk_options.price_source(a)
    assert "data/reference/prices.csv" in source and "inferred, not read: v2-iops" in source
    assert list(disk_options.access_times(a)["Trials"]) == [2, 2, 2]
    with load_sensitive():
        assert "drained 1" in disk_options.credit_words(a)[0]
        told = show_tables.preformatted(disk_options.diagnosis.text(disk_options.findings(a)))
        assert "burst credit is used up" in told


@pytest.fixture(scope="module")
def sample() -> Analysis:
    return samples.analysed("disk-options")


@pytest.mark.long
def test_each_option_stands_with_its_rate_latency_and_price_and_their_limits(sample: Analysis) -> None:
    table = disk_options.bought(sample).set_index("Drive")
    names = ("h-plain", "g-plus", "i-burst", "l-label", "f-plus-label", "e-burst-plus", "d-all-and-cache")
    names += ("j-v2-8000", "k-v2-40000")  # zone-redundant ones first, then Premium v2; fewest options first
    assert [*table.index[:9]] == [sample.labels[name] for name in names]
    plain, all_of_it, v2 = (table.loc[sample.labels[names[number]]] for number in (0, 6, 7))
    assert (plain["Option"], plain["Set by"]) == (
        "Premium ZRS 1,024 GiB, no option",
        "disk limit of 5,000 IOPS",
    )
    assert plain["4K writes, IOPS"] == pytest.approx(5_000, rel=0.05) and plain["By"] == "the disk"
    assert all_of_it["Option"].endswith(
        "on-demand bursting, performance plus, label accelerated network, host cache ReadWrite"
    )
    assert all_of_it["By"] == "host cache and disk" and all_of_it["IOPS that last"] == 25_600
    assert v2["Option"] == "Premium v2 1,024 GiB, 8,000 IOPS, 300 MB/s"
    assert 5 * v2["4K read at depth 1, ms"] < plain["4K read at depth 1, ms"] < 4
    assert v2["USD per month for them"] == pytest.approx(163.43, abs=0.01)
    shown = disk_options.bought_table(sample)
    assert "on Standard_E16as_v5" in shown and "(emulated)" in shown and shown.count("<tr>") == 12


@pytest.mark.long
def test_a_drive_that_was_not_measured_has_no_row(sample: Analysis) -> None:
    held = sample.trials[~((sample.trials["arm"] == "g-plus") & (sample.trials["workload"] == "access-time"))]
    fewer = replace(sample, tables=replace(sample.tables, trials=held))
    assert sample.labels["g-plus"] not in set(disk_options.bought(fewer)["Drive"])


@pytest.mark.long
def test_a_price_beside_a_rate_includes_every_io_of_that_rate(sample: Analysis) -> None:
    """Compute each row of both tables again: fixed prices, and 730 hours of I/Os above the base."""
    bought = disk_options.bought(sample).set_index("Drive")
    found = disk_options.costs(sample).set_index("Drive")
    for arm in sample.scenario.arm:
        disk, row = sample.scenario.disk_of(arm), found.loc[sample.labels[arm.name]]
        base = {True: 8_000, False: 5_000}[disk.performance_plus]
        billed = (row["IOPS that last"] - base) * 3600 * 730 / 10_000 * 0.005 if disk.bursting else 0.0
        month = row["USD per month, idle"] + billed
        assert row["USD per month at that rate"] == pytest.approx(month), arm.name
        assert row["USD per month and 1,000 IOPS"] == pytest.approx(1000 * month / row["IOPS that last"])
        if row.name in bought.index:
            assert bought.loc[row.name, "USD per month for them"] == pytest.approx(month)
            assert bought.loc[row.name, "IOPS that last"] == row["IOPS that last"]
    assert found.loc["ZRS with bursting", "USD per month, idle"] == pytest.approx(245.325 + 24.576)
    assert found.loc["ZRS with bursting", "USD per month at that rate"] == pytest.approx(269.901 + 27_068.4)
    assert found.loc["ZRS with bursting", "Note"] == "includes 27,068 USD for I/Os above the base"
    on_credit = found.loc["P20, burst on credit"]
    assert on_credit["IOPS that last"] == 2_300
    assert found.loc["Premium v2 with 80,000 IOPS on E2as_v5", "IOPS that last"] == 3_750
    # J: 1,024 GiB, 5,000 IOPS and 175 MB/s beyond the included.
    j = 730 * (1024 * 0.000157 + 5000 * 0.0000099 + 175 * 0.00007779)
    assert found.loc["Premium v2", "USD per month at that rate"] == pytest.approx(j)
    assert "burst-enablement ZRS, burst-transactions ZRS" in disk_options.price_source(sample)
    assert "2023" not in disk_options.price_source(sample)  # machines are not in the table


@pytest.mark.parametrize("unknown", ["cap_vm_iops", "cap_disk_iops"])
def test_a_rate_whose_limit_is_not_known_has_no_price(sample: Analysis, unknown: str) -> None:
    bare = sample.trials.assign(**{unknown: np.nan, "cap_vm_cached_iops": np.nan})
    found = disk_options.costs(replace(sample, tables=replace(sample.tables, trials=bare))).set_index("Drive")
    prices = found.loc["ZRS with bursting", ["USD per month at that rate", "USD per month and 1,000 IOPS"]]
    assert prices.isna().all()


@pytest.mark.long
def test_every_claim_is_answered_by_the_run(sample: Analysis) -> None:
    said = disk_options.claims_table(sample)
    assert said.count("<tr>") == 6 and "Nothing" not in said and "Not compared" not in said
    assert "of the 80,000 IOPS that are paid for" in said and "the lowest is" in said.lower()
    assert "costs 245.3" in said and "a ratio of limits" in said


def test_the_title_of_access_times_is_what_was_measured(sample: Analysis) -> None:
    times = disk_options.access_times(sample)["Latency at depth 1, ms"]
    title = disk_options.access(sample).title
    assert (
        f"{times.min():.2f} ms through the host cache" in title and f"{times.max():.2f} ms without" in title
    )
