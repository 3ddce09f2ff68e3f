"""Quotas of vCPUs that runs on Azure share."""

from __future__ import annotations

import pytest

from diskbook.batch import loop, quota
from diskbook.batch.loop import Batch
from diskbook.batch.quota import Quotas
from diskbook.facts.errors import UsageError
from support.batches import Played, an_item, items, priced

FAMILY = "westeurope/standardDASv4Family"  # of Standard_D4as_v4, which has four


def test_a_run_takes_the_vcpus_of_all_its_machines_at_once() -> None:
    assert quota.needed(an_item(cloud="azure", design__replicates=3)) == {FAMILY: 12, "westeurope/cores": 12}


def test_runs_on_azure_wait_for_each_other_s_vcpus_and_emulated_ones_take_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loop, "POLL_S", 0.0)
    for limits, most in (({FAMILY: 8}, 2), ({"WestEurope/cores": 4}, 1), ({"eastus/cores": 4}, 5), ({}, 5)):
        engine = Played(room=5)
        batch = Batch(items(5, cloud="azure"), engine, None, priced(), engine, Quotas(limits))
        batch.run(lambda event, row: None)
        assert (batch.exit_code, engine.most) == (0, most), limits
    engine = Played(room=5)
    Batch(items(5), engine, None, priced(), engine, Quotas({FAMILY: 4})).run(lambda event, row: None)
    assert engine.most == 5


def test_a_run_that_never_fits_and_a_name_that_does_not_exist_are_told_before_anything_runs() -> None:
    with pytest.raises(UsageError, match=r"takes 8 vCPUs of westeurope/standarddasv4family, of which .* 4;"):
        Quotas({FAMILY: 4}).check(items(1, cloud="azure", design__replicates=2))
    for name, said in (
        ("westeurope/standardDASv44Family", "no family of sizes .* did you mean 'standardDASv4Family'"),
        ("westeurop/cores", "did you mean 'westeurope'"),
        ("cores", "write REGION/FAMILY"),
    ):
        with pytest.raises(UsageError, match=said):
            quota.check_names([name], "[quota]")
