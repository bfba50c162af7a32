"""Memories over every transport: correction, and deletion with all their source texts."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ebbtide.language.port import BadReply, ModelUnavailable, Segment
from ebbtide.store import layout
from ebbtide.store.integrity.check import check_store
from ebbtide.store.lmdb.lmdb_store import LmdbStore
from tests.support.callers import CALLERS, MOSTLY_REST, Caller, CallerIn, rest_in, unless_unsayable
from tests.support.scripted_model import ScriptedModel

AGENT = "/v1/agents/ann"
MAP = {"map_bytes": 1 << 20, "max_map_bytes": 1 << 28}
SENTENCES = {"segment_max_chars": 80}
"""Creates a memory of every sentence below."""

TOLD = (
    "I moved to Lisbon in the spring of last year, together with my cat Miso. "
    "My sister Clara is a carpenter and she builds wooden boats in Porto. "
    "我外婆住在青岛，她每天早上都要去海边散步。"
)


@pytest.fixture(params=MOSTLY_REST)
def caller_in(request: pytest.FixtureRequest) -> CallerIn:
    """A daemon in this process and a caller for it, over each transport."""
    return partial(CALLERS[request.param], embedding={"model": "off"})


async def settled(call: Caller, *contents: str, **fields: Any) -> None:
    messages = [{"role": "user", "speaker": "Ann", "content": content} for content in contents]
    answer = await call("POST", f"{AGENT}/remember", {"messages": messages, **fields})
    assert answer.status_code == 202, answer.json()
    assert (await call("POST", f"{AGENT}/flush", {"timeout_ms": 10_000, "passes": True})).json()[
        "passes_done"
    ]


async def nodes(call: Caller) -> dict[str, dict[str, Any]]:
    return {node["id"]: node for node in (await call("GET", f"{AGENT}/nodes")).json()["nodes"]}


async def saying(call: Caller, word: str) -> str:
    """Return the only memory that contains a word."""
    [found] = [name for name, node in (await nodes(call)).items() if word in node["content"]]
    return found


async def answered(call: Caller, query: str, **fields: Any) -> list[dict[str, Any]]:
    answer = await call("POST", f"{AGENT}/recall", {"query": query, "citations": True, **fields})
    assert answer.status_code == 200, answer.json()
    found: list[dict[str, Any]] = answer.json()["memories"]
    return found


def texts_on_disk(path: Path) -> list[str]:
    """Return every text that the agent's store refers to."""
    store = LmdbStore.open(path / "agents" / "ann", **MAP)
    try:
        return store.read(
            lambda txn: (
                [txn.texts.get(bytes(key)) for key, _ in txn.tables.items(layout.CHUNKS)]  # type: ignore[attr-defined]
                + [node.content for node in txn.nodes.all()]
            )
        )
    finally:
        store.close()


# --- deleting ------------------------------------------------------------------------------------------


async def test_a_deleted_memory_is_removed_with_its_words(tmp_path: Path, caller_in: CallerIn) -> None:
    """No node, link, focus, recall or query contains a deleted memory, and its neighbours do not change."""
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, SENTENCES)
        await settled(call, TOLD)
        assert len(await nodes(call)) == 3
        gone = await saying(call, "Clara")
        before = await nodes(call)
        [cited] = before[gone]["sources"]
        links = (await call("GET", f"{AGENT}/links")).json()["links"]
        mine = [link for link in links if gone in (link["source"], link["target"])]
        assert mine and any(link["target"] == gone for link in mine)
        assert [m["state"] for m in await answered(call, "What does Clara build?")] == ["living"]

        answer = await call("DELETE", f"{AGENT}/nodes/{gone}")
        assert (answer.status_code, answer.json()) == (
            200,
            {"node_id": gone, "links_removed": len(mine), "bytes_withdrawn": cited["length"], "cited_by": []},
        )
        del before[gone]
        for name, node in (await nodes(call)).items():
            assert (node["content"], node["sources"]) == (before[name]["content"], before[name]["sources"])
        left = (await call("GET", f"{AGENT}/links")).json()["links"]
        assert len(left) == len(links) - len(mine)
        assert all(gone not in (link["source"], link["target"]) for link in left)
        assert gone not in str((await call("GET", f"{AGENT}/focus")).json())
        told = (await call("POST", f"{AGENT}/recall", {"keywords": []})).json()["text"]
        assert "Clara" not in told and "recall it" not in told and "forgotten" not in told
        for query in ("What does Clara build?", "carpenter", "boats", "Lisbon Miso", "青岛 外婆"):
            assert "Clara" not in str(await answered(call, query)), query
        assert await answered(call, "carpenter boats") == []
        assert [m["state"] for m in await answered(call, "青岛")] == ["living"]
    assert not any("Clara" in text for text in texts_on_disk(tmp_path))


async def test_deletions_survive_a_restart(tmp_path: Path, caller_in: CallerIn) -> None:
    """An index rebuilt from the store gives the same results as the one updated by the deletion."""
    queries = ["Where did Ann move?", "谁住在青岛？", "Clara boats", "Ann"]
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, SENTENCES)
        await settled(call, TOLD, "The harbour smells of tar and oranges in the morning.")
        await answered(call, "anything")
        await call("DELETE", f"{AGENT}/nodes/{await saying(call, 'Clara')}")
        await call("DELETE", f"{AGENT}/nodes/{await saying(call, '青岛')}")
        before = [await answered(call, query) for query in queries]
        assert all(before[:1]) and before[2] == []
        looks = [(await call("GET", f"{AGENT}/{what}")).json() for what in ("nodes", "links", "focus")]
    async with caller_in(tmp_path) as call:
        assert [await answered(call, query) for query in queries] == before
        assert [
            (await call("GET", f"{AGENT}/{what}")).json() for what in ("nodes", "links", "focus")
        ] == looks
    assert not any("Clara" in text or "青岛" in text for text in texts_on_disk(tmp_path))


async def test_deleting_twice_finds_nothing_the_second_time(tmp_path: Path, caller_in: CallerIn) -> None:
    """A deleted memory, an unknown one and an invalid id are not found; nothing else changes."""
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, SENTENCES)
        await settled(call, TOLD)
        assert (await call("DELETE", f"{AGENT}/nodes/n1")).status_code == 200
        left = await nodes(call)
        for name in ("n1", "n99", "x1"):
            assert await call.refused("DELETE", f"{AGENT}/nodes/{name}") == "NODE_NOT_FOUND"
        assert await nodes(call) == left


async def test_the_last_memory_of_a_message_leaves_nothing_to_be_found(
    tmp_path: Path, caller_in: CallerIn
) -> None:
    """After the last memory of a message is deleted, no response contains the message or its speaker."""
    async with caller_in(tmp_path) as call:
        await settled(call, "The harbour smells of tar.")
        assert len(await answered(call, "Ann harbour")) == 1
        assert (await call("DELETE", f"{AGENT}/nodes/n1")).json()["bytes_withdrawn"] == 26
        assert await answered(call, "Ann harbour") == []
        assert await answered(call, "Ann") == []


async def test_an_equal_text_is_a_separate_memory(tmp_path: Path, caller_in: CallerIn) -> None:
    """Deleting one of two memories with equal words keeps the other, though the store shares their text."""
    async with caller_in(tmp_path) as call:
        await settled(call, "The harbour smells of tar.")
        await settled(call, "The harbour smells of tar.")
        first, second = await nodes(call)
        await call("DELETE", f"{AGENT}/nodes/{first}")
        assert [memory["node_ids"] for memory in await answered(call, "harbour")] == [[second]]
        assert list(await nodes(call)) == [second]


async def test_words_stay_where_another_living_memory_has_them(tmp_path: Path) -> None:
    """Memories in a model's words cite the whole message, which is deleted with the last of them."""
    model = ScriptedModel()
    model.always["segment"] = lambda: [Segment("Ann likes tar.", (0,)), Segment("Ann likes oranges.", (0,))]
    async with rest_in(tmp_path, model) as call:
        await settled(call, "Tar and oranges, that is what I like.")
        kept = (await call("DELETE", f"{AGENT}/nodes/n1")).json()
        assert (kept["bytes_withdrawn"], kept["cited_by"]) == (0, ["n2"])
        assert len(await answered(call, "oranges")) == 1
        assert (await call("DELETE", f"{AGENT}/nodes/n2")).json()["bytes_withdrawn"] == 37
        assert await answered(call, "oranges") == []


async def test_memories_deleted_together_keep_no_words_for_each_other(tmp_path: Path) -> None:
    """A deletion of both memories that cite a text reports neither as one that still cites it."""
    model = ScriptedModel()
    model.always["segment"] = lambda: [Segment("Ann likes tar.", (0,)), Segment("Ann likes oranges.", (0,))]
    async with rest_in(tmp_path, model) as call:
        await settled(call, "Tar and oranges, that is what I like.")
        answer = (await call("POST", f"{AGENT}/nodes/delete", {"node_ids": ["n1", "n2"]})).json()
        assert [one["cited_by"] for one in answer["results"]] == [[], []]
        assert sum(one["bytes_withdrawn"] for one in answer["results"]) == 37


async def test_many_deletions_report_each_result(tmp_path: Path, caller_in: CallerIn) -> None:
    """There is one result for each id in the requested order, for existing, unknown and invalid ids."""
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, SENTENCES)
        await settled(call, TOLD)
        wanted = ["n2", "n99", "n1", "n2", "x"]
        answer = (await call("POST", f"{AGENT}/nodes/delete", {"node_ids": wanted})).json()
        assert [one["node_id"] for one in answer["results"]] == wanted
        assert [one["deleted"] for one in answer["results"]] == [True, False, True, False, False]
        assert {one["reason"] for one in answer["results"] if not one["deleted"]} == {"NODE_NOT_FOUND"}
        assert all(one["bytes_withdrawn"] > 0 for one in answer["results"] if one["deleted"])
        assert answer["deleted_count"] == 2
        assert list(await nodes(call)) == ["n3"]


@pytest.mark.parametrize(
    ("node_ids", "reason"), [([], "INVALID_VALUE"), (["n1"] * 1001, "TOO_MANY_ITEMS"), ("n1", "WRONG_TYPE")]
)
async def test_a_bad_list_of_memories_is_refused(
    tmp_path: Path, caller_in: CallerIn, node_ids: Any, reason: str
) -> None:
    """Nothing is deleted, and the error names the field."""
    async with caller_in(tmp_path) as call:
        await settled(call, "The harbour smells of tar.")
        with unless_unsayable(reason):
            answer = await call("POST", f"{AGENT}/nodes/delete", {"node_ids": node_ids})
            assert answer.json()["error"]["reason"] == reason
            assert "node_ids" in answer.json()["error"]["message"]
        assert list(await nodes(call)) == ["n1"]


async def faded(call: Caller) -> None:
    """Create an agent that has forgotten its first message, which search still shows: as m1."""
    await call("PUT", AGENT, {"decay_rate": 0.3, "focus_limit": 1, "entity_memories": 1})
    for word in ("tar", "bread", "coffee", "fish", "salt", "rope"):
        await settled(call, f"The old harbour smells of {word}.")
    assert await call.refused("GET", f"{AGENT}/nodes/n1") == "NODE_FORGOTTEN"


async def shown(call: Caller, text: str) -> dict[str, str]:
    """Return the contents that search returns, by id."""
    answer = await call("POST", f"{AGENT}/search", {"query": text})
    assert answer.status_code == 200, answer.json()
    return {memory["id"]: memory["content"] for memory in answer.json()["memories"]}


async def test_a_forgotten_memory_can_be_deleted(tmp_path: Path, caller_in: CallerIn) -> None:
    """A forgotten memory is deleted by the id of its message, also after a restart. Other memories remain."""
    async with caller_in(tmp_path) as call:
        await faded(call)
        before, living = await shown(call, "harbour"), await nodes(call)
        assert before["m1"] == "The old harbour smells of tar." and len(before) == 6

        answer = await call("DELETE", f"{AGENT}/nodes/m1")
        assert (answer.status_code, answer.json()) == (
            200,
            {"node_id": "m1", "links_removed": 0, "bytes_withdrawn": 25, "cited_by": []},
        )
        del before["m1"]
        assert await shown(call, "harbour") == before
        assert await answered(call, "tar") == [] and await nodes(call) == living
        for name in ("m1", "m99", "m0", "m9999999999999999999"):
            assert await call.refused("DELETE", f"{AGENT}/nodes/{name}") == "NODE_NOT_FOUND"
    assert not any("tar." in text for text in texts_on_disk(tmp_path))
    async with caller_in(tmp_path) as call:
        assert await shown(call, "harbour") == before
        assert await answered(call, "tar") == [] and await nodes(call) == living


async def test_a_forgotten_memory_says_where_its_words_may_be(tmp_path: Path, caller_in: CallerIn) -> None:
    """The error for a forgotten node names it and where its words may be. The error for an unknown node does not."""
    async with caller_in(tmp_path) as call:
        await faded(call)
        for name, is_forgotten in (("n1", True), ("n99", False)):
            error = (await call("DELETE", f"{AGENT}/nodes/{name}")).json()["error"]
            assert error["reason"] == "NODE_NOT_FOUND" and "search" in error["message"]
            assert (name in error["message"], "forgotten" in error["message"]) == (is_forgotten,) * 2


async def test_only_uncited_words_of_a_message_are_deleted(tmp_path: Path, caller_in: CallerIn) -> None:
    """Words cited by living memories remain; the other words are deleted. Results keep the requested order."""
    model = ScriptedModel()
    content = "Good morning! 青岛的海很美。 Bye　bye."
    begin = content.index("青")
    model.always["segment"] = lambda: [Segment("青岛的海很美。", (0,), begin)]
    async with caller_in(tmp_path, model) as call:
        await settled(call, content)
        living = await nodes(call)
        wanted = ["m1", "n9", "m1", "n1", "m1"]
        answer = (await call("POST", f"{AGENT}/nodes/delete", {"node_ids": wanted})).json()
        assert [one["node_id"] for one in answer["results"]] == wanted
        assert [one["deleted"] for one in answer["results"]] == [True, False, False, True, False]
        assert [one["bytes_withdrawn"] for one in answer["results"]] == [19, 0, 0, 21, 0]
        assert [one["reason"] for one in answer["results"]] == [
            "",
            *["NODE_NOT_FOUND"] * 2,
            "",
            "NODE_NOT_FOUND",
        ]
        assert answer["deleted_count"] == 2 and list(living) == ["n1"]
        assert await shown(call, "morning bye 青岛") == {}
    assert [text for text in texts_on_disk(tmp_path) if text.strip()] == []


async def test_a_message_under_a_living_memory_keeps_its_words(tmp_path: Path, caller_in: CallerIn) -> None:
    """A fully cited message has nothing left to delete, and is found as before."""
    async with caller_in(tmp_path) as call:
        await settled(call, "The harbour smells of tar.")
        before = await answered(call, "harbour")
        assert await call.refused("DELETE", f"{AGENT}/nodes/m1") == "NODE_NOT_FOUND"
        assert await answered(call, "harbour") == before and len(before) == 1


async def test_a_message_that_is_not_digested_is_left_alone(tmp_path: Path, caller_in: CallerIn) -> None:
    """A waiting or parked message is refused, alone or among others; its memory later has its whole text."""
    model = ScriptedModel()
    model.always["segment"] = ModelUnavailable("asleep")
    async with caller_in(tmp_path, model, language={"park_after_attempts": 1, "max_bad_replies": 1}) as call:
        body = {"messages": [{"role": "user", "speaker": "Ann", "content": "The harbour smells of tar."}]}
        await call("POST", f"{AGENT}/remember", body)
        for state in ("waiting", "parked"):
            assert (await call("GET", f"{AGENT}/batches/b1")).json()["state"] in (state, "digesting")
            assert await call.refused("DELETE", f"{AGENT}/nodes/m1") == "BATCH_NOT_DIGESTED"
            [one] = (await call("POST", f"{AGENT}/nodes/delete", {"node_ids": ["m1"]})).json()["results"]
            assert (one["deleted"], one["reason"], one["bytes_withdrawn"]) == (False, "BATCH_NOT_DIGESTED", 0)
            assert list(await shown(call, "harbour")) == ["m1"]
            model.always["segment"] = BadReply("makes no sense")
            assert (await call("POST", f"{AGENT}/flush", {"timeout_ms": 10_000})).json()[
                "parked_batches"
            ] == 1
        del model.always["segment"]
        await call("POST", f"{AGENT}/batches/b1/retry")
        await call("POST", f"{AGENT}/flush", {"timeout_ms": 10_000})
        assert [node["content"] for node in (await nodes(call)).values()] == ["The harbour smells of tar."]
        assert await call.refused("DELETE", f"{AGENT}/nodes/m1") == "NODE_NOT_FOUND"


# --- correcting ----------------------------------------------------------------------------------------


async def test_a_corrected_memory_is_found_by_its_new_words_only(tmp_path: Path, caller_in: CallerIn) -> None:
    """Keywords and queries find only the new wording, before and after a restart."""
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, SENTENCES)
        await settled(call, TOLD, conversation_id="c1")
        await answered(call, "anything")
        name = await saying(call, "Clara")
        before = (await call("GET", f"{AGENT}/nodes/{name}")).json()
        others = {key: node for key, node in (await nodes(call)).items() if key != name}
        content = "My sister Berta is a gardener and grows tomatoes."
        answer = await call("PATCH", f"{AGENT}/nodes/{name}", {"content": content})
        after = answer.json()
        assert (answer.status_code, after["content"], after["original_length"]) == (
            200,
            content,
            len(content),
        )
        assert any("Berta" in word or "tomatoes" in word for word in after["keywords"])
        assert not any("Clara" in word or "boat" in word for word in after["keywords"])
        for kept in ("scan_count", "in_focus", "created_at", "id"):
            assert after[kept] == before[kept], kept
        for links, end in (("links_in", "source"), ("links_out", "target")):
            kept_links, links_before = (
                [link for link in one[links] if link[end] in others] for one in (after, before)
            )
            assert kept_links == links_before != [], links
        names = {entity["name"] for entity in after["entities"]}
        assert names <= set(after["keywords"]) and names.isdisjoint(one["name"] for one in before["entities"])
        assert after == (await call("GET", f"{AGENT}/nodes/{name}")).json()
        assert others == {key: node for key, node in (await nodes(call)).items() if key != name}
        told = (await call("POST", f"{AGENT}/recall", {"keywords": ["tomatoes"]})).json()["text"]
        assert told == f"[Memory] Ann: {content}"
        [found] = [m for m in await answered(call, "Who grows tomatoes?") if name in m["node_ids"]]
        assert (found["content"], found["state"], found["node_ids"]) == (content, "living", [name])
        [source] = found["sources"]
        assert (source["speaker"], source["conversation_id"], source["offset"]) == ("Ann", "c1", 0)
        queries = ["Who grows tomatoes?", "carpenter boats", "Lisbon", "青岛", "Ann"]
        answers = [await answered(call, query) for query in queries]
        assert "Clara" not in str(answers) and answers[1] == []
    async with caller_in(tmp_path) as call:
        assert [await answered(call, query) for query in queries] == answers
        assert (await call("GET", f"{AGENT}/nodes/{name}")).json() == after
    assert not any("Clara" in text for text in texts_on_disk(tmp_path))


async def test_a_memory_is_corrected_and_deleted_again_and_again(tmp_path: Path, caller_in: CallerIn) -> None:
    """Each correction replaces the one before, and a deletion removes the last one too."""
    async with caller_in(tmp_path) as call:
        await settled(call, "The harbour smells of tar.")
        for word in ("oranges", "fish", "coffee"):
            content = f"The harbour smells of {word}."
            assert (await call("PATCH", f"{AGENT}/nodes/n1", {"content": content})).json()[
                "content"
            ] == content
            [found] = await answered(call, "harbour")
            assert found["content"] == content
        await call("DELETE", f"{AGENT}/nodes/n1")
        assert await answered(call, "harbour coffee Ann") == []
    assert [text for text in texts_on_disk(tmp_path) if text.strip()] == []


async def test_keywords_alone_leave_the_words_alone(tmp_path: Path, caller_in: CallerIn) -> None:
    """New keywords do not change the content or the sources of a memory, and recalls use them at once."""
    async with caller_in(tmp_path) as call:
        await settled(call, "The harbour smells of tar.")
        before = (await call("GET", f"{AGENT}/nodes/n1")).json()
        after = (await call("PATCH", f"{AGENT}/nodes/n1", {"keywords": ["seaside"]})).json()
        assert [entity["name"] for entity in after["entities"]] == ["seaside"]
        follows = ("entities", "links_in", "links_out", "importance")
        assert after == {**before, "keywords": ["seaside"], **{name: after[name] for name in follows}}
        assert "harbour" in (await call("POST", f"{AGENT}/recall", {"keywords": ["seaside"]})).json()["text"]


@pytest.mark.parametrize(
    ("fields", "reason", "place"),
    [
        ({}, "MISSING_FIELD", "content"),
        ({"content": " \n"}, "INVALID_VALUE", "content"),
        ({"content": "x" * 100_001}, "TEXT_TOO_LONG", "content"),
        ({"content": 7}, "WRONG_TYPE", "content"),
        ({"keywords": [" "]}, "INVALID_VALUE", "keywords[0]"),
        ({"keywords": ["tar", "a\x07b"]}, "INVALID_VALUE", "keywords[1]"),
        ({"keywords": ["a\nb"]}, "INVALID_VALUE", "keywords[0]"),
        ({"keywords": ["\u202eolleh"]}, "INVALID_VALUE", "keywords[0]"),
        ({"keywords": ["x"] * 65}, "TOO_MANY_ITEMS", "keywords"),
        ({"keywords": ["x" * 201]}, "TEXT_TOO_LONG", "keywords[0]"),
        ({"text": "x"}, "UNKNOWN_FIELD", "text"),
    ],
)
async def test_a_bad_correction_is_refused(
    tmp_path: Path, caller_in: CallerIn, fields: dict[str, Any], reason: str, place: str
) -> None:
    """The error names the field, and the memory is unchanged."""
    async with caller_in(tmp_path) as call:
        await settled(call, "The harbour smells of tar.")
        before = await nodes(call)
        with unless_unsayable(reason):
            error = (await call("PATCH", f"{AGENT}/nodes/n1", fields)).json()["error"]
            assert error["reason"] == reason
            assert place in error["message"]
        assert await call.refused("PATCH", f"{AGENT}/nodes/n9", {"content": "x"}) == "NODE_NOT_FOUND"
        assert await nodes(call) == before


# --- metadata ------------------------------------------------------------------------------------------

NOTES = [
    ("The train to Porto leaves at nine.", {"topic": "travel", "stars": 3}),
    ("The train to Braga was late.", {"topic": "travel", "stars": 1, "paid": True}),
    ("The train set is for my nephew.", None),
    ("Train more often, said the doctor.", {"topic": "health", "stars": 1.5, "paid": False}),
]


async def noted(call: Caller) -> None:
    messages = [
        {"role": "user", "content": content, "id": f"m{place}", "metadata": metadata}
        for place, (content, metadata) in enumerate(NOTES)
    ]
    body = {"messages": messages, "metadata": {"topic": "diary", "by": "phone", "tags": ["a", "b"]}}
    answer = await call("POST", f"{AGENT}/remember", body)
    assert answer.status_code == 202, answer.json()
    await call("POST", f"{AGENT}/flush", {"timeout_ms": 10_000})


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"topic": "travel"}, {"m0", "m1"}),
        ({"topic": "diary"}, {"m2"}),
        ({"by": "phone"}, {"m0", "m1", "m2", "m3"}),
        ({"topic": "travel", "stars": 1}, {"m1"}),
        ({"stars": 1.5}, {"m3"}),
        ({"paid": True}, {"m1"}),
        ({"paid": 1}, set()),
        ({"stars": True}, set()),
        ({"topic": "Travel"}, set()),
        ({"nothing": "of the kind"}, set()),
        ({}, {"m0", "m1", "m2", "m3"}),
    ],
)
async def test_a_question_is_narrowed_to_metadata(
    tmp_path: Path, caller_in: CallerIn, metadata: dict[str, Any], expected: set[str]
) -> None:
    """All given values must be equal, with a message's own before its batch's; the same after a restart."""
    async with caller_in(tmp_path) as call:
        await answered_nothing(call)
        await noted(call)
        first = await answered(call, "train", metadata=metadata)
        assert {memory["sources"][0]["message_id"] for memory in first} == expected
    async with caller_in(tmp_path) as call:
        assert await answered(call, "train", metadata=metadata) == first


async def test_new_metadata_keeps_the_original_length(tmp_path: Path, caller_in: CallerIn) -> None:
    """New metadata changes only metadata and source, of a shortened memory whose first content is removed too."""
    fading = {"decay_rate": 0.7, "focus_limit": 1, "long_term_factor": 0, "focus_policy": "nodes"}
    for retention in ("keep", "none"):
        async with caller_in(tmp_path / retention) as call:
            await call("PUT", AGENT, {**SENTENCES, **fading, "retention": retention})
            await settled(
                call, "My sister Clara plays the cello in an orchestra in Porto every single morning."
            )
            for place in range(3):
                await settled(call, f"On day {place} we walked along the beach near the harbour.")
            before = (await nodes(call))["n1"]
            assert 0 < len(before["content"]) < before["original_length"]
            for metadata in ({"topic": "family"}, {}):
                answer = await call("PATCH", f"{AGENT}/nodes/n1", {"metadata": metadata})
                assert answer.status_code == 200, answer.json()
                after = (await nodes(call))["n1"]
                assert after["sources"][0]["metadata"] == metadata
                assert after == {**before, "sources": after["sources"]}
            assert [one["node_ids"] for one in await answered(call, "Clara cello")] == [["n1"]]
        store = LmdbStore.open(tmp_path / retention / "agents" / "ann", **MAP)
        assert check_store(store) == []
        store.close()


async def answered_nothing(call: Caller) -> None:
    """Create an agent whose archive is loaded before the first message."""
    await call("PUT", AGENT, {})
    assert await answered(call, "train") == []


async def test_sources_have_metadata_that_a_correction_keeps_or_changes(
    tmp_path: Path, caller_in: CallerIn
) -> None:
    """Node and recall return the same metadata; corrected words keep it, corrected metadata keeps the words."""
    async with caller_in(tmp_path) as call:
        await noted(call)
        merged = {"topic": "travel", "by": "phone", "tags": ["a", "b"], "stars": 3}
        name = await saying(call, "Porto")
        assert (await nodes(call))[name]["sources"][0]["metadata"] == merged
        await call("PATCH", f"{AGENT}/nodes/{name}", {"content": "user: The train to Faro leaves at ten."})
        [found] = await answered(call, "Faro train", metadata={"stars": 3})
        assert found["sources"][0]["metadata"] == merged
        # The correction is a separate source without a message.
        assert (
            found["sources"][0]["message_id"] == "" == (await nodes(call))[name]["sources"][0]["message_id"]
        )
        changed = await call("PATCH", f"{AGENT}/nodes/{name}", {"metadata": {"topic": "plans"}})
        assert changed.json()["content"] == "user: The train to Faro leaves at ten."
        assert changed.json()["sources"][0]["metadata"] == {"topic": "plans"}
        assert [m["node_ids"] for m in await answered(call, "train", metadata={"topic": "plans"})] == [[name]]
        assert await answered(call, "train", metadata={"stars": 3}) == []
        await call("PATCH", f"{AGENT}/nodes/{name}", {"metadata": {}})
        assert (await nodes(call))[name]["sources"][0]["metadata"] == {}
        before = [await answered(call, "train"), await answered(call, "train", metadata={"topic": "travel"})]
    async with caller_in(tmp_path) as call:
        assert before == [
            await answered(call, "train"),
            await answered(call, "train", metadata={"topic": "travel"}),
        ]


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        ({"topic": ["a"]}, "WRONG_TYPE"),
        ({"topic": {"a": 1}}, "WRONG_TYPE"),
        ({"topic": None}, "WRONG_TYPE"),
        ({"": "x"}, "INVALID_VALUE"),
        ({"n" * 201: "x"}, "TEXT_TOO_LONG"),
        ({"topic": "x" * 5000}, "METADATA_TOO_LARGE"),
    ],
)
async def test_metadata_that_is_not_flat_or_too_large_is_refused(
    tmp_path: Path, caller_in: CallerIn, metadata: dict[str, Any], reason: str
) -> None:
    """Such metadata is refused in a message, a correction and a query; nothing is stored."""
    async with caller_in(tmp_path) as call:
        await settled(call, "The harbour smells of tar.")
        said = {"messages": [{"role": "user", "content": "x", "metadata": metadata}]}
        for method, path, body in (
            ("POST", "remember", said),
            ("PATCH", "nodes/n1", {"metadata": metadata}),
            ("POST", "recall", {"query": "x", "metadata": metadata}),
        ):
            assert await call.refused(method, f"{AGENT}/{path}", body) == reason, path
        assert await call.refused("POST", f"{AGENT}/recall", {"metadata": {"a": "b"}}) == "INVALID_VALUE"
        assert (await call("GET", AGENT)).json()["counts"]["messages"] == 1


# --- search --------------------------------------------------------------------------------------------


async def test_a_search_finds_the_same_as_a_recall(tmp_path: Path, caller_in: CallerIn) -> None:
    """A search returns the same memories in the same order as a recall with that query, with scores, best first."""
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, SENTENCES)
        await settled(call, TOLD, conversation_id="c1", metadata={"topic": "family"})
        await settled(call, "The harbour smells of tar and oranges in the morning.")
        for text in ("Where did Ann move?", "谁住在青岛？", "What does Clara build in the morning?", "zebra"):
            found = (await call("POST", f"{AGENT}/search", {"query": text})).json()
            assert (found["pending_batches"], found["parked_batches"]) == (0, 0)
            scores = [memory.pop("score") for memory in found["memories"]]
            assert scores == sorted(scores, reverse=True) and all(score > 0 for score in scores)
            assert found["memories"] == await answered(call, text)
        everything = "Lisbon Clara 青岛 harbour"
        for filters, count in (
            ({}, 4),
            ({"max_results": 2}, 2),
            ({"metadata": {"topic": "family"}}, 3),
            ({"sources": ["c1"]}, 3),
            ({"speakers": ["Bob"]}, 0),
            ({"kinds": ["episode"], "archive": "never"}, 4),
            ({"time_range": {"end": 5}}, 0),
        ):
            found = (await call("POST", f"{AGENT}/search", {"query": everything, **filters})).json()
            assert len({m["id"] for m in found["memories"]}) <= count, filters
            assert bool(found["memories"]) == bool(count), filters


@pytest.mark.parametrize(
    ("fields", "reason", "place"),
    [
        ({}, "MISSING_FIELD", "query"),
        ({"query": " "}, "INVALID_VALUE", "query"),
        ({"query": "x" * 10_001}, "TEXT_TOO_LONG", "query"),
        ({"query": "x", "kinds": ["a dream"]}, "INVALID_VALUE", "kinds[0]"),
        ({"query": "x", "max_results": -1}, "INVALID_VALUE", "max_results"),
        ({"query": "x", "time_range": {"begin": 2, "end": 1}}, "INVALID_VALUE", "time_range.end"),
        ({"query": "x", "patience_ms": 30_001}, "INVALID_VALUE", "patience_ms"),
        ({"query": "x", "text": "x"}, "UNKNOWN_FIELD", "text"),
    ],
)
async def test_a_bad_search_is_refused(
    tmp_path: Path, caller_in: CallerIn, fields: dict[str, Any], reason: str, place: str
) -> None:
    """The error names the field as the client sent it."""
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, {})
        error = (await call("POST", f"{AGENT}/search", fields)).json()["error"]
        assert error["reason"] == reason
        assert place in error["message"]


async def test_a_cited_message_names_what_cites_it(tmp_path: Path, caller_in: CallerIn) -> None:
    """The error names the memories that cite a message; when they are deleted, nothing of it is left."""
    async with caller_in(tmp_path) as call:
        await settled(call, "Farid keeps bees in Porto.")
        number = await saying(call, "bees")
        answer = await call("DELETE", f"{AGENT}/nodes/m1")
        assert (answer.status_code, answer.json()["error"]["reason"]) == (404, "NODE_NOT_FOUND")
        assert f"m1 is left to delete: its text is cited by {number}." in answer.json()["error"]["message"]
        assert (await call("DELETE", f"{AGENT}/nodes/{number}")).status_code == 200
        answer = await call("DELETE", f"{AGENT}/nodes/m1")
        assert "no message has this id, or it was deleted" in answer.json()["error"]["message"]
