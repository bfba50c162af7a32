"""The tools that a language model may call: their parameters, declared once, and the forms that vendors expect.

A parameter has its description in both languages, the words of its choices, and the other names that models use for
it. `reading.py` reads the arguments of a call by the same declaration.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any, Literal

Format = Literal["openai", "anthropic", "mcp"]
Language = Literal["en", "zh"]
Role = Literal["assistant", "archivist"]
Kind = Literal["text", "texts", "integer", "flag", "time", "time_range"]

MAX_TEXT_CHARS = 4_000
"""Most characters of an argument, where its parameter states no other limit."""

MAX_ITEMS = 50
"""Most items of a list in an argument."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a tool."""

    name: str
    kind: Kind
    en: str
    zh: str
    is_required: bool = False
    aliases: tuple[str, ...] = ()
    """Other names that models use for it."""
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The allowed words, and the synonyms of each."""
    default: Any = None
    bounds: tuple[int, int] | None = None
    max_chars: int = MAX_TEXT_CHARS

    def schema(self, language: Language) -> dict[str, Any]:
        """Return the JSON schema of the parameter."""
        one: dict[str, Any] = dict(SCHEMAS[self.kind])
        if self.choices:
            one["enum"] = list(self.choices)
        if self.bounds:
            one["minimum"], one["maximum"] = self.bounds
        if self.default is not None:
            one["default"] = self.default
        return {**one, "description": self.en if language == "en" else self.zh}


SCHEMAS: Mapping[Kind, Mapping[str, Any]] = {
    "text": {"type": "string"},
    "texts": {"type": "array", "items": {"type": "string"}},
    "integer": {"type": "integer"},
    "flag": {"type": "boolean"},
    "time": {"type": "string"},
    "time_range": {"type": "string"},
}
"""The JSON schema of each kind. A model writes times in words."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that a language model may call."""

    name: str
    en: str
    zh: str
    parameters: tuple[Parameter, ...]
    example: Mapping[str, Any]
    """Arguments of a good call, returned with a refusal."""
    is_strict: bool = False
    """Whether unknown and unreadable arguments are refused, since a misread call would destroy data."""

    def rendered(self, form: Format, language: Language) -> dict[str, Any]:
        """Return the declaration of the tool as a vendor or a protocol expects it."""
        schema = {
            "type": "object",
            "properties": {one.name: one.schema(language) for one in self.parameters},
            "required": [one.name for one in self.parameters if one.is_required],
            "additionalProperties": False,
        }
        description = self.en if language == "en" else self.zh
        if form == "openai":
            function = {"name": self.name, "description": description, "parameters": schema}
            return {"type": "function", "function": function}
        key = "input_schema" if form == "anthropic" else "inputSchema"
        return {"name": self.name, "description": description, key: schema}


ROLES_OF_SPEAKERS: Mapping[str, tuple[str, ...]] = {
    "user": ("human", "person", "customer", "用户", "客户", "人"),
    "assistant": ("ai", "bot", "agent", "model", "助手", "机器人", "模型"),
    "system": ("developer", "系统"),
}

REMEMBER = Tool(
    "remember",
    "Store what was said, in the same words. Use it for anything that may matter in a later conversation.",
    "把说过的话按原话存入记忆。凡是以后的对话可能用到的内容，都用它保存。",
    (
        Parameter(
            "content",
            "text",
            "The message, as a full sentence in the speaker's own words.",
            "说过的话，用说话人的原话写成完整的句子。",
            is_required=True,
            aliases=("text", "message", "messages", "memory", "value", "fact", "statement", "内容"),
            max_chars=20_000,
        ),
        Parameter(
            "role",
            "text",
            "Role of the speaker: user, assistant or system.",
            "说话人的角色：user 用户、assistant 助手、system 系统。",
            aliases=("author", "from", "角色"),
            choices=ROLES_OF_SPEAKERS,
            default="user",
        ),
        Parameter(
            "speaker",
            "text",
            "Name of the speaker, if known.",
            "说话人的名字（如果知道）。",
            aliases=("name", "user_name", "说话人", "姓名"),
            max_chars=200,
        ),
        Parameter(
            "time",
            "time",
            "When it was said, if not now: 2026-05-01, yesterday.",
            "说这句话的时间（如果不是现在）：2026-05-01、昨天。",
            aliases=("timestamp", "date", "when", "said_at", "时间"),
        ),
    ),
    {"content": "I moved to Porto in May.", "speaker": "Ann"},
)

RECALL = Tool(
    "recall",
    "Find what was said before that answers a question. Use it before you answer anything about the user or earlier "
    "conversations.",
    "查找以前说过的、能回答问题的内容。回答与用户或以前的对话有关的问题之前，先用它。",
    (
        Parameter(
            "query",
            "text",
            "The question, as a full sentence.",
            "问题，写成完整的句子。",
            is_required=True,
            aliases=("question", "q", "text", "search", "content", "topic", "keywords", "问题", "查询"),
            max_chars=2_000,
        ),
        Parameter(
            "time_range",
            "time_range",
            "Only what was said then: last week, May 2026, 2026-05-01.",
            "只要那时说的：上周、2026年5月、2026-05-01。",
            aliases=("time", "date", "when", "period", "range", "时间"),
        ),
        Parameter(
            "speakers",
            "texts",
            "Only what these speakers said.",
            "只要这些人说的。",
            aliases=("speaker", "name", "names", "who", "说话人"),
            max_chars=200,
        ),
        Parameter(
            "max_results",
            "integer",
            "Most memories in the answer.",
            "最多返回多少条记忆。",
            aliases=("limit", "top_k", "k", "n", "count", "num_results", "数量"),
            default=10,
            bounds=(1, 50),
        ),
    ),
    {"query": "Where does Ann live?"},
)

FORGET = Tool(
    "forget",
    "Erase memories permanently. Use it only if the user asks for it. Try it with dry_run=true first and name to the "
    "user what would be erased.",
    "永久删除记忆。只在用户要求时使用。先用 dry_run=true 试一次，并告诉用户将删除什么。",
    (
        Parameter(
            "topic",
            "text",
            "Every sentence and memory that names this is erased.",
            "凡是提到它的句子和记忆都会被删除。",
            aliases=("subject", "query", "content", "text", "about", "主题", "内容"),
            max_chars=200,
        ),
        Parameter(
            "memories",
            "texts",
            "Ids of memories, such as n12, instead of a topic.",
            "记忆的编号，例如 n12，用来代替主题。",
            aliases=("memory", "memory_id", "memory_ids", "ids", "id", "nodes", "node_ids", "编号"),
            max_chars=40,
        ),
        Parameter(
            "dry_run",
            "flag",
            "true: only report what would be erased.",
            "true：只报告将删除什么。",
            is_required=True,
            aliases=("preview", "test", "试运行"),
        ),
    ),
    {"topic": "Project Heron", "dry_run": True},
    is_strict=True,
)

TOOLS: Mapping[str, Tool] = {one.name: one for one in (REMEMBER, RECALL, FORGET)}
"""Every tool by name, in the order in which models see them."""


@cache
def prompt(language: Language, role: Role) -> str:
    """Return the instructions on the tools for the system prompt of a model."""
    file = resources.files(__package__) / "prompts" / f"{role}.{language}.txt"
    return file.read_text(encoding="utf-8")
