"""docs/errors.md says what errors.py and cli/exit_codes.py say."""

from __future__ import annotations

import re

from ebbtide.cli.exit_codes import ExitCode
from ebbtide.errors import FAMILIES, REASONS
from tests.tidy.pages import read, rows

PAGE = "docs/errors.md"


def test_every_reason_stands_on_the_page_as_in_the_code() -> None:
    """Each reason has its HTTP status, gRPC code, family and meaning on the page, and nothing else is there."""
    told = {
        name.strip("`"): (int(http), grpc, family, meaning)
        for name, http, grpc, family, meaning, _ in rows(read(PAGE), "## Reasons")
    }
    known = {name: (r.http, r.grpc, r.family, r.meaning) for name, r in REASONS.items()}
    assert told == known


def test_every_reason_says_what_to_do() -> None:
    """The page leaves nobody without advice."""
    assert [row[0] for row in rows(read(PAGE), "## Reasons") if len(row[-1]) < 5] == []


def test_every_family_is_explained() -> None:
    """The families of the tree are those of the page."""
    page = read(PAGE)
    told = re.findall(r"^\| ([A-Z]\w+) \| [^|]+ \|$", page, re.MULTILINE)
    assert told == list(FAMILIES)


def test_exit_codes_are_those_of_the_command_line() -> None:
    """Each exit code stands on the page with its name and the meaning its class gives it."""
    told = {int(code): (name, meaning) for code, name, meaning in rows(read(PAGE), "## Exit codes")}
    documented = re.findall(r"^\s*([A-Z_]+)\s+(\d+)\s+(.+)$", ExitCode.__doc__ or "", re.MULTILINE)
    meanings = {int(code): (name, meaning.strip()) for name, code, meaning in documented}
    assert told == meanings
    assert {code: name for code, (name, _) in told.items()} == {c.value: c.name for c in ExitCode}
