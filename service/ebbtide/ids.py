"""The ids of agents, nodes, batches and messages: their types, their text forms, and how each is parsed."""

from __future__ import annotations

import unicodedata
from typing import NewType

from ebbtide.bounds import (
    Id,
)
from ebbtide.errors import FieldViolation, InvalidRequest, NotFound

AgentId = NewType("AgentId", str)
"""Whose memory it is. Made by `parse_agent_id` only."""


NodeId = Id
"""Given from 1 upward, never reused."""


MAX_AGENT_ID_LENGTH = 128


def parse_agent_id(text: str) -> AgentId:
    """Take `text` as an agent id, or say why it cannot be one.

    1-128 code points of any script, compared byte for byte. Refused: empty, longer, `/`, `\\`, controls,
    surrogates, leading or trailing white space or dot, anything not in NFC (two ids that look the same must
    be the same).
    """
    why = _agent_id_fault(text)
    if why is None:
        return AgentId(text)
    shown = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text[:40])
    message = f"agent_id '{shown}' {why}; allowed: 1-{MAX_AGENT_ID_LENGTH} characters of any script"
    raise InvalidRequest(
        message,
        reason="INVALID_AGENT_ID",
        violations=[FieldViolation("agent_id", why)],
    )


def _agent_id_fault(text: str) -> str | None:
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
    """The text form of a node id: `n` + base 10."""
    return f"n{node_id}"


def parse_node_id(text: str) -> NodeId:
    """The node id behind its text form; NODE_NOT_FOUND for anything that never was one."""
    number = _numbered(text, "n")
    if number is None:
        # What is no id may be anything, somebody's address too: it is not repeated.
        raise NotFound("there is no node of this id: ids are such as n1", reason="NODE_NOT_FOUND")
    return number


def batch_text_id(number: int) -> str:
    """The text form of a batch number: `b` + base 10."""
    return f"b{number}"


def parse_batch_id(text: str) -> int:
    """The batch number behind its text form; BATCH_NOT_FOUND for anything that never was one."""
    number = _numbered(text, "b")
    if number is None:
        raise NotFound("there is no batch of this id: ids are such as b1", reason="BATCH_NOT_FOUND")
    return number


def message_text_id(number: int) -> str:
    """The text form of a message number: `m` + base 10."""
    return f"m{number}"


def message_number(text: str) -> int | None:
    """The message number behind its text form; None for anything that never was one."""
    return _numbered(text, "m")


def _numbered(text: str, letter: str) -> int | None:
    digits = text[1:]
    plain = digits.isascii() and digits.isdigit() and len(digits) <= 19 and digits[0] != "0"
    return int(digits) if text[:1] == letter and plain else None
