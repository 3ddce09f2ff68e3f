"""Equality of records that hold measured numbers, some of which are missing (NaN)."""

import math
from dataclasses import Field, fields
from typing import Any, ClassVar

import numpy as np

_MISSING = object()


class NanEqual:
    """Base of dataclasses (with `eq=False`) in which a missing number equals a missing number.

    The equality that dataclasses generate depends on the version of Python: up to 3.12 a NaN equals the same
    object only, from 3.13 on it equals nothing. It raises ValueError for fields that are arrays.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __eq__(self, other: object) -> bool:
        """Return whether the other is of the same class, with the same values."""
        if type(other) is not type(self):
            return NotImplemented
        return _values(self) == _values(other)

    def __hash__(self) -> int:
        """Return a hash that agrees with the equality.

        Raises TypeError where a field cannot be hashed.
        """
        return hash(_values(self))


def _values(record: NanEqual) -> tuple[object, ...]:
    return tuple(_comparable(getattr(record, field.name)) for field in fields(record))


def _comparable(value: object) -> object:
    """Return what compares as the value does, with one and the same object for every NaN."""
    if isinstance(value, float):
        return _MISSING if math.isnan(value) else value
    if isinstance(value, np.ndarray):
        return value.shape, _comparable(value.tolist())
    if isinstance(value, tuple):
        return tuple(map(_comparable, value))
    if isinstance(value, list):
        return list(map(_comparable, value))
    if isinstance(value, dict):
        return {key: _comparable(part) for key, part in value.items()}
    return value
