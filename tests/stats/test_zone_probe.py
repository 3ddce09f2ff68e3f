"""The zones of the sample's shared disks, found from reads; planted and played: test_shared_zrs.py."""

from __future__ import annotations

import pytest

from diskbook.stats.zone_probe import probe
from support import samples


@pytest.mark.long
def test_zones_are_compared_over_the_blocks_that_all_of_them_have() -> None:
    trials = samples.analysed("shared-zrs").trials
    reads = trials[trials["workload"] == "read-qd1"]
    lacking = (reads["replicate"] == 1) & (reads["block"] == 1) & (reads["arm"] == "zrs-p3")
    before, after = (probe(rows).groupby("replicate")["n_blocks"] for rows in (reads, reads[~lacking]))
    assert before.unique().map(list).tolist() == [[2], [2], [2]]
    assert after.unique().map(list).tolist() == [[1], [2], [2]]
