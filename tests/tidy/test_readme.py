"""The READMEs are short, and their commands and examples work."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from typing import Any

import pytest

from ebbtide.cli.demo.narration import EN
from tests.support.process import Daemon
from tests.tidy.pages import links, marked_block, read

READMES = ("README.md", "README.zh-CN.md")

STATUSES = """
curl() { command curl --max-time 30 --write-out '\\n[%{http_code}]\\n' "$@"; }
"""
"""A shell function that makes curl print the status of every response."""


@pytest.mark.parametrize("page", READMES)
def test_quickstart_runs_as_printed(daemon: Daemon, page: str) -> None:
    """Every request of the quickstart succeeds, the recall answers as printed, and the log contains none of it."""
    if shutil.which("curl") is None and "CI" not in os.environ:
        pytest.skip("curl is not installed")
    port = daemon.url.rpartition(":")[2]
    script = marked_block(read(page), "quickstart").replace("8420", port)
    assert port in script
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", STATUSES + script],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert re.findall(r"^\[(\d+)\]$", done.stdout, re.MULTILINE) == ["202", "200", "200", "200"]
    shown = re.search(r"```json\n(.*?)\n```", read(page), re.DOTALL)
    assert shown is not None
    assert dated(shown[1]) in dated(done.stdout).splitlines()
    assert '"digested":true,"passes_done":true' in done.stdout
    remembered = re.search(r'"content": "([^"]+)"', script)
    assert remembered is not None
    assert remembered[1] in shown[1]
    assert remembered[1] not in daemon.log and json.dumps(remembered[1]) not in daemon.log


def dated(text: str) -> str:
    """Return a text with one date in place of every date before a memory, which is that of the test."""
    return re.sub(r"\[\d{4}-\d\d-\d\d\]", "[2026-11-23]", text)


@pytest.mark.parametrize("page", READMES)
def test_the_python_example_runs_as_printed(daemon: Daemon, page: str) -> None:
    """The Python lines put the printed memory before the question."""
    source = marked_block(read(page), "python").replace("http://127.0.0.1:8420", daemon.url)
    assert daemon.url in source
    names: dict[str, Any] = {}
    exec(compile(source, page, "exec"), names)
    names["memory"].close()
    assert dated(f"`{names['known']}`") in dated(read(page))
    assert names["messages"][0] == {"role": "system", "content": names["known"]}


@pytest.mark.parametrize("page", READMES)
def test_readme_stays_short(page: str) -> None:
    """A README has fewer than 200 lines; details belong to their own pages."""
    assert len(read(page).splitlines()) < 200


def commands(page: str) -> list[str]:
    """Return the commands, code and responses of a README, without comments and string literals."""
    found = re.findall(r"^```(bash|json|python)\n(.*?)^```", read(page), re.MULTILINE | re.DOTALL)
    return [re.sub(r" +# .*", "", re.sub(r'"[^"\n]*"', '""', code)) for _, code in found]


def test_the_chinese_readme_has_the_same_commands() -> None:
    """A reader of the Chinese README types the same commands, with other texts."""
    assert commands("README.zh-CN.md") == commands("README.md")


def test_the_chinese_readme_has_the_same_parts() -> None:
    """Both READMEs have the same number of sections, bullets, tables and blocks, and link to the same pages."""
    english, chinese = (read(page) for page in READMES)
    for pattern in (r"^## ", r"^- \*\*", r"^```", r"^\|", r"^!\["):
        counts = [len(re.findall(pattern, page, re.MULTILINE)) for page in (english, chinese)]
        assert counts[0] == counts[1], pattern
    targets = [{link for link in links(page) if not link.startswith("#")} for page in (english, chinese)]
    assert targets[0] - {"README.zh-CN.md"} == targets[1] - {"README.md"}


def test_the_picture_of_the_demo_stands_alone() -> None:
    """docs/demo.svg is well-formed, shows every chapter of the demo, and loads nothing from the network."""
    picture = ET.fromstring(read("docs/demo.svg"))
    text = "".join(picture.itertext()).replace("\xa0", " ")
    for heading in (EN.remembering, EN.recalling, EN.time, EN.once, EN.end):
        assert heading in text
    assert set(re.findall(r"https?://[^\"' )]+", read("docs/demo.svg"))) == {"http://www.w3.org/2000/svg"}
    assert "<script" not in read("docs/demo.svg")


def test_the_commands_it_names_exist() -> None:
    """Every `make` target that a page names is in the Makefile."""
    targets = set(re.findall(r"^([\w-]+):", read("Makefile"), re.MULTILINE))
    for name in (*READMES, "CONTRIBUTING.md", "docs/memory-model.md", "docs/operating.md"):
        named = set(re.findall(r"(?:^|`)make ([\w-]+)", read(name), re.MULTILINE))
        assert named <= targets, name
