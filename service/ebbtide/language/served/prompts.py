"""Build the prompts for a model server: instructions, data, reply schema and reply length.

The instructions are files in Chinese and English with fewer than 1000 tokens each. Conversation data is embedded as
JSON between two marks that contain its hash, so that no text can contain its own end mark or imitate another message.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from string import Template
from typing import Any, Literal

from ebbtide.language.builtin.scripts import is_dense
from ebbtide.language.port import Utterance
from ebbtide.language.served.replies import (
    MAX_KEYWORD_CHARS,
    MAX_KEYWORDS,
    MAX_PHRASE_CHARS,
    MAX_PLANNED_TOPICS,
    MAX_RELATION_CHARS,
    TOLERANCE,
)
from ebbtide.language.tokens import estimate
from ebbtide.statements import STATEMENT_KINDS as ALL_KINDS

Task = Literal["segment", "process", "shorten", "relate", "extract", "plan"]
LOCALES = ("zh", "en")

TEMPLATE_TOKENS = 40
"""Tokens that a server's chat template adds to two messages."""

MAX_SEGMENT_MESSAGES = 8
"""A segment rarely spans more messages."""

PROCESS_REPLY_TOKENS = 260
RELATION_REPLY_TOKENS = 24
"""Tokens of a phrase with keywords, and of one relation name."""

PLAN_REPLY_TOKENS = 120
"""Tokens of the plan of a search."""

STATEMENTS_REPLY_TOKENS = 60
MESSAGE_REPLY_TOKENS = 50
"""Tokens of a reply with statements: at least, and for each message."""

MAX_EXTRACTION_MESSAGES = 10
"""Most messages that statements are extracted from in one request."""

MAX_STATEMENTS = 12
"""Most statements in a reply."""

STATEMENT_KINDS = ("fact", "preference", "relation", "opinion", "event", "task")


@dataclass(frozen=True, slots=True)
class Prompt:
    """One request to a model server."""

    task: Task
    key: str
    """The member that every usable reply has."""
    system: str
    user: str
    schema: dict[str, Any]
    reply_tokens: int

    @property
    def prompt_tokens(self) -> int:
        """Return a high estimate of the tokens of the prompt."""
        return estimate(self.system) + estimate(self.user) + TEMPLATE_TOKENS


def segment_prompt(said: Sequence[Utterance], max_chars: int) -> Prompt:
    """Ask for the segments of these messages."""
    lines = [
        _json({"message": index, "who": message.speaker or message.role, "says": message.text})
        for index, message in enumerate(said)
    ]
    length = sum(len(message.text) for message in said)
    # A small model may never stop. The schema makes it end within the tokens of the reply.
    most = 1 + len(said) + length // 80
    longest = min(2 * max_chars, length + 40)
    one = _object(
        messages={
            "type": "array",
            # Only existing numbers: small models tend to count on.
            "items": {"type": "integer", "enum": list(range(len(said)))},
            "minItems": 1,
            "maxItems": min(len(said), MAX_SEGMENT_MESSAGES),
        },
        text={"type": "string", "maxLength": longest},
    )
    reply = round(1.4 * sum(estimate(message.text) for message in said)) + 50 * most + 120
    return _make_prompt(
        "segment",
        "segments",
        "\n".join(lines),
        "".join(message.text for message in said),
        _object(segments={"type": "array", "items": one, "minItems": 1, "maxItems": most}),
        reply,
        limit=max_chars,
    )


def process_prompt(text: str) -> Prompt:
    """Ask for a summary and keywords of a text."""
    return _make_prompt(
        "process", "phrase", _json({"text": text}), text, _object(**_summary()), PROCESS_REPLY_TOKENS
    )


def shorten_prompt(text: str, target: int) -> Prompt:
    """Ask for a text in at most so many characters."""
    most = max(1, int(target * TOLERANCE))
    schema = _object(content={"type": "string", "maxLength": most}, **_summary())
    tokens_per_char = estimate(text) / max(1, len(text))
    reply = round(1.5 * target * tokens_per_char) + PROCESS_REPLY_TOKENS
    return _make_prompt("shorten", "content", _json({"text": text}), text, schema, reply, limit=target)


def relate_prompt(node: str, others: Sequence[str]) -> Prompt:
    """Ask for the relation of a memory to each of the others."""
    data = _json({"memory": node, "others": {str(i): text for i, text in enumerate(others)}})
    name = {"type": "string", "maxLength": MAX_RELATION_CHARS}
    names = _object(**{str(i): name for i in range(len(others))})
    reply = 60 + RELATION_REPLY_TOKENS * len(others)
    return _make_prompt("relate", "names", data, node, _object(names=names), reply)


def extract_prompt(said: Sequence[Utterance], topics: Sequence[str], *, is_repeated: bool = False) -> Prompt:
    """Ask for the statements in these messages.

    A reply has room for about one statement of each message. A repeated request has room for the longest reply, since
    one message may contain several.
    """
    lines = [
        _json(
            {
                "message": index,
                "role": message.role,
                "who": message.speaker or message.role,
                "says": message.text,
            }
        )
        for index, message in enumerate(said)
    ]
    one = _object(
        message={"type": "integer", "enum": [i for i, message in enumerate(said) if message.role == "user"]},
        quote={"type": "string", "maxLength": 200},
        subject={"type": "string", "maxLength": 40},
        kind={"type": "string", "enum": list(STATEMENT_KINDS)},
        topic={"type": "string", "maxLength": 24},
        object={"type": "string", "maxLength": 80},
        negated={"type": "boolean"},
        reported={"type": "boolean"},
    )
    count = MAX_EXTRACTION_MESSAGES if is_repeated else len(said)
    return _make_prompt(
        "extract",
        "statements",
        "\n".join(lines),
        "".join(message.text for message in said),
        _object(statements={"type": "array", "items": one, "maxItems": MAX_STATEMENTS}),
        STATEMENTS_REPLY_TOKENS + MESSAGE_REPLY_TOKENS * count,
        slots=", ".join(topics),
    )


def plan_prompt(question: str, today: str) -> Prompt:
    """Ask for the plan of a search."""
    day = {"type": "string", "maxLength": len(today)}
    topic = {"type": "string", "maxLength": MAX_KEYWORD_CHARS}
    schema = _object(
        kinds={"type": "array", "items": {"type": "string", "enum": sorted(ALL_KINDS)}, "maxItems": 7},
        topics={"type": "array", "items": topic, "maxItems": MAX_PLANNED_TOPICS},
        since=day,
        until=day,
        expand={"type": "boolean"},
    )
    data = _json({"question": question, "today": today})
    return _make_prompt("plan", "topics", data, question, schema, PLAN_REPLY_TOKENS)


def overhead_tokens(task: Task) -> int:
    """Return the tokens of a task's prompt without its data, in the longer language."""
    return max(sum(map(estimate, _template(task, locale))) for locale in LOCALES) + TEMPLATE_TOKENS + 20


def without_bounds(schema: Any) -> Any:
    """Return the schema without length bounds, which some servers do not support."""
    if isinstance(schema, dict):
        bounds = ("maxLength", "minItems", "maxItems")
        return {name: without_bounds(value) for name, value in schema.items() if name not in bounds}
    return [without_bounds(item) for item in schema] if isinstance(schema, list) else schema


def _make_prompt(
    task: Task,
    key: str,
    data: str,
    spoken: str,
    schema: dict[str, Any],
    reply_tokens: int,
    limit: int = 0,
    slots: str = "",
) -> Prompt:
    system, user = _template(task, "zh" if is_dense(spoken) else "en")
    mark = hashlib.blake2b(data.encode("utf-8", "replace"), digest_size=4).hexdigest()
    return Prompt(
        task,
        key,
        Template(system).substitute(limit=limit, slots=slots),
        Template(user).substitute(mark=mark, data=data, limit=limit),
        schema,
        reply_tokens,
    )


@cache
def _template(task: Task, locale: str) -> tuple[str, str]:
    folder = resources.files("ebbtide.language") / "prompts"
    text = (folder / f"{task}.{locale}.txt").read_text(encoding="utf-8")
    system, _, user = text.partition("\n---\n")
    return system.strip(), user.strip()


def _summary() -> dict[str, Any]:
    keyword = {"type": "string", "maxLength": MAX_KEYWORD_CHARS}
    return {
        "phrase": {"type": "string", "maxLength": MAX_PHRASE_CHARS},
        "keywords": {"type": "array", "items": keyword, "minItems": 1, "maxItems": MAX_KEYWORDS},
    }


def _object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
