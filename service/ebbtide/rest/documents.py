"""`/openapi.json` and `/docs`, served from files on this machine."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path

import msgspec
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from ebbtide.verbs.service import LARGE_BYTES

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; connect-src 'self'; font-src 'self'; frame-ancestors 'none'"
)


PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Ebbtide</title>
<link rel="stylesheet" href="/docs/files/swagger-ui.css">
</head>
<body>
<div id="swagger-ui"></div>
<script src="/docs/files/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
"""

START = """SwaggerUIBundle({url: "/openapi.json", dom_id: "#swagger-ui", deepLinking: true});
"""


@cache
def _encoded_document() -> bytes:
    # Imported here, because only readers of the document need FastAPI.
    from ebbtide.rest.openapi_document import openapi_document

    return msgspec.json.encode(openapi_document())


async def _document(request: Request) -> Response:
    # The first request takes 0.4 s.
    body = await request.app.state.service.offload(LARGE_BYTES, _encoded_document)
    return Response(body, media_type="application/json")


async def _page(_: Request) -> Response:
    return HTMLResponse(PAGE, headers={"Content-Security-Policy": CONTENT_SECURITY_POLICY})


async def _start(_: Request) -> Response:
    return Response(START, media_type="text/javascript")


def _swagger_files() -> Path:
    """Return the directory of Swagger UI, without importing its package, which would import FastAPI."""
    spec = find_spec("fastapi_swagger")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "resources"


def documents() -> list[BaseRoute]:
    """Return the routes of `/openapi.json` and `/docs`, which load nothing from elsewhere."""
    return [
        Route("/openapi.json", _document),
        Route("/docs", _page),
        Route("/docs/start.js", _start),
        Mount("/docs/files", StaticFiles(directory=_swagger_files())),
    ]
