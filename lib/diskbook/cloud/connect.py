"""Make the clients of a run for its cloud, and decide what a run on Azure or on own hosts uses."""

import contextlib
import ipaddress
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from azure.core import AzureClouds
from azure.mgmt.core.tools import get_arm_endpoints

from diskbook.cloud import kinds
from diskbook.cloud.azure import private, signin
from diskbook.cloud.azure.clients import Clients, Cloud
from diskbook.design.model import PUBLIC, Network, Scenario
from diskbook.design.vocabulary import Provenance
from diskbook.facts import neighbours
from diskbook.facts.errors import DiskbookError, UsageError
from diskbook.hosts import hosts_file
from diskbook.results.manifest import RECORDED
from diskbook.results.run import Run

# For clouds that the SDK does not know by name, such as Azure Stack Hub: where Azure Resource Manager is, and
# the certificates to trust there (a PEM file) where the system's do not do. AZURE_SDK_CLOUD_CONF and
# AZURE_AUTHORITY_HOST choose among the known ones.
ENDPOINT, ENDPOINT_CA = "DISKBOOK_ARM_ENDPOINT", "DISKBOOK_ARM_CA"


def choose_azure(asked: Mapping[str, Any], region: str, network: Network = PUBLIC) -> dict[str, Any]:
    """Decide what a run on Azure uses, and ask Azure whether it may: nothing is created.

    `asked` has `subscription` and `ssh_source`; others come from environment or `az` profile. Returns for the
    manifest what leads there, nothing secret; `provenance` is "emulated" where the endpoint is an emulator's.
    Raises UsageError when anything is missing or nobody is signed in.
    """
    source = _ssh_source(asked.get("ssh_source"), network)
    chosen = signin.find_subscription(asked.get("subscription"))
    endpoint = _endpoint()
    identity = signin.identity(Clients(_azure({"subscription": chosen.id, "endpoint": endpoint})), region)
    return {
        "subscription": chosen.id,
        "subscription_name": identity.subscription_name,
        "subscription_from": chosen.source,
        "tenant": identity.tenant,
        "ssh_source": source,
        "endpoint": endpoint,
        "provenance": identity.provenance,
    }


def _ssh_source(given: str | None, network: Network) -> str:
    """From where machines let in SSH: the caller's addresses, or in a private network that network."""
    if not network.is_private:
        return find_ssh_source(given)
    if given:
        raise UsageError(
            "machines in a private network let in SSH from that network alone; leave --ssh-source out"
        )
    return private.SSH_SOURCE


def choose_hosts(asked: Mapping[str, Any], scenario: Scenario, run_folder: Path) -> dict[str, Any]:
    """Find the hosts of one's own that a scenario from `hosts_file.as_own` is measured on; none is asked yet.

    `asked` has `hosts`, a file; or `folder`, of this machine, by default the run's own. Raises UsageError
    with what is wrong with the file, or does not fit the scenario.
    """
    if "hosts" in asked and "folder" in asked:
        raise UsageError("--folder goes without --hosts, which names folders itself; leave one out")
    if "hosts" in asked:
        return hosts_file.placed(scenario, hosts_file.read(asked["hosts"]), Path(asked["hosts"]).name)
    machines = list(dict.fromkeys(arm.machine for arm in scenario.arm))
    if len(machines) > 1:
        raise UsageError(
            f"scenario {scenario.name} needs the hosts {', '.join(machines)}; name them: --hosts FILE"
        )
    folder = Path(asked["folder"]).expanduser() if "folder" in asked else run_folder
    return hosts_file.placed(
        scenario, [hosts_file.this_machine(machines[0], str(folder.resolve()))], "this machine"
    )


def update_on_resume(run: Run, asked: Mapping[str, Any]) -> None:
    """Let new machines of a resumed run in from another SSH source; UsageError when that does not fit it."""
    used = run.manifest.get("azure")
    if not asked:
        return
    if used is None:
        raise UsageError("a subscription or an SSH source goes with a run on Azure, not with this one")
    if "subscription" in asked and signin.find_subscription(asked["subscription"]).id != used["subscription"]:
        raise UsageError(f"a run stays in its subscription, here {used['subscription']}; begin a new one")
    if "ssh_source" in asked:
        source = _ssh_source(asked["ssh_source"], run.scenario.network)
        run.update_manifest(azure={**used, "ssh_source": source})


def azure_clients(subscription_id: str | None = None) -> Clients:
    """Make clients of Azure without a run, as for a sweep; UsageError when no subscription is named.

    Whether anybody is signed in shows at the first request.
    """
    chosen = signin.find_subscription(subscription_id)
    return Clients(_azure({"subscription": chosen.id, "endpoint": _endpoint()}))


def clients_of(run: Run, *, record: bool = True) -> Clients:
    """Make the clients for the cloud of a run.

    Its manifest must be this client's own word, since a sign-in goes where it leads. With `record`, waits go
    to its ledger as well, and exchanges to its record if it has one. Raises UsageError when its emulator does
    not run or no subscription is named, DiskbookError when the run was not begun here or its endpoint is not
    to be trusted now.
    """
    run.check_signed()
    tell = _teller(run) if record else say
    recorded = record and run.manifest.get(RECORDED)
    exchange = neighbours.recording.recorder_of(run).exchange if recorded else None
    return Clients(kinds.of(run).connect(run), tell, exchange=exchange)


def say(line: str) -> None:
    """Print a line at once."""
    print(line, flush=True)


def _teller(run: Run) -> Callable[[str], None]:
    """Print a line where it happens, and hand it to whoever follows the ledger."""

    def tell(line: str) -> None:
        say(line)
        with contextlib.suppress(DiskbookError):  # a full disk is told by what has to be kept
            run.append("notice", text=line)

    return tell


def recorded(manifest: Mapping[str, Any]) -> Cloud:
    """Return the Azure that a run has recorded, not that of the environment: its machines are there."""
    return _azure(_recorded(manifest))


def _recorded(manifest: Mapping[str, Any]) -> dict[str, Any]:
    used = manifest.get("azure")
    if not used:
        return {"subscription": signin.find_subscription().id, "endpoint": _endpoint()}
    check_endpoint(used.get("endpoint"))
    if used.get("ssh_source") == private.SSH_SOURCE:
        return dict(used)
    return {**used, "ssh_source": ssh_cidr(str(used.get("ssh_source")), "the run's manifest")}


def check_endpoint(endpoint: str | None) -> None:
    """Raise DiskbookError unless a recorded endpoint is one to send an Azure sign-in to.

    That is Azure Resource Manager of a cloud that the SDK knows, or what the environment names now.
    """
    known = {str(get_arm_endpoints(cloud)["resource_manager"]).rstrip("/") for cloud in AzureClouds}
    if endpoint is not None and endpoint not in known and endpoint != _endpoint():
        raise DiskbookError(
            f"the run's manifest names the endpoint {endpoint!r}, which is not a known cloud of Azure: no "
            f"sign-in is sent there; if it is yours, set {ENDPOINT} to it"
        )


def _azure(used: Mapping[str, Any]) -> Cloud:
    ca = os.environ.get(ENDPOINT_CA)
    return Cloud(
        "azure",
        used["subscription"],
        signin.credential(),
        endpoint=used.get("endpoint"),
        ca=Path(ca) if ca and used.get("endpoint") else None,
        ssh_source=used.get("ssh_source", Cloud.ssh_source),
        emulated=used.get("provenance") == Provenance.EMULATED,
    )


def _endpoint() -> str | None:
    """Endpoint of the environment, checked; None for that of the SDK."""
    endpoint = os.environ.get(ENDPOINT, "").strip().rstrip("/")
    if not endpoint:
        return None
    parts = urlsplit(endpoint)
    if parts.scheme != "https" or not parts.hostname or parts.path or parts.query or parts.username:
        raise UsageError(f"{ENDPOINT} is not an address of Azure Resource Manager; write https://HOST[:PORT]")
    ca = os.environ.get(ENDPOINT_CA)
    if ca and not Path(ca).is_file():
        raise UsageError(f"{ENDPOINT_CA}: there is no file {ca}; name a PEM file of certificates to trust")
    return endpoint


SSH_SOURCE = "DISKBOOK_SSH_SOURCE"
_WIDEST = 16  # bits: what one organisation has; wider is as good as everyone
_EXAMPLE = 'for example "203.0.113.7" (your address as others see it)'
_OPEN = f"would open the machines to everyone; name your address, {_EXAMPLE}"

_NEVER_SEEN = {
    "a private network": ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"),
    "the network within a provider": ("100.64.0.0/10",),
    "this machine itself": ("127.0.0.0/8", "0.0.0.0/8"),
    "one link": ("169.254.0.0/16",),
    "no single machine": ("224.0.0.0/4", "240.0.0.0/4"),
}


def find_ssh_source(given: str | None = None) -> str:
    """Return the addresses to let in as a CIDR: given, or else of the environment. Raises as `ssh_cidr`."""
    named = os.environ.get(SSH_SOURCE, "").strip()
    for text, where in ((given, "--ssh-source"), (named, SSH_SOURCE)):
        if text:
            return ssh_cidr(text, where)
    raise UsageError(
        f"say from where the machines may be reached by SSH, with --ssh-source or {SSH_SOURCE}, {_EXAMPLE}; "
        "otherwise they would be open to everyone"
    )


def ssh_cidr(text: str, where: str = SSH_SOURCE) -> str:
    """Check one address or network, and return it as a CIDR; a bare address becomes /32.

    Raises UsageError when it is none, is IPv6, or would admit everyone or nobody.
    """
    if text.strip().lower() in ("*", "any", "internet"):
        raise UsageError(
            f"{where}: '{text}' would open the machines to everyone; name your address, {_EXAMPLE}"
        )
    try:
        network = ipaddress.ip_network(text.strip(), strict=False)
    except ValueError:
        raise UsageError(f"{where}: '{text}' is neither an address nor a network; write {_EXAMPLE}") from None
    if network.version != 4:
        raise UsageError(
            f"{where}: {network} is IPv6, and the machines have IPv4 addresses only, so nobody could get in; "
            f"name your IPv4 address, {_EXAMPLE}"
        )
    if network.prefixlen < _WIDEST:
        raise UsageError(
            f"{where}: {network} would open the machines to everyone; name your address, {_EXAMPLE}"
        )
    for what, ranges in _NEVER_SEEN.items():
        if any(network.network_address in ipaddress.ip_network(known) for known in ranges):
            raise UsageError(
                f"{where}: {network} belongs to {what} and is never what Azure sees, so nobody could get in; "
                f"name your public address, {_EXAMPLE}"
            )
    return str(network)
