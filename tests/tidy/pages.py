"""Read files, links, fenced blocks and tables of the documentation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "service" / "ebbtide"
DOCS = ROOT / "docs"

NOT_OURS = frozenset({"node_modules", "dist", "build", "__pycache__"})
"""Generated folders. Hidden folders are skipped too, except those in `HIDDEN_BUT_OURS`."""

HIDDEN_BUT_OURS = frozenset({".ci", ".github"})


def read(name: str) -> str:
    """Return the content of a file of the repository."""
    return (ROOT / name).read_text(encoding="utf-8")


def files(folder: Path = ROOT) -> Iterator[Path]:
    """Yield the files of the repository in order, without those that tools generate."""
    for path in sorted(folder.iterdir()):
        is_hidden = path.name.startswith(".") and path.name not in HIDDEN_BUT_OURS
        if path.is_dir():
            is_tools = path.name in NOT_OURS or path.name.endswith(".egg-info")
            if not is_hidden and not is_tools:
                yield from files(path)
        elif not is_hidden:
            yield path


def pages() -> list[Path]:
    """Return the pages of the documentation."""
    return [path for path in files() if path.suffix == ".md"]


def modules(folder: Path = PACKAGE) -> list[Path]:
    """Return the Python modules of a folder, without generated ones."""
    return [path for path in files(folder) if path.suffix == ".py" and not path.match("v1/*_pb2*.py")]


def without_code(text: str) -> str:
    """Return a page without fenced blocks and code spans, which contain no links."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`", "", text)


def links(text: str) -> list[str]:
    """Return the targets of a page's links and pictures."""
    return re.findall(r"\]\(([^)\s]+)\)", without_code(text))


def anchors(text: str) -> set[str]:
    """Return the anchors of a page's headings, as GitHub generates them."""
    body = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    found: set[str] = set()
    for heading in re.findall(r"^#{1,6} +(.+?)\s*$", body, flags=re.MULTILINE):
        plain = re.sub(r"[^\w\- ]", "", heading.lower().replace("`", ""))
        found.add(plain.replace(" ", "-"))
    return found


def marked_block(text: str, mark: str) -> str:
    """Return the content of the fenced block after `<!-- run: mark -->`."""
    found = re.search(
        rf"<!-- run: {re.escape(mark)} -->\s*\n```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL
    )
    assert found is not None, f"there is no block marked {mark}"
    return found[1]


def rows(text: str, heading: str) -> list[list[str]]:
    """Return the cells of the first table below a heading, without its header row."""
    _, _, below = text.partition(f"\n{heading}\n")
    assert below, f"there is no heading {heading!r}"
    table = re.search(r"^\|.*\|\n\|[-| :]+\|\n((?:\|.*\|\n)+)", below, re.MULTILINE)
    assert table is not None, f"there is no table below {heading!r}"
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in table[1].splitlines()]
