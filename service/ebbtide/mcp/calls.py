"""Calls of MCP tools: each performs operations of the catalogue for one agent and answers with text and structure.

The text is for the model; it has the ids that `correct` and `forget` take, because many clients pass only the text on.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, Literal
from urllib.parse import quote

from ebbtide.errors import EbbtideError, NotFound
from ebbtide.ids import AgentId, message_number
from ebbtide.mcp.declarations import DEFAULT, SEARCH_FETCH, McpTool
from ebbtide.memory.wording import SEPARATOR
from ebbtide.retrieval.tokenizers import count_tokens
from ebbtide.tools.reading import read_arguments
from ebbtide.verbs.calling import call_operation, ensure_agent, remember_once
from ebbtide.verbs.inspect import NodeInfo
from ebbtide.verbs.own_words import CUT, own_words, whole_text
from ebbtide.verbs.remember import Remembered
from ebbtide.verbs.service import Service
from ebbtide.verbs.tools import for_model, offset_of_agent, period

Language = Literal["en", "zh"]

PATIENCE_MS = 500
"""How long a recall waits for what was remembered just before."""

MAX_FOUND = 10
"""Most results of `search`."""

TITLE_CHARS = 80

NOTHING = {"en": "Nothing is remembered about this.", "zh": "没有与此有关的记忆。"}
BY_WORDS = {
    "en": " New messages that are found only by their own words so far: {}.",
    "zh": "另有 {} 条新消息目前只能按原词找到。",
}
NOTHING_YET = {"en": "Nothing is remembered yet.", "zh": "还没有任何记忆。"}
STORED = {"en": "Stored.", "zh": "已保存。"}
STORED_PARTLY = {
    "en": "Stored, without {} lines that recall returned just before.",
    "zh": "已保存，其中 {} 行是刚才 recall 返回的内容，未保存。",
}
KNOWN = {"en": "Not stored: recall returned this just before.", "zh": "未保存：这是刚才 recall 返回的内容。"}
CORRECTED = {"en": "Corrected.", "zh": "已更正。"}
DELETED = {"en": "Deleted", "zh": "已删除"}
NOT_FOUND = {"en": "Not found", "zh": "未找到"}
NOT_DIGESTED = {
    "en": "Not deleted, because they are being processed; call forget again in some seconds",
    "zh": "未删除，因为仍在处理中；请几秒后再次调用 forget",
}
STILL_CITED = {
    "en": "Other memories still have these words; forget them too",
    "zh": "其他记忆仍含有这些文字，请一并删除",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a call: a text for the model, and the same as data."""

    text: str
    structure: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Session:
    """The subject of a request: the agent, and the language of fixed texts."""

    service: Service
    agent_id: str
    language: Language

    async def perform(self, name: str, /, **fields: Any) -> Any:
        """Perform an operation for the agent, if the caller may. Return its response."""
        return await call_operation(self.service, self.agent_id, name, **fields)

    async def call(self, tool: McpTool, sent: Any) -> Answer:
        """Call a tool with arguments as a model sent them. Raise EbbtideError, worded for a model."""
        offset = await offset_of_agent(self.service, AgentId(self.agent_id))
        read_time = partial(period, reference_ms=self.service.clock.now_ms(), offset=offset)
        given = read_arguments(tool.tool, sent, read_time).arguments
        try:
            return await CALLS[tool.tool.name](self, given)
        except EbbtideError as error:
            raise for_model(error, FIELDS, STEPS) from error


STEPS: Mapping[str, str] = {
    "AGENT_NOT_FOUND": "Nothing is stored yet; remember stores a memory.",
    "NODE_NOT_FOUND": "recall and recent_memories return ids.",
    "NODE_FORGOTTEN": "recall and recent_memories return ids.",
}
"""The next step of a model, by reason."""

FIELDS: Mapping[str, str] = {
    "messages[0].content": "text",
    "node_id": "id",
    "content": "text",
    "node_ids": "ids",
}
"""The argument for a field that an error names."""


def _iso(time_ms: int | None) -> str:
    """Return a time as ISO 8601 in UTC; empty for none."""
    if time_ms is None:
        return ""
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


async def _recall(session: Session, given: Mapping[str, Any]) -> Answer:
    fields: dict[str, Any] = {
        "query": given["query"],
        "citations": True,
        "token_budget": given["max_tokens"],
        "patience_ms": PATIENCE_MS,
    }
    if given["since"] is not None or given["until"] is not None:
        fields["time_range"] = {"begin": given["since"], "end": given["until"]}
    if given["speakers"]:
        fields["speakers"] = given["speakers"]
    found = await session.perform("Recall", **fields)
    blocks = found.text.split(SEPARATOR) if found.text else []
    items = await own_words(session.service, session.agent_id, given["query"], found.memories, blocks)
    lines = [f"{': '.join(one.texts)}: {one.block}" for one in items]
    # The ids count too; without room for one, the first memory is cut.
    while len(lines) > 1 and count_tokens(SEPARATOR.join(lines), "estimate") > given["max_tokens"]:
        lines.pop()
    while lines and count_tokens(lines[0], "estimate") > given["max_tokens"]:
        lines[0] = lines[0][: len(lines[0]) * 9 // 10] + CUT
    text = SEPARATOR.join(lines)
    structure = {
        "text": text,
        "memories": [
            {
                "id": name,
                "said": said,
                "said_at": _iso(found.memories[one.passage].created_at),
                "state": one.state,
            }
            for one in items[: len(lines)]
            for name, said in one.texts.items()
        ],
        "pending_batches": found.pending_batches,
        "unembedded_messages": found.unembedded_messages,
    }
    return Answer(text or _nothing(session.language, found.unembedded_messages), structure)


def _nothing(language: Language, unembedded: int) -> str:
    """Return the text of an empty answer. It says so if the answer may lack messages that have no vectors yet."""
    return NOTHING[language] + (BY_WORDS[language].format(unembedded) if unembedded else "")


async def _remember(session: Session, given: Mapping[str, Any]) -> Answer:
    await ensure_agent(session.service, session.agent_id)
    message = {"role": "user", "content": given["text"]}
    message |= {"speaker": given["speaker"]} if given["speaker"] else {}
    message |= {"timestamp": given["said_at"]} if given["said_at"] is not None else {}
    fields: dict[str, Any] = {"messages": [message]}
    fields |= {"conversation_id": given["conversation"]} if given["conversation"] else {}

    async def send(earlier: str) -> Remembered:
        key = _key(session, given, earlier)
        done: Remembered = await session.perform("Remember", **fields, idempotency_key=key)
        return done

    done = await remember_once(session.service, session.agent_id, send)
    # Separators between recalled lines are dropped with them.
    lines = [line.strip() for line in given["text"].splitlines()]
    said = sum(line not in ("", SEPARATOR.strip()) for line in lines)
    is_stored = not done.dropped_recalled or done.dropped_recalled < said
    structure = {
        "batch_id": done.batch_id,
        "stored": is_stored,
        "dropped_recalled": done.dropped_recalled,
    }
    words = KNOWN if not is_stored else STORED_PARTLY if done.dropped_recalled else STORED
    return Answer(words[session.language].format(done.dropped_recalled), structure)


def _key(session: Session, given: Mapping[str, Any], earlier: str) -> str:
    """Return the idempotency key of a call: a client that repeats it on the same day stores it once.

    `earlier` is the batch of an equal call of which no memory is left; empty for none.
    """
    day = session.service.clock.now_ms() // 86_400_000
    parts = (given[name] for name in ("text", "speaker", "said_at", "conversation"))
    same = [session.agent_id, day, earlier, *parts]
    return "mcp-" + hashlib.sha256(json.dumps(same).encode()).hexdigest()


async def _correct(session: Session, given: Mapping[str, Any]) -> Answer:
    if message_number(given["id"]) is not None:
        raise NotFound(
            f"{given['id']} is a message, or the part of it that has no memory. Call recall again in some seconds, "
            "and correct the id of the form n1 that has its words. If there is none, remember the right text and "
            f"forget {given['id']}.",
            reason="NODE_NOT_FOUND",
        )
    done = await session.perform("UpdateNode", node_id=given["id"], content=given["text"])
    return Answer(CORRECTED[session.language], {"id": done.id, "said": done.content})


async def _forget(session: Session, given: Mapping[str, Any]) -> Answer:
    done = await session.perform("DeleteNodes", node_ids=given["ids"])
    deleted = [one.node_id for one in done.results if one.deleted]
    missing = [one.node_id for one in done.results if not one.deleted]
    waiting = [one.node_id for one in done.results if one.reason == "BATCH_NOT_DIGESTED"]
    cited = dict.fromkeys(name for one in done.results if one.deleted for name in one.cited_by)
    parts = [
        (DELETED, deleted),
        (NOT_FOUND, [name for name in missing if name not in waiting]),
        (NOT_DIGESTED, waiting),
        (STILL_CITED, [name for name in cited if name not in deleted]),
    ]
    text = "\n".join(f"{words[session.language]}: {', '.join(ids)}" for words, ids in parts if ids)
    return Answer(text, {"deleted": deleted, "not_found": missing})


async def _recent(session: Session, given: Mapping[str, Any]) -> Answer:
    limit = given["limit"]
    try:
        focus = await session.perform("GetFocus")
        newest = await session.perform("ListNodes", page_size=limit, newest_first=True)
        counts = (await session.perform("GetAgent")).counts
    except EbbtideError as error:
        if error.reason != "AGENT_NOT_FOUND":
            raise
        return Answer(NOTHING_YET[session.language], {"memories": [], "total": 0})
    nodes = list({one.id: one for one in (*focus.nodes, *newest.nodes)}.values())[:limit]
    structure = {"memories": [_listed(one) for one in nodes], "total": counts.nodes}
    return Answer(_lines(nodes) or NOTHING_YET[session.language], structure)


def _listed(node: NodeInfo) -> dict[str, str]:
    return {"id": node.id, "said": node.content.strip(), "said_at": _iso(node.created_at), "state": "living"}


def _lines(nodes: Sequence[NodeInfo]) -> str:
    return "\n".join(
        f"{one.id}: [{_iso(one.created_at)[:10]}] {' '.join(f'{one.label}{one.content}'.split())}"
        for one in nodes
    )


def _address(session: Session, memory_id: str) -> str:
    return f"ebbtide://memories/{memory_id}?agent={quote(session.agent_id, safe='')}"


async def _search(session: Session, given: Mapping[str, Any]) -> Answer:
    # A message cannot be fetched, so twice the results are requested.
    fields = {"query": given["query"], "max_results": 2 * MAX_FOUND, "own_words": True}
    found = (await session.perform("Search", **fields)).memories
    texts = {one.id: one.content for one in found if message_number(one.id) is None}
    results = [
        {"id": name, "title": said[:TITLE_CHARS], "url": _address(session, name)}
        for name, said in list(texts.items())[:MAX_FOUND]
    ]
    structure = {"results": results}
    return Answer(json.dumps(structure, ensure_ascii=False), structure)


async def _fetch(session: Session, given: Mapping[str, Any]) -> Answer:
    node = await session.perform("GetNode", node_id=given["id"])
    structure = {
        "id": node.id,
        "title": whole_text(node)[:TITLE_CHARS],
        "text": f"{node.label}{whole_text(node)}",
        "url": _address(session, node.id),
        "metadata": {"created_at": _iso(node.created_at), "kind": node.kind},
    }
    return Answer(json.dumps(structure, ensure_ascii=False), structure)


CALLS: Mapping[str, Callable[[Session, Mapping[str, Any]], Awaitable[Answer]]] = {
    "recall": _recall,
    "remember": _remember,
    "correct": _correct,
    "forget": _forget,
    "recent_memories": _recent,
    "search": _search,
    "fetch": _fetch,
}
"""How each tool is performed, by its name."""

assert CALLS.keys() == DEFAULT.keys() | SEARCH_FETCH.keys()
