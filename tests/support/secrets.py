"""Secrets that are planted around a run, and looking for them in whatever it leaves."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

JWT = ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in (
    b'{"typ":"JWT","alg":"RS256"}', b'{"aud":"https://management.azure.com"}', b"signature-of-the-test"
))  # fmt: skip
PLANTED = {
    "AZURE_CLIENT_SECRET": "aB3" + "8Q~" + "planted-client-secret-of-the-tests",
    "AZURE_PASSWORD": "planted-password-of-the-tests",
    "IDENTITY_HEADER": "planted-identity-header",
    "ARM_ACCESS_TOKEN": JWT,
}
"""What stands in the environment of who measures."""


def contents(folder: Path) -> Iterator[tuple[Path, bytes]]:
    """Every file of a run, unpacked; its private key aside, which lies in keys/ while it is needed."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.parent.name != "keys":
            content = path.read_bytes()
            yield path, gzip.decompress(content) if path.suffix == ".gz" else content


def forms(secret: bytes) -> list[bytes]:
    """A secret as it is, and as it looks within base64, whatever stands before it."""
    found = [secret]
    for shift in range(3):
        coded = base64.b64encode(b"x" * shift + secret)
        found.append(coded[(shift * 8 + 5) // 6 + 1 : len(coded) - 4])
    return found


def spilt(texts: list[tuple[Any, bytes]], secrets: dict[str, bytes]) -> list[str]:
    return [
        f"{name} in {where}"
        for where, text in texts
        for name, secret in secrets.items()
        if any(form in text for form in forms(secret))
    ]
