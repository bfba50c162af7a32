"""Parse a query in natural language: what it names besides its words.

"What did Caroline say about 'late bloomers' last May?" names a speaker, a phrase and a time, asks for a thing, and
needs only `say` and `late bloomers` as search words. Nothing is guessed, and parsing takes linear time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ebbtide.retrieval.analysis import normalised
from ebbtide.retrieval.times import DateRange, Offset, date_ranges, utc

AsksFor = Literal["who", "when", "where", "how many", "what", "why", ""]
Recency = Literal["explicit", "implied", "possible", ""]

MAX_CHARACTERS = 10_000
"""Characters of a query that are read."""

MAX_PHRASES = 8


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A parsed query: its content words, quoted phrases, named speakers, dates, and what it asks for."""

    text: str
    """The query without question words, or all of it if nothing else is left."""
    phrases: tuple[str, ...]
    speakers: tuple[str, ...]
    """The known speakers that the query names, case-folded, in the order given."""
    dates: tuple[DateRange, ...]
    asks_for: AsksFor
    parts: tuple[str, ...]
    """The parts of a query that asks for several things, otherwise empty."""
    recency: Recency
    """Whether it expects the newest of several messages: its words say so, a question about the user implies it, or any
    other question for the present may; empty for the past."""
    addresses_assistant: bool
    """Whether its content contains "you", 你 or another word that may mean the assistant."""
    query: str
    """The query as it was given."""
    is_about_user: bool
    """Whether it contains "I", "my" or 我, and does not address the assistant."""

    @property
    def has_code(self) -> bool:
        """Whether it contains an error code, a long number, a URL, a path or another code token."""
        return _CODE.search(self.query) is not None


def parse_query(
    query: str, *, speakers: Sequence[str], reference_ms: int, offset: Offset = utc
) -> ParsedQuery:
    """Parse a query. Incomplete dates are resolved with the reference time; names are matched with `speakers`."""
    query = query[:MAX_CHARACTERS]
    content, dates = _content_words(query), tuple(date_ranges(query, reference_ms, offset))
    addresses_assistant = _ADDRESS.search(content) is not None
    return ParsedQuery(
        text=content,
        phrases=_phrases(query),
        speakers=_named(query, speakers),
        dates=dates,
        asks_for=_answer_kind(query),
        parts=parts_of(query),
        recency="" if addresses_assistant else _recency(query, has_dates=bool(dates)),
        addresses_assistant=addresses_assistant,
        query=query,
        is_about_user=not addresses_assistant and _ABOUT_USER.search(query) is not None,
    )


_QUOTED = (
    r"\"[^\"\n]++\"|“[^“”\n]++”|「[^「」\n]++」|『[^『』\n]++』|《[^《》\n]++》|‘[^‘’\n]++’(?!\w)"
    r"|(?<!\w)'[^'\n]++'(?!\w)"
)
_PHRASE = re.compile(_QUOTED)


def _phrases(query: str) -> tuple[str, ...]:
    inner = (match[0][1:-1].strip() for match in _PHRASE.finditer(query))
    return tuple(dict.fromkeys(phrase for phrase in inner if phrase))[:MAX_PHRASES]


# Speakers: a Latin name must match whole words, a Chinese one may occur anywhere. Longer names are matched first and
# removed, so that "Ann Lee" does not name Ann, nor 小明明 name 小明.

_HAN = "\u3005\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003134f"
_HAS_HAN = re.compile(f"[{_HAN}]")
_NO_LATIN = re.compile(rf"[\W_{_HAN}]++")
_POSSESSIVE = re.compile(r"['’]s(?![^\W_])")


def _named(query: str, speakers: Sequence[str]) -> tuple[str, ...]:
    folded = normalised(query)
    latin = _latin_words(folded)
    found = set()
    for speaker in sorted(set(speakers), key=lambda name: (-len(name), name)):
        name = normalised(speaker).strip()
        if _HAS_HAN.search(name):
            if name in folded:
                found.add(speaker)
                folded = folded.replace(name, "\n")
        elif (words := _latin_words(name)).strip() and words in latin:
            found.add(speaker)
            latin = latin.replace(words, " \n ")
    return tuple(dict.fromkeys(speaker.casefold() for speaker in speakers if speaker in found))


def _latin_words(folded: str) -> str:
    """Return the Latin words of a text, separated and surrounded by blanks, without the 's of a possessive."""
    return f" {_NO_LATIN.sub(' ', _POSSESSIVE.sub(' ', folded)).strip()} "


# The first question word decides what the query asks for, except a "when" or "where" that opens a clause ("when she
# moved, what did …").

_AUXILIARY = (
    r"(?:did|do|does|was|were|is|are|am|has|have|had|will|would|can|could|should|shall|might)"
    r"(?:n['’]t)?(?![a-z])"
)
_MEASURES = "个次位只本张条岁台辆种件家人回遍"
_ANSWER_PATTERNS: tuple[tuple[str, AsksFor, str], ...] = (
    ("many", "how many", rf"\bhow\s++(?:many|much|often)\b|(?<![好十])几[{_MEASURES}]|多少"),
    ("when", "when", r"\b(?:what|which)\s++(?:date|day|year|month|week|time)\b|\bhow\s++long\s++ago\b"
                     r"|什么时[候间]|何时|哪一?[年天月日]|几[月号点日]|多久(?:以|之)?前|\bwhen\b"),
    ("where", "where", r"\b(?:what|which)\s++(?:city|country|place|town|state)\b"
                       r"|什么地方|何处|何地|哪[里儿]|在哪|哪个(?:城市|国家|地方)|\bwhere\b"),
    ("why", "why", r"\bwhy\b|\bhow\s++come\b|\bfor\s++what\s++reason\b|为什么|为何|为啥|什么原因"),
    ("who", "who", r"\bwho(?:m|se)?\b|谁|哪一?位|什么人"),
    ("what", "what", r"\bwhat\b|\bwhich\b|什么|啥|哪[个些种家]"),
)  # fmt: skip
_ANSWER_PATTERN = re.compile(
    "|".join(f"(?P<{name}>{pattern})" for name, _, pattern in _ANSWER_PATTERNS), re.IGNORECASE
)
_ASKS_FOR = {name: asks_for for name, asks_for, _ in _ANSWER_PATTERNS}
_THEN_ASKS = re.compile(rf"['’]s\b|\s*+(?:$|[?？,]|(?<=\s){_AUXILIARY})", re.IGNORECASE)


def _answer_kind(query: str) -> AsksFor:
    opening: AsksFor = ""
    for match in _ANSWER_PATTERN.finditer(query):
        asks_for = _ASKS_FOR[match.lastgroup or ""]
        opens_clause = match[0].lower() in ("when", "where") and not _THEN_ASKS.match(query, match.end())
        if not opens_clause:
            return asks_for
        opening = opening or asks_for
    return opening


# Recency: "Where do I live now?" expects the newest message of several, and so does "Where do I live?". "Where does Ann
# live?" may, and so may a question with a date, but no question about the past. Nothing is known of a query of several
# sentences, because its words may belong to another one than the question.

_PAST = re.compile(
    r"\b(?:was|were|did|had|used\s++to|before|former(?:ly)?|old|previous(?:ly)?|original(?:ly)?|earlier|first|once"
    r"|back\s++then|until)\b|以前|之前|从前|原来|当时|曾|过去|那时|起初|最初|前任|上一|旧",
    re.IGNORECASE,
)
_PRESENT = re.compile(
    r"\b(?:now(?:adays)?|these\s++days|current(?:ly)?|still|latest|newest|at\s++(?:the\s++moment|present)|any\s?more)\b"
    r"|现在|目前|如今|最新|眼下|当前|还[有在是][^吗么]{0,30}+[吗么]",
    re.IGNORECASE,
)
_ABOUT_USER = re.compile(r"\b(?:I|me|my|mine)\b|我", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?。！？][\s\"'”’」』)）]*+(?=\S)")


def _recency(query: str, *, has_dates: bool) -> Recency:
    if _SENTENCE_END.search(query) or _PAST.search(query):
        return ""
    if has_dates:
        return "possible"
    if _PRESENT.search(query):
        return "explicit"
    return "implied" if _ABOUT_USER.search(query) else "possible"


_ADDRESS = re.compile(r"\b(?:you|your|yours|assistant|chatbot)\b|[你您]|助手|助理", re.IGNORECASE)


# Content words: polite phrases and question words are removed, quoted phrases stay.

_POLITE_PHRASES = (
    r"(?:(?:can|could|would|will)\s++you\s++)?(?:please\s++)?(?:tell|remind|show)\s++me\b(?:\s++(?:about|of)\b)?"
    r"|\bdo\s++you\s++(?:remember|know|recall)\b|\bi\s++(?:want|would\s++like|['’]d\s++like)\s++to\s++know\b"
    r"|\bi\s++wonder\b|\bplease\b|(?:请问|请(?:你)?(?:告诉|提醒)我|告诉我|你?还?记得|你知道|我?想知道|帮我(?:查|找)一?下)"
)
_QUESTION_WORDS = (
    rf"\bhow\s++(?:many|much|often|long|come)\b(?:\s++(?:times?|ago)\b)?(?:\s++{_AUXILIARY})?"
    r"|\bwhat\s++(?:kind|type|sort)s?\s++of\b"
    rf"|\b(?:what|which|who|whom|whose|when|where|why|how)\b(?:['’](?:s|re|d|ll)\b|\s++{_AUXILIARY})?"
    r"|[是在]?(?:什么(?:时[候间]|地方|人|原因|样的)?|谁|哪(?:里|儿|一?[个些位年天月日种家]))|为(?:什么|何|啥)"
    rf"|多少[个次]?|(?<![好十])几[{_MEASURES}月号点]|怎么样?|如何|何时|何处|何地|[在是]哪"
)
_FILLER = re.compile(
    rf"(?P<quoted>{_QUOTED})|(?P<filler>\b{_POLITE_PHRASES}|{_QUESTION_WORDS})|(?P<blank>\s++)", re.IGNORECASE
)
_OPENING = re.compile(rf"{_AUXILIARY}\s", re.IGNORECASE)
_EDGES = " \t\n,.;:?!，。；：？！、…"


def _content_words(query: str) -> str:
    left = _FILLER.sub(lambda match: match["quoted"] or " ", query)
    left = " ".join(left.split()).strip(_EDGES)
    if opening := _OPENING.match(left):
        left = left[opening.end() :]
    if left[-1:] in ("吗", "呢", "吧", "么"):
        left = left[:-1]
    return left.strip(_EDGES) or query.strip()


_CODE = re.compile(
    r"\bhttps?://|\bwww\.\w|\w@\w++\.\w"  # addresses
    r"|(?<![\w/])(?:~|\.{1,2})?/[\w.-]++/[\w.-]|\b[A-Za-z]:\\\w"  # paths
    r"|\w\.(?:py|js|ts|tsx|java|go|rs|c|cc|cpp|h|rb|php|sh|sql|json|ya?ml|toml|xml|html|css|md|txt|csv|log|conf|pdf)\b"
    r"|(?<!\d)\d{6,}"  # long numbers
    r"|(?<![\d.])\d{1,3}\.\d{1,3}\.\d{1,3}(?![\d])"  # versions, network addresses
    r"|(?<![A-Za-z0-9])[A-Z]{1,8}(?:-?\d{3,}|-\d{2,}|-\d{1,8}-\d)"  # E1234, ERR-42, CVE-2023-1
    r"|(?i:\b(?:error|errno|code|status|exit|exception)\b|错误码?|状态码|代码)(?:\s?[Cc]ode)?\s{0,2}[#:：]?\s{0,2}-?\d"
    r"|\b0x[0-9A-Fa-f]+|\b(?=[a-f]*+\d)(?=\d*+[a-f])[0-9a-f]{8,}+\b"
    r"|[A-Za-z0-9]_[A-Za-z0-9]|\w\(\)|\w::\w|(?<!\S)--[a-z]|`[^`\s]"  # names in programs
    r"|(?<![A-Za-z0-9])(?:[a-z]{2,}+(?:[A-Z][a-z0-9]++)++|(?:[A-Z][a-z0-9]++){3,}+"
    r"|(?!(?:Error|Exception)(?![A-Za-z]))[A-Z][A-Za-z]*+(?:(?<=Error)|(?<=Exception)))(?![A-Za-z0-9])"
)


# Parts: "When did Ann move, and what did Bob say of it?" asks for two things. A passage that answers one of them looks
# like half an answer, so each part is also searched separately. The query is split after a question that another one
# follows, and before a conjunction that opens one. Parts that ask nothing are dropped.

MAX_PARTS = 8

_PART_AUXILIARY = (
    r"(?:did|do|does|was|were|is|are|has|have|had|will|would|can|could|should)(?:n['’]t)?(?![a-z])"
)
_ALSO = r"(?:另外|还有|以及|并且|同时|此外)[，,]?\s*+"
_CUT = re.compile(
    rf"[?？][\"'”’」』)）]*+\s*+(?:{_ALSO}|(?:and|also|or|but)\b,?\s*+)?|[。！]\s*+(?:{_ALSO})?|[;；]\s*+"
    r"|(?:,\s++|(?<!\s)\s++)(?:and|but)\s++(?:also\s++)?(?=(?:what|how|why|when|where)\b|(?:who|whom|which)\s++"
    rf"{_PART_AUXILIARY})|[，,]\s*+{_ALSO}",
    re.IGNORECASE,
)
"""Separator between two parts."""

_PART_ASKS = re.compile(
    rf"\b(?:what|which|who|whom|whose|when|where|why|how)\b|^{_PART_AUXILIARY}"
    r"|什么|谁|哪|几|多少|多[久大长高远]|怎|如何|何[时处地]|为何|吗|呢$|是不是|有没有",
    re.IGNORECASE,
)


def parts_of(query: str) -> tuple[str, ...]:
    """Return the parts of a query in order, or an empty tuple unless there are several."""
    parts = [part for piece in _CUT.split(query) if _PART_ASKS.search(part := piece.strip())]
    return tuple(dict.fromkeys(parts))[:MAX_PARTS] if len(parts) > 1 else ()
