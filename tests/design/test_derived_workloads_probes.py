"""Probes of single I/Os: where they are added, and what they are."""

from __future__ import annotations

from diskbook.design import derived_workloads, scenario_file, scenario_tables, schedule


def test_compared_single_ios_without_a_deeper_load_get_one_in_the_first_block() -> None:
    scenario = scenario_file.load("shared-zrs", "standard")
    made = {
        item.name: item for item in scenario.workload if item.name.endswith(derived_workloads.PROBE_SUFFIX)
    }
    assert {name: item.arms for name, item in made.items()} == {
        "commit-qd1-probe": ("lrs-n1", "zrs-n1"),
        "read-qd1-probe": ("lrs-n1", "zrs-n1", "zrs-n2", "zrs-p3"),
    }
    commit, read = made.values()
    assert (commit.threads, commit.queue_depth, read.threads, read.queue_depth) == (2, 1, 1, 2)
    assert {(item.blocks, item.runtime_s, item.outstanding) for item in made.values()} == {(1, 10.0, 2)}
    planned = [trial.workload for block in schedule.plan(scenario) for trial in block.trials]
    assert planned.count("read-qd1-probe") == 4 * scenario.design.replicates


def test_none_is_added_twice_or_where_none_is_asked_for() -> None:
    scenario = scenario_file.load("shared-zrs", "standard")
    again = scenario_tables.from_dict(scenario.model_dump(mode="json", exclude_none=True), "manifest")
    assert again.workload == scenario.workload
    without = scenario_file.load("shared-zrs", "standard", {"design.probe_s": 0})
    assert not any(item.name.endswith(derived_workloads.PROBE_SUFFIX) for item in without.workload)


def test_deeper_loads_are_probes_already_and_first_writes_cannot_be_repeated() -> None:
    names = [item.name for item in scenario_file.load("zone-disks", "standard").workload]
    assert [name for name in names if name.endswith(derived_workloads.PROBE_SUFFIX)] == [
        "randread-qd1-probe",  # in zones without a deeper read
        "randwrite-qd1-probe",  # of the second LRS disk
        "commit-qd1-probe",
        "seq-write-64k-probe",
    ]
