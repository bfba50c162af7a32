"""One HTTP exchange with a model server, with bounded time and size and classified failures.

The caller gets a JSON object or one of three errors. No response, a broken one, HTML, 5xx, 429 or a rejected key raise
ModelUnavailable, which says nothing about the text. A response without end raises BadReply. Other 4xx responses raise
RequestRejected, and the client of that kind of server decides what it means. Bodies of errors are inspected but never
quoted: they may repeat the request, and error texts are logged.
"""

from __future__ import annotations

import asyncio
import json
import re
from datetime import datetime
from email.utils import parsedate_to_datetime
from http.cookiejar import CookieJar
from typing import Any

import httpcore
import httpx

from ebbtide.language.port import BadReply, ModelUnavailable
from ebbtide.language.served.bounded_transport import BoundedTransport

MAX_RESPONSE_BYTES = 1 << 20
"""Far more than any reply needs."""

MAX_BRACKETS = 20_000
"""Opening brackets in a response, including those in texts. The parser creates a value for each."""

MAX_CONNECTION_BYTES = 2 * MAX_RESPONSE_BYTES
"""The limit including headers, interim responses and chunk framing."""

MAX_BODY_PIECES = 20_000
"""Pieces of a body. Each takes time on the event loop, however small it is."""

CONNECT_TIMEOUT_S = 10.0

_SECONDS = re.compile(r"\d{1,9}(?:\.\d++)?")

MAX_RETRY_AFTER_S = 600.0
"""Upper limit of a Retry-After header."""

FAILURE_TEXTS: dict[type[Exception], str] = {
    httpcore.ConnectTimeout: "did not accept the connection in time",
    httpcore.PoolTimeout: "has too many concurrent requests",
    httpcore.TimeoutException: "did not answer in time",
    httpcore.ConnectError: "cannot be reached",
    httpcore.NetworkError: "closed the connection during a response",
    httpcore.RemoteProtocolError: "aborted its response, sent too much, or does not speak HTTP",
    httpcore.ProtocolError: "does not speak HTTP",
    httpcore.UnsupportedProtocol: "has a URL with an unknown scheme",
    httpcore.ProxyError: "is behind a failing proxy",
    httpx.UnsupportedProtocol: "has a URL with an unknown scheme",
    httpx.RemoteProtocolError: "redirects to an invalid URL",
    httpx.HTTPError: "cannot be called",
    httpx.StreamError: "aborted its response",
    httpx.InvalidURL: "has an invalid URL",
    OSError: "cannot be reached",
}
"""The meaning of each third-party error for a server, looked up along its base classes."""


class ServerError(ModelUnavailable):
    """HTTP 500: the server failed at this request. Some fail at an unknown field."""


class RequestRejected(Exception):
    """The server returned a 4xx response that may concern this request. Never quote `body`."""

    def __init__(self, status: int, body: str) -> None:
        super().__init__(f"HTTP {status}")
        self.status = status
        self.body = body


class _NoCookies(CookieJar):
    """A cookie jar that stores nothing, so that a server cannot track its callers."""

    def extract_cookies(self, response: object, request: object) -> None:
        """Ignore the cookies of a response."""


class HttpConnection:
    """HTTP connections to one server."""

    def __init__(self, base_url: str, *, timeout_s: float, api_key: str = "", connections: int = 8) -> None:
        headers = {"accept": "application/json", "accept-encoding": "identity", "user-agent": "ebbtide"}
        if api_key:
            headers["authorization"] = f"Bearer {api_key}"
        self.base_url = base_url.rstrip("/")
        self._timeout_s = timeout_s
        self._http = httpx.AsyncClient(
            headers=headers,
            timeout=httpx.Timeout(timeout_s, connect=min(CONNECT_TIMEOUT_S, timeout_s)),
            transport=BoundedTransport(max_bytes=MAX_CONNECTION_BYTES, connections=connections),
            cookies=_NoCookies(),
            follow_redirects=False,
            trust_env=False,
        )

    def __repr__(self) -> str:
        return f"HttpConnection({self.base_url})"

    async def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """POST a JSON object and return one."""
        return await self._exchange("POST", path, body, self._timeout_s)

    async def get(self, path: str, *, timeout_s: float) -> dict[str, Any]:
        """GET a JSON object."""
        return await self._exchange("GET", path, None, timeout_s)

    async def close(self) -> None:
        """Close all connections. Idempotent."""
        await self._http.aclose()

    async def _exchange(
        self, method: str, path: str, body: dict[str, Any] | None, timeout_s: float
    ) -> dict[str, Any]:
        try:
            async with asyncio.timeout(timeout_s) as limit:
                status, headers, content = await self._send(method, path, body)
        except tuple(FAILURE_TEXTS) as error:
            # TimeoutError is an OSError. The limit identifies our own timeout.
            if isinstance(error, TimeoutError) and limit.expired():
                raise self._unavailable(f"did not answer within {timeout_s:g} s") from error
            raise self._unavailable(failure_text(error)) from error
        except UnicodeError as error:
            raise self._unavailable("has an invalid URL") from error
        if status == 200:
            return self._object(content)
        raise self._failure(status, headers, content)

    async def _send(
        self, method: str, path: str, body: dict[str, Any] | None
    ) -> tuple[int, httpx.Headers, bytes]:
        content = None
        headers = {}
        if body is not None:
            # Lone surrogates cannot be encoded; they become question marks.
            content = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
            headers["content-type"] = "application/json"
        async with self._http.stream(
            method, self.base_url + path, content=content, headers=headers
        ) as answer:
            if answer.headers.get("content-encoding", "identity") != "identity":
                raise self._unavailable("sent a compressed response that was not requested")
            parts, size = [], 0
            async for part in answer.aiter_raw():
                size += len(part)
                parts.append(part)
                if size > MAX_RESPONSE_BYTES or len(parts) > MAX_BODY_PIECES:
                    raise BadReply(
                        f"the response exceeds {MAX_RESPONSE_BYTES} bytes or {MAX_BODY_PIECES} pieces"
                    )
            return answer.status_code, answer.headers, b"".join(parts)

    def _object(self, content: bytes) -> dict[str, Any]:
        if content.count(b"[") + content.count(b"{") > MAX_BRACKETS:
            raise self._unavailable("sent JSON with too many lists and objects")
        try:
            answer = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise self._unavailable("sent a response that is not JSON") from error
        if not isinstance(answer, dict):
            raise self._unavailable("sent JSON that is not an object")
        return answer

    def _failure(self, status: int, headers: httpx.Headers, content: bytes) -> Exception:
        if status in (401, 403):
            return self._unavailable(f"rejected the API key (HTTP {status})")
        if status == 500:
            return ServerError(f"the model server {self.base_url} returned HTTP 500")
        if status in (408, 425, 429) or status >= 500:
            return self._unavailable(f"returned HTTP {status}", retry_after_s(headers.get("retry-after")))
        if 400 <= status < 500:
            return RequestRejected(status, content[:4096].decode("utf-8", "replace"))
        return self._unavailable(f"returned HTTP {status} instead of a reply")

    def _unavailable(self, what: str, after_s: float | None = None) -> ModelUnavailable:
        return ModelUnavailable(f"the model server {self.base_url} {what}", retry_after_s=after_s)


def failure_text(error: Exception) -> str:
    """Return what a third-party error says about the server."""
    return next(FAILURE_TEXTS[kind] for kind in type(error).__mro__ if kind in FAILURE_TEXTS)


def retry_after_s(value: str | None) -> float | None:
    """Return the pause that a server asks for, in seconds or as a date, or None if it is missing or invalid."""
    if not value:
        return None
    if _SECONDS.fullmatch(value.strip()):
        return min(float(value), MAX_RETRY_AFTER_S) or None
    try:
        then = parsedate_to_datetime(value)
        left_s = (then - datetime.now(then.tzinfo)).total_seconds()
    except (ValueError, TypeError, OverflowError):
        return None
    return min(left_s, MAX_RETRY_AFTER_S) if left_s > 0 else None
