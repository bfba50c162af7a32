"""TLS for both ports, from files that are read and validated at start, before anything is opened.

Unusable files are TLS_UNUSABLE, with the setting that names the file. With an authority for client certificates, a
caller without a certificate from it cannot send a request. `renewal.py` follows renewed files.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from pathlib import Path

from ebbtide.errors import Precondition
from ebbtide.settings import AccessSettings


@dataclass(frozen=True, slots=True)
class Certificates:
    """The certificates of a server, as bytes and as an SSL context."""

    chain: bytes
    private_key: bytes = field(repr=False)
    client_authority: bytes | None
    context: ssl.SSLContext

    def is_as(self, other: Certificates) -> bool:
        """Return whether these are the same certificates."""
        return (self.chain, self.private_key, self.client_authority) == (
            other.chain,
            other.private_key,
            other.client_authority,
        )


def read_certificates(settings: AccessSettings) -> Certificates | None:
    """Return the certificates that the settings name; None without TLS. TLS_UNUSABLE if they are unusable."""
    if not settings.tls_cert_file:
        return None
    chain = _read("tls_cert_file", settings.tls_cert_file)
    private_key = _read("tls_key_file", settings.tls_key_file)
    authority = None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        # An empty passphrase, so that a key with one is an error and not a prompt.
        context.load_cert_chain(settings.tls_cert_file, settings.tls_key_file, password="")
    except (ssl.SSLError, OSError, ValueError) as error:
        raise _unusable(
            "tls_cert_file and tls_key_file", "the certificate and the key do not match"
        ) from error
    if settings.tls_client_ca_file:
        authority = _read("tls_client_ca_file", settings.tls_client_ca_file)
        context.verify_mode = ssl.CERT_REQUIRED
        try:
            context.load_verify_locations(cafile=settings.tls_client_ca_file)
        except (ssl.SSLError, OSError) as error:
            raise _unusable("tls_client_ca_file", "it contains no certificate") from error
    return Certificates(chain, private_key, authority, context)


def _read(name: str, path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise _unusable(name, error.strerror or "it cannot be read") from error


def _unusable(name: str, why: str) -> Precondition:
    return Precondition(
        f"access.{name}: {why}", reason="TLS_UNUSABLE", metadata={"setting": f"access.{name}"}
    )
