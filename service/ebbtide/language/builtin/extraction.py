"""Extraction of statements by closed rules: what a user says about himself and his relatives, in English and Chinese.

Precision comes first. A question, guess, wish, condition, report or quotation gives no statement, and neither does a
message that asks for a text or plays a role. Words after a colon are another voice's, unless the speaker leads to them.
`english_facts.py` and `chinese_facts.py` contain the forms of words.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from ebbtide.han import contains_han
from ebbtide.language.builtin import chinese_facts, english_facts
from ebbtide.language.builtin.finding import Finding, Kind
from ebbtide.language.builtin.word_lists import ordered_list

MAX_STATEMENTS: Final = 4
"""Most statements of one message."""

MAX_CHARS: Final = 4_000
MAX_SENTENCE_CHARS: Final = 400
MAX_OBJECT_CHARS: Final = 120


@dataclass(frozen=True, slots=True)
class Extracted:
    """A statement in a message, with its words as a range of characters."""

    offset: int
    length: int
    subject: str
    """I, 我, a relative such as "my sister", or a name."""
    slot: str
    object: str
    """Empty for the end of a partnership without a name."""
    kind: Kind = "fact"
    negated: bool = False
    planned: bool = False


_FICTION: Final = re.compile("|".join(ordered_list("fiction_markers")))
_QUOTES: Final = re.compile(r"[“”«»「」『』]|\"(?!\s*$)|(?<!\d)\"")
_END: Final = re.compile(r"[!?;。！？；\n…]+|\.{2,}|\.(?=\s|$|[\u4e00-\u9fff])")
_COLON: Final = re.compile(r"(?:[:：](?!\d)|(?<!\d)[:：])(?=\s?\w)(?!\s?[\w.+-]{1,40}@)")
"""A colon before words, not before a mail address; one between digits belongs to a time."""
_LEAD_BEGIN: Final = re.compile(r"[.,!?;，。！？；…\n(（]")
_OWN_LEAD: Final = re.compile("|".join(ordered_list("own_leads")))
_SPACE: Final = re.compile(r"\s*+")
_ABBREVIATION: Final = re.compile(r"\b(?:dr|mr|mrs|ms|st|prof|jr|sr|vs|no|approx|e\.g|i\.e|etc|dept)$")


def extract(text: str, people: Collection[str] = ()) -> list[Extracted]:
    """Return the statements in a message of a user, at most four, in order. Linear in the text's length.

    `people` are the names of persons whom the user has named: a sentence may be about one of them.
    """
    text = text[:MAX_CHARS]
    found: list[Extracted] = []
    if _FICTION.search(text.casefold()):
        return found
    text = _own_words(text)
    for begin, end, mark in _sentences(text):
        sentence = text[begin:end]
        if len(sentence) > MAX_SENTENCE_CHARS or _QUOTES.search(sentence):
            continue
        is_first = not text[:begin].strip()
        is_question = mark in "?？" and mark != ""
        for one in _findings(sentence, is_question=is_question, is_first=is_first, people=people):
            if len(found) == MAX_STATEMENTS:
                return found
            words = sentence[one.begin : one.end]
            lead = len(words) - len(words.lstrip(" ,，.、"))
            statement = Extracted(
                begin + one.begin + lead,
                len(words.strip(" ,，.、")),
                one.subject,
                one.slot,
                one.object.strip(),
                one.kind,
                one.is_negated,
                one.is_planned,
            )
            key = (statement.subject, statement.slot, statement.object)
            # Only the end of a partnership needs no value: it ends every one.
            least = 0 if one.is_negated and one.slot == "partner" else 1
            if least <= len(statement.object) <= MAX_OBJECT_CHARS and all(
                key != (each.subject, each.slot, each.object) for each in found
            ):
                found.append(statement)
    return found


def _own_words(text: str) -> str:
    """Return a text up to the first colon after which another voice may speak: a person, an example, a form."""
    begin = 0
    for colon in _COLON.finditer(text):
        for mark in _LEAD_BEGIN.finditer(text, begin, colon.start()):
            begin = mark.end()
        if not _OWN_LEAD.fullmatch(text[begin : colon.start()].casefold().replace("’", "'").strip()):
            return text[: colon.start()]
        begin = colon.end()
    return text


def _findings(
    sentence: str, *, is_question: bool, is_first: bool, people: Collection[str]
) -> Iterator[Finding]:
    facts = chinese_facts if contains_han(sentence) else english_facts
    yield from facts.findings(sentence, is_question, is_first=is_first, people=people)


def _sentences(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield where sentences begin and end, and the last mark of each: a question if there is a question mark."""
    begin = 0
    for match in _END.finditer(text):
        if match.group() == "." and _ABBREVIATION.search(text, max(begin, match.start() - 8), match.start()):
            continue
        begin = _SPACE.match(text, begin, match.start()).end()  # type: ignore[union-attr]
        if match.start() > begin:
            yield (
                begin,
                match.start(),
                next((mark for mark in match.group() if mark in "?？"), match.group()[-1]),
            )
        begin = match.end()
    begin = _SPACE.match(text, begin).end()  # type: ignore[union-attr]
    if begin < len(text):
        yield begin, len(text), ""
