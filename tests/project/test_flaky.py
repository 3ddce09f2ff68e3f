"""The list of tests that were flaky: each exists, with its cause and its remedy."""

from __future__ import annotations

import re
import tomllib

from diskbook.facts import paths


def test_each_test_on_the_list_exists_and_has_a_cause_and_a_remedy() -> None:
    rows = tomllib.loads((paths.ROOT / "checks" / "flaky.toml").read_text("utf-8"))["test"]
    assert rows
    for row in rows:
        assert row.keys() == {"name", "seen", "cause", "remedy"}, row
        assert row["cause"] and row["remedy"] and re.fullmatch(r"\d{4}-\d\d-\d\d", row["seen"]), row
        path, _, function = row["name"].partition("::")
        source = (paths.ROOT / path).read_text("utf-8")
        assert not function or f"def {function}(" in source, f"{row['name']} is gone: remove its row"
