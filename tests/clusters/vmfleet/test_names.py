"""Names of VMFleet's results: spelled and read alike, grouped by cell."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from diskbook.clusters.vmfleet import line
from diskbook.design.diskspd_arguments import parse

WORD = st.from_regex(r"[a-z][a-z0-9]{0,6}(?:-[a-z0-9]{1,5}){0,2}", fullmatch=True)


@pytest.mark.parametrize(
    ("file", "told"),
    [
        ("result-b4t10o8w30pr-run1-vm-base-node1-001.xml", ("b4t10o8w30pr-run1", "vm-base-node1-001")),
        ("result-b4t1o1w0psig20-vm-base-n-014.xml", ("b4t1o1w0psig20", "vm-base-n-014")),
        ("result-baseline-vm-base-n1-001.xml", ("baseline", "vm-base-n1-001")),
        ("result-qos2500-vm-base-n1-001.xml", ("qos2500", "vm-base-n1-001")),
        ("result-qos0-client.xml", None),
        ("result-vm-qos0.tsv", None),
        ("result-" + "-vm-" * 20_000 + "1.xml", None),
    ],
)
def test_cell_and_machine(file: str, told: tuple[str, str] | None) -> None:
    assert line.cell_and_machine(file) == told


@pytest.mark.parametrize(
    ("cell", "spec"),
    [("b4t10o8w30pr-run1", "run1"), ("b4t10o8w30psi", ""), ("qos0", ""), ("baseline", ""), ("mine", "mine")],
)
def test_the_word_of_a_sweep(cell: str, spec: str) -> None:
    assert line.spec_of(cell) == spec


def test_volume_and_node_of_a_machine() -> None:
    assert line.place_of("vm-two-way-1-node1-001") == ("two-way-1", "node1")
    assert line.place_of("vm-base-node1-001") == ("", "node1")
    assert line.place_of("client") == ("", "")


@pytest.mark.long
@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(WORD, WORD, st.integers(1, 40)), min_size=1, max_size=6, unique=True), WORD)
def test_machines_of_a_cell_come_together_whatever_they_are_called(
    places: list[tuple[str, str, int]], spec: str
) -> None:
    machines = [line.machine(*place) for place in places]
    asked = parse("-b8K -t2 -o4 -r -w30 -g50 a")
    files = [line.result_file(asked, spec, vm) for vm in machines]
    cells = line.grouped([*files, "fleet.json", "result.tsv"], machines)
    assert sum(len(vms) for vms in cells.values()) == len(set(machines))
    if not any(f"-vm-{vm}" in file for vm in machines for file in files if not file.endswith(f"-{vm}.xml")):
        assert set().union(*cells.values()) == set(machines)
