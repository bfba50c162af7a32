"""Relation names: the closed list, and the rules that choose a name (4.3, 4b)."""

from __future__ import annotations

import re
import unicodedata

from tests.support.oracle import has_han, one_space
from tests.support.second_edition.names import find_word, plain

BELONGS, ABOUT, INVOLVES, DISCUSSES, MENTIONS = "属于", "关于", "涉及", "讨论", "提到"
NEXT, PREVIOUS, AFTER, BEFORE = "下文", "上文", "之后", "之前"
ENGLISH = {
    BELONGS: "belongs to",
    ABOUT: "about",
    INVOLVES: "involves",
    DISCUSSES: "discusses",
    MENTIONS: "mentions",
    NEXT: "next",
    PREVIOUS: "previous",
    AFTER: "after",
    BEFORE: "before",
}
CHINESE = {english: chinese for chinese, english in ENGLISH.items()}
FIVE = [BELONGS, ABOUT, INVOLVES, DISCUSSES, MENTIONS]
ORDER = [NEXT, PREVIOUS, AFTER, BEFORE]


def relation_key(relation: str) -> str:
    """Return what two names of one relation have in common: letter case and language do not count (6)."""
    folded = relation.casefold()
    return CHINESE.get(folded, folded)


def in_locale(relation: str, locale: str) -> str:
    """Return a name of the closed list in this language (4b)."""
    return relation if locale == "zh" else ENGLISH[relation]


def name_of_answer(answer: str, locale: str) -> str | None:
    """Return the relation name that a language model answered, or None if the rule names the relation (4b)."""
    # CHOICE 9 (4b): one of the five counts in both languages and is stored in the batch's.
    text = answer.strip()
    key = relation_key(text)
    if key in FIVE:
        return in_locale(key, locale)
    # CHOICE 10 (4b): a noun is 1-4 Han characters, or 1-2 words of letters with - or ' inside; whether it is a noun is
    # not judged. The names of order (上文 之后 …) are no nouns.
    if key in ORDER:
        return None
    if 1 <= len(text) <= 4 and all(has_han(c) for c in text):
        return text
    words = text.split()
    if 1 <= len(words) <= 2 and all(re.fullmatch(r"[^\W\d_]+([-'][^\W\d_]+)*", word) for word in words):
        return None if has_han(text) else " ".join(words)
    return None


TALK_CHINESE = ["讨论", "商量", "开会", "聊", "谈", "评审"]
# CHOICE 11 (4b): inflected forms are those of English verbs and plurals; Chinese verbs have none (no 了 between).
TALK_ENGLISH = re.compile(
    r"\b(discuss(es|ed|ing)?|talk(s|ed|ing)? (about|with)|meetings?|debat(e|es|ed|ing)|review(s|ed|ing)?)\b"
)
FOLLOWS_CHINESE = ["需要", "影响", "采用", "使用", "用", "改", "支持"]
FOLLOWS_ENGLISH = re.compile(
    r"\b(with|us(e|es|ed|ing)|need(s|ed|ing)?|for|involv(e|es|ed|ing))\s+((the|an?)\s+)?$"
)
PART_OF = re.compile(r"\b(parts?|members?)\s+of\s+((the|an?)\s+)?$")


def folded(text: str) -> str:
    """Return the text in the form in which words are compared here: NFKC, casefolded, white space runs one space."""
    return one_space(unicodedata.normalize("NFKC", text).casefold())


def memory_entity_rule(content: str, keyword: str, is_first: bool) -> str:
    """Return the rule's relation between a memory and an entity X (4b), in Chinese."""
    # CHOICE 12 (4b): X is the memory's own keyword without outer marks, found as in 6 (a): Han as a substring, others
    # as a whole word. White space after a Chinese verb does not count.
    text, name = folded(content), plain(keyword).casefold()
    at = find_word(text, name) if name else -1
    if at >= 0:
        before, after = text[:at], text[at + len(name) :]
        if re.match(r"的|['’]s\b", after) or before.rstrip().endswith(BELONGS) or PART_OF.search(before):
            return BELONGS
    if any(word in text for word in TALK_CHINESE) or TALK_ENGLISH.search(text):
        return DISCUSSES
    if is_first:
        return ABOUT
    if at >= 0 and (before.rstrip().endswith(tuple(FOLLOWS_CHINESE)) or FOLLOWS_ENGLISH.search(before)):
        return INVOLVES
    return MENTIONS


def memory_memory_rule(common: set[str], first_keys: set[str]) -> str | None:
    """Return the rule's relation between a new memory and one in focus (4b), in Chinese.

    `common` are the keys of the entities that both have, `first_keys` the keys of either's first keyword. None means
    that they have none in common: 之后 from the earlier to the later, 之前 back.
    """
    if common & first_keys:
        return ABOUT
    return INVOLVES if common else None
