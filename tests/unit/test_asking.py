"""Calls to a model: limiter, retries, timeouts, and checks of replies."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from ebbtide.language.port import BadReply, ModelUnavailable, Processed, Segment, TextToProcess, Utterance
from ebbtide.language.served.limiter import Priority, PriorityLimiter
from ebbtide.language.served.replies import checked_names, checked_processed, checked_segments, cut_at_clause
from ebbtide.language.served.retry import CallCounts, ModelClient, RetryPolicy
from tests.support.scripted_model import ScriptedModel
from tests.support.waiting import eventually

QUICK = RetryPolicy(timeout_s=0.2, max_retries=2, max_bad_replies=3, base_s=0.001, cap_s=0.002)
SAID = [Utterance("user", "", "The old house by the sea has a leaking roof.")]


def asking(model: ScriptedModel, patience: RetryPolicy = QUICK) -> ModelClient:
    return ModelClient(model, PriorityLimiter(1), patience)


async def test_transport_failures_are_retried_then_raised() -> None:
    """A call is retried max_retries times; one failure more and the model is unavailable."""
    model = ScriptedModel()
    model.script["segment"].extend([ModelUnavailable("refused")] * 2)
    ask = asking(model)
    assert await ask.segment(SAID, max_chars=200)
    assert not ask.troubled
    model.script["segment"].extend([ModelUnavailable("refused")] * 3)
    with pytest.raises(ModelUnavailable):
        await ask.segment(SAID, max_chars=200)
    assert ask.troubled
    assert (ask.tallies["segment"].calls, ask.tallies["segment"].unavailable) == (6, 5)


async def test_bad_replies_are_retried_at_once_then_raised() -> None:
    """A round fails after max_bad_replies unusable replies; the tally counts parsed replies."""
    model = ScriptedModel()
    model.script["segment"].extend([list, BadReply("half a JSON")])
    ask = asking(model)
    assert await ask.segment(SAID, max_chars=200)
    model.script["segment"].extend([list] * 3)
    with pytest.raises(BadReply):
        await ask.segment(SAID, max_chars=200)
    assert (ask.tallies["segment"].parsed, ask.tallies["segment"].bad_replies) == (1, 5)


async def test_a_call_that_times_out_is_a_server_failure() -> None:
    """A call without an answer within the timeout is cancelled and counts as unavailable."""
    model = ScriptedModel()
    model.always["process"] = 30.0
    with pytest.raises(ModelUnavailable):
        await asking(model, RetryPolicy(timeout_s=0.01, max_retries=0)).process("text")
    assert model.running == 0


async def test_background_calls_do_not_repeat_transport_failures() -> None:
    """A background call gives up after one failure, so that a scan never waits for a server."""
    model = ScriptedModel()
    model.script["process"].append(ModelUnavailable("refused"))
    with pytest.raises(ModelUnavailable):
        await asking(model).process("a text", priority=Priority.BACKGROUND)
    assert model.calls["process"] == 1


class TakesMany(ScriptedModel):
    """A scripted model that answers up to three texts in one call, following the script."""

    async def process_many(self, texts: Sequence[TextToProcess]) -> list[Processed]:
        self.calls["process_many"] += 1
        return [await self.process(t, target_length=most) for t, most, *_ in texts[:3]]


async def test_a_model_for_single_texts_gets_single_requests() -> None:
    """The call returns nothing and counts nothing, and the caller sends single requests."""
    ask = asking(ScriptedModel())
    assert await ask.process_many([("a text", None)]) == []
    assert ask.tallies == {}


async def test_texts_answered_together_count_as_a_call_each() -> None:
    """The first texts are answered, checked and counted like single requests."""
    model = TakesMany()
    ask = asking(model)
    answers = await ask.process_many([(f"The roof number {n} leaks.", None) for n in range(5)])
    assert [answer.content for answer in answers] == [f"The roof number {n} leaks." for n in range(3)]
    assert model.calls["process_many"] == 1
    assert ask.tallies["process"] == CallCounts(calls=3, parsed=3)
    assert not ask.under_way


async def test_answers_to_many_end_before_the_first_unusable_one() -> None:
    """A bad reply among many does not affect the replies before it; its text remains for a single request."""
    model = TakesMany()
    model.script["process"].extend([lambda: Processed("fine", "", ()), lambda: Processed("", "", ())])
    ask = asking(model)
    assert [
        answer.content for answer in await ask.process_many([("fine", None), ("bad", None), ("c", 9)])
    ] == ["fine"]
    assert ask.tallies["process"] == CallCounts(calls=2, parsed=1, bad_replies=1)


async def test_a_server_that_fails_at_many_gets_single_requests() -> None:
    """An unanswered call for many texts is no error: it is counted, and returns nothing."""
    model = TakesMany()
    model.script["process"].append(ModelUnavailable("refused"))
    ask = asking(model)
    assert await ask.process_many([("a text", None)]) == []
    assert ask.troubled
    assert ask.tallies["process"] == CallCounts(calls=1, unavailable=1)
    assert (await ask.process("a text")).content == "a text"
    assert not ask.troubled


async def test_foreground_passes_before_background() -> None:
    """Foreground calls pass before background calls, and these before extraction, each kind in order, one at a time."""
    gate, order, may_leave = PriorityLimiter(1), [], asyncio.Event()

    async def call(name: str, priority: Priority) -> None:
        async with gate.passing(priority):
            order.append(name)
            await may_leave.wait()

    async with asyncio.TaskGroup() as group:
        priorities = {"b": Priority.BACKGROUND, "e": Priority.EXTRACTION}
        for name in ("first", "e1", "b1", "b2", "f1", "f2"):
            group.create_task(call(name, priorities.get(name[0], Priority.FOREGROUND)))
            await asyncio.sleep(0)
        may_leave.set()
    assert order == ["first", "f1", "f2", "b1", "b2", "e1"]


async def test_a_cancelled_wait_passes_its_place_on() -> None:
    """A cancelled call that waits, or has just been admitted, passes its place to the next call."""
    gate = PriorityLimiter(1)
    entered: list[int] = []
    may_leave = asyncio.Event()

    async def call(number: int) -> None:
        async with gate.passing(Priority.FOREGROUND):
            entered.append(number)
            await may_leave.wait()

    tasks = [asyncio.create_task(call(number)) for number in range(6)]
    await eventually(lambda: entered == [0])
    for number in (1, 2, 4):
        tasks[number].cancel()
    may_leave.set()
    await asyncio.gather(*tasks, return_exceptions=True)
    async with asyncio.timeout(30), gate.passing(Priority.BACKGROUND):
        assert entered == [0, 3, 5]


@pytest.mark.parametrize(
    "segments",
    [
        [],
        [Segment("  ", (0,))],
        [Segment("x" * 401, (0,))],
        [Segment("text", ())],
        [Segment("text", (1,))],
        [Segment("text", (-1,))],
    ],
)
def test_segments_that_cannot_be_are_bad_replies(segments: list[Segment]) -> None:
    """An empty segment, a far too long one, and one from a missing message make a bad reply."""
    with pytest.raises(BadReply):
        checked_segments(segments, SAID, 200)


def test_no_segment_is_right_where_nothing_was_said() -> None:
    """Emoji and white space have no segment, which is no failure."""
    assert checked_segments([], [Utterance("user", "", "🎉 \n")], 200) == []


@pytest.mark.parametrize(
    ("reply", "target"),
    [
        (Processed("", "p", ()), None),
        (Processed(" \n", "p", ()), None),
        (Processed("x" * 1000, "p", ()), None),
        (Processed("x" * 26, "p", ()), 20),
    ],
)
def test_contents_that_cannot_be_are_bad_replies(reply: Processed, target: int | None) -> None:
    """An empty content, a grown one, and one more than a quarter over the target make a bad reply."""
    with pytest.raises(BadReply):
        checked_processed(reply, "a text of its own", target)


def test_a_word_or_a_content_that_stays_is_not_cut() -> None:
    """A content of one long word, and one equal to the text, may be longer than the target."""
    assert (
        checked_processed(Processed("thunderstorm", "p", ()), "a thunderstorm", 5).content == "thunderstorm"
    )
    text = "You have it framed, don't you?"
    assert checked_processed(Processed(text, "p", ()), text, 9).content == text


def test_a_slightly_long_content_is_cut_at_a_clause_end() -> None:
    """A content of up to 1.25 times the target is cut at the end of a clause."""
    text = "The roof is leaking, the cat is wet, and nobody cares."
    reply = checked_processed(Processed(text, "p", ()), text * 3, 44)
    assert reply.content == "The roof is leaking, the cat is wet"
    assert cut_at_clause("屋顶漏了，猫湿了，没人管。", 9) == "屋顶漏了，猫湿了"
    assert cut_at_clause("abcdefghij", 4) == "abcd"


def test_phrases_and_keywords_are_single_lines_of_bounded_length() -> None:
    """Phrases and keywords from a model have no line breaks, no control characters and a bounded length."""
    reply = Processed("content", "a\nb\x00c" + "x" * 200, ("k\r\nw", "", "k w", *"abcdefg"))
    checked = checked_processed(reply, "content", None)
    assert checked.phrase.startswith("a b c")
    assert len(checked.phrase) == 80
    assert checked.keywords == ("k w", "a", "b", "c", "d")


@pytest.mark.parametrize(
    ("reply", "names"),
    [(["朋友", "a\nb"], ["朋友", "a b"]), (["x\u202ey", "\u2066"], ["x y", ""]), (["x" * 33, " "], ["", ""])],
)
def test_relation_names_are_short_single_lines(reply: list[str], names: list[str]) -> None:
    """A name that is too long becomes empty; line breaks become spaces."""
    assert checked_names(reply, 2) == names


def test_the_wrong_number_of_names_is_a_bad_reply() -> None:
    """A reply must have one name for each focus, or it is a bad reply."""
    with pytest.raises(BadReply):
        checked_names(["a"], 2)


@pytest.mark.parametrize("make", [lambda: RetryPolicy(base_s=1, cap_s=30)])
def test_pauses_double_up_to_their_cap(make: Callable[[], Any]) -> None:
    """Pauses are 1, 2, 4 … 30 seconds, without overflow."""
    patience = make()
    assert [patience.pause_s(n) for n in (1, 2, 3, 5, 6, 10_000)] == [1, 2, 4, 16, 30, 30]
