"""The tools that MCP clients get by default, and those for clients that expect `search` and `fetch`.

They are declared as the tools for language models are (`tools/schema.py`), so their arguments are read as leniently.
MCP adds a schema of the structured result, and hints on what a call changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ebbtide.tools.schema import Parameter, Tool

IDS = "n12"


@dataclass(frozen=True, slots=True)
class Hints:
    """The effect of a call: whether it only reads, whether it deletes or overwrites, and whether it can be repeated."""

    reads_only: bool = False
    destroys: bool = False
    repeats: bool = True


READS = Hints(reads_only=True)
ADDS = Hints()
CHANGES = Hints(destroys=True)


@dataclass(frozen=True, slots=True)
class McpTool:
    """A tool, the schema of its structured result, and its hints."""

    tool: Tool
    hints: Hints
    output: Mapping[str, Any] | None = None
    """None for a result of any form."""


def _object(**properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties), "required": list(properties)}


def _array(items: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": dict(items)}


TEXT: Mapping[str, Any] = {"type": "string"}
NUMBER: Mapping[str, Any] = {"type": "integer"}
FLAG: Mapping[str, Any] = {"type": "boolean"}
MEMORIES = _array(_object(id=TEXT, said=TEXT, said_at=TEXT, state=TEXT))

RECALL = McpTool(
    Tool(
        "recall",
        "Find what was said earlier that answers a question; use it before you answer anything about the user or the "
        "past.",
        "查找以前说过的、能回答问题的内容；回答与用户或过去有关的问题之前，先用它。",
        (
            Parameter(
                *("query", "text", "The question, as a full sentence.", "问题，写成完整的句子。"),
                is_required=True,
                aliases=("question", "q", "text", "search", "content", "topic", "问题", "查询"),
                max_chars=2_000,
            ),
            Parameter(
                *("max_tokens", "integer", "Most tokens of the text.", "文本最多多少个词元。"),
                aliases=("token_budget", "budget", "tokens"),
                default=800,
                bounds=(50, 8_000),
                is_strict=True,
            ),
            Parameter(
                *("since", "time", "Only from then on: 2026-05-01.", "只要从那时起的：2026-05-01。"),
                is_strict=True,
            ),
            Parameter("until", "time", "Only before then.", "只要那时以前的。", is_strict=True),
            Parameter(
                *("speakers", "texts", "Only what these speakers said.", "只要这些人说的。"),
                aliases=("speaker", "names", "who", "说话人"),
                max_chars=200,
            ),
        ),
        {"query": "Where does Ann live?"},
    ),
    READS,
    _object(text=TEXT, memories=MEMORIES, pending_batches=NUMBER, unembedded_messages=NUMBER),
)

REMEMBER = McpTool(
    Tool(
        "remember",
        "Store one thing that will matter in later conversations, as a full sentence; never what recall returned.",
        "把以后的对话用得到的一件事存入记忆，写成完整的句子；不要存 recall 返回的内容。",
        (
            Parameter(
                *("text", "text", "The statement, as a full sentence.", "说过的话，写成完整的句子。"),
                is_required=True,
                aliases=("content", "message", "memory", "fact", "内容"),
                max_chars=20_000,
            ),
            Parameter(
                *("speaker", "text", "Name of who said it.", "说话人的名字。"),
                aliases=("name", "user_name", "说话人", "姓名"),
                max_chars=200,
            ),
            Parameter(
                *("said_at", "time", "When it was said, if not now.", "说这句话的时间（如果不是现在）。"),
                aliases=("time", "timestamp", "date", "when", "时间"),
                is_strict=True,
            ),
            Parameter(
                *("conversation", "text", "Id of the conversation.", "对话的编号。"),
                aliases=("conversation_id", "session", "thread"),
                max_chars=200,
            ),
        ),
        {"text": "I moved to Porto in May.", "speaker": "Ann"},
    ),
    ADDS,
    _object(batch_id=TEXT, stored=FLAG, dropped_recalled=NUMBER),
)

CORRECT = McpTool(
    Tool(
        "correct",
        "Replace the text of a memory that is wrong; its old text is deleted.",
        "更正一条错误的记忆；旧的文字会被删除。",
        (
            Parameter(
                *("id", "text", "Id from recall, such as n12.", "recall 给出的编号，如 n12。"),
                is_required=True,
                aliases=("memory_id", "node_id", "memory", "编号"),
                max_chars=40,
            ),
            Parameter(
                *("text", "text", "The right text.", "正确的文字。"),
                is_required=True,
                aliases=("content", "new_text", "correction", "内容"),
                max_chars=20_000,
            ),
        ),
        {"id": IDS, "text": "I moved to Porto in June."},
        is_strict=True,
    ),
    CHANGES,
    _object(id=TEXT, said=TEXT),
)

FORGET = McpTool(
    Tool(
        "forget",
        "Delete memories that the user wants gone; this cannot be undone.",
        "删除用户要求去掉的记忆；不能撤销。",
        (
            Parameter(
                *("ids", "texts", "Ids from recall, such as n12.", "recall 给出的编号，如 n12。"),
                is_required=True,
                aliases=("id", "memory_ids", "memories", "node_ids", "编号"),
                max_chars=40,
                max_items=100,
            ),
        ),
        {"ids": [IDS]},
        is_strict=True,
    ),
    CHANGES,
    _object(deleted=_array(TEXT), not_found=_array(TEXT)),
)

RECENT_MEMORIES = McpTool(
    Tool(
        "recent_memories",
        "List what was talked about last; use it at the start of a conversation.",
        "列出最近谈到的内容；在对话开始时使用。",
        (
            Parameter(
                *("limit", "integer", "Most memories.", "最多多少条。"),
                aliases=("count", "n", "k", "max_results"),
                default=20,
                bounds=(1, 100),
            ),
        ),
        {"limit": 20},
    ),
    READS,
    _object(memories=MEMORIES, total=NUMBER),
)

SEARCH = McpTool(
    Tool(
        "search",
        "Search everything that was said; fetch returns the whole text of a result.",
        "搜索说过的所有内容；fetch 返回一条结果的全文。",
        (
            Parameter(
                *("query", "text", "The question, or words.", "问题或词语。"),
                is_required=True,
                aliases=("question", "q", "text"),
                max_chars=2_000,
            ),
        ),
        {"query": "Where does Ann live?"},
    ),
    READS,
    _object(results=_array(_object(id=TEXT, title=TEXT, url=TEXT))),
)

FETCH = McpTool(
    Tool(
        "fetch",
        "Return one result of search with its source.",
        "返回 search 的一条结果及其来源。",
        (
            Parameter(
                *("id", "text", "Id from search, such as n12.", "search 给出的编号，如 n12。"),
                is_required=True,
                aliases=("document_id", "node_id", "memory_id"),
                max_chars=40,
            ),
        ),
        {"id": IDS},
    ),
    READS,
    _object(id=TEXT, title=TEXT, text=TEXT, url=TEXT, metadata={"type": "object"}),
)

DEFAULT: Mapping[str, McpTool] = {
    one.tool.name: one for one in (RECALL, REMEMBER, CORRECT, FORGET, RECENT_MEMORIES)
}
SEARCH_FETCH: Mapping[str, McpTool] = {one.tool.name: one for one in (SEARCH, FETCH)}

INSTRUCTIONS: Mapping[str, Mapping[str, str]] = {
    "default": {
        "en": "Long-term memory of earlier conversations. Call recall before you answer about the user or the past. "
        "Call remember for what will matter later, one fact for each call. Never remember what recall returned. "
        "Pass the ids of recall to correct and forget. Memories may be outdated; the newest one counts.",
        "zh": "以前对话的长期记忆。回答与用户或过去有关的问题之前，先调用 recall。以后用得到的内容用 remember 保存，"
        "每件事调用一次。不要保存 recall 返回的内容。更正和删除时，把 recall 给出的编号传给 correct 和 forget。"
        "记忆可能过时，以最新的为准。",
    },
    "search-fetch": {
        "en": "Memory of earlier conversations: search finds results, fetch returns one of them.",
        "zh": "以前对话的记忆：search 查找，fetch 返回其中一条。",
    },
    "graph": {
        "en": "A knowledge graph that lasts: entities with facts about them, and relations between them. Search it "
        "before you answer about the user or the past, and add what will matter later.",
        "zh": "长期保存的知识图谱：实体及其事实，以及实体之间的关系。"
        "回答与用户或过去有关的问题之前先查找；以后用得到的内容添加进去。",
    },
}
"""Instructions on a set of tools for the model of a client, by language; at most 400 characters."""
