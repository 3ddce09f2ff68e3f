"""Random scenario files: each is read whole or refused in one sentence, and a refused one makes nothing."""

from __future__ import annotations

import copy
import json
import math
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from diskbook.cli import main
from diskbook.cost import budget, plan_sections
from diskbook.design import azure_rules as rules, scenario_file, schedule
from diskbook.design.model import PRESETS
from diskbook.facts import paths
from diskbook.facts.errors import DiskbookError, UsageError
from diskbook.measure.plan import sample_size
from diskbook.measure.runs import stages
from diskbook_emulator import lifecycle
from support import SCENARIOS, emulated

pytestmark = pytest.mark.whole

EXAMPLES = settings(
    max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
FILES = [paths.SCENARIOS / f"{name}.toml" for name in scenario_file.names()]
FILES += [SCENARIOS / f"{name}.toml" for name in ("local", "tiny")]
KEYS = [
    "name", "size", "zone", "sku", "size_gib", "max_shares", "cache", "bursting", "performance_plus", "iops",
    "mb_s", "disk", "machine", "arm", "workload", "block_size", "write_pct", "threads", "queue_depth", "rate",
    "sync", "working_set_gib", "ramp_s", "runtime_s", "blocks", "series_s", "replicates", "repeats", "seed",
    "max_cost_usd", "region", "site", "analysis", "title", "design", "scenario", "preset", "comparison",
    "check", "all_workloads", "arms", "verbatim", "os", "kind", "from_machine", "base_arm", "pairing",
    "margin", "quick",
]  # fmt: skip

# Values that a wrong or hostile file may hold, in place of any other.
numbers = st.one_of(
    st.integers(),
    st.sampled_from([0, -1, 1, 3, 513, 1025, 2**31, 2**63, 2**64, 10**30, 10**400, -(10**400)]),
    st.floats(allow_nan=True, allow_infinity=True),
)
words = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        ["", "4K", "0K", "99999999999G", "²K", "Premium_LRS", "Premium_ZRS", "PremiumV2_LRS", "UltraSSD_LRS",
         "Standard_LRS", "StandardSSD_ZRS", "EphemeralOS", "Standard_D4as_v4", "Standard_E4ads_v5",
         "Standard_L16s", "westus", "norwayeast", "1", "3", "vm1", "lrs", "ReadWrite", "dsync", "windows",
         "diskspd", "same-disk", "-c1G -b4K -d1 x", "../../etc", "a\nb", "\x00", "\u202e", "x" * 5000, "inf"]
    ),
)  # fmt: skip
leaves = st.one_of(numbers, words, st.booleans(), st.just(date(2026, 1, 1)))
junk = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(st.sampled_from(KEYS), words), inner, max_size=3),
    ),
    max_leaves=6,
)


# Values of the right type, as a slip of the hand may have them; most break a rule, not the form.
slips: dict[type, st.SearchStrategy[Any]] = {
    bool: st.booleans(),
    int: st.sampled_from([0, 1, 2, 3, 4, 5, 8, 30, 64, 100, 512, 513, 1024, 4095, 4096, 32767, 65536, 99999]),
    float: st.sampled_from([0.0, 0.001, 0.5, 1.0, 3.0, 60.0, 3600.0, 1e5, 1e9, 1e308, math.nan, math.inf]),
    str: st.sampled_from(
        ["1", "2", "3", "Premium_LRS", "Premium_ZRS", "PremiumV2_LRS", "UltraSSD_LRS", "Standard_LRS",
         "StandardSSD_LRS", "StandardSSD_ZRS", "ReadOnly", "ReadWrite", "None", "4K", "128K", "1M", "64M",
         "Standard_D4as_v4", "Standard_L16s", "Standard_E2as_v5", "Standard_DS2_v2", "westus", "norwaywest",
         "westeurope", "windows", "linux", "vm1", "vm2", "lrs", "zrs", "lrs-z1", "zrs-z1", "randread-qd1",
         "same-disk", "same-machine", "replicate", "headline", "iops", "lat_p99_ms", "sequential",
         "fdatasync", "data-intact", "attach-refused", "zone-disks", "fio", "any"]
    ),
}  # fmt: skip


def one_sentence_each(text: str) -> bool:
    """Whether each mistake has a line of its own that a terminal can show, and there are at most 21."""
    lines = text.splitlines()
    return len(lines) <= 21 and all(line.isprintable() and len(line) < 700 for line in lines)


def spots(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths to everything in a tree of tables and lists, the root left out."""
    inside = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in inside:
        yield (*path, key)
        yield from spots(value, (*path, key))


def leaf(tree: Any, path: Sequence[Any]) -> Any:
    """What lies at the end of a path."""
    for key in path:
        tree = tree[key]
    return tree


@st.composite
def mutated(draw: st.DrawFn) -> dict[str, Any]:
    """A scenario of ours with some of its parts replaced, renamed, doubled or left out."""
    raw = copy.deepcopy(draw(st.sampled_from([tomllib.loads(path.read_text()) for path in FILES])))
    for _ in range(draw(st.integers(1, 4))):
        found = list(spots(raw))
        if not found:
            break
        *parents, last = draw(st.sampled_from(found))
        place = leaf(raw, parents)
        change = draw(st.sampled_from([*["slip"] * 9, "replace", "replace", "drop", "add", "double", "move"]))
        if change == "slip":
            leaves = [spot for spot in found if type(leaf(raw, spot)) in slips]
            *parents, last = draw(st.sampled_from(leaves)) if leaves else (*parents, last)
            place = leaf(raw, parents)
            place[last] = draw(slips.get(type(place[last]), junk))
        elif change == "drop":
            del place[last]
        elif change == "add" and isinstance(place, dict):
            place[draw(st.one_of(st.sampled_from(KEYS), words))] = draw(junk)
        elif change == "double" and isinstance(place, list):
            place.append(copy.deepcopy(place[last]))
        elif change == "move" and isinstance(place, dict):
            place[draw(st.sampled_from(KEYS))] = place.pop(last)
        else:
            place[last] = draw(junk)
    return raw


def toml(value: Any) -> str:
    """Write a value as TOML, inline; escapes of JSON are those of TOML's basic strings."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{toml(str(key))} = {toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(toml(item) for item in value) + "]"
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if isinstance(value, date):
        return value.isoformat()
    # DEL is the one control character that JSON leaves as it is.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def document(raw: dict[str, Any]) -> str:
    return "\n".join(f"{toml(key)} = {toml(value)}" for key, value in raw.items())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(paths, "RUNS", tmp_path / "runs")
    return tmp_path


def hold(folder: Path, content: bytes, preset: str) -> bool:
    """Read a file of this content: whole, or one sentence and no run. Returns whether it was read."""
    path = folder / "random.toml"
    path.write_bytes(content)
    run = paths.RUNS / "random"
    try:
        chosen = scenario_file.load(str(path), preset)
    except UsageError as error:
        said = str(error)
        assert one_sentence_each(said) and len(said) > 10, said
        with pytest.raises(UsageError):
            stages.begin("random", str(path), "emulator", preset)
        assert not run.exists()
        return False
    # What is read can be planned, priced and begun.
    assert rules.check(chosen) == []
    assert sample_size.trials(chosen) == sum(len(block.trials) for block in schedule.plan(chosen))
    estimate = budget.estimated(chosen, None, timedelta(hours=12), date(2026, 11, 20))
    assert estimate.usd > 0 and math.isfinite(estimate.worst_usd)
    assert plan_sections.created(chosen, estimate) and plan_sections.limits(chosen)
    try:
        made = stages.begin("random", str(path), "emulator", preset)
        assert made.scenario == chosen
        shutil.rmtree(run)
    except UsageError:  # for example no notebook of that name
        assert not run.exists()
    return True


def test_our_own_files_pass(folder: Path) -> None:
    """The rest would prove nothing if everything were refused, or if the writer of TOML were wrong."""
    for path in FILES:
        raw = tomllib.loads(path.read_text())
        assert tomllib.loads(document(raw)) == raw
        for preset in PRESETS:
            assert hold(folder, document(raw).encode(), preset)


@EXAMPLES
@given(raw=mutated(), preset=st.sampled_from(PRESETS))
def test_mutated_scenarios(folder: Path, raw: dict[str, Any], preset: str) -> None:
    hold(folder, document(raw).encode(), preset)


@EXAMPLES
@given(raw=st.dictionaries(st.one_of(st.sampled_from(KEYS), words), junk, max_size=6))
def test_tables_of_junk(folder: Path, raw: dict[str, Any]) -> None:
    assert not hold(folder, document(raw).encode(), "quick")


@EXAMPLES
@given(data=st.data())
def test_files_that_were_cut_or_scratched(folder: Path, data: st.DataObject) -> None:
    whole = data.draw(st.sampled_from(FILES)).read_bytes()
    start = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(start, min(len(whole), start + 200)))
    inside = data.draw(st.one_of(st.binary(max_size=8), st.text(max_size=8).map(str.encode)))
    hold(folder, whole[:start] + inside + whole[end:], "quick")


@EXAMPLES
@given(content=st.one_of(st.binary(max_size=100), st.text(max_size=100).map(lambda text: text.encode())))
def test_files_of_anything(folder: Path, content: bytes) -> None:
    assert not hold(folder, content, "quick")


@EXAMPLES
@given(
    key=st.one_of(st.sampled_from(["design.replicates", "workload.randread-qd1.blocks", "machine.vm1.zone",
                                   "all_workloads.runtime_s", "disk.lrs.size_gib", "design", "arm.x.disk"]),
                  st.lists(words, min_size=1, max_size=4).map(".".join)),
    value=junk,
)  # fmt: skip
def test_overrides_of_anything(key: str, value: Any) -> None:
    """As `--set` gives them."""
    try:
        chosen = scenario_file.load("zone-disks", "quick", {key: value})
    except UsageError as error:
        assert one_sentence_each(str(error)), error
    else:
        assert rules.check(chosen) == []


@pytest.mark.parametrize(
    "content",
    ["[" * 100_000, "a = " + "[" * 5000 + "]" * 5000, "a = " + "{b = " * 3000, "a." * 1000 + "b = 1",
     "x" * 10**6, "a = " + "9" * 10**5, "scenario = {title = '" + "x" * 10**5 + "'}"],
)  # fmt: skip
def test_deep_and_long_files(folder: Path, content: str) -> None:
    assert not hold(folder, content.encode(), "quick")


# Against a running emulator: nothing is ever created for a file that breaks one of Azure's rules


BROKEN: dict[str, dict[tuple[Any, ...], Any]] = {
    "a zone that does not exist": {("machine", 0, "zone"): "9"},
    "a ZRS disk with a zone": {("disk", 0, "sku"): "Premium_ZRS"},
    "a disk in another zone": {("disk", 0, "zone"): "2"},
    "too many sharers": {("disk", 0, "max_shares"): 9},
    "bursting of a shared disk": {("disk", 0, "max_shares"): 2, ("disk", 0, "bursting"): True},
    "a cache on a large disk": {("disk", 0, "size_gib"): 8192, ("disk", 0, "cache"): "ReadOnly"},
    "IOPS of a sized disk": {("disk", 0, "iops"): 9000},
    "an unknown size": {("machine", 0, "size"): "Standard_Z1"},
    "an unknown region": {("scenario", "region"): "middleearth"},
    "a working set larger than its disk": {("disk", 0, "size_gib"): 4, ("preset", "quick", "all_workloads",
                                                                       "working_set_gib"): 8},
    "no replicate": {("design", "replicates"): 0},
    "not a number": {("preset", "quick", "all_workloads", "runtime_s"): math.nan},
    "no arm": {("arm",): []},
}  # fmt: skip


@pytest.fixture(scope="module")
def running() -> Iterator[Any]:
    with tempfile.TemporaryDirectory() as folder, emulated.own_place():
        lifecycle.start("property", time_scale=0.0)
        try:
            yield emulated.Azure(lifecycle.connect("property"), Path(folder) / "azure")
        finally:
            lifecycle.stop("property")


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_rule_creates_nothing(
    running: Any,
    folder: Path,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    raw = tomllib.loads(FILES[-1].read_text())
    for path, value in BROKEN[name].items():
        place = raw
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value
    (folder / "broken.toml").write_text(document(raw))
    words = ["run", str(folder / "broken.toml"), "--emulator", "property", "--name", "broken"]
    monkeypatch.setattr(sys, "argv", ["diskbook", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr()
    assert ended.value.code == 2
    lines = said.err.removeprefix("diskbook: ").splitlines()
    assert lines and all(line.startswith("broken.toml: ") for line in lines), said.err
    assert not (folder / "runs" / "broken").exists()
    with pytest.raises(DiskbookError):
        stages.provision(stages.begin("broken", str(folder / "broken.toml"), "emulator", "quick"))
    assert emulated_operations(running) == []


def emulated_operations(azure: Any) -> list[Any]:
    from azure.core.rest import HttpRequest

    request = HttpRequest("GET", f"{azure.emulator.endpoint}/diskbook/operations")
    rows: list[Any] = azure.clients.resource.send_request(request).json()["value"]
    return rows
