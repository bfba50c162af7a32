"""HTTP checks before a request reaches a route, and the log line after it.

A web page must not control a local daemon. Therefore `Host` must name this machine, the bound address or an allowed
host (which stops DNS rebinding). A foreign `Origin` is refused unless CORS lists it. A request that the browser marks
as cross-site (`Sec-Fetch-Site`) is refused with or without an `Origin`. Bodies must be JSON, which a form cannot
send. Responses cannot be embedded by other origins (`Cross-Origin-Resource-Policy`).

The caller is authenticated before the body is read; the route checks what the caller may do. The body is read as a
whole, within its limit, so an incomplete one never reaches a verb. If the client disconnects, work that has not
started is cancelled. Uploads are too large for that: their verb reads them within a limit of its own, and a form
cannot send their media type either. Responses are sent in pieces, each after the client has read the previous ones.

Pure ASGI: responses are neither buffered nor copied.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import time
from typing import Any
from urllib.parse import unquote_to_bytes

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ebbtide.access.authentication import Authentication
from ebbtide.access.grants import CALLER, let_ask
from ebbtide.actor import NO_ACTOR, set_actor
from ebbtide.errors import (
    Deadline,
    EbbtideError,
    Exhausted,
    FieldViolation,
    Forbidden,
    Internal,
    InvalidRequest,
    no_attachment,
    no_batch,
    no_node,
    no_ruling,
    stopping,
)
from ebbtide.metrics import Metrics
from ebbtide.rest import mem0_paths
from ebbtide.rest.connections import PIECE_BYTES, Holder, connection_of
from ebbtide.rest.problems import RESOURCE_POLICY, note_outcome, outcome_of, problem, supports_head
from ebbtide.rest.proxy_paths import api_of, authorizations
from ebbtide.rest.view_files import is_view
from ebbtide.settings import Settings
from ebbtide.telemetry import get_log, request_id_from, span
from ebbtide.verbs.catalogue import OPEN_ROUTES

EXPOSED_HEADERS = (
    *("x-request-id", "location", "retry-after"),
    *("x-pending-batches", "x-parked-batches", "x-unembedded-messages"),
)
"""Headers of a response that a page of a listed origin may read."""

BODY_TIMEOUT_S = 60.0
"""Longest time to receive a body."""

WATCH_AFTER_S = 0.05
"""A request that takes longer than this is cancelled if its client disconnects."""

PAGES = frozenset({"/", "/docs"})
"""Pages that a link on another site may open, and those of the web view: they contain no data."""

SEARCHED_FOR_OAUTH = ("/.well-known/", "/register")
"""Where a client looks for an OAuth server after a 401. There is none: with and without a key they answer 404, because
a client reads a second 401 as a server that exists.
"""

_OWN_SITE = frozenset({"none", "same-origin"})
"""Values of `Sec-Fetch-Site` for requests by the user or by the daemon's own pages; others are refused."""

_HOST = re.compile(r"(?:\[(?P<address>[0-9A-Fa-f:.]++)\]|(?P<name>[^\s:/?#@\[\]]++))(?::\d{1,5})?")
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
_UPLOAD = re.compile(r"/v1/agents/[^/]++/restore")
_UPLOAD_TYPES = frozenset({"application/octet-stream", "application/x-ndjson"})
_LOOPBACK_NAMES = frozenset({"localhost", "localhost.localdomain", "ip6-localhost"})


_CHILD_PLACE = 5
"""Position of the id of a node, a batch or a message among the segments of a path, the empty first one included."""
_CHILDREN = {
    b"nodes": no_node,
    b"focus": no_node,
    b"batches": no_batch,
    b"statements": no_node,
    b"rulings": no_ruling,
    b"messages": no_attachment,
}
"""The error for an id that cannot exist, by the segment before it."""


ALLOW_ORIGIN = "access-control-allow-origin"

FAILURE = "ebbtide.failure"
"""The key in a scope for the error with which to answer a request that passes the checks."""


class _Gone(Exception):
    """The client disconnected before its request was complete."""


class HttpChecks:
    """The outermost layer of the REST interface."""

    def __init__(
        self, app: ASGIApp, settings: Settings, authentication: Authentication, metrics: Metrics
    ) -> None:
        self._app = app
        self._authentication = authentication
        self._metrics = metrics
        self._max_body_bytes = settings.limits.max_body_bytes
        self._max_proxied_bytes = settings.proxy.max_body_bytes
        self._is_proxy = bool(settings.proxy.upstreams)
        self._hosts = frozenset(h.lower() for h in (settings.server.host, *settings.server.allowed_hosts))
        self._origins = frozenset(settings.server.cors_origins)
        self._log = get_log("rest")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, pass it on, and log its outcome."""
        if scope["type"] != "http":
            return
        method = scope["method"]
        if method == "HEAD" and supports_head(scope["path"]) and not self._api(scope):
            # A response to HEAD is that to GET. The server knows the method from its own scope and sends no body.
            scope = {**scope, "method": "GET"}
        headers = Headers(scope=scope)
        request_id = request_id_from(headers.get("x-request-id"))
        origin = headers.get("origin")
        begun_s = time.monotonic()
        connection = connection_of(scope)
        status = 0

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                self._let_read(origin, headers)
                # The answer of a model server may have one.
                headers.setdefault("X-Request-Id", request_id)
                headers[RESOURCE_POLICY[0]] = RESOURCE_POLICY[1]
            if len(message.get("body", b"")) > PIECE_BYTES:
                await _send_in_pieces(message, connection, send)
            else:
                await send(message)

        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(request_id=request_id)
        token = CALLER.set(CALLER.get())
        try:
            with span(
                "rest.request", parent=headers.get("traceparent", ""), request_id=request_id
            ) as current:
                await self._serve(scope, headers, receive, answer)
                current.set("http.request.method", method)
                current.set("http.route", _route(scope))
                current.set("http.response.status_code", status)
        except asyncio.CancelledError:
            # The server cancels running requests at the end of the grace period of a stop.
            task = asyncio.current_task()
            if status or task is None:
                raise
            task.uncancel()
            interrupted = stopping()
            note_outcome(scope, interrupted)
            await problem(interrupted, scope)(scope, receive, answer)
        except Exception as error:
            # Usually the app has answered and logged it already. An error raised again must not reach the
            # server's own log with its message.
            if status == 0:
                self._log.error("request failed", reason="INTERNAL", exc_info=error)
                await problem(Internal("unexpected"), scope)(scope, receive, answer)
        finally:
            if connection is not None:
                # A connection has one request at a time.
                connection.release(connection.held_bytes)
            CALLER.reset(token)
            set_actor(NO_ACTOR)
            took_s = time.monotonic() - begun_s
            self._metrics.request("rest", _verb(scope), outcome_of(scope, status), took_s)
            self._log.info(
                "request",
                method=method,
                path=_route(scope),
                status=status,
                took_ms=round(took_s * 1000, 1),
            )

    async def _serve(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        try:
            self._check_host(headers)
            self._check_origin(headers)
            self._check_site(scope, headers)
            if not mem0_paths.is_mem0(scope["path"]):
                _check_path(scope)
            self._admit(scope, headers)
            if FAILURE in scope:
                raise scope[FAILURE]
            if _is_upload(scope):
                _check_upload_type(headers)
                await self._app(scope, receive, send)
                return
            body = await self._read_body(scope, headers, receive)
        except _Gone:
            return
        except EbbtideError as error:
            note_outcome(scope, error)
            await problem(error, scope)(scope, receive, send)
            return
        await _with_watch(self._app, scope, body, receive, send)

    # --- who asks ----------------------------------------------------------------------------------

    def _check_host(self, headers: Headers) -> None:
        given = headers.getlist("host")
        host = _host_name(given[0]) if len(given) == 1 else ""
        if host in self._hosts or host in _LOOPBACK_NAMES or _is_loopback(host):
            return
        raise InvalidRequest(
            "Host is neither this machine nor an allowed host. See server.allowed_hosts.",
            reason="MISDIRECTED_REQUEST",
        )

    def _is_listed(self, origin: str) -> bool:
        return origin in self._origins or "*" in self._origins

    def _let_read(self, origin: str | None, response: MutableHeaders) -> None:
        """Let the page of a listed origin read a response that the app's CORS layer has not seen: that of a check."""
        if origin and self._is_listed(origin) and ALLOW_ORIGIN not in response:
            response[ALLOW_ORIGIN] = origin
            response["Access-Control-Expose-Headers"] = ", ".join(EXPOSED_HEADERS)
            response.add_vary_header("Origin")

    def _check_origin(self, headers: Headers) -> None:
        origin = headers.get("origin")
        if origin is None or self._is_listed(origin):
            return
        if origin.lower() in {
            f"{scheme}://{headers.get('host', '').lower()}" for scheme in ("http", "https")
        }:
            return
        raise Forbidden(
            "Requests from web pages of other origins are not allowed. See server.cors_origins.",
            reason="ORIGIN_NOT_ALLOWED",
        )

    def _check_site(self, scope: Scope, headers: Headers) -> None:
        """Refuse requests of pages on other sites; for a GET without an `Origin` only this header shows that."""
        if _OWN_SITE.issuperset(headers.getlist("sec-fetch-site")):
            return
        origin = headers.get("origin")
        if origin is not None and self._is_listed(origin):
            return
        is_page = scope["path"] in PAGES or is_view(scope["path"])
        if scope["method"] == "GET" and is_page and _opens_a_tab(headers):
            return
        raise Forbidden(
            "Requests from web pages of other sites (Sec-Fetch-Site) are not allowed. See server.cors_origins.",
            reason="ORIGIN_NOT_ALLOWED",
        )

    def _admit(self, scope: Scope, headers: Headers) -> None:
        """Authenticate the caller. A browser's preflight request has no credentials."""
        is_preflight = scope["method"] == "OPTIONS" and "access-control-request-method" in headers
        if _is_open(scope) or (is_preflight and self._origins):
            return
        # The address of the connection: an attacker could choose that in a header.
        address = scope["client"][0] if scope.get("client") else ""
        given = headers.getlist("authorization")
        if self._api(scope):
            given = list(authorizations(headers))
        elif mem0_paths.is_mem0(scope["path"]):
            given = mem0_paths.authorizations(headers)
        caller = self._authentication.admit(given, address)
        let_ask(caller)
        if caller.key_id:
            structlog.contextvars.bind_contextvars(key=caller.key_id)

    def _api(self, scope: Scope) -> str:
        """Return the API of a request to the memory proxy; empty for other requests."""
        return api_of(scope["path"]) if self._is_proxy else ""

    # --- what arrives ------------------------------------------------------------------------------

    async def _read_body(self, scope: Scope, headers: Headers, receive: Receive) -> bytes:
        limit = self._max_proxied_bytes if self._api(scope) else self._max_body_bytes
        declared = headers.get("content-length", "")
        if declared.isascii() and declared.isdigit() and int(declared) > limit:
            raise _too_large(limit)
        try:
            async with asyncio.timeout(BODY_TIMEOUT_S):
                body = await _collect(connection_of(scope), receive, limit)
        except TimeoutError:
            raise Deadline("The body did not arrive in time.", reason="REQUEST_TIMED_OUT") from None
        if body and scope["method"] in _WITH_BODY and not self._api(scope):
            _check_media_type(headers)
        return body


async def _collect(connection: Holder | None, receive: Receive, limit: int) -> bytes:
    parts: list[bytes] = []
    size = held = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _Gone
        part = message.get("body", b"")
        size += len(part)
        if size > limit:
            raise _too_large(limit)
        if connection is not None and size > PIECE_BYTES:
            if not connection.hold(size - held):
                busy = "Too many bytes of requests and responses are in memory. Retry later."
                raise Exhausted(busy, reason="SERVER_BUSY", retry_after_s=1.0)
            held = size
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


def _too_large(limit: int) -> InvalidRequest:
    return InvalidRequest(f"The body exceeds {limit} bytes.", reason="BODY_TOO_LARGE")


def _route(scope: Scope) -> str:
    """Return the pattern of the route, never the path itself, which may contain anything."""
    return getattr(scope.get("route"), "path", "")


def _verb(scope: Scope) -> str:
    """Return the verb of a request, by the name that both transports have for it; `none` for other routes."""
    route = scope.get("route")
    return "none" if route is None else str(route.name)


def _is_open(scope: Scope) -> bool:
    """Return whether a request needs no key. A browser loads the files of the web view without one."""
    method, path = scope["method"], scope["path"]
    if f"{method} {path}" in OPEN_ROUTES or path.startswith(SEARCHED_FOR_OAUTH):
        return True
    return method == "GET" and is_view(path)


def _opens_a_tab(headers: Headers) -> bool:
    """Return whether a browser loads a page in a tab of its own, not a frame, an image or a script."""
    is_navigation = headers.getlist("sec-fetch-mode") == ["navigate"]
    return is_navigation and headers.getlist("sec-fetch-dest") == ["document"]


def _host_name(host: str) -> str:
    """Return the name in a Host header, without its port; empty if it is not a host."""
    found = _HOST.fullmatch(host)
    return "" if found is None else (found["address"] or found["name"]).lower()


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _check_path(scope: Scope) -> None:
    """Refuse paths in which an id could also be read as several segments, or as another id."""
    raw: bytes = scope.get("raw_path", b"").partition(b"?")[0]
    parts = raw.split(b"/")
    is_plain = b"%" not in raw and raw.isascii()
    faults = () if is_plain else ((at, found) for at, part in enumerate(parts) if (found := _fault(part)))
    place, fault = next(iter(faults), (0, ""))
    if place == _CHILD_PLACE and parts[_CHILD_PLACE - 1] in _CHILDREN:
        raise _CHILDREN[parts[_CHILD_PLACE - 1]]()
    if not fault and scope["path"].startswith("/v1/agents//"):
        fault = "is empty"
    if fault:
        raise InvalidRequest(
            f"agent_id: {fault}; allowed: 1-128 characters of any script, without slashes",
            reason="INVALID_AGENT_ID",
            violations=[FieldViolation("agent_id", fault)],
        )


def _fault(part: bytes) -> str:
    """Return why a segment of a path is no id; empty if it may be one. An escaped slash has two meanings."""
    lowered = part.lower()
    if b"%2f" in lowered or b"%5c" in lowered:
        return "contains a slash or backslash"
    try:
        unquote_to_bytes(part).decode()
    except UnicodeDecodeError:
        return "is not UTF-8"
    return ""


def _check_media_type(headers: Headers) -> None:
    media_type, _, options = headers.get("content-type", "").partition(";")
    charset = options.strip().lower().removeprefix("charset=").strip('"')
    is_json = media_type.strip().lower() == "application/json"
    if not is_json or charset not in ("", "utf-8", "utf8") or "content-encoding" in headers:
        raise InvalidRequest(
            "Send the body as application/json in UTF-8, uncompressed.",
            reason="UNSUPPORTED_MEDIA_TYPE",
        )


def _is_upload(scope: Scope) -> bool:
    return scope["method"] == "POST" and _UPLOAD.fullmatch(scope["path"]) is not None


def _check_upload_type(headers: Headers) -> None:
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type not in _UPLOAD_TYPES or "content-encoding" in headers:
        raise InvalidRequest(
            "Send a backup or an export as application/octet-stream.",
            reason="UNSUPPORTED_MEDIA_TYPE",
        )


class _Watch:
    """Cancels the work on a request if its client disconnects."""

    def __init__(self, receive: Receive, work: asyncio.Task[Any]) -> None:
        self._receive = receive
        self._work: asyncio.Task[Any] | None = work
        self._watching: asyncio.Task[Message] | None = None
        self.is_gone = False

    def begin(self) -> asyncio.Task[Message]:
        """Start watching. The task ends when the client disconnects or has the whole response."""
        if self._watching is None:
            self._watching = asyncio.ensure_future(self._receive())
            self._watching.add_done_callback(self._seen)
        return self._watching

    def _seen(self, watching: asyncio.Task[Message]) -> None:
        if not watching.cancelled() and self._work is not None:
            self.is_gone = True
            self._work.cancel()

    def end(self) -> None:
        """Stop watching."""
        self._work = None
        if self._watching is not None:
            self._watching.cancel()


async def _send_in_pieces(message: Message, connection: Holder | None, send: Send) -> None:
    """Send a large part of a body in pieces, each after the client has read the previous ones."""
    body, more_body = message["body"], message.get("more_body", False)
    if connection is not None:
        connection.hold(len(body))
    for start in range(0, len(body), PIECE_BYTES):
        end = start + PIECE_BYTES
        piece = {"type": message["type"], "body": body[start:end], "more_body": more_body or end < len(body)}
        await send(piece)
    if connection is not None:
        connection.release(len(body))


async def _with_watch(app: ASGIApp, scope: Scope, body: bytes, receive: Receive, send: Send) -> None:
    """Run the app on a complete body; cancel it if the client disconnects."""
    work = asyncio.current_task()
    assert work is not None, "a request is a task"
    watch = _Watch(receive, work)
    is_read = False

    async def replay() -> Message:
        nonlocal is_read
        if is_read:
            return await asyncio.shield(watch.begin())
        is_read = True
        return {"type": "http.request", "body": body, "more_body": False}

    # Most requests finish before watching would be worth a task.
    soon = asyncio.get_running_loop().call_later(WATCH_AFTER_S, watch.begin)
    try:
        await app(scope, replay, send)
    except asyncio.CancelledError:
        if not watch.is_gone:
            raise
        work.uncancel()
    finally:
        soon.cancel()
        watch.end()
