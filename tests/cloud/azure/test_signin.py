"""Signing in by the real azure-identity, on loopback: what works, and one line for all that does not."""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from diskbook.cli import main
from diskbook.cloud import connect
from diskbook.cloud.azure import refusals, signin
from diskbook.cloud.azure.clients import Clients, Cloud
from diskbook.facts.errors import DiskbookError, UsageError
from diskbook.measure.runs import stages
from diskbook.report.show import run as show_run
from support import SCENARIOS, identity_endpoint
from support.arm_plane import LOCATION, SUBSCRIPTION, TOKEN, World

TINY = str(SCENARIOS / "tiny.toml")
OTHER = "99999999-8888-7777-6666-555555555555"


@pytest.fixture
def signed_in(plane: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[identity_endpoint.Endpoint]:
    """A managed identity whose token the plane accepts, and the plane as Azure Resource Manager."""
    plane.faults()
    with identity_endpoint.serve(TOKEN) as endpoint:
        identity_endpoint.use(monkeypatch, endpoint)
        monkeypatch.setenv("DISKBOOK_ARM_ENDPOINT", plane.url)
        monkeypatch.setenv("DISKBOOK_ARM_CA", str(plane.ca))
        yield endpoint
    signin.credential.cache_clear()


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine without any sign-in: no variables, no tools, no metadata service."""
    identity_endpoint.forget(monkeypatch)
    monkeypatch.setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", "http://127.0.0.1:9")
    monkeypatch.setenv("AZURE_CONFIG_DIR", str(tmp_path / "azure"))
    monkeypatch.setenv("PATH", str(tmp_path))


def _clients(plane: World, told: list[str] | None = None, of: str = SUBSCRIPTION) -> Clients:
    cloud = Cloud("azure", of, signin.credential(), plane.url, plane.ca, time_scale=0.0)
    return Clients(cloud, tell=(told if told is not None else []).append)


def test_the_real_credential_signs_in(plane: World, signed_in: identity_endpoint.Endpoint) -> None:
    clients = _clients(plane)
    found = signin.identity(clients, LOCATION)
    assert (found.subscription, found.tenant, found.region) == (SUBSCRIPTION, "a-tenant", LOCATION)
    assert found.provenance == "emulated"  # the endpoint's own word wins over the kind that was asked for
    assert str(found).endswith("region westeurope, emulated")
    assert clients.compute.disks.list() is not None
    list(clients.compute.disks.list())
    assert signed_in.asked == ["https://management.azure.com"]  # one token for all clients
    assert signin.credential() is signin.credential()


def test_a_token_about_to_expire_is_renewed(plane: World, signed_in: identity_endpoint.Endpoint) -> None:
    signed_in.lasts_s = 30
    clients = _clients(plane)
    signin.identity(clients, LOCATION)
    signed_in.lasts_s = 3600
    signin.identity(clients, LOCATION)
    assert len(signed_in.asked) >= 2


@pytest.mark.emulator
def test_nobody_signed_in_is_one_line(
    nobody: None, plane: World, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UsageError) as caught, caplog.at_level(logging.WARNING):
        signin.identity(_clients(plane), LOCATION)
    said = str(caught.value)
    assert "\n" not in said and len(said) < 800 and "http" not in said
    assert said.startswith("nobody is signed in to Azure; tried EnvironmentCredential (not configured), ")
    assert "ManagedIdentityCredential (not on an Azure machine)" in said
    assert "AzureCliCredential (not installed)" in said
    assert said.endswith(
        ": install the Azure CLI and run 'az login', or set AZURE_TENANT_ID, AZURE_CLIENT_ID and "
        "AZURE_CLIENT_SECRET"
    )
    assert caplog.records == [] and capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("attempt", "reason"),
    [
        ("AzureCliCredential: Please run 'az login' to set up an account", "not signed in"),
        ("AzureCliCredential: ERROR: AADSTS70043: The refresh token has expired or is invalid due to sign-in "
         "frequency checks by conditional access.\nTrace ID: 1\nRun: az login --tenant x",
         "the sign-in has expired"),
        ("AzureCliCredential: ERROR: AADSTS50076: you must use multi-factor. Run 'az login'",
         "asks for a second factor"),
        ("EnvironmentCredential: Authentication failed: AADSTS7000215: Invalid client secret provided.",
         "the client secret is wrong"),
        ("EnvironmentCredential: Authentication failed: AADSTS90002: Tenant 'x' not found.",
         "there is no such tenant"),
        ("AzurePowerShellCredential: Please run \"Connect-AzAccount\" to set up account", "not signed in"),
        ("AzureCliCredential: Timed out waiting for Azure CLI", "did not answer in time"),
        ("NewCredential: Something quite new happened. And more", "Something quite new happened"),
    ],
)  # fmt: skip
def test_the_reason_of_an_attempt_is_a_few_words(attempt: str, reason: str) -> None:
    page = (
        "DefaultAzureCredential failed to retrieve a token from the included credentials.\n"
        f"Attempted credentials:\n\t{attempt}\nTo mitigate this issue, please refer to https://aka.ms/x"
    )
    assert refusals.is_signin_page(page)
    assert refusals.signin_attempts(page) == [(attempt.partition(":")[0], reason)]
    assert "\n" not in refusals.signin_line(page) and "AADSTS" not in refusals.signin_line(page)


def test_a_credential_that_does_not_exist(nobody: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "nonsense")
    with pytest.raises(UsageError, match="azure-identity cannot be set up"):
        signin.credential()


@pytest.mark.parametrize(
    ("status", "code", "hint"),
    [
        (401, "ExpiredAuthenticationToken", "Sign in again with 'az login'"),
        (401, "InvalidAuthenticationTokenTenant", "az login --tenant TENANT"),
        (403, "AuthorizationFailed", "The account needs the role Contributor on this subscription"),
        (404, "SubscriptionNotFound", "name another subscription with --subscription"),
        (409, "ReadOnlyDisabledSubscription", "This subscription is disabled"),
    ],
)
def test_what_azure_does_not_let_us_use(
    plane: World, signed_in: identity_endpoint.Endpoint, status: int, code: str, hint: str
) -> None:
    action = {"status": status, "code": code, "message": "The client 'x' may not."}
    plane.faults({"match": {"path_regex": f"/{SUBSCRIPTION}$"}, "action": action})
    with pytest.raises(UsageError) as caught:
        signin.identity(_clients(plane), LOCATION)
    said = str(caught.value)
    assert said.startswith(
        f"Azure does not let us use subscription {SUBSCRIPTION}: {code}: The client 'x' may"
    )
    assert hint in said and "\n" not in said


def test_a_token_that_arm_does_not_accept(plane: World, signed_in: identity_endpoint.Endpoint) -> None:
    signed_in.token = "of-somebody-else"
    with pytest.raises(UsageError, match="Sign in again with 'az login'") as error:
        signin.identity(_clients(plane), LOCATION)
    assert "of-somebody-else" not in str(error.value) + repr(error.value)


def test_a_subscription_that_is_not_there(plane: World, signed_in: identity_endpoint.Endpoint) -> None:
    with pytest.raises(UsageError, match=r"SubscriptionNotFound: .* Sign in to its tenant"):
        signin.identity(_clients(plane, of=OTHER), LOCATION)


@pytest.mark.parametrize("state", ["Disabled", "Deleted"])
def test_a_subscription_that_cannot_be_used(state: str) -> None:
    body = {"displayName": "Mine", "tenantId": "t", "state": state}
    with pytest.raises(UsageError, match=f"subscription Mine .* is {state.lower()}: have it enabled again"):
        signin.described(SUBSCRIPTION, body, LOCATION, "azure")
    body["state"] = "PastDue"
    found = signin.described(SUBSCRIPTION, body, LOCATION, "azure")
    assert str(found) == f"subscription Mine ({SUBSCRIPTION}), tenant t, region westeurope"


def test_azure_out_of_reach(plane: World, signed_in: identity_endpoint.Endpoint) -> None:
    told: list[str] = []
    cloud = Cloud(
        "azure", SUBSCRIPTION, signin.credential(), "https://127.83.0.9:9", plane.ca, time_scale=0.0
    )
    with pytest.raises(DiskbookError, match="Azure cannot be reached: "):
        signin.identity(Clients(cloud, tell=told.append), LOCATION)
    assert told[0] == "Azure cannot be reached; trying again in 6 s"


# Which subscription


def _profile(folder: Path, content: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("AZURE_SUBSCRIPTION_ID", raising=False)
    monkeypatch.setenv("AZURE_CONFIG_DIR", str(folder))
    path = folder / "azureProfile.json"
    text = content if isinstance(content, str) else json.dumps(content)
    path.write_text(text, "utf-8-sig")
    return path


def _row(number: int, default: bool) -> dict[str, Any]:
    return {"id": str(uuid.UUID(int=number)), "name": f"S{number}", "isDefault": default, "tenantId": "t"}


def test_the_order_in_which_a_subscription_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _profile(tmp_path, {"subscriptions": [_row(1, False), _row(2, True)]}, monkeypatch)
    found = signin.find_subscription()
    assert found == signin.Subscription(str(uuid.UUID(int=2)), "the Azure CLI's default subscription")
    monkeypatch.setenv("AZURE_SUBSCRIPTION_ID", SUBSCRIPTION.upper())
    assert signin.find_subscription() == signin.Subscription(SUBSCRIPTION, "AZURE_SUBSCRIPTION_ID")
    assert signin.find_subscription(OTHER) == signin.Subscription(OTHER, "--subscription")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "is damaged; run 'az login' again"),
        ("[]", "is damaged"),
        ('{"subscriptions": [{"name": "x"}]}', "is damaged"),
        ('{"subscriptions": 3}', "is damaged"),
        ({"subscriptions": []}, "lists no subscription: run 'az login'"),
        ({"subscriptions": [_row(1, False), _row(2, False)]}, "lists 2 subscriptions with no default"),
        ({"subscriptions": [_row(n, False) for n in range(9)]}, "(S4) and 4 more"),
        ({"subscriptions": [{**_row(1, True), "id": "not-an-id"}]}, "is not a subscription id"),
    ],
)
def test_a_profile_that_does_not_help(
    content: Any, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _profile(tmp_path, content, monkeypatch)
    with pytest.raises(UsageError) as caught:
        signin.find_subscription()
    assert said in str(caught.value) and "\n" not in str(caught.value)
    assert "azureProfile.json" in str(caught.value)


def test_no_profile_at_all(nobody: None) -> None:
    with pytest.raises(UsageError, match="no Azure subscription is named: name one with --subscription"):
        signin.find_subscription()


def test_a_name_is_no_id(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="--subscription: 'My subscription' is not a subscription id"):
        signin.find_subscription("My subscription")
    monkeypatch.setenv("AZURE_SUBSCRIPTION_ID", "x")
    with pytest.raises(UsageError, match="AZURE_SUBSCRIPTION_ID: 'x' is not a subscription id"):
        signin.find_subscription()


# From where SSH may come


@pytest.mark.parametrize(
    ("text", "cidr"),
    [
        ("203.0.113.7", "203.0.113.7/32"),
        (" 203.0.113.7/24 ", "203.0.113.0/24"),
        ("172.32.0.1", "172.32.0.1/32"),
    ],
)
def test_an_address_becomes_a_network(text: str, cidr: str) -> None:
    assert connect.ssh_cidr(text) == cidr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("*", "would open the machines to everyone"),
        ("Internet", "would open the machines to everyone"),
        ("0.0.0.0/0", "would open the machines to everyone"),
        ("::/0", "is IPv6, and the machines have IPv4 addresses only"),
        (
            "2001:db8::1",
            "2001:db8::1/128 is IPv6, and the machines have IPv4 addresses only, so nobody could get in",
        ),
        ("2001:db8::/48", "name your IPv4 address, for example"),
        ("128.0.0.0/1", "would open the machines to everyone"),
        ("10.1.2.3", "belongs to a private network and is never what Azure sees"),
        ("192.168.0.0/16", "belongs to a private network"),
        ("fd00::1", "is IPv6"),
        ("100.64.1.1", "belongs to the network within a provider"),
        ("127.0.0.1", "belongs to this machine itself"),
        ("169.254.1.1", "belongs to one link"),
        ("my.host.example", "neither an address nor a network"),
        ("203.0.113.7/33", "neither an address nor a network"),
    ],
)
def test_a_source_that_admits_everyone_or_nobody(text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        connect.ssh_cidr(text, "--ssh-source")
    assert str(caught.value).startswith("--ssh-source: ") and said in str(caught.value)


# A run on Azure, begun


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DISKBOOK_RUNS", str(tmp_path / "runs"))
    return tmp_path / "runs"


def test_a_run_records_where_it_will_be_made(
    plane: World, signed_in: identity_endpoint.Endpoint, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISKBOOK_SSH_SOURCE", "203.0.113.7")
    folder = stages.begin("one", TINY, "azure", azure={"subscription": SUBSCRIPTION})
    manifest = folder.manifest
    assert manifest["azure"] == {
        "subscription": SUBSCRIPTION,
        "subscription_name": "diskbook emulator (emulated, not Azure)",
        "subscription_from": "--subscription",
        "tenant": "a-tenant",
        "ssh_source": "203.0.113.7/32",
        "endpoint": plane.url,
        "provenance": "emulated",
    }
    assert manifest["provenance"] == "emulated"
    shown = show_run.target(manifest)
    assert SUBSCRIPTION in shown and "tenant a-tenant" in shown and "region westeurope" in shown
    assert "emulated by" in shown and "SSH from 203.0.113.7/32" in shown
    # Later stages go where the run was begun, whatever the environment says by then.
    monkeypatch.setenv("AZURE_SUBSCRIPTION_ID", OTHER)
    monkeypatch.setenv("DISKBOOK_SSH_SOURCE", "*")
    clients = connect.clients_of(folder)
    assert clients.cloud.subscription == SUBSCRIPTION and clients.cloud.ssh_source == "203.0.113.7/32"
    assert clients.cloud.provenance == "emulated"
    assert set(clients.zone_map(LOCATION)) == {"1", "2", "3"}


def test_nothing_is_begun_when_nobody_is_signed_in(
    nobody: None, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "AzureCliCredential")
    with pytest.raises(UsageError, match="--ssh-source or DISKBOOK_SSH_SOURCE"):
        stages.begin("one", TINY, "azure", azure={"subscription": SUBSCRIPTION})
    asked = {"ssh_source": "203.0.113.7"}
    with pytest.raises(UsageError, match="no Azure subscription is named"):
        stages.begin("one", TINY, "azure", azure=asked)
    asked["subscription"] = SUBSCRIPTION
    with pytest.raises(UsageError, match=r"nobody is signed in to Azure.*az login"):
        stages.begin("one", TINY, "azure", azure=asked)
    assert not runs.exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "no Azure subscription is named: "),
        (("--subscription", "mine"), "--subscription: 'mine' is not a subscription id"),
        (("--subscription", SUBSCRIPTION, "--ssh-source", "*"), "--ssh-source: '*' would open the machines"),
        (("--subscription", SUBSCRIPTION), "nobody is signed in to Azure"),
    ],
)
def test_the_command_line_says_it_in_one_line(
    words: tuple[str, ...],
    said: str,
    nobody: None,
    runs: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "AzureCliCredential")
    monkeypatch.setenv("DISKBOOK_SSH_SOURCE", "203.0.113.7")
    monkeypatch.setattr("sys.argv", ["diskbook", "run", TINY, "--cloud", "azure", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    err = capfd.readouterr().err
    assert err.startswith(f"diskbook: {said}") and err.count("\n") == 1
    assert not runs.exists()


def test_a_run_goes_on_in_its_subscription(
    plane: World, signed_in: identity_endpoint.Endpoint, runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = {"subscription": SUBSCRIPTION, "ssh_source": "203.0.113.7"}
    folder = stages.begin("one", TINY, "azure", azure=asked)
    with pytest.raises(UsageError, match="a run stays in its subscription"):
        connect.update_on_resume(folder, {"subscription": OTHER})
    with pytest.raises(UsageError, match="open the machines to everyone"):
        connect.update_on_resume(folder, {"ssh_source": "*"})
    connect.update_on_resume(folder, {"ssh_source": "198.51.100.4", "subscription": SUBSCRIPTION})
    assert folder.manifest["azure"]["ssh_source"] == "198.51.100.4/32"
    emulated = stages.begin("two", TINY)
    connect.update_on_resume(emulated, {})
    with pytest.raises(UsageError, match="goes with a run on Azure"):
        connect.update_on_resume(emulated, {"ssh_source": "198.51.100.4"})


def test_azures_parameters_are_not_for_the_emulator(runs: Path) -> None:
    with pytest.raises(UsageError, match="goes with --cloud azure, not with emulator"):
        stages.begin("one", TINY, azure={"subscription": SUBSCRIPTION})
    assert not runs.exists()


@pytest.mark.parametrize(
    "endpoint", ["http://localhost", "localhost", "https://", "https://user:word@host", "https://host/path"]
)
def test_an_endpoint_that_is_none(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISKBOOK_ARM_ENDPOINT", endpoint)
    with pytest.raises(UsageError, match="DISKBOOK_ARM_ENDPOINT is not an address"):
        connect.azure_clients(SUBSCRIPTION)


def test_the_emulators_target_needs_no_cloud(runs: Path) -> None:
    manifest = stages.begin("one", TINY).manifest
    said = show_run.target(manifest)
    assert "emulated: region westeurope" in said and "no subscription, tenant or sign-in" in said


def test_what_clients_tell_stands_in_the_ledger(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = stages.begin("one", TINY)
    connect._teller(folder)("Azure asks to wait 37 s (throttled)")
    assert folder.ledger()[-1]["text"] == "Azure asks to wait 37 s (throttled)"
    assert folder.ledger()[-1]["event"] == "notice"
    assert capsys.readouterr().out == "Azure asks to wait 37 s (throttled)\n"
