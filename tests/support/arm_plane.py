"""A control plane served over TLS for tests, the unmodified Azure clients for it, and a recording backend."""

from __future__ import annotations

import base64
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests
import uvicorn
from azure.core.credentials import AccessToken, AccessTokenInfo
from azure.core.exceptions import HttpResponseError
from azure.core.pipeline.transport import RequestsTransport
from azure.mgmt.compute import ComputeManagementClient
from azure.mgmt.network import NetworkManagementClient
from azure.mgmt.resource.resources import ResourceManagementClient

from diskbook.cloud.azure import clients
from diskbook_emulator.arm import Settings, create_app
from diskbook_emulator.arm.operations import Operations, Work
from diskbook_emulator.server import make_ca_and_cert
from diskbook_emulator.types import DiskSpec, VmAddress, VmSpec

SUBSCRIPTION = "11111111-2222-3333-4444-555555555555"
TOKEN = "a-token-of-the-tests"
HOST = "127.83.0.1"
LOCATION = "westeurope"


class RecordingBackend:
    """Keeps every call in order; `fail[name]` is the message with which the next call of that name fails."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.fail: dict[str, str] = {}
        self._lock = threading.Lock()

    def _note(self, name: str, *what: Any) -> None:
        with self._lock:
            self.calls.append((name, *what))
            if name in self.fail:
                raise RuntimeError(self.fail.pop(name))

    def named(self, name: str) -> list[tuple[Any, ...]]:
        with self._lock:
            return [call[1:] for call in self.calls if call[0] == name]

    def start_vm(self, vm: VmSpec) -> VmAddress:
        self._note("start_vm", vm)
        return VmAddress("127.83.7.7", 20022)

    def stop_vm(self, vm_id: str, notice: bool = False) -> None:
        self._note("stop_vm", vm_id)

    def delete_vm(self, vm_id: str) -> None:
        self._note("delete_vm", vm_id)

    def set_up(self, vm_id: str, host_key: str, authorized_keys: tuple[str, ...]) -> None:
        self._note("set_up", vm_id, host_key, authorized_keys)

    def reached_privately(self, vm_id: str, private: str, at: VmAddress) -> None:
        self._note("reached_privately", vm_id, private, at)

    def attach(self, vm_id: str, lun: int, disk: DiskSpec, caching: str) -> None:
        self._note("attach", vm_id, lun, disk, caching)

    def detach(self, vm_id: str, lun: int) -> None:
        self._note("detach", vm_id, lun)

    def update_disk(self, disk: DiskSpec) -> None:
        self._note("update_disk", disk)

    def delete_disk(self, disk_id: str) -> None:
        self._note("delete_disk", disk_id)


class Credential:
    """Hands out one token."""

    def __init__(self, token: str = TOKEN) -> None:
        self.token = token

    def get_token(self, *scopes: str, **options: Any) -> AccessToken:
        return AccessToken(self.token, int(time.time()) + 3600)

    def get_token_info(self, *scopes: str, options: Any = None) -> AccessTokenInfo:
        return AccessTokenInfo(self.token, int(time.time()) + 3600)


class ScaledSleep(RequestsTransport):
    """Waits a thousandth of what the clients ask for, and notes what they asked for."""

    def __init__(self, slept: list[float], **options: Any) -> None:
        super().__init__(**options)
        self.slept = slept

    def sleep(self, duration: float) -> None:
        self.slept.append(duration)
        super().sleep(min(duration * 0.001, 0.05))


class World:
    """A served control plane with clients."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.folder = folder
        self.settings = Settings(SUBSCRIPTION, "a-tenant", TOKEN, **{"time_scale": 0.0005, **settings})
        self.backend = RecordingBackend()
        self.ca, self.cert, self.key = make_ca_and_cert(folder / "tls", HOST)
        self.slept: list[float] = []
        self._server: uvicorn.Server | None = None
        self.serve()

    def serve(self) -> None:
        self.app = create_app(self.settings, self.backend, self.folder / "state.sqlite")
        # With the protocol named, asyncio sets TCP_NODELAY; without it every answer waits 40 ms.
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        sock.bind((HOST, 0))
        self.url = f"https://{HOST}:{sock.getsockname()[1]}"
        config = uvicorn.Config(
            self.app, log_level="critical", ssl_certfile=str(self.cert), ssl_keyfile=str(self.key)
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([sock],), daemon=True)
        self._thread.start()
        while not self._server.started:
            time.sleep(0.005)
        self.compute = self.client(ComputeManagementClient)
        self.network = self.client(NetworkManagementClient)
        self.resource = self.client(ResourceManagementClient)

    def client(self, kind: Any, token: str = TOKEN) -> Any:
        clients.fill_models(kind.__module__.rpartition(".")[0])
        transport = ScaledSleep(self.slept, connection_verify=str(self.ca))
        transport.open()
        return kind(
            Credential(token), SUBSCRIPTION, base_url=self.url, transport=transport, polling_interval=10
        )

    def stop(self) -> None:
        assert self._server is not None
        for client in (self.compute, self.network, self.resource):
            client.close()
        self._server.should_exit = True
        self._server.force_exit = True
        self._thread.join(10)
        self.app.state.plane.close()  # uvicorn leaves the lifespan out when it is hurried

    def raw(self, method: str, path: str, **options: Any) -> requests.Response:
        """Send a bare request, with the token unless headers are given."""
        options.setdefault("headers", {"Authorization": f"Bearer {TOKEN}"})
        return requests.request(method, self.url + path, verify=str(self.ca), timeout=60, **options)

    def group(self, name: str, location: str = LOCATION) -> str:
        self.resource.resource_groups.create_or_update(name, {"location": location, "tags": {"run": name}})
        return name

    def disk(self, group: str, name: str, sku: str = "Premium_LRS", size: int = 1024, **extra: Any) -> Any:
        zones = extra.pop("zones", None)
        creation = {"createOption": "Empty", **extra.pop("creation", {})}
        body: dict[str, Any] = {
            "location": extra.pop("location", LOCATION),
            "sku": {"name": sku},
            "properties": {"creationData": creation, "diskSizeGB": size, **extra},
        }
        if zones:
            body["zones"] = zones
        return self.compute.disks.begin_create_or_update(group, name, body).result()

    def nic(self, group: str, name: str, public: bool = True, accelerated: bool = False) -> Any:
        """Make an interface with what it needs."""
        vnet = self.network.virtual_networks.begin_create_or_update(
            group,
            "vnet",
            {
                "location": LOCATION,
                "properties": {
                    "addressSpace": {"addressPrefixes": ["10.0.0.0/16"]},
                    "subnets": [{"name": "default", "properties": {"addressPrefix": "10.0.0.0/24"}}],
                },
            },
        ).result()
        row: dict[str, Any] = {"subnet": {"id": vnet.subnets[0].id}}
        if public:
            address = self.network.public_ip_addresses.begin_create_or_update(
                group,
                f"{name}-ip",
                {
                    "location": LOCATION,
                    "sku": {"name": "Standard"},
                    "properties": {"publicIPAllocationMethod": "Static"},
                },
            ).result()
            row["publicIPAddress"] = {"id": address.id, "properties": {"deleteOption": "Delete"}}
        body = {
            "location": LOCATION,
            "properties": {
                "ipConfigurations": [{"name": "ip", "properties": row}],
                "enableAcceleratedNetworking": accelerated,
            },
        }
        return self.network.network_interfaces.begin_create_or_update(group, name, body).result()

    def vm_body(self, nic_id: str, zone: str | None = "1", size: str = "Standard_D4as_v4") -> dict[str, Any]:
        body: dict[str, Any] = {
            "location": LOCATION,
            "properties": {
                "hardwareProfile": {"vmSize": size},
                "storageProfile": {
                    "imageReference": {
                        "publisher": "Canonical",
                        "offer": "ubuntu-24_04-lts",
                        "sku": "server",
                        "version": "latest",
                    },
                    "osDisk": {"createOption": "FromImage", "deleteOption": "Delete"},
                    "dataDisks": [],
                },
                "osProfile": {
                    "computerName": "vm",
                    "adminUsername": "bench",
                    "customData": base64.b64encode(b"#cloud-config\n").decode(),
                    "linuxConfiguration": {
                        "disablePasswordAuthentication": True,
                        "ssh": {
                            "publicKeys": [
                                {"path": "/home/bench/.ssh/authorized_keys", "keyData": "ssh-ed25519 AAAA me"}
                            ]
                        },
                    },
                },
                "networkProfile": {
                    "networkInterfaces": [
                        {"id": nic_id, "properties": {"primary": True, "deleteOption": "Delete"}}
                    ]
                },
            },
        }
        if zone:
            body["zones"] = [zone]
        return body

    def vm(self, group: str, name: str, zone: str | None = "1", size: str = "Standard_D4as_v4") -> Any:
        body = self.vm_body(self.nic(group, f"{name}-nic").id, zone, size)
        return self.compute.virtual_machines.begin_create_or_update(group, name, body).result()

    def attach(self, group: str, name: str, disk_id: str, lun: int = 0, caching: str = "None") -> Any:
        body = {"dataDisksToAttach": [{"diskId": disk_id, "lun": lun, "caching": caching}]}
        return self.change(group, name, body)

    def detach(self, group: str, name: str, disk_id: str) -> Any:
        return self.change(group, name, {"dataDisksToDetach": [{"diskId": disk_id}]})

    def change(self, group: str, name: str, body: dict[str, Any]) -> Any:
        """Attach or detach disks; return the storage profile that the machine then has."""
        self.compute.virtual_machines.begin_attach_detach_data_disks(group, name, body).result()
        return self.compute.virtual_machines.get(group, name).storage_profile

    def faults(self, *faults: dict[str, Any]) -> None:
        answer = self.raw("PUT", "/diskbook/faults", json=list(faults))
        assert answer.status_code == 200, answer.text


@contextmanager
def world(folder: Path, **settings: Any) -> Iterator[World]:
    """Serve a control plane for the length of a with block."""
    made = World(folder, **settings)
    try:
        yield made
    finally:
        made.stop()


@contextmanager
def held_operations() -> Iterator[threading.Event]:
    """Have operations of control planes stay in progress until the event is set; a restart cuts them off."""
    goes_on, run = threading.Event(), Operations._run

    def held(self: Operations, body: Any, work: Work, error: Any) -> None:
        while not goes_on.is_set():
            if self._stop.wait(0.005):
                return
        run(self, body, work, error)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Operations, "_run", held)
        try:
            yield goes_on
        finally:
            goes_on.set()


def refused(call: Callable[[], Any]) -> tuple[int, str, str]:
    """Make a call that must be refused; return HTTP status, Azure's code and message."""
    with pytest.raises(HttpResponseError) as caught:
        call()
    error = caught.value
    assert error.error is not None, error
    return error.status_code, error.error.code, error.error.message
