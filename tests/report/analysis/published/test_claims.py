"""Claims of articles: each gets a verdict from the article's own numbers."""

from __future__ import annotations

import pandas as pd
import pytest

from diskbook.facts.errors import DiskbookError
from diskbook.report.analysis import published, published_claims


@pytest.fixture(scope="module")
def judged() -> pd.DataFrame:
    return published_claims.judge(published.assess(published.read()))


@pytest.mark.long
def test_every_claim_of_the_five_articles_is_judged(judged: pd.DataFrame) -> None:
    assert judged["article"].value_counts().to_dict() == {
        "shared-zrs": 6,
        "zone-disks": 6,
        "s2d-azure": 22,
        "disk-options": 5,
        "nested-resiliency": 13,
    }
    assert (
        set(judged["verdict"]) == set(published_claims.ClaimVerdict) and (judged["why"].str.len() > 10).all()
    )


@pytest.mark.long
def test_no_rule_is_without_its_claim(judged: pd.DataFrame) -> None:
    for article, start in published_claims.judges():
        of_article = judged.loc[judged["article"] == article, "claim"]
        assert of_article.str.startswith(start).sum() == 1, start


@pytest.mark.parametrize(
    ("claim", "verdict", "why"),
    [
        ("2 % overhead", "capped", "40 / 5,100 = 7.84 ms and 40 / 4,995 = 8.01 ms; ZRS / LRS is +2.1 %"),
        ("25 % more", "capped", "+25 %, but the baseline is capped: a lower bound at best (+23 %"),
        ("25 % more", "capped", "4,080 IOPS is 1.02 x 4,000"),
        ("reads can equal LRS", "not supported", "ZRS against LRS: +0.00 % to +95 % by zone"),
        (
            "writes are always slower",
            "supported",
            "+146 % to +269 % from 3 zones, below every cap",
        ),
        (
            "writes are always slower",
            "supported",
            "+146 % on the machine in zone 1, and elsewhere from another",
        ),
        ("25 % more", "capped", "from another machine, measured once, whose own difference is part of it"),
        ("IOPS do not differ", "capped", "all 8 rows (5,140 to 5,180 IOPS)"),
        ("the disk is said to span two zones", "not supported", "in three zones, as Azure documents it"),
        ("performance plus is free", "not measured", "what its size and redundancy do"),
        ("RPO 0", "not measured", "no figure bears on it"),
        ("documented limits", "supported", "1,985 IOPS, 10 % of the disks' limit and 4 % of the VM's"),
        (
            "minimum latency",
            "not supported",
            "8 / 1,985 IOPS = 4.03 ms is the response time at 8 outstanding",
        ),
        ("cluster and single server", "capped", "the disk limit of 20,000 IOPS and the VM uncached limit"),
        ("only more threads", "supported", "need 81 in flight, 10 threads"),
        ("the VM size caps", "not measured", "burst limit is 10,000 IOPS, and 3,750 is what lasts"),
        ("accelerated networking", "not supported", "plus -12 % (2.19 to 1.92 ms); without an option +98 %"),
        ("accelerated networking", "not supported", "contradict each other"),
        ("Premium SSD v2 has the lowest", "not supported", "the lowest is 0.079 ms on 1 TiB Premium SSD"),
        ("bursting and performance plus", "capped", "disk burst limit of 30,000 IOPS, which bursting alone"),
        ("little or no read loss", "not measured", "charts only"),
    ],
)
def test_verdicts(judged: pd.DataFrame, claim: str, verdict: str, why: str) -> None:
    row = judged[judged["claim"].str.startswith(claim)].iloc[0]
    assert row["verdict"] == verdict and why in row["why"]


@pytest.mark.long
def test_a_verdict_follows_the_numbers() -> None:
    """Below the cap the same ratio would have been supported, and agreeing pairs would support the other."""
    figures = published.read()
    shared = figures["article"] == "shared-zrs"
    figures.loc[shared & (figures["metric"] == "iops"), "value"] /= 2
    figures.loc[shared & (figures["metric"] == "lat_mean"), "value"] *= 2
    figures["value"] = figures["value"].mask(figures["note"] == "drive L", 0.9)
    judged = published_claims.judge(published.assess(figures)).set_index("claim")["verdict"]
    assert judged["2 % overhead"] == "supported"
    assert judged[judged.index.str.startswith("25 % more")].tolist() == ["not supported"]  # another machine
    assert set(judged[judged.index.str.startswith("accelerated networking")]) == {"supported"}


def test_a_claim_that_nothing_judges_is_one_sentence() -> None:
    unknown = pd.DataFrame({"article": ["zone-disks"], "claim": ["disks are blue"]})
    with pytest.raises(DiskbookError, match=r"no rule judges the claim 'disks are blue' of zone-disks"):
        published_claims.judge(published.assess(published.read()), unknown)
