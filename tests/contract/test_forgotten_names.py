"""After forget, no file has a name that only forgotten text said, nor the key by which it was found.

Names of entities, pinned memories, first contents and events are scanned in every file of the agent.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ebbtide.entity_names import entity_key
from ebbtide.store.layout import text_key
from tests.support.callers import CALLERS, MOSTLY_REST, Caller, CallerIn
from tests.support.scanning import Traces

AGENT = "/v1/agents/ann"
NAME = "Zorblatt"
PINNED = f"Please remember: {NAME} lives in Quillhaven and repairs xylorimbas."
OTHER = "My cat Miso sleeps on the warm windowsill every single afternoon."
PLAINER = f"The neighbours invited {NAME} to the garden on Sunday."
QUICKLY = {"decay_rate": 0.3, "focus_limit": 1, "entity_memories": 1, "link_break_threshold": 0.001}


@pytest.fixture(params=MOSTLY_REST)
def caller_in(request: pytest.FixtureRequest) -> CallerIn:
    """A daemon in this process and a caller for it, over each transport."""
    return partial(CALLERS[request.param], embedding={"model": "off"})


async def told(call: Caller, *contents: str) -> None:
    """Remember each text as a batch, and wait for its pass."""
    for content in contents:
        body = {"messages": [{"role": "user", "content": content}]}
        assert (await call("POST", f"{AGENT}/remember", body)).status_code == 202
        flushed = await call("POST", f"{AGENT}/flush", {"timeout_ms": 20_000, "passes": True})
        assert flushed.json()["passes_done"]


async def all_of(call: Caller, kind: str) -> list[dict[str, Any]]:
    """Return all nodes or entities."""
    found: list[dict[str, Any]] = (await call("GET", f"{AGENT}/{kind}", params={"page_size": 1000})).json()[
        kind
    ]
    return found


async def forget(call: Caller, **selection: Any) -> None:
    """Forget a selection, with a rewrite of the files."""
    answer = await call("POST", f"{AGENT}/forget", selection)
    assert answer.status_code == 200 and answer.json()["compacted"], answer.json()


async def responses(call: Caller) -> str:
    """Return what the daemon says of the agent."""
    paths = ("nodes", "entities", "links", "focus", "batches", "audit")
    looks = [str((await call("GET", f"{AGENT}/{path}")).json()) for path in paths]
    recalls = [{"keywords": [NAME]}, {"query": f"Where does {NAME} live?"}, {"depth": 8}]
    return "\n".join([*looks, *[str((await call("POST", f"{AGENT}/recall", cue)).json()) for cue in recalls]])


def traces_of(*words: str) -> Traces:
    """Return the traces of names: as said, normalised, and the hashed key."""
    keys = [entity_key(word) for word in words]
    return Traces([*words, *keys], keys=[text_key(key) for key in keys])


async def assert_not_said(call: Caller, *words: str) -> None:
    """No response of the daemon about the agent contains one of these words, in any case."""
    text = (await responses(call)).casefold()
    assert [word for word in words if word.casefold() in text] == []


SECRET = traces_of(NAME, "Quillhaven", "xylorimba")


@pytest.mark.parametrize(
    "selection", [{"topic": NAME}, {"topic": "zorblatt"}, {"nodes": ["n1"]}, {"messages": ["m1"]}]
)
async def test_nothing_is_left_of_a_pinned_memory_and_its_entities(
    tmp_path: Path, caller_in: CallerIn, selection: dict[str, Any]
) -> None:
    """A pinned memory is forgotten with the names of its entities, also of one in focus."""
    directory = tmp_path / "agents" / "ann"
    async with caller_in(tmp_path) as call:
        await told(call, PINNED, OTHER)
        [pinned] = [node for node in await all_of(call, "nodes") if node["id"] == "n1"]
        assert pinned["pinned"] == "by_request"
        [entity] = [one for one in await all_of(call, "entities") if one["name"] == NAME]
        await call("PUT", f"{AGENT}/focus/{entity['id']}")
    assert len(SECRET.found_in(directory)) > 3
    async with caller_in(tmp_path) as call:
        await forget(call, **selection)
        await assert_not_said(call, NAME, "Quillhaven", "xylorimba")
        assert entity["id"] not in [one["id"] for one in await all_of(call, "entities")]
        assert entity["id"] not in str((await call("GET", f"{AGENT}/focus")).json())
        assert [node["content"] for node in await all_of(call, "nodes")] == [OTHER]
    assert SECRET.found_in(directory) == []


async def with_a_trace(call: Caller) -> None:
    """Create an agent whose memory n1 has faded, but not the name of its entity."""
    things = ("bread", "coffee", "salt", "rope", "soap")
    fillers = [
        f"On day {number} the ferry left and the {thing} was sold out." for number, thing in enumerate(things)
    ]
    await call("PUT", AGENT, {**QUICKLY, "pin_on_request": False})
    await told(call, PINNED, *fillers)
    assert await call.refused("GET", f"{AGENT}/nodes/n1") == "NODE_FORGOTTEN"
    assert await recalled(call) == f"[Memory] I once knew something about {NAME}, but I can't recall it"


async def recalled(call: Caller) -> str:
    """Return the text of a recall by the name."""
    text: str = (await call("POST", f"{AGENT}/recall", {"keywords": [NAME]})).json()["text"]
    return text


@pytest.mark.parametrize("selection", [{"topic": NAME}, {"messages": ["m1"]}])
async def test_nothing_is_left_of_a_trace(
    tmp_path: Path, caller_in: CallerIn, selection: dict[str, Any]
) -> None:
    """A name that outlived its faded memory is deleted with the topic or with the memory's message."""
    directory = tmp_path / "agents" / "ann"
    async with caller_in(tmp_path) as call:
        await with_a_trace(call)
    assert SECRET.found_in(directory)
    async with caller_in(tmp_path) as call:
        await forget(call, **selection)
        await assert_not_said(call, NAME, "Quillhaven", "xylorimba")
    assert SECRET.found_in(directory) == []


async def test_forgetting_a_faded_memory_ends_its_trace(tmp_path: Path, caller_in: CallerIn) -> None:
    """A faded memory is deleted by its id with its names and the words that it was made from, also after a restart."""
    directory = tmp_path / "agents" / "ann"
    async with caller_in(tmp_path) as call:
        await with_a_trace(call)
        found = await call("POST", f"{AGENT}/search", {"query": f"Where does {NAME} live?"})
        assert PINNED in str(found.json())
    assert SECRET.found_in(directory)
    async with caller_in(tmp_path) as call:
        dry = (await call("POST", f"{AGENT}/forget", {"nodes": ["n1"], "dry_run": True})).json()
        assert (dry["messages"], dry["counts"]["bytes"]) == (["m1"], len("".join(PINNED.split())))
        await forget(call, nodes=["n1"])
        await assert_not_said(call, NAME, "Quillhaven", "xylorimba")
        assert NAME not in [one["name"] for one in await all_of(call, "entities")]
        assert "once knew" not in await recalled(call)
        before = len((await call("GET", f"{AGENT}/audit")).json()["records"])
        again = (await call("POST", f"{AGENT}/forget", {"nodes": ["n1"]})).json()
        assert again["counts"]["bytes"] == again["counts"]["messages"] == 0
        assert len((await call("GET", f"{AGENT}/audit")).json()["records"]) == before
    assert SECRET.found_in(directory) == []


async def test_only_the_own_words_of_a_faded_memory_are_deleted(tmp_path: Path, caller_in: CallerIn) -> None:
    """The rest of its message stays: what another faded memory was made from, and what a living one cites."""
    said = (
        f"{NAME} repairs xylorimbas in Quillhaven every winter. "
        "Please remember: my cat Miso sleeps on the warm windowsill. "
        "The ferry to Odense leaves from the northern pier at nine."
    )
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, {**QUICKLY, "segment_max_chars": 80})
        await told(call, said, *(f"On day {number} it rained on the long beach." for number in range(8)))
        assert (await call("GET", f"{AGENT}/nodes/n2")).json()["pinned"] == "by_request"
        for name in ("n1", "n3"):
            assert await call.refused("GET", f"{AGENT}/nodes/{name}") == "NODE_FORGOTTEN"
        await forget(call, nodes=["n1"])
        found = str((await call("POST", f"{AGENT}/search", {"query": f"{NAME} ferry Odense Miso"})).json())
        assert NAME not in found and "Odense" in found and "Miso" in found
        assert "Odense" in (await call("POST", f"{AGENT}/recall", {"keywords": ["Odense"]})).json()["text"]


@pytest.mark.parametrize("topic", [NAME, f"{NAME}s", f"{NAME.upper()}'s"])
async def test_a_topic_is_forgotten_in_every_form_of_its_name(
    tmp_path: Path, caller_in: CallerIn, topic: str
) -> None:
    """The singular, the plural and the possessive of a topic are forgotten together; a longer word stays."""
    directory = tmp_path / "agents" / "ann"
    longer = "The Zorblattish dialect has nine vowels."
    async with caller_in(tmp_path) as call:
        await told(call, f"The {NAME}s moved to the lighthouse.", f"{NAME}'s boat leaks.", longer)
        assert NAME.casefold() in {entity_key(one["name"]) for one in await all_of(call, "entities")}
        await forget(call, topic=topic)
        assert [node["content"] for node in await all_of(call, "nodes")] == [longer]
        assert NAME.casefold() not in {entity_key(one["name"]) for one in await all_of(call, "entities")}
    assert Traces([f"{NAME}s", f"{NAME}'s"], keys=[text_key(entity_key(NAME))]).found_in(directory) == []


async def test_a_name_shared_with_another_memory_is_spelled_as_there(
    tmp_path: Path, caller_in: CallerIn
) -> None:
    """An entity that another memory names stays, without the spelling of the forgotten memory."""
    directory = tmp_path / "agents" / "ann"
    shouted = traces_of("ZORBLATT")
    async with caller_in(tmp_path) as call:
        await told(call, "ZORBLATT repairs xylorimbas in Quillhaven.", PLAINER)
        assert "ZORBLATT" in [one["name"] for one in await all_of(call, "entities")]
    assert any("ZORBLATT" in one for one in shouted.found_in(directory))
    async with caller_in(tmp_path) as call:
        await forget(call, messages=["m1"])
        assert NAME in [one["name"] for one in await all_of(call, "entities")]
        found = (await call("POST", f"{AGENT}/recall", {"keywords": [NAME]})).json()["text"]
        assert found == f"[Memory] {PLAINER}"
    assert not any("ZORBLATT" in one for one in shouted.found_in(directory))
    assert traces_of("Quillhaven", "xylorimba").found_in(directory) == []


async def test_nothing_is_left_of_the_first_content_of_a_shortened_memory(
    tmp_path: Path, caller_in: CallerIn
) -> None:
    """Words that shortening had dropped are forgotten with the memory."""
    directory = tmp_path / "agents" / "ann"
    content = f"{NAME} repairs xylorimbas in Quillhaven, and on Sundays there is a long walk along the canal."
    fillers = [f"On day {number} the ferry left on time." for number in range(6)]
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, {**QUICKLY, "decay_rate": 0.5})
        await told(call, content)
        for filler in fillers:
            node = (await call("GET", f"{AGENT}/nodes/n1")).json()
            if node["content"] != content:
                break
            await told(call, filler)
        assert len(node["content"]) < len(content) and node["first_content"] == content
        dropped = [word for word in ("canal", "Sundays") if word not in node["content"]]
        assert dropped
        await forget(call, nodes=["n1"])
        await assert_not_said(call, NAME, *dropped)
    assert Traces([*dropped, *SECRET.texts], keys=SECRET.keys).found_in(directory) == []


@pytest.mark.parametrize("verb", ["PATCH", "DELETE"])
@pytest.mark.parametrize(
    ("content", "names"),
    [
        ("My sister Quetzala works for Zyxcorp.", ["Quetzala", "Zyxcorp"]),
        ("My dog is called Brutus.", ["Brutus"]),
    ],
)
async def test_nothing_is_left_of_names_in_statements_of_a_memory(
    tmp_path: Path, caller_in: CallerIn, content: str, names: list[str], verb: str
) -> None:
    """A correction or deletion ends the extracted statements with the entities that only they and the memory named."""
    directory = tmp_path / "agents" / "ann"
    flush = {"timeout_ms": 20_000, "extraction": True}
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, {"extraction": "rules"})
        await told(call, content, OTHER)
        await call("POST", f"{AGENT}/flush", flush)
        assert set(names) <= {one["name"] for one in await all_of(call, "entities")}
        statements = await all_of(call, "statements")
        assert names[-1] in [one["object"] for one in statements]
        answer = await call(
            verb, f"{AGENT}/nodes/n1", {"content": "I like tea."} if verb == "PATCH" else None
        )
        assert answer.status_code == 200
        await call("POST", f"{AGENT}/flush", flush)
        await assert_not_said(call, *names)
        states = "current,contested,planned,superseded,ended,corrected,retracted,forgotten"
        listed = await call("GET", f"{AGENT}/statements", params={"states": states})
        found = await call("POST", f"{AGENT}/recall", {"query": f"Who or what is {names[0]}?"})
        exported = (await call.download(f"{AGENT}/export")).decode()
        for said in (str(listed.json()), str(found.json()), exported):
            assert [name for name in names if name.casefold() in said.casefold()] == []
        await forget(call, topic=names[0])
    assert traces_of(*names).found_in(directory) == []


async def test_a_correction_keeps_the_names_that_it_says(tmp_path: Path, caller_in: CallerIn) -> None:
    """The entity gets its name from a living memory, although the statements that used it are deleted."""
    async with caller_in(tmp_path) as call:
        await call("PUT", AGENT, {"extraction": "rules"})
        await told(call, "My dog is called Brutus.", OTHER)
        await call("POST", f"{AGENT}/flush", {"timeout_ms": 20_000, "extraction": True})
        before = {one["id"] for one in await all_of(call, "entities") if one["name"] == "Brutus"}
        await call("PATCH", f"{AGENT}/nodes/n1", {"content": "The neighbours met Brutus in the garden."})
        after = [one for one in await all_of(call, "entities") if one["name"] == "Brutus"]
        assert {one["id"] for one in after} == before and after[0]["living_count"] == 1


async def test_nothing_is_left_of_names_after_a_correction(tmp_path: Path, caller_in: CallerIn) -> None:
    """A correction deletes the entities that it leaves alone; the next forget removes their bytes too."""
    directory = tmp_path / "agents" / "ann"
    async with caller_in(tmp_path) as call:
        await told(call, PINNED, OTHER)
        await call("PATCH", f"{AGENT}/nodes/n1", {"content": "The harbour smells of tar and oranges."})
        assert not any(one["name"] == NAME for one in await all_of(call, "entities"))
        await forget(call, topic="Miso")
    assert SECRET.found_in(directory) == []
