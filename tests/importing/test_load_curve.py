"""An import whose files hold measurements at three rates of one load draws latency against load."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from diskbook.importing import run as importer, terminal as import_text
from diskbook.importing.run import Imported
from diskbook.importing.scenario import Settings
from diskbook.report.analysis.run import analyse
from support.results import Result, fio_json


def held(place: Path, *rates: int) -> Imported:
    """Files of fio that held such rates with 64 allowed in flight."""
    place.mkdir()
    for number, rate in enumerate(rates):
        document = json.loads(fio_json("3.36", Result(iops=rate)))
        document["jobs"][0]["job options"] |= {"rate_iops": str(rate), "iodepth": "64"}
        document["timestamp"] += 60 * number
        (place / f"{rate}.json").write_text(json.dumps(document), "utf-8")
    return importer.make([str(place)], f"{place}-run", Settings())


@pytest.mark.long
def test_three_rates_make_a_curve(tmp_path: Path) -> None:
    a = analyse(held(tmp_path / "a", 500, 2500, 4500).run)
    assert a.load_curve is not None and a.load_curve.data["rate_offered"].tolist() == [500, 2500, 4500]
    assert a.load_curve.data["kept"].all() and a.load_curve.data["cap_iops"].isna().all()
    assert "load-curve.svg" in {path.name for path in import_text.write(a)}


def test_two_rates_make_none(tmp_path: Path) -> None:
    assert analyse(held(tmp_path / "a", 500, 2500).run).load_curve is None
