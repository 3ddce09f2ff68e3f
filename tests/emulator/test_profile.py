"""Emulator profiles: what they say, how they are checked, what the default one reproduces."""

from __future__ import annotations

from pathlib import Path

import pytest

from diskbook.facts import paths
from diskbook.facts.errors import UsageError
from diskbook_emulator.model import Model
from diskbook_emulator.profile import DEFAULT, RELATIONS, Wander, load_profile, profile_names
from diskbook_emulator.types import DiskSpec, VmSpec

ROW = '[[latency]]\nsku = "Premium_LRS"\nop = "read"\nmean_ms = 2.0\n'


def disk(sku: str, site: str = "zone-disks", **changes: object) -> DiskSpec:
    values = {
        "id": f"/disks/{sku}",
        "name": sku,
        "sku": sku,
        "size_gib": 1024,
        "zone": None if sku.endswith("ZRS") else "1",
        "max_shares": 1,
        "iops": 5000,
        "mb_s": 200,
        "bursting": False,
        "performance_plus": False,
        "tier": None,
        "tags": {"diskbook-site": site},
    }
    return DiskSpec(**{**values, **changes})  # type: ignore[arg-type]


def machine(zone: str | None, size: str = "Standard_D4as_v4") -> VmSpec:
    return VmSpec("/vms/vm", "vm", size, zone, "linux", "user", (), "")


def at_home_in(tmp_path: Path, zone: str) -> Model:
    path = tmp_path / "fixed.toml"
    path.write_text(f'extends = "default"\n[zones]\nhome = {zone}\n')
    return Model(load_profile(str(path)), seed=1)


# Queue depth 1, article zone-disks: SKU, zone of the VM, read ms, write ms.
PUBLISHED = [
    ("Premium_LRS", "1", 2.2, 1.3),
    ("Premium_ZRS", "1", 4.3, 3.2),
    ("Premium_ZRS", "2", 2.2, 3.2),
    ("Premium_ZRS", "3", 3.2, 4.8),
]


@pytest.mark.parametrize(("sku", "zone", "read_ms", "write_ms"), PUBLISHED)
def test_the_default_profile_gives_the_latencies_of_zone_disks(
    tmp_path: Path, sku: str, zone: str, read_ms: float, write_ms: float
) -> None:
    truth = at_home_in(tmp_path, "2").population(machine(zone), disk(sku))
    assert (truth.read_mean_ms, truth.write_mean_ms) == (read_ms, write_ms)


def test_the_default_profile_gives_the_figures_of_other_articles() -> None:
    profile = load_profile("default")
    # s2d-azure: 1,985 IOPS at 8 outstanding, by Little's law
    assert profile.latency("s2d-azure", "Premium_LRS", "none", "home", "read").mean_ms == pytest.approx(
        8 / 1985 * 1000, rel=0.001
    )
    printed = [1.86, 1.92, 2.19, 2.02, 2.02]  # disk-options, access times of E, F, G, I and L
    zrs = profile.latency("disk-options", "Premium_ZRS", "bursting", "other-b", "read").mean_ms
    assert zrs == pytest.approx(sum(printed) / len(printed), rel=0.01)
    assert profile.latency("disk-options", "Premium_ZRS", "none", "home", "cache-hit").mean_ms == 0.079
    v2 = profile.latency("disk-options", "PremiumV2_LRS", "none", "home", "read").mean_ms
    assert v2 == pytest.approx((0.330 + 0.353) / 2, rel=0.01)


def test_drives_planted_in_a_site_take_the_place_of_documented_limits() -> None:
    model = Model(load_profile("default"), 1)
    limits = model.disk_limits(disk("Premium_LRS", "nested-resiliency", bursting=True))
    assert (limits.iops, limits.mb_s) == pytest.approx((1470 * 1.02, 50 * 1.02))
    assert limits.burst_iops is None
    assert model.disk_limits(disk("Premium_LRS", "s2d-azure")).iops == 5000 * 1.02


def test_drives_of_a_site_that_is_unknown_or_half_said_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "drives.toml"
    for text, why in (
        ("[drives.nested]\niops = 1\nmb_s = 1\n", "nested"),
        ("[drives.s2d-azure]\niops = 1\n", "mb_s"),
        ("[drives.s2d-azure]\niops = 1.5\nmb_s = 1\n", "whole number"),
    ):
        path.write_text(f'extends = "default"\n{text}')
        with pytest.raises(UsageError, match=why):
            load_profile(str(path))


def test_limits_lie_two_per_cent_above_nominal() -> None:
    limits = Model(load_profile("default"), 1).disk_limits(disk("Premium_LRS"))
    assert limits.iops == pytest.approx(5099.82, rel=0.001)  # as shared-zrs and disk-options printed
    assert limits.mb_s == pytest.approx(203.9, rel=0.001)  # as Azure VM Noise 2024 has it


def test_the_header_says_what_is_not_reproduced() -> None:
    header = (paths.ROOT / "data/profiles/default.toml").read_text().split("description =")[0]
    for printed in ("5,140", "5,180", "4,079.72", "1.02 ms", "25,131", "flush latency"):
        assert printed in header


def test_a_site_inherits_what_it_does_not_say() -> None:
    profile = load_profile("default")
    for relation in RELATIONS:
        inherited = profile.latency("shared-zrs", "Premium_ZRS", "none", relation, "write")
        assert inherited == profile.latency(DEFAULT, "Premium_ZRS", "none", relation, "write")


def test_null_plays_zrs_as_lrs_everywhere(tmp_path: Path) -> None:
    profile = load_profile("null")
    for op in ("read", "write", "flush", "cache-hit"):
        lrs = profile.latency("zone-disks", "Premium_LRS", "none", "home", op)
        assert {profile.latency("zone-disks", "Premium_ZRS", "none", one, op) for one in RELATIONS} == {lrs}


def test_plus2_adds_two_per_cent_to_zrs_writes_only() -> None:
    profile = load_profile("plus2")
    for relation in RELATIONS:
        ratios = [
            profile.latency(DEFAULT, "Premium_ZRS", "none", relation, op).mean_ms
            / profile.latency(DEFAULT, "Premium_LRS", "none", "home", op).mean_ms
            for op in ("read", "write")
        ]
        assert ratios == pytest.approx([1.0, 1.02])


def test_quiet_is_the_default_without_noise() -> None:
    quiet, default = load_profile("quiet"), load_profile("default")
    assert quiet.latencies == default.latencies
    noise = quiet.noise
    assert (noise.machine, noise.disk, noise.block, noise.trial, noise.second, noise.drift) == (0,) * 6


AZURE = ("azure-noise-2024", "azure-noise-2024-burstable")


@pytest.mark.parametrize("name", [*AZURE, DEFAULT])
def test_profiles_with_the_noise_of_a_dataset_name_its_source_and_licence(name: str) -> None:
    header = (paths.PROFILES / f"{name}.toml").read_text().split("description =")[0]
    for words in ("Azure VM Noise 2024", "Azure/AzurePublicDataset at b469a113", "CC-BY-4.0", "changed"):
        assert words in header


def test_real_noise_is_played_with_the_default_profiles_latencies_and_caps() -> None:
    default = load_profile(DEFAULT)
    for name in AZURE:
        profile = load_profile(name)
        assert (profile.latencies, profile.caps) == (default.latencies, default.caps)
        assert profile.noise.hours_between_blocks > 0 and profile.noise.machine_us > 0
        assert not (profile.noise.machine or profile.noise.shifts_a_month)
    assert (default.caps.iops_factor, default.caps.mb_s_factor) == (1.02, 1.02)


def test_what_lasts_hours_and_what_is_rare_is_off_elsewhere() -> None:
    for name in set(profile_names()) - set(AZURE):
        noise = load_profile(name).noise
        rare = (noise.slow_pairs, noise.slow_runs, noise.credit_empty, noise.credit_partial)
        assert not any(
            (*rare, noise.machine_us, noise.wander, noise.shifts_a_month, noise.hours_between_blocks)
        )


def test_a_profile_extends_a_file_in_its_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, elsewhere = tmp_path / "profiles", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    (folder / "base.toml").write_text('extends = "quiet"\n[caps]\niops_factor = 1.5\n')
    (elsewhere / "base.toml").write_text('extends = "quiet"\n[caps]\niops_factor = 1.1\n')
    (folder / "mine.toml").write_text('extends = "base.toml"\n')
    (folder / "lost.toml").write_text('extends = "gone.toml"\n')
    monkeypatch.chdir(elsewhere)
    assert load_profile("../profiles/mine.toml").caps.iops_factor == 1.5
    with pytest.raises(UsageError, match=r"there is no emulator profile file .*profiles/gone\.toml"):
        load_profile(str(folder / "lost.toml"))


def test_a_profiles_own_wander_takes_the_place_of_what_it_extends(tmp_path: Path) -> None:
    path = tmp_path / "wild.toml"
    path.write_text('extends = "azure-noise-2024"\n[[noise.wander]]\nhours = 1\nsd = 0.2\n')
    assert load_profile(str(path)).noise.wander == (Wander(1.0, 0.2),)


def test_metrics_of_every_second_are_a_wish_that_no_profile_here_has(tmp_path: Path) -> None:
    assert {load_profile(name).metrics_grain_s for name in profile_names()} == {60}
    path = tmp_path / "seconds.toml"
    path.write_text('extends = "default"\nmetrics_grain_s = 1\n')
    assert load_profile(str(path)).metrics_grain_s == 1


def test_every_profile_that_comes_along_can_be_read() -> None:
    assert {"default", "null", "plus2", "quiet"} <= set(profile_names())
    for name in profile_names():
        assert load_profile(name).latencies


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[nosie]\nmachine = 0.1\n" + ROW, "no key 'nosie'; did you mean 'noise'?"),
        ("[noise]\nmachin = 0.1\n" + ROW, "[noise]: there is no key 'machin'; did you mean 'machine'?"),
        ("[noise]\nmachine = -1\n" + ROW, "[noise] machine must be a number of at least 0, not -1."),
        ("[noise]\nphi = 1.0\n" + ROW, "phi must be below 1"),
        ("[noise]\nshared = 1.5\n" + ROW, "[noise] shared must be at most 1, not 1.5."),
        ("[noise]\nwander = 0.1\n" + ROW, "wander needs [[noise.wander]] rows with hours and sd, not 0.1."),
        ("[volumes]\nlocal_shares = 1\n" + ROW, "no key 'local_shares'; did you mean 'local_share'?"),
        ("[volumes]\nlocal_share = 2\n" + ROW, "[volumes] local_share must be at most 1, not 2."),
        ("[volumes]\nrepair_depth = 0.5\n" + ROW, "repair_depth must be a whole number, not 0.5."),
        ("[[noise.wander]]\nhours = 0\nsd = 0.1\n" + ROW, "hours must be a number above 0, not 0."),
        ("[[noise.wander]]\nhour = 1\nsd = 0.1\n" + ROW, "no key 'hour'; did you mean 'hours'?"),
        ("[noise]\nhours_between_blocks = -1\n" + ROW, "hours_between_blocks must be a number of at least 0"),
        (ROW + 'zone_relation = "other-c"\n', "no zone_relation 'other-c'; did you mean 'other-"),
        (ROW + 'site = "zone-disk"\n', "no site 'zone-disk'; did you mean 'zone-disks'?"),
        (ROW + 'option = "burst"\n', "no option 'burst'; did you mean 'bursting'?"),
        (ROW + "mean = 2\n", "latency row 1: there is no key 'mean'; did you mean 'mean_ms'?"),
        (ROW.replace("LRS", "LSR"), "no sku 'Premium_LSR'; did you mean 'Premium_LRS'?"),
        (ROW.replace("read", "reed"), "no op 'reed'; did you mean 'read'?"),
        (ROW.replace("2.0", '"fast"'), "mean_ms must be a number"),
        (ROW.replace("mean_ms = 2.0\n", ""), "'mean_ms' is missing"),
        (ROW + "parallelism = 1.5\n", "parallelism must be a whole number"),
        (ROW + "[zones]\nhome = 4\n", "no home zone '4'"),
        (ROW + "[control_plane]\ndelay_s = 1\n", "no key 'delay_s'; did you mean 'delays_s'?"),
        (ROW + "[control_plane.delays_s]\ndisk-creat = 1\n", "did you mean 'disk-create'?"),
        (ROW + "[caps]\niops_factor = 0\n", "iops_factor must be a number of at least 0.01"),
        (
            ROW + '[disks."r1-*"]\ncaps_factor = 0\n',
            "[disks.r1-*] caps_factor must be a number of at least 0.01, not 0.",
        ),
        (ROW + "[attach]\nslow_s = -1\n", "[attach] slow_s must be a number of at least 0, not -1."),
        ("metrics_grain_s = 10\n" + ROW, "metrics_grain_s must be 1 or 60, not 10."),
        (
            ROW + '[schedules]\nstopped_machine = "gone"\n',
            "[schedules] stopped_machine must be 'left' or 'deallocated', not 'gone'.",
        ),
        (ROW + "[attach]\nfactors = 2\n", "[attach]: there is no key 'factors'; did you mean 'factor'?"),
        ("description = 'nothing'\n", "needs [[latency]] rows"),
        ("latency = 1 1\n", "not valid TOML"),
        ('extends = "defualt"\n', "no emulator profile 'defualt'; did you mean 'default'?"),
        ('extends = "broken"\n', "'extends' goes round in a circle"),
    ],
)
def test_a_mistake_is_told_in_one_sentence(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "broken.toml"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        load_profile(str(path))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_unknown_profile_names_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean 'quiet'"):
        load_profile("quite")


def test_a_disk_the_profile_does_not_know_is_an_error() -> None:
    model = Model(load_profile("null"), 1)
    with pytest.raises(RuntimeError, match="'null' has no read latency for UltraSSD_LRS"):
        model.export_model(machine("1"), disk("UltraSSD_LRS"), "None", 0)
