"""Extract a JSON object from a model's reply and check its fields.

Models write their reasoning first, use code fences and add prose. All of that is skipped. Invalid content raises
BadReply, whose text names the fault and never quotes the reply.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from ebbtide.language.port import BadReply

MAX_STARTS = 20
"""Opening braces that are tried."""

_TAG = re.compile(r"<(?P<ends>/?)(?P<name>think|thinking|thought)>", re.ASCII | re.IGNORECASE)
_DECODER = json.JSONDecoder()


def object_of(reply: str, key: str) -> dict[str, Any]:
    """Return the first JSON object with `key` after the model's reasoning."""
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
    raise BadReply("the reply lacks the expected member" if found else "the reply is not JSON")


def _without_thoughts(reply: str) -> str:
    """Return the reply without its reasoning, in one pass.

    Reasoning ends at the next end tag of its name. Text before an end tag without a start tag is reasoning, and so is
    text after a start tag without an end tag.
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
    """Return a text field. Raise BadReply for any other type."""
    value = values.get(key)
    if not isinstance(value, str):
        raise BadReply(f"{key} must be a string")
    return cleaned(value)


def texts_in(values: Mapping[str, Any], key: str) -> list[str]:
    """Return a field with a list of texts. Raise BadReply for any other type."""
    value = values.get(key)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise BadReply(f"{key} must be a list of strings")
    return [cleaned(item) for item in value]


def numbers_in(values: Mapping[str, Any], key: str) -> list[int]:
    """Return a field with a list of integers, or a single one. Raise BadReply for any other type."""
    value = values.get(key)
    items = value if isinstance(value, list) else [value]
    numbers = [n for n in items if isinstance(n, int) and not isinstance(n, bool)]
    if len(numbers) != len(items):
        raise BadReply(f"{key} must be a list of integers")
    return numbers


def flag_in(values: Mapping[str, Any], key: str) -> bool:
    """Return a field that is true or false, or false if it is missing. Raise BadReply for any other type."""
    value = values.get(key, False)
    if not isinstance(value, bool):
        raise BadReply(f"{key} must be true or false")
    return value


def names_in(values: Mapping[str, Any], count: int) -> list[str]:
    """Return one name for each index from 0, from a list or from an object with the indices as keys."""
    names = values.get("names")
    if isinstance(names, dict):
        if not set(names) <= {str(n) for n in range(count)}:
            raise BadReply("names contains unknown numbers")
        names = [names.get(str(n), "") for n in range(count)]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise BadReply("names must contain one name for each number")
    return [cleaned(name) for name in names]


def cleaned(text: str) -> str:
    """Return a text without lone surrogates and without control characters except line breaks and tabs."""
    text = text.encode("utf-8", "replace").decode("utf-8")
    kept = (c if c in "\n\t" or unicodedata.category(c) != "Cc" else " " for c in text)
    return "".join(kept).strip()
