"""Scenario files: presets, overrides, and one clear sentence for each mistake."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

from diskbook.cloud.azure import expiry
from diskbook.design import consistency, scenario_file, scenario_tables, schedule
from diskbook.design.model import Design, Scenario
from diskbook.facts import catalog, paths
from diskbook.facts.errors import UsageError
from diskbook.measure.plan import sample_size

ZONE_DISKS = (paths.SCENARIOS / "zone-disks.toml").read_text("utf-8")


def test_presets_change_the_workloads() -> None:
    quick = scenario_file.load("zone-disks", "quick")
    full = scenario_file.load("zone-disks", "full")
    assert quick.workload_named("randwrite-qd1").runtime_s == 1.0
    assert quick.workload_named("randwrite-qd256").blocks == 2
    # The article's 30 s on 30 GiB, but for control cells, which quick leaves out, and probes.
    names = {item.name for item in quick.workload if not item.name.endswith("probe")}
    article = [item for item in full.workload if item.name in names]
    assert {(item.runtime_s, item.working_set_gib) for item in article} == {(30.0, 30.0)}
    assert full.design.replicates == 5


@pytest.mark.parametrize("name", ["zone-disks", "shared-zrs"])
def test_the_cheapest_preset_stays_far_below_the_limits_of_its_disks(name: str) -> None:
    """docs/how-to/measure-zrs.md has these figures; the probe at depth 2 would reach a P15's base limit."""
    figures = pd.read_csv(paths.REFERENCE / "published-figures.csv").query("article == 'zone-disks'")
    is_single = (figures["metric"] == "lat_mean") & (figures["outstanding_total"].astype(float) == 1)
    iops = 1000 / figures.loc[is_single, "value"].astype(float).min()
    scenario = scenario_file.load(name, "answer")
    deepest = max(load.threads * load.queue_depth for load in scenario.workload)
    assert deepest == 2 and {disk.size_gib for disk in scenario.disk} == {512}
    for disk in scenario.disk:
        limits = catalog.disk_limits(disk.sku, disk.size_gib)
        assert limits.iops is not None and limits.burst_iops is not None
        assert limits.iops / iops == pytest.approx(2.99, abs=0.005) and deepest * iops < limits.iops
        assert limits.burst_iops / iops == pytest.approx(4.55, abs=0.005)
        smaller = catalog.disk_limits(disk.sku, disk.size_gib // 2)
        assert smaller.iops is not None and deepest * iops > smaller.iops


def test_overrides_win_over_the_preset() -> None:
    overrides = {
        "design.replicates": 2,
        "all_workloads.runtime_s": 7,
        "workload.randread-qd1.block_size": "8K",
    }
    found = scenario_file.load("zone-disks", "quick", overrides)
    assert found.design.replicates == 2
    assert {item.runtime_s for item in found.workload if not item.name.endswith("probe")} == {7.0}
    assert found.workload_named("randread-qd1").block_size_bytes == 8192


def test_the_manifest_gives_the_same_scenario_back() -> None:
    found = scenario_file.load("zone-disks", "quick")
    assert scenario_tables.from_dict(found.model_dump(mode="json"), "manifest") == found


def test_a_recorded_arm_has_todays_label_where_it_is_the_same_arm() -> None:
    raw = scenario_file.load("disk-options", "quick").model_dump(mode="json")
    for arm in raw["arm"]:
        arm["label"] = "J"
    next(disk for disk in raw["disk"] if disk["name"] == "h")["size_gib"] = 2048
    labels = {arm.name: arm.label for arm in scenario_tables.recorded(raw, "manifest.json").arm}
    assert labels["j-v2-8000"] == "Premium v2" and labels["h-plain"] == "J"
    raw["name"] = "not-of-the-workbook"
    assert {arm.label for arm in scenario_tables.recorded(raw, "manifest.json").arm} == {"J"}


def test_every_scenario_loads_in_every_preset() -> None:
    for name in scenario_file.names():
        for preset in ("quick", "standard", "full"):
            loaded = scenario_file.load(name, preset)
            assert isinstance(loaded, Scenario)
            # An article's letter for a drive says nothing to a reader of the report.
            assert not any(re.match(r"[A-Z]\b", arm.label or "") for arm in loaded.arm), name


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        ({"design.sed": 3}, "[design]: there is no key 'sed'; did you mean 'seed'?"),
        ({"desing.seed": 3}, "there is no key 'desing'; did you mean 'design'?"),
        ({"seed": 3}, "'seed' needs a name below it"),
        ({"workload.randread.runtime_s": 3}, "there is no workload 'randread'; did you mean 'randread-qd1'?"),
        ({"workload.randread-qd1.runtime": 3}, "there is no key 'runtime'; did you mean 'runtime_s'?"),
        ({"workload.randread-qd1.block_size": "4X"}, "'4X' is not a block size"),
        ({"workload.randread-qd1.queue_depth": 0}, "queue_depth"),
        ({"workload.randread-qd1.runtime_s": "long"}, "runtime_s"),
        ({"arm.lrs-z1.disk": "lr"}, "[[arm]] lrs-z1: there is no disk 'lr'; did you mean 'lrs'?"),
        ({"arm.zrs-z1.machine": "vm2"}, "pairing same-machine, but the arms are on vm2 and vm1"),
        ({"disk.zrs.frequent_attach": True}, "of the disks zrs and lrs one alone has frequent_attach"),
        ({"disk.zrs.zone": "1"}, "[[disk]] zrs: zone"),
        ({"disk.zrs.name": "lrs"}, "the name 'lrs' is used twice"),
        ({"disk.zrs.name": "ZRS 1"}, "is not a name"),
        ({"scenario.region": "westeurop"}, "'westeurop'"),
        ({"machine.vm1.size": "Standard_D4as"}, "'Standard_D4as'"),
        ({"design.hours_between_blocks": 25}, "hours_between_blocks"),
        ({"design.hours_between_blocks": -1}, "hours_between_blocks"),
        ({"design.hours_between_blocks": 24.5}, "hours_between_blocks"),
        ({"design.spread": "6 hours"}, "spread: '6 hours' is not a time; write hours or days"),
        ({"design.spread": "6h", "design.hours_between_blocks": 2}, "write spread alone"),
        ({"design.spread": "4d"}, 'spread = "4d": 4 blocks would take 96 h'),
        ({"design.look_unit": "blocks"}, "without looks: write for example looks = [4]"),
        ({"design.look_unit": "blocks", "design.looks": [2, 3]}, "the last one that of all, 4"),
        (
            {"design.look_unit": "blocks", "design.looks": [2, 4], "design.replicates": 3},
            "the verdict on 3 replicates rests on replicates",
        ),
    ],
)
def test_a_mistake_is_named_with_its_place(overrides: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        scenario_file.load("zone-disks", "quick", overrides)
    assert said in str(caught.value)
    file = "zone-disks.toml: "
    assert all(line.startswith((file, "overrides: ")) for line in str(caught.value).splitlines())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("[design]", "[design"), "not valid TOML"),
        (('disk = "lrs"', ""), "the key 'disk' is missing"),
        (("[preset.quick.all_workloads]", "[preset.quik.all_workloads]"), "did you mean 'quick'"),
        (('name = "zrs-z2"', 'name = "zrs-z9"'), "there is no arm 'zrs-z2'; did you mean"),
        (('from_machine = "vm1"', ""), "a data-intact check needs from_machine"),
        (
            ('pairing = "same-disk"', 'pairing = "same-disk"\nfamily = "headline"'),
            "at most 5 may be headline",
        ),
    ],
)
def test_a_broken_file_is_named(tmp_path: Path, change: tuple[str, str], said: str) -> None:
    path = tmp_path / "broken.toml"
    path.write_text(ZONE_DISKS.replace(*change))
    with pytest.raises(UsageError, match=r"broken\.toml") as caught:
        scenario_file.load(str(path), "quick")
    assert said in str(caught.value)


def test_volumes_of_one_entry_have_numbers_and_their_machines_disks_in_a_pool() -> None:
    volumes = scenario_file.load("s2d-azure", "quick")
    (single,) = (item for item in volumes.volume if item.name == "simple4")
    assert volumes.members_of(single) == ["simple4"]
    assert volumes.members_of(single.model_copy(update={"count": 2})) == ["simple4-1", "simple4-2"]
    assert volumes.is_pooled("single")
    assert not scenario_file.load("zone-disks", "quick").is_pooled("vm1")


def test_blocks_are_spread_over_hours_only_as_long_as_machines_stand() -> None:
    spread = {"design.hours_between_blocks": 24}
    assert (
        scenario_file.load("zone-disks", "quick", spread).design.hours_between_blocks == 24
    )  # 4 blocks: 72 h
    assert scenario_file.load("zone-disks", "quick", {"design.spread": "3d"}).gap_h == 24
    two = {"design.spread": "5h", **dict.fromkeys(ONE_BLOCK, 2)}
    assert scenario_file.load("zone-disks", "quick", two).gap_h == 5
    with pytest.raises(UsageError, match="5 blocks would take 96 h, and machines stand for 72 h at most"):
        scenario_file.load("zone-disks", "standard", spread)
    with pytest.raises(UsageError, match="there is one block, and nothing to spread"):
        scenario_file.load("zone-disks", "quick", {**spread, **dict.fromkeys(ONE_BLOCK, 1)})
    assert consistency.MOST_HOURS == expiry.LONGEST_H


LOADS = ("randread-qd1", "randwrite-qd1", "commit-qd1", "randread-qd256", "randwrite-qd256")
ONE_BLOCK = [f"workload.{name}.blocks" for name in LOADS]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            ('article = "zone-disks"', 'article = "zone-disk"'),
            "no article 'zone-disk'; did you mean 'zone-disks'?",
        ),
        (('article = "zone-disks"', 'article = "x"'), "there is no article 'x'; known: disk-options,"),
        (('region = "', 'region = "../'), "[scenario]: region = '../"),
        (('size = "Standard', 'size = "Standard;'), "size = 'Standard;"),
        (('question = "', 'question = "\\u001b[2J'), "[scenario]: question: control characters"),
        (('title = "', 'title = "\\u202e'), "[scenario]: title: control characters"),
        (('title = "', 'title = "two\\nlines'), "[scenario]: title: control characters"),
    ],
)
def test_what_a_text_of_a_file_may_not_hold(tmp_path: Path, change: tuple[str, str], said: str) -> None:
    path = tmp_path / "own.toml"
    assert change[0] in ZONE_DISKS
    path.write_text(ZONE_DISKS.replace(*change, 1), "utf-8")
    with pytest.raises(UsageError) as caught:
        scenario_file.load(str(path))
    assert str(caught.value).startswith("own.toml: ") and said in str(caught.value)
    assert "\n" not in str(caught.value) and str(caught.value).isprintable()


@pytest.mark.parametrize("where", ["own.toml", "manifest.json"])
def test_an_argument_of_a_line_that_could_be_a_command_is_named_with_its_file(
    tmp_path: Path, where: str
) -> None:
    """cmd.exe on a Windows machine would run what stands between the ampersands."""
    line = "diskspd -c1G -b8K -e&calc.exe&rem x.dat"
    raw = scenario_file.load("tool-check", "quick").model_dump(mode="json")
    raw["workload"] = [{"name": "own", "verbatim": line, "arms": raw["workload"][0]["arms"]}]
    raw["comparison"] = []
    with pytest.raises(UsageError) as caught:
        if where == "manifest.json":
            scenario_tables.from_dict(raw, where)
        else:
            (tmp_path / where).write_text(
                f'{ZONE_DISKS}\n[[workload]]\nname = "own"\nverbatim = "{line}"\n', "utf-8"
            )
            scenario_file.load(str(tmp_path / where))
    assert str(caught.value).startswith(f"{where}: [[workload]] own: DiskSpd argument -e&calc.exe&rem: ")


def test_unknown_names_get_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean 'zone-disks'"):
        scenario_file.load("zone-disk")
    with pytest.raises(UsageError, match="did you mean 'quick'"):
        scenario_file.load("zone-disks", "quik")
    with pytest.raises(UsageError, match="there is no scenario file"):
        scenario_file.load("nowhere/x.toml")


def test_a_workload_may_be_offered_to_some_arms_only() -> None:
    zones = [f"{kind}-z{zone}" for zone in (1, 2, 3) for kind in ("zrs", "lrs")]
    some = {"workload.randread-qd1.arms": [*zones, "lrs-b-z1"]}
    deep = {"workload.commit-qd1.arms": zones}
    less, every = (
        scenario_file.load("zone-disks", "quick", {**arms, "design.probe_s": 0}) for arms in (some, deep)
    )
    assert len(every.cells) == 28 and len(less.cells) == 24
    planned = [trial for block in schedule.plan(less) for trial in block.trials]
    assert {trial.arm for trial in planned if trial.workload == "commit-qd1"} == {"zrs-z1", "lrs-z1"}
    assert len(planned) == sample_size.trials(less) == sample_size.trials(every) - 4 * 4


@pytest.mark.parametrize(
    ("arms", "words"),
    [(["zrs-z1"], "randwrite-qd1 is not offered to lrs-z1"), (["zrs-z9"], "there is no arm 'zrs-z9'")],
)
def test_a_workload_must_meet_the_arms_it_is_compared_on(arms: list[str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        scenario_file.load("zone-disks", "quick", {"workload.randwrite-qd1.arms": arms})


def test_a_scenario_without_a_design_has_the_defaults(tmp_path: Path) -> None:
    text = (paths.ROOT / "tests" / "scenarios" / "tiny.toml").read_text("utf-8")
    cut = re.sub(r"^\[(preset\.\w+\.)?design\]\n(?:[^\[\n][^\n]*\n|\n)*", "", text, flags=re.MULTILINE)
    assert "design]" not in cut
    (tmp_path / "tiny.toml").write_text(cut)
    for preset in ("quick", "standard"):
        assert scenario_file.load(str(tmp_path / "tiny.toml"), preset).design == Design()
    assert (
        scenario_file.load(str(tmp_path / "tiny.toml"), "quick", {"design.replicates": 2}).design.replicates
        == 2
    )


PLANTED = {
    'name = "zrs"': 'name = "zrs"\nsizegib = 7',  # an unknown key
    "seed = 20261": 'seed = "many"',  # of another kind than it must be
    'base_arm = "lrs-z2"': 'base_arm = "lrs-z7"',  # refers to nothing
    'name = "lrs-b"\nsku = "Premium_LRS"': 'name = "lrs-b"\nsku = "Premium_XRS"',  # no SKU
    'name = "vm3"\nsize = "Standard_D4as_v4"': 'name = "vm3"\nsize = "Standard_D4as_v44"',  # a rule of Azure
}


def test_a_wrong_preset_hides_no_other_mistake(tmp_path: Path) -> None:
    text, path = ZONE_DISKS, tmp_path / "two.toml"
    for right, wrong in (("[preset.quick.design]", "[preset.quick.desing]"), ("seed = 20261", "seed = 0.5")):
        assert right in text
        text = text.replace(right, wrong, 1)
    path.write_text(text, "utf-8")
    with pytest.raises(UsageError) as caught:
        scenario_file.load(str(path), "standard")
    lines = str(caught.value).splitlines()
    assert len(lines) == 2 and "[preset.quick]: there is no key 'desing'" in str(lines), lines


def test_all_mistakes_of_a_file_come_at_once_in_its_order(tmp_path: Path) -> None:
    text, path = ZONE_DISKS, tmp_path / "five.toml"
    for right, wrong in PLANTED.items():
        assert right in text, right
        text = text.replace(right, wrong, 1)
    path.write_text(text, "utf-8")
    with pytest.raises(UsageError) as caught:
        scenario_file.load(str(path), "quick")
    lines = str(caught.value).splitlines()
    assert len(lines) == 5 and all(line.startswith("five.toml: [") for line in lines), lines


def test_a_scenario_needs_no_article(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text(ZONE_DISKS.replace('article = "zone-disks"\n', ""), "utf-8")
    assert scenario_file.load(str(path), "quick").scenario.article == "none"
