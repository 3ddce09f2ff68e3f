"""Arms, repeats and their flags of results as strangers keep them: version x format x layout, generated."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from diskbook.facts.errors import UsageError
from diskbook.importing import preview, repeats, run as importer
from diskbook.importing.run import Imported, Planned
from diskbook.importing.scenario import Settings
from diskbook.report.analysis.run import analyse
from diskbook.results import tables
from support.results import Result, later, write


def plan(folder: Path, **settings: Any) -> Planned:
    return importer.plan([str(folder)], f"{folder}-run", Settings(**settings))


def cells(planned: Planned) -> dict[tuple[str, str], list[tuple[int, int, int]]]:
    """Places (replicate, block, repeat) of the measurements of every cell."""
    places: dict[tuple[str, str], list[tuple[int, int, int]]] = {}
    for entry in planned.entries:
        cell = places.setdefault((entry.arm, entry.workload["name"]), [])
        cell.append((entry.replicate, entry.block, entry.repeat))
    return {cell: sorted(numbers) for cell, numbers in places.items()}


def is_unlike(planned: Planned) -> bool:
    return any(repeats.UNLIKE in flag for flag in planned.flags)


Fill = Callable[[Path, str, str], None]
ONCE, TWICE = [(1, 1, 1)], [(1, 1, 1), (1, 2, 1)]
THRICE = [(1, block, 1) for block in (1, 2, 3)]


@dataclass(frozen=True)
class Layout:
    """Files as somebody keeps them, and the places of the repeats in each arm that they must become."""

    fill: Fill
    expected: dict[str, list[tuple[int, int, int]]]


def at(arm: str, iops: float, began: datetime) -> Result:
    """A result of an arm: two arms never have the same, since a file twice counts once."""
    return Result(iops=iops + sum(map(ord, arm)), began=began)


def two_mounts(base: Path, kind: str, version: str) -> None:
    """One file name on two mounts, told by the path alone."""
    for disk, iops in (("premium", 5000), ("standard", 500)):
        name = f"D:\\{disk}\\io.dat" if kind.startswith("diskspd") else f"/mnt/{disk}/fio.test"
        write(base / f"of-{disk}", kind, version, Result(target=name, iops=iops))


def runs_below_arms(base: Path, kind: str, version: str) -> None:
    """armA/run1/x, three runs of each, ten minutes apart."""
    for (place, arm), number in itertools.product(enumerate(("lrs", "zrs")), (1, 2, 3)):
        began = later(minutes=10 * number + place)
        write(base / arm / f"run{number}" / "x", kind, version, Result(iops=5000 + number, began=began))


def dated_folders(base: Path, kind: str, version: str) -> None:
    """A folder for each day, both arms in it."""
    for day, arm in itertools.product((0, 1), ("lrs", "zrs")):
        began = later(days=day)
        write(base / f"{began:%Y-%m-%d}" / arm / "x", kind, version, at(arm, 5000 + day, began))


def dated_files(base: Path, kind: str, version: str) -> None:
    """A date in each file's name."""
    for day in (0, 1):
        began = later(days=day)
        write(base / "p30" / f"read_{began:%Y%m%d}", kind, version, Result(iops=5000 + day, began=began))


def clusters(base: Path, kind: str, version: str) -> None:
    """Three repeats within minutes, and three more half a year later."""
    for half, number, arm in itertools.product((0, 1), (1, 2, 3), ("lrs", "zrs")):
        result = at(arm, 5000 + 40 * half + number, later(180 * half, 5 * number))
        write(base / arm / f"{half}-{number}", kind, version, result)


CLUSTERED = [(1, block, repeat) for block in (1, 2) for repeat in (1, 2, 3)]
LAYOUTS = {
    "two mounts": Layout(two_mounts, {"premium": ONCE, "standard": ONCE}),
    "runs below arms": Layout(runs_below_arms, {"lrs": THRICE, "zrs": THRICE}),
    "dated folders": Layout(dated_folders, {"lrs": TWICE, "zrs": TWICE}),
    "dated files": Layout(dated_files, {"p30": TWICE}),
    "clusters": Layout(clusters, {"lrs": CLUSTERED, "zrs": CLUSTERED}),
}
KINDS = [
    ("fio-json", "2.16"),
    ("fio-json", "3.36"),
    ("fio-text", "2.1.3"),
    ("fio-text", "3.28"),
    ("diskspd-xml", "2.0.17"),
    ("diskspd-xml", "2.2.0"),
    ("diskspd-text", "2.1"),
]


@pytest.mark.long
@pytest.mark.parametrize(("kind", "version"), KINDS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_version_x_format_x_layout(tmp_path: Path, kind: str, version: str, layout: str) -> None:
    base = tmp_path / "results"
    LAYOUTS[layout].fill(base, kind, version)
    planned = plan(base)
    assert {arm: places for (arm, _), places in cells(planned).items()} == LAYOUTS[layout].expected
    assert not planned.refused and not is_unlike(planned)
    assert len({load for _, load in cells(planned)}) == 1


# --- different targets


def test_an_arm_is_a_full_target(tmp_path: Path) -> None:
    for letter, iops in (("C", 393), ("D", 50_446)):
        write(tmp_path / "in" / f"{letter}-drive", "diskspd-xml", "2.2", Result(f"{letter}:\\t.dat", iops))
    planned = plan(tmp_path / "in")
    assert set(planned.arms) == {"c", "d"}
    assert planned.manifest["imported"]["arms"]["c"]["targets"] == ["C:\\t.dat"]
    hosts = plan(tmp_path / "in", arms_by="folder")
    assert set(hosts.arms) == {"in"} and is_unlike(hosts)
    (flag,) = [flag for flag in hosts.flags if repeats.UNLIKE in flag]
    assert "393 to 50,446 IOPS in 2 results" in flag and "(2 files, e.g. " in flag


def test_hosts_are_arms_unless_the_user_says_otherwise(tmp_path: Path) -> None:
    for number, host in enumerate(("vm1", "vm2")):
        result = Result(host=host, iops=5000 + number, began=later(days=number))
        write(tmp_path / "in" / "all" / host, "fio-json", "3.36", result)
    assert set(plan(tmp_path / "in").arms) == {"sdc-vm1", "sdc-vm2"}
    pooled = plan(tmp_path / "in", arms_by="folder")
    assert sorted(*cells(pooled).values()) == [(1, 1, 1), (2, 2, 1)]
    assert any("2 machines or disks in one arm, taken for its replicates" in flag for flag in pooled.flags)


def test_names_are_what_differs(tmp_path: Path) -> None:
    for folder, target in itertools.product(("a", "b"), ("/dev/sdc", "/dev/sdd")):
        path = tmp_path / "in" / "all" / folder / target[-3:]
        write(path, "fio-json", "3.36", Result(target, 5000 if folder == "a" else 5001))
    assert set(plan(tmp_path / "in").arms) == {"a-sdc", "a-sdd", "b-sdc", "b-sdd"}
    assert set(plan(tmp_path / "in" / "all" / "a").arms) == {"sdc", "sdd"}
    assert set(plan(tmp_path / "in", arms_by="target").arms) == {"sdc", "sdd"}


def test_files_of_one_name_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    paths = [
        write(tmp_path / arm / "result.json", "fio-json", "3.36", Result(iops=iops))
        for arm, iops in (("lrs", 5000), ("zrs", 4000))
    ]
    assert set(importer.plan([str(path) for path in paths], f"{tmp_path}/run").arms) == {"lrs", "zrs"}


# --- text and XML of one job


def test_text_without_a_version_is_of_the_arm_whose_version_is_told(tmp_path: Path) -> None:
    write(tmp_path / "in" / "a", "diskspd-xml", "2.1", Result("C:\\t.dat", 5000))
    write(tmp_path / "in" / "b", "diskspd-text", "", Result("C:\\t.dat", 5100, began=later(minutes=5)))
    made = importer.make([str(tmp_path / "in")], f"{tmp_path}/run")
    assert list(made.arms.values()) == [2]
    assert any("the version of DiskSpd is not told; 2.1 is taken" in flag for flag in made.flags)
    trials = tables.build(made.run).trials
    assert trials["tool_version"].nunique(dropna=False) == 1 and trials["workload"].nunique() == 1


@pytest.mark.parametrize("tool", ["fio", "diskspd"])
def test_one_measurement_in_two_formats_counts_once(tmp_path: Path, tool: str) -> None:
    result = Result("C:\\t.dat" if tool == "diskspd" else "/dev/sdc", 5000)
    first, second = ("fio-json", "fio-text") if tool == "fio" else ("diskspd-xml", "diskspd-text")
    write(tmp_path / "in" / "a", first, "3.28", result)
    write(tmp_path / "in" / "b", second, "3.28", result)
    planned = plan(tmp_path / "in")
    assert len(planned.entries) == 1
    (sentence,) = planned.refused
    assert "the same measurement as in a." in sentence and sentence.endswith("it counts once")


# --- sessions, clusters, replicates


def comparisons(base: Path, **settings: Any) -> pd.DataFrame:
    made = importer.make([str(base)], f"{base}-made", Settings(**settings))
    return analyse(made.run).comparisons


@pytest.mark.long
def test_clusters_are_the_units_of_an_interval(tmp_path: Path) -> None:
    clusters(tmp_path / "in", "fio-json", "3.36")
    planned = plan(tmp_path / "in")
    (flag,) = [flag for flag in planned.flags if "too narrow" in flag]
    assert flag.startswith(
        "repeats lie in 2 sessions (2025-03-01 10:05, 2025-08-28 10:05), up to 3 of a cell"
    )
    table = comparisons(tmp_path / "in", same_machine=True)
    assert set(table["n_blocks"]) == {2} and set(table["n_replicates"]) == {1}


@pytest.mark.parametrize(
    "place", ["{day:%Y-%m-%d}/{arm}/x", "{arm}/{day:%Y%m%d}/x", "{arm}-{day:%Y_%m_%d}/x"]
)
@pytest.mark.parametrize("days", [(0, 1, 2, 3, 30, 31, 32, 60, 61, 77), (0, 0.05, 0.1, 40), (0, 7, 8)])
def test_folders_named_by_date_are_sessions(tmp_path: Path, place: str, days: tuple[float, ...]) -> None:
    """Eleven weeks were one block, since only the widest gaps counted."""
    names = set()
    for day, arm, number in itertools.product(days, ("lrs", "zrs"), (1, 2)):
        began = later(days=day, minutes=5 * number)
        path = tmp_path / "in" / place.format(day=began, arm=arm)
        names.add(f"{began:%Y%m%d}")
        write(
            path.with_name(f"x{number}-{began:%H%M}"),
            "fio-json",
            "3.36",
            at(arm, 5000 + 100 * day + number, began),
        )
    planned = plan(tmp_path / "in", arms_by="auto")
    for of_arm in cells(planned).values():
        assert len({block for _, block, _ in of_arm}) == len(names)


def test_arms_of_different_months_are_not_paired(tmp_path: Path) -> None:
    for day, arm in ((0, "lrs"), (150, "zrs")):
        for number in (1, 2, 3):
            result = Result(iops=5000 + day + number, began=later(day, 5 * number))
            write(tmp_path / "in" / arm / f"run{number}" / "x", "fio-json", "3.36", result)
    planned = plan(tmp_path / "in")
    assert any(flag.startswith("no two arms were measured in one session") for flag in planned.flags)
    assert set(map(tuple, cells(planned).values())) == {((1, 1, 1), (1, 1, 2), (1, 1, 3))}
    table = comparisons(tmp_path / "in", same_machine=True)
    assert set(table["n_blocks"]) == {1} and table["ci_low"].isna().all()
    assert not set(table["verdict"]) & {"difference", "equivalent"}


def test_an_arm_that_misses_a_day_keeps_its_days(tmp_path: Path) -> None:
    for day, arm in itertools.product((0, 1, 2), ("lrs", "zrs")):
        if (day, arm) != (1, "zrs"):
            result = at(arm, 5000 + day, later(days=day))
            write(tmp_path / "in" / arm / f"{day}", "fio-text", "3.28", result)
    places = {arm: numbers for (arm, _), numbers in cells(plan(tmp_path / "in")).items()}
    assert places == {"lrs": THRICE, "zrs": [(1, 1, 1), (1, 3, 1)]}


def fill_replicates(base: Path, hosts: tuple[str, ...], days: tuple[float, ...]) -> None:
    for number, (host, day) in enumerate(zip(hosts, days, strict=True), 1):
        for place, arm in enumerate(("lrs", "zrs")):
            result = Result(iops=5000 + number + place, host=host, began=later(day, 5 * number + place))
            write(base / arm / f"rep{number}" / "x", "fio-json", "3.36", result)


@pytest.mark.parametrize(
    ("hosts", "days", "expected"),
    [
        (("vm1", "vm2", "vm3"), (0, 0, 0), [(1, 1, 1), (2, 1, 1), (3, 1, 1)]),
        (("", "", ""), (0, 1, 2), [(1, 1, 1), (2, 2, 1), (3, 3, 1)]),
        (("vm1", "vm1", "vm1"), (0, 0, 0), THRICE),
        (("",) * 6, (0, 0, 0, 180, 180, 180), [(n, block, 1) for n in (1, 2) for block in (1, 2, 3)]),
    ],
    ids=["machines", "named", "one machine", "clusters"],
)
def test_replicates_are_what_they_were(
    tmp_path: Path, hosts: tuple[str, ...], days: tuple[float, ...], expected: list[tuple[int, int, int]]
) -> None:
    fill_replicates(tmp_path / "in", hosts, days)
    planned = plan(tmp_path / "in", layout="{arm}/{replicate}/{load}*")
    assert {arm: places for (arm, _), places in cells(planned).items()} == {"lrs": expected, "zrs": expected}


def test_replicates_have_an_interval_for_disks_like_these(tmp_path: Path) -> None:
    fill_replicates(tmp_path / "in", ("vm1", "vm2", "vm3"), (0, 0, 0))
    table = comparisons(tmp_path / "in", layout="{arm}/{replicate}/{load}*")
    assert set(table["n_replicates"]) == {3}


def test_a_load_of_the_layout_tells_files_apart(tmp_path: Path) -> None:
    for number, name in enumerate(("x", "y")):
        write(tmp_path / "in" / "lrs" / f"{name}_1", "fio-json", "3.36", Result(iops=5000 + number))
    assert len(cells(plan(tmp_path / "in", layout="{arm}/{load}*"))) == 2
    assert len(cells(plan(tmp_path / "in"))) == 1


def test_names_of_files_tell_arms_of_a_target_apart(tmp_path: Path) -> None:
    for number in range(3):
        for name, iops in (("lrs", 5000), ("zrs", 3000)):
            began = later(minutes=10 * number)
            write(tmp_path / "in" / f"{name}_{number}", "fio-json", "3.36", Result(iops=iops, began=began))
    planned = plan(tmp_path / "in")
    assert list(planned.arms.values()) == ["lrs", "zrs"] and len(cells(planned)) == 2
    assert planned.reading[0].startswith("arms guessed from names of files: lrs, zrs (--layout")
    assert len(plan(tmp_path / "in", arms_by="target").arms) == 1


@pytest.mark.parametrize(
    "stems",
    [
        ("run1", "run2"),
        ("fio-1", "result-2"),
        ("2024-05-01", "2024-05-02"),
        ("a", "b"),
        ("disk", "test_json"),
    ],
)
def test_what_any_result_is_called_tells_no_arms(tmp_path: Path, stems: tuple[str, str]) -> None:
    for number, stem in enumerate(stems):
        write(tmp_path / "in" / stem, "fio-json", "3.36", Result(began=later(minutes=number)))
    assert len(plan(tmp_path / "in").arms) == 1


def test_words_that_stand_for_loads_tell_no_arms(tmp_path: Path) -> None:
    write(tmp_path / "in" / "shallow", "fio-json", "3.36", Result(depth=1))
    write(tmp_path / "in" / "deep", "fio-json", "3.36", Result(depth=32))
    assert len(plan(tmp_path / "in").arms) == 1


def test_a_path_that_does_not_fit_is_named(tmp_path: Path) -> None:
    write(tmp_path / "in" / "lrs" / "x", "fio-json", "3.36", Result())
    write(tmp_path / "in" / "y", "fio-json", "3.36", Result(iops=4000))
    planned = plan(tmp_path / "in", layout="{arm}/x*")
    assert planned.refused == ("y.json: its path does not fit --layout {arm}/x*; it is left out",)
    with pytest.raises(UsageError, match="field of --layout 'disk'"):
        plan(tmp_path / "in", layout="{disk}/*")


# --- before anything is written


def test_a_dry_run_says_what_would_be_imported(tmp_path: Path) -> None:
    clusters(tmp_path / "in", "fio-json", "3.36")
    words = preview.words(plan(tmp_path / "in"))
    assert "layout guessed from names: {arm}/{load}*" in words
    assert "12 measurements would be 2 arms x 1 load:" in words
    assert "    randread-4k-qd4: 6 = 1 replicate x 2 blocks x 3 repeats" in words
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_the_layout_is_shown_before_anything_is_written(tmp_path: Path) -> None:
    runs_below_arms(tmp_path / "in", "fio-json", "3.36")
    shown: list[str] = []

    def show(planned: Planned) -> None:
        assert not (tmp_path / "run").exists()
        shown.append(preview.reading(planned))

    made: Imported = importer.make([str(tmp_path / "in")], f"{tmp_path}/run", None, show)
    assert shown == list(made.reading)
    assert shown[0].startswith("layout guessed from names: {arm}/{session}/{load}*")


# --- onto a scenario


def zone_disks(base: Path) -> None:
    for arm, is_write, number in itertools.product(("lrs-z1", "zrs-z1", "tape"), (False, True), (1, 2)):
        rate = 500 + 9 * number + sum(map(ord, arm)) / 100  # single I/Os that stand still may be on a limit
        result = Result(iops=rate, is_write=is_write, depth=1, began=later(minutes=10 * number))
        write(base / arm / f"run{number}" / result.access, "fio-json", "3.36", result)
    odd = Result(iops=900, depth=3)
    write(base / "lrs-z1" / "run1" / "odd", "fio-json", "3.36", odd)


@pytest.mark.long
def test_a_scenario_is_mapped_onto_and_what_does_not_map_is_named(tmp_path: Path) -> None:
    zone_disks(tmp_path / "in")
    made = importer.make([str(tmp_path / "in")], f"{tmp_path}/run", Settings(scenario="zone-disks"))
    assert made.arms == {"lrs-z1": 4, "zrs-z1": 4}
    assert any(text.startswith("arm tape maps onto no arm of zone-disks") for text in made.refused)
    assert any(text.startswith("load randread-4k-qd3 is none of zone-disks") for text in made.refused)
    assert any("mapped onto zone-disks: arms lrs-z1 as lrs-z1" in text for text in made.reading)
    assert made.run.manifest["scenario"]["scenario"]["analysis"] == "zone-disks"
    trials = tables.build(made.run).trials
    assert set(trials["workload"]) == {"randread-qd1", "randwrite-qd1"}
    assert trials["cap_disk_iops"].eq(5000).all() and set(trials["provenance"]) == {"imported"}
    table = analyse(made.run).comparisons
    of_both = table[(table["arm"] == "zrs-z1") & (table["base_arm"] == "lrs-z1")]
    assert {"randread-qd1", "randwrite-qd1"} <= set(of_both["workload"])
    assert of_both.loc[of_both["workload"] == "randwrite-qd1", "ratio"].notna().any()


@pytest.mark.parametrize("twice", [{"base": "a"}, {"same_machine": True}, {"vm_size": "Standard_D4as_v4"}])
def test_what_a_scenario_says_is_not_said_twice(tmp_path: Path, twice: dict[str, Any]) -> None:
    write(tmp_path / "in" / "x", "fio-json", "3.36", Result())
    with pytest.raises(
        UsageError, match="--scenario zone-disks names comparisons, disks and machines: leave"
    ):
        plan(tmp_path / "in", scenario="zone-disks", **twice)
