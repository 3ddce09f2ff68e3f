"""Make the key pairs of a run: ours to sign in with, and the host key of each machine."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_ssh_private_key,
)

from diskbook.cloud.azure import expiry
from diskbook.facts import client
from diskbook.facts.errors import DiskbookError
from diskbook.facts.files import write_atomic, write_once
from diskbook.tools import registry

QUIET = "/etc/apt/apt.conf.d/99diskbook"
# What apt.systemd.daily goes by (its own comments): 0 disables it, also where its timers come before they are
# masked. Updates would fall into a measurement, as on Windows, where `requests.os_profile` turns them off.
_QUIET_APT = 'APT::Periodic::Enable "0";\nAPT::Periodic::Unattended-Upgrade "0";\n'
_LOUD = (
    "apt-daily.timer apt-daily-upgrade.timer apt-daily.service apt-daily-upgrade.service unattended-upgrades"
)


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


def has_run_key(folder: Path) -> bool:
    """Whether the run's private key is here; it never leaves the client that made it."""
    return (folder / "keys" / "id_ed25519").exists()


def run_key(folder: Path) -> Path:
    """Path of the run's private key, made on first use, readable by the owner only.

    Its public key is signed: a key that somebody put into the folder would open the machines to them.

    Raises DiskbookError when there is one that was not made by this client for this run.
    """
    path = folder / "keys" / "id_ed25519"
    if not path.exists():
        path.parent.mkdir(mode=0o700, exist_ok=True)
        pair = new_pair("diskbook")
        write_atomic(path.with_suffix(".pub"), pair.public + "\n")
        write_atomic(
            path.with_suffix(".signature"), client.sign("key", folder.name, pair.public) + "\n", 0o600
        )
        write_once(path, pair.private)
    _check_own(path, folder.name)
    return path


def _check_own(path: Path, run: str) -> None:
    """Raise DiskbookError unless this client made the key pair, of which both parts belong together."""
    try:
        pair = _pair_of(path.read_bytes(), path.with_suffix(".pub").read_text("utf-8").strip())
        signature = path.with_suffix(".signature").read_text("ascii").strip()
    except (OSError, ValueError, TypeError, UnsupportedAlgorithm):
        signature = None
    if signature is None or not client.is_signed(signature, "key", run, pair.public):
        raise DiskbookError(
            f"{path} was not made here for run {run}, so it is not used; remove the folder {path.parent}: "
            "machines that stand are deleted by 'diskbook teardown', others then get a new key"
        )


def _pair_of(private: bytes, public: str) -> KeyPair:
    """A key pair as its two files have it; raises ValueError when they do not belong together."""
    key = load_ssh_private_key(private, None).public_key()
    if key.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode() != public.rpartition(" ")[0]:
        raise ValueError("the public key is another one")
    return KeyPair("", public)


def cloud_init(host_key: KeyPair, expires_utc: str | None = None) -> str:
    """cloud-init user data: host key and tools, no updates meanwhile, and a shutdown when the run expires.

    The machine must not make keys of its own, or the client would not know it: where `ssh_keys` are given,
    cloud-init makes none (its module cc_ssh; an empty `ssh_genkeytypes` would violate its schema).
    """
    timed = expiry.cloud_config(expires_utc) if expires_utc else {}
    config: dict[str, Any] = {
        "ssh_deletekeys": True,
        "ssh_keys": {"ed25519_private": host_key.private, "ed25519_public": host_key.public},
        "package_update": True,
        "packages": [*registry.packages("linux"), "sg3-utils"],
        "write_files": [*timed.get("write_files", []), {"path": QUIET, "content": _QUIET_APT}],
        "runcmd": [*timed.get("runcmd", []), ["sh", "-c", f"systemctl mask --now {_LOUD} || true"]],
    }
    return "#cloud-config\n" + yaml.safe_dump(config)
