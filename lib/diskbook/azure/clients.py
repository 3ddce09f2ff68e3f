"""Azure SDK clients, the same for Azure and for the emulator.

What differs is in `Cloud`: endpoint, CA, credential, and the scale of waiting.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from azure.core.credentials import AccessToken, AccessTokenInfo
from azure.core.pipeline.transport import RequestsTransport
from azure.core.rest import HttpRequest
from azure.mgmt.compute import ComputeManagementClient
from azure.mgmt.network import NetworkManagementClient
from azure.mgmt.resource.resources import ResourceManagementClient

LOCATIONS_API = "2022-12-01"


@dataclass(frozen=True)
class Cloud:
    """Which Azure to talk to. Holds no secret that is shown: the credential has no readable form."""

    kind: str  # "azure" | "emulator"
    subscription: str
    credential: Any = field(repr=False)
    endpoint: str | None = None
    ca: Path | None = None
    time_scale: float = 1.0

    @property
    def provenance(self) -> str:
        """What every result made here is labelled with."""
        return "azure" if self.kind == "azure" else "emulated"


class StaticToken:
    """A credential that hands out one token, for the loopback endpoint only."""

    def __init__(self, token: str) -> None:
        self._token = token

    def get_token(self, *scopes: str, **kwargs: Any) -> AccessToken:
        """Answer with the token."""
        return AccessToken(self._token, int(time.time()) + 86400)

    def get_token_info(self, *scopes: str, options: Any = None) -> AccessTokenInfo:
        """Answer with the token."""
        return AccessTokenInfo(self._token, int(time.time()) + 86400)


class ScaledSleep(RequestsTransport):
    """A transport that waits (retries, polls) at a scale of real time; nothing else of the SDK changes."""

    def __init__(self, scale: float, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._scale = scale

    def sleep(self, duration: float) -> None:
        """Wait for the scaled duration."""
        super().sleep(duration * self._scale)


@dataclass(frozen=True)
class Clients:
    """The three clients the workbook uses, and the subscription they act in."""

    cloud: Cloud
    compute: ComputeManagementClient
    network: NetworkManagementClient
    resource: ResourceManagementClient

    def zone_map(self, region: str) -> dict[str, str]:
        """Physical zone of each logical one, e.g. {"1": "westeurope-az2"}; empty where there are none.

        Logical numbers differ between subscriptions (locations API, `availabilityZoneMappings`).
        """
        url = f"/subscriptions/{self.cloud.subscription}/locations"
        request = HttpRequest("GET", url, params={"api-version": LOCATIONS_API})
        answer = self.resource.send_request(request)
        answer.raise_for_status()
        rows = [row for row in answer.json()["value"] if row["name"] == region]
        mappings = rows[0].get("availabilityZoneMappings", []) if rows else []
        return {row["logicalZone"]: row["physicalZone"] for row in mappings}


def connect(cloud: Cloud) -> Clients:
    """Make the clients. Nothing is sent before the first call."""
    return Clients(
        cloud,
        ComputeManagementClient(cloud.credential, cloud.subscription, **_keywords(cloud)),
        NetworkManagementClient(cloud.credential, cloud.subscription, **_keywords(cloud)),
        ResourceManagementClient(cloud.credential, cloud.subscription, **_keywords(cloud)),
    )


def _keywords(cloud: Cloud) -> dict[str, Any]:
    """Keywords of one client; a transport belongs to one client only."""
    if cloud.endpoint is None:
        return {}
    transport = ScaledSleep(cloud.time_scale, connection_verify=str(cloud.ca))
    return {"base_url": cloud.endpoint, "transport": transport}
