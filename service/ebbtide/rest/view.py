"""`/ui`: the web view, a page that reads the REST interface. It needs no key, because its files contain no data.

The headers limit the page to the files and the interface of this daemon, so that a text of a memory cannot run as a
script even if the page had a fault.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from ebbtide.rest import view_files
from ebbtide.rest.view_files import INDEX, LICENCES, PATH, ViewFile
from ebbtide.verbs.history import MAX_ROWS
from ebbtide.verbs.memory_map import MAX_NODES

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)

NOT_PERMITTED = (
    *("accelerometer", "camera", "display-capture", "geolocation", "gyroscope", "hid", "idle-detection"),
    *("magnetometer", "microphone", "midi", "payment", "screen-wake-lock", "serial", "usb"),
    "xr-spatial-tracking",
)
"""Abilities of browsers that the page may not use. It may write to the clipboard, for its copy buttons."""

HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": ", ".join(f"{name}=()" for name in NOT_PERMITTED),
}
"""Headers of every file. `HttpChecks` adds Cross-Origin-Resource-Policy."""

FOREVER = "public, max-age=31536000, immutable"
"""For files whose name contains the hash of their content."""

_PICTURE: Final = re.compile("a/([^/]++)(?:/m/[^/]++)?")
"""The paths below `/ui/` of the picture of an agent's memory."""

READS = (f"map?page_size={MAX_NODES}", f"history?page_size={MAX_ROWS}")
"""The requests for the picture of an agent, as `web/src/reading.ts` sends them."""

AS_ENCODED = "!'()*~"
"""Characters that JavaScript's `encodeURIComponent` leaves, and Python's `quote` by default does not."""

MISSING = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Ebbtide</title></head>
<body>
<h1>The web view is not in this installation</h1>
<p>The daemon runs, and everything else works. {english} Then start the daemon again.</p>
<pre>{command}</pre>
<div lang="zh">
<h1>此安装中没有网页界面</h1>
<p>守护进程正在运行，其他功能均可使用。{chinese}然后重新启动守护进程。</p>
<pre>{command}</pre>
</div>
</body>
</html>
"""

FROM_CHECKOUT = {
    "english": "To build the view, run this in the checkout. It downloads Node if there is none.",
    "chinese": "要构建网页界面，请在代码目录中运行下面的命令；如果没有 Node，它会下载。",
    "command": "make serve",
}

FROM_PACKAGE = {
    "english": "This package was built without the view. Install a complete one.",
    "chinese": "此软件包在构建时没有包含网页界面。请安装完整的软件包。",
    "command": "pip install --force-reinstall --no-deps ebbtide",
}


def view_routes(folder: Path, *, has_open_reads: bool = False) -> list[BaseRoute]:
    """Return the routes of the view whose files are in a folder. Without files, `/ui` explains how to get them.

    `has_open_reads` is whether the daemon answers requests without a key.
    """
    view = _View(view_files.read_files(folder), has_open_reads=has_open_reads)
    return [Route(PATH, view.page, name="view"), Route(f"{PATH}/{{path:path}}", view.file, name="view")]


class _View:
    """Answers requests for the files of the view."""

    def __init__(self, files: Mapping[str, ViewFile], *, has_open_reads: bool) -> None:
        self._files = files
        self._has_open_reads = has_open_reads
        how = FROM_CHECKOUT if view_files.is_checkout() else FROM_PACKAGE
        self._page = files.get(INDEX) or ViewFile(MISSING.format(**how).encode(), "text/html; charset=utf-8")

    async def page(self, request: Request) -> Response:
        """Return index.html, or how to get the view."""
        return _respond(request, self._page)

    async def file(self, request: Request) -> Response:
        """Return a file, the licences, or index.html for a path of the application. Raise ROUTE_NOT_FOUND."""
        if not view_files.is_view(request.scope["path"]):
            raise HTTPException(404)
        name: str = request.path_params["path"]
        found = self._files.get(LICENCES if name == "licences" else name)
        if found is not None:
            return _respond(request, found, is_hashed=name.startswith("assets/"))
        if name == "licences" or not view_files.is_history_path(name):
            raise HTTPException(404)
        response = _respond(request, self._page)
        if self._has_open_reads and INDEX in self._files:
            response.headers.update(preloads_of(name))
        return response


def preloads_of(name: str) -> dict[str, str]:
    """Return the header that makes a browser read the data of a picture while it loads the scripts.

    Browsers send no key with such a request.
    """
    found = _PICTURE.fullmatch(name)
    if found is None:
        return {}
    agent = f"/v1/agents/{quote(found[1], safe=AS_ENCODED)}"
    links = (f"<{agent}/{read}>; rel=preload; as=fetch; crossorigin" for read in READS)
    return {"Link": ", ".join(links)}


def _respond(request: Request, file: ViewFile, *, is_hashed: bool = False) -> Response:
    """Return a file, or 304 if the browser has it."""
    caching = {
        "Cache-Control": FOREVER if is_hashed else "no-cache",
        "ETag": file.etag,
        "Vary": "Accept-Encoding",
    }
    headers = {**HEADERS, **caching}
    known = request.headers.get("if-none-match", "")
    if file.etag in (tag.strip() for tag in known.split(",")):
        return Response(status_code=304, headers=headers)
    body = file.body
    if file.compressed is not None and "gzip" in request.headers.get("accept-encoding", ""):
        body = file.compressed
        headers["Content-Encoding"] = "gzip"
    return Response(body, headers=headers, media_type=file.media_type)
