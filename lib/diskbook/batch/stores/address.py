"""Addresses of runs and of the stores that hold them: file://, abfs:// and s3://.

A store is a folder of a file system or a place in a container or bucket; a run is a folder in a store.
"""

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from diskbook.facts.errors import UsageError

_EXAMPLES = "file:///FOLDER, abfs://CONTAINER/FOLDER or s3://BUCKET/FOLDER"
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
SCHEMES = ("file", "abfs", "abfss", "s3")
"""abfs and abfss are one: adlfs always talks TLS to Azure."""


@dataclass(frozen=True)
class Address:
    """A place in a store; `path` begins with the container or bucket, or with a slash for file://."""

    scheme: str
    path: str

    def __str__(self) -> str:
        return f"{self.scheme}://{self.path}"

    @property
    def name(self) -> str:
        """Last part: of a run's address the run's name."""
        return PurePosixPath(self.path).name

    @property
    def parent(self) -> "Address":
        """The address that holds it: of a run's the store's."""
        return Address(self.scheme, str(PurePosixPath(self.path).parent))

    def __truediv__(self, name: str) -> "Address":
        """Address of what lies in it."""
        return Address(self.scheme, f"{self.path.rstrip('/')}/{name}")


def parse(text: str) -> "Address":
    """Read an address.

    Raises UsageError when its scheme is unknown, it is cut short, leads upwards, or has a key in it.
    """
    match = _ADDRESS.fullmatch(text)
    if match is None:
        raise UsageError(f"{text!r} is not an address; write {_EXAMPLES}")
    scheme, path = match[1].lower(), match[2].rstrip("/")
    _check_no_key(scheme, path)
    if scheme not in SCHEMES:
        raise UsageError(f"{scheme}:// is not a kind of store; write {_EXAMPLES}")
    absolute = path.startswith("/")
    if not path.strip("/") or absolute != (scheme == "file"):
        raise UsageError(f"{text!r} names no place; write {_EXAMPLES}")
    if any(part in ("", ".", "..") for part in path.removeprefix("/").split("/")):
        raise UsageError(f"{text!r} has an empty part, or leads upwards; write {_EXAMPLES}")
    return Address(scheme, path)


def run(text: str) -> Address:
    """Read the address of a run, which lies in a store.

    Raises UsageError when it names a container or bucket alone, or see `parse`.
    """
    address = parse(text)
    if "/" not in address.path.strip("/") and address.scheme != "file":
        raise UsageError(f"{text!r} is a whole container; name a run in it: {address}/RUN")
    return address


def _check_no_key(scheme: str, path: str) -> None:
    """Raise UsageError for what signs in (user:password@, ?sig=...): addresses are printed and recorded."""
    if "?" in path or "#" in path or re.match(r"[^/]*:[^/]*@", path):
        place = path.rsplit("@", maxsplit=1)[-1].split("?", maxsplit=1)[0]
        raise UsageError(
            f"the address {scheme}://{place} was given with a key or a query, and addresses are printed: "
            "sign in by the environment (AZURE_STORAGE_ACCOUNT_NAME, and 'az login' or a managed identity)"
        )
