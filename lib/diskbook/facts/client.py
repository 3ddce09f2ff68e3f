"""The secret of this client, and what is signed with it: what a run folder says may be anybody's word.

A client is a user on a computer. The secret lies outside of all run folders, readable by that user alone; a
folder, a key or a tag that carries its signature (HMAC-SHA256, RFC 2104) was made here.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from diskbook.facts import files
from diskbook.facts.errors import DiskbookError

SIGNATURE = "signature"
"""Key of a run's manifest: this client's, over all other keys."""
_SECRET, _LOCK = "secret", "lock"
_SECRET_BYTES = 32
_PATIENCE_S = 10.0


def home() -> Path:
    """Folder of what this client keeps about itself: diskbook in $XDG_STATE_HOME, else in ~/.local/state."""
    place = os.environ.get("XDG_STATE_HOME", "")
    return (Path(place) if place.startswith("/") else Path.home() / ".local" / "state") / "diskbook"


def sign(purpose: str, *parts: str) -> str:
    """Sign words for a purpose; the secret is made on first use.

    Returns
    -------
    str
        64 hexadecimal digits.

    Raises
    ------
    DiskbookError
        When the secret cannot be kept, or others can read or replace it.
    """
    return _signature(_secret() or _new_secret(), purpose, parts)


def is_signed(signature: object, purpose: str, *parts: str) -> bool:
    """Whether a signature is this client's, for that purpose and those words; nothing is written.

    Raises
    ------
    DiskbookError
        When others can read or replace the secret.
    """
    if not isinstance(signature, str):
        return False
    _secret()
    known = (_signature(secret, purpose, parts) for secret in _read_secrets.get(home(), ()))
    return any(hmac.compare_digest(signature.encode(), each.encode()) for each in known)


def missing_secret() -> Path | None:
    """Where the secret of this client should be and is not; None where it is there."""
    path = home() / _SECRET
    return None if path.exists() else path


def is_signed_manifest(manifest: Mapping[str, Any], name: str) -> bool:
    """Whether this client wrote a manifest as it stands, for a run of that name."""
    return is_signed(manifest.get(SIGNATURE), *manifest_words(manifest)) and manifest["run"] == name


def manifest_words(manifest: Mapping[str, Any]) -> tuple[str, str]:
    """What a manifest's signature is for, and over."""
    content = {key: value for key, value in manifest.items() if key != SIGNATURE}
    return "manifest", json.dumps(content, sort_keys=True)


def _signature(secret: bytes, purpose: str, parts: tuple[str, ...]) -> str:
    return hmac.new(secret, json.dumps([purpose, *parts]).encode(), hashlib.sha256).hexdigest()


_read_secrets: dict[Path, list[bytes]] = {}
"""Secrets that this process has read, by folder. What a process has begun it can end, should the file go."""


def _secret() -> bytes | None:
    """The secret, None where there is none yet; where the file has gone meanwhile, what this process read."""
    path = home() / _SECRET
    read = _read_secrets.setdefault(home(), [])
    try:
        for place in (path.parent, path):
            _check_own(place)
        secret = bytes.fromhex(path.read_text("ascii"))
        if len(secret) != _SECRET_BYTES:
            raise ValueError(f"{len(secret)} bytes")
    except (FileNotFoundError, NotADirectoryError):
        return read[-1] if read else None
    except (OSError, ValueError) as error:
        raise DiskbookError(f"{path} cannot be read ({error}): {_REMEDY}") from None
    if secret not in read:
        read.append(secret)
    return secret


_REMEDY = "remove it; runs begun so far are then not known here any more"


def _check_own(path: Path) -> None:
    """Raise DiskbookError for a folder or file that is a link, or that another user can read or replace."""
    info = path.lstat()
    if stat.S_ISLNK(info.st_mode) or info.st_uid != os.getuid() or stat.S_IMODE(info.st_mode) & 0o077:
        raise DiskbookError(f"{path} is a link, or not yours alone: {_REMEDY}")


def _new_secret() -> bytes:
    """Make the secret, unless another process has just done so."""
    folder = home()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        busy = DiskbookError(f"{folder} is held by another process for long; try again")
        with files.locked(folder / _LOCK, busy, _PATIENCE_S):
            if not (folder / _SECRET).exists():
                files.write_atomic(folder / _SECRET, secrets.token_hex(_SECRET_BYTES), 0o600)
    except OSError as error:
        raise DiskbookError(
            f"cannot keep a secret of this client in {folder} ({error.strerror}): mend that, or set "
            "XDG_STATE_HOME to a folder of your own"
        ) from None
    secret = _secret()
    assert secret is not None
    return secret
