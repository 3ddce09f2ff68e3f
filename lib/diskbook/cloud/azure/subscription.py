"""Decide which subscription to use: the one named, that of the environment, or the Azure CLI's default."""

from __future__ import annotations

import json
import os
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diskbook.facts import redact
from diskbook.facts.errors import UsageError

VARIABLE = "AZURE_SUBSCRIPTION_ID"
_NAME_ONE = f"name one with --subscription or {VARIABLE}"
_SHOWN = 5  # subscriptions listed in a message


@dataclass(frozen=True)
class Subscription:
    """A subscription's id (no secret), and where it was found."""

    id: str
    source: str


def find(given: str | None = None) -> Subscription:
    """Decide on the subscription.

    Parameters
    ----------
    given
        Id from a parameter or the command line; it comes first.

    Raises
    ------
    UsageError
        When none is named, when what is named is no id, or when the Azure CLI's profile cannot be read.
    """
    if given:
        return Subscription(_id(given, "--subscription"), "--subscription")
    if named := os.environ.get(VARIABLE, "").strip():
        return Subscription(_id(named, VARIABLE), VARIABLE)
    path = profile_path()
    return Subscription(_id(str(_default(path)["id"]), str(path)), "the Azure CLI's default subscription")


def profile_path() -> Path:
    """Where the Azure CLI keeps its list of subscriptions."""
    return Path(os.environ.get("AZURE_CONFIG_DIR") or Path.home() / ".azure") / "azureProfile.json"


def _id(text: str, where: str) -> str:
    try:
        return str(uuid.UUID(text.strip()))
    except ValueError:
        raise UsageError(
            f"{where}: '{redact.hide(text)}' is no subscription id, which looks like "
            "00000000-0000-0000-0000-000000000000; 'az account list --output table' shows yours"
        ) from None


def _default(path: Path) -> dict[str, Any]:
    rows = _subscriptions(path)
    chosen = [row for row in rows if row.get("isDefault")]
    if len(chosen) == 1:
        return chosen[0]
    if not rows:
        raise UsageError(f"{path} lists no subscription: run 'az login', or {_NAME_ONE}")
    listed = ", ".join(f"{row['id']} ({row.get('name', '?')})" for row in rows[:_SHOWN])
    more = f" and {len(rows) - _SHOWN} more" if len(rows) > _SHOWN else ""
    raise UsageError(
        f"{path} lists {len(rows)} subscriptions with {len(chosen) or 'no'} default: "
        f"choose by 'az account set --subscription ID', or {_NAME_ONE}: {listed}{more}"
    )


def _subscriptions(path: Path) -> list[dict[str, Any]]:
    damaged = f"{path} is damaged; run 'az login' again, or {_NAME_ONE}"
    try:
        document = json.loads(path.read_text("utf-8-sig"))  # the CLI writes a byte order mark
    except FileNotFoundError:
        raise UsageError(
            f"no Azure subscription is named: {_NAME_ONE}, or run 'az login' ({path} is not there)"
        ) from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}): {_NAME_ONE}") from None
    except ValueError:
        raise UsageError(damaged) from None
    rows = document.get("subscriptions", []) if isinstance(document, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) and row.get("id") for row in rows):
        raise UsageError(damaged)
    return rows
