"""Delete what a run created, and make sure by reading back."""

from __future__ import annotations

from azure.core.exceptions import AzureError, ResourceNotFoundError

from diskbook.azure.clients import Clients
from diskbook.azure.provision import azure_message, operation
from diskbook.errors import DiskbookError
from diskbook.run import Run


def delete_group(clients: Clients, run: Run, group: str) -> bool:
    """Delete a resource group of this run with all it holds.

    Returns
    -------
    bool
        Whether there was one.

    Raises
    ------
    DiskbookError
        When the group does not carry this run's tag (it is not touched), or still exists afterwards.
    """
    groups = clients.resource.resource_groups
    try:
        found = groups.get(group)
    except ResourceNotFoundError:
        return False
    except AzureError as error:
        raise DiskbookError(f"look for resource group {group}: {azure_message(error)}") from error
    if (found.tags or {}).get("diskbook-run") != run.name:
        raise DiskbookError(f"resource group {group} is not tagged with run {run.name}; it was left alone")
    with operation(run, "delete resource group", group, clients):
        groups.begin_delete(group).result()
    if groups.check_existence(group):
        raise DiskbookError(f"resource group {group} still exists after its deletion; delete it by hand")
    return True
