"""Make the key pairs of a run: ours to sign in with, and the host key of each machine."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from diskbook.azure import expiry
from diskbook.base.files import write_once
from diskbook.tools import registry


@dataclass(frozen=True)
class KeyPair:
    """An ed25519 key pair in OpenSSH's formats."""

    private: str = field(repr=False)
    public: str


def new_pair(comment: str) -> KeyPair:
    """Make a key pair."""
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()).decode()
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    return KeyPair(private, f"{public} {comment}")


def run_key(folder: Path) -> Path:
    """Path of the run's private key, made on first use, readable by the owner only."""
    path = folder / "keys" / "id_ed25519"
    if not path.exists():
        path.parent.mkdir(mode=0o700, exist_ok=True)
        pair = new_pair("diskbook")
        path.with_suffix(".pub").write_text(pair.public + "\n")
        write_once(path, pair.private)
    return path


def cloud_init(host_key: KeyPair, expires_utc: str | None = None) -> str:
    """cloud-init user data: give the machine its host key and its tools, and shut down when the run expires.

    The machine must not make keys of its own, or the client would not know it.
    """
    config: dict[str, Any] = {
        "ssh_deletekeys": True,
        "ssh_genkeytypes": [],
        "ssh_keys": {"ed25519_private": host_key.private, "ed25519_public": host_key.public},
        "package_update": True,
        "packages": [*registry.packages("linux"), "sg3-utils"],
        **(expiry.cloud_config(expires_utc) if expires_utc else {}),
    }
    return "#cloud-config\n" + yaml.safe_dump(config)
