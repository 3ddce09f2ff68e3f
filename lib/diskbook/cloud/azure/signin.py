"""Signing in to Azure: one shared credential, one line where nobody is signed in, and who it is.

The credential is azure-identity's own `DefaultAzureCredential`, unchanged: it takes a service principal of
the environment, a managed identity, or the sign-in of a developer's tool, usually the Azure CLI. Its own
variables hold, `AZURE_TOKEN_CREDENTIALS` to narrow it and `AZURE_AUTHORITY_HOST` for other clouds among them;
the SDK's `AZURE_SDK_CLOUD_CONF` chooses the cloud (AZURE_US_GOVERNMENT, AZURE_CHINA_CLOUD).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import cache
from typing import Any

from azure.core.exceptions import AzureError, ServiceRequestError, ServiceResponseError
from azure.core.rest import HttpRequest

from diskbook.cloud.azure import refusals
from diskbook.cloud.azure.clients import Clients
from diskbook.design.vocabulary import Provenance
from diskbook.facts.errors import DiskbookError, UsageError

SUBSCRIPTIONS_API = "2022-12-01"
PROVENANCE_HEADER = "x-diskbook-provenance"  # every answer of an emulator has it
_USABLE = ("Enabled", "Warned", "PastDue")


@dataclass(frozen=True)
class Identity:
    """Where a sign-in leads: ids and names, nothing secret."""

    subscription: str
    subscription_name: str
    tenant: str
    region: str
    provenance: str  # what the endpoint itself says

    def __str__(self) -> str:
        text = f"subscription {self.subscription_name} ({self.subscription}), tenant {self.tenant}"
        return f"{text}, region {self.region}" + (
            ", emulated" if self.provenance == Provenance.EMULATED else ""
        )


@cache
def credential() -> Any:
    """Return the credential of this process; tokens are cached in it, so there is one only.

    Raises
    ------
    UsageError
        When AZURE_TOKEN_CREDENTIALS names none that exists.
    """
    from azure.identity import DefaultAzureCredential

    logger = logging.getLogger("azure.identity")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.CRITICAL)  # it logs a page of text where we say a line
    try:
        return DefaultAzureCredential()
    except ValueError as error:
        raise UsageError(f"azure-identity cannot be set up: {error}") from None


def identity(clients: Clients, region: str) -> Identity:
    """Ask who is signed in and where that leads: the first request of a run, and the cheapest.

    Parameters
    ----------
    clients
        Of Azure or of an emulator.
    region
        Where machines would be created.

    Raises
    ------
    UsageError
        In one line, when nobody is signed in, the sign-in is not accepted, the account may not see the
        subscription, or that one cannot be used.
    DiskbookError
        When Azure cannot be reached, or does not answer as it should.
    """
    body, provenance = _ask(clients)
    return described(clients.cloud.subscription, body, region, provenance)


def described(subscription: str, body: dict[str, Any], region: str, provenance: str) -> Identity:
    """Take the names from Azure's answer about a subscription; raise UsageError when it cannot be used."""
    name, tenant = str(body.get("displayName") or "without a name"), str(body.get("tenantId") or "unknown")
    state = str(body.get("state") or _USABLE[0])
    if state not in _USABLE:
        raise UsageError(
            f"subscription {name} ({subscription}) is {state.lower()}: have it enabled again, or name "
            "another with --subscription"
        )
    return Identity(subscription, name, tenant, region, provenance)


def _ask(clients: Clients) -> tuple[dict[str, Any], str]:
    """Get the subscription, and what the endpoint says about itself."""
    subscription = clients.cloud.subscription
    request = HttpRequest("GET", f"/subscriptions/{subscription}", params={"api-version": SUBSCRIPTIONS_API})
    try:
        answer = clients.resource.send_request(request)
        answer.raise_for_status()
        return answer.json(), answer.headers.get(PROVENANCE_HEADER, Provenance.AZURE)
    except (ServiceRequestError, ServiceResponseError) as error:
        raise DiskbookError(f"Azure cannot be reached: {refusals.message(error)}") from error
    except AzureError as error:
        text = refusals.with_advice(error)
        if refusals.code(error):
            text = f"Azure does not let us use subscription {subscription}: {text}"
        raise UsageError(text) from error
    except ValueError as error:
        raise DiskbookError(f"Azure's answer about subscription {subscription} is not JSON") from error
