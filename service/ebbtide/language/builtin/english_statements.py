"""Split an English text into statements: clauses with their own subject, each a core and parts that can be left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ebbtide.language.builtin import words_english as lexicon
from ebbtide.language.builtin.english_classes import classes_of
from ebbtide.language.builtin.english_clauses import REASONS, Clauses
from ebbtide.language.builtin.english_parts import Divider, Part
from ebbtide.language.builtin.negation import is_negation
from ebbtide.language.builtin.sentences import sentence_spans
from ebbtide.language.builtin.tokens import Token, tokens_of
from ebbtide.language.builtin.word_lists import words
from ebbtide.text_caches import text_cache

_CLOSING = frozenset(".!?…")
_REFERRING = words("it its they theyre he hes she shes that thats this these those his her their them")
_POINTING_BACK = words("it its them him he they")
_DEPENDENT = REASONS | words("which or except unless instead than not especially including")


class Statement(NamedTuple):
    """A statement of the tokens [begin, end): its sentence, and the words that link it to the statement before.

    `needs` is the statement without which it is untrue, or -1. `name` replaces `pronoun` where the statement with the
    name is not kept. A `fragment` has no verb. `refers` is the statement that contains what its first pronoun means,
    or -1.
    """

    sentence: int
    link: tuple[int, ...]
    begin: int
    end: int
    needs: int
    pronoun: int
    name: tuple[int, ...]
    fragment: bool
    asks: bool
    refers: int


class Analysis(NamedTuple):
    """The tokens of a text with their classes, its statements and parts, and each sentence's closing mark or -1."""

    tokens: Sequence[Token]
    kinds: Sequence[str]
    statements: Sequence[Statement]
    parts: Sequence[Part]
    closing: Sequence[int]


@text_cache(64)
def analyse(text: str) -> Analysis:
    """Return the statements and parts of an English text, from a cache."""
    tokens = tokens_of(text)
    reader = _Reader(tokens, classes_of(text, tokens))
    at = 0
    for start, end in sentence_spans(text):
        while at < len(tokens) and tokens[at].start < start:
            at += 1
        begin = at
        while at < len(tokens) and tokens[at].start < end:
            at += 1
        if begin < at:
            reader.read_sentence(begin, at)
    return Analysis(tokens, reader.kinds, reader.statements, reader.divider.parts, reader.closing)


class _Reader:
    """Reads the sentences of a text in order."""

    def __init__(self, tokens: Sequence[Token], kinds: list[str]) -> None:
        self.clauses = Clauses(tokens, kinds)
        self.divider = Divider(self.clauses)
        self.tokens, self.kinds, self.words = tokens, kinds, self.clauses.words
        self.statements: list[Statement] = []
        self.closing: list[int] = []

    def read_sentence(self, begin: int, end: int) -> None:
        """Add the statements of the sentence of the tokens [begin, end)."""
        self.clauses.begin_sentence(begin, end)
        self.closing.append(self.clauses.closing)
        first = len(self.statements)
        while begin < self.clauses.end:
            begin = self._read_statement(begin, first)

    def _read_statement(self, begin: int, first: int) -> int:
        """Add the statement that begins here. Return where the next one begins."""
        number = len(self.statements)
        link_end = self.clauses.link_end(begin) if number > first else begin
        start = self.divider.begin_statement(number, link_end)
        end = self.clauses.statement_end(start)
        fragment = not any(self.clauses.is_finite(index) for index in range(start, end))
        self.divider.divide(start, end, is_whole=fragment)
        pronoun, name = self._named(start, self.statements[-1]) if number > first else (-1, ())
        self.statements.append(
            Statement(
                sentence=len(self.closing) - 1,
                link=tuple(range(begin, link_end)),
                begin=start,
                end=end,
                needs=self._needed(number, first, begin, fragment),
                pronoun=pronoun,
                name=name,
                fragment=fragment,
                asks=self.clauses.is_question(start, end),
                refers=number - 1 if fragment else self._referred(start, end, number),
            )
        )
        return end

    def _needed(self, number: int, first: int, begin: int, fragment: bool) -> int:
        """Return the statement without which a statement is untrue, or -1."""
        if number == first:
            leans = fragment and self.kinds[begin] in ("prep", "to", "conj")
            return number - 1 if leans or self.words[begin] in _DEPENDENT else -1
        previous = self.statements[-1]
        if previous.needs >= 0:
            return previous.needs
        is_condition = any(self.words[at] in ("if", "unless") for at in range(previous.begin, previous.end))
        return number - 1 if is_condition else -1

    def _referred(self, begin: int, end: int, number: int) -> int:
        """Return the statement that contains what the first pronoun of a statement means, or -1 if it has none."""
        pronoun = self.words[begin].partition("'")[0] if begin < self.clauses.end else ""
        if not number or (pronoun not in _REFERRING and not self._points_back(begin, end)):
            return -1
        previous = self.statements[-1]
        same = self.words[previous.begin].partition("'")[0] == pronoun
        return max(0, previous.refers) if same and pronoun in _REFERRING else number - 1

    def _points_back(self, begin: int, end: int) -> bool:
        """Return whether a pronoun precedes every noun of a statement, so that its noun is in the one before."""
        for index in range(begin, end):
            if self.words[index].partition("'")[0] in _POINTING_BACK:
                return True
            if self.kinds[index] in ("noun", "name") or is_negation(self.tokens[index]):
                return False
        return False

    def _named(self, start: int, host: Statement) -> tuple[int, tuple[int, ...]]:
        """Return the pronoun that begins a statement, and the name that is the subject of the one before."""
        if start >= self.clauses.end or self.words[start] not in ("he", "she"):
            return -1, ()
        at = self.clauses.apposed_end(host.begin)
        name: list[int] = []
        while at < host.end and self.tokens[at].text[0].isupper() and self.tokens[at].tag == "word":
            name.append(at)
            at += 1
        if not name or self.words[name[0]] in lexicon.FUNCTION_WORDS or self.kinds[name[0]] == "clause":
            return -1, ()
        has_other_person = any(
            self.kinds[index] == "name"
            or self.words[index] in lexicon.PERSONS
            or self.words[index] in ("he", "she")
            for index in range(at, host.end)
        )
        return (-1, ()) if has_other_person else (start, tuple(name))
