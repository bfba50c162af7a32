"""The connection, the same for both clients: address, headers, timeouts, TLS. The API key stays out of every text."""

from __future__ import annotations

import ipaddress
import os
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from ebbtide_client.calls import Call, Reply

DEFAULT_URL = "http://127.0.0.1:8420"

URL_VARIABLE = "EBBTIDE_URL"
KEY_VARIABLE = "EBBTIDE_API_KEY"
KEY_FILE_VARIABLE = "EBBTIDE_API_KEY_FILE"
CA_VARIABLE = "EBBTIDE_CA_FILE"
CERT_VARIABLE = "EBBTIDE_CLIENT_CERT"
"""Environment variables for arguments that are None. The command line reads the same ones."""

PathText = str | os.PathLike[str]

TIMEOUT_S = 60.0
"""Longer than the daemon lets a request wait for its agent (30 s)."""

CONNECT_TIMEOUT_S = 5.0

LONG_TIMEOUT_S = 3600.0
"""For operations whose time grows with the agent: files, and deletion with rewriting."""


@dataclass(frozen=True, slots=True)
class Wire:
    """The address of a daemon and how to connect to it."""

    url: httpx.URL
    timeout_s: float
    connect_timeout_s: float
    api_key: str | None = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)

    @property
    def place(self) -> str:
        """The address without secrets."""
        return f"{self.url.scheme}://{self.url.netloc.decode('ascii')}{self.url.path.rstrip('/')}"

    @property
    def options(self) -> dict[str, Any]:
        """Options of the httpx client."""
        headers = {"Accept": "application/json", **self.headers}
        if self.api_key:
            headers["Authorization"] = f"Bearer {self.api_key}"
        # Proxies of the environment are not for connections within one machine.
        return {"base_url": self.url, "headers": headers, "trust_env": not _is_loopback(self.url.host)}

    def request(self, call: Call[Any]) -> dict[str, Any]:
        """Return the arguments of an httpx request."""
        return {
            "method": call.method,
            "url": call.path,
            "content": call.body,
            "params": call.query or None,
            "headers": {} if call.body is None else {"Content-Type": "application/json"},
            "timeout": self._timeout(call),
        }

    def streaming(self, call: Call[Any], least_timeout_s: float) -> dict[str, Any]:
        """Return the arguments of an httpx request for a stream without end."""
        request = self.request(call)
        silence_s = max(self.timeout_s, least_timeout_s)
        timeout = httpx.Timeout(silence_s, connect=self.connect_timeout_s)
        return {**request, "headers": {"Accept": "text/event-stream"}, "timeout": timeout}

    def transfer(self, call: Call[Any], headers: Mapping[str, str]) -> dict[str, Any]:
        """Return the arguments of an httpx request that downloads or uploads a file."""
        request = self.request(call)
        return {**request, "headers": dict(headers)}

    def _timeout(self, call: Call[Any]) -> httpx.Timeout:
        if call.is_long:
            silence_s = max(self.timeout_s, LONG_TIMEOUT_S)
            return httpx.Timeout(self.timeout_s, connect=self.connect_timeout_s, read=silence_s)
        return httpx.Timeout(self.timeout_s + call.waits_s, connect=self.connect_timeout_s)

    def describe(self, name: str) -> str:
        """Return a repr without secrets."""
        key = ", api_key=[secret]" if self.api_key else ""
        return f"{name}({self.place!r}{key})"


def to(
    url: str | None,
    timeout_s: float,
    connect_timeout_s: float,
    api_key: str | None,
    headers: Mapping[str, str] | None,
) -> Wire:
    """Return the connection to an address. Raise ValueError for bad arguments. None is read from the environment."""
    try:
        address = httpx.URL((os.environ.get(URL_VARIABLE) or DEFAULT_URL if url is None else url).rstrip("/"))
    except httpx.InvalidURL:
        address = httpx.URL("")
    if address.scheme not in ("http", "https") or not address.host:
        raise ValueError(f"the url must be like {DEFAULT_URL}")
    if timeout_s <= 0 or connect_timeout_s <= 0:
        raise ValueError("timeouts must be above 0")
    key = (_key_of_environment() if api_key is None else api_key).strip() or None  # files end with a newline
    if key and not (key.isascii() and key.isprintable() and " " not in key):
        # Checked here because the transport's error would quote the key.
        raise ValueError("api_key contains a character that no API key has")
    return Wire(address, timeout_s, connect_timeout_s, key, dict(headers or {}))


def _key_of_environment() -> str:
    file = os.environ.get(KEY_FILE_VARIABLE)
    if not file:
        return os.environ.get(KEY_VARIABLE, "")
    # A byte that is not ASCII becomes a character that no key has.
    return Path(file).read_text("ascii", errors="replace")


def trust(
    url: httpx.URL,
    verify: ssl.SSLContext | bool,
    ca_file: PathText | None,
    client_cert: PathText | None,
) -> ssl.SSLContext | bool:
    """Return the TLS context, or `verify` if neither argument nor environment names a file.

    Without a file, the context for an http:// address trusts no certificate. Raise ValueError for a file that cannot be
    used.
    """
    authority = ca_file or (os.environ.get(CA_VARIABLE) if verify is True else None)
    shown = client_cert or (os.environ.get(CERT_VARIABLE) if verify is True else None)
    if not authority and not shown:
        # The public authorities take 30 ms to load, and no connection to an http:// address uses them.
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if verify is True and url.scheme == "http" else verify
    if verify is not True:
        raise ValueError("give ca_file and client_cert, or verify, not both")
    with _naming("ca_file", authority):
        context = ssl.create_default_context(cafile=authority or None)
    if shown:
        with _naming("client_cert", shown):
            # An empty passphrase, so that OpenSSL does not prompt for one.
            context.load_cert_chain(shown, password="")
    return context


@contextmanager
def _naming(argument: str, path: PathText | None) -> Iterator[None]:
    """Raise ValueError with the argument and the path if a file of TLS cannot be used."""
    try:
        yield
    except (ssl.SSLError, ValueError):
        needed = (
            "a certificate" if argument == "ca_file" else "a certificate and its key without a passphrase"
        )
        raise ValueError(f"{argument}: {os.fspath(path or '')} does not contain {needed} in PEM") from None
    except OSError as error:
        raise ValueError(f"{argument}: {os.fspath(path or '')} cannot be read: {error.strerror}") from None


def reply_of(response: httpx.Response) -> Reply:
    """Return the response without its transport."""
    return Reply(response.status_code, response.headers, response.content)


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
