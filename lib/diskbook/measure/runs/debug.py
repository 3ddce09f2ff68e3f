"""Keep the machines of a run that failed for some minutes, so that a person can look at them.

The command waits and then tears down as ever. If it is killed meanwhile, the timers of the machines stand as
for any run, and a sweep deletes the group.
"""

import contextlib
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

from azure.core.exceptions import AzureError

from diskbook.cloud import connect
from diskbook.cloud.azure import expiry, keys, requests
from diskbook.cloud.azure.clients import Clients
from diskbook.cost import estimate as cost_estimate, retail
from diskbook.design.vocabulary import Provenance
from diskbook.facts.errors import DiskbookError, UsageError
from diskbook.facts.units import span
from diskbook.hosts import stage
from diskbook.results.run import Run

KEY = "debug_minutes"
MOST = 60.0


def check_minutes(minutes: float) -> float:
    """Check a number of minutes; UsageError if it is none, or so long that it is forgotten."""
    if not 0 < minutes <= MOST:
        raise UsageError(
            f"--debug-minutes {minutes:g}: give more than 0, at most {MOST:g}; --keep keeps longer"
        )
    return minutes


def note(run: Run, minutes: float | None) -> None:
    """Record what was asked for; it holds for this command only."""
    if minutes and stage.is_own(run.manifest):
        raise UsageError(f"--debug-minutes keeps machines of a cloud, and run {run.name} has none")
    if run.manifest.get(KEY) != minutes:
        run.update_manifest(**{KEY: minutes})


def is_asked(run: Run) -> bool:
    """Whether machines are to be kept if the run fails."""
    return bool(run.manifest.get(KEY))


def hold(run: Run, failure: DiskbookError) -> None:
    """Wait before a failed run is torn down, if that was asked for and anything of it stands.

    On the emulator the wait is as short as Azure's own waits there.
    """
    expires = expiry.latest(run.manifest)
    if not is_asked(run) or expires is None:
        return
    try:
        clients = connect.clients_of(run)
    except DiskbookError:  # the emulator is gone, and the machines with it
        return
    minutes = float(run.manifest[KEY])
    wait_s = minutes * 60 * clients.cloud.time_scale
    left_s = (expires - datetime.now(UTC)).total_seconds()
    lines = [str(failure), _text(run, clients, minutes, min(wait_s, left_s), expires), *_ways(run, clients)]
    clients.tell("\n".join(lines))
    time.sleep(max(0.0, min(wait_s, left_s)))


def _text(run: Run, clients: Clients, minutes: float, wait_s: float, expires: datetime) -> str:
    until = datetime.now(UTC) + timedelta(seconds=wait_s)
    return (
        f"the machines are kept until {until:%H:%M:%S} UTC for you to look at them, then deleted; Ctrl-C "
        f"deletes them now. {_cost(run, clients, minutes)}. If this command is killed, they shut down at "
        f"{expires.astimezone(UTC):%Y-%m-%d %H:%M} UTC, and 'diskbook sweep --delete' deletes them"
    )


def _cost(run: Run, clients: Clients, minutes: float) -> str:
    """Say what the wait costs, by the dated table: nobody waits for a price list here."""
    scenario = run.scenario
    prices = retail.look_up(scenario.region, cost_estimate.meters(scenario), None, date.today())
    usd = scenario.design.replicates * cost_estimate.usd_an_hour(scenario, prices) * minutes / 60
    emulated = clients.cloud.provenance == Provenance.EMULATED
    where = "On Azure that would cost" if emulated else "That costs"
    return f"{where} about {usd:.2f} USD for {span(minutes * 60)}"


def _ways(run: Run, clients: Clients) -> Iterator[str]:
    """Say how to look at each machine that stands: by SSH, and without it."""
    for row in run.manifest["resource_groups"]:
        if row["deleted_utc"]:
            continue
        with contextlib.suppress(AzureError):  # the machines are there all the same
            for machine in clients.compute.virtual_machines.list(row["name"]):
                if not machine.name.startswith(row.get("prefix", "")):
                    continue  # another's, in a group that the user named
                ways = (
                    _by_ssh(run, clients, row["name"], machine),
                    _by_agent(clients, row["name"], machine.name),
                )
                if any(ways):
                    yield f"{machine.name}: {'; or '.join(filter(None, ways))}"


def _by_ssh(run: Run, clients: Clients, group: str, machine: Any) -> str:
    """Command that signs in to a machine with a public address."""
    if run.scenario.network.is_private:
        return ""
    address = clients.network.public_ip_addresses.get(group, f"{machine.name}-ip").ip_address
    if not address:
        return ""
    port = (machine.tags or {}).get(requests.SSH_PORT_TAG, "22")
    return f"ssh -i {keys.run_key(run.folder)} -p {port} {clients.cloud.admin_user}@{address}"


def _by_agent(clients: Clients, group: str, name: str) -> str:
    """Command that Azure's agent runs on a machine that SSH does not reach; emulated machines have none."""
    if clients.cloud.provenance == Provenance.EMULATED:
        return ""
    script = "--command-id RunShellScript --scripts 'cloud-init status --long'"
    return f"az vm run-command invoke -g {group} -n {name} {script}"
