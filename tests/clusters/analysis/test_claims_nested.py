"""Claims on nested resiliency: each judged by documented rules and by counting disk I/Os."""

from __future__ import annotations

import pandas as pd
import pytest

from diskbook.clusters.analysis import claims_nested
from diskbook.report.analysis import published, published_claims


@pytest.fixture(scope="module")
def verdicts() -> pd.DataFrame:
    of_article = published_claims.read().query("article == 'nested-resiliency'")
    return published_claims.judge(published.assess(published.read("nested-resiliency")), of_article)


@pytest.mark.parametrize(
    ("claim", "verdict", "why"),
    [
        ("a two-node mirror goes offline", "supported", "2 copies, one in each node"),
        (
            "a three-way mirror on three nodes",
            "not supported",
            "one of three nodes holds no majority of the pool",
        ),
        (
            "parity has terrible",
            "supported",
            "8 disk I/Os against 2 allow 25 % of a mirror's rate; of reads 100 %",
        ),
        ("nested mirror leaves", "supported", "4 copies: 25 %"),
        (
            "accelerated parity with 20 %",
            "supported",
            "34.1 to 37.5 % with 4 to 7 drives a node and more, against 25 %",
        ),
        ("accelerated parity with 20 %", "supported", "against 25 %: 36 % more to 50 % more"),
        ("accelerated parity uses", "not supported", "for writes only"),
        ("little or no read loss", "not measured", "charts only"),
        ("a bigger read loss", "not measured", "not known"),
        ("very little loss", "not measured", "are 140 GB a volume, and 85 GB stay in its mirror of 100 GB"),
        ("write loss for nested", "supported", "2 / 4 disk I/Os a write allow 50 %"),
        ("heavy write loss", "not supported", "the cause is misnamed"),
        (
            "buy disks",
            "supported",
            "38 % more to 53 % more drives give 177 % more to 206 % more of the small writes",
        ),
        ("28 VMs", "capped", "2,240 I/Os are in flight in each of the 27 cells"),
    ],
)
def test_verdicts(verdicts: pd.DataFrame, claim: str, verdict: str, why: str) -> None:
    (row,) = verdicts[verdicts["claim"].str.startswith(claim)].to_dict("records")
    assert row["verdict"] == verdict and why in row["why"]


def test_every_sentence_of_the_article_has_its_verdict(verdicts: pd.DataFrame) -> None:
    assert len(verdicts) == len(claims_nested.JUDGES) == 13


def test_a_verdict_follows_the_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parity that takes as many disk I/Os as a mirror, and a nested mirror of two copies, turn verdicts."""
    monkeypatch.setitem(claims_nested.IOS_A_WRITE, "nested-parity", 4)
    monkeypatch.setitem(claims_nested.IOS_A_WRITE, "nested-mirror", 4)
    assert claims_nested.of_a_mirror("nested-parity", 1.0) == pytest.approx(0.5)
    nothing = pd.DataFrame()
    for start, verdict in (("parity has terrible", "not supported"), ("buy disks", "not supported")):
        judge = claims_nested.JUDGES["nested-resiliency", start]
        assert not isinstance(judge, str) and judge(nothing)[0] == verdict
