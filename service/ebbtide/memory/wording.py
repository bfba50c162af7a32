"""Wording: memories as text for a language model (memory model, section 6, "Text form").

The form is fixed byte for byte. Blocks are joined by a separator on a line of its own; since white space
inside a block becomes single spaces, no content can write a separator. No ids, no scores.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ebbtide.han import contains_han

SEPARATOR = "\n---\n"
MEMORIES_OF_LOSS = 3
"""At most this many sentences about forgotten things in one answer."""

_WHITE_SPACE = re.compile(r"\s+")


def one_line(text: str) -> str:
    """The text with every run of white space, newlines included, as one space."""
    return _WHITE_SPACE.sub(" ", text)


def word_memory(content: str, locale: str) -> str:
    """One remembered block."""
    mark = "[记忆] " if _is_chinese(content, locale) else "[Memory] "
    return mark + one_line(content)


def word_dangling(relation: str, teller: str, locale: str) -> str:
    """One block about a forgotten thing; `teller` is the content of the node that has the link."""
    name = one_line(relation)
    if _is_chinese(teller, locale):
        if name:
            return f"[记忆] 它有个{name}，但我想不起来了"
        return "[记忆] 与某个已遗忘的事物有关联"
    if name:
        return f'[Memory] There was something it "{name}", but I can\'t recall it'
    return "[Memory] It was linked to something now forgotten"


def word_answer(contents: Iterable[str], once_known: Iterable[str], locale: str) -> str:
    """The whole text of an answer; empty when there is nothing to tell."""
    return SEPARATOR.join([*(word_memory(content, locale) for content in contents), *once_known])


def _is_chinese(text: str, locale: str) -> bool:
    return contains_han(text) if locale == "auto" else locale == "zh"


ROLE_LABELS = {
    "zh": {"user": "用户：", "assistant": "助手：", "system": "系统："},
    "en": {"user": "user: ", "assistant": "assistant: ", "system": "system: "},
}


def speaker_labels(spoken: Sequence[tuple[str, str, str]], setting: str, locale: str) -> list[str]:
    """The label of each (role, speaker, text) of a batch; empty where there is none."""
    mixed = len({role for role, _, _ in spoken}) > 1
    labels = []
    for role, speaker, text in spoken:
        if setting == "never":
            labels.append("")
        elif speaker.strip():
            labels.append(f"{one_line(speaker).strip()}: ")
        elif setting == "always" or mixed:
            language = locale if locale != "auto" else "zh" if contains_han(text) else "en"
            labels.append(ROLE_LABELS[language][role])
        else:
            labels.append("")
    return labels
