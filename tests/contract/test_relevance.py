"""The relevance floor over every transport: a query that nothing answers returns an empty text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.callers import CALLERS, Caller, CallerIn

AGENT = "/v1/agents/ann"
DAY_MS = 86_400_000
START_MS = 1_748_736_000_000
"""1 June 2025."""

ENGLISH = [
    ("I moved from Berlin to Hamburg for my new job at the harbour office.", "Congratulations on the job!"),
    ("My sister Clara is getting married in Lisbon next May.", "How lovely! Will you travel there?"),
    ("Good morning! How are you today?", "I am fine, thank you. What can I do for you?"),
    ("I am allergic to peanuts, so no satay for me.", "I will remember that you are allergic to peanuts."),
    ("The landlord wants 950 euros a month for the flat.", "That is 950 euros a month for the flat."),
]
CHINESE = [
    ("我妹妹在青岛的一家医院当护士。", "知道了，祝她工作顺利。"),
    ("我下个月开始学游泳，教练姓王。", "学游泳对身体很好。"),
    ("早上好！今天有点困。", "早上好，要不要喝杯咖啡？"),
    ("房东把房租涨到了三千二。", "房租涨到三千二了。"),
]

EMBEDDERS = {
    "off": {"model": "off"},
    "english": {"model": "builtin"},
    "multilingual": {"model": "multilingual"},
}


@pytest.fixture(params=CALLERS)
def caller_in(request: pytest.FixtureRequest) -> CallerIn:
    """A daemon in this process and a caller for it, over each transport."""
    return CALLERS[request.param]


async def talked(call: Caller, talk: list[tuple[str, str]]) -> None:
    """Create an agent that heard a conversation with an assistant, with all vectors."""
    await call("PUT", AGENT, {})
    for day, (said, replied) in enumerate(talk):
        time_ms = START_MS + day * DAY_MS
        messages = [
            {"role": role, "content": text, "timestamp": time_ms}
            for role, text in (("user", said), ("assistant", replied))
        ]
        assert (await call("POST", f"{AGENT}/remember", {"messages": messages})).status_code == 202
    flushed = await call("POST", f"{AGENT}/flush", {"timeout_ms": 60_000, "vectors": True})
    assert flushed.json()["unembedded_messages"] == 0


async def recalled(call: Caller, query: str, **fields: Any) -> dict[str, Any]:
    answer = await call("POST", f"{AGENT}/recall", {"query": query, **fields})
    assert answer.status_code == 200, answer.json()
    found: dict[str, Any] = answer.json()
    return found


@pytest.mark.parametrize("embedder", EMBEDDERS)
async def test_a_question_that_nothing_answers_returns_nothing(
    tmp_path: Path, caller_in: CallerIn, embedder: str
) -> None:
    """World knowledge and courtesies return an empty text, while facts are still found."""
    async with caller_in(tmp_path, embedding=EMBEDDERS[embedder]) as call:
        await talked(call, ENGLISH)
        for query in (
            "Who composed the opera Fidelio?",
            "What is the boiling point of ethanol?",
            "Thank you!",
        ):
            assert (await recalled(call, query))["text"] == "", query
        for query, fact in (
            ("Where did I move for my new job?", "Hamburg"),
            ("What am I allergic to?", "peanuts"),
            ("Clara", "Lisbon"),
        ):
            assert fact in (await recalled(call, query))["text"], query


@pytest.mark.parametrize("embedder", ["off", "multilingual"])
async def test_a_chinese_question_that_nothing_answers_returns_nothing(
    tmp_path: Path, caller_in: CallerIn, embedder: str
) -> None:
    """The same in Chinese."""
    async with caller_in(tmp_path, embedding=EMBEDDERS[embedder]) as call:
        await talked(call, CHINESE)
        for query in ("法国的首都是哪里？", "元素周期表里第50号元素是什么？", "谢谢你！"):
            assert (await recalled(call, query))["text"] == "", query
        for query, fact in (("我妹妹在哪里当护士？", "青岛"), ("教练姓什么？", "王")):
            assert fact in (await recalled(call, query))["text"], query


@pytest.mark.parametrize(
    ("talk", "found"),
    [(ENGLISH, ("我对什么过敏？", "peanuts")), (CHINESE, ("What does my sister do?", "护士"))],
)
async def test_a_small_memory_answers_a_question_in_another_language_only_if_it_can(
    tmp_path: Path, caller_in: CallerIn, talk: list[tuple[str, str]], found: tuple[str, str]
) -> None:
    """World knowledge in either language returns an empty text; a question that the other language answers does not."""
    async with caller_in(tmp_path, embedding=EMBEDDERS["multilingual"]) as call:
        await talked(call, talk)
        for query in ("What is the capital of Peru?", "法国的首都是哪里？"):
            assert (await recalled(call, query))["text"] == "", query
        query, fact = found
        assert fact in (await recalled(call, query))["text"]


async def test_explain_names_the_floor(tmp_path: Path, caller_in: CallerIn) -> None:
    """`explain` lists the memories that the floor dropped, with this reason."""
    async with caller_in(tmp_path, embedding=EMBEDDERS["english"]) as call:
        await talked(call, ENGLISH)
        answer = await recalled(call, "Who composed the opera Fidelio?", explain=True, citations=True)
        assert (answer["text"], answer["memories"]) == ("", [])
        assert {one["dropped"] for one in answer["explanation"]["memories"]} == {"min_relevance"}


async def test_the_floor_can_be_switched_off(tmp_path: Path, caller_in: CallerIn) -> None:
    """With `fleet.min_relevance` 0 the best memories are always returned."""
    sections = {"embedding": EMBEDDERS["english"], "fleet": {"min_relevance": 0}}
    async with caller_in(tmp_path, **sections) as call:
        await talked(call, ENGLISH)
        assert (await recalled(call, "Who composed the opera Fidelio?"))["text"]


async def test_a_period_needs_no_relevance(tmp_path: Path, caller_in: CallerIn) -> None:
    """A query for a day returns what was said on it, although its words say nothing about the topic."""
    async with caller_in(tmp_path, embedding=EMBEDDERS["off"]) as call:
        await talked(call, ENGLISH)
        assert "peanuts" in (await recalled(call, "What happened on June 4, 2025?"))["text"]
        period = {"begin": START_MS + DAY_MS, "end": START_MS + 2 * DAY_MS}
        assert (await recalled(call, "What plans does Clara have?", time_range=period))["text"]


async def test_statements_rank_before_questions_and_echoes(tmp_path: Path, caller_in: CallerIn) -> None:
    """An earlier question of the user, and a reply that repeats a statement, come after the statement."""
    async with caller_in(tmp_path, embedding=EMBEDDERS["off"]) as call:
        await talked(call, ENGLISH)
        question = {"role": "user", "content": "How much is the rent of the flat a month?"}
        await call("POST", f"{AGENT}/remember", {"messages": [question]})
        await call("POST", f"{AGENT}/flush", {"timeout_ms": 10_000})
        text = (await recalled(call, "How much does the landlord want for the flat a month?"))["text"]
        statement, echo = text.index("The landlord wants"), text.index("That is 950")
        assert statement < echo and statement < text.index("How much is the rent")
