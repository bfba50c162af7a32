"""Records in the answer of a query, over every transport: on request only, in one order with memories."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ebbtide.fleet.records import batch
from ebbtide.retrieval.tokenizers import count_tokens
from tests.support.callers import CALLERS, Caller, CallerIn, reason_of
from tests.support.keys import KEYS_ON, new_key

AGENT = "/v1/agents/ann"
QUERY = "Where is the barometer?"
SAID = ["The barometer hangs in the hall.", "Bob sold his barometer.", "A barometer measures pressure."]
LONG = " ".join(f"Line {number} is about ships." for number in range(300))
RECORDS: dict[str, dict[str, Any]] = {
    "best": {"text": "Barometer: where the barometer is, in the shed."},
    "long": {"a": LONG, "b": "A spare barometer lies in the attic.", "c": LONG},
    "other": {"text": "Nothing to see here."},
    "hidden": {"text": "barometer barometer"},
}


@pytest.fixture(params=CALLERS)
def caller_in(request: pytest.FixtureRequest) -> CallerIn:
    """A daemon in this process and a caller for it, over each transport."""
    return partial(CALLERS[request.param], embedding={"model": "off"})


rest_in = partial(CALLERS["rest"], embedding={"model": "off"})


async def fill(call: Caller) -> None:
    """Store the memories and the records."""
    messages = [{"role": "user", "content": text} for text in SAID]
    assert (await call("POST", f"{AGENT}/remember", {"messages": messages})).status_code == 202
    # Later queries rank the memories as earlier ones do.
    assert (await call("POST", f"{AGENT}/flush", {})).status_code == 200
    await put(call)


async def put(call: Caller) -> None:
    """Store the records."""
    ops = [
        {"op": "put", "namespace": ["notes", "home"], "key": key, "value": value, "no_index": key == "hidden"}
        for key, value in RECORDS.items()
    ]
    assert (await call("POST", f"{AGENT}/records/batch", {"ops": ops})).status_code == 200


async def ask(call: Caller, verb: str = "recall", **fields: Any) -> dict[str, Any]:
    """Send a query, and return the answer."""
    answer = await call("POST", f"{AGENT}/{verb}", {"query": QUERY, **fields})
    assert answer.status_code == 200, answer.json()
    body: dict[str, Any] = answer.json()
    return body


def keys(answer: dict[str, Any]) -> list[str]:
    return [one["key"] for one in answer["records"]]


async def test_a_recall_returns_records_on_request_only(tmp_path: Path, caller_in: CallerIn) -> None:
    """Without the kind, no answer has a record, whatever else it asks for. With it alone, no answer has a memory."""
    async with caller_in(tmp_path) as call:
        await fill(call)
        for kinds in ([], ["episode"], ["memory"], ["own"]):
            plain = await ask(call, kinds=kinds, dates=False)
            assert "[Record]" not in plain["text"] and not plain.get("records")
            found = await ask(call, "search", kinds=kinds)
            assert not found.get("records")
        everything, memories = await ask(call, dates=False), await ask(call, dates=False, kinds=["memory"])
        assert everything["text"] == memories["text"] and everything["text"].count("[Memory]") == 3
        alone = await ask(call, kinds=["record"], citations=True, dates=False)
        place = "(source: record notes/home/"
        first, second = alone["text"].split("\n---\n")
        assert first == f"[Record] best: {RECORDS['best']['text']} {place}best)"
        assert second.startswith("[Record] long: ") and second.endswith(f"{place}long)")
        assert alone["memories"] == [] and keys(alone) == ["best", "long"]
        best, other = alone["records"]
        assert best["namespace"] == ["notes", "home"] and best["text"] == RECORDS["best"]["text"]
        assert (best["score"], best["position"], other["position"]) == (1, 0, 1) and 0 < other["score"] < 1
        assert "spare barometer" in other["text"] and len(other["text"]) < 1600, "the passage that matches"
        assert best["version"] == 1 and best["created_at"] == best["updated_at"] > 0
        searched = await ask(call, "search", kinds=["record"])
        assert searched["records"] == alone["records"] and searched["memories"] == []
        nothing = await ask(call, kinds=["record"], query="submarine")
        assert nothing["text"] == "" and nothing["records"] == []
        unknown = await call("POST", "/v1/agents/new/recall", {"query": "x", "kinds": ["record"]})
        assert unknown.json()["records"] == []


async def test_the_answer_keeps_its_limits(tmp_path: Path) -> None:
    """One order and one limit cover memories and records; see each check."""
    async with rest_in(tmp_path) as call:
        await fill(call)
        await check_alternation(call)
        await check_budget(call)
        await check_times(call)
        await check_echo(call)


async def check_alternation(call: Caller) -> None:
    """The best memory comes first, then the best record, and so on, until `max_results`."""
    memories = [one["content"] for one in (await ask(call, "search"))["memories"]]
    records = [one["text"] for one in (await ask(call, "search", kinds=["record"]))["records"]]
    expected = [memories[0], records[0], memories[1], records[1], *memories[2:]]
    for most in (1, 2, 3, 20):
        found = await ask(call, "search", kinds=["record", "memory"], max_results=most)
        order = [one["content"] for one in found["memories"]]
        for one in found["records"]:
            order.insert(one["position"], one["text"])
        assert order == expected[:most]
    recalled = await ask(call, kinds=["memory", "record"], citations=True, dates=False)
    blocks = recalled["text"].split("\n---\n")
    assert [block[:8] for block in blocks] == ["[Memory]", "[Record]", "[Memory]", "[Record]", "[Memory]"]
    assert [one["position"] for one in recalled["records"]] == [1, 3]
    narrowed = await ask(call, "search", kinds=["own", "record"])
    assert narrowed["memories"] == [] and keys(narrowed) == ["best", "long"]


async def check_budget(call: Caller) -> None:
    """No text exceeds the budget; with `key_sentences`, a record that is too long is shortened to what matches."""
    for kinds in (["record"], ["memory", "record"]):
        sizes = set()
        for budget in (1, 15, 30, 45, 70, 600):
            found = await ask(call, kinds=kinds, token_budget=budget, citations=True)
            assert count_tokens(found["text"], "estimate") <= budget
            count = len(found["text"].split("\n---\n")) if found["text"] else 0
            assert count == len(found["memories"]) + len(found["records"])
            sizes.add(count)
        assert len(sizes) > 2
    found = await ask(call, kinds=["record"], token_budget=100, key_sentences=True)
    assert "…" in found["text"] and "A spare barometer lies in the attic." in found["text"]
    assert keys(found) == ["best", "long"] and count_tokens(found["text"], "estimate") <= 100
    explained = await ask(call, kinds=["memory", "record"], max_results=2, explain=True)
    dropped = [one["dropped"] for one in explained["explanation"]["memories"]]
    assert dropped == ["", "max_results", "max_results"]


async def check_times(call: Caller) -> None:
    """`time_range` counts from the last put of a record, `created_after` from its first."""
    [best, _] = (await ask(call, "search", kinds=["record"]))["records"]
    now = best["updated_at"]
    for fields, expected in (
        ({"time_range": {"begin": now}}, ["best", "long"]),
        ({"time_range": {"end": now}}, []),
        ({"time_range": {"begin": now + 3_600_000}}, []),
        ({"created_after": now}, ["best", "long"]),
        ({"created_after": now + 3_600_000}, []),
    ):
        assert keys(await ask(call, "search", kinds=["record"], **fields)) == expected, fields


async def check_echo(call: Caller) -> None:
    """A transcript that contains the text of a recall is stored without it, whether it is of memories or of records."""
    text = (await ask(call, kinds=["record"], dates=False, max_results=1))["text"]
    message = {"role": "assistant", "content": f"I looked it up:\n{text}"}
    done = await call("POST", f"{AGENT}/remember", {"messages": [message]})
    assert done.json()["dropped_recalled"] == 1


REFUSED: list[tuple[str, dict[str, Any], str, str]] = [
    ("recall", {"kinds": ["record"]}, "MISSING_FIELD", "query"),
    ("search", {"kinds": ["record"], "vector": [1.0]}, "MISSING_FIELD", "query"),
    ("search", {"query": "x", "kinds": ["record"], "vector": [1.0]}, "INVALID_VALUE", "vector"),
    ("recall", {"query": "x", "kinds": ["record"], "speakers": ["Ann"]}, "INVALID_VALUE", "speakers"),
    ("search", {"query": "x", "kinds": ["memory", "record"], "sources": ["c"]}, "INVALID_VALUE", "sources"),
    ("search", {"query": "x", "kinds": ["record"], "metadata": {"a": 1}}, "INVALID_VALUE", "metadata"),
    ("recall", {"query": "x", "kinds": ["record"], "archive": "never"}, "INVALID_VALUE", "archive"),
    ("recall", {"query": "x", "kinds": ["record"], "without": ["words"]}, "INVALID_VALUE", "without"),
    ("recall", {"query": "x", "kinds": ["record"], "explain": True}, "INVALID_VALUE", "explain"),
    ("recall", {"query": "x", "kinds": ["record"], "start_nodes": ["n1"]}, "INVALID_VALUE", "start_nodes"),
    (
        "recall",
        {"query": "x", "kinds": ["record", "re cord"]},
        "INVALID_VALUE",
        "memory, record, episode, event",
    ),
    ("search", {"query": "x", "kinds": [""]}, "INVALID_VALUE", "memory, record, episode, event"),
    ("nodes", {"content": "x", "kind": "record"}, "INVALID_VALUE", "memory, record"),
    ("nodes", {"content": "x", "kind": "memory"}, "INVALID_VALUE", "memory, record"),
]


async def test_a_query_that_records_cannot_answer_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the field and what is allowed."""
    async with rest_in(tmp_path) as call:
        await put(call)
        for verb, body, reason, named in REFUSED:
            answer = await call("POST", f"{AGENT}/{verb}", body)
            assert answer.status_code == 400 and reason_of(answer) == reason, (body, answer.json())
            assert named in str(answer.json()), answer.json()
        monkeypatch.setattr(batch, "MAX_SEARCHED", 3)
        assert len(keys(await ask(call, kinds=["record"]))) == 2, "what no query finds does not count"
        monkeypatch.setattr(batch, "MAX_SEARCHED", 2)
        answer = await call("POST", f"{AGENT}/recall", {"query": QUERY, "kinds": ["record"]})
        assert reason_of(answer) == "TOO_MANY_ITEMS"


async def test_a_key_that_may_read_recalls_records(tmp_path: Path) -> None:
    """The scope `read` suffices, and one that may only write gets nothing."""
    writer, reader = new_key(tmp_path, "write"), new_key(tmp_path, "read")
    async with rest_in(tmp_path, access=KEYS_ON) as call:
        call.show(writer)
        await put(call)
        answer = await call("POST", f"{AGENT}/recall", {"query": QUERY, "kinds": ["record"]})
        assert reason_of(answer) == "SCOPE_MISSING"
        call.show(reader)
        assert keys(await ask(call, kinds=["record"])) == ["best", "long"]
