"""Values for the options of a disk."""

from __future__ import annotations

from typing import Any, get_args

from diskbook.design.model import Disk
from diskbook.facts.disk_options import Option


def other(option: Option) -> Any:
    """A value that is not the default."""
    if isinstance(option.default, bool):
        return not option.default
    if isinstance(option.default, str):
        known = get_args(Disk.model_fields[option.name].annotation)
        return next(value for value in known if value != option.default)
    if option.name == "tier":
        return "P40"
    return 9000 if option.flexible else 3
