"""Credentials of the command line: an API key, a client certificate, and the trusted certificate authority.

A key comes from a file or the environment, never from an argument: every user of the machine can read those. It is
never printed. An error about a file names the file only.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ebbtide.cli.console import warn_of_open_key
from ebbtide.cli.exit_codes import ExitCode
from ebbtide.cli.failures import Failure

if TYPE_CHECKING:
    import ssl

_VISIBLE = re.compile(r"[\x21-\x7e]++")

KEY_VARIABLE = "EBBTIDE_API_KEY"


@dataclass(frozen=True, slots=True)
class Credentials:
    """An API key and a TLS context."""

    api_key: str = field(default="", repr=False)
    trust: ssl.SSLContext | None = None
    """None: the public certificate authorities."""

    @property
    def headers(self) -> dict[str, str]:
        """Return the headers that every request carries."""
        return {"authorization": f"Bearer {self.api_key}"} if self.api_key else {}


NO_CREDENTIALS = Credentials()


def credentials(api_key_file: Path | None, ca_file: Path | None, client_cert: Path | None) -> Credentials:
    """Return the credentials from options and environment. Raise a Failure if they cannot be used."""
    return Credentials(_api_key(api_key_file), _trust(ca_file, client_cert))


def _api_key(file: Path | None) -> str:
    place = f"--api-key-file {file}" if file else KEY_VARIABLE
    if file is None:
        text = os.environ.get(KEY_VARIABLE, "")
    else:
        try:
            text = file.read_text("ascii")
        except OSError as error:
            raise Failure(f"{place} cannot be read: {error.strerror}.", ExitCode.USAGE) from None
        except UnicodeDecodeError:
            text = "\0"
        warn_of_open_key(file, "the API key file")
    key = text.strip()
    if (file or key) and not _VISIBLE.fullmatch(key):
        raise Failure(f"{place} contains no API key.", ExitCode.USAGE)
    return key


def _trust(ca_file: Path | None, client_cert: Path | None) -> ssl.SSLContext | None:
    if ca_file is None and client_cert is None:
        return None
    # Here, so that `--help` stays quick.
    import ssl

    try:
        context = ssl.create_default_context(cafile=ca_file)
        if client_cert is not None:
            # An empty passphrase, so that OpenSSL does not prompt for one.
            context.load_cert_chain(client_cert, password="")
    except (ssl.SSLError, OSError, ValueError):
        named = " and ".join(
            f"{option} {path}"
            for option, path in (("--ca-file", ca_file), ("--client-cert", client_cert))
            if path is not None
        )
        raise Failure(f"{named}: no usable certificate (PEM).", ExitCode.USAGE) from None
    return context
