"""The ids of agents, nodes, batches and messages: their types, their text forms, and how each is parsed."""

from __future__ import annotations

import unicodedata
from typing import NewType

from ebbtide.bounds import Id
from ebbtide.errors import FieldViolation, InvalidRequest, no_batch, no_node, no_ruling

AgentId = NewType("AgentId", str)
"""The id of an agent. Only `parse_agent_id` creates one from a request."""

NodeId = Id
"""The id of a node: from 1 upward, never reused."""

MAX_AGENT_ID_LENGTH = 128


def parse_agent_id(text: str) -> AgentId:
    """Return `text` as an agent id. Raise INVALID_AGENT_ID if it is invalid.

    An id has 1 to 128 code points of any script, and is compared byte for byte. Not allowed: `/`, `\\`, control
    characters, surrogates, white space or a dot at either end, and any text that is not in NFC, since two ids that
    look the same must be the same.
    """
    problem = _agent_id_problem(text)
    if problem is None:
        return AgentId(text)
    shown = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text[:40])
    message = f"agent_id '{shown}' {problem}; allowed: 1-{MAX_AGENT_ID_LENGTH} characters of any script"
    raise InvalidRequest(
        message,
        reason="INVALID_AGENT_ID",
        violations=[FieldViolation("agent_id", problem)],
    )


def _agent_id_problem(text: str) -> str | None:
    if not text:
        return "is empty"
    if len(text) > MAX_AGENT_ID_LENGTH:
        return f"has {len(text)} characters"
    if text[0] == "." or text[-1] == ".":
        return "begins or ends with a dot"
    if text[0].isspace() or text[-1].isspace():
        return "begins or ends with white space"
    for character in text:
        if character in "/\\":
            return "contains a slash or backslash"
        # Cc controls, Cs surrogates, Zl/Zp line breaks that a log reader may honour.
        if unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp"):
            return f"contains the control character U+{ord(character):04X}"
    if not unicodedata.is_normalized("NFC", text):
        return "is not in Unicode normal form C"
    return None


def node_text_id(node_id: NodeId) -> str:
    """Return the text form of a node id: `n` and the number."""
    return f"n{node_id}"


def node_number(text: str) -> NodeId | None:
    """Return the node id of a text form, or None for any other text."""
    return _numbered(text, "n")


def parse_node_id(text: str) -> NodeId:
    """Return the node id of a text form. Raise NODE_NOT_FOUND for any other text."""
    number = node_number(text)
    if number is None:
        raise no_node()
    return number


def batch_text_id(number: int) -> str:
    """Return the text form of a batch number: `b` and the number."""
    return f"b{number}"


def parse_batch_id(text: str) -> int:
    """Return the batch number of a text form. Raise BATCH_NOT_FOUND for any other text."""
    number = _numbered(text, "b")
    if number is None:
        raise no_batch()
    return number


def ruling_text_id(number: int) -> str:
    """Return the text form of the entry number of a ruling: `r` and the number."""
    return f"r{number}"


def parse_ruling_id(text: str) -> int:
    """Return the entry number of a text form. Raise RULING_NOT_FOUND for any other text."""
    number = _numbered(text, "r")
    if number is None:
        raise no_ruling()
    return number


def message_text_id(number: int) -> str:
    """Return the text form of a message number: `m` and the number."""
    return f"m{number}"


def message_number(text: str) -> int | None:
    """Return the message number of a text form, or None for any other text."""
    return _numbered(text, "m")


def _numbered(text: str, letter: str) -> int | None:
    digits = text[1:]
    plain = digits.isascii() and digits.isdigit() and len(digits) <= 19 and digits[0] != "0"
    return int(digits) if text[:1] == letter and plain else None
