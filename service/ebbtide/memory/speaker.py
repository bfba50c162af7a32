"""Who spoke: the label at the start of a memory's content (memory model, section 4, `speaker_prefix`).

`auto`: `speaker: ` when a speaker is given, else the role when the batch mixes roles. `always`: the speaker,
else the role. `never`: no label. The role is named in the language of what was said.
"""

from __future__ import annotations

from collections.abc import Sequence

from ebbtide.han import contains_han
from ebbtide.memory.wording import one_line

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
