"""Every operation on an agent, in sequence: all of them must work on every accepted file.

A refusal is a valid result if the target may have been forgotten. An internal error, a missing response and failed
background work are not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

PATIENCE_S = 30.0

REFUSALS = frozenset(
    {
        "NODE_NOT_FOUND",
        "NODE_FORGOTTEN",
        "BATCH_NOT_FOUND",
        "ATTACHMENT_NOT_FOUND",
        "BATCH_NOT_PARKED",
        "BATCH_NOT_DIGESTED",
        "IDEMPOTENCY_KEY_REUSED",
        "QUEUE_FULL",
        "TOO_MANY_PASSES",
    }
)
"""Reasons that an operation may return for an agent of unknown content."""


class Broken(AssertionError):
    """An operation that must work failed."""


async def used(call: Any, agent: str) -> None:
    """Run every operation on an agent. Raise Broken if one fails."""
    nodes, batches = await _looked_at(call, agent)
    await _asked(call, agent)
    for number in range(2):
        text = f"Word {number}: Miso the cat now lives in Lisbon 青岛 with Zoë."
        body = {"messages": [{"role": "user", "content": text}], "idempotency_key": f"used {number}"}
        await answered(call, "POST", f"{agent}/remember", body)
    for batch in batches:
        if batch["state"] == "parked":
            await answered(call, "POST", f"{agent}/batches/{batch['batch_id']}/retry")
    await answered(call, "POST", f"{agent}/compress", {"passes": 1})
    await _flushed(call, agent)
    await _changed(call, agent, nodes)
    await answered(call, "POST", f"{agent}/close", {})
    await _looked_at(call, agent)
    await _asked(call, agent)
    await answered(call, "PATCH", agent, {"decay_rate": 0.5, "retention": "days:1"})
    await answered(call, "PATCH", agent, {"decay_rate": None, "retention": "keep"})
    await _flushed(call, agent)


async def answered(call: Any, method: str, path: str, body: Any = None) -> Mapping[str, Any]:
    """Return the response to a request, or nothing if it was refused for an allowed reason."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            response = await call(method, path, body)
    except TimeoutError:
        raise Broken(f"{method} {path}: no answer in {PATIENCE_S:g} s") from None
    if response.status_code < 300:
        found: Mapping[str, Any] = response.json()
        return found
    reason = response.json()["error"]["reason"]
    if reason not in REFUSALS:
        raise Broken(f"{method} {path} {body}: {response.text[:300]}")
    return {}


async def _looked_at(call: Any, agent: str) -> tuple[Sequence[Any], Sequence[Any]]:
    for place in ("", "/focus", "/audit", "/links"):
        await answered(call, "GET", agent + place)
    nodes = (await answered(call, "GET", f"{agent}/nodes"))["nodes"]
    for node in nodes[:2] + nodes[-1:]:
        await answered(call, "GET", f"{agent}/nodes/{node['id']}")
    batches = (await answered(call, "GET", f"{agent}/batches"))["batches"]
    for batch in batches[:1]:
        await answered(call, "GET", f"{agent}/batches/{batch['batch_id']}")
    for message in (await answered(call, "GET", f"{agent}/messages"))["messages"]:
        for index, attached in enumerate(message["attachments"]):
            file = await call("GET", f"{agent}/messages/{message['id']}/attachments/{index}")
            if file.status_code != 200 or not file.text or not attached["size"]:
                raise Broken(f"attachment of {message['id']}: {file.text[:300]}")
    await answered(call, "POST", f"{agent}/audit/verify", {"texts": ["Miso"]})
    return nodes, batches


async def _asked(call: Any, agent: str) -> None:
    cues: tuple[dict[str, Any], ...] = (
        {},
        {"keywords": ["Lisbon", "青岛"], "depth": 3},
        {"relations": ["next"]},
        {"query": "Where does Ann's cat live?", "explain": True, "token_budget": 200},
        {"query": "谁住在海边？", "metadata": {"topic": "旅行"}},
    )
    for cue in cues:
        await answered(call, "POST", f"{agent}/recall", cue)
    await answered(call, "POST", f"{agent}/search", {"query": "Project Heron boats"})


async def _flushed(call: Any, agent: str) -> None:
    body = {"passes": True, "vectors": True, "timeout_ms": 20_000}
    done = await answered(call, "POST", f"{agent}/flush", body)
    left = ("pending_batches", "owed_passes", "unembedded_messages")
    if not done or not done["digested"] or any(done[name] for name in left):
        raise Broken(f"flush: {done}")


async def _changed(call: Any, agent: str, nodes: Sequence[Any]) -> None:
    ids = [node["id"] for node in nodes]
    links = [{"target": node_id, "relation": "about", "strength": 0.5} for node_id in ids[:1]]
    text = "Clara's boat is called Heron."
    await answered(call, "POST", f"{agent}/nodes", {"content": text, "links": links})
    for node_id in ids[:1]:
        body = {"content": "Miso moved to Porto.", "keywords": ["Miso"], "metadata": {"by": "hand"}}
        await answered(call, "PATCH", f"{agent}/nodes/{node_id}", body)
    for node_id in ids[1:2]:
        await answered(call, "DELETE", f"{agent}/nodes/{node_id}")
    await answered(call, "POST", f"{agent}/nodes/delete", {"node_ids": [*ids[2:4], "m2", "n999999"]})
    for is_dry in (True, False):
        for what in ({"topic": "Project Heron"}, {"messages": ["m1"], "nodes": ids[-1:]}):
            await answered(call, "POST", f"{agent}/forget", {**what, "dry_run": is_dry})
