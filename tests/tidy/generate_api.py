"""Write the tables of operations in the docs from the catalogue: `python -m tests.tidy.generate_api`.

A table is found by its header row, so the text around it may change. A test compares the pages with the output.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from ebbtide.access.requirements import Needs
from ebbtide.verbs.catalogue import CATALOGUE, REQUIREMENTS
from tests.tidy.pages import DOCS

REACH = {
    Needs.NOTHING: "no key",
    Needs.KEY: "any key",
    Needs.SCOPE: "any key with the scope",
    Needs.AGENT: "bound to the agent",
    Needs.EVERY_AGENT: "bound to no agents",
}


def _calls() -> Iterator[tuple[str, ...]]:
    for operation in CATALOGUE:
        if operation.is_rpc:
            yield f"`{operation.name}`", f"`{operation.route}`"


def _requirements() -> Iterator[tuple[str, ...]]:
    for name, (route, required) in REQUIREMENTS.items():
        yield name, f"`{route}`", " or ".join(required.scopes) or "–", REACH[required.needs]


def _routes() -> Iterator[tuple[str, ...]]:
    for operation in CATALOGUE:
        anchor = re.sub(r"[^\w\- ]", "", operation.route.lower()).replace(" ", "-")
        summary = (operation.verb.__doc__ or "").partition("\n")[0]
        yield f"[`{operation.route}`](#{anchor})", f"`{operation.name}`", summary


TABLES: dict[str, tuple[str, Callable[[], Iterator[tuple[str, ...]]]]] = {
    "grpc.md": ("| call | REST |", _calls),
    "operating.md": ("| operation | route | scope | key |", _requirements),
    "api.md": ("| route | operation | what it does |", _routes),
}
"""The generated table of each page: its header row, and its rows."""


def render(name: str, page: str) -> str:
    """Return the page with its table regenerated."""
    head, rows = TABLES[name]
    made = "".join(f"| {' | '.join(cells)} |\n" for cells in rows())
    table = re.compile(rf"({re.escape(head)}\n\|[-| :]+\|\n)(?:\|.*\|\n)*")
    rendered, count = table.subn(lambda found: found[1] + made, page)
    assert count == 1, f"{name} has {count} tables with the head {head}"
    return rendered


def main() -> None:
    """Write the tables."""
    for name in TABLES:
        path = DOCS / name
        path.write_text(render(name, path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
