"""Performance counters: paths as Windows writes them, and rows of a trial."""

from __future__ import annotations

import pytest

from diskbook.clusters.design import counters
from diskbook.design import schema


@pytest.mark.parametrize(
    ("path", "name", "instance"),
    [
        (
            r"\\r1-n1\network interface(nic (2))\bytes sent/sec",
            r"Network Interface\Bytes Sent/sec",
            "nic (2)",
        ),
        (r"\Cluster CSVFS(vol)\Reads/sec", r"Cluster CSVFS\Reads/sec", "vol"),
        (r"\\x\system\threads", r"system\threads", ""),
    ],
)
def test_a_path_is_taken_apart_and_spelt_as_it_is_asked_for(path: str, name: str, instance: str) -> None:
    assert counters.split(path) == (name, instance)


def test_what_is_no_path_is_refused() -> None:
    with pytest.raises(ValueError, match="'threads' is not a path of a performance counter"):
        counters.split("threads")


def test_every_counter_is_asked_for_with_all_instances_and_read_again() -> None:
    for name in counters.NAMES:
        assert counters.split(counters.path(name).lower()) == (name, "*")


def test_rows_have_both_totals_and_nothing_where_one_is_missing() -> None:
    def answer(**raw: float) -> dict[str, list[dict[str, object]]]:
        return {"samples": [{"path": rf"\refs({name})\x", "raw": value} for name, value in raw.items()]}

    rows = list(counters.rows("run", "t", {"n1": answer(a=1, b=2)}, {"n1": answer(a=5), "n2": answer(a=7)}))
    table = schema.from_rows(schema.COUNTERS, rows)
    shown = table[["machine", "instance", "before", "after"]].fillna(-1).to_numpy().tolist()
    assert shown == [["n1", "a", 1, 5], ["n1", "b", 2, -1], ["n2", "a", -1, 7]]
