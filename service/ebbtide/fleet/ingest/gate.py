"""The acceptance gate: which of the statements that a language model lists are stored.

A model may invent, misread, cut off and repeat. A statement is stored only if the words of a message of the user
support each of its fields. A statement that fails one check is refused, and the reason is counted. The quote and the
object that are stored are slices of the message, not what the model wrote. Statements by rules pass the checks that
rules do not guarantee.

The gate is pure. It judges one message, or a part of one, with the messages before it. It does not judge whether a
statement is worth storing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, get_args

from ebbtide.entity_names import MAX_NAME_CHARS, MIN_SHORT_CHARS, entity_key, find_word, is_latin, is_name
from ebbtide.han import contains_han
from ebbtide.language.builtin.extraction import MAX_STATEMENTS
from ebbtide.language.builtin.negation import denies
from ebbtide.language.builtin.unsaid import asks_for_reminder, contains_pronoun, why_unsaid
from ebbtide.language.builtin.word_lists import word_list
from ebbtide.language.port import ProposedStatement
from ebbtide.memory.slot_names import ALIASES, FAVOURITE, KIN, canonical, slot_of
from ebbtide.memory.subjects import ASSISTANT, USER, subject_name
from ebbtide.memory.values import compare, normalised
from ebbtide.normalisation import is_hidden, nfkc, simplified
from ebbtide.privacy.spans import Span, find
from ebbtide.retrieval.questions import asks
from ebbtide.statements import StatementKind

Reason = Literal[
    "message",
    "role",
    "quote",
    "object",
    "subject",
    "kind",
    "topic",
    "negation",
    "question",
    "quotation",
    "unsaid",
    "echo",
    "personal",
    "secret",
    "repeated",
    "too_many",
    "max_statements",
]
"""Why a statement is not stored. docs/knowledge.md explains each."""
REASONS: Final[tuple[Reason, ...]] = get_args(Reason)

KINDS: Final = frozenset({"fact", "preference", "relation", "opinion", "event", "task"})

MODEL_CONFIDENCE: Final = 0.6
RULES_CONFIDENCE: Final = 0.9
OTHER_MESSAGE: Final = 0.2
"""Subtracted if the subject is named only in a message before."""

MAX_QUOTE_CHARS: Final = 200
MAX_SUBJECT_CHARS: Final = 40
MAX_OBJECT_CHARS: Final = 80
MAX_TOPIC_WORDS: Final = 3
MAX_TOPIC_HAN_CHARS: Final = 8
MAX_TOPIC_CHARS: Final = 64

_OUTER: Final = " .,;:!?。，；：！？、\"'“”‘’「」『』()（）…-"
_NUMBER_BEFORE: Final = re.compile(r"\d[.,:/-]$")
_LETTER_AFTER: Final = re.compile(r" ([^\W\d_])")
_I_AFTER: Final = re.compile(r" I\b")
_WORD_BEFORE: Final = re.compile(r"(?:^|[\s,;:(])([^\W\d_][\w'-]{1,40}) $")
_ENDS: Final = re.compile(r"[!?;。！？；\n]|\.(?=\s|$)")
_CLAUSE_BEGIN: Final = re.compile(
    r"(?:[,;:，；：、]|\b(?:and|but|because|so|since)\b)\s{0,3}(?=(?:i|i'm|i've|my|we|our|he|she|they)\b|[我咱俺他她])"
)
_CLAUSE_END: Final = re.compile(r"[,;，；、]")
_SELF_EN: Final = re.compile(
    r"(?<!\bwhat )(?<!\bthat )(?<!\bwhich )(?<!\bwho )(?<!\bas )(?<!\bthan )(?<!\bhow )(?<!\bwhen )\b(?:i|we)\b"
)
"""The speaker as the subject of a clause, not of one within it."""
_MINE_EN: Final = re.compile(r"\b(?:my|our) ((?:[\w'-]{1,30} ?){1,2})")
_SELF_ZH: Final = re.compile(
    r"(?<![帮给替让请陪教送问找劝骗])(?:我们|咱们?|俺|本人|我自己|我)(?:的|家的|家)?"
)
_OTHERS: Final = re.compile(r"\b(?:he|she|they|it)\b|[他她它]")
_AVERSION: Final = re.compile(
    r"\b(?:hates?|hated|dislikes?|disliked|detests?|loathes?|despises?)\b|讨厌|厌恶|反感|憎恨|痛恨"
)
_PERSONS: Final = KIN | {"partner", "boss", "friend", "colleague", "pet"}
_MORE_PERSONS: Final = word_list("person_words")
_REDACTED: Final = re.compile(r"\[[a-z_]{1,40}(?::[0-9a-f]{1,64})?\]")
"""The placeholder of redacted personal data."""
_PART_OF_NUMBER: Final = re.compile(r"[.,:/-]\d")


@dataclass(frozen=True, slots=True)
class Said:
    """A message or a part of one, with the texts of up to two messages before it in its conversation."""

    role: str
    speaker: str
    text: str
    before: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement that passed the gate. Its quote is a range of characters of the text."""

    begin: int
    end: int
    subject: str
    slot: str
    object: str
    kind: StatementKind
    negated: bool
    reported: bool
    confidence: float
    is_by_rules: bool


class _Refused(Exception):
    def __init__(self, reason: Reason) -> None:
        self.reason = reason


class Gate:
    """The statements of one message that passed, and the rejections by reason."""

    def __init__(
        self,
        *,
        redacts: bool = False,
        is_echo: Callable[[str], bool] = lambda line: False,
        room: int = MAX_STATEMENTS,
    ) -> None:
        """`redacts` is whether personal data may not be stored; `is_echo` is whether a line was recalled before."""
        self.accepted: list[Statement] = []
        self.rejected: Counter[Reason] = Counter()
        self._redacts = redacts
        self._is_echo = is_echo
        self._room = room

    def judge(
        self, said: Said | None, proposed: Iterable[ProposedStatement], *, by_rules: bool = False
    ) -> list[Statement]:
        """Return the proposed statements of a text that pass. `said` is None for a message that does not exist."""
        found: list[Statement] = []
        spans: list[Span] | None = None
        text = None if said is None else folded(said.text)
        for one in proposed:
            try:
                if said is None or text is None:
                    raise _Refused("message")
                if said.role != "user":
                    raise _Refused("role")
                spans = find(said.text) if spans is None else spans
                statement = _Judgement(said, text, one, by_rules=by_rules).statement()
                self._check_privacy(said, statement, spans)
                self._check_repeats(statement)
            except _Refused as refused:
                self.rejected[refused.reason] += 1
            else:
                self.accepted.append(statement)
                found.append(statement)
        return found

    def _check_privacy(self, said: Said, one: Statement, spans: Sequence[Span]) -> None:
        for line in _lines(said.text, one.begin, one.end):
            if self._is_echo(line):
                raise _Refused("echo")
        fields = (one.slot, one.subject)
        met = [span for span in spans if span.begin < one.end and one.begin < span.end]
        met += [
            span
            for span in spans
            if any(said.text[span.begin : span.end].casefold() in f.casefold() for f in fields)
        ]
        met += [span for field in fields for span in find(field)]
        if any(span.kind == "secret" for span in met):
            raise _Refused("secret")
        if (met and self._redacts) or _REDACTED.fullmatch(one.object):
            raise _Refused("personal")

    def _check_repeats(self, one: Statement) -> None:
        for other in self.accepted:
            is_alike = (other.subject, other.slot, other.negated) == (one.subject, one.slot, one.negated)
            if is_alike and compare(other.object, one.object) == "same":
                raise _Refused("repeated")
        if len(self.accepted) >= self._room:
            raise _Refused("too_many")


class _Judgement:
    """The checks of one statement against the text that it is said to be copied from."""

    def __init__(self, said: Said, text: Folded, one: ProposedStatement, *, by_rules: bool) -> None:
        self._said = said
        self._text = text
        self._one = one
        self._by_rules = by_rules

    def statement(self) -> Statement:
        """Return the statement. Raise _Refused at the first check that fails."""
        one = self._one
        begin, end = self._quote()
        value, place = self._object(begin, end)
        if one.kind not in KINDS:
            raise _Refused("kind")
        slot, negated = self._topic(), one.negated
        if slot == "dislikes":
            # A dislike is a denied liking, so that a later liking contradicts it.
            slot, negated = "likes", not negated
        subject, confidence = self._subject_by_rules(), RULES_CONFIDENCE
        if not self._by_rules:
            self._sentence(begin, end)
            clause = self._clause(begin, end)
            self._polarity(clause, slot, place, negated=negated)
            subject, confidence = self._subject(self._text.text[begin:end], clause, value, slot)
        if subject is None:
            raise _Refused("subject")
        first, last = self._text.original(begin, end)
        return Statement(
            begin=first,
            end=last,
            subject=subject,
            slot=slot,
            object=value,
            kind=one.kind,  # type: ignore[arg-type]
            negated=negated,
            reported=one.reported,
            confidence=confidence,
            is_by_rules=self._by_rules,
        )

    # --- the quote and its object -------------------------------------------------------------------

    def _quote(self) -> tuple[int, int]:
        """Return the range of the quote in the folded text. Words may not be cut."""
        if len(self._one.quote) > (MAX_QUOTE_CHARS if not self._by_rules else 2 * MAX_QUOTE_CHARS):
            raise _Refused("quote")
        quote = folded(self._one.quote).text.strip(_OUTER)
        begin = _find(self._text.text, quote) if quote else -1
        if begin < 0:
            raise _Refused("quote")
        return begin, begin + len(quote)

    def _object(self, begin: int, end: int) -> tuple[str, tuple[int, int]]:
        """Return the object as it is written in the message, and its range in the folded text."""
        one, plain = self._one, folded(self._one.object).text.strip(_OUTER)
        if (
            self._by_rules
            and one.negated
            and not plain
            and slot_of(canonical(one.topic)).cardinality != "many"
        ):
            return "", (begin, begin)  # the denial of every value
        limit = MAX_OBJECT_CHARS if not self._by_rules else MAX_QUOTE_CHARS
        at = _find(self._text.text[begin:end], plain) if plain and len(plain) <= limit else -1
        if at < 0:
            raise _Refused("object")
        place = begin + at, begin + at + len(plain)
        first, last = self._text.original(*place)
        value = self._said.text[first:last].strip()
        if not self._by_rules and (
            (one.kind != "task" and contains_pronoun(value))
            or _cuts_name(self._said.text, first, last)
            or not any(map(str.isalnum, value))
        ):
            raise _Refused("object")
        return value, place

    def _topic(self) -> str:
        topic = " ".join(self._one.topic.split())
        is_long = (
            len(topic.removeprefix(FAVOURITE)) > MAX_TOPIC_HAN_CHARS
            if contains_han(topic)
            else len(topic.split(" ")) > MAX_TOPIC_WORDS or len(topic) > MAX_TOPIC_CHARS
        )
        slot = "" if is_long or any(map(is_hidden, topic)) else canonical(topic)
        if not any(map(str.isalpha, slot)):
            raise _Refused("topic")
        return slot

    # --- what the words around the quote mean -------------------------------------------------------

    def _sentence(self, begin: int, end: int) -> None:
        """Refuse a sentence that asks, guesses, wishes, plans, reports, quotes or sets a condition."""
        first, last = self._sentence_of(begin, end)
        sentence = self._said.text[slice(*self._text.original(first, last))]
        is_reminder = self._one.kind == "task" and asks_for_reminder(sentence)
        if asks(sentence):
            raise _Refused("question")
        if any(
            line.lstrip().startswith(">")
            for line in _lines(self._said.text, *self._text.original(begin, end))
        ):
            raise _Refused("quotation")
        reason = why_unsaid(sentence, is_reminder=is_reminder)
        if reason:
            raise _Refused(reason)

    def _sentence_of(self, begin: int, end: int) -> tuple[int, int]:
        text = self._text.sentences
        first = max((match.end() for match in _ENDS.finditer(text, 0, begin)), default=0)
        after = _ENDS.search(text, max(begin, end - 1))
        return first, len(text) if after is None else after.end()

    def _clause(self, begin: int, end: int) -> tuple[int, int]:
        """Return the range of the clause around the quote: from the last subject before it to the next comma."""
        first, last = self._sentence_of(begin, end)
        text = self._text.text
        for match in _CLAUSE_BEGIN.finditer(text, first, last):
            if match.end() <= begin:
                first = match.end()
        comma = _CLAUSE_END.search(text, end, last)
        return first, last if comma is None else comma.start()

    def _polarity(self, clause: tuple[int, int], slot: str, place: tuple[int, int], *, negated: bool) -> None:
        """Refuse a statement that is negated although its clause denies nothing, or the reverse."""
        text = self._text.text
        # A denial within the object is part of a name or a value: 无锡, No Country for Old Men.
        around = f"{text[clause[0] : place[0]]} · {text[place[1] : clause[1]]}"
        is_denied = denies(around)
        if slot == "likes" or slot.startswith(FAVOURITE):
            is_averse = _AVERSION.search(around) is not None
            if is_averse and is_denied:
                raise _Refused("negation")
            is_denied = is_denied or is_averse
        if is_denied != negated:
            raise _Refused("negation")

    # --- whom it is about ---------------------------------------------------------------------------

    def _subject_by_rules(self) -> str | None:
        """Return whom a rule found something about; None for a name that names no entity."""
        speaker = subject_name(self._said.speaker) if self._said.speaker else USER
        name = None if speaker is None else subject_name(self._one.subject, speaker)
        is_usual = name is None or MIN_SHORT_CHARS <= len(entity_key(name)) <= MAX_NAME_CHARS
        return name if is_usual or name == speaker else None

    def _subject(self, quote: str, clause: tuple[int, int], value: str, slot: str) -> tuple[str, float]:
        one, said = self._one, self._said
        words = " ".join(one.subject.split()).strip(_OUTER)
        name = subject_name(words) if len(words) <= MAX_SUBJECT_CHARS else None
        plain = folded(words).text
        around = self._text.text[slice(*clause)]
        if name is None or name == ASSISTANT or plain == quote or plain == folded(value).text:
            raise _Refused("subject")
        speaker = subject_name(said.speaker) if said.speaker else USER
        if name == USER or (speaker is not None and entity_key(name) == entity_key(speaker)):
            # A short answer to a question needs no "I".
            is_own = (
                _speaks_of_self(around, slot)
                or (quote == folded(value).text and said.before and asks(said.before[-1]))
                or (one.kind == "task" and asks_for_reminder(around))
            )
            if speaker is None or not is_own:
                raise _Refused("subject")
            return speaker, MODEL_CONFIDENCE
        is_kin = name.startswith(f"{USER}'s ")
        if not is_kin and (contains_pronoun(words) or not is_name(words, entity_key(words))):
            raise _Refused("subject")
        # A relative may be the user's only in the user's own words: "my sister", 我妹妹.
        is_in_clause = _find(around, plain) >= 0
        if not is_in_clause and (_speaks_of_self(around, slot) or not _OTHERS.search(around)):
            # The clause is about the speaker, or mentions no person that could be this subject.
            raise _Refused("subject")
        if is_in_clause and not is_kin and _SELF_EN.search(around[: _find(around, plain)]):
            raise _Refused("subject")
        for text, less in ((said.text, 0.0), *((text, OTHER_MESSAGE) for text in said.before)):
            whole = folded(text) if less else self._text
            place = _find(whole.text, plain)
            if place >= 0 and (
                is_kin or _is_written_as_name(text, whole.original(place, place + len(plain)))
            ):
                return name, round(MODEL_CONFIDENCE - less, 4)
        raise _Refused("subject")


@dataclass(frozen=True, slots=True)
class Folded:
    """A text without differences of case, width, script, quotes, dashes and white space, with the original places."""

    text: str
    sentences: str
    """The same, with line breaks."""
    places: tuple[int, ...]

    def original(self, begin: int, end: int) -> tuple[int, int]:
        """Return the range of the original text."""
        if begin >= end:
            at = self.places[begin] if begin < len(self.places) else 0
            return at, at
        return self.places[begin], self.places[end - 1] + 1


_SAME: Final = {"’": "'", "‘": "'", "“": '"', "”": '"', "，": ",", "：": ":", "（": "(", "）": ")"}


@lru_cache(maxsize=1 << 14)
def _plain(character: str) -> str:
    if character.isspace():
        return " "
    if is_hidden(character):
        return ""
    if character in _SAME:
        return _SAME[character]
    if character in "‐‑‒–—―−":
        return "-"
    return nfkc(character).casefold().translate(simplified())


def folded(text: str) -> Folded:
    """Return the folded text."""
    plain: list[str] = []
    lines: list[str] = []
    places: list[int] = []
    for place, character in enumerate(text):
        for each in _plain(character):
            if each == " " and plain and plain[-1] == " ":
                if character == "\n":
                    lines[-1] = "\n"
                continue
            plain.append(each)
            lines.append("\n" if character == "\n" else each)
            places.append(place)
    return Folded("".join(plain), "".join(lines), tuple(places))


def _find(text: str, words: str) -> int:
    """Return where words occur without cutting a word or a number; -1 if they do not."""
    place = find_word(text, words)
    if place < 0:
        return -1
    end = place + len(words)
    if words[-1:].isdigit() and _PART_OF_NUMBER.match(text, end):
        return -1
    if words[:1].isdigit() and _NUMBER_BEFORE.search(text[max(0, place - 2) : place]):
        return -1
    if contains_han(words):
        # A Latin word or a number at its edge must be whole.
        for edge, beyond in ((words[0], text[max(0, place - 1) : place]), (words[-1], text[end : end + 1])):
            if beyond and ((edge.isdigit() and beyond.isdigit()) or (is_latin(edge) and is_latin(beyond))):
                return -1
    return place


def _cuts_name(text: str, begin: int, end: int) -> bool:
    """Return whether a value is part of a longer name: New in New York, York in New York."""
    value = text[begin:end].split()
    if not value:
        return True
    after = _LETTER_AFTER.match(text[end : end + 2])
    if (
        value[-1][:1].isupper()
        and after is not None
        and after[1].isupper()
        and not _I_AFTER.match(text[end : end + 3])
    ):
        return True
    before = _WORD_BEFORE.search(text[max(0, begin - 44) : begin])
    if before is None or not value[0][:1].isupper() or not before[1][:1].isupper():
        return False
    # The word before may only begin a sentence.
    lead = text[max(0, begin - 44) : begin][: before.start(1)].rstrip()
    return bool(lead) and lead[-1] not in ".!?;:\n"


def _is_written_as_name(text: str, place: tuple[int, int]) -> bool:
    """Return whether a subject is written as a name: in Han characters, or with a capital letter."""
    words = text[slice(*place)]
    return contains_han(words) or any(map(str.isupper, words))


def _speaks_of_self(clause: str, slot: str) -> bool:
    """Return whether a folded clause is about its speaker.

    "My sister lives in Porto" is not, but "my sister is called Clara" says who the speaker's sister is.
    """
    if _SELF_EN.search(clause):
        return True
    for match in _MINE_EN.finditer(clause):
        persons = [
            word.removesuffix("'s") for word in match[1].split() if _is_person(word.removesuffix("'s"))
        ]
        if not persons or any(_is_slot_of(word, slot) for word in persons):
            return True
    for match in _SELF_ZH.finditer(clause):
        rest = clause[match.end() : match.end() + 4]
        persons = [word for length in range(1, len(rest) + 1) if _is_person(word := rest[:length])]
        if not persons or any(_is_slot_of(word, slot) for word in persons):
            return True
    return False


def _is_person(word: str) -> bool:
    return word in _MORE_PERSONS or ALIASES.get(normalised(word)) in _PERSONS


def _is_slot_of(word: str, slot: str) -> bool:
    """Return whether a topic is the relation that a word means: sister of sister, and of younger_sister."""
    named = ALIASES.get(normalised(word))
    return named is not None and slot in _PERSONS and slot.endswith(named)


def _lines(text: str, begin: int, end: int) -> list[str]:
    """Return the lines of a text that a range touches."""
    first = text.rfind("\n", 0, begin) + 1
    last = text.find("\n", end)
    return text[first : len(text) if last < 0 else last].split("\n")
