"""Latency against load: a planted queue whose latency rises at the cap, and what is drawn of it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from diskbook.report import figures
from diskbook.report.figures.style import ArmLook, Picture
from diskbook.stats import evidence

LOOKS = {name: ArmLook(name, "#0072B2", "o", "-") for name in ("a", "b")}
SHARES = (0.1, 0.25, 0.5, 0.75, 0.9)
CAPS = {"a": 5000.0, "b": 8000.0}
BARE_MS = 1.0


def waiting_ms(share: float, cap: float) -> float:
    """Mean time that an I/O waits for a server of constant service (M/D/1): rho / (2 mu (1 - rho))."""
    return 1000 * share / (2 * cap * (1 - share))


def trials(shares: tuple[float, ...] = SHARES, capped: bool = True) -> pd.DataFrame:
    """Three trials at each share of each arm's cap; p99 is the bare latency and 30 times the wait."""
    rows = [
        {
            "trial": f"{arm}-{share}-{n}", "arm": arm, "workload": f"w-{share}-{arm}", "direction": "read",
            "status": "ok", "attempt": 1, "rate_offered": share * cap, "iops": share * cap * (1 + 1e-4 * n),
            "outstanding": 64, "block_size_bytes": 4096, "throughput_mb_s": share * cap * 4096 / 1e6,
            "lat_mean_ms": BARE_MS + waiting_ms(share, cap), "lat_p50_ms": BARE_MS + waiting_ms(share, cap),
            "lat_p99_ms": BARE_MS + 30 * waiting_ms(share, cap), "cap_disk_iops": cap if capped else np.nan,
            "cap_disk_burst_iops": np.nan, "cap_vm_iops": 25_600.0 if capped else np.nan, "runtime_s": 30.0,
            "ramp_s": 5.0, "ios": share * cap * 30,
            "cap_disk_mb_s": 200.0 if capped else np.nan, "provenance": "emulated",
        }
        for arm, cap in CAPS.items() for share in shares for n in range(3)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def points(table: pd.DataFrame, on_demand: tuple[str, ...] = ()) -> pd.DataFrame:
    return evidence.load_curve_points(table, dict.fromkeys(table["workload"], "4K random read"), on_demand)


def drawn(table: pd.DataFrame) -> Picture:
    return figures.load_curve(points(table), LOOKS, "run", "emulated")


def test_each_arm_has_its_own_cap() -> None:
    made = points(trials()).groupby("arm")[["cap_iops", "cap_words"]].first()
    assert made["cap_iops"].to_dict() == CAPS
    assert made["cap_words"]["b"] == "disk limit of 8,000 IOPS"
    large = points(trials().assign(block_size_bytes=65536))
    assert large["cap_iops"].iloc[0] == pytest.approx(200e6 / 65536)
    assert large["cap_words"].iloc[0] == "disk limit of 200 MB/s"
    bursts = points(trials().assign(cap_disk_burst_iops=30_000.0), on_demand=("a",))
    words = bursts.groupby("arm")["cap_words"].first()
    assert words["a"] == "VM uncached limit of 25,600 IOPS" and words["b"] == "disk limit of 8,000 IOPS"


def test_two_rates_make_no_curve() -> None:
    assert points(trials((0.1, 0.5))).empty
    closed = trials().assign(rate_offered=np.nan)
    assert points(closed).empty


def test_the_planted_rise_is_what_is_drawn_and_said() -> None:
    picture = drawn(trials())
    first, second = picture.figure.axes
    for axes, cap in ((first, 5000.0), (second, 8000.0)):
        median, cap_line = axes.lines[0], axes.lines[-1]
        assert list(median.get_xdata()) == pytest.approx([share * cap * 1.0001 for share in SHARES])
        planted = [BARE_MS + waiting_ms(share, cap) for share in SHARES]
        assert list(median.get_ydata()) == pytest.approx(planted)
        assert set(cap_line.get_xdata()) == {cap}
        assert axes.get_xticklabels()[-1].get_text() == f"100 %\n{cap:,.0f}"
    # Of 5,000 IOPS: 1 + 30 x 0.9 = 28.00 ms against 1 + 30 x 0.011 = 1.33; of 8,000: 17.88 and 1.21.
    assert "the 99th percentile of latency becomes 14.8 to 21.0 times as long" in picture.title
    assert (
        "p50 1.01 and p99 1.33 ms at 10 % of the disk limit of 5,000 IOPS, 1.90 and 28.00 ms at 90 %"
        in picture.description
    )


def test_panels_have_one_axis_of_latency() -> None:
    one, other = drawn(trials()).figure.axes
    assert one.get_ylim() == other.get_ylim()


def test_rates_without_a_cap_are_drawn_in_iops() -> None:
    picture = drawn(trials(capped=False))
    assert picture.figure.axes[0].get_xlabel() == "IOPS held; no cap is known"
    assert "ms at 500 IOPS" in picture.description


def test_a_rate_that_was_not_held_is_marked() -> None:
    table = trials()
    table.loc[table["workload"] == "w-0.9-a", "iops"] *= 0.9
    assert "Crosses: the rate was not held." in drawn(table).description
    assert "Crosses" not in drawn(trials()).description


@pytest.mark.long
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"ramp_s": 0.0}, "no ramp that leaves its first second out"),
        ({"ramp_s": np.nan}, "no ramp that leaves its first second out"),
        ({"ios": 999.0}, "fewer than 1,000 I/Os"),
    ],
)
def test_no_p99_is_drawn_or_told_where_its_trial_lacks_what_it_needs(
    change: dict[str, float], words: str
) -> None:
    lowest = trials()["workload"] == "w-0.1-a"
    some = drawn(
        trials().assign(**{name: trials()[name].mask(lowest, value) for name, value in change.items()})
    )
    assert some.figure.axes[0].lines[3].get_xdata()[0] == pytest.approx(
        0.25 * 5000 * 1.0001
    )  # the dashed one
    assert f"No p99 of 3 trials with {words}." in some.description
    assert "3 of 30 trials have too little for a p99" in some.caption
    assert "p50 1.01 ms at 10 % of the disk limit of 5,000 IOPS, 1.90 and 28.00 ms" in some.description
    # One curve has no p99 at its lowest rate: nothing is said of how p99 moves.
    assert some.title.endswith("the median of latency becomes 55 to 88 % longer")
    none = drawn(trials().assign(**change))
    assert (
        "p99" not in none.description.partition("No p99")[0]
        and "no trial has enough for a p99" in none.caption
    )
    assert none.data["lat_p99_ms"].isna().all()


def test_single_trials_have_no_p99() -> None:
    table = trials()
    single = drawn(table[table["trial"].str.endswith("-0")])
    assert single.title.endswith("the median of latency becomes 55 to 88 % longer")
    assert "p99" not in single.description.partition("No p99")[
        0
    ] and "No p99 of 10 trials with fewer than 3 at the same rate." in (single.description)
    assert single.data["lat_p99_ms"].isna().all() and drawn(table).data["lat_p99_ms"].notna().all()


def test_a_trial_of_minutes_needs_no_ramp_for_its_p99() -> None:
    assert (points(trials().assign(ramp_s=0.0, runtime_s=200.0))["p99_lacks"] == "").all()


def test_reads_and_writes_of_a_mixed_load_are_curves_of_their_own() -> None:
    reads = trials()
    both = pd.concat([reads, reads.assign(direction="write")], ignore_index=True)
    assert set(points(both)["kind"]) == {"4K random read, its reads", "4K random read, its writes"}
