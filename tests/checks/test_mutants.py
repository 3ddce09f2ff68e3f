"""What `make mutants` changes, and where."""

from __future__ import annotations

import pytest

from checks import mutants


@pytest.mark.parametrize(
    ("text", "mutated"),
    [
        ("low < high", ["(low <= high)"]),
        ("x = a and b", ["x = (a or b)"]),
        ("x = 'é', not b", ["x = 'é', (b)"]),
        ("x = 2 * y", ["x = (2 / y)", "x = (3) * y"]),
        ("def f(a: int | None = True) -> A | B:\n    return a", ["(False)", "return (None)"]),
        ("x = f'{a + b}'", []),
    ],
)
def test_one_change_at_a_time_where_code_runs(text: str, mutated: list[str]) -> None:
    content = text.encode()
    changed = [
        (content[: mutant.start] + mutant.after.encode() + content[mutant.end :]).decode()
        for mutant in mutants.mutants("m.py", text)
    ]
    assert len(changed) == len(mutated)
    assert all(part in whole for part, whole in zip(mutated, changed, strict=True))
