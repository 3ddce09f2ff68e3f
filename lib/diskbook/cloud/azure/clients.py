"""Make the SDK clients of Azure and of the emulator, and choose how often to poll an operation.

`Cloud` holds all differences between the two: endpoint, CA, credential, and the scale of waiting.

The models of the SDK are filled in before threads share them. A model class gets the names and types of its
fields when its first object is made (`Model.__new__` in `_utils/model_base.py`), without a lock. A thread
that reads the class meanwhile raises "RuntimeError: dictionary changed size during iteration".

Azure suggests a polling interval in some answers (50 s for a new machine, 10 s for a network). In others the
SDK waits 30 s. A run would then wait for polls, not for Azure. So polls start at one second, or two where
Azure expects a minute. Later the interval is 5 % of the time that the operation has taken.

This takes more requests: 51 polls in the 168 s of a zonal machine, where the SDK sends 6. Azure Compute
allows a bucket of 45 polls per operation and adds 15 per minute (Microsoft, "Compute throttling limits", Get
Operation; recordings of azure-cli of 2026 show that the bucket belongs to the operation). This pace sends at
most 44 polls in the first minute and 15 in the second, then fewer. The retry policy handles a throttled
answer (429).
"""

import functools
import importlib
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from azure.core.credentials import AccessToken, AccessTokenInfo
from azure.core.pipeline.policies import SansIOHTTPPolicy
from azure.core.rest import HttpRequest

from diskbook.cloud.azure.retry import (
    POLL_S,
    BoundedRetryPolicy,
    Exchange,
    RequestCount,
    ScaledTransport,
    Tell,
)
from diskbook.design.vocabulary import Provenance

_filling = threading.Lock()


@functools.cache
def fill_models(package: str) -> None:
    """Fill in all models of a package of the SDK ("azure.mgmt.compute"), so that threads may use them."""
    models = vars(importlib.import_module(f"{package}.models")).values()
    ancestors = {cls for model in models if isinstance(model, type) for cls in model.__mro__}
    with _filling:
        for base in ancestors:
            if "_calculated" in vars(base):  # names of the classes that are filled in
                for model in set(_subclasses(base)):
                    model.__new__(model)


def _subclasses(cls: Any) -> Iterator[Any]:
    for subclass in cls.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)


SHARE = 0.05  # of the time so far
LEAST_S = 1

_POLL = re.compile(r"/(locations/[^/]+/\w*operations|operation(results|statuses))/[^/]+$", re.IGNORECASE)


def poll_interval_s(so_far_s: float, asked_s: float = 0.0) -> int:
    """Whole seconds to the next poll of an operation: by the time so far, and the longest Azure named."""
    return max(LEAST_S, round(max(so_far_s, asked_s) * SHARE))


class PollingPolicy(SansIOHTTPPolicy[Any, Any]):
    """Puts our own Retry-After into answers to polls, which is what the SDK's poller goes by."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, tuple[float, float]] = {}  # waited so far, and asked for, by operation

    def on_response(self, request: Any, response: Any) -> None:
        """Set the time of the next poll."""
        sent, answer = request.http_request, response.http_response
        path = urlsplit(sent.url).path
        if sent.method != "GET" or answer.status_code >= 400 or not _POLL.search(path):
            return
        named = answer.headers.get("Retry-After", "")
        with self._lock:
            so_far_s, asked_s = self._known.get(path, (0.0, 0.0))
            asked_s = max(asked_s, float(named) if named.isdigit() else 0.0)
            seconds = poll_interval_s(so_far_s, asked_s)
            self._known[path] = (so_far_s + seconds, asked_s)
        answer.headers["Retry-After"] = str(seconds)


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
    admin_user: str = "diskbook"
    ssh_source: str = "127.0.0.0/8"  # from where the network lets in SSH; by default nobody from outside
    emulated: bool = False  # the endpoint is an emulator's, whatever the kind

    @property
    def provenance(self) -> Provenance:
        """What every result made here is labelled with."""
        return Provenance.AZURE if self.kind == "azure" and not self.emulated else Provenance.EMULATED


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


@dataclass(frozen=True)
class Clients:
    """The clients the workbook uses. Each is imported and made when first asked for: they are large.

    They take bodies as plain dicts in wire names, which the SDK's annotations do not allow for.

    - `tell`: takes a line for the user where a request has to wait; by default it is printed.
    - `exchange`: sends a request by the function given and records both, if the run is to be recorded.
    """

    cloud: Cloud
    tell: Tell = field(default=partial(print, flush=True), repr=False)
    _request_count: RequestCount = field(default_factory=RequestCount, repr=False)
    exchange: Exchange | None = field(default=None, repr=False)

    @cached_property
    def compute(self) -> Any:
        """Machines, disks, sizes."""
        return self._make("azure.mgmt.compute", "ComputeManagementClient")

    @cached_property
    def network(self) -> Any:
        """Networks, addresses, interfaces."""
        return self._make("azure.mgmt.network", "NetworkManagementClient")

    @cached_property
    def resource(self) -> Any:
        """Resource groups."""
        return self._make("azure.mgmt.resource.resources", "ResourceManagementClient")

    @cached_property
    def storage(self) -> Any:
        """Storage accounts, for the witness of two nodes."""
        return self._make("azure.mgmt.storage", "StorageManagementClient")

    @property
    def requests(self) -> Counter[str]:
        """Requests sent so far, retries and polls included, by method and kind: "PUT disks"."""
        return self._request_count.requests

    @property
    def waited_s(self) -> float:
        """Waiting so far for retries and between polls, in unscaled seconds, all threads added up."""
        return self._request_count.waited_s

    @property
    def saved_s(self) -> float:
        """Waiting that the emulator's time scale has saved so far, in seconds; 0 on Azure."""
        return self._request_count.saved_s

    def options(self) -> dict[str, Any]:
        """Keywords for any client of the SDK, so that it counts, waits and retries as these do.

        Each client needs its own: a transport belongs to one client only.
        """
        cloud = self.cloud
        who = "Azure" if cloud.provenance == Provenance.AZURE else "Azure (emulated)"
        verify = str(cloud.ca) if cloud.ca else True
        waits = cloud.time_scale, self._request_count
        return {
            "transport": ScaledTransport(*waits, self.exchange, connection_verify=verify),
            "retry_policy": BoundedRetryPolicy(who, self.tell),
            "per_call_policies": [PollingPolicy()],
        }

    def _make(self, package: str, name: str) -> Any:
        fill_models(package)
        kind = getattr(importlib.import_module(package), name)
        cloud = self.cloud
        options = {**self.options(), "polling_interval": POLL_S}
        if cloud.endpoint is not None:
            options["base_url"] = cloud.endpoint
        return kind(cloud.credential, cloud.subscription, **options)

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
