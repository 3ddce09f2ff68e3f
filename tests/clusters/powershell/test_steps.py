"""Steps of a cluster: scripts against the documentation, requests and answers. No step is run."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from diskbook.clusters.powershell import scripts, steps
from diskbook.clusters.powershell.steps import STEPS, StepFailed
from diskbook.facts.units import GIB
from support import powershell

SECRET = "a-random-Passw0rd-of-a-run"
NODES = ("node-1", "node-2", "node-3")
PREPARE = steps.Prepare(
    account="dbkcluster", password=SECRET, nodes=NODES, dns_suffix="dbk.local", subnet="10.0.0.0/24"
)
# Pages of Microsoft's documentation; VMFleet's commands have none, and are as its own source declares them.
SOURCE = re.compile(r",(\S+-docs/\S+\.md|diskspd/Frameworks/VMFleet/VMFleet\.psm1)$", re.IGNORECASE)
# Words of a script, what stands there instead, and what is said of it.
PLANTED = {
    "a cmdlet misspelt": ("validate", "Test-WorkgroupCluster", "Test-WorkgroupClusters", "is in no row"),
    "a parameter misspelt": (
        "enable",
        "-CacheState Disabled",
        "-CacheStatus Disabled",
        "Enable-ClusterStorageSpacesDirect has no parameter -CacheStatus",
    ),
    "a parameter shortened": ("place", "-Node $p.node -Wait", "-No $p.node -Wait", "no parameter -No"),
    "a parameter of another cmdlet": (
        "volume",
        "-NumberOfColumns $p.columns `",
        "-NumberOfColumns $p.columns -Interleave 262144 `",
        "New-Volume has no parameter -Interleave",
    ),
    "a mandatory parameter left out": (
        "validate",
        " -AuthenticationMethod NoCertificates",
        "",
        "Test-WorkgroupCluster lacks -AuthenticationMethod",
    ),
    "two mandatory parameters left out": (
        "cluster",
        "-Name $node `\n            -Credential (New-NodeCredential -Node $node) ",
        "",
        "Add-WorkgroupClusterNode lacks -Name, -Credential",
    ),
    "the name of a new tier left out": (
        "volume",
        "-FriendlyName 'NestedParity' `",
        "`",
        "New-StorageTier lacks -FriendlyName",
    ),
    "a parameter of another set": (
        "volume",
        "-DiskUniqueId $drive.UniqueId -FriendlyName $p.name -FileSystem ReFS",
        "-DiskUniqueId $drive.UniqueId -FriendlyName $p.name -Size 1GB -FileSystem ReFS",
        "New-Volume: no parameter set takes -DiskUniqueId, -FriendlyName, -Size, -FileSystem",
    ),
    "two sets mixed": (
        "enable",
        "-StoragePool $pool | Sort-Object",
        "-StoragePool $pool -UniqueId 'x' | Sort-Object",
        "Get-PhysicalDisk: no parameter set takes -StoragePool, -UniqueId together",
    ),
    "the password of another set": (
        "prepare",
        "-Name $p.account -Password $secure -PasswordNeverExpires -Account",
        "-Name $p.account -NoPassword -PasswordNeverExpires -Account",
        "New-LocalUser: no parameter set takes",
    ),
    "a value without a name too many": (
        "idle",
        "Get-Counter -Counter '",
        "Get-Counter 'node-1' -Counter '",
        "Get-Counter takes no 1 values without names",
    ),
    "a word misspelt": (
        "enable",
        "-CacheState Disabled",
        "-CacheState Disable",
        "Enable-ClusterStorageSpacesDirect -CacheState takes no Disable",
    ),
    "a word of another parameter": (
        "volume",
        "-FileSystem CSVFS_ReFS",
        "-FileSystem Mirror",
        "New-Volume -FileSystem takes no Mirror",
    ),
    "a function of our own": (
        "place",
        "-Expected $p.node",
        "-Wanted $p.node",
        "Assert-Same has no parameter",
    ),
    "a row of arguments not to be seen": (
        "restore",
        "Repair-VirtualDisk",
        "Repair-VirtualDisk @all",
        "is splatted",
    ),
    "a bracket left open": ("counters", "CounterSamples\n", "CounterSamples (\n", "does not parse"),
}


@pytest.mark.parametrize("step", STEPS)
def test_a_script_parses_and_calls_only_what_the_documentation_has(step: str) -> None:
    assert powershell.mistakes(steps.script(step)) == []


def test_every_step_has_its_script_and_every_script_its_step() -> None:
    assert set(scripts.NAMES) == set(STEPS)
    files = {path.stem for path in Path(scripts.__file__).parent.glob("*.ps1")}
    assert files == {*scripts.NAMES, "common"}


@pytest.mark.parametrize("planted", PLANTED.values(), ids=PLANTED.keys())
def test_a_planted_mistake_is_noticed(planted: tuple[str, str, str, str]) -> None:
    step, right, wrong, sentence = planted
    text = steps.script(step)
    assert text.count(right) >= 1
    assert any(sentence in mistake for mistake in powershell.mistakes(text.replace(right, wrong, 1)))


def test_every_row_of_the_table_is_called_and_has_a_source() -> None:
    called = {call.name.lower() for step in STEPS for call in powershell.calls(steps.script(step))}
    assert set(powershell.table()) <= called
    for file in (powershell.TABLE, powershell.VALUES):
        rows = file.read_text("utf-8").splitlines()[1:]
        assert [row for row in rows if not SOURCE.search(row)] == []


@pytest.mark.parametrize("step", STEPS)
def test_a_script_reads_each_value_of_its_request_and_no_other(step: str) -> None:
    own = (steps.script(step)).removeprefix(steps.script("idle").partition("# Before each block")[0])
    assert set(re.findall(r"\$p\.(\w+)", own)) == set(STEPS[step].model_fields)


@pytest.mark.parametrize(
    ("step", "change", "facts"),
    [
        ("prepare", "'features'", ["-not $_.Installed"]),
        ("prepare", "'trusted hosts'", ["getactivescheme", "'HwTimeout').HwTimeout", "-What 'TrustedHosts'"]),
        (
            "cluster",
            "'cluster'",
            ["(Get-Cluster).Name", "-What 'the nodes of the cluster'", "-Expected 'Up'"],
        ),
        ("cluster", "'witness'", ["$quorum = Get-ClusterQuorum", "-notmatch 'Cloud Witness'"]),
        ("enable", "'Storage Spaces Direct'", ["(Get-Cluster).S2DEnabled", "$direct.CacheState"]),
        ("enable", "'BlockCacheSize'", ["-Expected 0 -Actual (Get-Cluster).BlockCacheSize"]),
        ("enable", "$rule", ["-What $setting -Expected 'False'"]),
        ("enable", "'pool'", ["-Actual (@($pooled.UniqueId"]),
        ("volume", "'volume'", ["NumberOfDataCopies", "NumberOfColumns", "Interleave", "FootprintOnPool"]),
        (
            "volume",
            "'volume'",
            ["'resiliency', 'copies', 'columns', 'redundancy', 'interleave_bytes'", "OwnerNode"],
        ),
        ("place", "'owner'", ["OwnerNode", "-Expected $p.node", "StateInfo"]),
    ],
)
def test_a_step_reads_back_what_it_changed(step: str, change: str, facts: list[str]) -> None:
    rest = steps.script(step).partition(f"$changed.Add({change})")[2]
    assert [fact for fact in facts if fact not in rest] == []


@pytest.mark.parametrize("step", STEPS)
def test_a_change_is_made_only_where_it_is_lacking(step: str) -> None:
    """Each change is counted, and stands within a condition or a loop: deeper than the step itself."""
    lines = [line for line in steps.script(step).splitlines() if "$changed.Add(" in line]
    assert all(line.startswith(" " * 8) for line in lines)


def test_a_request_with_an_unknown_name_is_refused() -> None:
    with pytest.raises(ValidationError, match="columnz"):
        steps.Volume.model_validate(
            {"pool": "p", "name": "v", "kind": "simple", "parts": [], "columnz": 4},
        )


def test_a_password_travels_by_standard_input_only() -> None:
    assert SECRET.encode() in steps.standard_input(PREPARE)
    task = steps.as_task("cluster", PREPARE, "dbkcluster", SECRET)
    seen = [repr(PREPARE), repr(task), *(steps.command(step) + steps.script(step) for step in STEPS)]
    assert not any(SECRET in text for text in seen)


def test_a_request_is_plain_ascii() -> None:
    request = PREPARE.model_copy(update={"dns_suffix": "größe.local"})
    assert json.loads(steps.standard_input(request).decode("ascii"))["dns_suffix"] == "größe.local"


def test_volumes_say_what_they_must_turn_out_to_be() -> None:
    three = steps.striped("dbk", "v1", 100 * GIB, columns=4, copies=3)
    assert (three.kind, three.parts[0].copies, three.parts[0].redundancy) == ("three-way", 3, 2)
    assert three.parts[0].footprint_at_least_bytes == 300 * GIB
    alone = steps.striped("dbk", "v1", 100 * GIB, 8, 1)
    assert (alone.parts[0].columns, alone.parts[0].interleave_bytes) == (8, 262_144)
    parity = steps.nested("dbk", "v1", 100 * GIB, 500 * GIB)
    assert [(part.resiliency, part.copies) for part in parity.parts] == [("Mirror", 4), ("Parity", 2)]
    assert steps.nested("dbk", "v1", 100 * GIB).kind == "nested-mirror"


def test_an_answer_is_read_past_what_stands_around_it() -> None:
    output = '#< CLIXML\n{"step":"place","ok":true,"changed":[],"state":{"owner":"node-2"}}\n<Objs/>\n'
    assert steps.outcome("place", output, "node-1").state == {"owner": "node-2"}


def test_the_error_of_a_step_is_told_in_its_own_words() -> None:
    error = {"message": "columns of v1 is '2', but '4' was asked for", "id": "x", "where": "line 70"}
    output = json.dumps({"step": "volume", "ok": False, "changed": ["volume"], "error": error})
    with pytest.raises(StepFailed, match=r"^columns of v1 is '2', but '4' was .*\(step volume on node-1\)$"):
        steps.outcome("volume", output, "node-1")


def test_a_task_answers_for_the_step_within() -> None:
    within = {"step": "place", "ok": False, "changed": [], "error": {"message": "Access is denied"}}
    state = {"step": "place", "result": 1, "output": json.dumps(within)}
    output = json.dumps({"step": "task", "ok": True, "changed": ["task"], "state": state})
    with pytest.raises(StepFailed, match=r"^Access is denied \(step place on node-1\)$"):
        steps.outcome("task", output, "node-1")


@pytest.mark.parametrize("output", ["", "powershell is not recognized", '{"step":"idle"', '{"step":"fail"}'])
def test_no_answer_is_told_with_what_came_instead(output: str) -> None:
    with pytest.raises(StepFailed, match=r"^node-1: step idle gave no answer that can be read, but: "):
        steps.outcome("idle", output, "node-1")
