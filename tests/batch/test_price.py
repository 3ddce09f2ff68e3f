"""What is left of a batch costs what its runs' own estimates say, with their margin."""

from __future__ import annotations

import pytest

from diskbook.batch.batch_run import Item
from diskbook.batch.price import pricing
from diskbook.batch.status import Standing, State
from diskbook.cost.estimate import MARGIN
from diskbook.facts.errors import UsageError
from support.batches import an_item


def new(item: Item) -> Standing:
    return Standing(State.NEW, item.scenario.design.replicates)


def test_what_is_left_is_priced_by_replicate_and_nothing_is_for_what_is_finished() -> None:
    item = an_item(design__replicates=4)
    price = pricing([item], 10.0, ask=False)
    whole, half = price(item, new(item)), price(item, Standing(State.CUT, 2))
    assert half.expected_usd == pytest.approx(whole.expected_usd / 2) and whole.expected_usd > 0
    assert whole.expected_usd * MARGIN <= whole.limit_usd < whole.expected_usd * MARGIN + 0.011
    assert half.seconds < whole.seconds and "dated table" in whole.source
    assert price(item, Standing(State.FINISHED, 0)).limit_usd == 0.0
    assert price(item, Standing(State.CUT, 0)).limit_usd == 0.0  # measured, not yet analysed


def test_with_a_limit_everything_must_have_a_price() -> None:
    item = an_item(cloud="azure", machine__vm1__size="Standard_X99s_v9")
    with pytest.raises(UsageError, match="no price is known of"):
        pricing([item], 10.0, ask=False)(item, new(item))
    assert pricing([item], None, ask=False)(item, new(item)).seconds > 0
