"""Azure and own hosts as clouds of a run."""

from collections.abc import Callable, Iterator, Mapping
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

from diskbook.cloud import connect
from diskbook.cloud.azure import signin
from diskbook.cloud.azure.clients import Clients, Cloud
from diskbook.cloud.kinds import Asked, Check, CloudKind, Found, Leftover
from diskbook.design.model import Scenario
from diskbook.design.vocabulary import Provenance
from diskbook.facts.errors import DiskbookError
from diskbook.hosts import hosts_file
from diskbook.measure import doctor
from diskbook.measure.runs import sweep
from diskbook.results.run import Run


class _Azure(CloudKind):
    """Azure, or an endpoint of Azure Resource Manager that the environment names."""

    name = "azure"
    provenance = Provenance.AZURE
    asks_azure = True
    where = "on Azure"

    def settings(self, asked: Mapping[str, Any], scenario: Scenario, folder: Path) -> dict[str, Any]:
        """Decide on subscription and SSH source, and ask Azure whether they will do."""
        return connect.choose_azure(asked, scenario.region, scenario.network)

    def connect(self, run: Run) -> Cloud:
        """Return what the run has recorded."""
        return connect.recorded(run.manifest)

    def doctor(self, scenario: Scenario, asked: Asked) -> list[Check]:
        """Check the subscription and the way to it."""
        return doctor.checks(scenario, asked, date.today())

    def find(self, *, must: bool, only: str | None = None) -> Found:
        """Look at the subscriptions that runs here have used and not left, and at the one that is named."""
        places: dict[tuple[str | None, str], tuple[str, Clients]] = {}
        notes: list[str] = []
        used: list[Callable[[], Clients]] = [
            partial(connect.clients_of, run, record=False) for run in sweep.local_runs() if _stands(run)
        ]
        for clients_of in [*used, connect.azure_clients]:
            try:
                clients = clients_of()
                key = (clients.cloud.endpoint, clients.cloud.subscription)
                if key not in places:
                    places[key] = (_title(clients), clients)
            except DiskbookError as error:
                if must:
                    raise
                notes.append(f"not looked at: {error}")
        return Found(dict(places.values()), tuple(notes))


class _OwnHosts(CloudKind):
    """Hosts of the user's own, by SSH or this computer."""

    name = "inventory"
    provenance = Provenance.INVENTORY
    is_local = True

    def fitted(self, scenario: Scenario) -> Scenario:
        """Return the scenario without what only Azure can do."""
        return hosts_file.as_own(scenario)

    def settings(self, asked: Mapping[str, Any], scenario: Scenario, folder: Path) -> dict[str, Any]:
        """Find the hosts."""
        return connect.choose_hosts(asked, scenario, folder)

    def leftovers(self) -> Iterator[Leftover]:
        """Find files and marks of runs that have ended."""
        return sweep.own_places()


AZURE = _Azure()
INVENTORY = _OwnHosts()


def _title(clients: Clients) -> str:
    """Name a subscription; an endpoint other than Azure's own says itself whether it is emulated."""
    title = f"Azure, subscription {clients.cloud.subscription}"
    if clients.cloud.endpoint is None:
        return title
    provenance = signin.identity(clients, "any").provenance
    return f"{title} at {clients.cloud.endpoint}{' (emulated)' if provenance == Provenance.EMULATED else ''}"


def _stands(run: Run) -> bool:
    manifest = run.manifest
    return manifest["cloud"] == "azure" and any(not row["deleted_utc"] for row in manifest["resource_groups"])
