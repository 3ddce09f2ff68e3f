"""elbencho's CSV and JSON: each phase is a measurement, and no percentile is made of its wide buckets."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from diskbook.importing import elbencho, formats, run as importer
from diskbook.importing.scenario import Settings
from diskbook.tools.record import CACHED, Measurement, UnusableError
from support.other_tools import elbencho_csv, elbencho_json, elbencho_row


def only(text: str) -> Measurement:
    (measurement,) = formats.parse(text.encode(), "a.csv").measurements
    return measurement


@pytest.mark.parametrize("write", [elbencho_csv, elbencho_json])
def test_rate_is_of_the_bytes_until_the_last_thread_ended(write: object) -> None:
    measurement = only(write(elbencho_row()))  # type: ignore[operator]
    written, load = measurement.directions["write"], measurement.load
    assert written.iops == pytest.approx(16384 / 40)  # elbencho's own, 409, is a whole number
    assert (written.lat_mean_ms, written.lat_max_ms) == (9.75, 30.0)
    assert math.isnan(written.lat_p99_ms) and not written.percentiles_ms
    assert (load.pattern, load.block_size_bytes, load.write_pct) == ("sequential", 65536, 100)
    assert (load.threads, load.queue_depth, load.size_bytes) == (4, 2, 2**30)
    assert (measurement.target, measurement.started_utc) == (
        "/mnt/a/f.dat",
        "2026-01-05T10:00:00.125000+01:00",
    )
    assert measurement.options == {} and measurement.flags == ()


def test_csv_and_json_say_the_same() -> None:
    rows = (elbencho_row(), elbencho_row(operation="READ", random=1))
    csv, json = (elbencho.parse(write(*rows), "a") for write in (elbencho_csv, elbencho_json))
    assert csv.measurements == json.measurements
    assert (csv.version, json.version) == ("3.1-1", "3.1-1")


def test_whole_iops_count_where_they_are_finer_than_whole_mib() -> None:
    small = elbencho_row(**{"block size": 512, "MiB [last]": 3, "IOPS [last]": 173, "file size": 4096})
    written = only(elbencho_csv(small)).directions["write"]
    assert (written.iops, written.bw_bytes) == (173, 173 * 512)


def test_phases_that_neither_read_nor_write_are_named() -> None:
    parsed = elbencho.parse(elbencho_csv(elbencho_row(), elbencho_row(operation="RMFILES")), "a.csv")
    assert len(parsed.measurements) == 1
    assert parsed.flags == ("phases that neither read nor write are left out (RMFILES)",)


def test_mixed_phase_has_both_directions_and_the_share_asked_for() -> None:
    read = {"rwmix read IOPS [last]": 950, "rwmix read MiB [last]": 2389, "rwmix read IO lat us [avg]": 700}
    measurement = only(elbencho_csv(elbencho_row(operation="RWMIX70", **read)))
    assert measurement.load.write_pct == 30
    assert measurement.directions["read"].iops == pytest.approx(2389 * 16 / 40)
    assert measurement.directions["read"].lat_mean_ms == 0.7


def test_what_a_reader_must_know_is_said() -> None:
    ragged = elbencho_row(**{"direct IO": 0, "time ms [first]": 20_000, "hosts": 2, "IO lat us [avg]": ""})
    measurement = only(elbencho_csv(ragged))
    cached, apart, hosts = measurement.flags
    assert (
        cached == CACHED and "the first after 20.0 s, the last after 40.0 s" in apart and "2 hosts" in hosts
    )
    assert measurement.load.threads == 8
    assert math.isnan(measurement.directions["write"].lat_mean_ms)


def test_target_is_not_guessed_where_the_command_names_another_number_of_paths() -> None:
    command = '"elbencho" "--csvfile" "/tmp/r.csv" "-w" "/mnt/a" "/mnt/b" "--blockvarpct" "50" '
    assert only(elbencho_csv(elbencho_row(command=command))).target == ""
    two = only(elbencho_csv(elbencho_row(command=command, paths=2)))
    assert (two.target, two.options) == ("/mnt/a + /mnt/b", {"blockvarpct": "50"})
    assert two.load.size_bytes == 2**31


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (elbencho_csv(elbencho_row(), elbencho_row(version="2.3-1")), "rows of several versions"),
        (elbencho_csv(elbencho_row())[:-130], "row 1: it is cut"),
        (elbencho_json(elbencho_row())[:-30], "row 1: it is cut"),
        (elbencho_csv(elbencho_row(operation="MKDIRS")), "no phase in it reads or writes"),
        (elbencho_csv(elbencho_row(**{"path type": "bucket"})), "'bucket', which is not a disk"),
        (elbencho_csv(elbencho_row(**{"time ms [last]": "-4"})), "out of range"),
        (elbencho_csv(elbencho_row(**{"MiB [last]": 0, "IOPS [last]": 0})), "it did no I/O"),
    ],
)
def test_what_cannot_be_used_is_refused_in_a_sentence(text: str, words: str) -> None:
    with pytest.raises(UnusableError, match=words):
        formats.parse(text.encode(), "a.csv")


def test_rows_of_other_sizes_and_days_are_no_repeats_of_one_measurement(tmp_path: Path) -> None:
    """Appended runs: 20 GiB on one day, 1 GiB twice on another."""
    sizes = [(20 * 2**30, "2026-01-03"), (2**30, "2026-01-05"), (2**30, "2026-01-05")]
    rows = [
        elbencho_row(**{"file size": size, "ISO date": f"{day}T1{place}:00:00.000+0000"})
        for place, (size, day) in enumerate(sizes)
    ]
    (tmp_path / "a.csv").write_text(elbencho_csv(*rows))
    planned = importer.plan([str(tmp_path)], str(tmp_path / "run"), Settings())
    loads = [entry.workload["name"] for entry in planned.entries]
    assert loads == [f"write-64k-t4-qd2-{size}" for size in ("20g", "1g", "1g")]
    assert [(entry.block, entry.repeat) for entry in planned.entries] == [(1, 1), (2, 1), (2, 2)]
