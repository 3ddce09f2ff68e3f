"""What is computed or drawn of an analysis once, and kept with it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar

A = TypeVar("A")
V = TypeVar("V")


def once(compute: Callable[[A], V]) -> Callable[[A], V]:
    """Keep what a function makes of an analysis: several cells of a notebook ask, and the last one exports.

    Everybody gets the same object, so nobody may change it.
    """
    kept = f"{compute.__module__}.{compute.__qualname__}"

    @functools.wraps(compute)
    def kept_or_computed(a: A) -> V:
        if kept not in a.__dict__:
            a.__dict__[kept] = compute(a)
        value: V = a.__dict__[kept]
        return value

    return kept_or_computed
