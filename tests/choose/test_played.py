"""The command that a choice ends with, played: the chosen machine and disk carry the rate on the emulator."""

import shlex

import pytest

from diskbook.choose import ask, describe
from diskbook.cli import options
from diskbook.report.analysis.computed import measured_rate as rate
from support import emulated
from support.disturbance import load_sensitive


@pytest.mark.emulator
@pytest.mark.measures
@pytest.mark.parametrize(
    ("iops", "wishes"),
    [
        ("600", {"disk": "PremiumV2_LRS"}),
        ("900", {"survive": "zone", "size": "1TiB", "read": "50%"}),
    ],
)
def test_the_choice_carries_its_rate_on_the_emulator(iops: str, wishes: dict[str, str]) -> None:
    answer = ask.ask(**{"iops": iops, "block_size": "4K", "size": "64GiB", **wishes})
    best = answer.choice.cheapest[0].candidate
    words = shlex.split(describe.plan_command(best, answer.need).replace("\\\n", " "))
    changes = dict(options.setting(text) for text in words[4::2])
    changes |= {"all_workloads.working_set_gib": 0.03125, "all_workloads.blocks": 1}
    with emulated.own_place():
        run = emulated.measured("chosen", "first-run", "quiet", changes)
        measured, load = rate(str(run.folder), "p6", "randread-qd32")
    assert load.rate
    with load_sensitive():  # the next smaller disk carries half of it or less
        assert measured >= 0.75 * load.rate
