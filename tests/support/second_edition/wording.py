"""The text form of an answer, byte for byte (6)."""

from __future__ import annotations

from datetime import UTC, datetime

from tests.support.oracle import has_han, one_space
from tests.support.second_edition import relations
from tests.support.second_edition.records import Memory

SEPARATOR = "\n---\n"
SENTENCES = {
    relations.BELONGS: ("它属于某个已遗忘的事物", "It belonged to something now forgotten"),
    relations.INVOLVES: ("它涉及某个已遗忘的事物", "It involved something now forgotten"),
    relations.DISCUSSES: ("它讨论过某个已遗忘的事物", "It discussed something now forgotten"),
    relations.MENTIONS: ("它提到过某个已遗忘的事物", "It mentioned something now forgotten"),
    relations.ABOUT: ("与某个已遗忘的事物有关联", "It was linked to something now forgotten"),
    "": ("与某个已遗忘的事物有关联", "It was linked to something now forgotten"),
    relations.PREVIOUS: (
        "在它之前还有一件事，但我想不起来了",
        "Something came before it, but I can't recall what",
    ),
    relations.BEFORE: (
        "在它之前还有一件事，但我想不起来了",
        "Something came before it, but I can't recall what",
    ),
    relations.NEXT: (
        "在它之后还有一件事，但我想不起来了",
        "Something came after it, but I can't recall what",
    ),
    relations.AFTER: (
        "在它之后还有一件事，但我想不起来了",
        "Something came after it, but I can't recall what",
    ),
}


def language(locale: str, *texts: str) -> str:
    """Return the language of a block: `auto` is zh when one of these texts has Han (6)."""
    if locale != "auto":
        return locale
    return "zh" if any(has_han(text) for text in texts) else "en"


def block(chosen: str, zh: str, en: str) -> str:
    """Return a block: the tag of the language and the text, every run of white space one space."""
    # CHOICE 39 (6): white space runs are those of the whole block, so a content that begins with a space adds none.
    return one_space("[记忆] " + zh if chosen == "zh" else "[Memory] " + en)


def memory_block(memory: Memory, locale: str, dates: bool) -> str:
    """Return the block of a memory."""
    date = f"[{datetime.fromtimestamp(memory.created_at / 1000, UTC):%Y-%m-%d}] " if dates else ""
    text = date + memory.label + memory.content
    return block(language(locale, memory.content), text, text)


def something_block(name: str, locale: str, texts: list[str]) -> str:
    """Return the sentence for an entity of which no memory is left."""
    return block(
        language(locale, name, *texts),
        f"关于{name}，我曾经知道些什么，但想不起来了",
        f"I once knew something about {name}, but I can't recall it",
    )


def more_block(name: str, locale: str, texts: list[str]) -> str:
    """Return the sentence for an entity of which a memory was forgotten."""
    return block(
        language(locale, name, *texts),
        f"关于{name}，我还知道过别的，但想不起来了",
        f"I once knew more about {name}, but I can't recall it",
    )


def dangling_block(memory: Memory, relation: str, locale: str) -> str:
    """Return the sentence for a dangling link of a memory."""
    chosen = language(locale, memory.content)
    zh, en = SENTENCES.get(relations.relation_key(relation), ("", ""))
    if zh:
        return block(chosen, zh, en)
    return block(
        chosen,
        f"它有个{relation}，但我想不起来了",
        f'It had to do with "{relation}", but I can\'t recall how',
    )
