"""The gate on guests: a processor that was taken away, a core without time left, machines unlike."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from diskbook.design import schema
from diskbook.design.vocabulary import GateStatus, Verdict
from diskbook.stats.gates import Gate, guests
from diskbook.stats.gates.guests import guest_gate

ALIKE = {
    "kernel": "Linux 6.8", "driver": "nvme", "scheduler": "none", "write_cache": "write back",
    "nr_requests": 1023, "steal_pct": 0.2, "busiest_core_pct": 40.0,
}  # fmt: skip


LOAD = ("steal_pct", "busiest_core_pct")


def gate(first: dict[str, Any], second: dict[str, Any] | None, provenance: str = "azure") -> Gate:
    """Judge two arms that `gated` makes."""
    return guest_gate(("zrs", "lrs"), gated(first, second), provenance)


def gated(first: dict[str, Any], second: dict[str, Any] | None) -> list[guests.CellGuest | None]:
    """Gather the cells of two arms; None: nothing was read."""
    cells = guests.guests_by_cell(*tables(first, second))
    return [cells.get((arm, "w")) for arm in ("zrs", "lrs")]


def tables(first: dict[str, Any], second: dict[str, Any] | None) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Make trials and guests of two arms: ten trials each, the last of which has the planted values."""
    trials, rows = [], []
    for arm, planted in {"zrs": first, **({} if second is None else {"lrs": second})}.items():
        for number in range(10):
            known = ALIKE | {name: value for name, value in planted.items() if name not in LOAD}
            known |= planted if number == 9 else {}
            trials.append({"trial": f"{arm}-{number}", "arm": arm, "workload": "w"})
            rows.append({"run": "r", "trial": f"{arm}-{number}", "machine": "vm1", **known})
    guest = schema.from_rows(schema.GUEST, [{**dict.fromkeys(schema.GUEST.names), **row} for row in rows])
    return pd.DataFrame(trials), guest


def test_machines_alike_with_time_left_pass() -> None:
    judged = gate({}, {})
    assert judged.status is GateStatus.PASSED
    assert judged.cause == "machines alike; steal at most 0.2 %, the busiest core at most 40 % of a trial"


@pytest.mark.parametrize(
    ("planted", "told"),
    [
        ({"steal_pct": 5.0}, "over 1 % of the processor from lrs in 1 of 10 trials (steal, worst 5.0 %)"),
        ({"busiest_core_pct": 97.0}, "core of lrs was busy for over 90 % of 1 of 10 trials (worst 97 %)"),
    ],
)
def test_a_processor_that_was_missing_refuses_but_not_on_the_emulator(
    planted: dict[str, Any], told: str
) -> None:
    judged = gate({}, planted)
    assert (judged.status, judged.decides) == (GateStatus.FAILED, Verdict.INVALID)
    assert told in judged.cause
    emulated = gate({}, planted, "emulated")
    assert (emulated.status, emulated.decides) == (GateStatus.FAILED, None)
    assert "the computer that emulates all machines" in emulated.cause


def test_an_arm_has_the_guests_of_its_finished_trials() -> None:
    trials, guest = tables({"steal_pct": 5.0}, {"busiest_core_pct": 97.0})
    failed = trials["trial"] == "zrs-9"
    found = guests.guests_by_arm(trials.assign(status=np.where(failed, "failed", "ok")), guest)
    counts = {arm: (of.n_trials, of.n_stolen, of.n_busy, of.core_worst) for arm, of in found.items()}
    assert counts == {"zrs": (9, 0, 0, 40.0), "lrs": (10, 0, 1, 97.0)}


def test_what_sets_machines_apart_is_named_with_both_values_and_decides_nothing() -> None:
    judged = gate({"write_cache": "write through", "nr_requests": 256}, {"kernel": "Linux 6.11"})
    assert (judged.status, judged.decides) == (GateStatus.FAILED, None)
    assert judged.cause == (
        "kernel: zrs has Linux 6.8, lrs Linux 6.11; write cache: zrs has write through, lrs write back; "
        "nr_requests: zrs has 256, lrs 1023"
    )


def test_what_a_scenario_sets_apart_is_named_and_not_held_against_it() -> None:
    cells = gated({"driver": "Storage Spaces", "write_cache": "off"}, {"driver": "SAS"})
    judged = guest_gate(("zrs", "lrs"), cells, "azure", guests.OF_DEVICE)
    assert judged.status is GateStatus.PASSED
    assert "but for what is compared (driver: zrs has Storage Spaces, lrs SAS; write cache" in judged.cause
    for planted in ({"power_plan": "Balanced"}, {"scheduler": "bfq"}, {"kernel": "Windows 10.0.26100"}):
        one, other = gated({"driver": "SAS", "power_plan": "High", **planted}, {"power_plan": "High"})
        judged = guest_gate(("zrs", "lrs"), [one, other], "azure", guests.OF_DEVICE)
        assert (judged.status, judged.decides) == (GateStatus.FAILED, None)
        assert "driver" not in judged.cause


def test_what_was_not_read_is_not_judged() -> None:
    judged = guest_gate(("zrs", "lrs"), [None, None], "azure")
    assert (judged.status, judged.decides) == (GateStatus.NOT_ASSESSABLE, None)
    one_sided = gate({"kernel": "Linux 6.11"}, None)
    assert (one_sided.status, one_sided.decides) == (GateStatus.NOT_ASSESSABLE, None)
    assert one_sided.cause.startswith("nothing was read of the machine of lrs")
    unknown = gate({"busiest_core_pct": np.nan}, {})
    assert (unknown.status, unknown.decides) == (GateStatus.NOT_ASSESSABLE, None)
    assert "how busy the cores of zrs were" in unknown.cause


def test_a_busy_machine_counts_although_nothing_was_read_of_the_other() -> None:
    judged = gate({"steal_pct": 5.0}, None)
    assert (judged.status, judged.decides) == (GateStatus.FAILED, Verdict.INVALID)
    assert "from zrs in 1 of 10 trials" in judged.cause
