"""The files of the web view, which `build_view.py` puts into the package, and the paths below `/ui`.

No path of a request is joined with a folder: the files are read into a dictionary when the daemon starts.
"""

from __future__ import annotations

import gzip
import hashlib
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
FILES = PACKAGE / "web" / "files"
"""Where the build puts the files. The folder is not in a checkout before the first build."""

PATH = "/ui"
INDEX = "index.html"
LICENCES = ".vite/license.md"
"""The licence texts of the libraries in the bundle, relative to the files."""

COMPRESSED_FROM_BYTES = 1024

_MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".md": "text/plain; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}
"""Media types by suffix. Those of `mimetypes` depend on the files of the system."""


@dataclass(frozen=True, slots=True)
class ViewFile:
    """A file as it is sent: as it is, and compressed where that is smaller."""

    body: bytes = field(repr=False)
    media_type: str
    compressed: bytes | None = field(init=False, repr=False)
    etag: str = field(init=False)

    def __post_init__(self) -> None:
        is_large = len(self.body) >= COMPRESSED_FROM_BYTES
        smaller = gzip.compress(self.body, mtime=0) if is_large else self.body
        object.__setattr__(self, "compressed", smaller if len(smaller) < len(self.body) else None)
        # Weak, because it is the same for both forms.
        object.__setattr__(self, "etag", f'W/"{hashlib.sha256(self.body).hexdigest()[:32]}"')


def is_built(folder: Path) -> bool:
    """Return whether a folder contains the built view."""
    return (folder / INDEX).is_file()


def is_checkout() -> bool:
    """Return whether the package is in a checkout, where `make` can build the view."""
    return (PACKAGE.parents[1] / "build_view.py").is_file()


@cache
def read_files(folder: Path) -> Mapping[str, ViewFile]:
    """Return the files of a built view by path relative to the folder, and its licences. Empty without a view."""
    if not is_built(folder):
        return {}
    names = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    # Hidden files are those of the build, of which only the licences are served.
    public = [name for name in names if not name.startswith(".") or name == LICENCES]
    return {name: _file(folder / name) for name in public}


def _file(path: Path) -> ViewFile:
    return ViewFile(path.read_bytes(), _MEDIA_TYPES.get(path.suffix, "application/octet-stream"))


def is_view(path: str) -> bool:
    """Return whether a decoded path is that of the view and in normal form, without empty and dot segments."""
    if path != PATH and not path.startswith(f"{PATH}/"):
        return False
    return posixpath.normpath(path) == path.removesuffix("/")


def is_history_path(name: str) -> bool:
    """Return whether a path below `/ui/` is one of the application's own, which index.html shows.

    Those of agents are, because the id of an agent may contain a dot. Others with a dot are names of files.
    """
    return name.startswith("a/") or "." not in name
