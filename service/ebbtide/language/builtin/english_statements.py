"""Split an English text into statements, and each statement into parts that can be left out.

A statement is a clause with its own subject. Its core is kept or dropped as a whole. Its parts can be left out and what
remains is still a sentence: a later subordinate clause, a phrase of place or time behind the object, an item of a list,
an adverb. Where a word is needed (an object, a negation, a condition), there is no part, and the core is longer.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from ebbtide.language.builtin import words_english as lexicon
from ebbtide.language.builtin.english_tags import classify, context, normal
from ebbtide.language.builtin.negation import is_negation
from ebbtide.language.builtin.sentences import sentence_spans
from ebbtide.language.builtin.tokens import Token, tokens_of
from ebbtide.language.builtin.word_lists import ordered_list, word_list, words

# How early a part is kept: that of the next statement is 1.
ARTICLE, PERSON, EXACT, ITEM = 0.05, 0.2, 0.3, 0.5
REASON, CLAUSE, PHRASE, ADVERB, OPENER = 0.6, 0.8, 1.2, 2.0, 3.5


class Part(NamedTuple):
    """The indices of some tokens of a statement, the part that they depend on (-1 for the core), and their rank."""

    tokens: list[int]
    parent: int
    statement: int
    behind: float


class Statement(NamedTuple):
    """A statement: its sentence, the words that link it to the one before, and its first and last token.

    `needs` is the statement without which it is untrue, or -1. `name` replaces `pronoun` where the statement with the
    name is not kept. A statement without a verb is a `fragment`. `refers` is
    the statement with what its first pronoun means, or -1.
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
    """The tokens of a text with their classes, its statements, parts, and the closing token of each sentence or -1."""

    tokens: Sequence[Token]
    kinds: Sequence[str]
    statements: Sequence[Statement]
    parts: Sequence[Part]
    closing: Sequence[int]


_PAUSES = frozenset(",;:—–(…")
_CLOSING = frozenset(".!?…")
_PAIRS = {"(": ")", '"': '"', "“": "”"}
_QUOTES = frozenset("\"“”'‘’«»*")
_CONDITIONS = words("if unless until till once provided whether except without 'til")
_REASONS = words("because bc cuz coz")
_SUBORDINATORS = _REASONS | words("although though while whereas when whenever since where after before")
_RELATIVES = words("who whose which who's whos who'd who'll who've")
_NO_HEADS = words("same last worst first next other only main")
_STEMS = words("bring sing ring sting swing cling fling spring string")
_FACTS = _REASONS | {"since"}
_LINKS = _REASONS | words("and but so or yet plus nor then & though although")
# Words that say nothing at the end of a sentence: I can't find you so.
_TRAILING = _REASONS | words("so and but or")
_BOUND_PREPOSITIONS = words(
    "of like unlike than as per up down out off over without between into onto except excluding versus vs"
    " plus minus until till toward towards upon along via to"
)
_EXACT_PREPOSITIONS = words("in on at since during by after before")
# A verb that needs the phrase behind its object.
_PLACING = word_list("english_placing_verbs")
# A verb whose object is a clause.
# A verb that needs no object.
_COMPLETE = word_list("english_complete_verbs")
_CONTENT_VERBS = word_list("english_content_verbs")
_BE = lexicon.BE | words("am is are was were be been being isn't aren't wasn't weren't")
_CONTRACTED = words(
    "i'm im you're youre he's hes she's shes it's its we're were they're theyre that's thats there's theres who's"
    " what's here's where's how's i've ive you've youve we've weve they've theyve i'd you'd he'd she'd we'd they'd"
    " i'll you'll he'll she'll it'll we'll they'll that'll there'll that'd it'd there'd who'd who'll this'll"
) - words("its were")
_NOMINATIVE = words("i he she we they it you there u")
_DEMONSTRATIVE = words(
    "that this these those everyone everybody someone somebody nobody anyone everything something nothing one both"
    " mine yours hers ours theirs none"
)
_TIME_WORDS = words(
    "yesterday today tomorrow tonight nowadays lately recently anyway though too now again soon"
)
# Adverbs that can be left out at the end of a statement.
_LAST = (_TIME_WORDS - words("though")) | words("after afterwards before later since")
_PERIODS = lexicon.WEEKDAYS | lexicon.MONTHS | word_list("english_time_nouns")
_POINTING = words("last next this every each")
_BACK_POINTERS = words("it them he she they him her his their this that these those its there")
_DROPPABLE = (word_list("english_droppable") | {"finally"}) - words(
    "so even still bit great nice pretty kinda sorta"
)
_SPARE = words("amazing beautiful delicious fantastic gorgeous lovely nice pretty tiny wonderful")
_ASKING = words("what who whose which when where why how what's who's where's how's when's whats hows")
_LEADING_CONDITIONS = words("if unless once provided whether until suppose supposing")
_HOLDING = words("keep keeps kept keeping have has had get got gets want wants wanted")
_LOCATING = words("in at on")
_REFERRING = words("it its they theyre he hes she shes that thats this these those his her their them")
_PARTICLES = words("up off out down over away back")
_POINTING_BACK = words("it its them him he they")
_DEPENDENT = _REASONS | words("which or except unless instead than not especially including")
_IDIOMS = {
    tuple(pair.split())
    for pair in ("in law", "in charge", "in common", "on hold", "in exchange", "at all", "in mind")
}
_DESCRIBING = words("in at on from near outside with")
_DEFINITE = words("the my our his her their your")
_PASTS = words("quit left led lay cut put set let hit read found felt lost met broke")
_MAY_END = words("it there too one")
_TWO_SIDED = words("between both either from or mix mixed mixing confuse compare combine")
_CLEFT = words("it it's its that that's thats this i'm who who's")
_NUMERALS = word_list("english_number_words") - words("one and but so or yet oh yes no well ok okay") | words(
    "hundred thousand"
)
_NOUNS = words("noun name code time num")
_NOMINAL = _NOUNS | words("adj mod det")
_HEDGES = words(
    "almost nearly hardly maybe perhaps probably possibly apparently supposedly allegedly i i'd barely only"
)
_ANNOUNCEMENTS = tuple(tuple(line.split()) for line in ordered_list("english_announcements"))
_SUBJECT_WORDS_MAX = 9
_LEADING_WORDS_MAX = 5
_LOOK_AHEAD = 60


@lru_cache(maxsize=64)
def analyse(text: str) -> Analysis:
    """Return the statements and parts of an English text, from a cache."""
    tokens = tokens_of(text)
    reader = _Reader(tokens, _tag(text, tokens))
    at = 0
    for start, end in sentence_spans(text):
        while at < len(tokens) and tokens[at].start < start:
            at += 1
        begin = at
        while at < len(tokens) and tokens[at].start < end:
            at += 1
        if begin < at:
            reader.read_sentence(begin, at)
    return Analysis(tokens, reader.kinds, reader.statements, reader.parts, reader.closing)


def _tag(text: str, tokens: Sequence[Token]) -> list[str]:
    """Return the class of each token. A contraction with a verb is `clause`, an auxiliary `aux`."""
    kinds: list[str] = []
    previous = "start"
    for index, token in enumerate(tokens):
        lower = normal(token.text)
        kind = token.tag if token.tag in ("num", "date") else "break"
        if token.tag == "word":
            kind = classify(text, tokens, index, previous)
        elif token.tag in ("code", "url", "path", "title", "digits"):
            kind = "code"
        before = kind
        if kind in ("det", "noun", "adj") and lower in _NUMERALS:
            kind = "num"
        if (token.text == "May" and index) or (lower in ("am", "pm") and kinds[-1:] in (["num"], ["time"])):
            kind, before = "time", "break"
        if lower == "longer" and index and normal(tokens[index - 1].text) == "no":
            kind = "adv"
        if kind == "verb" and lower.endswith("s") and lower in lexicon.AMBIGUOUS and "num" in kinds[-2:-1]:
            kind = "noun"
        if kind == "adj" and previous in ("noun", "name") and lower.endswith("ed"):
            kind = "verb"
        if kind == "adj" and _is_used_as_noun(tokens, index):
            kind = "noun"
        previous = context(token, kind)
        if kind == "date":
            kind = "time"
        elif lower in _CONTRACTED:
            kind = "clause"
            previous = "modal" if lower.endswith(("'d", "'ll")) else "adv"
        elif before != "break" and lower in lexicon.AUXILIARIES | lexicon.MODALS and lower != "please":
            kind = "aux"
        elif kind == "noun" and lower.endswith("'s") and _is_contracted(tokens, index):
            kind = "clause"
        kinds.append(kind)
    return kinds


def _is_used_as_noun(tokens: Sequence[Token], index: int) -> bool:
    """Return whether an adjective has an article and no noun: the dark."""
    word = normal(tokens[index].text)
    if not index or normal(tokens[index - 1].text) != "the" or word.endswith("est") or word in _NO_HEADS:
        return False
    after = normal(tokens[index + 1].text) if index + 1 < len(tokens) else "."
    return not after[0].isalnum() or after in lexicon.PREPOSITIONS or after in lexicon.CONJUNCTIONS


def _is_contracted(tokens: Sequence[Token], index: int) -> bool:
    """Return whether a noun in 's is a subject with its verb (the starter's dead), and no owner."""
    after = normal(tokens[index + 1].text) if index + 1 < len(tokens) else ""
    behind = normal(tokens[index + 2].text) if index + 2 < len(tokens) else ""
    if after in lexicon.DETERMINERS or after in lexicon.ADVERBS or after in lexicon.PREPOSITIONS:
        return True
    if after.endswith("ing") and after in lexicon.GERUNDS:
        return True
    return after in lexicon.ADJECTIVES and (not behind[:1].isalpha() or behind in lexicon.FUNCTION_WORDS)


def is_gerund(word: str) -> bool:
    """Return whether a verb form ends in -ing, which is no part of the stem: bring, sing."""
    return word.endswith("ing") and word not in _STEMS


class _Clause:
    """The contents of a clause up to the word that is read."""

    def __init__(self) -> None:
        self.has_verb = False
        self.is_complete = False
        self.is_negated = False
        self.is_conditional = False
        self.is_be = False
        self.verb = ""
        self.is_placed = False
        self.phrase = -1
        self.phrase_word = ""


class _Reader:
    """Reads the sentences of a text in order."""

    def __init__(self, tokens: Sequence[Token], kinds: list[str]) -> None:
        self.tokens = tokens
        self.kinds = kinds
        self.words = [normal(token.text) for token in tokens]
        self.statements: list[Statement] = []
        self.parts: list[Part] = []
        self.closing: list[int] = []
        self.end = 0

    # --- reading -------------------------------------------------------------------------------------------

    def read_sentence(self, begin: int, end: int) -> None:
        """Add the statements of the sentence of the tokens [begin, end)."""
        closing = -1
        while end > begin + 1 and self.tokens[end - 1].text[0] in _CLOSING:
            end -= 1
            closing = end
        self.closing.append(closing)
        self._find_verb(begin, end)
        while end > begin + 1 and self._is_trailing(end - 1, begin):
            end -= 1
        self.end = end
        first = len(self.statements)
        at = begin
        while at < end:
            at = self._read_statement(at, first)

    def _is_trailing(self, index: int, begin: int) -> bool:
        """Return whether a word links to a clause that does not follow."""
        if self.words[index] not in _TRAILING or self.kinds[index - 1] not in _NOUNS | {
            "pronoun",
            "subject",
        }:
            return False
        return self.words[index] != "so" or not any(
            self.words[at] in _CONTENT_VERBS for at in range(max(begin, index - 3), index)
        )

    def _find_verb(self, begin: int, end: int) -> None:
        """Read a noun as the verb of a sentence without a verb if it may be one: the scholarship covers tuition."""
        if any(self._is_finite(index) for index in range(begin, end)):
            return
        for index in range(begin + 1, end):
            word = self.words[index]
            form = word in _PASTS or (word.endswith("s") and word in lexicon.AMBIGUOUS)
            if form and self.kinds[index] in ("noun", "adj") and self.kinds[index - 1] in ("noun", "name"):
                self.kinds[index] = "verb"
                return

    def _read_statement(self, begin: int, first: int) -> int:
        """Add the statement that begins here. Return where the next one begins."""
        number = len(self.statements)
        link = begin
        while link < self.end and number > first and self._is_link(link):
            link += 1
        if number > first and link == begin and self.words[link] == "since" and self._opens_clause(link + 1):
            link += 1
        openers, start = self._openers(link)
        end = self._statement_end(start)
        core = len(self.parts)
        self.parts.append(Part([], -1, number, 0.0))
        for piece, behind in openers:
            self.parts.append(Part(list(piece), core, number, behind))
        fragment = not any(self._is_finite(index) for index in range(start, end))
        if fragment:
            self._add(core, start, end)
        else:
            self._read_parts(core, start, end)
        leans = fragment and self.kinds[begin] in ("prep", "to", "conj")
        needs = number - 1 if number == first > 0 and (leans or self.words[begin] in _DEPENDENT) else -1
        if number > first:
            previous = self.statements[-1]
            if previous.needs >= 0 or self._is_conditional(previous):
                needs = previous.needs if previous.needs >= 0 else number - 1
        pronoun, name = (-1, ()) if number == first else self._named(start, self.statements[-1])
        self.statements.append(
            Statement(
                len(self.closing) - 1,
                tuple(range(begin, link)),
                start,
                end,
                needs,
                pronoun,
                name,
                fragment,
                self._is_question(start, end),
                number - 1 if fragment else self._referred(start, end, number),
            )
        )
        return end

    def _referred(self, begin: int, end: int, number: int) -> int:
        """Return the statement with what the first pronoun of a statement means, or -1 if it has none."""
        pronoun = self.words[begin].partition("'")[0] if begin < self.end else ""
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

    def _is_question(self, begin: int, end: int) -> bool:
        """Return whether a statement asks: by its mark, or without one by its first words."""
        closing = self.closing[-1]
        asking = self.words[begin] in _ASKING if begin < end else False
        inverted = begin + 1 < end and self._is_inverted(begin)
        if closing >= 0:
            return "?" in self.tokens[closing].text and (end >= self.end or asking or inverted)
        return inverted and self.words[begin] not in ("do", "have")

    def _is_link(self, index: int) -> bool:
        return (
            self.tokens[index].text in _PAUSES or self.words[index] in _LINKS or self.words[index] == "when"
        )

    def _is_conditional(self, statement: Statement) -> bool:
        return any(self.words[index] in ("if", "unless") for index in range(statement.begin, statement.end))

    def _add(self, part: int, begin: int, end: int) -> None:
        self.parts[part].tokens.extend(range(begin, end))

    def _new(self, parent: int, begin: int, end: int, behind: float) -> int:
        above = self.parts[parent]
        self.parts.append(
            Part(list(range(begin, end)), parent, above.statement, max(behind, above.behind + 0.01))
        )
        return len(self.parts) - 1

    # --- the beginning and the end of a statement --------------------------------------------------------------

    def _openers(self, begin: int) -> tuple[list[tuple[range, float]], int]:
        """Return the droppable words before the subject of a statement, and where the subject begins."""
        openers: list[tuple[range, float]] = []
        at = begin
        while at < self.end:
            end = at
            if self.words[end] in lexicon.OPENERS and self.words[end] not in ("please", "because"):
                end += 1
                while end < self.end and self.tokens[end].text in ",-–—!":
                    end += 1
                thanks = self.words[at] in ("thank", "thanks", "congrats")
                if end == at + 1 and self.words[at] not in _LINKS and (thanks or not self._opens_clause(end)):
                    break
            elif self._announcement_end(at) > at:
                end = self._announcement_end(at)
            elif self._address_end(at) > at:
                end = self._address_end(at)
            elif self._opens_clause(at):
                break
            else:
                end = self._leading_end(at)
            if end == at or end >= self.end:
                break
            behind = OPENER if self.words[at] in lexicon.OPENERS else ADVERB
            openers.append((range(at, end), behind))
            at = end
        return openers, at

    def _address_end(self, begin: int) -> int:
        """Return the end of a name and its comma before a question (Ate Joy, are you …), or `begin`."""
        at = begin
        while at < min(begin + 3, self.end) and self.tokens[at].text[0].isupper():
            at += 1
        if at == begin or at + 1 >= self.end or self.tokens[at].text != ",":
            return begin
        return at + 1 if self.kinds[at - 1] in _NOUNS and self._is_inverted(at + 1) else begin

    def _is_inverted(self, begin: int) -> bool:
        """Return whether a question without a question word begins here."""
        return (
            begin + 1 < self.end
            and self.kinds[begin] == "aux"
            and self.kinds[begin + 1] in ("subject", "det", "name")
        )

    def _announcement_end(self, begin: int) -> int:
        """Return the end of words that only announce a statement (it turned out that), or `begin`."""
        for phrase in _ANNOUNCEMENTS:
            end = begin + len(phrase)
            if tuple(self.words[begin:end]) == phrase:
                end += end < self.end and (self.words[end] == "that" or self.tokens[end].text == ",")
                return end if self._opens_clause(end) else begin
        return begin

    def _leading_end(self, begin: int) -> int:
        """Return the end of an adverbial or subordinate clause before the subject, or `begin`."""
        word = self.words[begin]
        if word in _CONDITIONS or word == "not":
            return begin
        phrase = self.kinds[begin] == "prep" or word in _SUBORDINATORS
        timed = word in _TIME_WORDS or (
            word in _POINTING and begin + 1 < self.end and self.words[begin + 1] in _PERIODS
        )
        named = self.kinds[begin] == "name"
        if not phrase and not timed and self.kinds[begin] not in ("adv", "name"):
            return begin
        for index in range(begin + 1, min(self.end, begin + 40)):
            if self.tokens[index].text == ",":
                if not self._opens_clause(index + 1) and self.words[index + 1 : index + 2] != ["please"]:
                    return begin
                verbal = any(self._is_finite(at) for at in range(begin, index))
                if named:
                    return index + 1 if index == begin + 1 else begin
                return index + 1 if not verbal or word in _SUBORDINATORS else begin
            if self.tokens[index].text in _PAUSES:
                return begin
            if word not in _SUBORDINATORS and self._is_finite(index) and self.kinds[index] != "clause":
                return begin
            pronoun = self.words[index] in _NOMINATIVE - {"it", "you"} or self.kinds[index] == "clause"
            settles = word not in _SUBORDINATORS or (word in _EXACT_PREPOSITIONS and index > begin + 1)
            if pronoun and not named and settles and index - begin <= _LEADING_WORDS_MAX:
                known = self._opens_clause(index) and self.kinds[index - 1] in (*_NOUNS, "adv", "clause")
                return index if known and (phrase or timed) else begin
        return begin

    def _statement_end(self, begin: int) -> int:
        """Return where the next independent clause begins."""
        has_verb = has_object = False
        if self.words[begin] in _LEADING_CONDITIONS or self.words[begin : begin + 2] == ["even", "if"]:
            return self.end
        enclosed = begin
        for index in range(begin, self.end):
            text, word = self.tokens[index].text, self.words[index]
            enclosed = max(enclosed, self._enclosed_end(index, self.end))
            if index < enclosed:
                continue
            reasoned = not has_verb and word in _FACTS and self._opens_clause(index + 1)
            if reasoned and index > begin and self.kinds[index - 1] in _NOUNS:
                return index
            if index > begin and has_verb:
                after = index + 1
                if text in _PAUSES:
                    if text == ":" and self.words[index - 1] in _CONTENT_VERBS:
                        continue
                    while after < self.end and (
                        self.tokens[after].text in _PAUSES
                        or (self.words[after] in _LINKS - words("because though although"))
                        or self.words[after] == "then"
                    ):
                        after += 1
                    linked = any(self.words[at] in _LINKS for at in range(index + 1, after))
                    if self._opens_clause(after, leading=linked) or self.words[after : after + 1] == [
                        "please"
                    ]:
                        return index
                elif word in ("and", "but", "so", "yet", "though") and (
                    word not in ("so",) or self._pronoun_subject(after)
                ):
                    if has_object and self._opens_clause(after, leading=word != "so"):
                        return index
                elif word == "when" and has_object and self._is_past_event(index):
                    return index
            if self._is_finite(index):
                has_verb = True
                has_object = self.kinds[index] in ("verb", "clause")
            elif has_verb and self.kinds[index] in _NOMINAL | {"pronoun", "adv", "prep"}:
                has_object = True
        return self.end

    def _enclosed_end(self, index: int, end: int) -> int:
        """Return the end of the brackets or quotation marks that open here, or `index`."""
        closer = _PAIRS.get(self.tokens[index].text)
        if closer is None:
            return index
        end = min(end, index + _LOOK_AHEAD)
        return next((at + 1 for at in range(index + 1, end) if self.tokens[at].text == closer), index)

    def _is_past_event(self, index: int) -> bool:
        return (
            index + 2 < self.end
            and self.words[index + 1] in _NOMINATIVE
            and lexicon.is_past(self.tokens[index + 2].text)
        )

    def _pronoun_subject(self, index: int) -> bool:
        return index < self.end and (self.words[index] in _NOMINATIVE or self.kinds[index] == "clause")

    def _opens_clause(self, index: int, *, leading: bool = False) -> bool:
        """Return whether a subject with a finite verb begins here, perhaps behind adverbs."""
        at = index
        while at < self.end and self.kinds[at] == "adv" and self.words[at] not in ("no", "not"):
            at += 1
        if at >= self.end:
            return False
        if self.kinds[at] == "clause":
            return True
        if leading and self.kinds[at] == "prep" and self.words[at] not in _CONDITIONS:
            end = self._leading_end(at)
            return end > at and self._opens_clause(end)
        word = self.words[at]
        if word in _SUBORDINATORS or word in _RELATIVES or word in _CONDITIONS:
            return False
        if word in _NOMINATIVE or word in _DEMONSTRATIVE:
            if any(self._is_finite(after) for after in range(at + 1, min(at + 4, self.end))):
                return True
            if word in _NOMINATIVE:
                return False
        seen = False
        for after in range(at, min(at + _SUBJECT_WORDS_MAX, self.end)):
            kind = self.kinds[after]
            if self._is_finite(after):
                return seen and not is_gerund(self.words[after])
            if kind in _NOUNS or self.words[after] in _DEMONSTRATIVE or kind == "subject":
                seen = True
            elif kind == "prep" or self.words[after] == "and":
                if not seen:
                    return False
            elif kind not in _NOMINAL and kind != "adv":
                return False
        return False

    def _is_finite(self, index: int) -> bool:
        kind = self.kinds[index]
        if kind == "clause" or (kind == "aux" and self.words[index] not in ("be", "been", "being")):
            return True
        if kind not in ("verb", "modal") or is_gerund(self.words[index]):
            return False
        return index == 0 or self.words[index - 1] != "to"

    # --- parts -------------------------------------------------------------------------------------------------

    def _read_parts(self, core: int, begin: int, end: int) -> None:
        """Divide the tokens of a statement among its core and new parts."""
        clause = _Clause()
        main = clause
        part = owner = core
        at = self._apposed_end(begin)
        if at > begin:
            self._new(core, begin, at, PERSON)
        elif self.words[at] == "the" and at + 1 < end and self.kinds[at + 1] in _NOMINAL - {"det"}:
            self._new(core, at, at + 1, ARTICLE)
            at += 1
        questioned = self._is_question(begin, end)
        main.is_negated = questioned and any(self.words[index] in ("or", "if") for index in range(begin, end))
        while at < end:
            skipped = self._parenthesis_end(at, end, main)
            if skipped > at:
                self._new(core, at, skipped, CLAUSE)
                at = skipped
                continue
            quoted = self._enclosed_end(at, end)
            if quoted > at:
                for index in range(at, quoted):
                    self._note(index, clause)
                self._add(part, at, quoted)
                clause.is_complete = True
                at = quoted
                continue
            if self.words[at + (self.tokens[at].text in _PAUSES and at + 1 < end)] in _CONDITIONS | _HEDGES:
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
                if opens or self.tokens[at].text in _PAUSES:
                    owner, clause.phrase = part, -1
                elif behind in (PHRASE, EXACT):
                    clause.phrase, clause.phrase_word = part, self.words[at]
                if self.tokens[at].text in _PAUSES or self.words[at] in _LINKS:
                    self._add(part, at, at + 1)
                    at += 1
                    if at < end and self.words[at] in _LINKS and self.tokens[at - 1].text in _PAUSES:
                        self._add(part, at, at + 1)
                        at += 1
                    if self._is_reducible(at, end):
                        self._new(part, at, at + 2, ADVERB)
                        at += 2
                    continue
            small = self._small_part(at, end)
            if small:
                self._new(part, at, at + 1, max(ADVERB, self.parts[part].behind))
            else:
                self._add(part, at, at + 1)
            self._note(at, clause)
            at += 1

    def _is_reducible(self, at: int, end: int) -> bool:
        """Return whether a relative clause says the same without its first words: which is more than …"""
        if at + 2 >= end or self.words[at] not in ("which", "who") or self.words[at + 1] not in ("is", "was"):
            return False
        return self.words[at + 2] in ("more", "less", "a", "an", "the") or self.kinds[at + 2] in (
            "prep",
            "adj",
        )

    def _apposed_end(self, begin: int) -> int:
        """Return where the name begins in `My sister Clara`, or `begin`."""
        if begin + 2 >= self.end or self.words[begin] not in lexicon.POSSESSIVES:
            return begin
        named = self.tokens[begin + 2].text[0].isupper() and self.kinds[begin + 2] != "clause"
        noun = self.words[begin + 1]
        return begin + 2 if named and (noun in lexicon.PERSONS or noun.endswith("-in-law")) else begin

    def _parenthesis_end(self, at: int, end: int, main: _Clause) -> int:
        """Return the end of a parenthesis, or of a clause between commas before the verb; `at` if there is none."""
        if self.tokens[at].text == "(":
            return self._enclosed_end(at, end)
        if self.kinds[at] == "prep" and not main.has_verb:
            return self._described_end(at, end)
        if self.tokens[at].text != "," or main.has_verb or at + 1 >= end:
            return at
        word, kind = self.words[at + 1], self.kinds[at + 1]
        if word not in _RELATIVES and kind not in ("det", "prep") and word not in lexicon.POSSESSIVES:
            return at
        for index in range(at + 2, min(at + 25, end - 1)):
            if self.tokens[index].text == ",":
                return index + 1 if self._is_finite(index + 1) and self.kinds[index + 1] != "clause" else at
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
        while stop < end and self.kinds[stop] in _NOMINAL:
            stop += 1
        return stop if stop < end and self._is_finite(stop) and self.kinds[stop] != "clause" else at

    def _note(self, at: int, clause: _Clause) -> None:
        """Record what a word adds to its clause."""
        kind, word = self.kinds[at], self.words[at]
        clause.is_conditional = clause.is_conditional or word in ("if", "unless")
        if is_negation(self.tokens[at]) or word in ("only", "hardly", "if", "either", "whether"):
            clause.is_negated = True
        if self._is_finite(at) or kind == "verb":
            clause.has_verb = clause.has_verb or self._is_finite(at)
            clause.is_complete = word in _COMPLETE
            clause.is_be = word in _BE or kind == "clause"
            clause.verb = word
        elif (
            clause.has_verb
            and (
                kind in _NOUNS
                or kind == "pronoun"
                or (kind == "adv" and word.endswith("ly"))
                or (kind == "adj" and clause.is_be and self._ends_noun(at))
            )
        ) or self._is_particle(at):
            clause.is_complete = True
        elif kind in ("subject", "det", "adj", "mod", "to", "prep"):
            clause.is_complete = clause.is_complete and kind != "subject"

    def _is_particle(self, at: int) -> bool:
        """Return whether a word completes the verb before it, and a phrase follows: the licence runs out on …"""
        return (
            at > 0
            and self.words[at] in _PARTICLES
            and self.kinds[at - 1] == "verb"
            and (at + 1 >= self.end or self.kinds[at + 1] == "prep")
        )

    def _ends_noun(self, at: int) -> bool:
        return at + 1 >= self.end or self.kinds[at + 1] not in ("noun", "mod", "name", "adj")

    def _small_part(self, at: int, end: int) -> bool:
        """Return whether one adverb or adjective can be left out."""
        if at + 1 >= end or self.tokens[at].tag != "word":
            return False
        word, before, after = (
            self.words[at],
            self.words[at - 1] if at else "",
            self.words[at + 1],
        )
        if not at or self.tokens[at - 1].tag != "word" or is_negation(self.tokens[at - 1]):
            return False
        if self.tokens[at + 1].tag != "word" or self.kinds[at + 1] in ("break", "conj"):
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
        if text in _PAUSES and at + 1 < end:
            return self._behind_comma(at, end, clause)
        before = self.kinds[at - 1]
        if (
            self.words[at - 1] in lexicon.NO_END - _MAY_END
            and before != "num"
            and not self._is_particle(at - 1)
        ):
            return None
        settled = clause.is_complete and not clause.is_negated and not main.is_negated
        if word in _REASONS and not main.is_negated and before not in ("aux", "conj", "det"):
            return REASON, self.words[at + 1 : at + 2] != ["of"]
        if settled and word in _LAST and at + 1 >= end and before in _NOUNS | {"pronoun"}:
            return PHRASE, False
        if not settled or at + 1 >= end:
            return None
        if word == "and":
            return self._behind_and(at, end, begin)
        if word in _SUBORDINATORS and (before in _NOUNS or before in ("pronoun", "adv", "adj")):
            if self._opens_clause(at + 1):
                return CLAUSE, True
            return None if word not in _EXACT_PREPOSITIONS else self._phrase(at, end, clause)
        if word in _RELATIVES and before in _NOUNS:
            cleft = clause.is_be and bool(_CLEFT.intersection(self.words[begin : begin + 2]))
            return None if cleft or self.words[at - 1] in ("one", "ones") else (CLAUSE, True)
        if kind == "prep" and (
            before in _NOUNS
            or before == "pronoun"
            or self.words[at - 1] in _COMPLETE
            or self._is_particle(at - 1)
        ):
            return self._phrase(at, end, clause)
        timed = before in _NOUNS | {"pronoun", "adv", "adj"} or self.words[at - 1] in _COMPLETE
        if timed and self._is_time(at, end):
            return EXACT, False
        return None

    def _phrase(self, at: int, end: int, clause: _Clause) -> tuple[float, bool] | None:
        """Return the rank of a prepositional phrase, or None if its clause needs it."""
        word = self.words[at]
        if word in _BOUND_PREPOSITIONS or word in _CONDITIONS:
            return None
        if at + 1 >= end or self.kinds[at + 1] in ("break", "prep", "conj", "verb", "aux", "clause", "to"):
            return None
        before = self.kinds[at - 1]
        if not clause.is_placed and (
            clause.verb in _PLACING or (clause.verb in _HOLDING and before == "pronoun")
        ):
            clause.is_placed = True
            return None
        if word in ("about", "for") and clause.verb in _CONTENT_VERBS and before == "pronoun":
            return None
        if (word, self.words[at + 1]) in _IDIOMS:
            return None
        end = min(end, at + _LOOK_AHEAD)
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
            self._is_finite(index)
            and self.kinds[index] != "clause"
            and self.words[index - 1] not in _NOMINATIVE
            and self.kinds[index - 1] in _NOUNS
        )

    def _is_time(self, at: int, end: int) -> bool:
        """Return whether a time without a preposition begins here: last year, tomorrow, 30 years ago."""
        word = self.words[at]
        if word in _TIME_WORDS:
            return True
        after = self.words[at + 1] if at + 1 < end else ""
        if word in _POINTING and after in _PERIODS:
            return True
        if word in ("once", "twice") and after in ("a", "every"):
            return True
        return after in ("ago", "times") or (at + 2 < end and self.words[at + 2] == "ago")

    def _behind_and(self, at: int, end: int, begin: int) -> tuple[float, bool] | None:
        """Return the rank of what `and` adds: a second predicate or the last item of a list."""
        if any(self.words[i] in _TWO_SIDED for i in range(max(begin, at - _LOOK_AHEAD), at)):
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
        if self.kinds[after] in _NOMINAL or self.kinds[after] == "prep":
            stop = self._pause(after, end)
            if any(self._is_finite(i) for i in range(after, stop)) or self._shares_head(at, after):
                return None
            return ITEM, False
        return None

    def _shares_head(self, at: int, after: int) -> bool:
        """Return whether `and` joins words of one noun phrase: a leek and cawl supper."""
        first = at - 1
        while first > 0 and self.kinds[first] in _NOUNS | {"adj", "mod"}:
            first -= 1
        determined = self.kinds[first] == "det" or self.words[first] in lexicon.POSSESSIVES
        return determined and self.kinds[after] not in ("det", "name", "prep", "num")

    def _behind_comma(self, at: int, end: int, clause: _Clause) -> tuple[float, bool] | None:
        """Return the rank of what a pause adds, or None if the clause is untrue or broken without it."""
        text = self.tokens[at].text
        after = at + 1
        while after < end and (self.tokens[after].text in _PAUSES or self.tokens[after].text in _QUOTES):
            after += 1
        word = self.words[after] if after < end else ""
        if word in _CONDITIONS or word in _HEDGES or clause.is_conditional or word in ("or", "than", "that"):
            return None
        if self.kinds[at - 1] == "num" and after < end and self.kinds[after] in ("num", "time"):
            return None
        if text == ":" and (clause.verb in _CONTENT_VERBS or not clause.is_complete):
            return None
        if text in ",—–" and self.words[at - 1] in _CONTENT_VERBS and self.words[at - 1] != "know":
            return None
        if self.kinds[at - 1] in ("det", "aux", "to", "clause", "subject") or not clause.has_verb:
            return None
        if word in ("but", "yet", "though") or self._is_inverted(after):
            return None
        if word in ("and", "so", "then") and after + 1 < end:
            after += 1
        kind = self.kinds[after] if after < end else ""
        if word in _RELATIVES or word in _SUBORDINATORS:
            return (REASON if word in _REASONS else CLAUSE), True
        if kind in ("verb", "aux", "modal"):
            return CLAUSE, True
        stop = self._pause(after, end)
        exact = any(self.kinds[i] in ("name", "time", "num", "code") for i in range(after, stop))
        return (EXACT if exact else ITEM if kind in _NOMINAL else CLAUSE), False

    def _parent(
        self, at: int, end: int, behind: float, opens: bool, clause: _Clause, owner: int, core: int, part: int
    ) -> int:
        """Return the part that a new part depends on."""
        if any(self.words[i] in _BACK_POINTERS for i in range(at + 1, self._pause(at + 1, end))):
            return part
        if self.tokens[at].text in _PAUSES or opens:
            return core if opens else part
        if clause.phrase >= 0 and (behind == PHRASE or clause.phrase_word not in _LOCATING):
            return clause.phrase
        if self.words[at] in ("and", "but") and part != owner:
            return part
        return owner

    def _pause(self, begin: int, end: int) -> int:
        """Return the next pause, within a limit so that a sentence without any is read in linear time."""
        end = min(end, begin + _LOOK_AHEAD)
        return next((index for index in range(begin, end) if self.tokens[index].text in _PAUSES), end)

    def _named(self, start: int, host: Statement) -> tuple[int, tuple[int, ...]]:
        """Return the pronoun that begins a statement, and the name that is the subject of the one before."""
        if start >= self.end or self.words[start] not in ("he", "she"):
            return -1, ()
        inside = range(host.begin, host.end)
        at = self._apposed_end(host.begin)
        name: list[int] = []
        while at < host.end and self.tokens[at].text[0].isupper() and self.tokens[at].tag == "word":
            name.append(at)
            at += 1
        if not name or self.words[name[0]] in lexicon.FUNCTION_WORDS or self.kinds[name[0]] == "clause":
            return -1, ()
        others = [i for i in inside if i not in name and i >= at]
        if any(
            (self.kinds[i] == "name" or self.words[i] in lexicon.PERSONS or self.words[i] in ("he", "she"))
            for i in others
        ):
            return -1, ()
        return start, tuple(name)
