"""Steps of clusters on emulated machines: what each answers, changes, and refuses."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest

from diskbook.clusters.powershell import steps
from diskbook.facts.units import GIB
from diskbook_emulator.cluster_steps import CLOUD_WITNESS
from diskbook_emulator.step_call import Planted
from support.spaces import ACCOUNT, PASSWORD, Spaces, machine, spaces, vm_id

pytestmark = pytest.mark.emulator

SIZE = GIB // 4
VOLUME = steps.striped("dbk", "vol", SIZE, 2, 3)


@pytest.fixture(scope="module")
def three() -> Iterator[Spaces]:
    """Three nodes with a volume, for tests that change nothing."""
    with spaces(disks=2) as made:
        made.clustered()
        made.run("r1-n1", "volume", VOLUME)
        yield made


@pytest.fixture(scope="module")
def two() -> Iterator[Spaces]:
    """Two nodes that nothing was done to; tests build on one another's clean slate."""
    with spaces(nodes=2, disks=2) as made:
        yield made


def empty(made: Spaces) -> None:
    """Take volumes, pools and clusters away."""
    known = made.backend._book.spaces
    for record in known.there:
        made.backend._host.end(record)
    for kept in (known.clusters, known.pools, known.volumes):
        kept.clear()
    made.backend.show([vm_id(name) for name in made.nodes])


@pytest.fixture
def clean(two: Spaces) -> Spaces:
    """Two prepared nodes without cluster, pool and volume."""
    empty(two)
    known = two.backend._book.spaces
    known.nodes.clear()
    for name in two.nodes:
        two.call(name, "prepare", two.prepare())
        known.nodes[vm_id(name)].restarted()
    return two


WITNESS = {"witness_account": "w", "witness_key": "key-of-w"}


def pool(made: Spaces) -> None:
    made.run("r1-n1", "cluster", made.cluster(**WITNESS))
    made.run("r1-n1", "enable", made.enable())


# ---- prepare and task -----------------------------------------------------------------------------------


def test_a_node_is_prepared_once_and_wants_one_restart(two: Spaces) -> None:
    two.backend._book.spaces.nodes.clear()
    first = two.call("r1-n1", "prepare", two.prepare())
    assert first["ok"] and first["changed"][0] == "features" and "HwTimeout" in first["changed"]
    assert first["state"]["restart_due"] and "emulated" in first["state"]["caption"]
    again = two.call("r1-n1", "prepare", two.prepare())
    assert again["changed"] == [] and again["state"]["restart_due"]  # until it has restarted
    two.backend.stop_vm(vm_id("r1-n1"))
    two.backend.start_vm(machine("r1-n1"))
    last = two.call("r1-n1", "prepare", two.prepare())["state"]
    assert (last["restart_due"], last["dns_suffix"]) == (False, "dbk.internal")


def test_a_server_of_2022_makes_no_workgroup_cluster_of_machines(two: Spaces) -> None:
    record = two.backend._book.vms[vm_id("r1-n2")]
    record.spec = machine("r1-n2", image="2022-datacenter-azure-edition")
    answer = two.call("r1-n2", "prepare", two.prepare())
    record.spec = machine("r1-n2")
    assert "need Windows Server 2025 (build 26100), and this is 20348" in answer["error"]["message"]


@pytest.mark.parametrize("step", ["validate", "cluster", "enable", "volume", "place"])
def test_a_session_by_key_reaches_no_other_node(clean: Spaces, step: str) -> None:
    nodes = {"account": ACCOUNT, "password": PASSWORD, "nodes": clean.nodes}
    requests: dict[str, steps.Request] = {
        "validate": steps.Validate.model_validate(nodes),
        "cluster": clean.cluster(**WITNESS),
        "enable": clean.enable(),
        "volume": steps.striped("dbk", "vol", SIZE, 2, 2),
        "place": steps.Place(volume="vol", node="r1-n1"),
    }
    answer = clean.call("r1-n1", step, requests[step])
    assert not answer["ok"] and answer["error"]["message"].startswith("Access is denied.")


def test_a_task_takes_the_account_and_the_script_and_hides_the_password(clean: Spaces) -> None:
    inner = clean.cluster(**WITNESS)
    wrong = clean.call("r1-n1", "task", steps.as_task("cluster", inner, ACCOUNT, "other"))
    assert wrong["error"]["message"] == "The user name or password is incorrect."
    right = steps.as_task("cluster", inner, ACCOUNT, PASSWORD)
    absent = clean.call("r1-n1", "task", right, inner="missing")["state"]
    assert "does not exist" in absent["output"] and absent["result"] != 0
    clean.backend._book.spaces.nodes[vm_id("r1-n2")].password = "another"
    refused = clean.call("r1-n1", "task", right)
    assert "administrative privileges on the server 'r1-n2'" in refused["state"]["output"]
    assert PASSWORD not in json.dumps([wrong, absent, refused]) and refused["state"]["result"] == 1


def test_the_secret_of_a_machine_and_a_request_that_is_none(two: Spaces) -> None:
    with pytest.raises(PermissionError, match="not the secret"):
        two.backend.step(vm_id("r1-n1"), "guessed", "counters", {}, "", Planted())
    answer = two.call("r1-n1", "place", {"volume": "v", "owner": "x"})
    assert answer["error"]["message"] == "the request of step place cannot be read: node"


# ---- cluster, pool, volume ------------------------------------------------------------------------------


def test_validation_says_that_it_is_emulated(three: Spaces) -> None:
    asked = steps.Validate(account=ACCOUNT, password=PASSWORD, nodes=three.nodes)
    state = three.run("r1-n1", "validate", asked)
    assert "emulated" in base64.b64decode(state["files"][0]["content"]).decode()


def test_what_is_there_is_left_as_it_is(three: Spaces) -> None:
    for step, request in (("cluster", three.cluster()), ("enable", three.enable()), ("volume", VOLUME)):
        assert three.changed("r1-n1", step, request) == []


def test_a_volume_tells_its_parts_and_where_it_is(three: Spaces) -> None:
    state = three.run("r1-n1", "volume", VOLUME)
    (part,) = state["parts"]
    shape = {name: part[name] for name in ("resiliency", "copies", "columns", "redundancy")}
    assert shape == {"resiliency": "Mirror", "copies": 3, "columns": 2, "redundancy": 2}
    assert (state["owner"], state["path"]) == ("r1-n1", r"C:\ClusterStorage\vol")
    assert state["size_bytes"] >= SIZE and state["footprint_bytes"] == 3 * state["size_bytes"]


def test_disks_of_a_pool_are_no_disks_of_their_machines_any_more(three: Spaces) -> None:
    for folder in (three.folder / "vms").iterdir():
        assert json.loads((folder / "disks.json").read_text()) == {}
        paths = [row["path"] for row in json.loads((folder / "volumes.json").read_text())]
        assert paths == [r"C:\ClusterStorage\vol", r"C:\DiskbookFill\vol"]


def test_a_witness_whose_key_is_refused_is_none(clean: Spaces, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clean.backend, "opens_account", lambda account, key: (account, key) == ("w", "other"))
    with pytest.raises(steps.StepFailed, match="error occurred while validating access to Azure"):
        clean.run("r1-n1", "cluster", clean.cluster(**WITNESS))
    monkeypatch.undo()
    assert clean.changed("r1-n1", "cluster", clean.cluster(**WITNESS)) == ["witness"]


def test_two_nodes_get_a_witness_or_nothing(clean: Spaces) -> None:
    with pytest.raises(steps.StepFailed, match="two nodes needs a witness"):
        clean.run("r1-n1", "cluster", clean.cluster())
    assert clean.run("r1-n1", "cluster", clean.cluster(**WITNESS))["witness"] == CLOUD_WITNESS
    with pytest.raises(steps.StepFailed, match="the name of the cluster is 'dbk', but 'other' was asked for"):
        clean.run("r1-n1", "cluster", clean.cluster(**WITNESS).model_copy(update={"name": "other"}))


def test_nested_volumes_have_their_tiers(clean: Spaces) -> None:
    pool(clean)
    state = clean.run("r1-n1", "volume", steps.nested("dbk", "nested", SIZE))
    assert [(part["name"], part["copies"]) for part in state["parts"]] == [("nested-NestedMirror", 4)]
    with pytest.raises(steps.StepFailed, match="sufficient eligible resources"):  # parity needs three disks
        clean.run("r1-n1", "volume", steps.nested("dbk", "parity", SIZE, SIZE))


def test_two_volumes_of_a_pool_share_no_slab(clean: Spaces) -> None:
    pool(clean)
    for name in ("a", "b"):
        clean.run("r1-n1", "volume", steps.striped("dbk", name, SIZE, 2, 2))
    first, second = clean.backend._book.spaces.there
    places = [
        {*zip(tier.members.flat, tier.slabs.flat, strict=True)}
        for tier in (first.layout.tiers[0], second.layout.tiers[0])
    ]
    assert not places[0] & places[1]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"unique_id": "uid-strange"}, "is seen 0 times by the storage subsystem, not once"),
        ({"size_bytes": 7}, "the size of the disk of r1-n1 at LUN 0 .* but '7' was asked for"),
        ({"node": "r1-n2"}, "the node of the disk of r1-n2 at LUN 0 .* is 'r1-n1', but 'r1-n2' was"),
    ],
)
def test_a_pool_takes_no_other_disks(clean: Spaces, change: dict[str, Any], why: str) -> None:
    clean.run("r1-n1", "cluster", clean.cluster(**WITNESS))
    clean.backend._book.spaces.clusters[0].direct = True  # else it waits for the strange one
    first, *others = clean.enable().disks
    asked = clean.enable().model_copy(update={"disks": (first.model_copy(update=change), *others)})
    with pytest.raises(steps.StepFailed, match=why):
        clean.run("r1-n1", "enable", asked)
    assert not clean.backend._book.spaces.pools


def test_what_the_pool_cannot_hold_is_refused(three: Spaces) -> None:
    with pytest.raises(steps.StepFailed, match="Not enough available capacity"):
        three.run("r1-n1", "volume", steps.striped("dbk", "large", 4096 * GIB, 2, 3))
    with pytest.raises(steps.StepFailed, match="sufficient eligible resources"):
        three.run("r1-n1", "volume", steps.striped("dbk", "wide", SIZE, 3, 3))
    with pytest.raises(steps.StepFailed, match="FriendlyName' equal to 'none'"):
        three.run("r1-n1", "volume", steps.striped("none", "vol2", SIZE, 2, 3))
    with pytest.raises(steps.StepFailed, match="copies of vol is '3', but '2' was asked for"):
        three.run("r1-n1", "volume", steps.striped("dbk", "vol", SIZE, 2, 2))


# ---- what a test plants ---------------------------------------------------------------------------------

MISTAKES = [
    ("enable", {"disk": "uid-strange"}, "the disks of pool dbk is '.*uid-strange', but"),
    ("enable", {"node": "r1-n3"}, "the node of the disk of r1-n1 at LUN 0 .* is 'r1-n3', but 'r1-n1'"),
    ("enable", {"block_cache_mb": 1024}, "BlockCacheSize is '1024', but '0' was asked for"),
    ("volume", {"columns": 1}, "columns of vol is '1', but '2' was asked for"),
    ("volume", {"footprint_bytes": 5}, "vol takes 5 bytes of the pool; its copies need"),
    ("volume", {"health": "Warning"}, "the health of vol is 'Warning', but 'Healthy' was asked for"),
    ("place", {"owner": "r1-n2"}, "the owner of vol is 'r1-n2', but 'r1-n1' was asked for"),
    ("cluster", {"nodes": ["r1-n1", "r1-n9"]}, "the nodes of the cluster is 'r1-n1, r1-n9', but"),
]


@pytest.mark.parametrize(("step", "reads", "why"), MISTAKES)
def test_a_planted_mistake_stops_the_step_that_reads_it(
    three: Spaces, step: str, reads: dict[str, Any], why: str
) -> None:
    requests = {
        "cluster": three.cluster(),
        "enable": three.enable(),
        "volume": VOLUME,
        "place": steps.Place(volume="vol", node="r1-n1"),
    }
    with pytest.raises(steps.StepFailed, match=why):
        three.run("r1-n1", step, requests[step], Planted(reads))
    three.run("r1-n1", step, requests[step])


def state_of(made: Spaces) -> tuple[Any, ...]:
    known = made.backend._book.spaces
    volumes = [(record.name, record.layout.size_bytes, record.formatted) for record in known.there]
    return known.clusters, known.pools, volumes, known.nodes


def repeated(
    made: Spaces, step: str, request: steps.Request, planted: Planted, *, alone: bool = False
) -> int:
    """Repeat a step until nobody kills it; returns how often it was begun."""
    wrapped = request if alone else steps.as_task(step, request, ACCOUNT, PASSWORD)
    for count in range(1, 20):
        answer = made.call("r1-n1", step if alone else "task", wrapped, planted)
        if answer is not None:
            assert answer["ok"], answer
            return count
    raise AssertionError(f"{step} does not come to an end")


def last_step(made: Spaces, step: str, planted: Planted) -> int:
    """Do what comes before a step, and the step itself; returns how often it was begun."""
    if step == "prepare":
        made.backend._book.spaces.nodes.clear()
        return repeated(made, "prepare", made.prepare(), planted, alone=True)
    if step == "cluster":
        return repeated(made, "cluster", made.cluster(**WITNESS), planted)
    if step == "simple":
        disks = made.enable().disks[:2]
        made.call("r1-n1", "enable", made.enable(clustered=False).model_copy(update={"disks": disks}))
        return repeated(made, "volume", steps.striped("dbk", "one", SIZE, 2, 1), planted, alone=True)
    made.run("r1-n1", "cluster", made.cluster(**WITNESS))
    if step == "enable":
        return repeated(made, "enable", made.enable(), planted)
    made.run("r1-n1", "enable", made.enable())
    return repeated(made, "volume", steps.nested("dbk", "nested", SIZE), planted)


@pytest.mark.parametrize("step", ["prepare", "cluster", "enable", "volume", "simple"])
def test_a_step_that_was_killed_anywhere_comes_to_the_same_end(clean: Spaces, step: str) -> None:
    """From the beginning to the end in one go, and killed after every change that there is."""
    assert last_step(clean, step, Planted()) == 1
    expected = json.dumps(state_of(clean), default=vars)
    empty(clean)
    assert last_step(clean, step, Planted(killed_after=1)) > 1
    assert json.dumps(state_of(clean), default=vars) == expected
