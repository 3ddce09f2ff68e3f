"""The lines of the doctor as text and as JSON, and whether a run may begin."""

from __future__ import annotations

from collections.abc import Sequence

from diskbook.cloud.kinds import Check, State


def all_ok(checks: Sequence[Check]) -> bool:
    """Whether a run may begin."""
    return all(check.state == State.OK for check in checks)


def text_of(subject: str, checks: Sequence[Check]) -> str:
    """A line a check, and in the last one whether a run may begin."""
    width = max(len(check.name) for check in checks)
    lines = [f"{check.state:<9}  {check.name:<{width}}  {check.text}" for check in checks]
    bad = sum(check.state != State.OK for check in checks)
    last = "all is there; nothing was created" if not bad else f"{bad} of {len(checks)} lines to mend first"
    return "\n".join([f"{subject}:", *lines, last])
