"""From what a model wrote to data: find the JSON object, take only the form that was asked for.

Models write their thoughts first, put JSON into code fences, talk around it. All of that is survived; what is
inside the object is not guessed at. Anything else is a BadReply, whose text says what was wrong and never
quotes the reply.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from ebbtide.language.port import BadReply

MAX_STARTS = 20
"""So many opening braces are tried before a reply is given up."""

_TAG = re.compile(r"<(?P<ends>/?)(?P<name>think|thinking|thought)>", re.ASCII | re.IGNORECASE)
_DECODER = json.JSONDecoder()


def object_of(reply: str, key: str) -> dict[str, Any]:
    """The first JSON object of a reply that has `key`, thoughts before it left aside."""
    text = _without_thoughts(reply)
    if not text.strip():
        raise BadReply("the reply is empty")
    found = False
    start = text.find("{")
    for _ in range(MAX_STARTS):
        if start < 0:
            break
        try:
            value, end_at = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            start = text.find("{", start + 1)
            continue
        found = True
        if isinstance(value, dict) and key in value:
            return value
        start = text.find("{", end_at)
    raise BadReply("the reply has not the form asked for" if found else "the reply is not JSON")


def _without_thoughts(reply: str) -> str:
    """Return the reply without its thoughts, in one pass.

    A thought ends at the next end tag of its name. What precedes an end tag without a start is a thought, and so is
    what follows a start tag without an end.
    """
    tags = list(_TAG.finditer(reply))
    last_end = {tag["name"].lower(): tag.start() for tag in tags if tag["ends"]}
    parts: list[str] = []
    thought, begin, is_over = "", 0, False
    for tag in tags:
        name = tag["name"].lower()
        if thought:
            if tag["ends"] and name == thought:
                thought, begin = "", tag.end()
        elif tag["ends"]:
            parts, begin, is_over = [], tag.end(), False
        elif not is_over:
            parts += [reply[begin : tag.start()], " "]
            is_over = last_end.get(name, -1) < tag.start()
            thought = "" if is_over else name
        elif last_end.get(name, -1) > tag.start():
            thought = name
    return "".join(parts if is_over else [*parts, reply[begin:]])


def text_in(values: Mapping[str, Any], key: str) -> str:
    """A text of an object; BadReply for anything else."""
    value = values.get(key)
    if not isinstance(value, str):
        raise BadReply(f"{key} is not a text")
    return cleaned(value)


def texts_in(values: Mapping[str, Any], key: str) -> list[str]:
    """A list of texts of an object; BadReply for anything else."""
    value = values.get(key)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise BadReply(f"{key} is not a list of texts")
    return [cleaned(item) for item in value]


def numbers_in(values: Mapping[str, Any], key: str) -> list[int]:
    """A list of whole numbers, or a single one; BadReply for anything else."""
    value = values.get(key)
    items = value if isinstance(value, list) else [value]
    numbers = [n for n in items if isinstance(n, int) and not isinstance(n, bool)]
    if len(numbers) != len(items):
        raise BadReply(f"{key} is not a list of whole numbers")
    return numbers


def names_in(values: Mapping[str, Any], count: int) -> list[str]:
    """One name for each number from 0; both a list and an object with the numbers as keys will do."""
    names = values.get("names")
    if isinstance(names, dict):
        if not set(names) <= {str(n) for n in range(count)}:
            raise BadReply("names has numbers that were not asked for")
        names = [names.get(str(n), "") for n in range(count)]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise BadReply("names is not a name for each number")
    return [cleaned(name) for name in names]


def cleaned(text: str) -> str:
    """A text as the store takes it: no half of a surrogate pair, no control character but line breaks."""
    text = text.encode("utf-8", "replace").decode("utf-8")
    kept = (c if c in "\n\t" or unicodedata.category(c) != "Cc" else " " for c in text)
    return "".join(kept).strip()
