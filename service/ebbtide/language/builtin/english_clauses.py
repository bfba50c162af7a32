"""Find where the clauses of an English sentence begin and end."""

from __future__ import annotations

from collections.abc import Sequence

from ebbtide.language.builtin import words_english as lexicon
from ebbtide.language.builtin.english_classes import is_gerund
from ebbtide.language.builtin.english_tags import normal
from ebbtide.language.builtin.tokens import Token
from ebbtide.language.builtin.word_lists import ordered_list, word_list, words

# Marks behind which a clause or another part may begin.
PAUSES = frozenset(",;:—–(…")
# Words that begin a condition, an exception or a limit.
CONDITIONS = words("if unless until till once provided whether except without 'til")
# Words that begin a reason.
REASONS = words("because bc cuz coz")
SUBORDINATORS = REASONS | words("although though while whereas when whenever since where after before")
RELATIVES = words("who whose which who's whos who'd who'll who've")
LINKS = REASONS | words("and but so or yet plus nor then & though although")
NOMINATIVE = words("i he she we they it you there u")
EXACT_PREPOSITIONS = words("in on at since during by after before")
TIME_WORDS = words(
    "yesterday today tomorrow tonight nowadays lately recently anyway though too now again soon"
)
PERIODS = lexicon.WEEKDAYS | lexicon.MONTHS | word_list("english_time_nouns")
POINTING = words("last next this every each")
NOUNS = words("noun name code time num")
NOMINAL = NOUNS | words("adj mod det")
# Verbs whose object is a clause.
CONTENT_VERBS = word_list("english_content_verbs")
# How many words after a word are read at most, so that a sentence without pauses is read in linear time.
LOOK_AHEAD = 60
_CLOSING = frozenset(".!?…")
_PAIRS = {"(": ")", '"': '"', "“": "”"}
_LINKS_BEHIND_PAUSES = LINKS - words("because though although")
_FACTS = REASONS | {"since"}
# Words that say nothing at the end of a sentence: I can't find you so.
_TRAILING = REASONS | words("so and but or")
_BEFORE_TRAILING = NOUNS | {"pronoun", "subject"}
_DEMONSTRATIVE = words(
    "that this these those everyone everybody someone somebody nobody anyone everything something nothing one both"
    " mine yours hers ours theirs none"
)
_ASKING = words("what who whose which when where why how what's who's where's how's when's whats hows")
# Words that begin a condition before its consequence.
_LEADING_CONDITIONS = words("if unless once provided whether until suppose supposing")
# Past forms that the lists of words have as nouns, adjectives or present forms.
_PASTS = words("quit left led lay cut put set let hit read found felt lost met broke")
# Words that only announce a statement.
_ANNOUNCEMENTS = tuple(tuple(line.split()) for line in ordered_list("english_announcements"))
_SUBJECT_WORDS_MAX = 9
_LEADING_WORDS_MAX = 5


class Clauses:
    """The words of a text, read sentence by sentence.

    `end` is the end of the sentence that is read, and `closing` the mark that closes it, or -1.
    """

    def __init__(self, tokens: Sequence[Token], kinds: list[str]) -> None:
        """Begin before the first sentence."""
        self.tokens = tokens
        self.kinds = kinds
        self.words = [normal(token.text) for token in tokens]
        self.end = 0
        self.closing = -1

    def is_finite(self, index: int) -> bool:
        """Return whether a word is a verb that has a subject: no infinitive and no form in -ing."""
        kind = self.kinds[index]
        if kind == "clause" or (kind == "aux" and self.words[index] not in ("be", "been", "being")):
            return True
        if kind not in ("verb", "modal") or is_gerund(self.words[index]):
            return False
        return index == 0 or self.words[index - 1] != "to"

    def is_verb(self, index: int) -> bool:
        """Return whether a word is a finite verb that does not include its subject, as I'm does."""
        return self.kinds[index] != "clause" and self.is_finite(index)

    def begin_sentence(self, begin: int, end: int) -> None:
        """Read the sentence of the tokens [begin, end). Its closing mark and trailing links are left out."""
        self.closing = -1
        while end > begin + 1 and self.tokens[end - 1].text[0] in _CLOSING:
            end -= 1
            self.closing = end
        self._find_verb(begin, end)
        while end > begin + 1 and self._is_trailing(end - 1, begin):
            end -= 1
        self.end = end

    def _find_verb(self, begin: int, end: int) -> None:
        """Read a noun as the verb of a sentence without a verb if it may be one: the scholarship covers tuition."""
        if any(self.is_finite(index) for index in range(begin, end)):
            return
        for index in range(begin + 1, end):
            word = self.words[index]
            form = word in _PASTS or (word.endswith("s") and word in lexicon.AMBIGUOUS)
            if form and self.kinds[index] in ("noun", "adj") and self.kinds[index - 1] in ("noun", "name"):
                self.kinds[index] = "verb"
                return

    def _is_trailing(self, index: int, begin: int) -> bool:
        """Return whether a word links to a clause that does not follow."""
        if self.words[index] not in _TRAILING or self.kinds[index - 1] not in _BEFORE_TRAILING:
            return False
        before = self.words[max(begin, index - 3) : index]
        return CONTENT_VERBS.isdisjoint(before)

    def link_end(self, begin: int) -> int:
        """Return the end of the words that link a statement to the one before, or `begin`."""
        at = begin
        while at < self.end and (
            self.tokens[at].text in PAUSES or self.words[at] in LINKS or self.words[at] == "when"
        ):
            at += 1
        if at == begin and self.words[at] == "since" and self.opens_clause(at + 1):
            at += 1
        return at

    def is_question(self, begin: int, end: int) -> bool:
        """Return whether a statement asks: by its mark, or without one by its first words."""
        asking = begin < end and self.words[begin] in _ASKING
        inverted = begin + 1 < end and self.is_inverted(begin)
        if self.closing >= 0:
            return "?" in self.tokens[self.closing].text and (end >= self.end or asking or inverted)
        return inverted and self.words[begin] not in ("do", "have")

    def is_inverted(self, begin: int) -> bool:
        """Return whether a question without a question word begins here."""
        return (
            begin + 1 < self.end
            and self.kinds[begin] == "aux"
            and self.kinds[begin + 1] in ("subject", "det", "name")
        )

    def opener_end(self, begin: int) -> int:
        """Return the end of words before a subject that can be left out, or `begin`."""
        end = begin
        if self.words[begin] in lexicon.OPENERS and self.words[begin] not in ("please", "because"):
            end += 1
            while end < self.end and self.tokens[end].text in ",-–—!":
                end += 1
            thanks = self.words[begin] in ("thank", "thanks", "congrats")
            is_alone = end == begin + 1 and self.words[begin] not in LINKS
            return begin if is_alone and (thanks or not self.opens_clause(end)) else end
        for found in (self._announcement_end(begin), self._address_end(begin)):
            if found > begin:
                return found
        return begin if self.opens_clause(begin) else self._leading_end(begin)

    def _address_end(self, begin: int) -> int:
        """Return the end of a name and its comma before a question (Ate Joy, are you …), or `begin`."""
        at = begin
        while at < min(begin + 3, self.end) and self.tokens[at].text[0].isupper():
            at += 1
        if at == begin or at + 1 >= self.end or self.tokens[at].text != ",":
            return begin
        return at + 1 if self.kinds[at - 1] in NOUNS and self.is_inverted(at + 1) else begin

    def _announcement_end(self, begin: int) -> int:
        """Return the end of words that only announce a statement (it turned out that), or `begin`."""
        for phrase in _ANNOUNCEMENTS:
            end = begin + len(phrase)
            if tuple(self.words[begin:end]) == phrase:
                end += end < self.end and (self.words[end] == "that" or self.tokens[end].text == ",")
                return end if self.opens_clause(end) else begin
        return begin

    def _leading_end(self, begin: int) -> int:
        """Return the end of an adverbial or subordinate clause before the subject, or `begin`."""
        word = self.words[begin]
        if word in CONDITIONS or word == "not":
            return begin
        phrase = self.kinds[begin] == "prep" or word in SUBORDINATORS
        timed = word in TIME_WORDS or (
            word in POINTING and begin + 1 < self.end and self.words[begin + 1] in PERIODS
        )
        named = self.kinds[begin] == "name"
        if not phrase and not timed and self.kinds[begin] not in ("adv", "name"):
            return begin
        for index in range(begin + 1, min(self.end, begin + 40)):
            if self.tokens[index].text == ",":
                if not self.opens_clause(index + 1) and self.words[index + 1 : index + 2] != ["please"]:
                    return begin
                verbal = any(self.is_finite(at) for at in range(begin, index))
                if named:
                    return index + 1 if index == begin + 1 else begin
                return index + 1 if not verbal or word in SUBORDINATORS else begin
            if self.tokens[index].text in PAUSES:
                return begin
            if word not in SUBORDINATORS and self.is_verb(index):
                return begin
            pronoun = self.words[index] in NOMINATIVE - {"it", "you"} or self.kinds[index] == "clause"
            settles = word not in SUBORDINATORS or (word in EXACT_PREPOSITIONS and index > begin + 1)
            if pronoun and not named and settles and index - begin <= _LEADING_WORDS_MAX:
                known = self.opens_clause(index) and self.kinds[index - 1] in (*NOUNS, "adv", "clause")
                return index if known and (phrase or timed) else begin
        return begin

    def statement_end(self, begin: int) -> int:
        """Return where the next independent clause begins."""
        has_verb = has_object = False
        if self.words[begin] in _LEADING_CONDITIONS or self.words[begin : begin + 2] == ["even", "if"]:
            return self.end
        enclosed = begin
        for index in range(begin, self.end):
            text, word = self.tokens[index].text, self.words[index]
            enclosed = max(enclosed, self.enclosed_end(index, self.end))
            if index < enclosed:
                continue
            reasoned = not has_verb and word in _FACTS and self.opens_clause(index + 1)
            if reasoned and index > begin and self.kinds[index - 1] in NOUNS:
                return index
            if index > begin and has_verb:
                after = index + 1
                if text in PAUSES:
                    if text == ":" and self.words[index - 1] in CONTENT_VERBS:
                        continue
                    while after < self.end and (
                        self.tokens[after].text in PAUSES or self.words[after] in _LINKS_BEHIND_PAUSES
                    ):
                        after += 1
                    linked = any(self.words[at] in LINKS for at in range(index + 1, after))
                    if self.opens_clause(after, leading=linked) or self.words[after : after + 1] == [
                        "please"
                    ]:
                        return index
                elif has_object and self._links_clause(index):
                    return index
            if self.is_finite(index):
                has_verb = True
                has_object = self.kinds[index] in ("verb", "clause")
            elif has_verb and self.kinds[index] in NOMINAL | {"pronoun", "adv", "prep"}:
                has_object = True
        return self.end

    def enclosed_end(self, index: int, end: int) -> int:
        """Return the end of the brackets or quotation marks that open here, or `index`."""
        closer = _PAIRS.get(self.tokens[index].text)
        if closer is None:
            return index
        end = min(end, index + LOOK_AHEAD)
        return next((at + 1 for at in range(index + 1, end) if self.tokens[at].text == closer), index)

    def _links_clause(self, index: int) -> bool:
        """Return whether a word without a pause before it links an independent clause: and we left."""
        word, after = self.words[index], index + 1
        if word == "so":
            return self._pronoun_subject(after) and self.opens_clause(after)
        if word == "when":
            is_event = index + 2 < self.end and lexicon.is_past(self.tokens[index + 2].text)
            return is_event and self.words[after] in NOMINATIVE
        return word in ("and", "but", "yet", "though") and self.opens_clause(after, leading=True)

    def _pronoun_subject(self, index: int) -> bool:
        return index < self.end and (self.words[index] in NOMINATIVE or self.kinds[index] == "clause")

    def opens_clause(self, index: int, *, leading: bool = False) -> bool:
        """Return whether a subject with a finite verb begins here, perhaps behind adverbs."""
        at = index
        while at < self.end and self.kinds[at] == "adv" and self.words[at] not in ("no", "not"):
            at += 1
        if at >= self.end:
            return False
        if self.kinds[at] == "clause":
            return True
        if leading and self.kinds[at] == "prep" and self.words[at] not in CONDITIONS:
            end = self._leading_end(at)
            return end > at and self.opens_clause(end)
        word = self.words[at]
        if word in SUBORDINATORS or word in RELATIVES or word in CONDITIONS:
            return False
        if word in NOMINATIVE or word in _DEMONSTRATIVE:
            if any(self.is_finite(after) for after in range(at + 1, min(at + 4, self.end))):
                return True
            if word in NOMINATIVE:
                return False
        seen = False
        for after in range(at, min(at + _SUBJECT_WORDS_MAX, self.end)):
            kind = self.kinds[after]
            if self.is_finite(after):
                return seen and not is_gerund(self.words[after])
            if kind in NOUNS or self.words[after] in _DEMONSTRATIVE or kind == "subject":
                seen = True
            elif kind == "prep" or self.words[after] == "and":
                if not seen:
                    return False
            elif kind not in NOMINAL and kind != "adv":
                return False
        return False

    def apposed_end(self, begin: int) -> int:
        """Return where the name begins in `My sister Clara`, or `begin`."""
        if begin + 2 >= self.end or self.words[begin] not in lexicon.POSSESSIVES:
            return begin
        named = self.tokens[begin + 2].text[0].isupper() and self.kinds[begin + 2] != "clause"
        noun = self.words[begin + 1]
        return begin + 2 if named and (noun in lexicon.PERSONS or noun.endswith("-in-law")) else begin
