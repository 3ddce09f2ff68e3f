"""The secret of this client, and the signatures and numbers that it gives to manifests.

A client is a user on a computer. The secret lies outside of all run folders, readable by that user alone; a
folder, a key or a tag that carries its signature (HMAC-SHA256, RFC 2104) was made here.

Manifests are numbered per run folder, so that an older one is noticed if somebody puts it back.

The newest number of each folder lies next to the secret of this client (`client.home`). Who can only write
to run folders does not reach it. A note outlives its folder: an older manifest may be put back there later.
"""

import contextlib
import hashlib
import hmac
import json
import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

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

    Returns 64 hexadecimal digits.

    Raises DiskbookError when the secret cannot be kept, or others can read or replace it.
    """
    return _signature(_secret() or _new_secret(), purpose, parts)


def is_signed(signature: object, purpose: str, *parts: str) -> bool:
    """Whether a signature is this client's, for that purpose and those words; nothing is written.

    Raises DiskbookError when others can read or replace the secret.
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


_REVISION_PATIENCE_S = 10.0


def newest_revision(folder: Path) -> int:
    """Newest number that was noted for a run folder; 0 where there is none."""
    with contextlib.suppress(OSError, ValueError):
        return int(_note_of(folder).read_text("ascii"))
    return 0


def note_revision(folder: Path, number: int) -> None:
    """Take a number for the newest of a run folder, also where it is lower than the one before."""
    with _opened(folder) as file:
        _write(file, number)


@contextlib.contextmanager
def following_revision(folder: Path, number: int) -> Iterator[int]:
    """Yield the next number for a run folder; when the with block has written the manifest, it is noted.

    - `folder`: locked meanwhile: of several writers the last one has the highest number.
    - `number`: the one that its manifest has now.

    Raises DiskbookError when another process writes this manifest for long.
    """
    with _opened(folder) as file:
        following = max(newest_revision(folder), number) + 1
        yield following
        _write(file, following)


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[IO[bytes] | None]:
    """Lock the note of a run folder; None where it cannot be written, which must keep no run from its end."""
    path, file = _note_of(folder), None
    busy = DiskbookError(f"the manifest of {folder} is being written by another process for long; try again")
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            home().mkdir(mode=0o700, parents=True, exist_ok=True)
            path.parent.mkdir(mode=0o700, exist_ok=True)
            file = stack.enter_context(files.locked(path, busy, _REVISION_PATIENCE_S))
        yield file


def _write(file: IO[bytes] | None, number: int) -> None:
    if file is not None:
        with contextlib.suppress(OSError):
            file.truncate(0)
            file.write(str(number).encode())
            file.flush()


def _note_of(folder: Path) -> Path:
    name = hashlib.sha256(str(folder.resolve()).encode("utf-8", "surrogateescape")).hexdigest()[:32]
    return home() / "revisions" / name
