"""A throw-away certificate authority and a server certificate for one loopback address."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import trustme

from diskbook.facts.files import write_atomic

VALID = timedelta(days=30)
_NAME = "diskbook emulator, throw-away"


def make_ca_and_cert(folder: Path, host: str) -> tuple[Path, Path, Path]:
    """Make a CA and a certificate for `host` and localhost.

    The CA's key is not kept: nothing else can be signed with it.

    Parameters
    ----------
    folder
        Where the three files go; made if missing.
    host
        Loopback address or name that clients connect to.

    Returns
    -------
    tuple of Path
        `ca.pem`, `cert.pem`, `key.pem`; the key file has mode 0600.
    """
    folder.mkdir(parents=True, exist_ok=True)
    authority = trustme.CA(organization_name=_NAME)
    names = dict.fromkeys(("localhost", host))
    until = datetime.now(UTC) + VALID
    server = authority.issue_cert(*names, common_name=host, organization_name=_NAME, not_after=until)
    ca, cert, key = folder / "ca.pem", folder / "cert.pem", folder / "key.pem"
    write_atomic(ca, authority.cert_pem.bytes())
    write_atomic(cert, b"".join(part.bytes() for part in server.cert_chain_pems))
    write_atomic(key, server.private_key_pem.bytes(), 0o600)
    return ca, cert, key
