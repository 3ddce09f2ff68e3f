"""The account of a run's cluster, which its nodes sign in to each other with, and its random password.

The password lies next to the run's other keys and is deleted with them; a resumed run needs it again. To
the nodes it goes on standard input alone.
"""

import threading
from pathlib import Path

from diskbook.cloud.azure import requests
from diskbook.facts import client
from diskbook.facts.errors import DiskbookError
from diskbook.facts.files import write_atomic

ACCOUNT = "dbkcluster"
_PURPOSE = "cluster password"
_making = threading.Lock()  # replicates are measured side by side, and share it


def password(folder: Path) -> str:
    """Return the password of a run's cluster account, made on first use, readable by the owner only.

    Raises DiskbookError when there is one that was not made by this client for this run.
    """
    path = folder / "keys" / "cluster"
    with _making:
        if not path.exists():
            path.parent.mkdir(mode=0o700, exist_ok=True)
            made = requests.password()
            signature = client.sign(_PURPOSE, folder.name, made)
            write_atomic(path.with_suffix(".signature"), signature + "\n", 0o600)
            write_atomic(path, made, 0o600)
    try:
        kept, signature = path.read_text("ascii"), path.with_suffix(".signature").read_text("ascii").strip()
    except (OSError, ValueError):
        kept, signature = "", ""
    if not client.is_signed(signature, _PURPOSE, folder.name, kept):
        raise DiskbookError(
            f"{path} was not made here for run {folder.name}, so it is not used; remove it: the nodes of the "
            "run's clusters get another password then"
        )
    return kept
