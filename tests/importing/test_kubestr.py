"""kubestr's envelope: storage classes are arms, rates are told, latencies mostly not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from diskbook.importing import formats, run as importer
from diskbook.results import tables
from diskbook.tools.record import UnusableError

CONFIG = """[global]
randrepeat=0
verify=0
ioengine=libaio
direct=1
gtod_reduce=1
[read_iops]
name=read_iops
bs=4K
iodepth=64
size=2G
readwrite=randread
time_based
ramp_time=2s
runtime=15s
"""


def envelope(name: str, sku: str, iops: float) -> dict[str, Any]:
    """What `kubestr fio -o json` of one storage class says; zeros and unknown options are left out."""
    ios = round(15 * iops)
    read = {"io_bytes": 4096 * ios, "io_kbytes": 4 * ios, "bw": 4 * iops, "iops": iops, "runtime": 15000}
    empty = {key: {} for key in ("slat_ns", "clat_ns", "lat_ns")}
    options = {
        "name": "read_iops",
        "bs": "4K",
        "iodepth": "64",
        "size": "2G",
        "rw": "randread",
        "runtime": "15s",
    }
    job = {"jobname": "read_iops", "job options": options, "read": {**read, "total_ios": ios, **empty}}
    result = {
        "fio version": "fio-3.20", "timestamp": 1700000000 + round(iops),
        "global options": {"verify": "0", "ioengine": "libaio", "direct": "1", "gtod_reduce": "1"},
        "jobs": [{**job, "write": empty, "trim": empty, "sync": {}, "iodepth_level": {}}],
    }  # fmt: skip
    storage = {
        "metadata": {"name": name},
        "provisioner": "disk.csi.azure.com",
        "parameters": {"skuName": sku},
    }
    raw = {"size": "100Gi", "storageClass": storage, "fioConfig": CONFIG, "result": result}
    return {"TestName": "FIO test results", "Status": [{"StatusCode": "OK"}], "Raw": raw}


def listed(item: dict[str, Any]) -> dict[str, Any]:
    return {**item, "Raw": {**item["Raw"], "result": [item["Raw"]["result"]]}}


@pytest.mark.long
@pytest.mark.parametrize("shape", [lambda item: item, listed, lambda item: [item], lambda item: item["Raw"]])
def test_storage_classes_are_arms(tmp_path: Path, shape: Any) -> None:
    for name, sku, iops in (("lrs", "Premium_LRS", 500.0), ("zrs", "Premium_ZRS", 510.0)):
        (tmp_path / f"{iops:.0f}.json").write_text(json.dumps(shape(envelope(name, sku, iops)), indent=1))
    made = importer.make([str(tmp_path)], f"{tmp_path}-run")
    assert set(made.arms) == {"lrs-premium-lrs-100gi", "zrs-premium-zrs-100gi"} and not made.refused
    trials = tables.read(made.run.folder).trials
    assert set(trials["iops"]) == {500.0, 510.0} and trials["lat_mean_ms"].isna().all()
    assert set(trials["workload"]) == {"randread-4k-qd64"}
    assert any("no latencies were recorded" in flag for flag in made.flags)


def test_unlike_jobs_of_kubestr_are_refused() -> None:
    item = envelope("lrs", "Premium_LRS", 500.0)
    item["Raw"]["result"]["jobs"][0]["write"] = item["Raw"]["result"]["jobs"][0]["read"]
    with pytest.raises(UnusableError, match="other jobs were summed with it"):
        formats.parse(json.dumps(item).encode(), "x")


def test_a_cut_envelope_is_one_sentence() -> None:
    text = json.dumps(envelope("lrs", "Premium_LRS", 500.0))
    with pytest.raises(UnusableError, match=r"^x: kubestr's JSON is damaged or cut$"):
        formats.parse(text[: len(text) - 40].encode(), "x")
