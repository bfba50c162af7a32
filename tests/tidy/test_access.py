"""Commands can send credentials and the master key, and SECURITY.md names tests that exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer.main

from ebbtide.cli.app import app
from tests.tidy.pages import ROOT, read


def test_commands_with_an_address_accept_credentials() -> None:
    """Every command with an address also has options for a key and certificates."""
    wanted = {"--api-key-file", "--ca-file", "--client-cert"}
    found = 0
    for name, options in _commands(typer.main.get_command(app)):
        if "--url" in options:
            found += 1
            assert wanted <= options, name
    assert found > 10


def test_commands_that_work_offline_take_the_master_key() -> None:
    """Every command that opens a data directory has an option for the master key."""
    # A daemon has settings for the master key, and API keys are not encrypted with it.
    others = ("ebbtide serve", "ebbtide keys ")
    found = 0
    for name, options in _commands(typer.main.get_command(app)):
        if "--data-dir" in options and not name.startswith(others):
            found += 1
            assert "--master-key-file" in options, name
    assert found > 10


def _commands(command: Any, name: str = "ebbtide") -> Iterator[tuple[str, set[str]]]:
    for below, one in getattr(command, "commands", {}).items():
        yield from _commands(one, f"{name} {below}")
    yield name, {option for parameter in command.params for option in parameter.opts}


def test_promises_name_tests_that_exist() -> None:
    """Each test file that SECURITY.md names exists."""
    named = re.findall(r"`(tests/[\w/]+\.py)`", read("SECURITY.md"))
    assert len(named) > 4
    assert [name for name in named if not (ROOT / name).is_file()] == []
