"""The pages of the documentation as the tests here read them: files, links, fenced blocks, tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "service" / "ebbtide"
DOCS = ROOT / "docs"

NOT_OURS = frozenset({"node_modules", "dist", "build", "__pycache__"})
"""Folders that tools make; hidden ones are left out too, except those named in `HIDDEN_BUT_OURS`."""

HIDDEN_BUT_OURS = frozenset({".ci", ".github"})


def read(name: str) -> str:
    """The text of a file of the repository."""
    return (ROOT / name).read_text(encoding="utf-8")


def files(folder: Path = ROOT) -> Iterator[Path]:
    """Every file of the repository that is ours, in order."""
    for path in sorted(folder.iterdir()):
        is_hidden = path.name.startswith(".") and path.name not in HIDDEN_BUT_OURS
        if path.is_dir():
            is_tools = path.name in NOT_OURS or path.name.endswith(".egg-info")
            if not is_hidden and not is_tools:
                yield from files(path)
        elif not is_hidden:
            yield path


def pages() -> list[Path]:
    """Every page of the documentation."""
    return [path for path in files() if path.suffix == ".md"]


def modules(folder: Path = PACKAGE) -> list[Path]:
    """Every Python module of a folder that is written by hand."""
    return [path for path in files(folder) if path.suffix == ".py" and not path.match("v1/*_pb2*.py")]


def without_code(text: str) -> str:
    """A page without its fenced blocks and code spans: what stands there is no link."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`", "", text)


def links(text: str) -> list[str]:
    """The targets of a page's links and pictures."""
    return re.findall(r"\]\(([^)\s]+)\)", without_code(text))


def anchors(text: str) -> set[str]:
    """The anchors that a page's headings make, as GitHub makes them."""
    body = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    found: set[str] = set()
    for heading in re.findall(r"^#{1,6} +(.+?)\s*$", body, flags=re.MULTILINE):
        plain = re.sub(r"[^\w\- ]", "", heading.lower().replace("`", ""))
        found.add(plain.replace(" ", "-"))
    return found


def marked_block(text: str, mark: str) -> str:
    """The content of the fenced block that follows `<!-- run: mark -->`."""
    found = re.search(
        rf"<!-- run: {re.escape(mark)} -->\s*\n```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL
    )
    assert found is not None, f"there is no block marked {mark}"
    return found[1]


def rows(text: str, heading: str) -> list[list[str]]:
    """The cells of every row of the first table below a heading, its head row left out."""
    _, _, below = text.partition(f"\n{heading}\n")
    assert below, f"there is no heading {heading!r}"
    table = re.search(r"^\|.*\|\n\|[-| :]+\|\n((?:\|.*\|\n)+)", below, re.MULTILINE)
    assert table is not None, f"there is no table below {heading!r}"
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in table[1].splitlines()]
