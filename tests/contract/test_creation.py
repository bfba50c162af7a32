"""Memories that the caller supplies, over every transport: one message, one memory, one commit, no model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ebbtide.store.integrity.check import check_store
from ebbtide.store.lmdb.lmdb_store import LmdbStore
from tests.support.callers import MOSTLY_REST, Caller, CallerIn
from tests.support.fake_ollama import FakeOllama, vector_of
from tests.support.forwarded import ALL_CALLERS, FORWARDED_IN_FULL
from tests.support.scripted_model import ScriptedModel

AGENT = "/v1/agents/ann"
MAP = {"map_bytes": 1 << 20, "max_map_bytes": 1 << 28}
LONG = "Ann is allergic to nuts. " * 40
"""A text that a digest would split."""


@pytest.fixture(params=[*MOSTLY_REST, *FORWARDED_IN_FULL])
def caller_in(request: pytest.FixtureRequest) -> CallerIn:
    """A daemon in this process and a caller for it, over each transport."""
    caller: CallerIn = ALL_CALLERS[request.param]
    return lambda path, model=None, **sections: caller(
        path, model, **{"embedding": {"model": "off"}, **sections}
    )


async def created(call: Caller, content: str, **fields: Any) -> dict[str, Any]:
    """Create a memory and return it."""
    answer = await call("POST", f"{AGENT}/nodes", {"content": content, **fields})
    assert answer.status_code == 201, answer.json()
    found: dict[str, Any] = answer.json()
    return found


async def remembered(call: Caller, *contents: str) -> None:
    """Let the agent remember messages, and wait for their digest."""
    messages = [{"role": "user", "content": content} for content in contents]
    await call("POST", f"{AGENT}/remember", {"messages": messages})
    assert (await call("POST", f"{AGENT}/flush", {"timeout_ms": 10_000})).json()["digested"]


def checked(path: Path) -> None:
    """The agent's store is consistent."""
    store = LmdbStore.open(path / "agents" / "ann", **MAP)
    try:
        assert check_store(store) == []
    finally:
        store.close()


def files_with(content: bytes, directory: Path) -> list[Path]:
    """Return the files below a directory that contain some bytes."""
    return [one for one in directory.rglob("*") if one.is_file() and content in one.read_bytes()]


async def test_one_text_becomes_one_memory_at_once(tmp_path: Path, caller_in: CallerIn) -> None:
    """The memory is that of the request, with its message, batch, entities and place in focus; no text is split."""
    async with caller_in(tmp_path) as call:
        node = await created(
            call,
            LONG,
            speaker="Dr. Wu",
            timestamp=1763700000000,
            message_id="own-1",
            conversation_id="c1",
            keywords=["Ann", "nuts"],
            metadata={"source": "form"},
        )
        assert (node["id"], node["content"], node["first_content"]) == ("n1", LONG, LONG)
        assert (node["keywords"], node["label"], node["created_at"]) == (
            ["Ann", "nuts"],
            "Dr. Wu: ",
            1763700000000,
        )
        assert node["in_focus"] and {one["name"] for one in node["entities"]} == {"Ann", "nuts"}
        (source,) = node["sources"]
        assert (source["offset"], source["length"]) == (0, len(LONG.encode()))
        assert (source["message_id"], source["conversation_id"], source["metadata"]) == (
            *("own-1", "c1"),
            {"source": "form"},
        )
        batch = (await call("GET", f"{AGENT}/batches/b1")).json()
        assert (batch["state"], batch["node_ids"], batch["message_count"]) == ("digested", ["n1"], 1)
        agent = (await call("GET", AGENT)).json()
        assert agent["pending_batches"] == 0
        found = (await call("POST", f"{AGENT}/search", {"query": "What is Ann allergic to?"})).json()[
            "memories"
        ]
        assert found[0]["node_ids"] == ["n1"] and found[0]["state"] == "living"
        assert "nuts" in (await call("POST", f"{AGENT}/recall", {"keywords": ["nuts"]})).json()["text"]
        if call.transport == "rest":
            events = await call("GET", f"{AGENT}/events", params={"follow": "false", "after": "0"})
            kinds = [line[7:] for line in events.text.splitlines() if line.startswith("event: ")]
            assert kinds.count("NodeCreated") == 1 and "BatchDigested" in kinds
    checked(tmp_path)


async def test_no_model_is_asked(tmp_path: Path, caller_in: CallerIn) -> None:
    """While the language model does not answer, a memory is created and a waiting batch keeps its place."""
    model = ScriptedModel()
    async with caller_in(tmp_path, model) as call:
        model.always["segment"] = 60.0
        await call("POST", f"{AGENT}/remember", {"messages": [{"role": "user", "content": "It waits."}]})
        node = await created(call, "Ann is allergic to nuts.")
        assert node["id"] == "n1"
        batches = (await call("GET", f"{AGENT}/batches")).json()["batches"]
        assert [one["state"] for one in batches][1] == "digested" and batches[0]["state"] != "digested"


async def test_it_is_like_a_digested_batch(tmp_path: Path, caller_in: CallerIn) -> None:
    """Without links of its own, a memory has those that a digest of the same text gives it."""
    views = []
    async with caller_in(tmp_path) as call:
        for agent in ("/v1/agents/ann", "/v1/agents/bob"):
            for round_number, text in enumerate(("Clara builds boats in Porto.", "Clara sails to Ghent.")):
                if agent == AGENT and round_number:
                    await created(call, text)
                else:
                    body = {"messages": [{"role": "user", "content": text}]}
                    await call("POST", f"{agent}/remember", body)
                await call("POST", f"{agent}/flush", {"timeout_ms": 10_000, "passes": True})
            listed = await call("GET", f"{agent}/nodes", params={"kinds": "episode,entity"})
            nodes = [{**node, "created_at": 0} for node in listed.json()["nodes"]]
            views.append((nodes, (await call("GET", f"{agent}/links")).json()))
    assert views[0] == views[1]


async def test_own_links(tmp_path: Path, caller_in: CallerIn) -> None:
    """Links lead both ways with name and strength, to memories and entities; the memory does not join the focus."""
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, {"focus_limit": 1})
        await remembered(call, "Clara builds boats in Porto.")
        await remembered(call, "Bruno paints the harbour of Ghent.")
        nodes = (await call("GET", f"{AGENT}/nodes", params={"kinds": "episode,entity"})).json()["nodes"]
        (clara,) = [one["id"] for one in nodes if one["content"].startswith("Clara")]
        (porto,) = [one["id"] for one in nodes if one["kind"] == "entity" and one["phrase"] == "Porto"]
        focus = (await call("GET", f"{AGENT}/focus")).json()["nodes"][0]["id"]
        node = await created(
            call,
            "The regatta starts at noon.",
            keywords=["regatta"],
            links=[
                {"target": clara, "relation": "told by", "strength": 0.5},
                {"target": porto, "relation": "happens in"},
            ],
        )
        assert not node["in_focus"]
        out = {(one["target"], one["relation"]): one["strength"] for one in node["links_out"]}
        back = {(one["source"], one["relation"]): one["strength"] for one in node["links_in"]}
        assert out[clara, "told by"] == back[clara, "told by"] == 0.5
        assert out[porto, "happens in"] == 1 and (porto, "happens in") in back
        assert focus not in {target for target, _ in out}
        assert (await call("GET", f"{AGENT}/focus")).json()["nodes"][0]["id"] == focus
        assert node["importance"] > 0.5
        text = (
            await call("POST", f"{AGENT}/recall", {"relations": ["told by"], "keywords": ["regatta"]})
        ).json()["text"]
        assert "regatta" in text
        missing = {"content": "x", "links": [{"target": "n99", "relation": "about"}]}
        assert await call.refused("POST", f"{AGENT}/nodes", missing) == "NODE_NOT_FOUND"
        await call("DELETE", f"{AGENT}/nodes/{clara}")
        gone = {"content": "x", "links": [{"target": clara, "relation": "about"}]}
        assert await call.refused("POST", f"{AGENT}/nodes", gone) == "NODE_FORGOTTEN"
        assert (await call("GET", f"{AGENT}/messages")).json()["messages"][-1]["content"] == node["content"]
    checked(tmp_path)


async def test_a_linked_memory_keeps_its_place(tmp_path: Path, caller_in: CallerIn) -> None:
    """Under `slots` a new memory takes the place of another one, but not of one that it is linked with."""
    async with caller_in(tmp_path) as call:
        slots = {"strategy": "slots", "max_nodes": 101, "focus_limit": 1, "decay_rate": 1.0}
        assert (await call("PUT", AGENT, slots)).status_code == 201
        for number in range(102):
            await created(call, f"Boat {number}.", keywords=[f"boat {number}"])
        for number in range(5):
            await call("POST", f"{AGENT}/flush", {"timeout_ms": 10_000, "passes": True})
            nodes = (await call("GET", f"{AGENT}/nodes", params={"page_size": 60})).json()["nodes"]
            assert (await call("GET", AGENT)).json()["counts"]["nodes"] == 101
            targets = {node["id"] for node in nodes}
            links = [{"target": target, "relation": "about"} for target in targets]
            node = await created(call, f"Again {number}.", keywords=["again"], links=links)
            assert targets <= {link["target"] for link in node["links_out"]}
            assert targets <= {link["source"] for link in node["links_in"]}
    checked(tmp_path)


async def test_a_repeated_request_creates_one_memory(tmp_path: Path, caller_in: CallerIn) -> None:
    """The same key and body return the first memory; another body, or a batch with the key, is refused."""
    async with caller_in(tmp_path) as call:
        first = await created(call, "Ann is allergic to nuts.", idempotency_key="k")
        again = await created(call, "Ann is allergic to nuts.", idempotency_key="k")
        assert again["id"] == first["id"] == "n1"
        for other in ({"keywords": ["nuts"]}, {"metadata": {"a": 1}}, {"role": "assistant"}):
            body = {"content": "Ann is allergic to nuts.", "idempotency_key": "k", **other}
            assert await call.refused("POST", f"{AGENT}/nodes", body) == "IDEMPOTENCY_KEY_REUSED"
        batch = {
            "messages": [{"role": "user", "content": "Ann is allergic to nuts."}],
            "idempotency_key": "k",
        }
        assert await call.refused("POST", f"{AGENT}/remember", batch) == "IDEMPOTENCY_KEY_REUSED"
        await call("DELETE", f"{AGENT}/nodes/n1")
        body = {"content": "Ann is allergic to nuts.", "idempotency_key": "k"}
        assert await call.refused("POST", f"{AGENT}/nodes", body) == "NODE_FORGOTTEN"
        assert len((await call("GET", f"{AGENT}/nodes")).json()["nodes"]) == 0


async def test_personal_data_and_retention(tmp_path: Path, caller_in: CallerIn) -> None:
    """Content, keywords and names of links are redacted; with retention `none` the text is not stored."""
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, {"pii": "redact", "retention": "none"})
        await created(call, "Ann likes tea.")
        node = await created(
            call,
            "Write to ann@example.org.",
            keywords=["ann@example.org"],
            links=[{"target": "n1", "relation": "mail of ann@example.org"}],
        )
        assert "example.org" not in str(node) and node["content"] == "Write to [email]."
        messages = (await call("GET", f"{AGENT}/messages")).json()["messages"]
        assert [one["content"] for one in messages] == [None, None]
        found = (await call("POST", f"{AGENT}/search", {"query": "Who likes tea?"})).json()["memories"]
        assert found[0]["content"] == "Ann likes tea."
    checked(tmp_path)
    assert files_with(b"example.org", tmp_path) == []


async def test_its_own_vector(tmp_path: Path, caller_in: CallerIn) -> None:
    """A vector of the current model is searched at once, instead of a computed one; others are refused."""
    async with FakeOllama(("bge-m3",)).running_here() as server:
        model = {"model": "ollama", "base_url": server.url, "name": "bge-m3"}
        async with caller_in(tmp_path, embedding=model) as call:
            await remembered(call, "The kitchen needs new tiles.")
            done = await call("POST", f"{AGENT}/flush", {"timeout_ms": 10_000, "vectors": True})
            assert done.json()["unembedded_messages"] == 0
            asked = vector_of("kitten", server.vector_size)
            meaning = [3 * number for number in asked]
            node = await created(call, "Something about an animal.", vector=meaning)
            for is_settled in (False, True):
                if is_settled:
                    await call("POST", f"{AGENT}/flush", {"timeout_ms": 10_000, "vectors": True})
                    await call("POST", f"{AGENT}/close", {})
                found = (await call("POST", f"{AGENT}/search", {"vector": asked})).json()
                assert found["memories"][0]["node_ids"] == [node["id"]]
            short = {"content": "x", "vector": meaning[:-1]}
            assert await call.refused("POST", f"{AGENT}/nodes", short) == "INVALID_VALUE"
            long = {"content": LONG * 3, "vector": meaning}
            assert await call.refused("POST", f"{AGENT}/nodes", long) == "INVALID_VALUE"
            assert (await call("GET", AGENT)).json()["counts"]["messages"] == 2
    checked(tmp_path)


async def test_the_first_vector_has_the_size_of_the_model(tmp_path: Path, caller_in: CallerIn) -> None:
    """A vector of another size is refused for the first memory too, if the size of the model's vectors is known."""
    async with caller_in(tmp_path, embedding={"model": "builtin"}) as call:
        for path, body in (
            ("nodes", {"content": "x"}),
            ("statements", {"subject": "I", "topic": "pet", "object": "a cat"}),
        ):
            for size in (3, 255, 257):
                wrong = {**body, "vector": [1.0] * size}
                assert await call.refused("POST", f"{AGENT}/{path}", wrong) == "INVALID_VALUE", size
        await created(call, "x", vector=[1.0] * 256)
    checked(tmp_path)


async def test_a_statement_with_links_metadata_and_vector(tmp_path: Path, caller_in: CallerIn) -> None:
    """A statement has the caller's links both ways, is listed by its metadata, and is found by its own vector."""
    async with FakeOllama(("bge-m3",)).running_here() as server:
        model = {"model": "ollama", "base_url": server.url, "name": "bge-m3"}
        async with caller_in(tmp_path, embedding=model) as call:
            await remembered(call, "The kitchen needs new tiles.")
            await call("POST", f"{AGENT}/flush", {"timeout_ms": 10_000, "vectors": True})
            asked = vector_of("kitten", server.vector_size)
            body = {
                "subject": "I",
                "topic": "pet",
                "object": "Minka",
                "vector": [3 * number for number in asked],
                "links": [{"target": "n1", "relation": "lies in", "strength": 0.25}],
                "metadata": {"form": "intake", "page": 2},
                "idempotency_key": "k",
            }
            first = (await call("POST", f"{AGENT}/statements", body)).json()
            again = (await call("POST", f"{AGENT}/statements", body)).json()
            assert again["id"] == first["id"] and not again.get("created", False)
            other = {**body, "metadata": {"form": "other"}}
            assert await call.refused("POST", f"{AGENT}/statements", other) == "IDEMPOTENCY_KEY_REUSED"
            await call("POST", f"{AGENT}/statements", {"subject": "I", "topic": "pet", "object": "Rex"})
            for is_settled in (False, True):
                if is_settled:
                    await call("POST", f"{AGENT}/flush", {"timeout_ms": 10_000, "vectors": True})
                    await call("POST", f"{AGENT}/close", {})
                found = (await call("POST", f"{AGENT}/search", {"vector": asked})).json()
                assert found["memories"][0]["node_ids"] == [first["id"]]
                node = (await call("GET", f"{AGENT}/nodes/{first['id']}")).json()
                out = {(link["target"], link["relation"]): link["strength"] for link in node["links_out"]}
                assert out["n1", "lies in"] == 0.25 and "pet" in {relation for _, relation in out}
                back = {(link["source"], link["relation"]) for link in node["links_in"]}
                assert ("n1", "lies in") in back
                for path, kinds in (("statements", ""), ("nodes", "fact")):
                    for wanted, ids in (
                        ('{"form": "intake"}', [first["id"]]),
                        ('{"page": 2, "form": "intake"}', [first["id"]]),
                        ('{"form": "other"}', []),
                    ):
                        params = {"metadata": wanted, **({"kinds": kinds} if kinds else {})}
                        page = (await call("GET", f"{AGENT}/{path}", params=params)).json()
                        assert [one["id"] for one in page[path]] == ids, (path, wanted)
    checked(tmp_path)


async def test_what_a_known_statement_is_given(tmp_path: Path, caller_in: CallerIn) -> None:
    """Said again, a statement gets the further links, none with itself, and is listed by the further metadata."""
    async with caller_in(tmp_path) as call:
        await remembered(call, "The kitchen needs new tiles.")
        said = {"subject": "I", "topic": "pet", "object": "Minka"}
        first = (await call("POST", f"{AGENT}/statements", said)).json()
        links = [{"target": target, "relation": "lies in"} for target in ("n1", first["id"])]
        again = await call("POST", f"{AGENT}/statements", {**said, "links": links, "metadata": {"form": "b"}})
        assert again.json()["id"] == first["id"]
        node = (await call("GET", f"{AGENT}/nodes/{first['id']}")).json()
        assert [link["target"] for link in node["links_out"] if link["relation"] == "lies in"] == ["n1"]
        params = {"metadata": '{"form": "b"}'}
        page = (await call("GET", f"{AGENT}/statements", params=params)).json()
        assert [one["id"] for one in page["statements"]] == [first["id"]]
        wrong = {**said, "object": "Rex", "links": [{"target": "n999", "relation": "about"}]}
        assert await call.refused("POST", f"{AGENT}/statements", wrong) == "NODE_NOT_FOUND"
        off = {**said, "object": "Rex", "vector": [1.0]}
        assert await call.refused("POST", f"{AGENT}/statements", off) == "VECTORS_UNAVAILABLE"
        assert len((await call("GET", f"{AGENT}/statements")).json()["statements"]) == 1
    checked(tmp_path)


async def test_it_is_the_same_after_a_restart(tmp_path: Path, caller_in: CallerIn) -> None:
    """The state in memory after a creation equals the state that an opened agent reads from disk."""
    async with caller_in(tmp_path) as call:
        await remembered(call, "Clara builds boats in Porto.")
        await created(call, "Clara sails to Ghent.")
        await created(
            call, "The regatta starts.", links=[{"target": "n1", "relation": "about", "strength": 0.25}]
        )
        await call("POST", f"{AGENT}/flush", {"timeout_ms": 10_000, "passes": True})
        before = [(await call("GET", f"{AGENT}/{field}")).json() for field in ("nodes", "links", "focus")]
        recalled = (await call("POST", f"{AGENT}/recall", {"query": "Where does Clara sail?"})).json()
    async with caller_in(tmp_path) as call:
        after = [(await call("GET", f"{AGENT}/{field}")).json() for field in ("nodes", "links", "focus")]
        assert after == before
        assert (await call("POST", f"{AGENT}/recall", {"query": "Where does Clara sail?"})).json() == recalled


async def test_it_is_erased_as_any_other(tmp_path: Path, caller_in: CallerIn) -> None:
    """`forget` removes its text from every file."""
    async with caller_in(tmp_path) as call:
        node = await created(call, "Project Heron needs carpenters.")
        assert (await call("POST", f"{AGENT}/forget", {"nodes": [node["id"]]})).json()["counts"]["nodes"] == 1
    checked(tmp_path)
    assert files_with(b"Heron", tmp_path) == []


BAD: list[tuple[dict[str, Any], str]] = [
    ({}, "MISSING_FIELD"),
    ({"content": " "}, "INVALID_VALUE"),
    ({"content": "x" * 100_001}, "TEXT_TOO_LONG"),
    ({"content": "x", "links": [{"target": "n1", "relation": ""}]}, "INVALID_VALUE"),
    ({"content": "x", "links": [{"target": "n1", "relation": "a", "strength": 0}]}, "INVALID_VALUE"),
    ({"content": "x", "links": [{"target": "n1", "relation": "a", "strength": 1.5}]}, "INVALID_VALUE"),
    ({"content": "x", "links": [{"relation": "a"}]}, "MISSING_FIELD"),
    ({"content": "x", "links": [{"target": "n1", "relation": "a"}] * 65}, "TOO_MANY_ITEMS"),
    ({"content": "x", "vector": [1.0]}, "VECTORS_UNAVAILABLE"),
    ({"content": "x", "vector": [0.0]}, "INVALID_VALUE"),
    ({"content": "x", "metadata": {"a": {"b": 1}}}, "WRONG_TYPE"),
    ({"content": "x", "kind": "fact"}, "INVALID_VALUE"),
]


async def test_a_kind_of_its_own(tmp_path: Path, caller_in: CallerIn) -> None:
    """Lists, queries and searches filter by it, also after a restart. A pass treats the memory as any other."""
    async with caller_in(tmp_path) as call:
        await remembered(call, "Pasta was on sale.")
        recipe = await created(call, "Boil the pasta in salted water.", kind="recipe", idempotency_key="k")
        assert recipe["kind"] == "recipe"
        again = await created(call, "Boil the pasta in salted water.", kind="recipe", idempotency_key="k")
        assert again["id"] == recipe["id"]
        other = {"content": "Boil the pasta in salted water.", "kind": "菜谱", "idempotency_key": "k"}
        assert await call.refused("POST", f"{AGENT}/nodes", other) == "IDEMPOTENCY_KEY_REUSED"
        await created(call, "先把面条煮熟。", kind="菜谱")

    async def filtered(call: Caller, *kinds: str) -> tuple[list[str], list[str]]:
        page = await call("GET", f"{AGENT}/nodes", params={"kinds": ",".join(kinds)})
        found = await call("POST", f"{AGENT}/search", {"query": "pasta", "kinds": list(kinds)})
        return [one["id"] for one in page.json()["nodes"]], [one["kind"] for one in found.json()["memories"]]

    async with caller_in(tmp_path) as call:
        assert await filtered(call, "recipe") == ([recipe["id"]], ["recipe"])
        assert (await filtered(call, "episode"))[1] == ["episode"]
        assert sorted((await filtered(call, "episode", "recipe"))[1]) == ["episode", "recipe"]
        assert (await filtered(call, "fact", "poem")) == ([], [])
        assert len((await filtered(call, "菜谱"))[0]) == 1
        fact = {"subject": "I", "topic": "likes", "object": "pasta"}
        assert (await call("POST", f"{AGENT}/statements", fact)).status_code < 300
        for options in ({}, {"newest_first": True}):
            page = await call("GET", f"{AGENT}/nodes", params=options)
            kinds = [one["kind"] for one in page.json()["nodes"]]
            assert sorted(kinds) == ["episode", "recipe", "菜谱"], (
                "all memories without `kinds`, and no statement"
            )
        for kind in ("fact", "entity", "concept", "two words", "", "1st", "x" * 33):
            body = {"content": "x", "kind": kind}
            assert await call.refused("POST", f"{AGENT}/nodes", body) == "INVALID_VALUE", kind


async def test_what_is_refused(tmp_path: Path, caller_in: CallerIn) -> None:
    """Each refusal stores nothing."""
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, {})
        for body, reason in BAD:
            assert await call.refused("POST", f"{AGENT}/nodes", body) == reason, body
        assert (await call("GET", AGENT)).json()["counts"]["messages"] == 0
