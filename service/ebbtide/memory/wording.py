"""Memories as text for a language model, and speaker labels (memory model, sections 6 and 1).

The form is fixed byte for byte. Blocks are joined by a separator on a line of its own. White space inside a block
becomes single spaces, so no content can contain a separator. There are no ids and no scores.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from ebbtide.han import contains_han
from ebbtide.memory.slot_names import SLOTS, canonical, label
from ebbtide.memory.subjects import ASSISTANT, USER, relation_label

SEPARATOR = "\n---\n"
LOOSE_ENDS = 3
"""Most sentences about forgotten memories in one answer."""

_NONE: Mapping[str, str] = MappingProxyType({})

_BELONGED = ("它属于某个已遗忘的事物", "It belonged to something now forgotten")
_INVOLVED = ("它涉及某个已遗忘的事物", "It involved something now forgotten")
_DISCUSSED = ("它讨论过某个已遗忘的事物", "It discussed something now forgotten")
_MENTIONED = ("它提到过某个已遗忘的事物", "It mentioned something now forgotten")
_LINKED = ("与某个已遗忘的事物有关联", "It was linked to something now forgotten")
_BEFORE = ("在它之前还有一件事，但我想不起来了", "Something came before it, but I can't recall what")
_AFTER = ("在它之后还有一件事，但我想不起来了", "Something came after it, but I can't recall what")
_SENTENCES = {
    "属于": _BELONGED,
    "belongs to": _BELONGED,
    "涉及": _INVOLVED,
    "involves": _INVOLVED,
    "讨论": _DISCUSSED,
    "discusses": _DISCUSSED,
    "提到": _MENTIONED,
    "mentions": _MENTIONED,
    "关于": _LINKED,
    "about": _LINKED,
    "": _LINKED,
    "上文": _BEFORE,
    "previous": _BEFORE,
    "之前": _BEFORE,
    "before": _BEFORE,
    "下文": _AFTER,
    "next": _AFTER,
    "之后": _AFTER,
    "after": _AFTER,
}
"""The sentence about a forgotten memory, by the folded name of the link to it: Chinese and English."""

ORDER_NAMES = frozenset(name for name, pair in _SENTENCES.items() if pair in (_BEFORE, _AFTER))
"""Names of links that state only an order."""


def one_line(text: str) -> str:
    """Return the text with every run of white space, including newlines, replaced by one space."""
    # Splitting takes a quarter of the time of a pattern, and differs only at both ends.
    line = " ".join(text.split())
    if not line:
        return " " if text else ""
    return f"{' ' * text[0].isspace()}{line}{' ' * text[-1].isspace()}"


def word_memory(content: str, locale: str, label: str = "", date: str = "") -> str:
    """Return the block of one memory, with the date if there is one."""
    mark = "[记忆] " if _is_chinese(content, locale) else "[Memory] "
    return one_line(mark + (date and f"[{date}] ") + label + content)


def word_record(content: str, locale: str, label: str, date: str = "") -> str:
    """Return the block of one record, with the date if there is one."""
    mark = "[记录] " if _is_chinese(content, locale) else "[Record] "
    return one_line(mark + (date and f"[{date}] ") + label + content)


_VERBS = frozenset(
    [
        *(
            "住在",
            "居住",
            "居住在",
            "现居",
            "搬到",
            "搬去",
            "搬家到",
            "生于",
            "来自",
            "叫",
            "就职于",
            "入职",
            "跳槽到",
        ),
        *("喜欢", "爱", "喜爱", "爱吃", "不喜欢", "讨厌", "会说", "说", "擅长", "打算"),
    ]
)
"""Chinese topics that are the verb of a sentence."""

_PERSONS = {USER: "用户", ASSISTANT: "助手"}


def word_statement(
    subject: str, topic: str, value: str, *, negated: bool = False, attributes: Mapping[str, str] = _NONE
) -> str:
    """Return the sentence of a statement that was made without one, in the language of its topic and value.

    `user residence Lisbon`, 用户的住址：里斯本, `user has no employer`. It has the words of the value, the attributes
    and an unknown topic.
    """
    if not contains_han("\n".join((topic, value, *attributes, *attributes.values()))):
        if negated and not value:
            is_known = (slot := canonical(topic)) in SLOTS
            topic = f"has no {label(slot, 'en')}" if is_known else f"not {topic}"
        parts = [subject, topic, "not" if negated and value else "", value]
        further = ", ".join(f"{name}: {text}" for name, text in attributes.items())
        return " ".join(part for part in parts if part) + (f" ({further})" if further else "")
    further = "，".join(f"{name}：{text}" for name, text in attributes.items())
    return _chinese_sentence(_in_chinese(subject), topic, value, negated) + (
        f"（{further}）" if further else ""
    )


def word_value(slot: str, value: str, *, negated: bool, is_chinese: bool) -> str:
    """Return the value of a statement, or the denial of it: `not Porto`, `none`, or `no` for a topic of no slot."""
    if not negated:
        return value
    if not value:
        chinese, english = ("无", "none") if slot in SLOTS else ("否", "no")
        return chinese if is_chinese else english
    return f"不是{value}" if is_chinese else f"not {value}"


def _chinese_sentence(who: str, topic: str, value: str, negated: bool) -> str:
    known = label(canonical(topic), "zh")
    words = topic if contains_han(topic) or not contains_han(known) else known
    if "…" in words:
        return f"{who}{'不' if negated else ''}{words.replace('…', value)}"
    if words in _VERBS:
        no = ("并非" if words.startswith("不") else "不") if negated else ""
        return f"{who}{no}{words}{value}"
    if words.startswith("最"):
        return f"{who}{words}{'不是' if negated else '是'}{value}"
    if not value:
        return f"{who}没有{words}" if negated else f"{who}的{words}"
    return f"{who}的{words}{'不是' if negated else '：'}{value}"


def _in_chinese(subject: str) -> str:
    """Return the name of a subject in Chinese, also that of a relative: `user's sister` is 用户的姐妹."""
    owner, is_owned, kin = subject.partition("'s ")
    if is_owned and owner in _PERSONS and (relation := relation_label(kin)):
        return f"{_PERSONS[owner]}的{relation}"
    return _PERSONS.get(subject, subject)


def word_dangling(relation: str, content: str, locale: str) -> str:
    """Return the block about a forgotten memory. `content` is that of the memory with the link."""
    name, is_chinese = one_line(relation), _is_chinese(content, locale)
    sentences = _SENTENCES.get(name.casefold())
    if sentences is not None:
        return f"[记忆] {sentences[0]}" if is_chinese else f"[Memory] {sentences[1]}"
    if is_chinese:
        return f"[记忆] 它有个{name}，但我想不起来了"
    return f'[Memory] It had to do with "{name}", but I can\'t recall how'


def word_entity(name: str, *, knows_more: bool, is_chinese: bool) -> str:
    """Return the block about forgotten memories of an entity. `knows_more`: another memory of it lives."""
    if is_chinese:
        known = "我还知道过别的" if knows_more else "我曾经知道些什么"
        return one_line(f"[记忆] 关于{name}，{known}，但想不起来了")
    known = "more" if knows_more else "something"
    return one_line(f"[Memory] I once knew {known} about {name}, but I can't recall it")


def joined(blocks: Iterable[str]) -> str:
    """Return the text of an answer from its blocks; empty if there are none."""
    return SEPARATOR.join(blocks)


def _is_chinese(text: str, locale: str) -> bool:
    return contains_han(text) if locale == "auto" else locale == "zh"


ROLE_LABELS = {
    "zh": {"user": "用户：", "assistant": "助手：", "system": "系统：", "tool": "工具："},
    "en": {"user": "user: ", "assistant": "assistant: ", "system": "system: ", "tool": "tool: "},
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
