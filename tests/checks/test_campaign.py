"""docs/how-to/campaign.md is what the plan's own numbers say, and a batch refuses what it says is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from checks import campaign
from checks.campaign import Campaign
from diskbook.batch import command, matrix
from diskbook.facts.errors import UsageError


@pytest.fixture(scope="module")
def read() -> Campaign:
    return campaign.read()


@pytest.mark.long
def test_the_batch_takes_those_regions_and_at_that_price(read: Campaign, tmp_path: Path) -> None:
    """`diskbook batch --dry-run` on one seed: of the regions as the page has them, for the sum it says."""
    text = re.sub(r'"design.seed" = .*', '"design.seed" = [1]', campaign.BATCH.read_text("utf-8"))
    with pytest.raises(UsageError, match="'switzerlandnorth' is not in the table"):
        matrix.read(_written(tmp_path, text))
    for region in {run.region for run in read.runs} - {run.region for run in read.allowed.runs}:
        text = text.replace(f'"{region}", ', "").replace(f'"{region}",', "")
    _, data = command.dry_run(matrix.read(_written(tmp_path, text)))
    assert len(data["runs"]) * 17 == len(read.allowed.runs)
    assert data["expected_usd"] * 17 == pytest.approx(read.allowed.usd, rel=1e-4)
    assert data["seconds"] * 17 == pytest.approx(
        sum(run.price.seconds for run in read.allowed.runs), rel=1e-3
    )


def _written(folder: Path, text: str) -> Path:
    (folder / "campaign.toml").write_text(text)
    return folder / "campaign.toml"


@pytest.mark.long
def test_a_schedule_never_has_more_than_its_places_and_ends_with_the_last_run(read: Campaign) -> None:
    four = read.runs[:4]
    each = [run.price.seconds for run in four]
    assert campaign.schedule(four, 4).seconds == max(each)
    assert campaign.schedule(four, 1).seconds == pytest.approx(sum(each))
    twice = campaign.schedule((four[0], four[0], four[1]), 2)
    assert twice.most[four[0].region, "runs"] == 2 and twice.in_all == 2 * four[0].need["cores"]
