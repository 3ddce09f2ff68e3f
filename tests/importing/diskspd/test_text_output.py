"""DiskSpd's text of every version, of the one for Linux, and as people paste it."""

from __future__ import annotations

import pytest

from diskbook.design.diskspd_arguments import check_runnable, parse as parse_line
from diskbook.importing import formats
from diskbook.tools.record import CACHED, Load, Measurement, Parsed, UnusableError
from support import SAMPLES
from support.diskspd_texts import OF_VERSION, READS, SECONDS, WRITES, interrupted, text_of

LOAD = Load("random", 8192, 30, 4, 32, None, "dsync", 50 * 2**30, 30.0, 30.0)


def only(text: str) -> tuple[Parsed, Measurement]:
    parsed = formats.parse(text.encode(), "x.txt")
    (measurement,) = parsed.measurements
    return parsed, measurement


@pytest.mark.parametrize("version", [*OF_VERSION, "linux"])
def test_every_version_tells_the_same_load_and_numbers(version: str) -> None:
    parsed, measurement = only(text_of(version))
    assert measurement.load == LOAD
    assert CACHED not in measurement.flags
    write = measurement.directions["write"]
    assert (write.ios, write.lat_mean_ms, write.lat_p99_ms, write.lat_max_ms) == (WRITES, 27.0, 61.0, 99.1)
    assert parsed.version == ("for Linux" if version == "linux" else "unknown")
    assert any("time that was asked for" in flag for flag in measurement.flags) == (version == "linux")


def test_iops_are_those_that_are_printed() -> None:
    # 5 s to two decimals are 0.2 % too long or too short; the counts and IOPS printed beside are exact.
    text = text_of("2.2").replace(f"{SECONDS}s", "30.00s")
    read = only(text)[1].directions["read"]
    assert read.iops == pytest.approx(READS / SECONDS, abs=0.005)
    assert read.bw_bytes == pytest.approx(8192 * READS / SECONDS, rel=1e-5)


def test_a_column_of_iops_that_belongs_to_nothing_is_not_taken() -> None:
    text = text_of("2.2").replace(f"{READS / SECONDS:10.2f}", "   9999.00")
    assert only(text)[1].directions["read"].iops == pytest.approx(READS / SECONDS)


@pytest.mark.parametrize("margin", ["    ", "> ", "\t"])
def test_a_paste_reads_as_the_file(margin: str) -> None:
    text = text_of("2.0.21")
    pasted = "\r\n".join(f"{margin}{line}" for line in text.splitlines())
    assert only(f"PS C:\\> diskspd ...\r\n{pasted}")[1] == only(text)[1]


@pytest.mark.parametrize(
    ("old", "new", "cached", "sync"),
    [
        ("software and hardware cache disabled", "using software and hardware cache", True, None),
        ("software and hardware cache disabled", "software cache disabled", False, None),
    ],
)
def test_caches_of_old_versions(old: str, new: str, cached: bool, sync: str | None) -> None:
    _, measurement = only(text_of("2.0.12").replace(old, new))
    assert (CACHED in measurement.flags) == cached
    assert measurement.load.sync == sync


def test_linux_without_o_direct_may_measure_memory() -> None:
    assert CACHED in only(text_of("linux").replace("using O_DIRECT", ""))[1].flags


def test_the_reason_of_a_refusal_is_the_true_one() -> None:
    head, _, _ = text_of("2.2").partition("actual test time")
    with pytest.raises(UnusableError, match="was interrupted before it measured anything"):
        only(interrupted())
    with pytest.raises(UnusableError, match="for how long it measured"):
        only(head)


def test_text_and_xml_of_one_job_are_one_load() -> None:
    loads = [
        formats.parse((SAMPLES / "diskspd" / f"v2.1-rand-w30-L-D.{kind}").read_bytes(), kind)
        for kind in ("txt", "xml")
    ]
    assert loads[0].measurements[0].load == loads[1].measurements[0].load


def test_a_seed_from_the_clock_is_read_but_not_run() -> None:
    asked = parse_line("diskspd -z -r -b8K -c1G a.dat")
    assert asked.clock_seed
    with pytest.raises(Exception, match=r"-z without a number.*-z1"):
        check_runnable(asked)
    check_runnable(parse_line("diskspd -z7 -r -b8K -c1G a.dat"))


@pytest.mark.parametrize(
    ("switch", "name", "value"),
    [
        ("-Z", "buffer", "zero"),
        ("-Zr", "buffer", "random"),
        ("-Z1G", "buffer", "random"),
        ("-Z4M,x.bin", "buffer", "random"),
        ("-si64K", "interlocked-sequential", "true"),
        ("-si64K", "stride", "65536"),
        ("-frs", "sequential-scan", "true"),
        ("-f1G", "max-file-size", "1073741824"),
        ("-x", "completion-routines", "true"),
        ("-B2b", "base-file-offset", "16384"),
        ("-I1", "iopriority", "1"),
    ],
)
def test_switches_that_separate_loads_have_the_names_of_the_xml(switch: str, name: str, value: str) -> None:
    options = only(text_of("2.2", command=f"-b8K {switch} -o32"))[1].options
    usual = only(text_of("2.2", command="-b8K -o32"))[1].options
    assert (options[name], name in usual, usual[name] != value) == (value, True, True)


def test_a_distribution_of_offsets_is_told() -> None:
    text = text_of("2.2").replace("\t\tthreads per file", "\t\tIO Distribution:\n\t\tthreads per file")
    assert any("distribution (-rd)" in flag for flag in only(text)[1].flags)
