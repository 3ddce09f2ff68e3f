"""Loopback addresses and ports for an emulator, so that several run side by side."""

import hashlib
import os
import socket
import time
from collections.abc import Collection
from pathlib import Path

PORT_FIRST = 20_000  # below the kernel's ephemeral range, so that no outgoing connection takes a port
PORT_COUNT = 12_000


def network_of(folder: Path) -> str:
    """Return the first three bytes of an emulator's addresses, e.g. ``127.83.201``.

    They follow from the state folder and the user, so a restarted emulator keeps them and two emulators
    rarely share them; where they do, the free port tells them apart.
    """
    digest = hashlib.sha256(f"{os.getuid()}:{folder}".encode()).digest()
    return f"127.{1 + digest[0] % 254}.{digest[1]}"


def is_free(address: str, port: int) -> bool:
    """Tell whether a listener could bind this address and port now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError:
            return False
        return True


def becomes_free(address: str, port: int) -> bool:
    """Tell whether a port is free, waiting a little for a listener that is ending."""
    deadline = time.monotonic() + 1.0
    while not is_free(address, port):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def free_port(address: str, salt: str = "") -> int:
    """Return a port that is free on the address, the same one each time where possible.

    Raises OSError when no port of the range can be bound.
    """
    start = int.from_bytes(hashlib.sha256(f"{address}:{salt}".encode()).digest()[:4], "big")
    for step in range(PORT_COUNT):
        port = PORT_FIRST + (start + step) % PORT_COUNT
        if is_free(address, port):
            return port
    raise OSError(f"no free port between {PORT_FIRST} and {PORT_FIRST + PORT_COUNT - 1} on {address}")


def next_address(network: str, taken: Collection[str]) -> str:
    """Return an address of the network that no machine has yet.

    Raises RuntimeError when all 253 addresses are taken.
    """
    for last in range(2, 255):
        address = f"{network}.{last}"
        if address not in taken:
            return address
    raise RuntimeError(f"the emulator's network {network}.0/24 is full: delete machines first")
