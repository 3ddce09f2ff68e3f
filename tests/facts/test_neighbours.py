"""What the core asks of neighbours is there, and nobody asks for a scenario on plain disks."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

from diskbook.facts import neighbours
from diskbook.facts.neighbours import Neighbour
from diskbook.measure.bench.steps import Steps

PLAIN = """
import sys
from diskbook.cost import durations, estimate, plan_sections
from diskbook.design import scenario_file
from diskbook.measure.bench import steps
from diskbook.measure.runs import progress, stages
from diskbook.report.analysis import companion_files, run
from diskbook.stats import expected
from diskbook.tools import registry
scenario = scenario_file.load("zone-disks", "quick")
steps.of(scenario), companion_files.missing(scenario), expected.of(scenario), durations.attach_calls(scenario)
estimate.life_s(scenario), estimate.items(scenario), plan_sections.limits(scenario)
registry.packages("linux")
sys.exit(", ".join(name for name in sys.modules if name.startswith("diskbook.clusters")) or None)
"""


def test_every_name_in_the_table_is_there() -> None:
    table = [value for value in vars(neighbours).values() if isinstance(value, Neighbour)]
    assert len(table) >= 5 and all(asked.__doc__ for asked in table)
    assert all(hasattr(import_module(name), "JUDGES") for name in neighbours.CLAIMS)


def test_steps_on_volumes_are_all_those_of_disks() -> None:
    names = [name for name in vars(Steps) if not name.startswith("_")]
    assert all(hasattr(neighbours.volume_steps, name) for name in names)


@pytest.mark.emulator
def test_a_scenario_on_plain_disks_meets_no_clusters() -> None:
    done = subprocess.run([sys.executable, "-c", PLAIN], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
