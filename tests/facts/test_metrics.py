"""Azure Monitor's intervals are ISO 8601 durations."""

from __future__ import annotations

import pytest

from diskbook.facts.metrics import grain_s, interval


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("PT1S", 1),
        ("PT10S", 10),
        ("PT1M", 60),
        ("PT90S", 90),
        ("PT1M30S", 90),
        ("PT1H", 3600),
        ("P1D", 86400),
    ],
)
def test_an_interval_is_read_in_seconds(text: str, seconds: int) -> None:
    assert grain_s(text) == seconds
    assert grain_s(interval(seconds)) == seconds


@pytest.mark.parametrize(
    "text", ["", "1M", "PT", "PT0S", "PT0.5S", "-PT1M", "P1M", "P1Y", "PT1M ", "a minute", "P99999999999999D"]
)
def test_what_is_no_grain_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=f"'{text}' is not a grain"):
        grain_s(text)


def test_an_interval_is_written_as_azure_writes_it() -> None:
    assert [interval(seconds) for seconds in (1, 10, 60, 300, 3600)] == [
        "PT1S",
        "PT10S",
        "PT1M",
        "PT5M",
        "PT1H",
    ]
