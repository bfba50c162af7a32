"""docs/errors.md lists the errors of errors.py and the codes of cli/exit_codes.py."""

from __future__ import annotations

import re

from ebbtide.cli.exit_codes import ExitCode
from ebbtide.errors import FAMILIES, REASONS
from tests.tidy.pages import read, rows

PAGE = "docs/errors.md"


def test_the_page_lists_every_reason() -> None:
    """Each reason is on the page with its HTTP status, gRPC code and family, and no other reason is."""
    listed = {
        name.strip("`"): (int(http), grpc, family)
        for name, http, grpc, family, _, _ in rows(read(PAGE), "## Reasons")
    }
    assert listed == {name: (r.http, r.grpc, r.family) for name, r in REASONS.items()}


def test_every_reason_has_a_meaning_and_advice() -> None:
    """No reason on the page lacks an explanation or the next step."""
    assert [row[0] for row in rows(read(PAGE), "## Reasons") if min(len(row[-2]), len(row[-1])) < 5] == []


def test_every_family_has_advice() -> None:
    """The page lists the families of the error tree, each with advice."""
    listed = {row[0]: row[1] for row in rows(read(PAGE), "## Families")}
    assert list(listed) == list(FAMILIES)
    assert [family for family, advice in listed.items() if len(advice) < 5] == []


def test_the_page_lists_every_exit_code() -> None:
    """Each exit code is on the page with its name, and the docstring of its class lists the same codes."""
    listed = {int(code): name for code, name, _ in rows(read(PAGE), "## Exit codes")}
    documented = re.findall(r"^\s*([A-Z_]+)\s+(\d+)\s+(?=\S)", ExitCode.__doc__ or "", re.MULTILINE)
    assert listed == {c.value: c.name for c in ExitCode}
    assert listed == {int(code): name for name, code in documented}
