"""Limits that a post names."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from diskbook.design.held_rate import Start
from diskbook.publish import post_words


@pytest.mark.parametrize(
    ("start", "words"),
    [(Start.INTENDED, "linear arrivals"), (Start.SENT, "a lower bound"), ("", None)],
)
def test_a_post_says_from_when_latency_counts_and_how_a_rate_arrives(start: str, words: str | None) -> None:
    lines: Any = SimpleNamespace(rows=[{"lat_start": start}, {}])
    told = post_words._bound(lines)
    assert len(told) == (words is not None) and all(words in sentence for sentence in told if words)
