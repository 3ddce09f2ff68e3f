"""How long Azure's control plane takes for each kind of operation, in seconds."""

from __future__ import annotations

from collections.abc import Mapping

# Recorded: disk create 0.1 to 0.7 s, VM 75 s (zonal 168 s). The others are plausible, not read.
DELAYS_S: Mapping[str, float] = {
    "disk-create": 0.5,
    "disk-update": 0.5,
    "disk-delete": 0.5,
    "vm-create": 75.0,
    "vm-create-zonal": 168.0,
    "vm-update": 5.0,
    "vm-delete": 30.0,
    "vm-start": 20.0,
    "vm-stop": 20.0,
    "vm-deallocate": 30.0,
    "vm-restart": 30.0,
    "vm-extension": 180.0,
    "vm-extension-delete": 10.0,
    "disk-attach": 12.0,
    "disk-detach": 12.0,
    "vnet": 3.0,
    "subnet": 3.0,
    "nic": 0.5,
    "public-ip": 2.0,
    "nsg": 2.0,
    "storage-account": 20.0,
    "network-delete": 5.0,
    "group-delete": 60.0,
    # Until a minute's metrics are there; Microsoft says "a few minutes" of them.
    "metrics": 180.0,
}
