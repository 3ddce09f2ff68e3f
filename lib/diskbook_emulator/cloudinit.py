"""What an emulated machine reads of cloud-init's user data: the host keys, which the client made, the files
that are written, and when it is to shut itself down."""

import re
from datetime import datetime

import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

KEY_TYPES = ("ed25519", "ecdsa", "rsa")
# Of systemd's calendar times only the plain one: no emulated machine needs another.
_ON_CALENDAR = re.compile(r"^OnCalendar=(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) UTC$", re.MULTILINE)


def host_keys(custom_data: str) -> dict[str, tuple[str, str]]:
    """Return the SSH host keys of a ``#cloud-config`` text.

    - `custom_data`: the decoded user data. Only `ssh_keys` is read here: an emulated machine installs
      nothing.

    Returns ``{type: (private key in OpenSSH's format, public key line)}``, empty without `ssh_keys`.

    Raises RuntimeError: the text is not YAML, or a private key comes without its public one.
    """
    if not custom_data.lstrip().startswith("#cloud-config"):
        return {}
    try:
        config = yaml.safe_load(custom_data)
    except yaml.YAMLError as error:
        raise RuntimeError(f"customData is not valid cloud-init YAML: {error}") from error
    keys = config.get("ssh_keys") if isinstance(config, dict) else None
    return {} if keys is None else _pairs(keys)


def shutdown_at(custom_data: str) -> datetime | None:
    """Return when a timer of systemd in a ``#cloud-config`` text shuts the machine down; None without one."""
    timers = [content for path, content in written_files(custom_data) if path.endswith(".timer")]
    times = [match[1] for text in timers for match in _ON_CALENDAR.finditer(text)]
    return min((datetime.fromisoformat(f"{time}+00:00") for time in times), default=None)


def written_files(custom_data: str) -> list[tuple[str, str]]:
    """Return path and content of each file that a ``#cloud-config`` text writes."""
    if not custom_data.lstrip().startswith("#cloud-config"):
        return []
    try:
        config = yaml.safe_load(custom_data)
    except yaml.YAMLError:
        return []  # the machine's creation has told that
    files = (config.get("write_files") if isinstance(config, dict) else None) or []
    return [(str(file.get("path", "")), str(file.get("content", ""))) for file in files]


def _pairs(keys: object) -> dict[str, tuple[str, str]]:
    if not isinstance(keys, dict):
        raise RuntimeError("customData: ssh_keys must map names such as ed25519_private to keys")
    pairs = {}
    for kind in KEY_TYPES:
        private, public = keys.get(f"{kind}_private"), keys.get(f"{kind}_public")
        if private is None:
            continue
        if public is None:
            raise RuntimeError(f"customData: ssh_keys has {kind}_private but no {kind}_public")
        pairs[kind] = (str(private).strip() + "\n", str(public).strip() + "\n")
    return pairs


def host_key_pair(private_key: str) -> dict[str, tuple[str, str]]:
    """Return a host key as `host_keys` does, given its private part.

    Raises RuntimeError when it is not a private key in OpenSSH's format, or of a kind that machines do not
    take.
    """
    try:
        key = serialization.load_ssh_private_key(private_key.encode(), None)
    except ValueError as error:
        raise RuntimeError(f"the host key is no private key in OpenSSH's format: {error}") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise RuntimeError("the host key is not an ed25519 key")
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return {"ed25519": (private_key.strip() + "\n", public.decode() + "\n")}


def new_host_key() -> dict[str, tuple[str, str]]:
    """Make an ed25519 host key, as a machine does whose user data bring none."""
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return {"ed25519": (private.decode(), public.decode() + "\n")}
