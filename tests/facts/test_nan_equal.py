"""A missing number equals a missing number, whichever Python and wherever the record comes from."""

from __future__ import annotations

import copy
import importlib
import math
import pickle
import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import NamedTuple

import numpy as np
import pytest

import diskbook
from diskbook.facts.nan_equal import NanEqual


class Interval(NamedTuple):
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Cell(NanEqual):
    rate: float
    ends: tuple[float, ...] = (1.0, math.nan)


@dataclass(frozen=True, eq=False)
class Trial(NanEqual):
    cell: Cell
    by_name: dict[str, float] = field(default_factory=dict)
    listed: list[float] = field(default_factory=list)
    array: np.ndarray = field(default_factory=lambda: np.empty(0))
    interval: Interval | None = None


def missing() -> float:
    """A NaN that is an object of its own."""
    return float("nan")


def trial() -> Trial:
    return Trial(
        Cell(missing(), (1.0, missing())),
        {"a": missing()},
        [missing(), 2.0],
        np.array([[1.0, missing()]]),
        Interval(missing(), 1.0),
    )


def test_records_with_missing_numbers_are_equal() -> None:
    first = trial()
    assert first == first  # noqa: PLR0124
    assert first == trial() and first in [trial()] and [first] == [trial()]
    assert copy.deepcopy(first) == first and pickle.loads(pickle.dumps(first)) == first


@pytest.mark.parametrize(
    "change",
    [
        {"cell": Cell(0.0)},
        {"cell": Cell(missing(), (1.0, 2.0))},
        {"by_name": {"a": 0.0}},
        {"by_name": {"b": missing()}},
        {"listed": [missing()]},
        {"array": np.array([1.0, missing()])},
        {"array": np.array([[missing(), 1.0]])},
        {"interval": Interval(missing(), missing())},
    ],
)
def test_a_missing_number_equals_no_other_value(change: dict[str, object]) -> None:
    assert replace(trial(), **change) != trial()


def test_none_is_no_missing_number_and_other_classes_are_unequal() -> None:
    @dataclass(frozen=True, eq=False)
    class Other(Cell):
        pass

    assert Cell(None) != Cell(missing())  # type: ignore[arg-type]
    assert Other(1.0) != Cell(1.0)
    assert Cell(1.0) != (1.0, (1.0, math.nan))


def test_equal_records_have_one_hash() -> None:
    assert len({Cell(missing(), (missing(),)), Cell(missing(), (missing(),)), Cell(1.0)}) == 2
    with pytest.raises(TypeError, match="unhashable"):
        hash(trial())


def public_dataclasses() -> Iterator[type]:
    for module in pkgutil.walk_packages(diskbook.__path__, "diskbook."):
        if not module.name.startswith("checks") and not module.name.endswith("__main__"):
            for name, value in vars(importlib.import_module(module.name)).items():
                own = isinstance(value, type) and value.__module__ == module.name
                if own and is_dataclass(value) and not name.startswith("_"):
                    yield value


def may_lack_numbers(record: type) -> bool:
    """Whether it has numbers, and a default or the docstring says that one may be NaN."""
    by_default = any(item.default != item.default for item in fields(record))
    has_numbers = any(item.type in ("float", float, float | None) for item in fields(record))
    return has_numbers and (by_default or "NaN" in (record.__doc__ or ""))


def test_every_record_whose_numbers_may_be_missing_has_this_equality() -> None:
    records = list(public_dataclasses())
    incomplete = {record for record in records if may_lack_numbers(record)}
    assert len(incomplete) > 5
    assert {record for record in incomplete if not issubclass(record, NanEqual)} == set()
    assert [record for record in records if issubclass(record, NanEqual) and "__eq__" in vars(record)] == []
