"""The platform's metrics: the unmodified SDK client against the emulator, the answers kept, what they say."""

from __future__ import annotations

import gzip
import json
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from azure.core.exceptions import HttpResponseError
from azure.monitor.querymetrics import MetricsClient

from diskbook.cloud.azure import clients as azure, monitor
from diskbook.design import schema
from diskbook.facts import metrics as facts_metrics
from diskbook.facts.errors import DiskbookError
from diskbook.hosts.ssh import Connection
from diskbook.results import tables
from diskbook.results.run import Run
from diskbook.stats import platform as platform_metrics
from diskbook_emulator import lifecycle
from diskbook_emulator.types import Activity, DiskSpec, Limits, VmSpec
from support import emulated, synthetic
from support.arm_plane import SUBSCRIPTION, World, world
from support.manifests import MINIMAL

NAMESPACE = facts_metrics.NAMESPACE
DISK_IOPS, DISK_MB_S = "Data Disk IOPS Consumed Percentage", "Data Disk Bandwidth Consumed Percentage"
VM_IOPS = "VM Uncached IOPS Consumed Percentage"
VM_CREDIT = "VM Remote Used Burst IO Credits Percentage"
MINUTE = timedelta(minutes=1)


# --- the emulator's answers


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A machine with two disks that did, ten minutes ago and for two minutes, what `activities` says."""
    with world(tmp_path_factory.mktemp("monitor"), time_scale=0.0) as made:
        group = made.group("metrics")
        vm = made.vm(group, "vm1")
        stored = made.app.state.plane.store.get(vm.id)
        stored.properties["timeCreated"] = datetime.fromtimestamp(began(), UTC).isoformat()
        made.backend.activity = lambda: activities(vm.id.lower())  # type: ignore[attr-defined]
        made.vm_id = vm.id  # type: ignore[attr-defined]
        made.metrics = made.monitor = client(made)  # type: ignore[attr-defined]
        yield made


def client(made: World) -> MetricsClient:
    cloud = azure.Cloud(
        "emulator", SUBSCRIPTION, azure.StaticToken(made.settings.token), made.url, made.ca, time_scale=0.0
    )
    return MetricsClient(made.url, cloud.credential, **azure.Clients(cloud).options())


def began() -> int:
    return int(time.time()) // 60 * 60 - 600


@pytest.fixture(autouse=True)
def one_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """In one test it is always the same minute, so that a new one does not shift what is expected."""
    minute = began()
    monkeypatch.setitem(globals(), "began", lambda: minute)


def activities(vm_id: str) -> list[Activity]:
    """LUN 0: 5,100 IOPS for a minute, then nothing; LUN 1: 500 IOPS of 4 KiB in the second minute."""
    vm = VmSpec(vm_id, "vm1", "Standard_D4as_v4", "1", "linux", "me", (), "")
    burst = Limits(6400, 96, 8000, 200, credit_ios=2_880_000, credit_mb=187_200)
    found = []
    for lun, (start, rate) in enumerate([(began(), 5100), (began() + 60, 500)]):
        disk = DiskSpec(f"/disk{lun}", f"d{lun}", "Premium_LRS", 1024, "1", 1, 5000, 200, False, False, "P30")
        seconds = start + np.arange(60)
        counts = np.column_stack([seconds, *np.tile([[rate], [rate * 4096], [0], [0]], 60)])
        attached = float(start)
        found.append(
            Activity(vm, disk, lun, attached, None, Limits(5000, 200), burst, Limits(8000, 64), counts)
        )
    return found


def query(
    made: Any, names: list[str], minutes: int = 3, **options: Any
) -> dict[tuple[str, str], list[float]]:
    """Averages by metric and LUN from the beginning on."""
    start = datetime.fromtimestamp(began(), UTC)
    wanted = {"granularity": MINUTE, "aggregations": ["average", "maximum"], **options}
    (result,) = made.monitor.query_resources(
        resource_ids=[made.vm_id],
        metric_namespace=NAMESPACE,
        metric_names=names,
        timespan=(start, start + minutes * MINUTE),
        **wanted,
    )
    return {
        (metric.name, part.metadata_values.get("LUN", "")): [value.average for value in part.data]
        for metric in result.metrics
        for part in metric.timeseries
    }


def test_a_disk_on_its_cap_reads_102_and_the_machine_its_share(plane: World) -> None:
    by_lun = query(plane, [DISK_IOPS, DISK_MB_S], filter="LUN eq '*'")
    assert by_lun[DISK_IOPS, "0"] == [102.0, 0.0, 0.0]
    assert by_lun[DISK_IOPS, "1"] == [None, 10.0, 0.0]  # attached in the second minute
    assert by_lun[DISK_MB_S, "1"][1] == pytest.approx(500 * 4096 / 200e6 * 100, abs=0.001)
    machine = query(plane, [VM_IOPS])
    assert machine[VM_IOPS, ""] == pytest.approx([5100 / 64, 500 / 64, 0.0], abs=0.001)


def test_luns_can_be_named_and_without_a_filter_are_one_series(plane: World) -> None:
    assert set(query(plane, [DISK_IOPS], filter="LUN eq '1'")) == {(DISK_IOPS, "1")}
    assert query(plane, [DISK_IOPS])[DISK_IOPS, ""][1] == 5.0
    assert len(query(plane, [DISK_IOPS], filter="LUN eq '*'", max_results=1)) == 1


def test_used_credit_rises_with_what_is_above_the_base(plane: World) -> None:
    assert query(plane, [VM_CREDIT])[VM_CREDIT, ""] == [0.0, 0.0, 0.0]
    calm = plane.backend.activity
    loud = [replace(item, counts=item.counts * [1, 2, 1, 1, 1]) for item in activities(plane.vm_id.lower())]
    plane.backend.activity = lambda: loud
    try:
        used = query(plane, [VM_CREDIT])[VM_CREDIT, ""]
    finally:
        plane.backend.activity = calm
    assert used[0] == pytest.approx(100 * 60 * (10200 - 6400) / 2_880_000, abs=0.001)
    assert used[1] < used[0]  # below the base it refills


def test_the_grain_may_be_a_second_where_the_profile_says_so(plane: World) -> None:
    control = plane.app.state.plane
    calm = control.settings
    control.settings = replace(calm, metrics_grain_s=1)
    try:
        found = query(plane, [VM_IOPS], minutes=1, granularity=timedelta(seconds=1))
    finally:
        control.settings = calm
    assert found[VM_IOPS, ""] == [pytest.approx(5100 / 64, abs=0.001)] * 60


@pytest.mark.parametrize("seconds", [1, 10, 180])
def test_a_grain_that_azure_has_not_is_refused_in_its_words(plane: World, seconds: int) -> None:
    grains = "00:01:00,00:05:00,00:15:00,00:30:00,01:00:00,06:00:00,12:00:00,1.00:00:00"
    with pytest.raises(
        HttpResponseError, match=f"Invalid time grain duration: .*, supported ones are: {grains}"
    ):
        query(plane, [VM_IOPS], granularity=timedelta(seconds=seconds))


def test_a_minute_arrives_after_azures_delay_on_the_scaled_clock(plane: World) -> None:
    control = plane.app.state.plane
    calm = control.settings
    control.settings = replace(calm, time_scale=3.5)  # of 180 s: more than ten minutes, less than eleven
    try:
        late = query(plane, [VM_IOPS])
    finally:
        control.settings = calm
    assert late[VM_IOPS, ""] == [None, None, None]
    assert query(plane, [VM_IOPS])[VM_IOPS, ""][0] is not None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"metric_names": ["Percentage Disk"]}, "metric configuration"),
        ({"metric_names": [VM_IOPS], "filter": "LUN eq '*'"}, "dimension"),
        ({"metric_names": [VM_IOPS] * 21}, "metric names"),
        ({"resource_ids": [f"/subscriptions/{SUBSCRIPTION}/vm9"] * 51}, "1 to 50"),
        ({"metric_namespace": "Microsoft.Compute/disks"}, "namespace"),
        ({"resource_ids": [f"/subscriptions/{SUBSCRIPTION}/vm9"]}, "not found"),
    ],
)
def test_what_azure_would_refuse_is_refused(plane: World, change: dict, message: str) -> None:
    start = datetime.fromtimestamp(began(), UTC)
    asked = {"resource_ids": [plane.vm_id], "metric_namespace": NAMESPACE, "metric_names": [VM_IOPS]}
    with pytest.raises(HttpResponseError, match=message):
        plane.monitor.query_resources(**{**asked, **change}, timespan=(start, start + MINUTE))


# --- fetching into a run


def ledger_trial(run: Run, start: float, seconds: float, **changes: Any) -> None:
    place = {"replicate": 1, "arm": "a", "workload": "load", "machine_id": changes.pop("machine_id")}
    times = {"started_utc": stamp(start), "ended_utc": stamp(start + seconds)}
    run.append("trial", trial=f"t{start:.0f}", status="ok", **place, **times, **changes)


def stamp(epoch_s: float) -> str:
    return datetime.fromtimestamp(epoch_s, UTC).isoformat()


@pytest.fixture
def run(tmp_path: Path, plane: World) -> Run:
    """A run on the machine, which has replaced another one."""
    made = Run(tmp_path / "run")
    made.folder.mkdir()
    scenario = {
        "name": "one",
        "scenario": {"region": "westeurope"},
        "workload": [{"name": "load", "runtime_s": 120.0, "ramp_s": 0.0}],
        "disk": [{"name": "d", "cache": "None"}],
    }
    ids = ("/gone", plane.vm_id.lower())
    replicates = [
        {"replicate": number, "origin": 1, "machines": {"vm1": {"id": one, "limits": {}}}, "disks": {}}
        for number, one in enumerate(ids, 1)
    ]
    about = {**MINIMAL, "run": "run", "provenance": "emulated", "replicates": replicates}
    made.write_manifest({**about, "scenario": scenario})
    return made


def clients(made: World, **changes: Any) -> azure.Clients:
    cloud = azure.Cloud(
        "emulator", SUBSCRIPTION, azure.StaticToken(made.settings.token), made.url, made.ca, time_scale=0.0
    )
    return azure.Clients(replace(cloud, **changes))


def metric_events(run: Run) -> list[dict[str, Any]]:
    return [event for event in run.ledger() if event["event"] == "metrics"]


def test_metrics_are_fetched_once_kept_as_they_came_and_read_back(plane: World, run: Run) -> None:
    ledger_trial(run, began(), 120.0, machine_id=plane.vm_id.lower())
    monitor.keep(run, clients(plane))
    monitor.keep(run, clients(plane))
    (event,) = metric_events(run)
    assert (event["status"], event["error"], event["grain_s"]) == ("ok", None, 60)
    assert [entry["path"] for entry in event["files"]] == [f"raw/metrics-{n}.json.gz" for n in (1, 2)]
    kept = json.loads(gzip.decompress((run.folder / "raw" / "metrics-1.json.gz").read_bytes()))
    assert kept["values"][0]["value"][0]["timeseries"][0]["data"][0]["average"] == 102.0

    answers = [
        json.loads(gzip.decompress((run.folder / item["path"]).read_bytes())) for item in event["files"]
    ]
    found = platform_metrics.table(answers, "emulated").set_index(["metric", "lun", "minute_utc"])["maximum"]
    first = pd.Timestamp(began(), unit="s", tz="UTC")
    assert found[DISK_IOPS, "0", first] == 102.0
    assert found[VM_IOPS].iloc[0] == pytest.approx(5100 / 64, abs=0.001)


def test_metrics_that_have_not_arrived_make_an_incomplete_answer(plane: World, run: Run) -> None:
    ledger_trial(run, began(), 120.0, machine_id=plane.vm_id.lower())
    ledger_trial(run, began() + 600, 120.0, machine_id=plane.vm_id.lower())
    monitor.keep(run, clients(plane))
    (event,) = metric_events(run)
    assert event["status"] == "incomplete" and "had not arrived" in event["error"] and event["files"]


def test_trials_shorter_than_the_grain_are_not_waited_for(plane: World, run: Run) -> None:
    ledger_trial(run, 30.0, 80.0, machine_id=plane.vm_id.lower())
    manifest = {**run.manifest, "provenance": "azure"}
    manifest["scenario"]["workload"][0]["runtime_s"] = 80.0
    asked = monitor.unfetched(manifest, run.ledger())
    assert asked is not None and (asked.grain_s, asked.start, asked.end, asked.needed) == (60, 0.0, 110.0, {})
    run.write_manifest(manifest)
    monitor.keep(run, clients(plane, credential=azure.StaticToken("nobody")))  # who is not even asked
    (event,) = metric_events(run)
    assert (event["status"], event["error"], event["files"]) == ("none", monitor.NOTHING_NEEDED, [])
    assert monitor.unfetched(manifest, run.ledger()) is None


def test_a_trial_for_evidence_is_as_long_as_its_line_says(plane: World, run: Run) -> None:
    manifest = run.manifest
    manifest["scenario"]["workload"][0]["runtime_s"] = 0.2
    ledger_trial(run, 30.0, 150.0, machine_id=plane.vm_id.lower(), evidence_s=150.0)
    asked = monitor.unfetched(manifest, run.ledger())
    assert asked is not None and asked.needed == {plane.vm_id.lower(): 120.0}


def test_the_grain_is_that_of_the_profile_on_the_emulator(plane: World, run: Run) -> None:
    ledger_trial(run, began(), 120.0, machine_id=plane.vm_id.lower())
    asked = monitor.unfetched({**run.manifest, "emulator": {"metrics_grain_s": 1}}, run.ledger())
    assert asked is not None and asked.grain_s == 1


def test_machines_that_were_replaced_are_not_asked_for(plane: World, run: Run) -> None:
    ledger_trial(run, began() - 600, 120.0, machine_id="/gone")
    ledger_trial(run, began(), 120.0, machine_id=plane.vm_id.lower())
    asked = monitor.unfetched(run.manifest, run.ledger())
    assert asked is not None and asked.machines == (plane.vm_id.lower(),) and asked.start == began()


def test_a_failure_is_one_sentence_in_the_ledger_and_is_asked_again(plane: World, run: Run) -> None:
    ledger_trial(run, began(), 120.0, machine_id=plane.vm_id.lower())
    monitor.keep(run, clients(plane, credential=azure.StaticToken("another")))
    monitor.keep(run, clients(plane))
    failed, fetched = metric_events(run)
    assert failed["status"] == "failed" and "not fetched" in failed["error"] and "\n" not in failed["error"]
    assert fetched["status"] == "ok"


def test_a_cloud_whose_metrics_host_is_not_known_is_no_failure_of_the_run(plane: World, run: Run) -> None:
    ledger_trial(run, began(), 120.0, machine_id=plane.vm_id.lower())
    monitor.keep(run, clients(plane, kind="azure"))
    (event,) = metric_events(run)
    assert event["status"] == "failed" and "no host of metrics is known" in event["error"]


# --- what they say


CAPPED, LOW, SHORT = "r1-b1-capped", "r1-b1-low", "r1-b1-short"


def trials() -> pd.DataFrame:
    """Trials of five minutes on the disk's cap and far below it, and one of half a minute."""
    made = synthetic.tables(n_blocks=1, loads=(synthetic.DEEP_READ,))[0].iloc[:3]
    start = pd.to_datetime(["2026-11-20T08:00:30Z", "2026-11-20T08:10:30Z", "2026-11-20T08:20:30Z"])
    return made.assign(
        trial=[CAPPED, LOW, SHORT],
        machine_id="/subscriptions/S/vm1",
        lun=["0", "1", "0"],
        started_utc=start,
        ramp_s=0.0,
        runtime_s=[300.0, 300.0, 30.0],
        iops=[5100.0, 450.0, 450.0],
        throughput_mb_s=[20.9, 1.8, 1.8],
    )


def answer(values: dict[tuple[str, str], dict[int, float]], resource: str = "/subscriptions/s/VM1") -> dict:
    """An answer as documented: values by metric and LUN ("" for none), by minute after 08:00."""
    rows = []
    for (name, lun), points in values.items():
        times = [f"2026-11-20T08:{minute:02}:00Z" for minute in points]
        data = [
            {"timeStamp": t, "average": v, "maximum": v} for t, v in zip(times, points.values(), strict=True)
        ]
        labels = [{"name": {"value": "lun", "localizedValue": "lun"}, "value": lun}] if lun else []
        series = [{"metadatavalues": labels, "data": [*data, {"timeStamp": "2026-11-20T08:59:00Z"}]}]
        rows.append({"name": {"value": name}, "timeseries": series})
    return {"values": [{"resourceid": resource, "interval": "PT1M", "value": rows}]}


def table(capped: float = 102.0, low: float = 9.0) -> pd.DataFrame:
    disks = {
        (DISK_IOPS, "0"): {0: 50.0, 1: capped, 2: capped, 3: capped, 4: capped, 5: 20.0},
        (DISK_IOPS, "1"): {1: 99.9, 11: low, 12: low, 14: low},
        (VM_IOPS, ""): {1: 80.0, 2: 80.0, 11: low, 12: low},
        (VM_CREDIT, ""): {1: 30.0, 11: 40.0},
    }
    return platform_metrics.table([answer(disks)], "azure")


def test_answers_become_a_table_of_which_the_later_value_stays() -> None:
    found = platform_metrics.table(
        [answer({(DISK_IOPS, "0"): {1: 5.0}}), answer({(DISK_IOPS, "0"): {1: 7.0}})], "azure"
    )
    assert len(found) == 1 and found.loc[0, "maximum"] == 7.0
    assert list(found.columns) == [column.name for column in schema.METRICS.columns]
    assert (found.loc[0, "machine_id"], found.loc[0, "lun"]) == ("/subscriptions/s/vm1", "0")
    assert (found.loc[0, "grain_s"], found.loc[0, "minute_utc"]) == (60, pd.Timestamp("2026-11-20T08:01:00Z"))


def test_only_whole_windows_within_a_trial_count() -> None:
    found = platform_metrics.of_trials(trials(), table()).set_index(["trial", "metric"])
    assert found.loc[(CAPPED, DISK_IOPS), ["windows", "average", "maximum"]].tolist() == [4, 102.0, 102.0]
    assert found.loc[(LOW, DISK_IOPS), ["windows", "maximum"]].tolist() == [3, 9.0]
    assert bool(found.loc[(CAPPED, VM_CREDIT), "credit"]) and found.loc[(LOW, VM_CREDIT), "maximum"] == 40.0
    assert SHORT not in found.index.get_level_values(0)


def test_agreement_and_disagreement_with_our_own_reading() -> None:
    found = platform_metrics.evidence(trials(), table()).set_index("trial")
    assert found["agrees"].tolist() == ["yes", "yes", ""]
    assert found.loc[CAPPED, "platform"] == found.loc[CAPPED, "limit"] == "cap_disk_iops"
    assert found.loc[CAPPED, "words"] == f"{DISK_IOPS} 102 %"
    assert found.loc[SHORT, "words"] == "metric grain 60 s is longer than the trial"
    against = platform_metrics.evidence(trials(), table(capped=81.0, low=100.0)).set_index("trial")
    assert against["agrees"].tolist() == ["no", "no", ""]
    assert (against.loc[CAPPED, "platform"], against.loc[LOW, "platform"]) == ("", "cap_disk_iops")


def test_a_burst_above_its_base_is_no_limit_that_is_reached() -> None:
    bursting = trials().assign(iops=7000.0, throughput_mb_s=28.7, cap_disk_iops=20000.0)
    burst = {(DISK_IOPS, "0"): {1: 35.0}, (VM_IOPS, ""): {1: 109.4, 11: 109.4}}
    found = platform_metrics.evidence(bursting, platform_metrics.table([answer(burst)], "azure")).set_index(
        "trial"
    )
    assert found.loc[CAPPED, ["limit", "platform", "agrees"]].tolist() == ["", "", "yes"]


def test_without_metrics_that_is_all_there_is_to_say() -> None:
    found = platform_metrics.evidence(trials(), schema.empty(schema.METRICS))
    assert set(found["words"]) == {"no metrics"} and set(found["agrees"]) == {""}
    assert platform_metrics.consumed_by_cell(trials(), schema.empty(schema.METRICS)) == {}


def test_a_cell_takes_the_median_of_its_trials_for_each_limit() -> None:
    same = trials().assign(arm="a", workload="load")
    found = platform_metrics.consumed_by_cell(same, table())
    assert found == {
        ("a", "load", "cap_disk_iops"): pytest.approx((102 + 9) / 2),
        ("a", "load", "cap_vm_iops"): pytest.approx((80 + 9) / 2),
    }


def test_a_damaged_answer_is_named(run: Run) -> None:
    entry = run.write_raw("metrics-1.json", b'{"values": [{}]}')
    run.append("metrics", status="ok", files=[entry])
    with pytest.raises(DiskbookError, match=r"raw/metrics-\*\.json\.gz are not answers of Azure Monitor"):
        tables.build(run)


# --- from a real load on an emulated disk


@pytest.mark.emulator
def test_what_a_real_load_does_shows_in_the_metrics(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In all seconds together as many I/Os as fio did, and in none more than its limit and depth."""
    with tempfile.TemporaryDirectory(prefix="diskbook-test-", dir="/tmp") as place:
        monkeypatch.setenv("TMPDIR", place)
        profile = tmp_path / "seconds.toml"
        profile.write_text('extends = "default"\nmetrics_grain_s = 1\n')
        lifecycle.start("monitor", profile=str(profile), time_scale=0.0, owner=True)
        try:
            made = emulated.Azure(lifecycle.connect("monitor"), tmp_path / "azure")
            host = made.machine("vm1", "1")
            # 500 IOPS, and no burst since it may be shared: a busy computer can play that too.
            spec = emulated.Disk(name="disk", sku="Premium_LRS", size_gib=128, zone="1", max_shares=2)
            made.attach("vm1", made.disk(spec))
            began = time.time()
            with Connection(host) as connection:
                emulated.fio(
                    connection, 0, "rw=randread", "bs=4k", "iodepth=32", "size=64m", "number_ios=1000"
                )
            time.sleep(1)  # a second is answered when it is over
            percentages = _percentages(made, began, time.time())
        finally:
            lifecycle.stop("monitor")
    assert sum(percentages) / 100 * 500 == pytest.approx(1000)
    # What was in flight may all be late, and count in the next second.
    assert max(percentages) < 100 * (500 + 32) / 500 + 0.1


def _percentages(made: emulated.Azure, start: float, end: float) -> list[float]:
    """Part of the disk's limit that was used in each second."""
    asking = MetricsClient(made.emulator.endpoint, made.clients.cloud.credential, **made.clients.options())
    (result,) = asking.query_resources(
        resource_ids=[made.clients.compute.virtual_machines.get(emulated.GROUP, "vm1").id],
        metric_namespace=NAMESPACE,
        metric_names=[DISK_IOPS],
        timespan=(datetime.fromtimestamp(start, UTC), datetime.fromtimestamp(end, UTC)),
        granularity=timedelta(seconds=1),
        aggregations=["average"],
        filter="LUN eq '0'",
    )
    return [value.average or 0.0 for value in result.metrics[0].timeseries[0].data]
