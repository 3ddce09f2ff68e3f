"""Imports that leave out what a library would load for cases that are none of ours."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

SPECIAL_FORMATS = ("rfc3987_syntax",)
"""jsonschema, and so nbformat: compiles the grammar of IRIs (1.2 s); no notebook holds a format to check."""
REMOTE_NOTEBOOKS = ("papermill.abs", "papermill.adl", "papermill.s3", "gcsfs", "pyarrow.fs", "github")
"""papermill: clients of the stores that notebooks may be read from (1.3 s); ours are files."""


@contextmanager
def without(*names: str) -> Iterator[None]:
    """Let modules seem not to be installed while this is entered; those imported before stay.

    For libraries that do without them, as they do where they are not there.
    """
    hidden = [name for name in names if name not in sys.modules]
    # As the import system's documentation has it: None makes an import fail.
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in hidden:
            sys.modules.pop(name, None)
