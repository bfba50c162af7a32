"""Finding memories: `search` and `get_all`."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from ebbtide.errors import InvalidRequest, NotFound
from ebbtide.mem0.call import FLUSH_MS, PATIENCE_MS, Call, Plan, bound_agent, planned
from ebbtide.mem0.memories import from_id, of_node, said_at, to_id
from ebbtide.mem0.one_memory import get_memory
from ebbtide.mem0.reading import Filters, Listing, Question, read_get_all, read_page, read_search
from ebbtide.records import EPISODE
from ebbtide.statements import STATEMENT_KINDS
from ebbtide.verbs.inspect import NodeInfo

PAGE_SIZE = 100

MAX_READ = 100_000
"""Most memories that a listing reads."""

KINDS = [EPISODE, *sorted(STATEMENT_KINDS)]
"""The kinds of memories that a listing has."""


async def search(call: Call) -> Plan:
    """Return the memories that answer a question, best first."""
    question: Question = await call.read(read_search, bound_agent())
    agent_id = question.listing.filters.owner.agent_id
    return planned(_search, call, agent_id, question, agents=[agent_id])


async def _search(call: Call, agent_id: str, question: Question) -> Any:
    listing = question.listing
    if listing.filters.is_empty:
        return {"results": []}
    fields = {"patience_ms": PATIENCE_MS, "own_words": True, **question.fields}
    found = await call.perform(agent_id, "Search", **fields)
    if found.unembedded_messages and len(found.memories) < question.top_k:
        # New messages without vectors are found by their words only.
        await call.perform(agent_id, "Flush", vectors=True, timeout_ms=PATIENCE_MS)
        found = await call.perform(agent_id, "Search", **fields)
    best = max((one.score for one in found.memories), default=0.0)
    results: dict[str, dict[str, Any]] = {}
    for one in found.memories:
        if len(results) == question.top_k:
            break
        score = one.score / best if best > 0 else 0.0
        memory_id = to_id(agent_id, one.id)
        if score < question.threshold or not _is_listed(listing.filters, memory_id):
            continue
        with suppress(NotFound):
            memory = await get_memory(call, from_id(memory_id))
            results[memory_id] = _shown({**memory, "score": round(score, 6)}, listing)
    return {"results": list(results.values())}


def _is_listed(filters: Filters, memory_id: str) -> bool:
    return filters.memory_ids is None or memory_id in filters.memory_ids


def _shown(memory: dict[str, Any], listing: Listing) -> dict[str, Any]:
    if not listing.fields:
        return memory
    return {name: value for name, value in memory.items() if name == "id" or name in listing.fields}


async def get_all(call: Call) -> Plan:
    """List living memories, the newest first."""
    page, size = read_page(call.query, PAGE_SIZE, call.service.settings.limits.max_page_size)
    listing: Listing = await call.read(read_get_all, bound_agent())
    agent_id = listing.filters.owner.agent_id
    return planned(_get_all, call, agent_id, listing, page, size, agents=[agent_id])


async def _get_all(call: Call, agent_id: str, listing: Listing, page: int, size: int) -> Any:
    try:
        await call.perform(agent_id, "Flush", timeout_ms=FLUSH_MS)
        found, count = await _listed(call, agent_id, listing.filters, (page - 1) * size, size)
    except NotFound as error:
        if error.reason != "AGENT_NOT_FOUND":
            raise
        found, count = [], 0

    def address(number: int) -> str:
        return f"{call.address}?page={number}&page_size={size}"

    return {
        "count": count,
        "next": address(page + 1) if page * size < count else None,
        "previous": address(page - 1) if page > 1 else None,
        "results": [_shown(of_node(agent_id, one), listing) for one in found],
    }


async def _listed(
    call: Call, agent_id: str, filters: Filters, skipped: int, size: int
) -> tuple[list[NodeInfo], int]:
    """Return a page of the memories that pass the filters, and how many pass.

    With filters all memories are read; without, those up to the page.
    """
    if filters.is_empty:
        return [], 0
    if filters.memory_ids is not None and not filters.metadata:
        nodes = [
            one
            for memory_id in filters.memory_ids
            for one in await _named(call, agent_id, memory_id)
            if _passes(filters, one)
        ]
        nodes.sort(key=lambda one: int(one.id[1:]), reverse=True)
        return nodes[skipped : skipped + size], len(nodes)
    count, page, token = 0, list[NodeInfo](), ""
    most = call.service.settings.limits.max_page_size
    options: dict[str, Any] = {"kinds": KINDS, "newest_first": True, "page_size": most}
    options |= {"metadata": filters.metadata} if filters.metadata else {}
    for read in range(0, MAX_READ, most):
        listed = await call.perform(agent_id, "ListNodes", page_token=token, **options)
        passed = [
            one
            for one in listed.nodes
            if _passes(filters, one) and _is_listed(filters, to_id(agent_id, one.id))
        ]
        page += passed[max(0, skipped - count) : max(0, skipped + size - count)]
        count += len(passed)
        token = listed.next_page_token
        if not token:
            return page, count
        if not filters.is_counted_by_reading and count >= skipped + size:
            counts = (await call.perform(agent_id, "GetAgent")).counts
            return page, max(counts.nodes, count)
        assert read < MAX_READ
    text = f"get_all reads at most {MAX_READ} memories; search for them, or use GET /v1/agents/{{agent_id}}/nodes"
    raise InvalidRequest(text, reason="TOO_MANY_ITEMS")


async def _named(call: Call, agent_id: str, memory_id: str) -> list[NodeInfo]:
    """Return the living memory with an id; none if there is none, or it is another agent's."""
    try:
        place = from_id(memory_id)
        if place.agent_id != agent_id:
            return []
        return [await call.perform(agent_id, "GetNode", node_id=place.own_id)]
    except NotFound as error:
        if error.reason == "AGENT_NOT_FOUND":
            raise
        return []


def _passes(filters: Filters, node: NodeInfo) -> bool:
    """Whether a memory passes the filters but that of metadata, which the listing applies as it was stored."""
    time_ms = said_at(node)
    return (
        (filters.begin_ms is None or time_ms >= filters.begin_ms)
        and (filters.end_ms is None or time_ms < filters.end_ms)
        and (not filters.owner.run_id or any(filters.owner.run_id == s.conversation_id for s in node.sources))
        and (not filters.keywords or filters.keywords.casefold() in node.content.casefold())
    )
