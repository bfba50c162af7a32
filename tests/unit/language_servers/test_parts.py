"""The parts of the model-server clients that need no server: breaker, formats, chunks, prompts, replies, errors."""

from __future__ import annotations

import contextlib
import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from importlib import resources
from typing import get_args

import httpcore
import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from ebbtide.daemon import make_model
from ebbtide.language.builtin.adapter import BuiltinModel
from ebbtide.language.port import BadReply, ModelUnavailable, Segment, Utterance
from ebbtide.language.served.breaker import Breaker, BreakerPolicy
from ebbtide.language.served.chunks import chunks_of, completed_by_rule, mapped_back, split_chunk, split_text
from ebbtide.language.served.connection import FAILURE_TEXTS, failure_text, retry_after_s
from ebbtide.language.served.formats import FormatLadder
from ebbtide.language.served.model import ServedModel
from ebbtide.language.served.ollama import OllamaChat
from ebbtide.language.served.openai_compatible import OpenAICompatibleChat
from ebbtide.language.served.parsing import cleaned, names_in, numbers_in, object_of
from ebbtide.language.served.prompts import (
    LOCALES,
    Task,
    overhead_tokens,
    plan_prompt,
    process_prompt,
    relate_prompt,
    segment_prompt,
    shorten_prompt,
    without_bounds,
)
from ebbtide.language.served.server import server_options
from ebbtide.language.tokens import estimate
from ebbtide.settings import load_settings

# --- breaker -----------------------------------------------------------------------------------------


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.s = 100.0

    def __call__(self) -> float:
        return self.s


def fail(breaker: Breaker, error: BaseException) -> None:
    """Make one call that fails with this error."""
    with pytest.raises(type(error)), breaker.passing():
        raise error


def test_breaker_follows_its_table() -> None:
    """The breaker opens after the set failures, is half open after its pause, doubles it, and closes on success."""
    clock = Clock()
    breaker = Breaker(BreakerPolicy(failures=2, open_s=10, cap_s=25), clock)
    fail(breaker, ModelUnavailable("refused"))
    assert breaker.is_closed
    fail(breaker, ModelUnavailable("refused"))
    for pause_s in (10, 20, 25, 25):
        assert not breaker.is_closed
        clock.s += pause_s - 1
        with pytest.raises(ModelUnavailable) as caught, breaker.passing():
            pass
        assert caught.value.retry_after_s == pytest.approx(1)
        assert str(caught.value) == "refused", "the reason is told, not the breaker"
        clock.s += 1
        fail(breaker, ModelUnavailable("refused"))
    clock.s += 25
    with breaker.passing(), pytest.raises(ModelUnavailable), breaker.passing():
        pass
    assert breaker.is_closed
    assert breaker.last_error == ""
    fail(breaker, ModelUnavailable("again"))
    assert breaker.is_closed, "the count began anew"


def test_bad_reply_counts_as_available_for_the_breaker() -> None:
    """An unusable reply closes the breaker, or keeps it closed: the server is available."""
    breaker = Breaker(BreakerPolicy(failures=2))
    for _ in range(5):
        fail(breaker, ModelUnavailable("refused"))
        fail(breaker, BadReply("prose"))
    assert breaker.is_closed


def test_cancelled_probe_leaves_its_place() -> None:
    """After a cancelled probe the next call is the probe."""
    clock = Clock()
    breaker = Breaker(BreakerPolicy(failures=1, open_s=1), clock)
    fail(breaker, ModelUnavailable("refused"))
    clock.s += 2
    fail(breaker, KeyboardInterrupt())
    with breaker.passing():
        pass
    assert breaker.is_closed


# --- ladder ------------------------------------------------------------------------------------------


def test_prose_costs_a_way_its_place_but_never_the_last_one() -> None:
    """A format whose first three replies are not JSON is given up; the last format never is."""
    ladder = FormatLadder(["a", "b"])
    for _ in range(2):
        ladder.read("a", is_json=False)
    assert ladder.candidates() == ["a", "b"]
    for _ in range(1):
        ladder.read("a", is_json=False)
    for _ in range(9):
        ladder.read("b", is_json=False)
    assert ladder.candidates() == ["b"]


def test_a_way_that_has_given_json_keeps_its_place() -> None:
    """A format that has produced JSON is kept, even if the model later returns prose."""
    ladder = FormatLadder(["a", "b"])
    ladder.read("a", is_json=True)
    for _ in range(20):
        ladder.read("a", is_json=False)
    assert ladder.candidates() == ["a", "b"]


@pytest.mark.parametrize(
    ("told", "is_kept"),
    [
        ("word", False),
        ("How about you? How is everybody there?", False),
        ("We met Clara in Porto and walked to the sea.", True),
    ],
)
def test_a_message_with_too_little_text_is_segmented_by_rules(told: str, is_kept: bool) -> None:
    """The model's segments are used only if they contain a fair share of the message."""
    text = "We met Clara in Porto on Sunday and walked down to the sea, where the boats were coming in."
    said = [
        Utterance("user", "", text),
        Utterance("user", "", "The soup was too salty for everyone at the table."),
    ]
    segments = completed_by_rule([Segment(told, (0,)), Segment(said[1].text, (1,), 0)], said, 200)
    assert (segments[0].text == told) is is_kept
    assert any("Clara" in segment.text for segment in segments)
    assert segments[-1].text == said[1].text


# --- chunks ----------------------------------------------------------------------------------------

TEXTS = st.text(st.sampled_from("ab 我们走。.，\n👍🏽é3"), max_size=600)


@given(st.lists(TEXTS, max_size=8), st.integers(80, 400))
def test_portions_hold_everything_once_and_in_order(texts: list[str], most: int) -> None:
    """Every visible character is in exactly one chunk, in order, and chunks fit."""
    messages = [Utterance("user", "", text) for text in texts]
    chunks = chunks_of(messages, most)
    covered = [[False] * len(text) for text in texts]
    for chunk in chunks:
        assert len(chunk) == 1 or sum(piece.tokens for piece in chunk) <= most
        for piece in chunk:
            text = piece.utterance.text
            assert texts[piece.message][piece.start : piece.start + len(text)] == text
            for at in range(piece.start, piece.start + len(text)):
                assert not covered[piece.message][at]
                covered[piece.message][at] = True
    for text, seen in zip(texts, covered, strict=True):
        assert not any(c.isalnum() for c, was in zip(text, seen, strict=True) if not was)


@given(TEXTS)
def test_halves_and_parts_lose_nothing(text: str) -> None:
    """Splitting a chunk or a text loses no letter or digit."""
    letters = [c for c in text if c.isalnum()]
    assert [c for part in split_text(text, 60) for c in part if c.isalnum()] == letters
    for chunk in chunks_of([Utterance("user", "", text)], 10_000):
        halves = split_chunk(chunk)
        found = [c for half in halves for piece in half for c in piece.utterance.text if c.isalnum()]
        assert not halves or found == letters


def test_segments_of_a_portion_are_placed_in_the_conversation() -> None:
    """Indices and offsets of a chunk are mapped to the conversation; an invalid index stays invalid."""
    messages = [Utterance("user", "", "🎉"), Utterance("user", "", "One thing. " * 40)]
    second = chunks_of(messages, 120)[1]
    assert second[0].message == 1
    mapped = mapped_back([Segment("One thing.", (0,), 11), Segment("x", (5,)), Segment("y", (0, 0))], second)
    assert mapped == [
        Segment("One thing.", (1,), second[0].start + 11),
        Segment("x", (-1,)),
        Segment("y", (1,)),
    ]
    assert completed_by_rule([], [Utterance("user", "", "🎉")], 200) == []


# --- prompts -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", get_args(Task))
def test_prompts_are_short_files_in_two_languages(task: Task) -> None:
    """Each prompt exists in Chinese and English, with fewer than 1000 estimated tokens."""
    for locale in LOCALES:
        path = resources.files("ebbtide.language") / "prompts" / f"{task}.{locale}.txt"
        text = path.read_text(encoding="utf-8")
        assert estimate(text) < 1000
        assert text.count("\n---\n") == 1
    assert overhead_tokens(task) < 1000


def test_questions_ask_for_what_they_take() -> None:
    """Each prompt's schema requires the member that is read, and allows the expected content."""
    said = [Utterance("user", "", "我五月搬到了青岛。")]
    for question in (
        segment_prompt(said, 200),
        process_prompt("text"),
        shorten_prompt("text", 20),
        relate_prompt("text", ["other"] * 3),
        plan_prompt("Where do I live?", "2026-05-01"),
    ):
        assert question.key in question.schema["required"]
        assert "maxLength" not in json.dumps(without_bounds(question.schema))
        assert 0 < question.reply_tokens < 1000
        assert question.prompt_tokens < 1000
    assert "20" in shorten_prompt("a text to shorten", 20).user.splitlines()[-1]
    assert shorten_prompt("text", 20).schema["properties"]["content"]["maxLength"] == 25
    assert list(relate_prompt("x", ["y"] * 3).schema["properties"]["names"]["properties"]) == [
        "0",
        "1",
        "2",
    ]


def test_dollar_signs_in_a_conversation_are_text() -> None:
    """Dollar signs in a conversation are not template variables."""
    assert "$limit ${mark} $$" in process_prompt("$limit ${mark} $$").user


# --- replies -----------------------------------------------------------------------------------------


@given(st.text(max_size=300))
def test_any_reply_is_an_object_or_a_bad_reply(text: str) -> None:
    """Any reply yields an object with the expected member, or BadReply."""
    for reply in (text, "{" + text, '{"a": ' + text + "}", "<think>" + text):
        with contextlib.suppress(BadReply):
            assert "a" in object_of(reply, "a")


def test_texts_are_cleaned() -> None:
    """Lone surrogates and control characters are removed; line breaks stay."""
    assert cleaned("a\ud800b\x00\x1bc\nd ") == "a?b  c\nd"


def test_names_come_as_list_or_by_number() -> None:
    """Names are accepted as a list or by index; unknown indices and other types are rejected."""
    assert names_in({"names": {"1": "b"}}, 2) == ["", "b"]
    assert names_in({"names": ["a", "b"]}, 2) == ["a", "b"]
    for wrong in ({"2": "c"}, [1], "ab", None, {"0": 1}):
        with pytest.raises(BadReply):
            names_in({"names": wrong}, 2)
    for wrong in (True, "1", [1, None], 1.0):
        with pytest.raises(BadReply):
            numbers_in({"n": wrong}, "n")


# --- wire --------------------------------------------------------------------------------------------


def test_every_error_of_httpx_has_its_sentence() -> None:
    """Every error of httpx and httpcore has a text; a release with a new error fails here."""
    everything = [*vars(httpx).values(), *vars(httpcore).values()]
    kinds = [kind for kind in everything if isinstance(kind, type) and issubclass(kind, Exception)]
    # The last one never leaves httpcore.
    inner = httpx.CookieConflict | httpx.HTTPStatusError | httpcore.ConnectionNotAvailable
    foreign = [kind for kind in kinds if not issubclass(kind, inner)]
    assert len(foreign) > 25
    for kind in foreign:
        assert any(parent in FAILURE_TEXTS for parent in kind.__mro__), kind
    assert failure_text(httpcore.ReadTimeout("x")) == "did not answer in time"
    assert failure_text(ConnectionResetError()) == "cannot be reached"


def test_pauses_a_server_asks_for() -> None:
    """Retry-After is read as seconds or a date, ignored if invalid, and limited."""
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    assert retry_after_s("7") == 7.0
    assert 25 < (retry_after_s(soon) or 0) <= 30
    assert retry_after_s("86400") == 600.0
    for nothing in (None, "", "0", "-5", "soon", "Wed, 21 Oct 2015 07:28:00 GMT"):
        assert retry_after_s(nothing) is None


# --- settings ----------------------------------------------------------------------------------------


def test_settings_choose_the_client() -> None:
    """Kind, URL and name come from the settings; /v1 in a URL is not doubled."""
    for kind, client, url, base in (
        ("ollama", OllamaChat, "", "http://127.0.0.1:11434"),
        ("ollama", OllamaChat, "http://gpu:11434/", "http://gpu:11434"),
        ("openai", OpenAICompatibleChat, "", "http://127.0.0.1:8080"),
        ("openai", OpenAICompatibleChat, "https://api.example.com/v1/", "https://api.example.com"),
    ):
        settings = load_settings({"language": {"model": kind, "base_url": url}})
        model = make_model(settings, BuiltinModel(ThreadPoolExecutor(1)))
        assert isinstance(model, ServedModel)
        assert type(model.chat) is client
        assert server_options(settings.language).base_url == base
        assert model.name == "qwen2.5:7b"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("base_url", "127.0.0.1:11434"),
        ("base_url", "ftp://host"),
        ("base_url", "http://user:word@host"),
        ("base_url", "http://host/?key=word"),
        ("model_name", ""),
        ("model_name", "a\nb"),
        ("keep_alive", "a while"),
        ("num_ctx", 100),
        ("temperature", 3),
    ],
)
def test_settings_that_cannot_be_are_refused(name: str, value: object) -> None:
    """A URL without a scheme or with a password, an empty name and an invalid duration are rejected by name."""
    with pytest.raises(ValidationError, match=rf"language\.{name}"):
        load_settings({"language": {name: value}})


def test_key_is_never_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The API key is masked when the settings are logged."""
    monkeypatch.setenv("EBBTIDE_LANGUAGE__API_KEY", "sk-very-secret")
    settings = load_settings()
    shown = (
        json.dumps(settings.model_dump(mode="json"))
        + repr(settings)
        + repr(server_options(settings.language.model_copy(update={"model": "openai"})))
    )
    assert "very-secret" not in shown
    assert settings.language.api_key.get_secret_value() == "sk-very-secret"
