"""Tell a disturbed measurement from a wrong one.

Other programs on the machine can make an I/O late and a rate low, never the opposite. A test states what they
can move inside `load_sensitive`. If such an assertion fails while others used the processor, the test is
measured again with fixtures made anew (see `tests/conftest.py`). Every other failure counts at once.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


class LoadSensitiveError(AssertionError):
    """An assertion failed that other programs on the machine may have caused."""


@contextlib.contextmanager
def load_sensitive() -> Iterator[None]:
    """Mark the assertions in the block as ones that a busy machine can break.

    Raises
    ------
    LoadSensitiveError
        In place of the AssertionError of the block.
    """
    try:
        yield
    except AssertionError as error:
        raise LoadSensitiveError(str(error)) from error
