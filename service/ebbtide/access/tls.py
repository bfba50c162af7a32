"""TLS for both ports, from files: read and held together, at a start before anything is opened.

What cannot be used is TLS_UNUSABLE, with the setting that names the file. With an authority for client certificates,
a caller without a certificate of it does not get as far as a request. Files that are renewed are taken by
`renewal.py`.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from pathlib import Path

from ebbtide.errors import Precondition
from ebbtide.settings import AccessSettings


@dataclass(frozen=True, slots=True)
class Certificates:
    """What a server needs to speak TLS: as bytes, and as a context."""

    chain: bytes
    private_key: bytes = field(repr=False)
    client_authority: bytes | None
    context: ssl.SSLContext

    def is_as(self, other: Certificates) -> bool:
        """Whether these are the same certificates, read again."""
        return (self.chain, self.private_key, self.client_authority) == (
            other.chain,
            other.private_key,
            other.client_authority,
        )


def read_certificates(settings: AccessSettings) -> Certificates | None:
    """The certificates that the settings name; None without TLS. TLS_UNUSABLE when they cannot be used."""
    if not settings.tls_cert_file:
        return None
    chain = _read("tls_cert_file", settings.tls_cert_file)
    private_key = _read("tls_key_file", settings.tls_key_file)
    authority = None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        # An empty passphrase: a key that has one must be an error, not a question on the terminal.
        context.load_cert_chain(settings.tls_cert_file, settings.tls_key_file, password="")
    except (ssl.SSLError, OSError, ValueError) as error:
        raise _unusable(
            "tls_cert_file and tls_key_file", "they do not make a certificate with its key"
        ) from error
    if settings.tls_client_ca_file:
        authority = _read("tls_client_ca_file", settings.tls_client_ca_file)
        context.verify_mode = ssl.CERT_REQUIRED
        try:
            context.load_verify_locations(cafile=settings.tls_client_ca_file)
        except (ssl.SSLError, OSError) as error:
            raise _unusable("tls_client_ca_file", "it holds no certificate") from error
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
