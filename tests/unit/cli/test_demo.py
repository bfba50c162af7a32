"""The demo: what it promises to show, checked on what it printed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ebbtide.cli import app as command_line
from ebbtide.cli.demo.narration import language

Json = dict[str, Any]


def printed_by(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What `ebbtide demo` prints on standard output; on standard error it says nothing."""
    with pytest.raises(SystemExit) as caught:
        command_line.main(["demo", *arguments])
    assert not caught.value.code
    printed = capsys.readouterr()
    assert printed.err == ""
    return printed.out


@pytest.fixture
def events(capsys: pytest.CaptureFixture[str]) -> list[Json]:
    """The events of one demo."""
    return [json.loads(line) for line in printed_by(capsys, "--fast", "--json").splitlines()]


def test_the_demo_keeps_its_promises(events: list[Json]) -> None:
    """Memories begin whole, shrink and never grow, are forgotten, and a recall tells that something was known."""
    kinds = [event["event"] for event in events]
    assert kinds[0] == "remembered" and kinds[-1] == "done"
    made = [memory for event in events if event["event"] == "remembered" for memory in event["memories"]]
    followed = {memory["id"]: memory for memory in made if memory["name"]}
    assert {memory["name"] for memory in followed.values()} == {"lighthouse", "bakery", "whistle"}
    assert all(len(memory["content"]) == memory["original_length"] for memory in followed.values())
    for node_id, first in followed.items():
        faded = [e for e in events if e["event"] == "faded" and e["memory"]["id"] == node_id]
        lengths = [first["original_length"], *(event["length"] for event in faded)]
        assert lengths == sorted(lengths, reverse=True) and len(set(lengths)) == len(lengths) > 3
        assert all(event["length"] == len(event["memory"]["content"]) for event in faded)
        gone = [e for e in events if e["event"] == "forgotten" and e["id"] == node_id]
        assert len(gone) == 1 and gone[0]["first_content"] == first["content"]
        assert gone[0]["batch"] >= faded[-1]["batch"]


def test_the_demo_tells_what_was_once_known(events: list[Json]) -> None:
    """The last recall brings back who is left, and the sentence about what is gone; its content is gone."""
    once = next(event for event in events if event["event"] == "once_known")
    forgotten = [event for event in events if event["event"] == "forgotten"]
    assert once["forgotten"] in {event["id"] for event in forgotten}
    assert once["teller"]["content"] in once["text"]
    assert once["sentences"] and all(sentence in once["text"] for sentence in once["sentences"])
    assert once["first_content"] not in once["text"]
    assert 0 < once["strength"] < 0.1


def test_the_first_questions_are_answered(events: list[Json]) -> None:
    """Both questions asked at the beginning bring back the followed memory whole."""
    recalled = [event for event in events if event["event"] == "recalled"]
    assert len(recalled) == 2
    assert "一只铜哨子吹三声" in recalled[0]["text"]
    assert "charged a tiny bakery in Porto eleven times" in recalled[1]["text"]


@pytest.mark.parametrize(("columns", "lang"), [(80, "en"), (120, "zh")])
def test_the_demo_fits_the_screen(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: int, lang: str
) -> None:
    """Away from a terminal the demo is plain text, no line wider than the screen, no memory cut off."""
    from rich.cells import cell_len

    monkeypatch.setenv("COLUMNS", str(columns))
    text = printed_by(capsys, "--fast", "--lang", lang)
    assert "\x1b" not in text
    assert max(cell_len(line) for line in text.splitlines()) <= columns
    assert "一只铜哨子吹三声" in "".join(line.strip() for line in text.splitlines())
    assert ("I once knew" if lang == "en" else "我曾经知道") in text


def test_the_language_follows_the_locale(monkeypatch: pytest.MonkeyPatch) -> None:
    """`auto` asks LC_ALL, then LC_MESSAGES, then LANG; a named language needs no asking."""
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    assert language("auto") == "en"
    monkeypatch.setenv("LANG", "zh_CN.UTF-8")
    assert language("auto") == "zh"
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    assert language("auto") == "en"
    assert language("zh") == "zh"
