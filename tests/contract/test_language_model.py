"""Every language model keeps the promises of the interface: built-in, on servers, and scripted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import pytest_asyncio

from ebbtide.fleet.runtime.slice import TOO_SHORT_FOR_A_MODEL
from ebbtide.language.builtin.adapter import BuiltinModel
from ebbtide.language.port import MAX_WORD_CHARS, BadReply, LanguageModel, Utterance
from ebbtide.language.served.chat import ServerOptions
from ebbtide.language.served.model import ServedModel
from ebbtide.language.served.ollama import OllamaChat
from ebbtide.language.served.openai_compatible import OpenAICompatibleChat
from ebbtide.language.served.replies import (
    checked_names,
    checked_processed,
    checked_segments,
    checked_statements,
)
from tests.support.fake_ollama import FakeOllama
from tests.support.fake_openai import FakeOpenAI
from tests.support.scripted_model import ScriptedModel

CONVERSATION = [
    Utterance("user", "林月", "我五月搬到了青岛，住在海边的一栋老房子里。外婆说那里的雾很大！", "林月: "),
    Utterance(
        "assistant", "", "How is the old house? Is the roof still leaking when it rains?", "assistant: "
    ),
    Utterance("user", "", "🎉🎉"),
]


@pytest_asyncio.fixture(params=["builtin", "scripted", "ollama", "openai"])
async def model(request: pytest.FixtureRequest) -> AsyncIterator[LanguageModel]:
    with ThreadPoolExecutor(1) as pool:
        if request.param == "builtin":
            yield BuiltinModel(pool)
        elif request.param == "scripted":
            yield ScriptedModel()
        elif request.param == "ollama":
            async with FakeOllama().running_here() as ollama:
                chat = OllamaChat(ServerOptions(ollama.url, "qwen2.5:7b"))
                yield ServedModel(chat)
                await chat.close()
        else:
            async with FakeOpenAI().running_here() as openai:
                served = OpenAICompatibleChat(ServerOptions(openai.url, "qwen2.5:7b"))
                yield ServedModel(served)
                await served.close()


async def test_segments_come_from_messages_that_exist_in_order(model: LanguageModel) -> None:
    """Segments pass the check of every reply, in the order of the text, and are verbatim."""
    segments = await model.segment(CONVERSATION, max_chars=200)
    assert checked_segments(segments, CONVERSATION, 200) == segments
    assert [s.messages[0] for s in segments] == sorted(s.messages[0] for s in segments)
    assert {s.messages for s in segments} == {(0,), (1,)}
    for segment in segments:
        assert segment.start is not None
        text = CONVERSATION[segment.messages[0]].text
        assert text[segment.start : segment.start + len(segment.text)] == segment.text


async def test_process_keeps_to_its_target(model: LanguageModel) -> None:
    """Content exceeds its target only as one short phrase, or if it stays.

    A reply may be rejected only below the targets left to the built-in model.
    """
    text = CONVERSATION[0].text
    whole = await model.process(text)
    assert whole.content == text
    assert 1 <= len(whole.keywords) <= 5
    assert whole.phrase
    for target in range(len(text), -1, -1):
        try:
            short = await model.process(text, target_length=target)
        except BadReply:
            assert target < TOO_SHORT_FOR_A_MODEL
            continue
        assert len(short.content) <= max(target, MAX_WORD_CHARS) or short.content == text
        assert checked_processed(short, text, target).content == short.content


async def test_relate_answers_once_for_each_focus(model: LanguageModel) -> None:
    """There is one name per focus, within the limit, empty if the texts share nothing."""
    names = await model.relate("豆包今天又打翻了猫粮。", ["豆包是一只三岁的猫。", "The roof is leaking."])
    assert checked_names(names, 2) == names
    assert names[1] == ""


async def test_statements_are_copied_from_messages_of_users(model: LanguageModel) -> None:
    """Each statement is of an existing message of a user, and its quote and object are copied from it."""
    messages = [
        Utterance("assistant", "", "I live in Ghent."),
        Utterance("user", "", "I live in Lisbon, near the river. The weather is fine."),
        Utterance("user", "林月", "我对青霉素过敏。"),
    ]
    found = checked_statements(await model.extract(messages, topics=["residence", "allergy"]))
    assert [(one.message, one.topic, one.object, one.negated) for one in found] == [
        (1, "residence", "Lisbon", False),
        (2, "allergy", "青霉素", False),
    ]
    for one in found:
        assert one.object in one.quote
        assert one.quote in messages[one.message].text
    assert await model.extract(messages[:1], topics=["residence"]) == []


async def test_answers_to_many_equal_single_answers(model: LanguageModel) -> None:
    """A model that answers many requests in one call answers the first of them as it does singly."""
    process_many = getattr(model, "process_many", None)
    if process_many is None:
        return
    texts = [(message.text, most) for message in CONVERSATION[:2] for most in (None, 20, 9)] * 20
    processed = await process_many(texts)
    assert 0 < len(processed) < len(texts)
    assert processed == [
        await model.process(text, target_length=most) for text, most in texts[: len(processed)]
    ]
    endless = "The old house by the sea. " * 1000
    assert await process_many([(endless, None)] * 2) == [await model.process(endless)]


async def test_a_model_reports_its_state_and_closes_twice(model: LanguageModel) -> None:
    """The state names the model; closing is idempotent."""
    assert (await model.state()).available
    await model.close()
    await model.close()
