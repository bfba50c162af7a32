"""A small built view, with the files that a real build writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from ebbtide.rest import view_files

INDEX = '<!doctype html>\n<script type="module" src="/ui/assets/index-B1a2c3D4.js"></script>\n'
SCRIPT = "// 林月\n" + "document.title = 'Ebbtide';\n" * 100
LICENCES = "# Licences\n\npreact (MIT)\n"
FILES = {
    "index.html": INDEX,
    "icon-C0ffee00.svg": "<svg xmlns='http://www.w3.org/2000/svg'/>",
    "assets/index-B1a2c3D4.js": SCRIPT,
    "assets/index-E5f6.css": "body { margin: 0 }",
    ".vite/manifest.json": "{}",
    ".vite/license.md": LICENCES,
    ".vite/built-from": "0" * 64,
}


def use_view(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Let daemons of this process serve the small view, which is written to a folder."""
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    monkeypatch.setattr(view_files, "FILES", folder)
