"""Fill in the models of the Azure SDK before threads share them.

A model class of the SDK gets the names and types of its fields when its first object is made (`Model.__new__`
in `_utils/model_base.py` of each of its packages). No lock guards that. Another thread that reads the class
meanwhile raises "RuntimeError: dictionary changed size during iteration": one that makes an object of a
subclass, or reads an answer of a type that has subclasses.
"""

from __future__ import annotations

import functools
import importlib
import threading
from collections.abc import Iterator
from typing import Any

_filling = threading.Lock()


@functools.cache
def fill(package: str) -> None:
    """Fill in all models of a package of the SDK; threads may use them from then on.

    Parameters
    ----------
    package
        Such as "azure.mgmt.compute".
    """
    models = vars(importlib.import_module(f"{package}.models")).values()
    ancestors = {cls for model in models if isinstance(model, type) for cls in model.__mro__}
    with _filling:
        for base in ancestors:
            if "_calculated" in vars(base):  # names of the classes that are filled in
                for model in set(_subclasses(base)):
                    model.__new__(model)


def _subclasses(cls: Any) -> Iterator[Any]:
    for subclass in cls.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)
