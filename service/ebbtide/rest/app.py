"""The REST app: routes, errors and documentation, behind the HTTP checks."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from ebbtide.errors import EbbtideError
from ebbtide.rest import moving, problems, view_files
from ebbtide.rest.documents import documents
from ebbtide.rest.forwarding import Forwarding
from ebbtide.rest.home import home
from ebbtide.rest.http_checks import EXPOSED_HEADERS, HttpChecks
from ebbtide.rest.mcp import mcp_routes
from ebbtide.rest.mem0 import mem0_routes
from ebbtide.rest.proxy_paths import api_of
from ebbtide.rest.routes import routes
from ebbtide.rest.view import view_routes
from ebbtide.verbs.service import Service

COMPRESSED_FROM_BYTES = 1024
"""Smaller responses are not worth a gzip header."""

COMPRESSION_LEVEL = 4
"""It takes a quarter of the time of level 9 for a twelfth more bytes."""


UNCOMPRESSED = ("text/event-stream", "image/png")
"""Media types that are not compressed, of those that the application sends. The default list of fourteen would be
normalised for each request.
"""


class _Compression(GZipMiddleware):
    """Compresses responses except files, which are compressed already or too large for the event loop, files of the web
    view, which are compressed once, and responses of the memory proxy, which are passed on as they are.
    """

    def __init__(self, app: ASGIApp) -> None:
        super().__init__(app, COMPRESSED_FROM_BYTES, COMPRESSION_LEVEL)
        self.exclude_content_types = UNCOMPRESSED

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"] if scope["type"] == "http" else ""
        is_sent_as_is = moving.is_file(scope) or api_of(path) or view_files.is_view(path)
        await (self.app if is_sent_as_is else super().__call__)(scope, receive, send)


def create_app(service: Service) -> ASGIApp:
    """Return the ASGI application of a service."""
    app = Starlette(routes=[*routes(), *mcp_routes(), *mem0_routes(), Route("/", home), *documents()])
    if service.settings.server.ui:
        has_open_reads = not service.authentication.asks_for_keys
        app.router.routes.extend(view_routes(view_files.FILES, has_open_reads=has_open_reads))
    if service.settings.proxy.upstreams:
        # Imported here, so that only daemons with a proxy load it and an HTTP client.
        from ebbtide.rest.proxy import proxy_routes

        app.state.proxy, proxied = proxy_routes(service)
        app.router.routes.extend(proxied)
    # A path with a slash at its end does not exist.
    app.router.redirect_slashes = False
    app.state.service = service
    app.add_exception_handler(EbbtideError, problems.on_ebbtide_error)
    app.add_exception_handler(HTTPException, problems.on_http_exception)
    app.add_exception_handler(Exception, problems.on_fault)
    app.add_middleware(_Compression)
    origins = service.settings.server.cors_origins
    if origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(origins),
            allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
            allow_headers=["authorization", "content-type", "idempotency-key", "x-request-id"],
            expose_headers=list(EXPOSED_HEADERS),
        )
    checked = HttpChecks(app, service.settings, service.authentication, service.metrics)
    if service.peers is None:
        return checked
    return Forwarding(checked, service.peers, service.settings.server.max_buffered_bytes)
