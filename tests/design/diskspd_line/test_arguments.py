"""DiskSpd's command lines: what they mean, what is refused, and the way back."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, strategies as st

from diskbook.design.diskspd_arguments import (
    Arguments,
    parse,
    parse_words,
    render,
    workload_remarks,
)
from diskbook.facts.errors import UsageError

GIB = 1024**3
# The lines that the articles print, word for word; the second article gives no target.
ARTICLES = {
    "shared-zrs": "diskspd -c200G -w100 -b8K -F8 -r -o5 -W30 -d10 -Sh -L testfile.dat",
    "disk-options-iops": "diskspd.exe -c200G -w100 -b4K -F4 -r -o128 -W30 -d30 -Sh",
    "disk-options-mb-s": "-c200G -w100 -b128K -F4 -r -o128 -W30 -d30 -Sh",
    "disk-options-read": "-c200G -b4K -F4 -r -o128 -W30 -d30 -Sh",
}


def test_the_line_of_the_shared_disk_article() -> None:
    line = parse(ARTICLES["shared-zrs"])
    assert (line.create_bytes, line.write_pct, line.block_size) == (200 * GIB, 100, 8192)
    assert (line.threads, line.depth, line.random_pct) == (8, 5, 100)
    assert (line.warmup_s, line.duration_s, line.cooldown_s) == (30, 10, 0)
    assert (line.cache, line.write_through, line.latency) == ("off", True, True)
    assert line.targets == ("testfile.dat",)


@pytest.mark.parametrize(
    ("name", "threads", "depth", "block", "write_pct"),
    [
        ("disk-options-iops", 4, 128, 4096, 100),
        ("disk-options-mb-s", 4, 128, 131072, 100),
        ("disk-options-read", 4, 128, 4096, 0),
    ],
)
def test_the_lines_of_the_disk_options_article(
    name: str, threads: int, depth: int, block: int, write_pct: int
) -> None:
    line = parse(ARTICLES[name])
    assert (line.threads, line.depth, line.block_size) == (threads, depth, block)
    assert (line.write_pct, line.targets, line.latency) == (write_pct, (), False)


@pytest.mark.parametrize(
    "line",
    [
        "diskspd -c1G -t2 -Sh x.dat > out.txt",
        "diskspd -c1G -t2 -Sh x.dat >>out.txt 2>&1",
        "diskspd -c1G -t2 -Sh x.dat | Out-File out.txt",
        r"& .\diskspd.exe -c1G -t2 -Sh x.dat",
        r'& "C:\Program Files\DiskSpd\diskspd.exe" -c1G -t2 -Sh x.dat *> out.txt',
    ],
)
def test_what_is_the_shells_is_no_target(line: str) -> None:
    assert parse(line) == parse("diskspd -c1G -t2 -Sh x.dat")


def test_a_distribution_of_offsets_is_written_as_it_is_read() -> None:
    line = parse("diskspd -c1G -Su -r -rdpct90/10:10/90 x.dat")
    assert parse_words(render(line)) == line


@pytest.mark.parametrize("threads", [1, 18])
def test_the_sweep_of_the_storage_spaces_article_leaves_the_other_settings_alone(threads: int) -> None:
    line = parse(f"diskspd -b64K -t{threads} -o8 -r -Sh -w100 -L t.dat")
    assert (line.threads, line.depth, line.warmup_s, line.duration_s) == (threads, 8, 5, 10)


@pytest.mark.parametrize("write_pct", [0, 30, 100])
def test_the_load_of_the_nested_resiliency_article(write_pct: int) -> None:
    line = parse(f"diskspd.exe -b8K -t10 -o8 -w{write_pct} -r -Suw -L *1")
    assert (line.threads, line.depth, line.write_pct, line.write_through) == (10, 8, write_pct, True)


@pytest.mark.parametrize(
    ("line", "threads", "outstanding"),
    [
        # The wiki's own examples ("Threading and concurrency"): 20 in flight both ways.
        ("diskspd -F2 -o2 1 2 3 4 5", 2, 20),
        ("diskspd -t2 -o2 1 2 3 4 5", 10, 20),
        ("diskspd -F2 -O4 1 2 3 4 5", 2, 8),
        ("diskspd 1", 1, 2),
    ],
)
def test_threads_and_outstanding_over_several_targets(line: str, threads: int, outstanding: int) -> None:
    found = parse(line)
    assert found.threads == threads
    assert found.threads * found.depth == outstanding


@pytest.mark.parametrize(
    ("line", "iops"),
    [
        ("diskspd -b8K -t2 -g100i a b", 400.0),
        ("diskspd -b8K -F2 -g100i a b", 400.0),
        ("diskspd -b8K -F8 -g2560 a", 8 * 312.5),
        ("diskspd -b8K a", None),
    ],
)
def test_a_rate_is_for_each_thread_and_target(line: str, iops: float | None) -> None:
    assert parse(line).rate_iops == iops


def test_sizes_in_units_and_in_blocks_wherever_the_block_size_stands() -> None:
    line = parse("diskspd -c100b -T1b -s8b -f1T -B8K -t2 -b4K a")
    assert (line.create_bytes, line.thread_stride, line.align) == (409600, 4096, 32768)
    assert (line.max_offset, line.base_offset) == (1024**4, 8192)


@pytest.mark.parametrize(
    ("flags", "cache", "write_through"),
    [
        ("-Sh", "off", True),
        ("-h", "off", True),
        ("-Suw", "off", True),
        ("-Sw -Su", "off", True),
        ("-S", "off", False),
        ("-Su", "off", False),
        ("-Sw", "on", True),
        ("-Sb", "on", False),
        ("-Sr", "remote", False),
        ("", "on", False),
    ],
)
def test_caching(flags: str, cache: str, write_through: bool) -> None:
    line = parse(f"diskspd {flags} a")
    assert (line.cache, line.write_through) == (cache, write_through)


def test_the_rest_of_the_flags() -> None:
    line = parse(r'"C:\Program Files\diskspd.exe" -rs70 -r4K -C3 -D500 -z7 -Zr -n -x -Rxml -L "D:\a b.dat"')
    assert (line.random_pct, line.align, line.cooldown_s) == (70, 4096, 3)
    assert (line.iops_interval_ms, line.seed, line.buffers) == (500, 7, "random")
    assert (line.kept, line.output, line.targets) == (("-n", "-x"), "xml", (r"D:\a b.dat",))
    assert line.least_version == "2.1"
    assert parse("diskspd -D a").iops_interval_ms == 1000
    assert parse("diskspd -si a").interlocked
    (remark,) = [words for words in workload_remarks(parse("diskspd -L -Sh -rs1 a")) if "-rs" in words]
    assert remark == "-rs1: 1 % of the I/Os are random, the others in a row"


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("-q32 a", "-q32"),
        ("-k a", "it knows -a -b"),
        ("-H a", "nearest is -h"),
        ("-A a", "nearest is -a (affinity)"),
        ("--iodepth=4 a", "fio's"),
        ("-b 8K a", "without a space"),
        ("-b8Q a", "-b8Q"),
        ("-b1b a", "cannot be given in blocks"),
        ("-w101 a", "0 to 100"),
        ("-o0 a", "1 or more"),
        ("-t5x a", "not a whole number"),
        ("-b8K a -d3", "put it before"),
        ("-b8K -b4K a", "said twice"),
        ("-LD a", "-L -D"),
        ("-Sq a", "cache modes"),
        ("-Sb -h a", "said twice"),
        ("-Xp.xml", "profile in XML"),
        ("-z -z3 a", "said twice"),
        ("-yrgo a", "events"),
        ("-F2 -t2 a", "-F and -t"),
        ("-O2 a", "-O without -F"),
        ("-F2 -O2 -g5 a", "-g and -O"),
        ("-g5 -x a", "-g and -x"),
        ("-r -s a", "-r and -s"),
        ("-r -t2 -T4K a", "-r and -T"),
        ("-si -t2 -T64K a", "-si and -T"),
        ("-n -a0,1 a", "-n and -a"),
        ("-i4 a", "-i without -j"),
        ("-c4K -b8K a", "less than one block"),
        ("-Z4K -b8K a", "smaller than a block"),
        ('-b8K "a', "not closed"),
    ],
)
def test_what_diskspd_does_not_take_is_named(line: str, named: str) -> None:
    with pytest.raises(UsageError, match="DiskSpd") as caught:
        parse(f"diskspd {line}")
    assert named in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "flag",
    [
        *("-e&calc.exe&rem", "-eq|calc", "-e%PATH%", "-a0&calc", "-a0,", "-I4", "-I1>x", "-l^", "-n1", "-p2"),
        *("-Nx", "-P10;calc", "-v!", "-x&", "-i4(", "-j5&calc", "-ysgo&calc", "-yf", '-Z1M,"a & calc"'),
        *("-Z1M,%TEMP%", "-Z1M,$(calc)", "-rdpct90/1\N{ARABIC-INDIC DIGIT ZERO}", "/e&calc"),
    ],
)
def test_what_no_value_of_a_flag_may_be_is_refused_and_the_flag_named(flag: str) -> None:
    """Flags are kept as somebody wrote them; cmd.exe would run what it reads in `-e&calc.exe&rem`."""
    with pytest.raises(UsageError, match=re.escape(flag.replace('"', ""))):
        parse(f"diskspd -b8K -r {flag} a")


@pytest.mark.parametrize(
    "flag",
    [
        *("-a", "-a0,1,2", "-ag0,0,1,g1,0", "-e", "-eq", "-ePROCESS", "-eDISK_IO", "-I1", "-l", "-n", "-p"),
        *(
            "-P",
            "-P100",
            "-v",
            "-vs",
            "-x",
            "-i4 -j5",
            "-ysGlobal\\go-1",
            "-yfdone",
            "-frs",
            "-Z1M,D:\\a\\b.dat",
        ),
        *('-Z1M,"D:\\a b.dat"', "-r -rdpct90/10:10/90", "-Sm -Nv", "/eq"),
    ],
)
def test_all_values_that_diskspds_wiki_has_are_taken(flag: str) -> None:
    line = parse(f"diskspd -b8K {flag} a")
    assert parse_words(render(line)) == line


def test_vmfleets_own_line_is_taken_with_a_remark() -> None:
    line = parse(r"diskspd.exe -Z20M -z -h -t10 -o8 -b4k -r4k -w30 -W60 -C30 -d30 -D -L -Rxml C:\run\f1.dat")
    assert (line.clock_seed, line.seed, line.threads, line.depth, line.write_through) == (
        True,
        None,
        10,
        8,
        True,
    )
    assert parse_words(render(line)) == line
    (remark,) = (text for text in workload_remarks(line) if text.startswith("-z"))
    assert "cannot be drawn again" in remark
    assert not any(text.startswith("-z") for text in workload_remarks(parse("-z7 a")))


SIZES = st.sampled_from([512, 4096, 8192, 65536, 1000, 1024**2, 3 * GIB])
NUMBERS = st.integers(1, 300)


@st.composite
def arguments(draw: st.DrawFn) -> Arguments:
    """Arguments that go together."""
    block = draw(st.sampled_from([4096, 8192, 65536]))
    fixed = draw(st.booleans())
    random = draw(st.sampled_from([0, 30, 100]))
    per_thread = draw(st.none() | NUMBERS) if fixed else None
    return Arguments(
        targets=tuple(draw(st.lists(st.sampled_from(["a.dat", "#1", "E:"]), max_size=3))),
        block_size=block,
        write_pct=draw(st.integers(0, 100)),
        random_pct=random,
        align=draw(st.none() | SIZES),
        interlocked=draw(st.booleans()) if not random else False,
        threads_per_target=None if fixed else draw(st.none() | NUMBERS),
        total_threads=draw(NUMBERS) if fixed else None,
        outstanding=draw(NUMBERS),
        outstanding_per_thread=per_thread,
        rate=draw(st.none() | NUMBERS) if per_thread is None else None,
        cache=draw(st.sampled_from(["on", "off", "remote"])),
        write_through=draw(st.booleans()),
        create_bytes=draw(st.none() | st.just(200 * GIB)),
        max_offset=draw(st.none() | st.just(GIB)),
        base_offset=draw(st.sampled_from([0, block])),
        warmup_s=draw(st.integers(0, 60)),
        duration_s=draw(NUMBERS),
        cooldown_s=draw(st.integers(0, 5)),
        latency=draw(st.booleans()),
        iops_interval_ms=draw(st.none() | NUMBERS),
        buffers=draw(st.sampled_from(["pattern", "zero", "random", "1M"])),
        seed=(seed := draw(st.none() | st.integers(0, 9))),
        clock_seed=draw(st.booleans()) and seed is None,
        output=draw(st.sampled_from(["text", "xml"])),
        kept=draw(st.sampled_from([(), ("-n",), ("-ag0,0,1", "-v")])),
    )


@pytest.mark.long
@given(arguments())
def test_arguments_written_out_are_read_back_equal(asked: Arguments) -> None:
    assert parse_words(render(asked)) == asked


@given(st.text(alphabet='-/bcdfgrswtFOSWZ0189KMG:, "', max_size=40))
def test_any_line_is_read_or_refused_in_one_sentence(line: str) -> None:
    try:
        found = parse(line)
    except UsageError as error:
        assert "\n" not in str(error)
    else:
        assert parse_words(render(found)) == found


def test_only_a_line_that_creates_its_file_is_said_to_read_what_was_not_written() -> None:
    created, given = (list(workload_remarks(parse(f"{size}-b4K -Sh -L -z1 file"))) for size in ("-c1G ", ""))
    assert len(created) == len(given) + 1 and set(given) < set(created)
