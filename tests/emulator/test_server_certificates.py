"""Certificates of the emulator's control plane."""

from __future__ import annotations

import ssl
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509

from diskbook_emulator.server import VALID, make_ca_and_cert


@pytest.mark.parametrize(
    ("host", "names", "addresses"),
    [("127.83.0.9", ["localhost"], ["127.83.0.9"]), ("localhost", ["localhost"], [])],
)
def test_a_certificate_is_for_its_host_and_localhost(
    tmp_path: Path, host: str, names: list[str], addresses: list[str]
) -> None:
    ca, cert, key = make_ca_and_cert(tmp_path / "tls", host)
    loaded = x509.load_pem_x509_certificate(cert.read_bytes())
    known = loaded.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert known.get_values_for_type(x509.DNSName) == names
    assert [str(address) for address in known.get_values_for_type(x509.IPAddress)] == addresses
    assert abs(loaded.not_valid_after_utc - datetime.now(UTC) - VALID).total_seconds() < 60
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    loaded.verify_directly_issued_by(x509.load_pem_x509_certificate(ca.read_bytes()))


def test_a_strict_client_trusts_it_by_the_ca_alone(tmp_path: Path) -> None:
    ca, cert, key = make_ca_and_cert(tmp_path, "localhost")
    client, server = (
        ssl.create_default_context(cafile=ca),
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH),
    )
    client.verify_flags |= ssl.VERIFY_X509_STRICT  # the default from Python 3.13 on
    server.load_cert_chain(cert, key)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (
        client.wrap_bio(to_client, to_server, server_hostname="localhost"),
        server.wrap_bio(to_server, to_client, server_side=True),
    )
    done = [False, False]
    for _ in range(5):
        for number, end in enumerate(ends):
            try:
                end.do_handshake()
                done[number] = True
            except ssl.SSLWantReadError:
                continue
    assert done == [True, True]


def test_made_again_it_replaces_what_was_there(tmp_path: Path) -> None:
    before = [path.read_bytes() for path in make_ca_and_cert(tmp_path, "localhost")]
    after = [path.read_bytes() for path in make_ca_and_cert(tmp_path, "localhost")]
    assert all(old != new for old, new in zip(before, after, strict=True))
    assert {path.name for path in tmp_path.iterdir()} == {"ca.pem", "cert.pem", "key.pem"}
