"""Objects of a store: listed, read, made once, or (a sign of life alone) replaced.

All that two writers could meet in is made by one step that either makes an object whole or finds it there:
a hard link on a file system, If-None-Match on Azure (Put Blob, Put Block List) and S3 (PutObject).
"""

import contextlib
import hashlib
import os
import shutil
import stat
import tempfile
from pathlib import Path
from typing import Any, Protocol

from diskbook.batch.stores.address import Address
from diskbook.batch.stores.retries import PATIENCE_S, Passing, patiently
from diskbook.facts.errors import DiskbookError, UsageError
from diskbook.facts.files import WHOLE, write_atomic

_CONNECT_S, _READ_S = 10, 60
_PACKAGES = {"abfs": "adlfs", "abfss": "adlfs", "s3": "s3fs"}


class NotAsStoredError(DiskbookError):
    """An object is larger than it may be, or no plain file."""


class Objects(Protocol):
    """A place in a store, whose objects have names with slashes."""

    address: Address

    def names(self, folder: str = "") -> dict[str, int]:
        """Names below a folder, and their sizes; none where there is no such folder."""

    def folders(self) -> list[str]:
        """Names of the folders right below, but hidden ones: of a store its runs."""

    def read(self, name: str, most: int = WHOLE) -> bytes:
        """Content of an object of at most so many bytes.

        Raises FileNotFoundError when there is none. Raises NotAsStoredError when it is larger, or no plain
        file.
        """

    def create(self, name: str, content: bytes) -> bool:
        """Make an object; False where one of that name has other content, which stays as it is."""

    def replace(self, name: str, content: bytes) -> None:
        """Make an object, or give it another content."""

    def remove(self) -> None:
        """Delete all objects; the last record of a log first, so that a log is never left with a gap."""


def open_objects(address: Address, patience_s: float = PATIENCE_S) -> Objects:
    """Open a place in a store; nothing is asked of it yet.

    Raises UsageError when the packages that talk to it are not installed.
    """
    if address.scheme == "file":
        return LocalObjects(address)
    return RemoteObjects(address, patience_s)


class LocalObjects:
    """A folder of a file system with hard links, shared or not. Needs none of the extra's packages."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._root = Path(address.path)

    def names(self, folder: str = "") -> dict[str, int]:
        """See `Objects`; what is being written has a name that begins with a dot and is left out."""
        paths = (path for path in (self._root / folder).rglob("*") if not path.name.startswith("."))
        with self._in_words(folder):
            files = ((path, path.stat()) for path in paths if path.is_file() and not path.is_symlink())
            return {str(path.relative_to(self._root)): info.st_size for path, info in files}

    def folders(self) -> list[str]:
        with self._in_words(""):
            there = self._root.iterdir() if self._root.is_dir() else ()
            return sorted(path.name for path in there if path.is_dir() and path.name[0] != ".")

    def read(self, name: str, most: int = WHOLE) -> bytes:
        """See `Objects`; a pipe is not waited for, and a link not followed."""
        with self._in_words(name):
            if (self._root / name).is_symlink():
                raise _not_plain(self.address / name)
            number = os.open(self._root / name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
            with os.fdopen(number, "rb") as file:
                info = os.fstat(number)
                if not stat.S_ISREG(info.st_mode):
                    raise _not_plain(self.address / name)
                return _limited(file.read(min(most, info.st_size) + 1), most, self.address / name)

    def create(self, name: str, content: bytes) -> bool:
        """See `Objects`; a name is linked to a file that is whole and on the disk."""
        path = self._root / name
        with self._in_words(name):
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".") as part:
                part.write(content)
                part.flush()
                os.fsync(part.fileno())
                Path(part.name).chmod(0o644)
                try:
                    os.link(part.name, path)
                except FileExistsError:
                    return self._has(name, content)
        return True

    def _has(self, name: str, content: bytes) -> bool:
        with contextlib.suppress(NotAsStoredError):
            return self.read(name, len(content)) == content
        return False

    def replace(self, name: str, content: bytes) -> None:
        with self._in_words(name):
            (self._root / name).parent.mkdir(parents=True, exist_ok=True)
            write_atomic(self._root / name, content)

    def remove(self) -> None:
        for name in sorted(self.names(), reverse=True):
            with self._in_words(name):
                (self._root / name).unlink(missing_ok=True)
        shutil.rmtree(self._root, ignore_errors=True)

    @contextlib.contextmanager
    def _in_words(self, name: str) -> Any:
        try:
            yield
        except FileNotFoundError:
            raise
        except OSError as error:
            raise DiskbookError(
                f"{self.address / name}: {error.strerror}; what was stored until then is whole: mend that"
            ) from error
        except RecursionError:
            raise DiskbookError(f"{self.address / name} has folders nested too deeply; remove them") from None


class RemoteObjects:
    """A place in object storage, by fsspec: adlfs for abfs://, s3fs for s3://."""

    def __init__(self, address: Address, patience_s: float = PATIENCE_S) -> None:
        self.address = address
        self._patience_s = patience_s
        self._system, self._root = self._ask("", lambda: _file_system(address))

    def names(self, folder: str = "") -> dict[str, int]:
        place = f"{self._root}/{folder}".rstrip("/")
        listed = self._ask(folder, lambda: self._system.find(place, detail=True))
        return {name.removeprefix(f"{self._root}/"): info["size"] for name, info in listed.items()}

    def folders(self) -> list[str]:
        listed = self._ask("", lambda: self._system.ls(self._root, detail=True))
        names = (
            info["name"].rstrip("/").rpartition("/")[2] for info in listed if info["type"] == "directory"
        )
        return sorted(name for name in names if name[0] != ".")

    def read(self, name: str, most: int = WHOLE) -> bytes:
        content = self._ask(name, lambda: self._first(name, most + 1))
        return _limited(content, most, self.address / name)

    def _first(self, name: str, size: int) -> bytes:
        """Return the first bytes of an object; stores have no range that begins in an empty one."""
        try:
            content: bytes = self._system.cat_file(f"{self._root}/{name}", start=0, end=size)
        except Exception as error:
            if "InvalidRange" not in str(error):
                raise
            return b""
        return content

    def create(self, name: str, content: bytes) -> bool:
        """See `Objects`; an answer that was lost on its way is told by reading back."""

        def create() -> bool:
            try:
                self._system.pipe_file(f"{self._root}/{name}", content, mode="create")
            except FileExistsError:
                return self._is_same(name, content)
            return True

        return self._ask(name, create)

    def replace(self, name: str, content: bytes) -> None:
        def replace() -> None:
            try:
                self._system.pipe_file(f"{self._root}/{name}", content)
            except FileExistsError:
                raise Passing(f"{name} is said to be in the way, and may be replaced") from None

        self._ask(name, replace)

    def remove(self) -> None:
        for name in sorted(self.names(), reverse=True):
            with contextlib.suppress(FileNotFoundError):
                self._ask(name, lambda name=name: self._system.rm_file(f"{self._root}/{name}"))

    def _is_same(self, name: str, content: bytes) -> bool:
        try:
            there = self._first(name, len(content) + 1)
        except FileNotFoundError:
            raise Passing(f"{name} is said to exist, and does not") from None
        return hashlib.sha256(there).digest() == hashlib.sha256(content).digest()

    def _ask(self, name: str, do: Any) -> Any:
        return patiently(do, str(self.address / name) if name else str(self.address), self._patience_s)


def _not_plain(address: Address) -> NotAsStoredError:
    return NotAsStoredError(f"{address} is not a plain file; restore it")


def _limited(content: bytes, most: int, address: Address) -> bytes:
    if len(content) > most:
        raise NotAsStoredError(f"{address} has more than {most} bytes, which is too large; restore it")
    return content


def _file_system(address: Address) -> tuple[Any, str]:
    """The file system of an address, which tries nothing twice by itself, and the address's place there."""
    try:
        import fsspec  # third-party, and of an extra: a run on this machine's disk does without

        options: dict[str, Any] = {"use_listings_cache": False, "skip_instance_cache": True}
        if _PACKAGES[address.scheme] == "adlfs":
            options |= {"connection_timeout": _CONNECT_S, "read_timeout": _READ_S}
        system, root = fsspec.core.url_to_fs(str(address), **options)
    except ImportError as error:
        package = _PACKAGES[address.scheme] if "fsspec" not in str(error.name) else "fsspec"
        how = "pip install s3fs" if package == "s3fs" else "pip install -e '.[cluster]'"
        raise UsageError(
            f"{address.scheme}:// needs the package {package}, which is not installed: {how}"
        ) from None
    # The SDK's own waits begin at 15 s and end after 3 of them; `patiently` waits instead.
    policy = getattr(getattr(getattr(system, "service_client", None), "_config", None), "retry_policy", None)
    if policy is not None:
        policy.total_retries = 0
    return system, root.rstrip("/")
