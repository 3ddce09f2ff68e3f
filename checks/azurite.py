"""Azurite, Microsoft's own server of Azure storage for tests, on a free port of loopback.

`make azurite` installs it (lib/azurite.sh). Its account and key are the ones that all its installations have.
"""

import contextlib
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from diskbook.facts import paths

PROGRAM = paths.ROOT / ".tools/azurite/node_modules/azurite/dist/src/blob/main.js"
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
VARIABLE = "AZURE_STORAGE_CONNECTION_STRING"
_OPTIONS = ("--inMemoryPersistence", "--disableTelemetry", "--silent", "--skipApiVersionCheck")
_LISTENS = re.compile(r"successfully listens on https?://127\.0\.0\.1:(\d+)")


@dataclass(frozen=True)
class Server:
    """A running server: where it listens, and its process."""

    port: int
    pid: int


def is_installed() -> bool:
    """Whether there is an Azurite, and node to run it."""
    return PROGRAM.exists() and shutil.which("node") is not None


def connection_string(port: int) -> str:
    """What tells adlfs where the server, or what stands before it, is."""
    endpoint = f"http://127.0.0.1:{port}/{ACCOUNT}"
    return f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};BlobEndpoint={endpoint};"


@contextlib.contextmanager
def running(certificate: tuple[Path, Path] | None = None) -> Iterator[Server]:
    """Run a server with nothing in it; ends with the block.

    - `certificate`: files with a certificate and its key: it then talks TLS.
    """
    tls = ["--cert", str(certificate[0]), "--key", str(certificate[1])] if certificate else []
    command = ["node", str(PROGRAM), "--blobHost", "127.0.0.1", "--blobPort", "0", *_OPTIONS, *tls]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
        try:
            assert server.stdout is not None
            for line in server.stdout:
                if port := _LISTENS.search(line):
                    yield Server(int(port[1]), server.pid)
                    return
            raise RuntimeError(f"Azurite ended with {server.wait()}")
        finally:
            server.terminate()
