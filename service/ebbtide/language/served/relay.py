"""Requests that are passed on to a model server unchanged, and its responses as they arrive.

Nothing is decoded, repeated, redirected or stored here. If the caller is cancelled, the exchange with the server is
cancelled at once.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass

import httpcore
import httpx

from ebbtide.language.served.bounded_transport import BoundedTransport
from ebbtide.language.served.connection import CONNECT_TIMEOUT_S, FAILURE_TEXTS, failure_text

MAX_RESPONSE_BYTES = 1 << 30
"""The limit of one response, with its headers and framing."""

MAX_CONNECTIONS = 256

RawHeaders = Sequence[tuple[bytes, bytes]]


class UpstreamFailed(Exception):
    """The server sent no response, or broke off."""

    def __init__(self, text: str, *, is_timeout: bool) -> None:
        super().__init__(text)
        self.is_timeout = is_timeout


@dataclass(frozen=True, slots=True)
class Relayed:
    """A response of the server."""

    status: int
    headers: RawHeaders
    parts: AsyncIterator[bytes]
    """The body as it arrives. Raises UpstreamFailed if the server breaks off."""


class Relay:
    """Connections to one model server."""

    def __init__(self, base_url: str, timeout_s: float) -> None:
        """`timeout_s` is the longest wait for the next bytes of the server."""
        self._base = httpx.URL(base_url)
        self._timeouts = {
            "connect": min(CONNECT_TIMEOUT_S, timeout_s),
            **dict.fromkeys(("read", "write", "pool"), timeout_s),
        }
        self._transport = BoundedTransport(max_bytes=MAX_RESPONSE_BYTES, connections=MAX_CONNECTIONS)

    @contextlib.asynccontextmanager
    async def send(
        self, method: str, target: bytes, headers: RawHeaders, body: bytes
    ) -> AsyncIterator[Relayed]:
        """Send a request to a target below the address of the server. Raise UpstreamFailed, ValueError."""
        try:
            url = self._base.copy_with(raw_path=self._base.raw_path.rstrip(b"/") + target)
        except (httpx.InvalidURL, UnicodeError) as error:
            raise ValueError("the target is no path of a URL") from error
        request = httpx.Request(
            method,
            url,
            headers=list(headers),
            content=body or None,
            extensions={"timeout": self._timeouts},
        )
        with _translated():
            response = await self._transport.handle_async_request(request)
        try:
            yield Relayed(response.status_code, response.headers.raw, _parts(response))
        finally:
            await response.aclose()

    async def close(self) -> None:
        """Close all connections. Idempotent."""
        await self._transport.aclose()


async def _parts(response: httpx.Response) -> AsyncIterator[bytes]:
    with _translated():
        async for part in response.aiter_raw():
            yield part


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except tuple(FAILURE_TEXTS) as error:
        is_timeout = isinstance(error, httpcore.TimeoutException) and not isinstance(
            error, httpcore.ConnectTimeout
        )
        raise UpstreamFailed(failure_text(error), is_timeout=is_timeout) from error
