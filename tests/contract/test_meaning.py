"""Semantic recall over every transport: vectors computed in the background, with models that change or fail."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ebbtide.fleet.archive.open_archive import INDEX_FILE
from ebbtide.retrieval import vectors
from ebbtide.verbs.service import get_readiness
from tests.contract.test_questions import AGENT, FLUSH, TALK, asked, batch, heard, ids, talked
from tests.support.callers import CALLERS, MOSTLY_REST, Caller, CallerIn
from tests.support.fake_model_server import FakeModelServer, Reaction
from tests.support.fake_ollama import FakeOllama, vector_of
from tests.support.fake_openai import FakeOpenAI
from tests.support.looking import opened_agent
from tests.support.waiting import eventually

OFF = {"embedding": {"model": "off"}}
SEARCH = f"{AGENT}/search"
SERVERS: dict[str, Any] = {"ollama": FakeOllama, "openai": FakeOpenAI}


@pytest.fixture(params=MOSTLY_REST)
def caller_in(request: pytest.FixtureRequest) -> CallerIn:
    """A daemon in this process and a caller for it, over each transport."""
    return CALLERS[request.param]


def on(server: FakeModelServer, name: str = "bge-m3") -> dict[str, dict[str, Any]]:
    """Return settings with an embedding model on a server."""
    kind = next(kind for kind, made in SERVERS.items() if isinstance(server, made))
    return {"embedding": {"model": kind, "base_url": server.url, "name": name}}


def index_files(data_dir: Path) -> list[Path]:
    return list(data_dir.rglob(INDEX_FILE))


async def embedded(call: Caller) -> None:
    """Wait until every message has its vector."""
    stands = (await call("POST", f"{AGENT}/flush", FLUSH)).json()
    assert stands["digested"] and stands["unembedded_messages"] == 0


async def why_off(call: Caller, query: str = "Where did Ann move?", **fields: Any) -> dict[str, str]:
    answer = await asked(call, query, explain=True, **fields)
    assert answer["memories"]
    return {off["signal"]: off["why"] for off in answer["explanation"]["signals_off"]}


async def test_other_words_find_what_was_said(tmp_path: Path, caller_in: CallerIn) -> None:
    """A query without a common word finds its answer by meaning, and reports the signal."""
    query = "kitten kitty feline pets"
    async with caller_in(tmp_path) as call:
        await talked(call)
        await embedded(call)
        answer = await asked(call, query, explain=True)
        assert ids(answer)[0] == "m0" and answer["explanation"]["signals_off"] == []
        shares = {s["signal"]: s["score"] for s in answer["explanation"]["memories"][0]["signals"]}
        assert shares["semantic"] > 0 and shares["words"] == 0
        assert "m0" not in ids(await asked(call, query, without=["semantic", "window"]))


async def test_without_an_embedder_words_are_used(tmp_path: Path, caller_in: CallerIn) -> None:
    """With embedding off nothing waits for vectors, queries are answered, and every response gives the reason."""
    async with caller_in(tmp_path, **OFF) as call:
        await talked(call)
        await embedded(call)
        off = await why_off(call)
        assert off["semantic"] == off["window"] == "no embedder"
        model = (await call("GET", "/v1/model")).json()["embedder"]
        assert model["kind"] == "off" and not model["available"] and "ebbtide[embeddings]" in model["detail"]


async def test_a_language_the_model_does_not_know(tmp_path: Path, caller_in: CallerIn) -> None:
    """The built-in English model is not used for a Chinese query, which words answer."""
    async with caller_in(tmp_path) as call:
        await talked(call)
        await embedded(call)
        off = await why_off(call, "谁住在青岛？")
        assert off["semantic"] == "the embedder does not support this language"


async def test_vectors_from_a_server(tmp_path: Path, caller_in: CallerIn) -> None:
    """Every message is embedded once, a query each time; nothing is embedded again after a restart."""
    async with FakeOllama(("bge-m3",)).running_here() as server:
        async with caller_in(tmp_path, **on(server)) as call:
            await talked(call)
            await embedded(call)
            sent = [text for body in server.embeds for text in body["input"]]
            assert len(sent) == 6 and sent[0].startswith("Ann: I moved")
            assert "semantic" not in await why_off(call)
            assert (await call("GET", AGENT)).json()["unembedded_messages"] == 0
        count = len(server.embeds)
        async with caller_in(tmp_path, **on(server)) as call:
            await embedded(call)
            assert "semantic" not in await why_off(call)
            assert [body["input"] for body in server.embeds[count:]] == [["Where did Ann move?"]]


async def test_an_embedder_that_is_away(tmp_path: Path, caller_in: CallerIn) -> None:
    """While no embedder is available, words answer, and answers count the messages that only words find.

    Messages of that time are embedded when it is back.
    """
    asked = {"query": "Where did Ann move?"}
    async with FakeOllama(("bge-m3",)).running_here() as server:
        server.always = Reaction(status=503, body=b"later")
        async with caller_in(tmp_path, **on(server)) as call:
            await heard(call)
            off = await why_off(call)
            assert off["semantic"].startswith("no embedder is available")
            assert (await call("GET", AGENT)).json()["unembedded_messages"] == 6
            told = {"subject": "Ann", "topic": "residence", "object": "Lisbon"}
            assert (await call("POST", f"{AGENT}/statements", told)).status_code in (200, 201)
            for path in ("recall", "search", "statements/search"):
                answer = (await call("POST", f"{AGENT}/{path}", asked)).json()
                assert answer["unembedded_messages"] == 7, path
            assert (await call("POST", f"{AGENT}/recall", {})).json()["unembedded_messages"] == 0
            server.always = Reaction()
        async with caller_in(tmp_path, **on(server)) as call:
            await embedded(call)
            assert "semantic" not in await why_off(call)
            answer = (await call("POST", f"{AGENT}/statements/search", asked)).json()
            assert answer["unembedded_messages"] == 0 and answer["statements"]


async def test_a_slow_embedder_does_not_hold_a_question(tmp_path: Path, caller_in: CallerIn) -> None:
    """A query waits for its vector up to the configured time, and is then answered without it."""
    async with FakeOllama(("bge-m3",)).running_here() as server:
        settings = {"embedding": {**on(server)["embedding"], "query_timeout_ms": 50}}
        async with caller_in(tmp_path, **settings) as call:
            await talked(call)
            await embedded(call)
            server.always = Reaction(delay_s=5.0)
            assert (await why_off(call))["semantic"] == "the embedder did not answer in time"


async def test_another_model_embeds_everything_again(tmp_path: Path, caller_in: CallerIn) -> None:
    """After a change of model, queries are answered throughout, and no vector of the old model is used."""
    async with FakeOllama(("bge-m3", "other")).running_here() as server:
        async with caller_in(tmp_path, **on(server)) as call:
            await talked(call)
            await embedded(call)
        count = len(server.embeds)
        server.vector_size = 12
        async with caller_in(tmp_path, **on(server, "other")) as call:
            await embedded(call)
            assert "semantic" not in await why_off(call)
            again = [
                text for body in server.embeds[count:] if body["model"] == "other" for text in body["input"]
            ]
            assert len(again) == 6 + 1
        async with caller_in(tmp_path, **OFF) as call:
            await call("POST", f"{AGENT}/remember", batch(0))
            assert (await why_off(call))["semantic"] == "no embedder"


async def test_a_text_that_breaks_the_model_costs_only_its_vector(
    tmp_path: Path, caller_in: CallerIn
) -> None:
    """A text on which the server fails is found by its words, and the others have vectors."""
    async with FakeOllama(("bge-m3",)).running_here() as server:
        server.breaks_over = "ERR-4711"
        async with caller_in(tmp_path, **on(server)) as call:
            await talked(call)
            await embedded(call)
            assert "semantic" not in await why_off(call)
            assert ids(await asked(call, "err-4711"))[0] == "m5"


USELESS = {
    "too few": b'{"embeddings": [], "data": []}',
    "not numbers": b'{"embeddings": [[NaN, 1.0]], "data": [{"index": 0, "embedding": [NaN, 1.0]}]}',
    "null": b'{"embeddings": [null], "data": [{"index": 0, "embedding": null}]}',
    "noughts": b'{"embeddings": [[0, 0]], "data": [{"index": 0, "embedding": [0, 0]}]}',
    "too large": b'{"embeddings": [[1e200, 1]], "data": [{"index": 0, "embedding": [1e200, 1]}]}',
    "of two sizes": b'{"embeddings": [[1], [1, 2]], "data": '
    b'[{"index": 0, "embedding": [1]}, {"index": 1, "embedding": [1, 2]}]}',
}
REACTIONS = {
    **{name: Reaction(body=body) for name, body in USELESS.items()},
    "refused": Reaction(status=400, body=b'{"error": "no"}'),
}
SPOKEN = {f"m{place}": f"{speaker}: {text}" for place, (speaker, text, *_) in enumerate(TALK)}


async def all_have_their_vectors(call: Caller, server: Any) -> None:
    """Assert that the vector of each message's text finds it first."""
    for name, text in SPOKEN.items():
        form = {"vector": vector_of(text, server.vector_size)}
        found = (await call("POST", SEARCH, form)).json()["memories"]
        assert found[0]["sources"][0]["message_id"] == name


@pytest.mark.parametrize("reaction", REACTIONS.values(), ids=REACTIONS)
@pytest.mark.parametrize("kind", SERVERS)
async def test_useless_vectors_cost_nothing_but_time(
    tmp_path: Path, caller_in: CallerIn, kind: str, reaction: Reaction
) -> None:
    """While a model returns useless vectors, no text is blamed and readiness reports it. Later all are embedded."""
    async with SERVERS[kind](("bge-m3",)).running_here() as server:
        server.always = reaction
        async with caller_in(tmp_path, **on(server)) as call:
            await heard(call)
            agent = opened_agent(call.service, "ann")
            await eventually(lambda: agent.embedding.is_held_up)
            ready = await get_readiness(call.service)
            (reason,) = ready.reasons
            assert ready.status == "degraded" and reason.startswith("no vectors: ")
            told = (await call("GET", "/v1/model")).json()["embedder"]
            assert not told["available"] and told["detail"] in reason and told["detail"]
            assert (await call("GET", AGENT)).json()["unembedded_messages"] == 6
            assert (await why_off(call))["semantic"].startswith("the embedder cannot embed this query")
            server.always = Reaction()
            await embedded(call)
            await all_have_their_vectors(call, server)
            assert (await get_readiness(call.service)).reasons == []
            assert (await call("GET", "/v1/model")).json()["embedder"]["available"]


async def test_many_agents_held_up_are_one_reason(tmp_path: Path, caller_in: CallerIn) -> None:
    """Readiness reports missing vectors once, for any number of waiting agents."""
    async with FakeOllama(("bge-m3",)).running_here() as server:
        server.always = REACTIONS["null"]
        async with caller_in(tmp_path, **on(server)) as call:
            for name in ("ann", "bob"):
                await call("PUT", f"/v1/agents/{name}")
                await call("POST", f"/v1/agents/{name}/remember", batch(0))
                agent = opened_agent(call.service, name)
                await eventually(lambda agent=agent: agent.embedding.is_held_up)
            assert len((await get_readiness(call.service)).reasons) == 1


@pytest.mark.parametrize("count", range(1, 8))
async def test_a_few_useless_replies_cost_no_vector(tmp_path: Path, caller_in: CallerIn, count: int) -> None:
    """Texts that failed during a short outage of the model are requested again."""
    async with FakeOllama(("bge-m3",)).running_here() as server:
        server.script.extend([REACTIONS["null"]] * count)
        async with caller_in(tmp_path, **on(server)) as call:
            await talked(call)
            await all_have_their_vectors(call, server)


async def test_a_model_that_breaks_down_later_is_to_blame(tmp_path: Path, caller_in: CallerIn) -> None:
    """A text that failed twice still gets its vector if the model also fails at the end of the round."""
    null, well = REACTIONS["null"], Reaction()
    async with FakeOllama(("bge-m3",)).running_here() as server:
        # All three, the first, the probe, the first again, the other two, the probe again.
        server.script.extend([null, null, well, null, well, null])
        async with caller_in(tmp_path, **on(server)) as call:
            await call("PUT", AGENT)
            await call("POST", f"{AGENT}/remember", batch(0, 1, 2))
            await embedded(call)
            assert not server.script
            asked_for = [len(body["input"]) for body in server.embeds]
            assert asked_for == [3, 1, 1, 1, 2, 1, 3]
            form = {"vector": vector_of(SPOKEN["m0"], server.vector_size)}
            found = (await call("POST", SEARCH, form)).json()["memories"]
            assert found[0]["sources"][0]["message_id"] == "m0"


@pytest.mark.parametrize("kind", SERVERS)
async def test_another_size_under_the_same_name(tmp_path: Path, caller_in: CallerIn, kind: str) -> None:
    """A query detects that the model was replaced while the daemon runs, and every agent is embedded again."""
    async with SERVERS[kind](("bge-m3",)).running_here() as server, caller_in(tmp_path, **on(server)) as call:
        await talked(call)
        other = "/v1/agents/bob"
        await call("PUT", other)
        await call("POST", f"{other}/remember", batch(0, 1, 2))
        assert (await call("POST", f"{other}/flush", FLUSH)).json()["unembedded_messages"] == 0
        server.vector_size = 12
        assert (await why_off(call))["semantic"] in ("vectors of another size", "no vectors yet")
        await embedded(call)
        assert "semantic" not in await why_off(call)
        await all_have_their_vectors(call, server)
        # This agent has had no request since then.
        assert (await call("POST", f"{other}/flush", FLUSH)).json()["unembedded_messages"] == 0
        found = await call("POST", f"{other}/search", {"vector": vector_of(SPOKEN["m0"], 12)})
        assert found.json()["memories"][0]["sources"][0]["message_id"] == "m0"


@pytest.mark.parametrize("by_message", [False, True])
async def test_another_size_after_a_restart(tmp_path: Path, caller_in: CallerIn, by_message: bool) -> None:
    """A model replaced while the daemon was down is detected by the next query or message."""
    async with FakeOllama(("bge-m3",)).running_here() as server:
        async with caller_in(tmp_path, **on(server)) as call:
            await talked(call)
        server.vector_size = 12
        async with caller_in(tmp_path, **on(server)) as call:
            if by_message:
                late = {"messages": [{"role": "user", "content": "Later."}]}
                await call("POST", f"{AGENT}/remember", late)
            else:
                count = len(server.embeds)
                assert (await why_off(call))["semantic"] == "vectors of another size"
                # The query and all messages, before the first request for the progress.
                await eventually(lambda: sum(len(body["input"]) for body in server.embeds[count:]) == 7)
            await embedded(call)
            assert "semantic" not in await why_off(call)
            await all_have_their_vectors(call, server)
        count = len(server.embeds)
        async with caller_in(tmp_path, **on(server)) as call:
            assert "semantic" not in await why_off(call)
            await embedded(call)
            assert len(server.embeds) == count + 1


async def test_a_search_by_a_vector(tmp_path: Path, caller_in: CallerIn) -> None:
    """The memory whose own vector is sent is found first, alone and with a query. Both refuse an invalid one alike."""
    async with FakeOllama(("bge-m3",)).running_here() as server:
        async with caller_in(tmp_path, **on(server)) as call:
            await talked(call)
            vector = vector_of("Bob: My sister Clara is a carpenter and builds boats.", server.vector_size)
            await embedded(call)
            for form in (
                {"vector": [7.5 * number for number in vector]},
                {"vector": vector, "query": "hello"},
            ):
                found = (await call("POST", SEARCH, form)).json()["memories"]
                assert found[0]["sources"][0]["message_id"] == "m3" and len(found) > 1
            longer = [*vector, 0.5]
            for bad in (longer, [0.0] * len(vector), [1e300] * len(vector)):
                errors = [
                    (await call("POST", SEARCH, {"vector": bad, **query})).json()["error"]
                    for query in ({}, {"query": "hello"})
                ]
                assert errors[0] == errors[1]
                assert errors[0]["reason"] == "INVALID_VALUE"
            assert await call.refused("POST", SEARCH, {"vector": [0.5] * 9000}) == "TOO_MANY_ITEMS"
            assert await call.refused("POST", SEARCH, {}) == "MISSING_FIELD"
        async with caller_in(tmp_path, **OFF) as call:
            assert await call.refused("POST", SEARCH, {"vector": vector}) == "VECTORS_UNAVAILABLE"
            by_words = (await call("POST", SEARCH, {"vector": vector, "query": "boats"})).json()["memories"]
            assert [one["sources"][0]["message_id"] for one in by_words] == ["m3"]


async def test_a_deleted_memory_is_not_found_by_its_vector(tmp_path: Path, caller_in: CallerIn) -> None:
    """A deleted memory is not found by its vector, also after a restart. A corrected one is found by its new words."""
    async with FakeOllama(("bge-m3",)).running_here() as server:
        vector = vector_of("Bob: My sister Clara is a carpenter and builds boats.", server.vector_size)
        async with caller_in(tmp_path, **on(server)) as call:
            await talked(call)
            await embedded(call)
            found = (await call("POST", SEARCH, {"vector": vector})).json()["memories"]
            (node,) = found[0]["node_ids"]
            assert (await call("DELETE", f"{AGENT}/nodes/{node}")).status_code == 200
            left = (await call("POST", SEARCH, {"vector": vector})).json()["memories"]
            assert len(left) == len(found) - 1 and "m3" not in ids({"memories": left})
            await embedded(call)
            other = left[0]["node_ids"][0]
            patched = await call(
                "PATCH", f"{AGENT}/nodes/{other}", {"content": "Ann: The ferry leaves at nine."}
            )
            assert patched.status_code == 200
            await embedded(call)
        async with caller_in(tmp_path, **on(server)) as call:
            again = (await call("POST", SEARCH, {"vector": vector})).json()["memories"]
            assert "m3" not in ids({"memories": again})
            told = [text for body in server.embeds for text in body["input"]]
            assert any(text.endswith("The ferry leaves at nine.") for text in told)


async def test_memories_without_their_text_have_vectors_of_what_they_say(
    tmp_path: Path, caller_in: CallerIn
) -> None:
    """Where texts are not kept, memories are embedded as they are now."""
    async with FakeOllama(("bge-m3",)).running_here() as server, caller_in(tmp_path, **on(server)) as call:
        await call("PUT", AGENT, {"retention": "none"})
        await call("POST", f"{AGENT}/remember", batch(0, 1, 2))
        await embedded(call)
        assert "semantic" not in await why_off(call)
        nodes = (await call("GET", f"{AGENT}/nodes")).json()["nodes"]
        vector = vector_of(nodes[0]["label"] + nodes[0]["content"], server.vector_size)
        found = (await call("POST", SEARCH, {"vector": vector})).json()["memories"]
        assert found[0]["node_ids"] == [nodes[0]["id"]]


async def test_very_many_vectors_are_indexed(
    tmp_path: Path, caller_in: CallerIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Above a limit an index is built while queries run. It survives a restart and is removed with any deleted text."""
    monkeypatch.setattr(vectors, "EXACT_NUMBERS", 8 * 50)
    said = {
        "messages": [
            {"role": "user", "content": f"note {n} about {n % 7}", "id": f"m{n}"} for n in range(120)
        ]
    }
    async with FakeOllama(("bge-m3",)).running_here() as server:
        vector = vector_of("note 77 about 0", server.vector_size)

        async def nearest(call: Caller) -> str:
            found = (await call("POST", SEARCH, {"vector": vector, "max_results": 3})).json()["memories"]
            name: str = found[0]["sources"][0]["message_id"]
            return name

        def is_indexed(call: Caller) -> bool:
            (agent,) = call.service.fleet.open_agents
            held = agent.workspace.open_archive.loaded
            return held is not None and held.vectors is not None and held.vectors.is_indexed

        async with caller_in(tmp_path, **on(server)) as call:
            await call("PUT", AGENT)
            await call("POST", f"{AGENT}/remember", said)
            await embedded(call)
            assert await nearest(call) == "m77"
            await eventually(lambda: is_indexed(call))
            assert await nearest(call) == "m77"
        assert len(index_files(tmp_path)) == 1
        async with caller_in(tmp_path, **on(server)) as call:
            assert await nearest(call) == "m77" and is_indexed(call)
            (node,) = (await call("POST", SEARCH, {"vector": vector})).json()["memories"][0]["node_ids"][:1]
            assert (await call("DELETE", f"{AGENT}/nodes/{node}")).status_code == 200
            assert index_files(tmp_path) == []
            assert await nearest(call) != "m77"
            await embedded(call)
        async with caller_in(tmp_path, **on(server)) as call:
            assert await nearest(call) != "m77"


async def test_a_vector_alone_decides_a_search(tmp_path: Path, caller_in: CallerIn) -> None:
    """An exact vector match ranks first, despite newer memories in focus and in the same conversation."""
    async with FakeOllama(("bge-m3",)).running_here() as server, caller_in(tmp_path, **on(server)) as call:
        await call("PUT", AGENT)
        for part in range(3):
            said = [{"role": "user", "content": f"note {part} {n}", "id": f"m{part}-{n}"} for n in range(40)]
            await call("POST", f"{AGENT}/remember", {"messages": said, "conversation_id": f"s{part}"})
        await embedded(call)
        for name in ("0 7", "1 30"):
            vector = vector_of(f"note {name}", server.vector_size)
            found = (await call("POST", SEARCH, {"vector": vector, "max_results": 5})).json()["memories"]
            assert found[0]["sources"][0]["message_id"] == f"m{name.replace(' ', '-')}"
