"""Storage accounts, of which there is what a cluster's cloud witness needs: the account and its keys.

Shapes from the REST specification of Microsoft.Storage, not seen on the wire. Nothing is stored in them.
"""

import base64
import copy
import re
import secrets

from diskbook_emulator.arm.errors import ArmError, bad_request
from diskbook_emulator.arm.operations import azure_time
from diskbook_emulator.arm.plane import Call, ControlPlane, Reply, creation, poll_headers
from diskbook_emulator.arm.state import Resource, shown
from diskbook_emulator.types import Json

PROVIDER = "Microsoft.Storage"
ACCOUNT = f"{PROVIDER}/storageAccounts"
KINDS = ("StorageV2", "BlobStorage", "BlockBlobStorage", "FileStorage", "Storage")
SKUS = ("Standard_LRS", "Standard_ZRS", "Standard_GRS", "Standard_RAGRS", "Premium_LRS", "Premium_ZRS")
KEYS = ("key1", "key2")
KEY_BYTES = 64
RETRY_AFTER_S = 17
_NAME = re.compile(r"[a-z0-9]{3,24}")


def put(plane: ControlPlane, call: Call) -> Reply:
    """Create an account, or change one that is there; its keys stay."""
    plane.writable_group(call.group)
    name = call.params["name"]
    _check(plane, call, name)
    region = plane.region(str(call.body.get("location", "")))
    account_id = plane.resource_id(call.group, ACCOUNT, name)
    old = plane.store.get(account_id)
    if old is not None:
        old.body["tags"] = dict(call.body.get("tags") or {})
        old.properties.update(copy.deepcopy(call.body.get("properties") or {}))
        return Reply(200, shown(plane.store.save(old)))
    made = plane.store.save(_new(call, account_id, region.name))
    op_id = plane.operations.start("storage-account", made.id, creation(plane, made), made.id)
    headers = poll_headers(
        plane, call, op_id, region.name, PROVIDER, "asyncoperations", retry_after_s=RETRY_AFTER_S
    )
    del headers["Azure-AsyncOperation"]
    return Reply(202, headers=headers)


def _new(call: Call, account_id: str, location: str) -> Resource:
    """Build an account under way, and keys that it keeps."""
    name, sku = call.params["name"], str(call.body["sku"]["name"])
    body: Json = {
        "id": account_id,
        "name": name,
        "type": ACCOUNT,
        "location": location,
        "kind": call.body["kind"],
        "sku": {"name": sku, "tier": sku.partition("_")[0]},
        "tags": dict(call.body.get("tags") or {}),
        "properties": {
            **copy.deepcopy(call.body.get("properties") or {}),
            "provisioningState": "Creating",
            "creationTime": azure_time(),
            "primaryLocation": location,
            "statusOfPrimary": "available",
            "primaryEndpoints": {"blob": f"https://{name}.blob.core.windows.net/"},
        },
    }
    keys = {key: base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode() for key in KEYS}
    return Resource(body, {"keys": keys})


def _check(plane: ControlPlane, call: Call, name: str) -> None:
    # wordings in this function are from our knowledge, not read
    if not _NAME.fullmatch(name):
        raise bad_request(
            f"{name} is not a valid storage account name. Storage account name must be between 3 and 24 "
            "characters in length and use numbers and lower-case letters only.",
            "AccountNameInvalid",
        )
    here = plane.resource_id(call.group, ACCOUNT, name).lower()
    taken = [row for row in plane.store.of_type(ACCOUNT) if row.name == name and row.key != here]
    if taken:
        message = f"The storage account named {name} is already taken."
        raise ArmError(409, "StorageAccountAlreadyTaken", message)
    sku = call.body.get("sku")
    if call.body.get("kind") not in KINDS or not isinstance(sku, dict) or sku.get("name") not in SKUS:
        raise bad_request(
            "Values for request parameters are invalid: kind, sku.", "InvalidValuesForRequestParameters"
        )


def get(plane: ControlPlane, call: Call) -> Reply:
    """Show an account, without its keys."""
    return Reply(200, shown(plane.find(call.group, ACCOUNT, call.params["name"])))


def listing(plane: ControlPlane, call: Call) -> Reply:
    return Reply(200, {"value": [shown(account) for account in plane.listed(call, ACCOUNT)]})


def list_keys(plane: ControlPlane, call: Call) -> Reply:
    """Show the keys of an account; an account under way has none yet."""
    account = plane.find(call.group, ACCOUNT, call.params["name"])
    if account.properties["provisioningState"] != "Succeeded":
        # wording from our knowledge, not read
        message = (
            f"The storage account {account.name} provisioning state must be 'Succeeded' before executing "
            "the operation."
        )
        raise ArmError(409, "StorageAccountIsNotProvisioned", message)
    rows = [
        {
            "keyName": name,
            "value": key,
            "permissions": "FULL",
            "creationTime": account.properties["creationTime"],
        }
        for name, key in account.hidden["keys"].items()
    ]
    return Reply(200, {"keys": rows})


def delete(plane: ControlPlane, call: Call) -> Reply:
    """Delete an account; 204 where there is none."""
    plane.group(call.group)
    account = plane.store.get(plane.resource_id(call.group, ACCOUNT, call.params["name"]))
    if account is None:
        return Reply(204)
    plane.store.remove(account.id)
    return Reply(200)
