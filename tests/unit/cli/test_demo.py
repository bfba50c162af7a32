"""The demo shows memories that fade, return, stay and leave a trace, in both languages."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ebbtide.cli import app as command_line
from ebbtide.cli.demo.story import demo_settings
from ebbtide.han import contains_han
from ebbtide.settings import MemorySettings

Json = dict[str, Any]


def printed_by(*arguments: str) -> str:
    """Return the output of `ebbtide demo`; standard error must stay empty."""
    output, errors = io.StringIO(), io.StringIO()
    with redirect_stdout(output), redirect_stderr(errors), pytest.raises(SystemExit) as caught:
        command_line.main(["demo", "--fast", *arguments])
    assert not caught.value.code
    assert errors.getvalue() == ""
    return output.getvalue()


@pytest.fixture(
    scope="module", params=[pytest.param((), marks=pytest.mark.full), ("--lang", "zh")], ids=["en", "zh"]
)
def events(request: pytest.FixtureRequest) -> list[Json]:
    """The events of one demo."""
    return [json.loads(line) for line in printed_by("--json", *request.param).splitlines()]


def test_the_demo_keeps_its_promises(events: list[Json]) -> None:
    """Followed memories start complete, only become shorter, and are forgotten in the end, except the pinned one."""
    kinds = [event["event"] for event in events]
    assert kinds[0] == "remembered" and kinds[-3:] == ["once_known", "kept", "done"]
    made = [memory for event in events if event["event"] == "remembered" for memory in event["memories"]]
    followed = {memory["id"]: memory for memory in made if memory["name"]}
    names = {memory["name"] for memory in followed.values()}
    assert names == {"lighthouse", "bakery", "whistle", "allergy"}
    assert all(len(memory["content"]) == memory["original_length"] for memory in followed.values())
    for node_id, first in followed.items():
        faded = [e for e in events if e["event"] == "faded" and e["memory"]["id"] == node_id]
        lengths = [first["original_length"], *(event["length"] for event in faded)]
        assert lengths == sorted(lengths, reverse=True) and len(set(lengths)) == len(lengths)
        assert (len(lengths) > 2) == (first["name"] != "allergy")
        assert all(event["length"] == len(event["memory"]["content"]) for event in faded)
        gone = [e for e in events if e["event"] == "forgotten" and e["id"] == node_id]
        assert len(gone) <= 1 and len(gone) >= (first["name"] == "lighthouse")
        for event in gone:
            assert event["first_content"] == first["content"] and event["batch"] >= faded[-1]["batch"]


def test_a_name_that_comes_back_supports_its_memories(events: list[Json]) -> None:
    """A message that mentions a name again raises the importance of its memory, and a recall by it returns that."""
    [back] = [event for event in events if event["event"] == "returned"]
    assert back["memory"]["importance"] >= 1 and back["memory"]["importance"] > back["importance_before"]
    assert back["memory"]["content"] in back["text"] and back["message"] in back["text"]


def test_a_pinned_memory_stays_whole(events: list[Json]) -> None:
    """After hundreds of batches a recall returns what the user asked to remember, word for word."""
    [kept] = [event for event in events if event["event"] == "kept"]
    assert kept["batch"] >= 300 and kept["memory"]["content"] in kept["text"]
    assert len(kept["memory"]["content"]) == kept["memory"]["original_length"]


def test_the_demo_reports_a_forgotten_memory(events: list[Json]) -> None:
    """A recall with default parameters reports that something was known about the lighthouse, without its content."""
    [once] = [event for event in events if event["event"] == "once_known"]
    [lost] = [event for event in events if event["event"] == "forgotten" and event["name"] == "lighthouse"]
    assert once["first_content"] == lost["first_content"] and once["first_content"] not in once["text"]
    [sentence] = once["sentences"]
    assert sentence in once["text"].split("\n---\n")
    assert sentence in {
        "[Memory] I once knew something about lighthouse, but I can't recall it",
        "[记忆] 关于灯塔，我曾经知道些什么，但想不起来了",
    }


def test_the_demo_uses_the_default_parameters(tmp_path: Path) -> None:
    """No parameter of the demo differs from the defaults."""
    assert demo_settings(tmp_path).memory == MemorySettings()


def test_the_first_recalls_return_the_followed_memories(events: list[Json]) -> None:
    """Both recalls return a followed memory with its full content."""
    recalled = [event["text"] for event in events if event["event"] == "recalled"]
    assert len(recalled) == 2
    assert "一只铜哨子吹三声" in recalled[0] or "blew a whistle under the lighthouse" in recalled[0]
    assert "charged a tiny bakery in Porto eleven times" in recalled[1]


@cache
def screen_of(columns: int, lang: str) -> str:
    """Return the demo as a screen shows it after `make demo` in a clone, in a Chinese locale."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ebbtide.cli.demo.command.program", lambda: ".venv/bin/ebbtide")
        patch.setenv("COLUMNS", str(columns))
        patch.setenv("LC_ALL", "zh_CN.UTF-8")
        return printed_by(*(("--lang", "zh") if lang == "zh" else ()))


@pytest.mark.full
def test_the_last_panel_names_commands_that_exist() -> None:
    """Each command that the demo suggests begins with the path of the script."""
    text = screen_of(80, "en")
    panel = text[text.index("Your turn") :]
    for command in ("serve", "remember -", 'recall -q "Where did Ann move?"'):
        assert f".venv/bin/ebbtide {command}" in panel
    assert panel.count("ebbtide") == 3


@pytest.mark.full
@pytest.mark.parametrize(("columns", "lang"), [(80, "en"), (120, "zh")])
def test_the_demo_fits_the_screen(columns: int, lang: str) -> None:
    """The demo is plain text without a terminal, fits the screen, truncates no memory, and ignores the locale."""
    from rich.cells import cell_len

    text = screen_of(columns, lang)
    assert "\x1b" not in text
    assert max(cell_len(line) for line in text.splitlines()) <= columns
    unbroken = " ".join(line.strip() for line in text.splitlines())
    memory = "blew a whistle under the lighthouse" if lang == "en" else "她就提着马灯站到灯塔底下"
    assert memory in unbroken
    assert contains_han(text) == (lang == "zh")
