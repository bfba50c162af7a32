"""docs/configuration.md matches settings.py and parameters.py."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from ebbtide.parameters import AgentParameters
from ebbtide.settings import Settings, load_settings
from tests.tidy.generate_configuration import PAGE, render, tables
from tests.tidy.pages import read


def test_tables_are_those_of_the_code() -> None:
    """Every table of the page equals the output of the generator."""
    page = PAGE.read_text(encoding="utf-8")
    assert page == render(page), "run: python -m tests.tidy.generate_configuration"


def test_no_table_is_left_out() -> None:
    """The page has a table for every section of the settings and for the agents' parameters."""
    page = PAGE.read_text(encoding="utf-8")
    assert set(re.findall(r"<!-- generated: ([\w.]+) -->", page)) == set(tables())


def test_every_setting_has_a_line_of_help() -> None:
    """Every setting and every parameter has a line of help."""
    sections = {name: field.annotation for name, field in Settings.model_fields.items()}
    fields = {
        f"{section}.{name}": field
        for section, model in {**sections, "parameters": AgentParameters}.items()
        for name, field in model.model_fields.items()  # type: ignore[union-attr]
    }
    assert [name for name, field in fields.items() if not field.description] == []


def test_the_example_is_a_settings_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The TOML example on the page is valid and has the documented effect."""
    for name in [name for name in os.environ if name.startswith("EBBTIDE_")]:
        monkeypatch.delenv(name)
    example = re.search(r"```toml\n(.*?)```", read("docs/configuration.md"), re.DOTALL)
    assert example is not None
    path = tmp_path / "ebbtide.toml"
    path.write_text(example[1], encoding="utf-8")
    settings = load_settings(config=path)
    assert settings.server.rest_port == 9000
    assert settings.memory.locale == "zh"


def test_flags_override_environment_overrides_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Flags override the environment, the environment the file, and the file the defaults."""
    path = tmp_path / "ebbtide.toml"
    path.write_text("[server]\nrest_port = 1\nhost = '::1'\nrequest_timeout_ms = 101\n", encoding="utf-8")
    monkeypatch.setenv("EBBTIDE_SERVER__REST_PORT", "2")
    monkeypatch.setenv("EBBTIDE_SERVER__HOST", "localhost")
    server = load_settings({"server": {"rest_port": 3}}, path).server
    assert (server.rest_port, server.host, server.request_timeout_ms) == (3, "localhost", 101)
    assert server.shutdown_grace_s == 30.0
