"""Reading of the TOML files that users write: scenarios, batches, hosts, emulator profiles."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from diskbook.facts import files
from diskbook.facts.errors import UsageError
from diskbook.facts.units import MIB
from diskbook.facts.validation import one_line

MOST = MIB
"""Bytes of such a file; the largest that come with the workbook have 20 kB."""


def read(path: Path, missing: str) -> dict[str, Any]:
    """Read a TOML file.

    Parameters
    ----------
    path
        The file.
    missing
        What to say where there is none.

    Raises
    ------
    UsageError
        When there is none, or it cannot be read, is too large, or is not TOML.
    """
    try:
        if path.stat().st_size > MOST:
            raise UsageError(f"{path.name}: more than {MOST // MIB} MiB is too large to be meant")
        return tomllib.loads(files.read_packed(path, most=MOST, packed=False).decode())
    except (FileNotFoundError, NotADirectoryError):
        raise UsageError(missing) from None
    except files.BrokenError as error:
        raise UsageError(f"{path}: this cannot be read: {error.why}") from None
    except OSError as error:
        raise UsageError(f"{path}: this cannot be read: {error.strerror or error}") from None
    except RecursionError:
        raise UsageError(f"{path.name}: this is not valid TOML: its tables or lists are too deep") from None
    except ValueError as error:  # not TOML, not UTF-8, or a number of thousands of digits
        raise UsageError(one_line(f"{path.name}: this is not valid TOML: {error}")) from None
