"""`[network]` of a scenario: what it may say, and the sentence on what it may not."""

from __future__ import annotations

from typing import Any

import pytest

from diskbook.cloud import connect
from diskbook.cloud.azure import preflight
from diskbook.cloud.azure.offers import Region
from diskbook.cost import estimate, plan_sections
from diskbook.design import company_rules, scenario_file, scenario_tables
from diskbook.design.company_rules import JumpPlace, Subnet
from diskbook.design.model import Network
from diskbook.facts import prices
from diskbook.facts.errors import UsageError
from support import SCENARIOS

SUBSCRIPTION = "00000000-0000-0000-0000-00000000000a"
GROUP = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/rg-net"
ID = f"{GROUP}/providers/Microsoft.Network/virtualNetworks/hub/subnets/vms"
NAMED = {"kind": "private", "subnet": "hub/vms", "resource_group": "rg-net", "jump_host": "me@jump"}


def test_a_subnet_is_named_by_its_id_or_by_its_names() -> None:
    by_id = company_rules.subnet(Network(kind="private", subnet=ID, jump_host="jump"))
    by_name = company_rules.subnet(Network(**NAMED))
    assert by_id == Subnet(SUBSCRIPTION, "rg-net", "hub", "vms")
    assert by_name == Subnet(None, "rg-net", "hub", "vms")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("jump", JumpPlace("jump", None, None)),
        ("me@jump.corp.example:2222", JumpPlace("jump.corp.example", "me", 2222)),
        ("me@10.1.2.3", JumpPlace("10.1.2.3", "me", None)),
        ("-oProxyCommand=x", None),
        ("me@-x", None),
        ("jump:0", None),
        ("jump:65536", None),
        ("a b", None),
        ("jump\n", None),
    ],
)
def test_a_jump_host_is_written_as_for_ssh(text: str, place: JumpPlace | None) -> None:
    assert company_rules.jump_place(text) == place


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"subnet": ""}, "needs an existing subnet"),
        ({"subnet": "vms"}, "names no subnet"),
        ({"resource_group": ""}, "names no subnet"),
        ({"subnet": f"{ID}/more"}, "names no subnet"),
        ({"subnet": "hub/GatewaySubnet"}, "Azure's own"),
        ({"jump_host": ""}, "none is named"),
        ({"bastion": "b"}, "both are named"),
        ({"jump_host": "me@"}, "is none; write user@host"),
        ({"jump_host": "", "bastion": "--debug"}, "is not a name of Azure's"),
        ({"kind": "public"}, 'goes with kind = "private"'),
        ({"kind": "secret"}, "should be 'public' or 'private'"),
    ],
)
def test_what_does_not_fit_is_one_sentence(changes: dict[str, Any], words: str) -> None:
    overrides = {f"network.{key}": value for key, value in {**NAMED, **changes}.items()}
    with pytest.raises(UsageError, match=words) as caught:
        scenario_file.load(str(SCENARIOS / "tiny.toml"), "quick", overrides)
    assert "\n" not in str(caught.value)


def test_the_table_is_read_from_a_scenario_and_from_a_manifest() -> None:
    overrides = {f"network.{key}": value for key, value in NAMED.items()}
    scenario = scenario_file.load(str(SCENARIOS / "tiny.toml"), "quick", overrides)
    assert scenario.network == Network(**NAMED)
    raw = scenario.model_dump(mode="json")
    assert scenario_tables.from_dict(raw, "the manifest") == scenario
    del raw["network"]  # of a run before there was one
    assert not scenario_tables.from_dict(raw, "the manifest").network.is_private


def test_a_private_network_is_planned_and_priced_without_public_addresses() -> None:
    overrides = {f"network.{key}": value for key, value in NAMED.items()}
    public, private = (
        scenario_file.load(str(SCENARIOS / "tiny.toml"), "quick", row) for row in ({}, overrides)
    )
    paid = {item.what for item in estimate.items(public)} - {item.what for item in estimate.items(private)}
    assert paid == {"public address"}
    here = Region(private.region)
    asked = preflight.needed(public, here).keys() - preflight.needed(private, here).keys()
    assert asked == set(preflight.ADDRESSES)
    known = prices.from_table(private.region, estimate.meters(private), prices.table())
    text = plan_sections.created(private, estimate.estimate(private, known, 12.0))
    assert "no public address" in text and "and public address" not in text
    assert "subnet vms of hub in rg-net, which is not changed and stays" in text
    bastion = private.network.model_copy(update={"jump_host": "", "bastion": "b"})
    tunnelled = private.model_copy(update={"network": bastion})
    text = plan_sections.created(tunnelled, estimate.estimate(tunnelled, known, 12.0))
    assert "Bastion b in rg-net, which stands already: its price is not the run's" in text


def test_no_ssh_source_is_needed_nor_taken() -> None:
    network = Network(**NAMED)
    assert connect._ssh_source(None, network) == "VirtualNetwork"
    with pytest.raises(UsageError, match="leave --ssh-source out"):
        connect._ssh_source("203.0.113.7", network)
