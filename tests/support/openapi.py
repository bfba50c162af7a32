"""The OpenAPI document as a daemon serves it."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import httpx

from ebbtide.rest.app import create_app
from tests.support.in_process import service_in


def openapi_document() -> dict[str, Any]:
    """Return the document of a daemon with default settings."""
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_fetch(Path(folder)))


async def _fetch(folder: Path) -> dict[str, Any]:
    async with service_in(folder) as service:
        transport = httpx.ASGITransport(create_app(service))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
            document: dict[str, Any] = (await http.get("/openapi.json")).json()
            return document
