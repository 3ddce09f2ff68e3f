"""Claims on Storage Spaces Direct in Azure: each judged by limits and by the article's own figures."""

from __future__ import annotations

import pandas as pd
import pytest

from diskbook.clusters.analysis import claims_s2d
from diskbook.report.analysis import published, published_claims

LATENCY_MS = 8 / 1.985


def judged(figures: pd.DataFrame) -> pd.DataFrame:
    of_article = published_claims.read().query("article == 's2d-azure'")
    return published_claims.judge(published.assess(figures), of_article)


@pytest.fixture(scope="module")
def verdicts() -> pd.DataFrame:
    return judged(published.read("s2d-azure"))


@pytest.mark.parametrize(
    ("claim", "verdict", "why"),
    [
        ("four P30 total", "supported", "4 x 5,000 = 20,000 IOPS and 4 x 200 = 800 MB/s"),
        ("the VM size can do", "supported", "the VM uncached limit of 768 MB/s lies below the disks' 800"),
        ("the VM size can do", "supported", "meet its base after 13 h"),
        ("4K with a single thread", "supported", "8.13 MB/s or 7.75 MiB/s: the unit is MiB/s"),
        ("minimum latency", "not supported", "a minimum needs depth 1"),
        ("documented limits", "supported", "10 % of the disks' limit"),
        ("limits are hit with 8 to 12 threads at 4K", "supported", "20,000 IOPS with 10.1 threads at 8K"),
        ("limits are hit with 8 to 12 threads at 64K", "not supported", "768 MB/s with 5.9 threads at 64K"),
        ("the cluster reaches", "capped", "disk limit and the VM uncached limit of 20,000 IOPS"),
        ("the cluster reaches", "capped", "two limits coincide"),
        ("the cluster reaches", "capped", "500 MB/s are not mentioned"),
        (
            "cluster and single server",
            "capped",
            "no change at 4K, no change at 8K and -35 % at 64K with 12",
        ),
        ("MB/s are close", "capped", "500 against 768 MB/s, -35 %, is the"),
        ("the network is not", "capped", "96 / 20,000 = 4.80 ms and 96 / 20,000 = 4.80 ms on both sides"),
        ("tests are red", "supported", "one finding is counted three times"),
        ("latency is around 2 ms", "not supported", "1000 / 2 = 500 is right"),
        ("latency is around 2 ms", "not supported", "8 / 1,985 = 4.03 ms"),
        ("more disks do not help", "not measured", "one number of disks"),
        ("Storage Spaces Direct uses sync", "not supported", "kept 8 a thread in flight"),
        ("only more threads", "supported", "more depth a thread would do as well"),
        ("with more disks", "supported", "4 disks need 10 threads of 8 at 4.03 ms, 8 need 20"),
        ("the laptop's SSD", "not measured", "charts only"),
        ("30 % of disks", "not supported", "24 x 200,000 x 16 x 0.3 = 23.0 million"),
        ("30 % of disks", "not supported", "reads at most 76.8 and writes at most 25.6 million"),
        ("eight nodes", "supported", "as documented"),
        ("L-series machines", "supported", "reach its uncached 20,000 IOPS and 500 MB/s at most"),
        ("a limit of 2000", "supported", "the reader is right: 4 x 5,000 = 20,000 IOPS"),
    ],
)
def test_verdicts(verdicts: pd.DataFrame, claim: str, verdict: str, why: str) -> None:
    (row,) = verdicts[verdicts["claim"].str.startswith(claim)].to_dict("records")
    assert row["verdict"] == verdict and why in row["why"]


def test_every_sentence_of_the_article_has_its_verdict(verdicts: pd.DataFrame) -> None:
    assert len(verdicts) == len(claims_s2d.JUDGES) == 22


def test_the_map_of_the_articles_sizes() -> None:
    cells = claims_s2d.predicted_map(LATENCY_MS)
    assert [round(cell.ratio, 2) for cell in cells] == [1.00, 1.00, 1.00, 1.00, 0.65, 0.65]
    assert all(cell.limits_only for cell in cells)
    assert all(cell.load.outstanding == 96 for cell in cells)
    assert cells[0].latencies_ms == pytest.approx((4.80, 4.80))


def test_a_verdict_follows_the_numbers() -> None:
    """Other stated limits, another rate of one thread, and a latency that is the quoted one."""
    figures = published.read("s2d-azure")
    s2d = figures["article"] == "s2d-azure"
    server = s2d & (figures["vm_size"] == "Standard_D32s_v3")
    figures.loc[s2d & (figures["metric"] == "cap_throughput"), "value"] = 600
    figures.loc[server & (figures["metric"] == "vm_cap_throughput"), "value"] = 1200
    figures.loc[server & (figures["metric"] == "iops"), "value"] = 4000
    rows = judged(figures).set_index("claim")["verdict"]
    by_start = {start: rows[rows.index.str.startswith(start)].iloc[0] for start in (
        "four P30", "the VM size", "4K with", "limits are hit with 8 to 12 threads at 4K",
        "latency is around",
    )}  # fmt: skip
    assert by_start == {
        "four P30": "not supported",
        "the VM size": "not supported",
        "4K with": "not supported",
        "limits are hit with 8 to 12 threads at 4K": "not supported",
        "latency is around": "supported",
    }


def test_below_its_limit_the_clusters_rate_would_not_be_capped() -> None:
    figures = published.read("s2d-azure")
    node = (figures["vm_size"] == "Standard_L16s") & (figures["metric"] == "iops")
    figures.loc[node, "value"] = 12_000
    rows = judged(figures).set_index("claim")["verdict"]
    assert set(rows[rows.index.str.startswith(("the cluster reaches", "cluster and"))]) == {"not supported"}
