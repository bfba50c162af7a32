"""Permanent deletion over every transport: selected items disappear from responses and from every file."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ebbtide.fleet.deletion.selection import Selection, SelectionSearch
from ebbtide.ids import AgentId
from ebbtide.language.port import BadReply, Segment
from tests.support.callers import MOSTLY_REST, Caller, CallerIn
from tests.support.forwarded import ALL_CALLERS, FORWARDED_IN_FULL
from tests.support.in_process import service_in, settle, tell
from tests.support.scanning import Traces
from tests.support.scripted_model import ScriptedModel
from tests.support.waiting import eventually

AGENT = "/v1/agents/ann"
SENTENCES = {"segment_max_chars": 80}

KEPT = (
    "My cat Miso sleeps on the warm windowsill every single afternoon.",
    "我外婆住在青岛，她每天早上都要去海边散步。",
)
CLARA = "My sister Clara is a carpenter and she builds wooden boats in Porto."
HERON = "Project Heron ships its first prototype to Lisbon in October."
XIAOWEN = "小雯上个月在杭州开了一家很小的陶艺工作室。"
SECRETS = (CLARA, HERON, XIAOWEN)


@pytest.fixture(params=[*MOSTLY_REST, *FORWARDED_IN_FULL])
def caller_in(request: pytest.FixtureRequest) -> CallerIn:
    """A daemon in this process and a caller for it, over each transport."""
    return partial(ALL_CALLERS[request.param], embedding={"model": "off"})


async def told(call: Caller, *contents: str, **fields: Any) -> str:
    """Remember messages, each with a speaker and a time of its own, and wait for their memories."""
    said = {"role": "user", "speaker": "Ann", **fields.pop("message", {})}
    messages = [{**said, "content": one} for one in contents]
    answer = await call("POST", f"{AGENT}/remember", {"messages": messages, **fields})
    assert answer.status_code == 202, answer.json()
    flushed = await call("POST", f"{AGENT}/flush", {"timeout_ms": 20_000, "passes": True})
    assert flushed.json()["passes_done"]
    batch_id: str = answer.json()["batch_id"]
    return batch_id


async def forgotten(call: Caller, **selection: Any) -> dict[str, Any]:
    answer = await call("POST", f"{AGENT}/forget", selection)
    assert answer.status_code == 200, answer.json()
    found: dict[str, Any] = answer.json()
    return found


async def nodes(call: Caller) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await call("GET", f"{AGENT}/nodes")).json()["nodes"]
    return found


async def found_by(call: Caller, query: str) -> str:
    answer = await call("POST", f"{AGENT}/search", {"query": query, "max_results": 100})
    assert answer.status_code == 200, answer.json()
    return str(answer.json())


async def filled(call: Caller) -> None:
    """Store messages to keep and messages to forget, in separate conversations."""
    await call("PUT", AGENT, SENTENCES)
    await told(call, *KEPT, conversation_id="daily")
    await told(
        call,
        *SECRETS,
        conversation_id="secret-talk",
        idempotency_key="once-only",
        metadata={"topic": "confidential"},
        message={"speaker": "Ann", "timestamp": 1_700_000_000_000},
    )
    await told(call, "The harbour smells of tar and oranges in the morning.", conversation_id="daily")


async def selections(call: Caller, kind: str) -> dict[str, Any]:
    """Return a selection of everything to forget, of one kind."""
    if kind == "nodes":
        return {"nodes": [one["id"] for one in await nodes(call) if says_secret(one["content"])]}
    return {
        "messages": {"messages": ["m3", "m4", "m5"]},
        "conversations": {"conversations": ["secret-talk"]},
        "time_range": {"time_range": {"begin": 1_690_000_000_000, "end": 1_710_000_000_000}},
    }[kind]


def says_secret(text: str) -> bool:
    return any(word in text for word in ("Clara", "Heron", "小雯"))


SECRET_WORDS = ("Clara", "carpenter", "wooden boats", "Heron", "prototype", "小雯", "陶艺工作室", "杭州")


@pytest.mark.parametrize("kind", ["nodes", "messages", "conversations", "time_range"])
async def test_no_file_holds_what_is_forgotten(tmp_path: Path, caller_in: CallerIn, kind: str) -> None:
    """No plain bytes, compressed frames, keys or decoded values contain it; everything else is found as before."""
    directory = tmp_path / "agents" / "ann"
    async with caller_in(tmp_path) as call:
        await filled(call)
        selection = await selections(call, kind)
    traces = Traces.noted(directory, SECRET_WORDS)
    assert traces.found_in(directory)
    async with caller_in(tmp_path) as call:
        await found_by(call, "anything at all")
        before = [one for one in await nodes(call) if not says_secret(one["content"])]
        dry = await forgotten(call, **selection, dry_run=True)
        assert dry["dry_run"] and not dry["compacted"] and dry["counts"]["nodes"] == 3
        assert any("Clara" in one["content"] for one in await nodes(call))

        gone = await forgotten(call, **selection)
        assert gone["compacted"] and gone["counts"]["messages"] == 3 and gone["counts"]["batches"] == 1
        assert gone["nodes"] == dry["nodes"] and gone["counts"]["bytes"] == dry["counts"]["bytes"]
        assert gone["proof"]["hmac_count"] >= 3 and gone["proof"]["record_hash"]
        for query in ("Clara carpenter boats", "Heron prototype", "小雯 陶艺", "杭州", "secret-talk"):
            assert not says_secret(await found_by(call, query)), query
        after = await nodes(call)
        assert [one["content"] for one in after] == [one["content"] for one in before]
        assert "Miso" in await found_by(call, "Miso windowsill") and "青岛" in await found_by(call, "青岛")
        assert (await call("GET", f"{AGENT}/batches/b2")).status_code == 404
    names = Traces([*SECRET_WORDS, "secret-talk", "confidential"], traces.frames, traces.keys)
    assert names.found_in(directory) == []
    async with caller_in(tmp_path) as call:
        assert [one["content"] for one in await nodes(call)] == [one["content"] for one in before]


QUITO = "Yesterday a doctor in Quito told me a thing that I would rather not have known."
HARD = "Quitoitis"
FADING = {
    "focus_policy": "nodes",
    "focus_limit": 1,
    "decay_rate": 0.5,
    "delete_threshold": 60,
    "long_term_factor": 0,
    "segment_max_chars": 200,
}
ONCE = 'It had to do with "'


def naming(*names: str) -> ScriptedModel:
    """Return a model that gives links these names, then none."""
    model = ScriptedModel()
    model.always["relate"] = BadReply("no name")
    for name in names:
        model.script["relate"].append(lambda name=name: [name])
    return model


async def with_something_faded(call: Caller, **fields: Any) -> None:
    """Create an agent whose n1 has faded, and whose n2 has a link to it with a name that a model created from it."""
    await call("PUT", AGENT, FADING)
    await told(call, QUITO, conversation_id="clinic", **fields)
    await told(call, "My cat Miso sleeps on the warm windowsill every single afternoon, as cats do.")
    await told(call, "The harbour smells of tar and oranges in the early morning, before anybody else is up.")
    await call("POST", f"{AGENT}/compress", {"passes": 2})
    await call("POST", f"{AGENT}/flush", {"timeout_ms": 20_000, "passes": True})


async def dangling(call: Caller, target: str = "n1") -> list[str]:
    """Return the names of links that point at a memory."""
    links = (await call("GET", f"{AGENT}/links")).json()["links"]
    return [one["relation"] for one in links if one["target"] == target]


@pytest.mark.parametrize(
    "selection",
    [
        {"messages": ["m1"]},
        {"conversations": ["clinic"]},
        {"speakers": ["Doc"]},
        {"time_range": {"end": 1_700_000_000_001}},
        {"nodes": ["n1"]},
        {"topic": "Quito"},
        {"topic": "quitoitis"},
    ],
    ids=lambda one: str(next(iter(one.values()))),
)
async def test_a_faded_memory_leaves_no_name_of_a_link(
    tmp_path: Path, caller_in: CallerIn, selection: dict[str, Any]
) -> None:
    """The relations of a link are deleted with its source. The trace of the forgotten memory remains."""
    async with caller_in(tmp_path, naming(HARD)) as call:
        await with_something_faded(call, message={"speaker": "Doc", "timestamp": 1_700_000_000_000})
        assert await dangling(call) == [HARD], (
            await nodes(call),
            (await call("GET", f"{AGENT}/links")).json(),
        )
        recalled = (await call("POST", f"{AGENT}/recall", {"keywords": ["Miso"], "depth": 8})).json()["text"]
        assert f"{ONCE}{HARD}" in recalled
        dry = await forgotten(call, **selection, dry_run=True)
        assert dry["counts"]["relations"] == 1 and await dangling(call) == [HARD]
        gone = await forgotten(call, **selection)
        assert gone["counts"]["relations"] == 1 and gone["compacted"]
        record = (await call("GET", f"{AGENT}/audit")).json()["records"][-1]
        assert record["action"] == "forgotten" and record["details"]["relations"] == 1
        assert await dangling(call) == [""]
        recalled = (await call("POST", f"{AGENT}/recall", {"keywords": ["zebra"], "depth": 8})).json()["text"]
        assert "now forgotten" in recalled and "Quito" not in recalled
        again = await forgotten(call, **selection)
        assert again["counts"]["relations"] == 0 and again["proof"]["last_record"] == 0
    assert not Traces([HARD, "Quitoitis"]).found_in(tmp_path / "agents" / "ann")
    async with caller_in(tmp_path) as call:
        assert await dangling(call) == [""]


async def test_other_names_stay(tmp_path: Path, caller_in: CallerIn) -> None:
    """A selection removes no name of a link to another memory, living or faded."""
    async with caller_in(tmp_path, naming(HARD, "sleeps near")) as call:
        await with_something_faded(call)
        before = (await call("GET", f"{AGENT}/links")).json()["links"]
        assert {"sleeps near", HARD} <= {one["relation"] for one in before}
        gone = await forgotten(call, messages=["m3"])
        assert gone["counts"]["relations"] == 0
        left = (await call("GET", f"{AGENT}/links")).json()["links"]
        assert [one for one in before if "n3" not in (one["source"], one["target"])] == left


@pytest.mark.parametrize("selection", [{"messages": ["m1"]}, {"messages": ["m2"]}], ids=["target", "source"])
async def test_a_corrected_memory_keeps_no_name_of_a_link(
    tmp_path: Path, caller_in: CallerIn, selection: dict[str, Any]
) -> None:
    """Links at either end stay, without the name that a model derived from the forgotten words."""
    async with caller_in(tmp_path, naming(HARD)) as call:
        await call("PUT", AGENT, {"segment_max_chars": 200, "focus_policy": "nodes"})
        await told(call, QUITO)
        await told(call, "My cat Miso sleeps on the warm windowsill every single afternoon, as cats do.")
        node = f"{AGENT}/nodes/{'n1' if selection['messages'] == ['m1'] else 'n2'}"
        corrected = await call("PATCH", node, {"content": "All is well, and was all the time, thank you."})
        assert corrected.status_code == 200 and await dangling(call) == [HARD]
        named = sum(one["relation"] != "" for one in (await call("GET", f"{AGENT}/links")).json()["links"])
        assert (await forgotten(call, **selection, dry_run=True))["counts"]["relations"] == named
        gone = await forgotten(call, **selection)
        assert (gone["counts"]["relations"], gone["counts"]["nodes"], gone["nodes"]) == (named, 0, [])
        assert {one["relation"] for one in (await call("GET", f"{AGENT}/links")).json()["links"]} == {""}
        assert len(await nodes(call)) == 2
        assert (await forgotten(call, **selection))["counts"]["relations"] == 0
    assert not Traces([HARD, "Quitoitis"]).found_in(tmp_path / "agents" / "ann")


async def test_names_are_removed_after_their_batch_expired(tmp_path: Path, caller_in: CallerIn) -> None:
    """The origin of a forgotten memory is known without the status of its batch, and without the text."""
    limits = {"batch_status_keep": 2}
    async with caller_in(tmp_path, naming(HARD), store=limits) as call:
        await with_something_faded(call)
        assert (await call("GET", f"{AGENT}/batches/b1")).status_code == 404
        assert await dangling(call) == [HARD]
        assert (await forgotten(call, messages=["m1"]))["counts"]["relations"] == 1
        assert await dangling(call) == [""]


async def test_only_the_sentences_about_a_topic_are_deleted(tmp_path: Path, caller_in: CallerIn) -> None:
    """Two of three sentences of a message remain at their positions; a word within a word is not the topic."""
    directory = tmp_path / "agents" / "ann"
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, SENTENCES)
        await told(call, f"{KEPT[0]} {CLARA} {KEPT[1]}", "The declarative style is what Claralike tools use.")
        await told(call, f"小雯说她喜欢喝茶。{KEPT[1]}")
    traces = Traces.noted(directory, ["Clara is a carpenter", "wooden boats", "小雯", "喜欢喝茶"])
    async with caller_in(tmp_path) as call:
        for topic in ("clara", "小雯"):
            dry = await forgotten(call, topic=topic, dry_run=True)
            # The sentence about 小雯 became one memory with the rest of its message: the whole message is deleted.
            assert (dry["counts"]["messages"], len(dry["partly"])) == ((0, 1) if topic == "clara" else (1, 0))
            assert (await forgotten(call, topic=topic))["partly"] == dry["partly"]
        assert (await forgotten(call, topic="clara"))["counts"]["nodes"] == 0
        text = str([one["content"] for one in await nodes(call)])
        assert "Miso" in text and "青岛" in text and "Claralike" in text
        assert "Clara is" not in text and "喝茶" not in text
        for node in await nodes(call):
            for source in node["sources"]:
                assert source["length"] > 0
    assert traces.found_in(directory) == []


async def test_speakers_narrow_a_topic(tmp_path: Path, caller_in: CallerIn) -> None:
    """Several filters apply together: only Ben's messages about the topic are deleted."""
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, SENTENCES)
        await told(call, "Project Heron is late again, says Ann.", message={"speaker": "Ann"})
        await told(call, "Project Heron will be a great success.", message={"speaker": "Ben"})
        gone = await forgotten(call, topic="project  HERON", speakers=["Ben"])
        assert gone["counts"]["nodes"] == 1
        [left] = await nodes(call)
        assert "late again" in left["content"]


async def test_equal_words_elsewhere_are_reported_and_stay(tmp_path: Path, caller_in: CallerIn) -> None:
    """An unselected message with the same text stays, and the response names it."""
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, SENTENCES)
        await told(call, CLARA)
        await told(call, f"{KEPT[0]} {CLARA}")
        dry = await forgotten(call, messages=["m1"], dry_run=True)
        assert "m2" in dry["also_found_in"] and dry["also_found_count"] == len(dry["also_found_in"])
        await forgotten(call, messages=["m1"])
        assert "Clara" in await found_by(call, "Clara carpenter")


async def test_nothing_selected_is_refused(tmp_path: Path, caller_in: CallerIn) -> None:
    """An empty selection, an empty time range and invalid ids are refused, and delete nothing."""
    async with caller_in(tmp_path) as call:
        await told(call, CLARA)
        refusals = {
            "MISSING_FIELD": [{}, {"dry_run": True}],
            "INVALID_VALUE": [
                {"time_range": {}},
                {"time_range": {"begin": 5, "end": 5}},
                {"messages": ["n1"]},
                {"topic": "  "},
                {"speakers": [""]},
                {"speakers": ["Ann", " "]},
                {"conversations": [""]},
            ],
            "NODE_NOT_FOUND": [{"nodes": ["m1"]}],
            "TOO_MANY_ITEMS": [{"messages": ["m1"] * 1001}],
            "TEXT_TOO_LONG": [{"topic": "x" * 300}, {"speakers": ["x" * 300]}],
        }
        for reason, bodies in refusals.items():
            for body in bodies:
                assert await call.refused("POST", f"{AGENT}/forget", body) == reason, body
        error = (await call("POST", f"{AGENT}/forget", {"messages": ["my-1"]})).json()["error"]
        assert error["message"].endswith("allowed: ids such as m1, from search or a dry run")
        assert await call.refused("POST", "/v1/agents/nobody/forget", {"topic": "x"}) == "AGENT_NOT_FOUND"
        assert len(await nodes(call)) == 1


async def test_a_digest_in_progress_restores_nothing(tmp_path: Path, caller_in: CallerIn) -> None:
    """A digest that read erased messages is refused, and the rest of its batch is digested again."""
    model, going_on = ScriptedModel(), asyncio.Event()

    async def waits() -> Any:
        await going_on.wait()

        return [Segment(f"{CLARA} Indeed.", (0,)), Segment(KEPT[0], (1,))]

    model.script["segment"].append(waits)
    async with caller_in(tmp_path, model) as call:
        await call("PUT", AGENT, SENTENCES)
        body = {
            "messages": [{"role": "user", "content": CLARA}, {"role": "user", "content": KEPT[0]}],
            "idempotency_key": "k",
        }
        assert (await call("POST", f"{AGENT}/remember", body)).status_code == 202
        await eventually(lambda: model.calls["segment"] > 0)
        await call("POST", f"{AGENT}/remember", {"messages": [{"role": "user", "content": HERON}]})
        gone = await forgotten(call, messages=["m1"])
        assert gone["counts"]["messages"] == 1 and gone["compacted"]
        assert (await forgotten(call, messages=["m3"]))["counts"]["batches"] == 1
        going_on.set()
        flushed = await call("POST", f"{AGENT}/flush", {"timeout_ms": 20_000, "passes": True})
        assert flushed.json()["digested"] and flushed.json()["parked_batches"] == 0
        [left] = await nodes(call)
        assert "Miso" in left["content"]
        assert "Clara" not in await found_by(call, "Clara carpenter boats")
    assert Traces(["Clara", "carpenter", "Heron"]).found_in(tmp_path / "agents" / "ann") == []


async def test_a_parked_batch_can_be_forgotten(tmp_path: Path, caller_in: CallerIn) -> None:
    """A parked batch is deleted like others, together with the model's error about it."""
    model = ScriptedModel()
    model.always["segment"] = BadReply(f"no JSON: {CLARA}")
    async with caller_in(tmp_path, model, language={"park_after_attempts": 1, "max_bad_replies": 1}) as call:
        await call("POST", f"{AGENT}/remember", {"messages": [{"role": "user", "content": CLARA}]})
        await call("POST", f"{AGENT}/flush", {"timeout_ms": 20_000})
        assert (await call("GET", AGENT)).json()["parked_batches"] == 1
        assert (await forgotten(call, topic="Clara"))["counts"]["batches"] == 1
        assert (await call("GET", AGENT)).json()["parked_batches"] == 0
    assert Traces(["Clara", "carpenter"]).found_in(tmp_path / "agents" / "ann") == []


async def test_repeating_a_selection_changes_nothing(tmp_path: Path, caller_in: CallerIn) -> None:
    """A repeated selection finds nothing, leaves no record and is no error."""
    async with caller_in(tmp_path) as call:
        await told(call, CLARA)
        first = await forgotten(call, messages=["m1"])
        again = await forgotten(call, messages=["m1"], nodes=["n1", "n77"])
        assert again["counts"] == dict.fromkeys(
            ("nodes", "links", "messages", "batches", "bytes", "relations", "records"), 0
        )
        assert again["proof"]["last_record"] == 0 and first["proof"]["last_record"] == 2
        replay = {"messages": [{"role": "user", "content": KEPT[0]}]}
        assert (await call("POST", f"{AGENT}/remember", replay)).json()["batch_id"] == "b2"


BLUEBIRD = "The nuclear codename is Bluebird."


async def erased(call: Caller, *texts: str) -> list[bool]:
    """Return whether the audit log proves the erasure of these texts."""
    answer = await call("POST", f"{AGENT}/audit/verify", {"texts": list(texts)})
    assert answer.status_code == 200, answer.json()
    return [one["erased"] for one in answer.json()["texts"]]


@pytest.mark.parametrize(
    "selection",
    [{"topic": "Bluebird"}, {"messages": ["m1"]}, {"nodes": ["n1"]}, {"conversations": ["talk"]}],
    ids=lambda one: str(next(iter(one))),
)
@pytest.mark.parametrize("is_digested", [True, False])
async def test_every_erased_text_is_proved(
    tmp_path: Path, caller_in: CallerIn, selection: dict[str, Any], is_digested: bool
) -> None:
    """The log proves the erasure of each message, sentence and memory, digested or not, and of no other text."""
    model = ScriptedModel()
    if not is_digested:
        if "nodes" in selection:
            pytest.skip("there is no memory yet")
        model.always["segment"] = BadReply("no JSON")
    parked = {"park_after_attempts": 1, "max_bad_replies": 1}
    async with caller_in(tmp_path, model, language=parked) as call:
        message = {"role": "user", "speaker": "Ann", "content": f"{BLUEBIRD} It is secret."}
        await call("POST", f"{AGENT}/remember", {"messages": [message], "conversation_id": "talk"})
        await call("POST", f"{AGENT}/flush", {"timeout_ms": 20_000})
        assert await erased(call, BLUEBIRD) == [False]
        memories = [one["content"] for one in await nodes(call)]
        assert bool(memories) == is_digested
        gone = await forgotten(call, **selection)
        assert gone["compacted"] and gone["proof"]["hmac_count"] == len(set(gone["proof"]["hmacs"]))
        assert all(await erased(call, BLUEBIRD, *memories))
        if is_digested or "topic" not in selection:
            assert all(await erased(call, f"{BLUEBIRD} It is secret.", "It is secret."))
        assert await erased(call, "The harbour smells of tar.") == [False]


async def test_earlier_corrections_and_deletions_are_proved(tmp_path: Path, caller_in: CallerIn) -> None:
    """Texts that a correction or a deletion removed before are proved by the next forget."""
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, SENTENCES)
        await told(call, BLUEBIRD, conversation_id="talk")
        await told(call, f"{CLARA} {HERON}", conversation_id="talk")
        assert len(await nodes(call)) == 3
        first, second, _ = [one["id"] for one in await nodes(call)]
        patched = await call("PATCH", f"{AGENT}/nodes/{first}", {"content": "The codename is a secret."})
        assert patched.status_code == 200
        assert (await call("DELETE", f"{AGENT}/nodes/{second}")).status_code == 200
        assert not any(await erased(call, HERON, "The codename is a secret."))
        await forgotten(call, conversations=["talk"])
        texts = [BLUEBIRD, CLARA, HERON, "The codename is a secret."]
        assert await erased(call, *texts, KEPT[0]) == [True] * 4 + [False]


async def test_a_message_deleted_by_its_memories_is_proved(tmp_path: Path, caller_in: CallerIn) -> None:
    """The text of a message is deleted with the last of its memories, and the proof covers the whole text."""
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, SENTENCES)
        await told(call, f"{CLARA} {HERON}")
        gone = await forgotten(call, nodes=["n1", "n2"])
        assert gone["counts"]["messages"] == 1 and gone["messages"] == ["m1"]
        assert all(await erased(call, f"{CLARA} {HERON}", CLARA, HERON))


@pytest.mark.parametrize("how", ["DELETE", "PATCH", "nodes/delete"])
async def test_bytes_of_earlier_deletions_are_removed_by_the_next_forget(
    tmp_path: Path, caller_in: CallerIn, how: str
) -> None:
    """No selection finds a deleted, corrected or withdrawn text; the next one removes its bytes from the files."""
    directory = tmp_path / "agents" / "ann"
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, SENTENCES)
        await told(call, *KEPT)
        await told(call, CLARA)
    traces = Traces.noted(directory, ["Clara", "carpenter", "wooden boats"])
    async with caller_in(tmp_path) as call:
        first = await forgotten(call, topic="nothing of the kind")
        assert not first["compacted"]
        node = next(one["id"] for one in await nodes(call) if "Clara" in one["content"])
        if how == "PATCH":
            await call("PATCH", f"{AGENT}/nodes/{node}", {"content": "My sister works with wood."})
        elif how == "nodes/delete":
            await call("POST", f"{AGENT}/nodes/delete", {"node_ids": [node]})
        else:
            await call("DELETE", f"{AGENT}/nodes/{node}")
        assert not (await forgotten(call, topic="Clara", dry_run=True))["compacted"]
        gone = await forgotten(call, topic="Clara")
        assert gone["compacted"] and gone["counts"]["nodes"] == 0 and gone["proof"]["last_record"] == 0
        assert not (await forgotten(call, topic="Clara"))["compacted"]
        assert "Miso" in await found_by(call, "Miso windowsill")
    assert traces.found_in(directory) == []


async def test_texts_that_retention_withdrew_leave_the_files_with_the_next_forget(
    tmp_path: Path, caller_in: CallerIn
) -> None:
    """Texts that retention removed from the archive cause one rewrite of the files."""
    async with caller_in(tmp_path) as call:
        await told(call, CLARA)
        assert not (await forgotten(call, topic="nothing"))["compacted"]
        await call("PATCH", AGENT, {"retention": "none"})
        for _ in range(200):
            gone = await forgotten(call, topic="nothing")
            if gone["compacted"]:
                break
            await asyncio.sleep(0.05)
        assert gone["compacted"] and gone["counts"]["messages"] == 0
        assert not (await forgotten(call, topic="nothing"))["compacted"]


ZOE, BEN = "zoe@example.com", "ben@example.com"


async def test_redacted_conversations_are_found_by_their_original_name(
    tmp_path: Path, caller_in: CallerIn
) -> None:
    """A conversation is found by its original name, stored before or under redaction; another one stays."""
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, SENTENCES)
        await told(call, CLARA, conversation_id=f"mail {ZOE}")
        await call("PATCH", AGENT, {"pii": "redact"})
        await told(call, HERON, conversation_id=f"mail {ZOE}")
        await told(call, KEPT[0], conversation_id=f"mail {BEN}")
        await call("PATCH", AGENT, {"pii": "off"})
        dry = await forgotten(call, conversations=[f"mail {ZOE}"], dry_run=True)
        gone = await forgotten(call, conversations=[f"mail {ZOE}"])
        assert gone["messages"] == dry["messages"] == ["m1", "m2"] and gone["counts"]["nodes"] == 2
        [left] = await nodes(call)
        assert "Miso" in left["content"]


@pytest.mark.parametrize("by", ["speakers", "topic"])
async def test_ambiguous_redacted_text_is_deleted_only_on_request(
    tmp_path: Path, caller_in: CallerIn, by: str
) -> None:
    """Forgetting a redacted address is refused if nothing else matches; else the doubtful messages are reported."""

    def saying(who: str) -> dict[str, Any]:
        return {"speaker": who} if by == "speakers" else {"speaker": "Ann"}

    def text(who: str, said: str) -> str:
        return said if by == "speakers" else f"{who} says: {said}"

    def wanted(who: str) -> dict[str, Any]:
        return {"speakers": [who]} if by == "speakers" else {"topic": who}

    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, {"segment_max_chars": 200, "pii": "redact"})
        assert (await forgotten(call, **wanted(ZOE)))["also_found_count"] == 0
        await told(call, text(ZOE, CLARA), message=saying(ZOE), conversation_id="a")
        await told(call, text(BEN, KEPT[0]), message=saying(BEN), conversation_id="b")
        for dry_run in (True, False):
            body = {**wanted(ZOE), "dry_run": dry_run}
            answer = await call("POST", f"{AGENT}/forget", body)
            assert answer.status_code == 400, answer.json()
            assert "m1" in str(answer.json()) and "zoe" not in str(answer.json())
        assert await call.refused("POST", f"{AGENT}/forget", wanted(ZOE)) == "INVALID_VALUE"
        assert len(await nodes(call)) == 2

        await call("PATCH", AGENT, {"pii": "off"})
        await told(call, text(ZOE, HERON), message=saying(ZOE), conversation_id="a")
        gone = await forgotten(call, **wanted(ZOE))
        assert gone["counts"]["nodes"] == 1 and {"m1", "m2"} <= set(gone["also_found_in"])
        assert (await forgotten(call, **wanted("[email]"), conversations=["a"]))["counts"]["nodes"] == 1
        [left] = await nodes(call)
        assert "Miso" in left["content"]


@pytest.mark.parametrize(
    "fields",
    [
        {"message": {"id": "bluebird-7"}},
        {"message": {"metadata": {"project": "Bluebird"}}},
        {"conversation_id": "about Bluebird"},
        {"metadata": {"project": "Bluebird"}},
    ],
    ids=str,
)
async def test_remaining_mentions_of_a_topic_are_reported(
    tmp_path: Path, caller_in: CallerIn, fields: dict[str, Any]
) -> None:
    """A remaining speaker, conversation, id or metadata that names a topic is reported with its position."""
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, SENTENCES)
        await told(call, KEPT[0])
        await told(call, BLUEBIRD, KEPT[1], **fields)
        dry = await forgotten(call, topic="Bluebird", dry_run=True)
        gone = await forgotten(call, topic="Bluebird")
        assert gone["messages"] == ["m2"] and gone["also_found_in"] == dry["also_found_in"] == ["m3"]
        assert (await forgotten(call, topic="Bluebird"))["also_found_count"] == 1
        assert (await forgotten(call, messages=gone["also_found_in"]))["counts"]["messages"] == 1
        assert (await forgotten(call, topic="Bluebird"))["also_found_count"] == 0


async def test_mentions_in_waiting_batches_are_reported(tmp_path: Path, caller_in: CallerIn) -> None:
    """One message of a waiting batch is deleted. A remaining message whose speaker names the topic is reported."""
    model = ScriptedModel()
    model.always["segment"] = BadReply("no JSON")
    parked = {"park_after_attempts": 1, "max_bad_replies": 1}
    async with caller_in(tmp_path, model, language=parked) as call:
        said = [{"role": "user", "speaker": "Agent Bluebird", "content": one} for one in (BLUEBIRD, KEPT[1])]
        await call("POST", f"{AGENT}/remember", {"messages": said})
        await call("POST", f"{AGENT}/flush", {"timeout_ms": 20_000})
        gone = await forgotten(call, topic="Bluebird")
        assert gone["messages"] == ["m1"] and gone["also_found_in"] == ["m2"]


@pytest.mark.parametrize(
    "selection",
    [
        {"topic": "Bluebird"},
        {"topic": "Bluebird", "messages": ["m2"]},
        {"topic": "Bluebird", "nodes": ["n1", "n2", "n3"]},
        {"nodes": ["n1", "n3"], "messages": ["m1"]},
        {"nodes": ["n1", "n2", "n999"]},
        {"conversations": ["talk"], "topic": "Clara"},
        {"conversations": ["talk"]},
    ],
    ids=str,
)
async def test_a_dry_run_reports_what_the_real_run_does(
    tmp_path: Path, caller_in: CallerIn, selection: dict[str, Any]
) -> None:
    """Memories, messages and bytes are equal, even if several sentences and memories contain the same words."""
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, {"segment_max_chars": 160})
        await told(call, f"{BLUEBIRD}  It is secret.\n{BLUEBIRD} {CLARA}", BLUEBIRD, conversation_id="talk")
        await told(call, f"{KEPT[0]} {BLUEBIRD} {KEPT[1]}", f"{HERON} {CLARA}", conversation_id="talk")
        dry = await forgotten(call, **selection, dry_run=True)
        gone = await forgotten(call, **selection)
        assert gone["counts"]["nodes"] > 0 and gone["counts"]["bytes"] > 0
        for name in ("nodes", "messages", "bytes", "relations"):
            assert gone["counts"][name] == dry["counts"][name], name
        for name in ("nodes", "messages", "partly", "also_found_in"):
            assert gone[name] == dry[name], name
        assert gone["counts"]["messages"] == len(gone["messages"])


async def test_a_rewrite_prevented_by_a_kill_is_done_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the daemon is killed after an erasure and before the rewrite, the next start rewrites the files."""
    # A file without free pages soon overwrites what was erased.
    monkeypatch.setattr("ebbtide.store.lmdb.lmdb_store.TRIMMED_BYTES", 0)
    directory = tmp_path / "agents" / "ann"
    async with service_in(tmp_path, embedding={"model": "off"}) as service:
        await tell(service, "ann", CLARA, KEPT[0])
        await settle(service, "ann")
    traces = Traces.noted(directory, ["Clara", "carpenter"])
    async with (
        service_in(tmp_path, embedding={"model": "off"}) as service,
        service.fleet.using(AgentId("ann")) as agent,
    ):
        look = SelectionSearch(Selection(messages=frozenset({1})))
        while not look.is_done:
            await agent.run(lambda: agent.workspace.search_step(look, lambda: False))
        await agent.remove(look.removal([]), "-")
        assert not agent.is_idle and service.fleet.data.marked() == ["ann"]
    assert traces.found_in(directory)
    async with service_in(tmp_path, embedding={"model": "off"}) as service:
        await eventually(lambda: service.fleet.open_agents)
        [agent] = service.fleet.open_agents
        assert not agent.workspace.is_compaction_due and service.fleet.data.marked() == []
    assert traces.found_in(directory) == []
