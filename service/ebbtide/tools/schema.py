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
Kind = Literal["text", "texts", "integer", "number", "flag", "time", "time_range", "attributes"]

MAX_TEXT_CHARS = 4_000
"""Most characters of an argument, where its parameter states no other limit."""

MAX_ITEMS = 50
"""Most items of a list in an argument, where its parameter states no other limit."""


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
    bounds: tuple[float, float] | None = None
    max_chars: int = MAX_TEXT_CHARS
    max_items: int = MAX_ITEMS
    separator: str = ", "
    """Text between the items of a list that a model sends for one text."""
    is_strict: bool = False
    """Whether a value that cannot be read is refused instead of dropped, because the call would mean something else."""
    yes: frozenset[str] = frozenset()
    """Further words for true in a flag."""

    def schema(self, language: Language) -> dict[str, Any]:
        """Return the JSON schema of the parameter."""
        one: dict[str, Any] = dict(SCHEMAS[self.kind])
        if self.choices:
            enum = {"enum": list(self.choices)}
            one |= {"items": one["items"] | enum} if "items" in one else enum
        if self.bounds:
            one["minimum"], one["maximum"] = self.bounds
        if self.default is not None:
            one["default"] = self.default
        return {**one, "description": self.en if language == "en" else self.zh}


SCHEMAS: Mapping[Kind, Mapping[str, Any]] = {
    "text": {"type": "string"},
    "texts": {"type": "array", "items": {"type": "string"}},
    "integer": {"type": "integer"},
    "number": {"type": "number"},
    "attributes": {"type": "object", "additionalProperties": {"type": "string"}},
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
    one_of: tuple[str, ...] = ()
    """Parameters of which a call has at least one."""

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

MEMORY_TYPES: Mapping[str, tuple[str, ...]] = {
    "fact": (
        "facts",
        "information",
        "info",
        "knowledge",
        "semantic",
        "state",
        "attribute",
        "profile",
        "事实",
        "信息",
    ),
    "event": ("events", "episode", "episodic", "experience", "activity", "action", "事件", "经历"),
    "relation": ("relations", "relationship", "person", "contact", "关系", "人际关系"),
    "opinion": ("opinions", "belief", "view", "thought", "观点", "看法"),
    "preference": ("preferences", "like", "likes", "dislike", "interest", "偏好", "喜好"),
    "task": ("tasks", "todo", "to_do", "reminder", "goal", "plan", "任务", "待办", "提醒"),
    "reflection": ("reflections", "insight", "summary", "lesson", "反思", "总结"),
}

RELATIONS: Mapping[str, tuple[str, ...]] = {
    "causes": ("cause", "leads to", "leads_to", "results in", "导致", "所以", "引起"),
    "caused_by": ("caused by", "because", "because_of", "due to", "因为", "由于"),
    "supports": ("support", "confirms", "支持"),
    "contradicts": ("contradict", "conflicts", "conflicts_with", "opposes", "矛盾", "反对"),
    "references": ("reference", "mentions", "cites", "引用"),
    "based_on": ("based on", "derived_from", "depends_on", "基于"),
    "related": ("related_to", "relates_to", "associated", "similar", "links", "相关", "有关"),
}

DENIALS = frozenset(
    [
        *(
            "not",
            "not true",
            "not any more",
            "not anymore",
            "no longer",
            "no longer true",
            "never",
            "negated",
            "negative",
        ),
        *("denied", "不", "不是", "不再", "不再是", "再也不", "已经不", "没", "没有", "从不", "从来不"),
        *("否定", "不成立", "不再成立"),
    ]
)
"""Words that models send as `negated` for a value that is not or no longer true. "No" alone means false."""

CREATE_MEMORY = Tool(
    "create_memory",
    "Store one lasting fact as subject, topic and value. Use it for facts about the user that stay true for long: "
    "home, work, family, health, preferences, plans. One call for each fact.",
    "把一条长期有用的事实存为主语、属性和值。用于长期成立的用户信息：住址、工作、家人、健康、偏好、计划。每条事实调用一次。",
    (
        Parameter(
            "subject",
            "text",
            "The person or thing: user for the user, or a name.",
            "人或事物：用户写 user，其他写名字。",
            is_required=True,
            aliases=("entity", "person", "who", "name", "主语", "主体", "对象人"),
            max_chars=200,
        ),
        Parameter(
            "memory_type",
            "text",
            "fact, event, relation, opinion, preference, task or reflection.",
            "fact 事实、event 事件、relation 关系、opinion 观点、preference 偏好、task 任务、reflection 反思。",
            aliases=("type", "kind", "category", "memorytype", "类型", "记忆类型"),
            choices=MEMORY_TYPES,
            default="fact",
        ),
        Parameter(
            "topic",
            "text",
            "The property in one to three words: residence, occupation, allergy, likes.",
            "属性，用一到三个词：住址、职业、过敏、喜欢。",
            is_required=True,
            aliases=(
                "predicate",
                "relation",
                "attribute",
                "property",
                "key",
                "field",
                "slot",
                "属性",
                "主题",
                "话题",
                "谓语",
            ),
            max_chars=64,
        ),
        Parameter(
            "object",
            "text",
            "The value.",
            "值。",
            aliases=("value", "content", "description", "text", "memory", "值", "内容", "宾语"),
            max_chars=500,
        ),
        Parameter(
            "sentence",
            "text",
            "The user's own words, such as I moved to Porto in May; they tell a change from a contradiction.",
            "用户的原话，例如“我五月搬到了青岛”；由它看出是变化还是矛盾。",
            aliases=(
                *("quote", "utterance", "original", "said", "source_text", "原话", "原文", "句子"),
                *("content", "text", "description", "memory", "内容"),
            ),
            max_chars=1_000,
        ),
        Parameter(
            "negated",
            "flag",
            "true if the value is not true or no longer true: I no longer eat meat.",
            "若这个值不成立或不再成立，则为 true，例如“我不再吃肉了”。",
            aliases=("is_negated", "negative", "denied", "not", "否定", "是否否定"),
            is_strict=True,
            yes=DENIALS,
        ),
        Parameter(
            "attributes",
            "attributes",
            "Further details as an object of texts.",
            "其他细节，写成文本对象。",
            aliases=("details", "metadata", "properties", "extra", "细节", "附加属性"),
        ),
        Parameter(
            "time",
            "time",
            "Since when it is true, or when it happens: 2026-05-01, yesterday, next Friday.",
            "从何时起成立，或何时发生：2026-05-01、昨天、下周五。",
            aliases=("since", "date", "when", "start", "timestamp", "时间", "日期"),
        ),
        Parameter(
            "importance",
            "number",
            "How important it is, 0 to 1.",
            "重要程度，0 到 1。",
            aliases=("weight", "priority", "score", "重要性", "重要程度"),
            default=0.5,
            bounds=(0, 1),
        ),
        Parameter(
            "replaces",
            "text",
            "Id of the memory that is no longer true because of this one, such as n12.",
            "因此不再成立的记忆的编号，例如 n12。",
            aliases=("replace", "supersedes", "updates", "old_memory", "替换", "取代"),
            max_chars=40,
        ),
    ),
    {
        "subject": "user",
        "memory_type": "fact",
        "topic": "residence",
        "object": "Porto",
        "sentence": "I moved to Porto in May.",
    },
)

LINK_MEMORIES = Tool(
    "link_memories",
    "Link two memories, each named by its id or by a description.",
    "把两条记忆连接起来，每条用编号或描述指明。",
    (
        Parameter(
            "source_memory_description",
            "text",
            "Id such as n12, or a description of the first memory.",
            "第一条记忆的编号（如 n12）或描述。",
            is_required=True,
            aliases=("source", "from", "source_memory", "source_id", "memory_a", "first", "源记忆", "来源"),
            max_chars=500,
        ),
        Parameter(
            "target_memory_description",
            "text",
            "Id such as n15, or a description of the second memory.",
            "第二条记忆的编号（如 n15）或描述。",
            is_required=True,
            aliases=("target", "to", "target_memory", "target_id", "memory_b", "second", "目标记忆", "目标"),
            max_chars=500,
        ),
        Parameter(
            "relation_type",
            "text",
            "causes, caused_by, supports, contradicts, references, based_on or related.",
            "causes 导致、caused_by 因为、supports 支持、contradicts 矛盾、references 引用、based_on 基于、"
            "related 相关。",
            aliases=("relation", "type", "relationship", "link_type", "关系", "关系类型"),
            choices=RELATIONS,
            default="related",
        ),
        Parameter(
            "importance",
            "number",
            "Strength of the link, above 0 to 1.",
            "连接强度，大于 0，最大 1。",
            aliases=("strength", "weight", "score", "强度", "重要性"),
            default=0.6,
            bounds=(0.01, 1),
        ),
    ),
    {"source_memory_description": "n12", "target_memory_description": "n15", "relation_type": "causes"},
)

SEARCH_MEMORIES = Tool(
    "search_memories",
    "Find facts that were stored with create_memory, each with its time, state and id.",
    "查找用 create_memory 保存的事实，返回时间、状态和编号。",
    (
        Parameter(
            "query",
            "text",
            "The question, as a full sentence.",
            "问题，写成完整的句子。",
            is_required=True,
            aliases=("question", "q", "text", "search", "keywords", "topic", "问题", "查询"),
            max_chars=2_000,
        ),
        Parameter(
            "memory_types",
            "texts",
            "Only these types: fact, event, relation, opinion, preference, task, reflection.",
            "只要这些类型：fact、event、relation、opinion、preference、task、reflection。",
            aliases=("memory_type", "types", "type", "kinds", "kind", "类型", "记忆类型"),
            choices=MEMORY_TYPES,
            max_chars=40,
        ),
        Parameter(
            "time_range",
            "time_range",
            "Only what was said then: last week, May 2026, 2026-05-01.",
            "只要那时说的：上周、2026年5月、2026-05-01。",
            aliases=("time", "date", "when", "period", "range", "时间", "时间范围"),
        ),
        Parameter(
            "max_results",
            "integer",
            "Most facts in the answer.",
            "最多返回多少条。",
            aliases=("limit", "top_k", "k", "n", "count", "num_results", "数量"),
            default=10,
            bounds=(1, 50),
        ),
        Parameter(
            "expand_depth",
            "integer",
            "Links to follow from each fact that is found, 0 to 3.",
            "从找到的每条事实出发沿连接走几步，0 到 3。",
            aliases=("depth", "hops", "深度"),
            default=1,
            bounds=(0, 3),
        ),
        Parameter(
            "as_of",
            "time",
            "The time for which to answer, instead of now: 2025-12-31, last year.",
            "查询那时成立的事实，而不是现在：2025-12-31、去年。",
            aliases=("at", "as_of_date", "截至"),
        ),
    ),
    {"query": "Where does the user live?"},
)

UPDATE_MEMORY_IMPORTANCE = Tool(
    "update_memory_importance",
    "Set how important a memory is. Unimportant memories are forgotten sooner.",
    "设置一条记忆的重要程度。不重要的记忆会更早被遗忘。",
    (
        Parameter(
            "memory",
            "text",
            "Id such as n12, or a description of the memory.",
            "记忆的编号（如 n12）或描述。",
            is_required=True,
            aliases=("memory_id", "memory_description", "id", "description", "node_id", "记忆", "编号"),
            max_chars=500,
        ),
        Parameter(
            "importance",
            "number",
            "How important it is, 0 to 1.",
            "重要程度，0 到 1。",
            is_required=True,
            aliases=("weight", "priority", "score", "new_importance", "value", "重要性", "重要程度"),
            bounds=(0, 1),
        ),
    ),
    {"memory": "n12", "importance": 0.9},
)

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
            separator="\n",
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
    one_of=("topic", "memories"),
)

ALL = (REMEMBER, RECALL, CREATE_MEMORY, SEARCH_MEMORIES, LINK_MEMORIES, UPDATE_MEMORY_IMPORTANCE, FORGET)

TOOLS: Mapping[str, Tool] = {one.name: one for one in ALL}
"""Every tool by name, in the order in which models see them."""


@cache
def prompt(language: Language, role: Role) -> str:
    """Return the instructions on the tools for the system prompt of a model."""
    file = resources.files(__package__) / "prompts" / f"{role}.{language}.txt"
    return file.read_text(encoding="utf-8")
