"""Divide an English statement into a core and the parts that can be left out.

Without a part, the statement is still a sentence. A part is a later subordinate clause, a phrase of place or time
behind the object, an item of a list, or an adverb. Words that the statement needs (an object, a negation, a condition)
belong to the core.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ebbtide.language.builtin import words_english as lexicon
from ebbtide.language.builtin.english_clauses import (
    CONDITIONS,
    CONTENT_VERBS,
    EXACT_PREPOSITIONS,
    LINKS,
    LOOK_AHEAD,
    NOMINAL,
    NOMINATIVE,
    NOUNS,
    PAUSES,
    PERIODS,
    POINTING,
    REASONS,
    RELATIVES,
    SUBORDINATORS,
    TIME_WORDS,
    Clauses,
)
from ebbtide.language.builtin.negation import is_negation
from ebbtide.language.builtin.word_lists import word_list, words

# The rank of a part behind the core of its statement. The core of the next statement has rank 1.
ARTICLE, PERSON, EXACT, ITEM = 0.05, 0.2, 0.3, 0.5
REASON, CLAUSE, PHRASE, ADVERB, OPENER = 0.6, 0.8, 1.2, 2.0, 3.5

# Marks that may precede the first word of a part.
_QUOTES = frozenset("\"“”'‘’«»*")
# Prepositions whose phrase belongs to the word before.
_BOUND_PREPOSITIONS = words(
    "of like unlike than as per up down out off over without between into onto except excluding versus vs"
    " plus minus until till toward towards upon along via to"
)
# Verbs that need the phrase behind their object.
_PLACING = word_list("english_placing_verbs")
# Verbs that need no object.
_COMPLETE = word_list("english_complete_verbs")
_BE = lexicon.BE | words("am is are was were be been being isn't aren't wasn't weren't")
# Adverbs that can be left out at the end of a statement.
_LAST = (TIME_WORDS - words("though")) | words("after afterwards before later since")
# Words that may refer to the part before.
_BACK_POINTERS = words("it them he she they him her his their this that these those its there")
_DROPPABLE = (lexicon.DROPPABLE | {"finally"}) - words("so even still bit great nice pretty kinda sorta")
# Adjectives that can be left out before a noun.
_SPARE = words("delicious nice pretty tiny")
_HOLDING = words("keep keeps kept keeping have has had get got gets want wants wanted")
_LOCATING = words("in at on")
_PARTICLES = words("up off out down over away back")
_IDIOMS = {
    tuple(pair.split())
    for pair in ("in law", "in charge", "in common", "on hold", "in exchange", "at all", "in mind")
}
# Prepositions that say where a subject is.
_DESCRIBING = words("in at on from near outside with")
_DEFINITE = words("the my our his her their your")
# Words that may precede a part although they usually need the next word.
_MAY_END = words("it there too one")
# Words that need both sides of "and".
_TWO_SIDED = words("between both either from or mix mixed mixing confuse compare combine")
_CLEFT = words("it it's its that that's thats this i'm who who's")
_HEDGES = words(
    "almost nearly hardly maybe perhaps probably possibly apparently supposedly allegedly i i'd barely only"
)


class Part(NamedTuple):
    """The indices of some tokens of a statement, the part that they depend on (-1 for the core), and their rank."""

    tokens: list[int]
    parent: int
    statement: int
    behind: float


@dataclass
class _Clause:
    """The state of a clause at the word that is read.

    A clause is complete if its verb has its object. It is placed if it has the phrase that its verb needs. `phrase` is
    the part of its last phrase, or -1, and `phrase_word` the preposition of that.
    """

    has_verb: bool = False
    is_complete: bool = False
    is_negated: bool = False
    is_conditional: bool = False
    is_be: bool = False
    is_placed: bool = False
    verb: str = ""
    phrase: int = -1
    phrase_word: str = ""


class Divider:
    """Divides statements into parts."""

    def __init__(self, clauses: Clauses) -> None:
        """Begin without parts."""
        self.clauses = clauses
        self.tokens, self.kinds, self.words = clauses.tokens, clauses.kinds, clauses.words
        self.parts: list[Part] = []
        self.core = -1

    def begin_statement(self, statement: int, begin: int) -> int:
        """Add an empty core, and a part for each opener before the subject. Return where the subject begins."""
        self.core = core = len(self.parts)
        self.parts.append(Part([], -1, statement, 0.0))
        at = begin
        while at < self.clauses.end:
            end = self.clauses.opener_end(at)
            if end == at or end >= self.clauses.end:
                break
            behind = OPENER if self.words[at] in lexicon.OPENERS else ADVERB
            self.parts.append(Part(list(range(at, end)), core, statement, behind))
            at = end
        return at

    def _add(self, part: int, begin: int, end: int) -> None:
        self.parts[part].tokens.extend(range(begin, end))

    def _new(self, parent: int, begin: int, end: int, behind: float) -> int:
        above = self.parts[parent]
        self.parts.append(
            Part(list(range(begin, end)), parent, above.statement, max(behind, above.behind + 0.01))
        )
        return len(self.parts) - 1

    def divide(self, begin: int, end: int, *, is_whole: bool) -> None:
        """Divide the tokens [begin, end) among the core of the statement and new parts. A whole has no other parts."""
        if is_whole:
            self._add(self.core, begin, end)
            return
        clause = main = _Clause()
        part = owner = core = self.core
        at = self.clauses.apposed_end(begin)
        if at > begin:
            self._new(core, begin, at, PERSON)
        elif self.words[at] == "the" and at + 1 < end and self.kinds[at + 1] in NOMINAL - {"det"}:
            self._new(core, at, at + 1, ARTICLE)
            at += 1
        questioned = self.clauses.is_question(begin, end)
        main.is_negated = questioned and any(self.words[index] in ("or", "if") for index in range(begin, end))
        while at < end:
            skipped = self._parenthesis_end(at, end, main)
            if skipped > at:
                self._new(core, at, skipped, CLAUSE)
                at = skipped
                continue
            quoted = self.clauses.enclosed_end(at, end)
            if quoted > at:
                for index in range(at, quoted):
                    self._note(index, clause)
                self._add(part, at, quoted)
                clause.is_complete = True
                at = quoted
                continue
            if self.words[at + (self.tokens[at].text in PAUSES and at + 1 < end)] in CONDITIONS | _HEDGES:
                # A statement is never kept without its condition.
                part = core if clause is main else owner
            found = self._boundary(at, end, begin, clause, main)
            if found is not None:
                behind, opens = found
                parent = self._parent(at, end, behind, opens, clause, owner, core, part)
                part = self._new(parent, at, at, behind)
                if opens:
                    clause = _Clause()
                    clause.is_negated = main.is_negated
                if opens or self.tokens[at].text in PAUSES:
                    owner, clause.phrase = part, -1
                elif behind in (PHRASE, EXACT):
                    clause.phrase, clause.phrase_word = part, self.words[at]
                opened = self._add_link(part, at, end)
                if opened > at:
                    at = opened
                    continue
            if self._is_small_part(at, end):
                self._new(part, at, at + 1, max(ADVERB, self.parts[part].behind))
            else:
                self._add(part, at, at + 1)
            self._note(at, clause)
            at += 1

    def _add_link(self, part: int, at: int, end: int) -> int:
        """Add the mark and the words that link a part to the one before. Return where they end."""
        is_pause = self.tokens[at].text in PAUSES
        if not is_pause and self.words[at] not in LINKS:
            return at
        stop = at + 1 + (is_pause and at + 1 < end and self.words[at + 1] in LINKS)
        self._add(part, at, stop)
        if not self._is_reducible(stop, end):
            return stop
        self._new(part, stop, stop + 2, ADVERB)
        return stop + 2

    def _is_reducible(self, at: int, end: int) -> bool:
        """Return whether a relative clause says the same without its first words: which is more than …"""
        if at + 2 >= end or self.words[at] not in ("which", "who") or self.words[at + 1] not in ("is", "was"):
            return False
        return self.words[at + 2] in ("more", "less", "a", "an", "the") or self.kinds[at + 2] in (
            "prep",
            "adj",
        )

    def _parenthesis_end(self, at: int, end: int, main: _Clause) -> int:
        """Return the end of a parenthesis, or of a clause between commas before the verb; `at` if there is none."""
        if self.tokens[at].text == "(":
            return self.clauses.enclosed_end(at, end)
        if self.kinds[at] == "prep" and not main.has_verb:
            return self._described_end(at, end)
        if self.tokens[at].text != "," or main.has_verb or at + 1 >= end:
            return at
        word, kind = self.words[at + 1], self.kinds[at + 1]
        if word not in RELATIVES and kind not in ("det", "prep") and word not in lexicon.POSSESSIVES:
            return at
        for index in range(at + 2, min(at + 25, end - 1)):
            if self.tokens[index].text == ",":
                return index + 1 if self.clauses.is_verb(index + 1) else at
        return at

    def _described_end(self, at: int, end: int) -> int:
        """Return the end of a phrase that says where the subject is (the publisher in Glasgow wants), or `at`."""
        if self.words[at] not in _DESCRIBING or self.kinds[at - 1] != "noun":
            return at
        first = at - 1
        while first > 0 and self.kinds[first] in ("noun", "adj", "mod"):
            first -= 1
        if self.words[first] not in _DEFINITE:
            return at
        stop = at + 1
        while stop < end and self.kinds[stop] in NOMINAL:
            stop += 1
        return stop if stop < end and self.clauses.is_verb(stop) else at

    def _note(self, at: int, clause: _Clause) -> None:
        """Record what a word adds to its clause."""
        kind, word = self.kinds[at], self.words[at]
        clause.is_conditional = clause.is_conditional or word in ("if", "unless")
        if is_negation(self.tokens[at]) or word in ("only", "hardly", "if", "either", "whether"):
            clause.is_negated = True
        if self.clauses.is_finite(at) or kind == "verb":
            clause.has_verb = clause.has_verb or self.clauses.is_finite(at)
            clause.is_complete = word in _COMPLETE
            clause.is_be = word in _BE or kind == "clause"
            clause.verb = word
        elif self._is_particle(at) or (clause.has_verb and self._is_object(at, clause)):
            clause.is_complete = True
        elif kind == "subject":
            clause.is_complete = False

    def _is_object(self, at: int, clause: _Clause) -> bool:
        """Return whether a word completes a verb: an object, an adverb of manner, or an adjective behind `is`."""
        kind = self.kinds[at]
        if kind == "adj":
            ends = at + 1 >= self.clauses.end or self.kinds[at + 1] not in ("noun", "mod", "name", "adj")
            return clause.is_be and ends
        return kind in NOUNS or kind == "pronoun" or (kind == "adv" and self.words[at].endswith("ly"))

    def _is_particle(self, at: int) -> bool:
        """Return whether a word completes the verb before it, and a phrase follows: the licence runs out on …"""
        return (
            at > 0
            and self.words[at] in _PARTICLES
            and self.kinds[at - 1] == "verb"
            and (at + 1 >= self.clauses.end or self.kinds[at + 1] == "prep")
        )

    def _is_small_part(self, at: int, end: int) -> bool:
        """Return whether one adverb or adjective can be left out."""
        if not at or at + 1 >= end or any(token.tag != "word" for token in self.tokens[at - 1 : at + 2]):
            return False
        before, word, after = self.words[at - 1 : at + 2]
        if is_negation(self.tokens[at - 1]) or self.kinds[at + 1] in ("break", "conj"):
            return False
        if before in ("a", "an") and (after[0] in "aeiou") != (before == "an"):
            return False
        if word in _DROPPABLE:
            return (
                self.kinds[at + 1] in ("adj", "adv", "verb", "clause", "aux", "mod")
                or self.kinds[at] == "adv"
            )
        if word in _SPARE:
            return self.kinds[at + 1] in ("noun", "mod") and before not in ("so", "too", "very", "how")
        return (
            self.kinds[at] == "adv"
            and word.endswith("ly")
            and word not in ("only", "hardly", "nearly", "barely", "rarely", "scarcely", "early", "daily")
            and self.kinds[at + 1] == "adj"
        )

    def _boundary(
        self, at: int, end: int, begin: int, clause: _Clause, main: _Clause
    ) -> tuple[float, bool] | None:
        """Return the rank of the part that begins here, and whether it is a clause; None if none begins."""
        if at == begin or not main.has_verb:
            return None
        text, word, kind = self.tokens[at].text, self.words[at], self.kinds[at]
        if text in PAUSES and at + 1 < end:
            return self._behind_comma(at, end, clause)
        before = self.kinds[at - 1]
        if (
            self.words[at - 1] in lexicon.NO_END - _MAY_END
            and before != "num"
            and not self._is_particle(at - 1)
        ):
            return None
        settled = clause.is_complete and not clause.is_negated and not main.is_negated
        if word in REASONS and not main.is_negated and before not in ("aux", "conj", "det"):
            return REASON, self.words[at + 1 : at + 2] != ["of"]
        if settled and word in _LAST and at + 1 >= end and before in NOUNS | {"pronoun"}:
            return PHRASE, False
        if not settled or at + 1 >= end:
            return None
        if word == "and":
            return self._behind_and(at, end, begin)
        if word in SUBORDINATORS and (before in NOUNS or before in ("pronoun", "adv", "adj")):
            if self.clauses.opens_clause(at + 1):
                return CLAUSE, True
            return None if word not in EXACT_PREPOSITIONS else self._phrase(at, end, clause)
        if word in RELATIVES and before in NOUNS:
            cleft = clause.is_be and bool(_CLEFT.intersection(self.words[begin : begin + 2]))
            return None if cleft or self.words[at - 1] in ("one", "ones") else (CLAUSE, True)
        if kind == "prep" and (
            before in NOUNS
            or before == "pronoun"
            or self.words[at - 1] in _COMPLETE
            or self._is_particle(at - 1)
        ):
            return self._phrase(at, end, clause)
        timed = before in NOUNS | {"pronoun", "adv", "adj"} or self.words[at - 1] in _COMPLETE
        if timed and self._is_time(at, end):
            return EXACT, False
        return None

    def _phrase(self, at: int, end: int, clause: _Clause) -> tuple[float, bool] | None:
        """Return the rank of a prepositional phrase, or None if its clause needs it."""
        word = self.words[at]
        if word in _BOUND_PREPOSITIONS or word in CONDITIONS:
            return None
        if at + 1 >= end or self.kinds[at + 1] in ("break", "prep", "conj", "verb", "aux", "clause", "to"):
            return None
        before = self.kinds[at - 1]
        if not clause.is_placed and (
            clause.verb in _PLACING or (clause.verb in _HOLDING and before == "pronoun")
        ):
            clause.is_placed = True
            return None
        if word in ("about", "for") and clause.verb in CONTENT_VERBS and before == "pronoun":
            return None
        if (word, self.words[at + 1]) in _IDIOMS:
            return None
        end = min(end, at + LOOK_AHEAD)
        stop = next((i for i in range(at + 1, end) if self.kinds[i] in ("prep", "break", "conj")), end)
        if any(self._is_bare_finite(i) for i in range(at + 2, stop + 1 if stop < end else stop)):
            return None
        exact = any(self.kinds[i] in ("name", "time", "num", "code") for i in range(at + 1, stop))
        if exact and word == "for" and clause.is_be and self.kinds[stop - 1] == "name":
            return None
        return (EXACT if exact else PHRASE), False

    def _is_bare_finite(self, index: int) -> bool:
        """Return whether a verb follows whose subject is the noun phrase before it."""
        return (
            self.clauses.is_verb(index)
            and self.words[index - 1] not in NOMINATIVE
            and self.kinds[index - 1] in NOUNS
        )

    def _is_time(self, at: int, end: int) -> bool:
        """Return whether a time without a preposition begins here: last year, tomorrow, 30 years ago."""
        word = self.words[at]
        if word in TIME_WORDS:
            return True
        after = self.words[at + 1] if at + 1 < end else ""
        if word in POINTING and after in PERIODS:
            return True
        if word in ("once", "twice") and after in ("a", "every"):
            return True
        return after in ("ago", "times") or (at + 2 < end and self.words[at + 2] == "ago")

    def _behind_and(self, at: int, end: int, begin: int) -> tuple[float, bool] | None:
        """Return the rank of what `and` adds: a second predicate or the last item of a list."""
        if any(self.words[i] in _TWO_SIDED for i in range(max(begin, at - LOOK_AHEAD), at)):
            return None
        after = at + 1
        while after < end and self.kinds[after] == "adv" and self.words[after] not in ("not",):
            after += 1
        if after >= end:
            return None
        if self.kinds[at - 1] == self.kinds[after] == "adj":
            return None
        if self.kinds[after] in ("verb", "aux", "modal"):
            return REASON, True
        if self.kinds[after] in NOMINAL or self.kinds[after] == "prep":
            stop = self._pause(after, end)
            if any(self.clauses.is_finite(i) for i in range(after, stop)) or self._shares_head(at, after):
                return None
            return ITEM, False
        return None

    def _shares_head(self, at: int, after: int) -> bool:
        """Return whether `and` joins words of one noun phrase: a leek and cawl supper."""
        first = at - 1
        while first > 0 and self.kinds[first] in NOUNS | {"adj", "mod"}:
            first -= 1
        determined = self.kinds[first] == "det" or self.words[first] in lexicon.POSSESSIVES
        return determined and self.kinds[after] not in ("det", "name", "prep", "num")

    def _behind_comma(self, at: int, end: int, clause: _Clause) -> tuple[float, bool] | None:
        """Return the rank of what a pause adds, or None if the clause is untrue or broken without it."""
        text = self.tokens[at].text
        after = at + 1
        while after < end and (self.tokens[after].text in PAUSES or self.tokens[after].text in _QUOTES):
            after += 1
        word = self.words[after] if after < end else ""
        if word in CONDITIONS or word in _HEDGES or clause.is_conditional or word in ("or", "than", "that"):
            return None
        if self.kinds[at - 1] == "num" and after < end and self.kinds[after] in ("num", "time"):
            return None
        if text == ":" and (clause.verb in CONTENT_VERBS or not clause.is_complete):
            return None
        if text in ",—–" and self.words[at - 1] in CONTENT_VERBS and self.words[at - 1] != "know":
            return None
        if self.kinds[at - 1] in ("det", "aux", "to", "clause", "subject") or not clause.has_verb:
            return None
        if word in ("but", "yet", "though") or self.clauses.is_inverted(after):
            return None
        if word in ("and", "so", "then") and after + 1 < end:
            after += 1
        kind = self.kinds[after] if after < end else ""
        if word in RELATIVES or word in SUBORDINATORS:
            return (REASON if word in REASONS else CLAUSE), True
        if kind in ("verb", "aux", "modal"):
            return CLAUSE, True
        stop = self._pause(after, end)
        exact = any(self.kinds[i] in ("name", "time", "num", "code") for i in range(after, stop))
        return (EXACT if exact else ITEM if kind in NOMINAL else CLAUSE), False

    def _parent(
        self, at: int, end: int, behind: float, opens: bool, clause: _Clause, owner: int, core: int, part: int
    ) -> int:
        """Return the part that a new part depends on."""
        if any(self.words[i] in _BACK_POINTERS for i in range(at + 1, self._pause(at + 1, end))):
            return part
        if self.tokens[at].text in PAUSES or opens:
            return core if opens else part
        if clause.phrase >= 0 and (behind == PHRASE or clause.phrase_word not in _LOCATING):
            return clause.phrase
        if self.words[at] in ("and", "but") and part != owner:
            return part
        return owner

    def _pause(self, begin: int, end: int) -> int:
        """Return the next pause, within a limit so that a sentence without any is read in linear time."""
        end = min(end, begin + LOOK_AHEAD)
        return next((index for index in range(begin, end) if self.tokens[index].text in PAUSES), end)
