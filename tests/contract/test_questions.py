"""Hybrid recall over every transport: queries over everything an agent heard, with sources, within a budget."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from ebbtide.retrieval.tokenizers import TOKENIZERS, count_tokens
from tests.contract.test_verbs import settled
from tests.support.callers import CALLERS, Caller, CallerIn, unless_unsayable
from tests.support.scripted_model import ScriptedModel

AGENT = "/v1/agents/ann"
MAY_8, JUNE_2 = 1_683_504_000_000, 1_685_664_000_000
TALK = [
    ("Ann", "I moved to Lisbon in May with my cat Miso.", "s1", MAY_8),
    ("Bob", "How do you like the harbour so far?", "s1", MAY_8),
    ("Ann", "Very much! The smell of tar and oranges reminds me of home.", "s1", MAY_8),
    ("Bob", "My sister Clara is a carpenter and builds boats.", "s2", JUNE_2),
    ("Ann", "我外婆住在青岛，她每天早上去海边散步。", "s2", JUNE_2),
    ("Bob", "The answer to your ticket is ERR-4711, by the way.", "s2", JUNE_2),
]

FLUSH = {"timeout_ms": 60_000, "passes": True, "vectors": True}
"""Wait until all vectors exist, because a vector that arrives between two queries changes the result."""


@pytest.fixture(params=CALLERS)
def caller_in(request: pytest.FixtureRequest) -> CallerIn:
    """A daemon in this process and a caller for it, over each transport."""
    return CALLERS[request.param]


def batch(*places: int) -> dict[str, Any]:
    return {
        "messages": [
            {"role": "user", "content": text, "speaker": speaker, "id": f"m{place}", "timestamp": time_ms}
            for place, (speaker, text, _, time_ms) in enumerate(TALK)
            if place in places
        ],
        "conversation_id": TALK[places[0]][2],
    }


async def heard(call: Caller, **parameters: Any) -> None:
    """Create an agent that heard both conversations and digested them; vectors may be pending."""
    await call("PUT", AGENT, parameters)
    for places in ((0, 1, 2), (3, 4, 5)):
        assert (await call("POST", f"{AGENT}/remember", batch(*places))).status_code == 202
    flushed = await call("POST", f"{AGENT}/flush", {**FLUSH, "vectors": False})
    assert flushed.json()["passes_done"] is True


async def talked(call: Caller, **parameters: Any) -> None:
    """Store both conversations and wait until everything is digested and embedded."""
    await heard(call, **parameters)
    assert (await call("POST", f"{AGENT}/flush", FLUSH)).json()["unembedded_messages"] == 0


async def asked(call: Caller, query: str, **fields: Any) -> dict[str, Any]:
    answer = await call("POST", f"{AGENT}/recall", {"query": query, "citations": True, **fields})
    assert answer.status_code == 200, answer.json()
    found: dict[str, Any] = answer.json()
    return found


def ids(answer: dict[str, Any]) -> list[str]:
    return [memory["sources"][0]["message_id"] for memory in answer["memories"]]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("Where did Ann move with her cat?", "m0"),
        ("What does Clara do?", "m3"),
        ("谁住在青岛？", "m4"),
        ("外婆", "m4"),
        ("what about err-4711", "m5"),
        ("What did Bob say about boats?", "m3"),
    ],
)
async def test_a_query_finds_its_answer(
    tmp_path: Path, caller_in: CallerIn, query: str, expected: str
) -> None:
    """The first memory answers the query, in either language, including codes and two-character words."""
    async with caller_in(tmp_path) as call:
        await talked(call)
        assert ids(await asked(call, query))[0] == expected


async def test_sources_resolve_to_the_original_bytes(tmp_path: Path, caller_in: CallerIn) -> None:
    """A citation names the caller's message, the exact slice of its UTF-8 bytes, and the hash of the whole."""
    async with caller_in(tmp_path) as call:
        await talked(call)
        answer = await asked(call, "Ann Bob Clara 外婆 青岛 Lisbon harbour boats ticket")
        assert len(answer["memories"]) >= 4
        for memory in answer["memories"]:
            [source] = memory["sources"]
            speaker, text, conversation, time_ms = TALK[int(source["message_id"][1:])]
            said = text.encode()[source["offset"] : source["offset"] + source["length"]].decode()
            assert memory["content"] == said
            assert (source["speaker"], source["conversation_id"]) == (speaker, conversation)
            assert source["timestamp"] == time_ms
            assert source["quote"] == said
            assert source["chunk_id"] == hashlib.sha256(text.encode()).hexdigest()


async def test_the_text_contains_memories_in_order_with_sources(tmp_path: Path, caller_in: CallerIn) -> None:
    """With citations each memory is followed by its source, in its language. Dates come first and can be omitted."""
    async with caller_in(tmp_path) as call:
        await talked(call)
        cited = (await asked(call, "Clara boats", max_results=1))["text"]
        assert cited == (
            "[Memory] [2023-06-02] Bob: My sister Clara is a carpenter and builds boats. "
            "(source: 2023-06-02 00:00, s2, m3)"
        )
        chinese = (await asked(call, "青岛 外婆", max_results=1))["text"]
        assert chinese == (
            "[记忆] [2023-06-02] Ann: 我外婆住在青岛，她每天早上去海边散步。（来源：2023-06-02 00:00, s2, m4）"
        )
        query = {"query": "Clara boats", "max_results": 1, "dates": False}
        plain = (await call("POST", f"{AGENT}/recall", query)).json()
        assert plain["text"] == "[Memory] Bob: My sister Clara is a carpenter and builds boats."
        assert not plain.get("memories") and not plain.get("explanation")


async def test_forgotten_memories_are_found_in_the_archive(tmp_path: Path, caller_in: CallerIn) -> None:
    """The archive returns forgotten memories and marks them. Without the archive they are not returned."""
    async with caller_in(tmp_path) as call:
        await talked(call, decay_rate=0.1, focus_limit=1, long_term_factor=0.0, link_initial_strength=0.1)
        await call("POST", f"{AGENT}/compress", {"passes": 8})
        await call("POST", f"{AGENT}/flush", FLUSH)
        living = {node["id"] for node in (await call("GET", f"{AGENT}/nodes")).json()["nodes"]}
        assert "n1" not in living
        answer = await asked(call, "Where did Ann move with her cat Miso?")
        assert answer["memories"][0]["state"] == "archived"
        assert answer["memories"][0]["content"].startswith("I moved to Lisbon")
        without = await asked(call, "Where did Ann move with her cat Miso?", archive="never")
        assert "m0" not in ids(without)
        assert all(memory["state"] == "living" for memory in without["memories"])


async def test_undigested_messages_are_found_at_once(tmp_path: Path, caller_in: CallerIn) -> None:
    """A model that never answers does not hide the latest messages from a query."""
    model = ScriptedModel()
    model.always["segment"] = 600.0
    async with caller_in(tmp_path, model) as call:
        assert (await call("POST", f"{AGENT}/remember", batch(0, 1, 2))).status_code == 202
        answer = await asked(call, "Where did Ann move?", patience_ms=0)
        assert answer["pending_batches"] == 1
        assert ids(answer)[0] == "m0"
        assert answer["memories"][0]["state"] == "pending"
        assert answer["memories"][0]["id"] == "m1"


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"speakers": ["Bob"]}, {"m1", "m3", "m5"}),
        ({"sources": ["s2"]}, {"m3", "m4", "m5"}),
        ({"time_range": {"end": JUNE_2}}, {"m0", "m1", "m2"}),
        ({"time_range": {"begin": JUNE_2}}, {"m3", "m4", "m5"}),
        ({"speakers": ["Bob"], "sources": ["s1"]}, {"m1"}),
        ({"speakers": ["Nobody"]}, set()),
        ({"kinds": ["episode"], "sources": ["s1"]}, {"m0", "m1", "m2"}),
    ],
)
async def test_filters_exclude_everything_else(
    tmp_path: Path, caller_in: CallerIn, filters: dict[str, Any], expected: set[str]
) -> None:
    """Each filter applies, alone and combined with others."""
    async with caller_in(tmp_path) as call:
        await talked(call)
        everything = "Lisbon cat harbour tar oranges home Clara boats 外婆 青岛 ticket answer"
        assert set(ids(await asked(call, everything))) == {f"m{place}" for place in range(6)}
        assert set(ids(await asked(call, everything, **filters))) == expected


async def test_a_role_finds_unnamed_speakers(tmp_path: Path, caller_in: CallerIn) -> None:
    """`speakers=["user"]` finds messages of users without a speaker, and none of the assistant or of named speakers."""
    said = [
        {"role": "user", "content": "My kettle is blue."},
        {"role": "assistant", "content": "A blue kettle is nice."},
        {"role": "user", "speaker": "Ann", "content": "My kettle is green."},
    ]
    async with caller_in(tmp_path) as call:
        await settled(call, {"messages": said})
        for speakers, expected in (
            (["user"], {"My kettle is blue."}),
            (["assistant"], {"A blue kettle is nice."}),
            (["user", "Ann"], {"My kettle is blue.", "My kettle is green."}),
        ):
            body = {"query": "kettle", "speakers": speakers}
            found = (await call("POST", f"{AGENT}/search", body)).json()["memories"]
            assert {one["sources"][0]["quote"] for one in found} == expected


async def test_created_after_compares_the_time_of_acceptance(tmp_path: Path, caller_in: CallerIn) -> None:
    """`created_after` selects messages accepted at or after a time, regardless of their own timestamps."""
    async with caller_in(tmp_path) as call:
        await settled(call, {"messages": [{"role": "user", "content": "My kettle is blue.", "timestamp": 5}]})
        accepted_ms = (await call("GET", f"{AGENT}/batches/b1")).json()["accepted_at"]
        for created_after, count in ((accepted_ms, 1), (accepted_ms + 1, 0)):
            body = {"query": "kettle", "created_after": created_after}
            found = (await call("POST", f"{AGENT}/search", body)).json()["memories"]
            assert len(found) == count


@pytest.mark.parametrize("tokenizer", sorted(TOKENIZERS))
async def test_a_budget_is_never_exceeded(tmp_path: Path, caller_in: CallerIn, tokenizer: str) -> None:
    """The tokenizer's count of the whole text, including marks and citations, stays within the budget."""
    async with caller_in(tmp_path) as call:
        await talked(call)
        query = "Lisbon cat harbour tar oranges home Clara boats 外婆 青岛 ticket answer"
        most = count_tokens((await asked(call, query))["text"], tokenizer)
        told = set()
        for budget in [1, *(most * share // 10 for share in range(1, 11))]:
            answer = await asked(call, query, token_budget=budget, tokenizer=tokenizer)
            assert count_tokens(answer["text"], tokenizer) <= budget
            told.add(len(answer["memories"]))
        assert {0, 6} <= told and len(told) >= 4


LONG = (
    "We met at noon by the old bridge. The harbour master was late, as ever. "
    "Nobody was cross with him for that. Clara brought bread and a map of the islands. "
    "后来我们去了青岛的海边。外婆煮了鱼。The evening was mild."
)


@pytest.mark.parametrize("tokenizer", sorted(TOKENIZERS))
async def test_long_memories_are_shortened_to_key_sentences(
    tmp_path: Path, caller_in: CallerIn, tokenizer: str
) -> None:
    """Long memories are shortened instead of dropped; gaps are marked, and the source cites the whole message."""
    async with caller_in(tmp_path) as call:
        said = {"messages": [{"role": "user", "content": LONG, "speaker": "Ann", "id": "m0"}]}
        assert (await call("POST", f"{AGENT}/remember", said)).status_code == 202
        assert (await call("POST", f"{AGENT}/flush", FLUSH)).status_code == 200
        query, whole = "Who had a map of the islands?", await asked(call, "islands")
        budget = count_tokens(whole["text"], tokenizer) * 6 // 10
        fields = {"token_budget": budget, "tokenizer": tokenizer, "explain": True}
        assert (await asked(call, query, **fields))["text"] == ""
        answer = await asked(call, query, key_sentences=True, **fields)
        assert count_tokens(answer["text"], tokenizer) <= budget
        [memory] = answer["memories"]
        assert memory["content"] == "…Clara brought bread and a map of the islands.…"
        assert memory["sources"][0]["quote"] == LONG
        [told] = answer["explanation"]["memories"]
        assert (told["shortened"], told["dropped"]) == (True, "")
        for small in range(1, budget, max(1, budget // 8)):
            less = await asked(call, query, key_sentences=True, token_budget=small, tokenizer=tokenizer)
            assert count_tokens(less["text"], tokenizer) <= small


async def test_an_explanation_describes_the_ranking(tmp_path: Path, caller_in: CallerIn) -> None:
    """The explanation contains the words, the speakers, the unused signals, the scores, and the omitted memories."""
    async with caller_in(tmp_path) as call:
        await talked(call)
        await call(
            "POST",
            f"{AGENT}/remember",
            {"messages": [{"role": "user", "content": TALK[3][1], "speaker": "Bob"}]},
        )
        await call("POST", f"{AGENT}/flush", FLUSH)
        answer = await asked(call, "What does Bob's sister Clara build?", explain=True, without=["dates"])
        told = answer["explanation"]
        assert "clara" in told["looked_for"].casefold()
        assert told["speakers"] == ["Bob"]
        assert {off["signal"]: off["why"] for off in told["signals_off"]}["dates"] == "switched off"
        first = told["memories"][0]
        assert first["id"] == answer["memories"][0]["id"]
        assert {share["signal"] for share in first["signals"]} >= {"words", "speaker"}
        assert sum(share["score"] for share in first["signals"]) == pytest.approx(first["score"], abs=1e-4)
        assert "near copy" in {one["dropped"] for one in told["memories"]}


async def test_the_learnt_order_can_be_switched_off(tmp_path: Path, caller_in: CallerIn) -> None:
    """The same memories are found with and without the learned signal. The explanation shows its share or absence."""
    query = "What does Ann do in the harbour?"
    async with caller_in(tmp_path) as call:
        await talked(call)
        learnt = await asked(call, query, explain=True)
        plain = await asked(call, query, explain=True, without=["learned"])
        assert sorted(ids(learnt)) == sorted(ids(plain)) and len(ids(plain)) > 1
        assert "learned" not in {off["signal"] for off in learnt["explanation"]["signals_off"]}
        off = {off["signal"]: off["why"] for off in plain["explanation"]["signals_off"]}
        assert off["learned"] == "switched off"
        shares = [
            share["score"]
            for memory in learnt["explanation"]["memories"]
            for share in memory["signals"]
            if share["signal"] == "learned"
        ]
        # Positions keep their scores, so one memory gains what others lose.
        assert sum(shares) == pytest.approx(0, abs=1e-3)


async def test_a_question_may_ask_for_several_things(tmp_path: Path, caller_in: CallerIn) -> None:
    """All parts are answered first, in English and in Chinese, with any form of a word."""
    async with caller_in(tmp_path) as call:
        await talked(call)
        for query in (
            "Where did Ann move with her cat, and what does Clara build?",
            "安搬到 Lisbon 的猫叫什么？另外，Clara builds 什么 boats？",
        ):
            # Switch off the signals that use neighbouring messages, so that only names and words rank.
            without = ["neighbours", "conversation", "learned", "semantic", "window"]
            assert set(ids(await asked(call, query, without=without))[:2]) == {"m0", "m3"}
        assert ids(await asked(call, "Who built a boat?"))[0] == "m3"


async def test_links_from_what_is_found_can_be_switched_off(tmp_path: Path, caller_in: CallerIn) -> None:
    """Links raise the ranking of related memories. `explain` gives the share, and reports that the signal is off."""
    query = "What about boats and the harbour?"
    async with caller_in(tmp_path) as call:
        await talked(call)
        linked = await asked(call, query, explain=True)
        plain = await asked(call, query, explain=True, without=["pagerank"])
        shares = [
            share["score"]
            for memory in linked["explanation"]["memories"]
            for share in memory["signals"]
            if share["signal"] == "pagerank"
        ]
        assert shares and 0 < max(shares) <= 0.02
        off = {off["signal"]: off["why"] for off in plain["explanation"]["signals_off"]}
        assert off["pagerank"] == "switched off"
        assert sorted(ids(linked)) == sorted(ids(plain))


async def test_answers_are_the_same_after_a_restart(tmp_path: Path, caller_in: CallerIn) -> None:
    """An index rebuilt from the store gives the same results as the one updated by each commit."""
    queries = ["Where did Ann move?", "谁住在青岛？", "boats harbour", "the second of June"]
    async with caller_in(tmp_path) as call:
        await talked(call)
        await asked(call, "anything")
        await call("POST", f"{AGENT}/remember", batch(3, 4, 5))
        await call("POST", f"{AGENT}/flush", FLUSH)
        before = [await asked(call, query, explain=True) for query in queries]
    async with caller_in(tmp_path) as call:
        assert [await asked(call, query, explain=True) for query in queries] == before


async def test_asking_changes_nothing(tmp_path: Path, caller_in: CallerIn) -> None:
    """A query changes no focus, strength, scan count or node."""
    async with caller_in(tmp_path) as call:
        await talked(call)
        looks = [f"{AGENT}/focus", f"{AGENT}/nodes", f"{AGENT}/links"]
        before = [(await call("GET", path)).json() for path in looks]
        first = await asked(call, "Where did Ann move?")
        assert await asked(call, "Where did Ann move?") == first
        assert [(await call("GET", path)).json() for path in looks] == before


async def test_an_empty_agent_and_an_unanswerable_question_say_nothing(
    tmp_path: Path, caller_in: CallerIn
) -> None:
    """An empty result is the empty text, neither an error nor everything."""
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, {})
        assert (await asked(call, "Where did Ann move?"))["text"] == ""
        assert (await asked(call, "Where did Ann move?", explain=True))["explanation"]["memories"] == []
        await talked(call)
        # Vectors always have a nearest neighbour; semantic queries are tested elsewhere.
        answer = await asked(call, "zebra quantum", without=["semantic", "window"])
        assert (answer["text"], answer["memories"]) == ("", [])


@pytest.mark.parametrize(
    ("fields", "reason", "place"),
    [
        ({"query": " "}, "INVALID_VALUE", "query"),
        ({"query": "x" * 10_001}, "TEXT_TOO_LONG", "query"),
        ({"mode": "hybrid"}, "MISSING_FIELD", "query"),
        ({"query": "x", "token_budget": 0}, "INVALID_VALUE", "token_budget"),
        ({"query": "x", "tokenizer": "cl200k"}, "INVALID_VALUE", "tokenizer"),
        ({"query": "x", "without": ["luck"]}, "INVALID_VALUE", "without[0]"),
        ({"query": "x", "kinds": ["a dream"]}, "INVALID_VALUE", "kinds[0]"),
        ({"query": "x", "speakers": ["n" * 201]}, "TEXT_TOO_LONG", "speakers[0]"),
        ({"query": "x", "start_nodes": ["x1"]}, "NODE_NOT_FOUND", ""),
        ({"query": "x", "start_nodes": ["n1", "n999"]}, "NODE_NOT_FOUND", ""),
        ({"query": "x", "mode": "associative"}, "INVALID_VALUE", "mode"),
        ({"query": "x", "relations": ["next"]}, "INVALID_VALUE", "relations"),
        ({"query": "x", "time_range": {"begin": 2, "end": 1}}, "INVALID_VALUE", "time_range"),
        ({"query": "x", "archive": "sometimes"}, "INVALID_VALUE", "archive"),
        ({"keywords": ["x"], "archive": "never"}, "INVALID_VALUE", "archive"),
        ({"keywords": ["x"], "key_sentences": True}, "INVALID_VALUE", "key_sentences"),
        ({"keywords": ["x"], "token_budget": 5}, "INVALID_VALUE", "token_budget"),
        ({"citations": True}, "INVALID_VALUE", "citations"),
        ({"mode": "associative", "speakers": ["Ann"]}, "INVALID_VALUE", "speakers"),
    ],
)
async def test_values_outside_the_limits_are_refused(
    tmp_path: Path, caller_in: CallerIn, fields: dict[str, Any], reason: str, place: str
) -> None:
    """An invalid field is a clear error that names it, and no search runs."""
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, {})
        with unless_unsayable(reason):
            answer = await call("POST", f"{AGENT}/recall", fields)
            error = answer.json()["error"]
            assert error["reason"] == reason
            assert place in error["message"]


async def test_replies_follow_statements_unless_the_question_is_about_them(
    tmp_path: Path, caller_in: CallerIn
) -> None:
    """The user's statement ranks before the assistant's reply, and after it if the question says "you"."""
    said = [
        ("user", "I want a bike lock for my e-bike"),
        ("assistant", "I recommend the Kryptonite as a bike lock"),
        ("user", "The sink is blocked again"),
        ("assistant", "Call a plumber"),
    ]
    async with caller_in(tmp_path, embedding={"model": "off"}) as call:
        for first in (0, 2):
            messages = [
                {"role": role, "content": text, "id": f"m{first + place}"}
                for place, (role, text) in enumerate(said[first : first + 2])
            ]
            assert (await call("POST", f"{AGENT}/remember", {"messages": messages})).status_code == 202
        assert ids(await asked(call, "Which bike lock do I want?"))[0] == "m0"
        assert ids(await asked(call, "Which bike lock did you recommend?"))[0] == "m1"
        assert "m3" in ids(await asked(call, "What did you say about the sink?")), (
            "found by its question's words"
        )


async def test_a_question_in_two_steps_is_followed(tmp_path: Path, caller_in: CallerIn) -> None:
    """A memory that the first result names is found too, although it shares no word with the query."""
    pages = [
        ("The Lisbon Tram", "This song was sung by Clara Reis."),
        ("Clara Reis", "She was born in Porto."),
    ]
    async with caller_in(tmp_path) as call:
        for number in range(2):
            messages = [
                {"role": "user", "content": text, "speaker": title, "id": f"p{place}"}
                for place, (title, text) in enumerate(pages[number : number + 1], number)
            ]
            await call("POST", f"{AGENT}/remember", {"messages": messages, "conversation_id": f"c{number}"})
        await call("POST", f"{AGENT}/flush", FLUSH)
        query = "Where does whoever recorded the tram of Lisbon come from?"
        without = ["graph", "conversation"]
        assert ids(await asked(call, query, without=[*without, "naming"])) == ["p0"]
        answer = await asked(call, query, without=without, explain=True)
        assert ids(answer) == ["p0", "p1"]
        second = answer["explanation"]["memories"][1]
        gave = [share["signal"] for share in second["signals"] if share["score"] > 0]
        assert set(gave) <= {"naming", "pagerank", "weight"} and gave[0] == "naming"


async def test_without_the_archive_only_living_memories_are_returned(
    tmp_path: Path, caller_in: CallerIn
) -> None:
    """Many forgotten matches do not displace living ones, and no text of a forgotten memory is returned."""
    forgetful = {
        "decay_rate": 0.1,
        "focus_limit": 1,
        "long_term_factor": 0.0,
        "link_initial_strength": 0.1,
    }
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, forgetful)
        boats = [{"role": "user", "content": f"Boat number {n} came home."} for n in range(60)]
        await call("POST", f"{AGENT}/remember", {"messages": boats})
        await call("POST", f"{AGENT}/flush", FLUSH)
        for _ in range(3):
            await call("POST", f"{AGENT}/compress", {"passes": 4})
            await call("POST", f"{AGENT}/flush", FLUSH)
        last = {
            "role": "user",
            "content": "One more boat, long after all the others, and its crew was late for supper.",
        }
        await call("POST", f"{AGENT}/remember", {"messages": [last]})
        await call("POST", f"{AGENT}/flush", FLUSH)
        living = (await call("GET", f"{AGENT}/nodes")).json()["nodes"]
        assert len(living) < 40
        answer = await asked(call, "boats that came home", archive="never", max_results=50)
        assert {memory["id"] for memory in answer["memories"]} == {node["id"] for node in living}
        [first] = (await asked(call, "boats that came home", archive="never", max_results=1))["memories"]
        assert first["state"] == "living"
        whole = await asked(call, "boats that came home", max_results=50)
        assert "archived" in {memory["state"] for memory in whole["memories"]}


async def test_the_archive_takes_part_when_needed(tmp_path: Path, caller_in: CallerIn) -> None:
    """Living memories answer if they can. A code, few results or no clear top add the archive, with the reason.

    The result equals that of the same query with or without the archive, and an explicit value always applies.
    """
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, {"focus_limit": 20})
        boats = [
            f"Boat number {word} came home."
            for word in ["one", "two", "three", "four", "five", "six", "seven", "ten"]
        ]
        talk = [
            "The boat boat regatta: a boat race of every boat.",
            "Tea is ready.",
            *boats,
            "The boat sank.",
        ]
        messages = [{"role": "user", "content": text} for text in talk]
        await call("POST", f"{AGENT}/remember", {"messages": messages})
        await call("POST", f"{AGENT}/flush", FLUSH)
        for query, why in (
            ("Who won the boat regatta race?", "not needed"),
            ("Who won the boat regatta race 2023-17-99 of ERR-4711?", "code in the query"),
            ("Is the tea ready?", "few results"),
            ("boat", "no clear top"),
        ):
            without = ["graph", "neighbours", "conversation", "semantic", "window"]
            given = {"explain": True, "without": without}
            answer = await asked(call, query, archive="when_needed", **given)
            assert answer["explanation"]["archive"] == why, query
            same = await asked(call, query, archive="never" if why == "not needed" else "always", **given)
            assert (answer["text"], answer["memories"]) == (same["text"], same["memories"])
            never = await asked(call, query, archive="never", **given)
            assert never["explanation"]["archive"] == "never"
        assert (await asked(call, "boat", explain=True))["explanation"]["archive"] == "always"


async def test_of_equals_the_newer_and_the_living_come_first(tmp_path: Path, caller_in: CallerIn) -> None:
    """Of equal memories, newer and living ones rank first, unless the signal is off."""
    said = [("It rains in Porto on Monday.", JUNE_2), ("It rains in Porto on Sunday.", MAY_8)]
    messages = [
        {"role": "user", "content": text, "id": f"m{place}", "timestamp": time_ms}
        for place, (text, time_ms) in enumerate(said)
    ]
    async with caller_in(tmp_path, embedding={"model": "off"}) as call:
        await call("PUT", AGENT)
        await call("POST", f"{AGENT}/remember", {"messages": messages})
        await call("POST", f"{AGENT}/flush", {"timeout_ms": 10_000, "passes": True})
        asks = {"query": "Does it rain in Porto?", "explain": True, "citations": True}
        newer = (await call("POST", f"{AGENT}/recall", {**asks, "without": ["learned"]})).json()
        assert ids(newer) == ["m0", "m1"]
        first, second = newer["explanation"]["memories"]
        shares = [{s["signal"]: s["score"] for s in one["signals"]} for one in (first, second)]
        assert shares[0]["weight"] > shares[1]["weight"] > 0
        off = (await call("POST", f"{AGENT}/recall", {**asks, "without": ["learned", "weight"]})).json()
        assert ids(off) == ["m1", "m0"]
        assert "weight" not in {s["signal"] for one in off["explanation"]["memories"] for s in one["signals"]}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("猫", "m0"),
        ("书", "m1"),
        ("谁养狗？", "m3"),
        ("她得了什么病", "m4"),
        ("他喝什么茶？", "m2"),
        ("赵", "m5"),
    ],
)
async def test_words_of_one_chinese_character_are_found(
    tmp_path: Path, caller_in: CallerIn, query: str, expected: str
) -> None:
    """A word of one character finds the memories that contain it, alone and in a query."""
    said = [
        "猫喜欢睡觉。",
        "我买了一本书。",
        "他每天喝茶。",
        "我有一只狗叫旺财。",
        "妈妈的病好了。",
        "他姓赵。",
    ]
    messages = [{"role": "user", "content": text, "id": f"m{place}"} for place, text in enumerate(said)]
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT)
        await call("POST", f"{AGENT}/remember", {"messages": messages})
        assert ids(await asked(call, query))[0] == expected


async def test_a_larger_budget_keeps_the_best_sentence(tmp_path: Path, caller_in: CallerIn) -> None:
    """A budget that fits the best sentence returns it, and so does every larger budget."""
    said = (
        "First the weather was dull. The invoice 4711 from Müller AG came in May. We then ate soup. The dog slept. "
        "Nothing else happened in the afternoon. The invoice was paid by Clara. Then we all went home and slept."
    )
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT)
        await call("POST", f"{AGENT}/remember", {"messages": [{"role": "user", "content": said}]})
        told = [
            "Müller"
            in (await asked(call, "Müller AG invoice 4711", key_sentences=True, token_budget=tokens))["text"]
            for tokens in range(10, 130, 5)
        ]
        assert told == sorted(told) and told[-1]


async def test_days_of_a_query_are_those_of_the_time_zone(tmp_path: Path, caller_in: CallerIn) -> None:
    """In Shanghai, yesterday begins eight hours earlier than in UTC."""
    async with caller_in(tmp_path) as call:
        await talked(call)

        async def yesterday() -> dict[str, Any]:
            answer = await asked(call, "Who builds boats since yesterday?", explain=True)
            (found,) = answer["explanation"]["times"]
            return dict(found)

        in_utc = await yesterday()
        patched = await call("PATCH", AGENT, {"time_zone": "Asia/Shanghai"})
        assert patched.json()["parameters"]["time_zone"] == "Asia/Shanghai"
        local = await yesterday()
        assert local["words"] == in_utc["words"]
        assert {in_utc[end] - local[end] for end in ("begin", "end")} == {8 * 3_600_000}
        refused = await call("PATCH", AGENT, {"time_zone": "Asia/Atlantis"})
        assert refused.status_code == 400 and "Europe/Berlin" in refused.text
