"""Agent ids: every text is refused or has a directory of its own, on any file system.

The unit tests of the store cover the directory itself.
"""

from __future__ import annotations

import unicodedata

from hypothesis import example, given
from hypothesis import strategies as st

from ebbtide.errors import InvalidRequest
from ebbtide.ids import AgentId, parse_agent_id
from ebbtide.store.directory.data_directory import directory_name
from tests.property import histories

SAFE = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_~-")

everything = st.characters(codec=None, categories=None)  # surrogates too
odd = st.sampled_from([
    ".", "..", "/", "\\", "a/b", "~", "~a", "-", "_", "a-", "-a", "A", "a", "ſ", "ss", "ß", "K", "K", "é",
    "e\u0301", "\u0301", "\ud800", "\x00", "a\x7f", "\u2028", " ", "a b", "\u200b", "\u202e", "con", "nul",
    "meta.json", ".erasing-a", "x" * 64, "x" * 65, "X" * 64, "猫" * 128, "猫" * 129, "", "\u00a0", "a\n",
])  # fmt: skip
candidates = st.one_of(
    odd,
    st.text(everything, max_size=130),
    st.from_regex(r"[a-z0-9_~-]{0,70}", fullmatch=True),
    st.lists(odd, max_size=3).map("".join),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=60).map(
        lambda text: unicodedata.normalize("NFC", text)
    ),
)


def refusal_of(text: str) -> InvalidRequest | None:
    """Return the refusal of a text as an id, or None if it is accepted."""
    try:
        parse_agent_id(text)
    except InvalidRequest as error:
        return error
    return None


def accepted(text: str) -> AgentId | None:
    """Return the id; or None if the text is refused, with the right reason and a bounded message."""
    refusal = refusal_of(text)
    if refusal is None:
        return parse_agent_id(text)
    assert refusal.reason == "INVALID_AGENT_ID"
    assert [violation.field for violation in refusal.violations] == ["agent_id"]
    assert len(refusal.message) < 700
    return None


def told_by(refusal: InvalidRequest) -> str:
    """Return all texts of a refusal."""
    return "".join([refusal.message, *(violation.description for violation in refusal.violations)])


@histories.examples(1000)
@given(text=candidates)
def test_a_refusal_cannot_forge_a_log_line(text: str) -> None:
    """A refusal echoes no control character, line break, surrogate or character that changes the text direction."""
    refusal = refusal_of(text)
    if refusal is not None:
        assert told_by(refusal).isprintable()
        told_by(refusal).encode()


@histories.examples(1000)
@given(text=candidates)
def test_a_refusal_is_printable(text: str) -> None:
    """A refusal echoes only printable characters, so it is safe in any header, terminal or log."""
    refusal = refusal_of(text)
    if refusal is not None:
        assert told_by(refusal).isprintable(), told_by(refusal)


@histories.examples(1000)
@given(text=candidates)
def test_refused_or_one_safe_path_component(text: str) -> None:
    """Any text is refused with INVALID_AGENT_ID, or names one safe directory."""
    agent_id = accepted(text)
    if agent_id is None:
        return
    assert agent_id == text, "an id is taken as it stands"
    name = directory_name(agent_id)
    assert 1 <= len(name) <= 64
    assert set(name) <= SAFE
    assert name == directory_name(agent_id)


@histories.examples(1000)
@given(text=candidates)
def test_accepted_ids_contain_no_forbidden_characters(text: str) -> None:
    """An accepted id has 1-128 encodable characters in NFC, without separators, controls or blanks at its ends."""
    if accepted(text) is None:
        return
    assert 1 <= len(text) <= 128
    assert unicodedata.normalize("NFC", text) == text
    assert text.encode("utf-8").decode("utf-8") == text
    assert not set(text) & set("/\\")
    assert not any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") for c in text)
    assert text == text.strip() and text.strip(".") == text


@histories.examples(1000)
@given(text=st.text(st.characters(categories=["L", "N", "P", "S", "M"]), min_size=1, max_size=128))
def test_ordinary_ids_of_any_script_are_accepted(text: str) -> None:
    """Letters, digits, marks and signs of any script form an id once normalised, unless a rule forbids it."""
    text = unicodedata.normalize("NFC", text)
    if len(text) <= 128 and not set(text) & set("/\\") and text.strip(".") == text:
        assert accepted(text) == text


@histories.examples(1000)
@given(one=candidates, other=candidates)
@example(one="ann", other="Ann")
@example(one="straße", other="STRASSE")
@example(one="x" * 64, other="x" * 65)
def test_two_ids_never_share_a_directory(one: str, other: str) -> None:
    """Different ids have different directories, also on a file system that folds case."""
    variants = [one, other, one.upper(), one.lower(), one.casefold(), one.swapcase(), f"~{one}"]
    ids = {agent_id for text in variants if (agent_id := accepted(text)) is not None}
    # The name of a directory is itself a text that a client may choose as an id.
    ids |= {AgentId(name) for agent_id in ids if accepted(name := directory_name(agent_id)) is not None}
    names = [directory_name(agent_id).casefold() for agent_id in ids]
    assert len(set(names)) == len(ids)
