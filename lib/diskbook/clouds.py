"""From a run's manifest to the clients of its cloud: the emulator it names, or Azure."""

from __future__ import annotations

import os
from typing import Any

from diskbook.azure.clients import Clients, Cloud, StaticToken
from diskbook.emulator import lifecycle
from diskbook.errors import UsageError, unknown

KINDS = ("emulator", "azure")


def check_kind(cloud: str) -> None:
    """Raise UsageError for a cloud that does not exist."""
    if cloud not in KINDS:
        raise unknown("cloud", cloud, KINDS)


def provenance(cloud: str) -> str:
    """What results of that cloud are labelled with, everywhere."""
    return "emulated" if cloud == "emulator" else "azure"


def emulator_state(name: str) -> str:
    """Return "running", "kept" (stopped, its state kept), "dead" (killed) or "absent"."""
    return next((row.state for row in lifecycle.status() if row.name == name), "absent")


def check_emulator_runs(name: str) -> None:
    """Raise UsageError when an emulator that the user named does not run."""
    if emulator_state(name) != "running":
        raise UsageError(f"emulator {name} does not run; start it with 'diskbook emulator start {name}'")


def clients_of(manifest: dict[str, Any]) -> Clients:
    """Make the clients for the cloud that a manifest names.

    Raises
    ------
    UsageError
        When its emulator does not run, or when nothing says which Azure subscription to use.
    """
    return Clients(_emulator(manifest) if manifest["cloud"] == "emulator" else _azure())


def _emulator(manifest: dict[str, Any]) -> Cloud:
    found = lifecycle.connect(manifest["emulator"]["name"])
    return Cloud(
        kind="emulator",
        subscription=found.subscription_id,
        credential=StaticToken(found.token),
        endpoint=found.endpoint,
        ca=found.ca_path,
        time_scale=found.time_scale,
        admin_user=found.admin_user,
        ssh_source="127.0.0.0/8",
    )


def _azure() -> Cloud:
    from azure.identity import DefaultAzureCredential

    subscription = os.environ.get("AZURE_SUBSCRIPTION_ID")
    source = os.environ.get("DISKBOOK_SSH_SOURCE")
    if not subscription:
        raise UsageError(
            "no Azure subscription is named: set AZURE_SUBSCRIPTION_ID, and sign in with 'az login'"
        )
    if not source:
        raise UsageError(
            "machines would be open to everyone: set DISKBOOK_SSH_SOURCE to the address that may reach them "
            'by SSH, for example "203.0.113.7/32"'
        )
    return Cloud("azure", subscription, DefaultAzureCredential(), ssh_source=source)
