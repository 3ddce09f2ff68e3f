"""Cloud witness of two-node clusters: a storage account in the run's group, whose key is never stored.

The node that sets the witness gets the key from Azure at that moment (`key`); no manifest, ledger or log
holds it. One account serves all clusters of a replicate, each by its own blob. Source: Microsoft's "Deploy a
quorum witness" (windowsserverdocs, failover-clustering/deploy-quorum-witness.md of 2025-02-05): a
general-purpose account, neither premium nor for blobs alone, reached by HTTPS. Unverified on Azure.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

from azure.core.exceptions import AzureError

from diskbook.cloud.azure import refusals
from diskbook.cloud.azure.clients import Clients
from diskbook.facts.errors import DiskbookError

KEY = "key1"
_PREFIX = "dbk"
_DIGITS = 20
_BLOB = ".blob."


def home(group: str, prefix: str) -> str:
    """Group as `account_name` takes it, with the prefix of a run's names in a group that is not its own."""
    return f"{group}/{prefix}" if prefix else group


def account_name(subscription: str, group: str, replicate: int) -> str:
    """Name a replicate's storage account: 3 to 24 small letters and digits that nobody else has.

    Names of storage accounts are the world's, and those of groups end in random digits; so the same replicate
    of the same group always has the same one.
    """
    mark = hashlib.sha256(f"{subscription}/{group}/r{replicate}".lower().encode()).hexdigest()
    return f"{_PREFIX}{mark[:_DIGITS]}"


def endpoint_of(blob_address: str) -> str:
    """Domain of a cloud's storage, e.g. "core.windows.net", from the address of blobs; else DiskbookError."""
    host = blob_address.partition("://")[2].rstrip("/")
    domain = host.partition(_BLOB)[2]
    if not domain:
        raise DiskbookError(
            f"the witness's storage account says its blobs are at '{blob_address}', which is not an address "
            "of Azure's; the run stops"
        )
    return domain


def key(clients: Clients, replicate: Mapping[str, Any]) -> str:
    """Ask Azure for the key of a replicate's witness, to be used at once and not kept.

    Raises DiskbookError with Azure's own message, or when it hands out no key.
    """
    account = replicate["witness"]["account"]
    try:
        rows = clients.storage.storage_accounts.list_keys(
            replicate["resource_group"], account, expand=None
        ).keys_property
    except AzureError as error:
        raise DiskbookError(f"key of the witness {account}: {refusals.with_advice(error)}") from error
    values = [row.value for row in rows or [] if row.key_name == KEY and row.value]
    if not values:
        raise DiskbookError(
            f"key of the witness {account}: Azure hands out no {KEY}; allow keys of storage accounts in this "
            "subscription, or take three nodes, which need no witness"
        )
    return str(values[0])
