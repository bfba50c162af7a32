"""Memories as text for a language model, and speaker labels (memory model, sections 6 and 4).

The form is fixed byte for byte. Blocks are joined by a separator on a line of its own. White space inside a block
becomes single spaces, so no content can contain a separator. There are no ids and no scores.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ebbtide.han import contains_han

SEPARATOR = "\n---\n"
MEMORIES_OF_LOSS = 3
"""Most sentences about forgotten memories in one answer."""

_WHITE_SPACE = re.compile(r"\s+")


def one_line(text: str) -> str:
    """Return the text with every run of white space, including newlines, replaced by one space."""
    return _WHITE_SPACE.sub(" ", text)


def word_memory(content: str, locale: str) -> str:
    """Return the block of one memory."""
    mark = "[记忆] " if _is_chinese(content, locale) else "[Memory] "
    return mark + one_line(content)


def word_dangling(relation: str, teller: str, locale: str) -> str:
    """Return the block about a forgotten memory. `teller` is the content of the node with the link."""
    name = one_line(relation)
    if _is_chinese(teller, locale):
        if name:
            return f"[记忆] 它有个{name}，但我想不起来了"
        return "[记忆] 与某个已遗忘的事物有关联"
    if name:
        return f'[Memory] There was something it "{name}", but I can\'t recall it'
    return "[Memory] It was linked to something now forgotten"


def word_answer(contents: Iterable[str], once_known: Iterable[str], locale: str) -> str:
    """Return the text of an answer; empty if it contains nothing."""
    return SEPARATOR.join([*(word_memory(content, locale) for content in contents), *once_known])


def _is_chinese(text: str, locale: str) -> bool:
    return contains_han(text) if locale == "auto" else locale == "zh"


ROLE_LABELS = {
    "zh": {"user": "用户：", "assistant": "助手：", "system": "系统："},
    "en": {"user": "user: ", "assistant": "assistant: ", "system": "system: "},
}


def speaker_labels(spoken: Sequence[tuple[str, str, str]], setting: str, locale: str) -> list[str]:
    """Return the label of each (role, speaker, text) of a batch; empty if there is none.

    `auto`: the speaker if given, else the role if the batch mixes roles. `always`: the speaker or the role. `never`: no
    label. The role is named in the language of the text.
    """
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
