"""Logs of iostat and exports of Azure Monitor, with the traps that they hold."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from diskbook.choose import ask
from diskbook.choose.trace import Trace
from diskbook.facts import paths
from diskbook.facts.errors import DiskbookError

SAMPLES = paths.ROOT / "tests" / "samples" / "choose"
_HEADS = {  # one device of 70 reads and 30 writes of 8 KiB a second, as each generation prints it
    "5": ("Device: rrqm/s wrqm/s r/s w/s rsec/s wsec/s rkB/s wkB/s avgqu-sz", "0 0 70 30 1120 480 560 240 2"),
    "tps": ("Device tps kB_read/s kB_wrtn/s kB_dscd/s kB_read aqu-sz", "100 560 240 0 1 2"),
    "blocks": ("Device: tps Blk_read/s Blk_wrtn/s Blk_read Blk_wrtn aqu-sz", "100 1120 480 1 1 2"),
    "sectors": ("Device: rrqm/s wrqm/s r/s w/s rsec/s wsec/s avgrq-sz avgqu-sz", "0 0 70 30 1120 480 16 2"),
    "kB": ("Device: rrqm/s wrqm/s r/s w/s rkB/s wkB/s avgrq-sz avgqu-sz", "0 0 70 30 560 240 16 2"),
    "MB": ("Device r/s w/s rMB/s wMB/s rrqm/s aqu-sz", "70 30 0.546875 0.234375 0 2"),
    "12": ("Device r/s rkB/s w/s wkB/s d/s dkB/s f/s f_await aqu-sz", "70 560 30 240 5 99 1 0 2"),
    "comma": ("Device r/s rkB/s w/s wkB/s aqu-sz", "70,00 560,00 30,00 240,00 2,00"),
}


def _log(head: str, rows: list[str], times: list[str]) -> str:
    blocks = [f"{time}\n{head}\n{row}\n" for time, row in zip(times, rows, strict=True)]
    return "Linux 6.1.0 (vm) 11/27/26 _x86_64_ (2 CPU)\n\n" + "\n".join(blocks)


def _read(text: str, **options: object) -> Trace:
    return ask.read_text(text, "log", **options)  # type: ignore[arg-type]


def _times(*clocks: str) -> list[str]:
    return [f"11/27/26 {clock}" for clock in clocks]


@pytest.mark.parametrize("generation", _HEADS)
def test_every_generation_gives_the_same_load(generation: str) -> None:
    head, cells = _HEADS[generation]
    boot = " ".join("9999" for _ in cells.split())
    text = _log(
        head, [f"sda {boot}", f"sda {cells}", f"sda {cells}"], _times("10:00:00", "10:00:05", "10:00:10")
    )
    trace = _read(text)
    assert trace.iops.tolist() == [100, 100]
    assert trace.mb_s == pytest.approx([0.8192, 0.8192])
    assert trace.reads == pytest.approx([0.7, 0.7])
    assert trace.outstanding.tolist() == [2, 2]
    assert trace.seconds.tolist() == [5, 5]
    assert any("since boot" in note for note in trace.notes)
    assert any("discards" in note for note in trace.notes) == (generation == "12")
    assert any("their bytes split them" in note for note in trace.notes) == ("tps" in head)


def test_a_disk_counts_once_beside_its_partitions_and_mapped_devices() -> None:
    trace = ask.read_file(SAMPLES / "iostat-9-sectors.txt")  # sda, sda1 and dm-0, at 3 PM
    assert trace.devices == ("sda",)
    assert trace.iops.tolist() == [100, 200]
    assert trace.mb_s == pytest.approx([0.8192, 1.6384])
    assert trace.seconds.tolist() == [10, 10]
    mapped = ask.read_file(SAMPLES / "iostat-9-sectors.txt", "dm-0")
    assert mapped.iops.tolist() == [100, 200]


@pytest.mark.parametrize(
    "name", ["iostat-12-xt.txt", "iostat-12.json", "iostat-12-short.txt", "iostat-12-mb.txt"]
)
def test_what_iostat_of_sysstat_12_printed_is_read(name: str) -> None:
    trace = ask.read_file(SAMPLES / name)
    assert trace.devices == ("vda",)  # loop0 to loop4 repeat it
    assert len(trace.iops) == 2
    assert 500 < float(trace.need(10).block_bytes) < 10**7
    assert trace.interval_s in (1, 2)


@pytest.mark.parametrize(
    "clocks",
    [
        ("01:59:50", "01:59:55", "03:00:00", "03:00:05"),  # summer time begins
        ("02:59:50", "02:59:55", "02:00:00", "02:00:05"),  # and ends
        ("12:59:50", "12:59:55", "01:00:00", "01:00:05"),  # a 12-hour clock that does not say which half
        ("23:59:50", "23:59:55", "00:00:00", "00:00:05"),
        ("11:59:50 AM", "11:59:55 AM", "12:00:00 PM", "12:00:05 PM"),
    ],
)
def test_clocks_that_jump_do_not_stretch_intervals(clocks: tuple[str, ...]) -> None:
    head, cells = _HEADS["12"]
    trace = _read(_log(head, [f"sda {cells}"] * 4, _times(*clocks)))
    assert trace.seconds.tolist() == [5, 5, 5]


def test_devices_that_appear_and_vanish_are_idle_meanwhile() -> None:
    head, cells = _HEADS["12"]
    rows = [f"sda {cells}", f"sda {cells}", f"sda {cells}\nsdb {cells}", f"sda {cells}"]
    trace = _read(_log(head, rows, _times("10:00:00", "10:00:05", "10:00:10", "10:00:15")))
    assert trace.iops.tolist() == [100, 200, 100]
    assert any("sdb appeared or vanished" in note for note in trace.notes)


def test_a_report_that_is_cut_short_is_left_out() -> None:
    head, cells = _HEADS["12"]
    text = _log(head, [f"sda {cells}"] * 4, _times("10:00:00", "10:00:05", "10:00:10", "10:00:15"))
    trace = _read(text[: text.rindex("70") + 6])
    assert len(trace.iops) == 2
    assert any("cut short" in note for note in trace.notes)


def test_exports_of_azure_monitor_are_read() -> None:
    for name, seconds in (("monitor.json", 60), ("monitor.csv", 600), ("monitor-comma.csv", 600)):
        trace = ask.read_file(SAMPLES / name)
        assert trace.iops.tolist()[:2] == [100, 200]
        assert trace.mb_s[:2] == pytest.approx([0.8192, 1.6384])
        assert set(trace.seconds.tolist()) == {seconds}
    for name in ("monitor-records.json", "monitor-records.csv", "monitor-sums.csv"):
        trace = ask.read_file(SAMPLES / name)
        assert trace.iops.tolist()[:2] == [100, 100] and set(trace.seconds.tolist()) == {300}
        assert trace.mb_s[:2] == pytest.approx([0.8192, 0.8192])
    assert "up to 20 times as high" in ask.read_file(SAMPLES / "monitor.csv").hidden
    assert any("lack a value" in note for note in ask.read_file(SAMPLES / "monitor.json").notes)


_LOAD = {
    "Read Operations/Sec": 70,
    "Write Operations/Sec": 30,
    "Read Bytes/sec": 573440,
    "Write Bytes/sec": 245760,
}


def _records() -> list[dict[str, object]]:
    return [
        {"time": f"2026-11-27T10:{minute:02}:00.0000000Z", "resourceId": "/X/VM1", "timeGrain": "PT5M",
         "metricName": f"Data Disk {name}", "average": value, "total": 5 * value}
        for name, value in _LOAD.items() for minute in (10, 5, 0)
    ]  # fmt: skip


_HEAD = "TimeGenerated [UTC],ResourceId,MetricName,Average,Total,TimeGrain"


def _line(record: dict[str, object]) -> str:
    """A record as Log Analytics exports it."""
    keys = ("time", "resourceId", "metricName", "average", "total", "timeGrain")
    return ",".join(str(record[key]) for key in keys)


def _chart(heads: list[str], cells: str) -> str:
    return "\n".join([",".join(["Time", *heads]), *(f"10:{minute:02},{cells}" for minute in (0, 5, 10))])


_SUMS = ["Disk Read Operations/Sec (Avg)", "Disk Write Operations/Sec (Avg)", "Disk Read Bytes (Sum)"]


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(json.dumps(record) for record in _records()),  # as diagnostic settings write them
        json.dumps({"records": [{**record, "average": None} for record in _records()]}),
        "\n".join([_HEAD, *map(_line, _records())]),
        _chart([*_SUMS, "Disk Read Bytes (Max)", "Disk Write Bytes (Sum)"], "70,30,172032000,9e9,73728000"),
    ],
)  # fmt: skip
def test_records_and_sums_over_minutes_are_means_of_a_second(text: str) -> None:
    trace = _read(text)
    assert trace.iops.tolist() == [100] * 3 and trace.seconds.tolist() == [300] * 3
    assert trace.mb_s == pytest.approx([0.8192] * 3) and trace.reads == pytest.approx([0.7] * 3)


def test_a_flat_top_is_told_and_a_ragged_one_is_not() -> None:
    demand = np.random.default_rng(1).lognormal(7, 0.8, 400)
    ones = np.ones(400)
    for values, flat in ((np.minimum(demand, 2300), True), (demand, False)):
        trace = Trace(5 * ones, values, values * 8192 / 1e6, ones, ones, ("sda",))
        assert bool(trace.clipped) == flat


def test_bursts_and_quantiles_are_of_time() -> None:
    iops = np.array([100.0, 100, 1000, 1000, 100, 100, 1000, 100])
    trace = Trace(np.full(8, 10.0), iops, iops / 100, np.ones(8), np.ones(8), ("sda",))
    assert trace.bursts_s == [20, 10]
    assert trace.quantiles(iops) == [100, 1000, 1000, 1000]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "it is empty"),
        ("hello\n", "no metric of reads"),
        (_log(_HEADS["12"][0], [f"sda {_HEADS['12'][1]}"], _times("10:00:00")), "mean since boot"),
        (
            _log(_HEADS["12"][0], [f"sda {_HEADS['12'][1]}"] * 2, _times("10:00:00", "10:00:05")),
            "one usable sample",
        ),
        (_log(_HEADS["12"][0], [f"sda {_HEADS['12'][1]}"] * 3, ["", "", ""]), "give --interval SECONDS"),
        (
            _log(_HEADS["12"][0], ["sda 0 0 0 0 0 0 0 0 0"] * 3, _times("1:00:00", "1:00:05", "1:00:10")),
            "no load in it",
        ),
        (_log("tps Device", ["9 sda"] * 3, _times("10:00:00", "10:00:05", "10:00:10")), "no metric of reads"),
        ('{"sysstat": {"hosts": [{"statistics": [', "ends early"),
        ('{"value": [{"name"', "cut short or broken"),
        ('{"value": 3}', "not an answer of Azure Monitor"),
        ("Time,Data Disk Read Operations/Sec\n10:00,5\n10:01,6\n", "lacks writes"),
        ("Time,Data Disk Read Operations/Sec\n10:00,five\n", "is not a number"),
        ('Time,Data Disk Read Operations/Sec\n10:00,"1,234"\n', "is not a number"),
        ("PK\x03\x04\x14\x00", "Excel workbook; save its sheet as CSV"),
        ("TimeGenerated,MetricName,Average\n10:00,Disk Read Bytes,five\n", "its records lack"),
        (_chart(["Disk Read Bytes, vm1", "Disk Read Bytes, vm2"], "1,2"), "two columns have the metric"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(DiskbookError) as error:
        _read(text)
    assert sentence in str(error.value)


def test_a_device_that_is_not_there_and_a_file_of_nothing(tmp_path: Path) -> None:
    with pytest.raises(DiskbookError, match="it has no device 'sdz'; it has sda"):
        ask.read_file(SAMPLES / "iostat-9-sectors.txt", "sdz")
    empty = tmp_path / "empty"
    empty.write_bytes(b"\xff\xfe")
    with pytest.raises(DiskbookError, match="it is empty"):
        ask.read_file(empty)
