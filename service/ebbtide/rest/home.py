"""`GET /`: where to go from here, for a program as JSON, for a browser as a page."""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from ebbtide import __version__
from ebbtide.rest.view_files import PATH

PLACES = {
    "name": "Ebbtide",
    "version": __version__,
    "docs": "/docs",
    "openapi": "/openapi.json",
    "health": "/healthz",
    "readiness": "/readyz",
}

PAGE = f"""<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Ebbtide</title></head>
<body>
<h1>Ebbtide {__version__}</h1>
<p>A memory daemon for AI agents. {{view}}<a href="/docs">REST interface</a>,
<a href="/openapi.json">OpenAPI document</a>, <a href="/readyz">readiness</a>.</p>
</body>
</html>
"""

VIEW = f'<a href="{PATH}">Web view</a>, '

CONTENT_SECURITY_POLICY = "default-src 'none'; frame-ancestors 'none'"


async def home(request: Request) -> Response:
    """Return the version and where the documentation and the web view are."""
    has_view = request.app.state.service.settings.server.ui
    if "text/html" in request.headers.get("accept", ""):
        page = PAGE.format(view=VIEW if has_view else "")
        return HTMLResponse(page, headers={"Content-Security-Policy": CONTENT_SECURITY_POLICY})
    places = {**PLACES, "view": PATH} if has_view else PLACES
    return Response(msgspec.json.encode(places), media_type="application/json")
