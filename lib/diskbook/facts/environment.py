"""Read settings from the environment; one that cannot be meant is refused in one sentence."""

from __future__ import annotations

import os

from diskbook.facts.errors import UsageError

SSH_CONFIG = "DISKBOOK_SSH_CONFIG"
"""Names another file than ~/.ssh/config, as `ssh -F` does; known hosts and keys may be named in it."""


def seconds(variable: str, usual: float, most: float) -> float:
    """Read how long something may take, s.

    Parameters
    ----------
    variable
        Name of the environment variable.
    usual
        What holds where it is not set, or empty.
    most
        The longest that is allowed, s; more is taken for as much.

    Raises
    ------
    UsageError
        When it is no number above 0.
    """
    text = os.environ.get(variable) or str(usual)
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not value > 0:
        raise UsageError(
            f"environment: {variable} is '{text}', and must be a number of seconds above 0, as {usual:g}; "
            "set it to one, or take it away"
        )
    return min(value, most)
