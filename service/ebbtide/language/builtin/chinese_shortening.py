"""Shorten a Chinese text to whole statements, or else to a list of notes.

A statement is a clause with what it needs (see chinese_links.py), from which only words are left out that it can do
without (see chinese_reductions.py). Clauses are chosen by their worth. Where no statement fits that says as much, the
result is openly a list of notes (丹麦、菌株).
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence

from ebbtide.han import contains_han
from ebbtide.language.builtin import words_chinese
from ebbtide.language.builtin.candidates import candidates
from ebbtide.language.builtin.chinese_clauses import Clause
from ebbtide.language.builtin.chinese_links import linked_clauses
from ebbtide.language.builtin.chinese_notes import (
    fewer_notes,
    is_notes,
    notes,
    weight_of_notes,
    word_of,
)
from ebbtide.language.builtin.chinese_reductions import LIGHT, MODIFIER, STRONG, Reduction, reductions
from ebbtide.language.builtin.negation import holds_negation
from ebbtide.language.builtin.sentences import sentence_spans
from ebbtide.language.builtin.telling import BACKGROUND, DECIDING, names_something
from ebbtide.language.builtin.tokens import Candidate
from ebbtide.language.builtin.trimming import trim_end

_RESULT = re.compile("所以|因此")
_REASON = re.compile("主要是|因为|由于|虽然|毕竟")
_CONCLUDING = re.compile("最后|最终|终于")
# A clause that only leads to the news: 吴阿姨你记得吧; 我爸给我打视频.
_FRAME = re.compile(
    "[你您]们?还?(?:记得|知道|晓得|认得|认识|听说)[不吧吗嘛过了]{0,2}$|给我们?(?:打|发)[了过来]{0,2}一?个?(?:视频|电话|微信|语音|消息)$"
)
_AMOUNT = re.compile("[万千百亿块元]")
_QUESTIONS = ("?", "？")
_ENDS = "。！？!?.；"
# Numbers and dates weigh more in statements than as keywords.
_FACTORS = {"number": 1.8, "time": 1.6, "code": 1.2, "weak": 0.3}
# A chain of clauses that need each other is rarely longer.
_CHAIN_MAX = 24
_FULL = 0.5
# How much more notes must say than a statement that is not the main one.
_MUCH = 1.5
_DECIDES = 2.0
# Characters that are read. A memory is rarely longer than a few hundred.
_TEXT_MAX = 20_000
_NAMES_SOMETHING = 1.0
_NEEDED = 10.0


def _may_touch(left: str, right: str) -> bool:
    """Whether two characters can stand side by side: two words of other scripts would become one."""
    if left.isascii() and right.isascii():
        return False
    return not (left.isalnum() and right.isalnum()) or contains_han(left) or contains_han(right)


def shorten_chinese(text: str, target: int, first: str = "") -> str:
    """Return a text in at most `target` characters. `first` is the text of which it may already be a list of notes."""
    if len(text) <= target:
        return text
    if is_notes(text, first or text):
        return fewer_notes(text, target, first or text, _Reader(_beginning(first or text)).main())
    text = _beginning(text)
    if len(text) <= target:
        return text
    reader = _Reader(text)
    statement = reader.statements(target)
    if len(statement) >= _FULL * target and reader.has_best:
        return statement
    listed = notes(text, target, reader.main())
    said = _weight(statement) if reader.has_news else 0.0
    more = weight_of_notes(text, listed) > said * (_MUCH if len(statement) >= _FULL * target else 1.0)
    fuller = 2 * len(listed) < target <= 2 * len(statement) or 2 * len(listed) < len(statement)
    if (
        more
        and not fuller
        and (
            len(listed) > len(statement) or not reader.has_best or not names_something(candidates(statement))
        )
    ):
        return listed
    return statement or word_of(text, target)


def _beginning(text: str) -> str:
    """Return the first whole sentences of a text, as far as it is read."""
    if len(text) <= _TEXT_MAX:
        return text
    ends = [end for _, end in sentence_spans(text[:_TEXT_MAX])]
    return text[: ends[-2] if len(ends) > 1 else _TEXT_MAX]


def without_small_talk(text: str) -> str:
    """Return a text without the small talk at its ends."""
    stated = [clause for clause in linked_clauses(text) if not clause.idle]
    return text[stated[0].start : stated[-1].end] if stated else text


def _weight(text: str) -> float:
    """Return how telling a statement is: its noun phrases, and more if it names any."""
    weight = sum(candidate.weight for candidate in candidates(text))
    weight += _NAMES_SOMETHING * (weight >= _NAMES_SOMETHING)
    return weight * (_DECIDES if DECIDING.search(text) else 1.0)


class _Reader:
    """The clauses of a text, their worth, and what can be left out of each."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.clauses = linked_clauses(text)
        # Whether the last statements contain the clause of most worth.
        self.has_best = False
        # Whether they contain more than what leads to the news.
        self.has_news = True
        # The clauses whose subject another clause borrows, and that clause.
        self.lent: dict[int, int] = {}
        self.parts = [reductions(clause) for clause in self.clauses]
        self.sizes: dict[int, list[int]] = {}
        self.found = candidates(text)
        self.starts = [candidate.start for candidate in self.found]
        self.worth = self._worths()

    def statements(self, target: int) -> str:
        """Return the clauses of most worth that fit with what they need, or ""."""
        order = sorted(range(len(self.clauses)), key=lambda index: (-self.worth[index], index))
        # A mark between two clauses may be longer than one character.
        for room in (target, target - 1, target - 3):
            choices = [(level, self._chosen(order, room, level)) for level in (MODIFIER, STRONG)]
            level, kept = max(choices, key=lambda choice: (self._best(choice[1]), -choice[0]))
            said = self._joined(kept, self._left_out(kept, target, level), target) if kept else ""
            if len(said) <= target:
                self.has_best = bool(order) and order[0] in kept
                self.has_news = not all(self._only_leads(index) for index in kept)
                return said
        return ""

    def main(self) -> tuple[int, int]:
        """Return where the clause of most worth lies."""
        best = max(range(len(self.clauses)), key=self.worth.__getitem__, default=-1)
        return (self.clauses[best].start, self.clauses[best].end) if best >= 0 else (0, 0)

    def _best(self, kept: Iterable[int]) -> float:
        return max((self.worth[index] for index in kept), default=-math.inf)

    def _chosen(self, order: list[int], target: int, level: int) -> dict[int, tuple[int, int]]:
        """Return the clauses that fit without what may be left out, each with the words that it borrows."""
        sizes, light = self._sizes(level), self._sizes(LIGHT)
        kept: dict[int, tuple[int, int]] = {}
        self.lent = {}
        room = light_room = target + 1
        for index in order:
            if index in kept or (self.clauses[index].idle and kept):
                continue
            # A clause that says little is not kept at the cost of the modifiers of better clauses.
            spare = light_room if kept and self.worth[index] < 0 else room
            if self._borrow(index, sizes, kept, spare):
                added = kept[index][1] - kept[index][0] + 1
                room -= sizes[index] + added
                light_room -= light[index] + added
                continue
            chain = self._chain(index, kept, sizes, spare)
            if chain:
                room -= sum(sizes[at] + 1 for at in chain)
                light_room -= sum(light[at] + 1 for at in chain)
                kept.update((at, (0, 0)) for at in chain)
        return kept

    def _borrow(self, index: int, sizes: list[int], kept: dict[int, tuple[int, int]], room: int) -> bool:
        """Keep a clause with the subject of a clause that is not kept. Return whether that is possible."""
        clause = self.clauses[index]
        lender = clause.lender
        if lender < 0 or lender in kept or any(at != lender and at not in kept for at in clause.needs):
            return False
        host = self.clauses[lender].tokens[self.clauses[lender].body]
        if sizes[index] + host.end - host.start + 1 > room:
            return False
        kept[index] = (host.start, host.end)
        self.lent[lender] = min(index, self.lent.get(lender, index))
        return True

    def _chain(
        self, index: int, kept: dict[int, tuple[int, int]], sizes: Sequence[int], room: int
    ) -> set[int]:
        """Return a clause with all that it needs, directly or not. Empty if they do not fit."""
        chain, waiting = {index}, [index]
        room -= sizes[index] + 1
        while waiting and room >= 0 and len(chain) <= _CHAIN_MAX:
            for needed in self.clauses[waiting.pop()].needs:
                if needed not in chain and needed not in kept and self.lent.get(needed, index) >= index:
                    chain.add(needed)
                    waiting.append(needed)
                    room -= sizes[needed] + 1
        return chain if not waiting and room >= 0 else set()

    def _sizes(self, level: int) -> list[int]:
        """Return the size of each clause without what may be left out."""
        if level not in self.sizes:
            self.sizes[level] = [self._size(index, level) for index in range(len(self.clauses))]
        return self.sizes[level]

    def _size(self, index: int, level: int) -> int:
        tokens = self.clauses[index].tokens
        gone = _positions(part for part in self.parts[index] if part.level <= level)
        end = self.clauses[index].end
        asks = self.text[end : end + 1] in _QUESTIONS
        return sum(len(token.text) for at, token in enumerate(tokens) if at not in gone) + asks

    def _left_out(
        self, kept: dict[int, tuple[int, int]], target: int, level: int
    ) -> dict[int, list[Reduction]]:
        """Return what must be left out of the clauses. The most telling part is put back first."""
        out = {index: [part for part in self.parts[index] if part.level <= level] for index in kept}
        room = target - len(self._joined(kept, out, 0))
        offers = [(-self._told(index, part), index, part) for index in kept for part in out[index]]
        for _, index, part in sorted(offers):
            if (
                part.begin == 0
                and part.level == LIGHT
                and part.end == self.clauses[index].body
                and index - 1 not in kept
            ):
                continue
            fewer = [other for other in out[index] if other != part]
            before, after = _positions(out[index]), _positions(fewer)
            size = sum(len(self.clauses[index].tokens[at].text) for at in before - after)
            if size <= room:
                out[index] = fewer
                room -= size
        return out

    def _told(self, index: int, part: Reduction) -> float:
        """Return how much a part of a clause says."""
        tokens = self.clauses[index].tokens[part.begin : part.end]
        start, end = tokens[0].start, tokens[-1].end
        inside = self.found[bisect_left(self.starts, start) : bisect_left(self.starts, end)]
        score = 3.0 * part.level + sum(candidate.weight for candidate in inside)
        # 我本来想去，但是请不到假: the clause before needs 但是.
        contrasts = part.begin == 0 and any(token.text in words_chinese.CONTRASTS for token in tokens)
        return score + _NEEDED * (contrasts and index > 0 and index in self.clauses[index - 1].needs)

    def _joined(self, kept: dict[int, tuple[int, int]], out: dict[int, list[Reduction]], target: int) -> str:
        """Join the clauses in the order of the text, with the marks between them."""
        pieces: list[str] = []
        last = -1
        for index in sorted(kept):
            if last >= 0:
                pieces.append(self._mark(last, index))
            begin, end = kept[index]
            borrows = begin < end and self.clauses[index].lender not in kept
            pieces.append(self.text[begin:end] if borrows else "")
            pieces.append(self._said(index, _positions(out[index]), borrows))
            last = index
        clause = self.clauses[last]
        said = trim_end("".join(pieces))
        closing = self.text[clause.end : clause.end + 1]
        return said + closing if closing and closing in _ENDS and len(said) < target else said

    def _said(self, index: int, gone: set[int], borrows: bool) -> str:
        clause = self.clauses[index]
        pieces: list[str] = []
        last = -1
        for at, token in enumerate(clause.tokens):
            if at in gone or (borrows and at < clause.body):
                continue
            if borrows and at == clause.body and token.text in ("他", "她", "它"):
                continue
            if last >= 0:
                before = clause.tokens[last]
                gap = self.text[before.end : token.start]
                joined = "" if _may_touch(before.text[-1], token.text[0]) else " "
                pieces.append(gap if last == at - 1 else joined)
            pieces.append(token.text)
            last = at
        return "".join(pieces)

    def _mark(self, index: int, after: int) -> str:
        """Return what separates two kept clauses: the mark of the text, or the end of the sentence between them."""
        end, start = self.clauses[index].end, self.clauses[after].start
        if after == index + 1:
            return self.text[end:start]
        if self.clauses[index].sentence == self.clauses[after].sentence:
            return "，"
        closing = self.text[end : end + 1]
        return closing if closing in _ENDS and closing else "。"

    def _worths(self) -> list[float]:
        first = self._first_statement()
        worths: list[float] = []
        for index, clause in enumerate(self.clauses):
            inside = self._named_in(clause)
            value = sum(_FACTORS.get(c.kind, 1.0) * c.weight for c in inside)
            hollow = not names_something(inside) and not _counts(clause)
            said = self.text[clause.start : clause.end]
            worth = 0.15 * min(value, 8.0) + 0.01 * min(len(said), 30)
            worth += 1.5 if index == first else 0.0
            worth += 1.2 if DECIDING.search(said) or _CONCLUDING.match(said) else 0.0
            worth += 1.5 if _RESULT.match(said) else 0.0
            worth -= 1.5 if BACKGROUND.search(said) or _REASON.match(said) else 0.0
            worth -= 0.8 if "的话" in said or "如果" in said else 0.0
            worth += 0.2 if holds_negation(clause.tokens) else 0.0
            worth -= 0.8 if hollow else 0.0
            worth -= 0.6 if clause.fragment or not clause.subject else 0.0
            worth -= 1.5 if _FRAME.search(said) else 0.0
            closing = self.text[clause.end : clause.end + 1]
            worth -= 1.0 if closing in _QUESTIONS else 0.0
            worths.append(worth - 3.0 * clause.idle)
        return worths

    def _only_leads(self, index: int) -> bool:
        clause = self.clauses[index]
        return clause.idle or _FRAME.search(self.text[clause.start : clause.end]) is not None

    def _named_in(self, clause: Clause) -> Sequence[Candidate]:
        return self.found[bisect_left(self.starts, clause.start) : bisect_left(self.starts, clause.end)]

    def _first_statement(self) -> int:
        """Return the first clause that states something, or the one that concludes its sentence: 最后决定…"""
        first = -1
        for index, clause in enumerate(self.clauses):
            if first >= 0 and clause.sentence != self.clauses[first].sentence:
                break
            said = self.text[clause.start : clause.end]
            if first >= 0 and _CONCLUDING.match(said):
                return index
            inside = self._named_in(clause)
            asks = self.text[clause.end : clause.end + 1] in _QUESTIONS
            if first < 0 and not (
                clause.idle
                or clause.fragment
                or asks
                or (not names_something(inside) and not _counts(clause))
            ):
                skipped = BACKGROUND.search(said) or _REASON.match(said) or _FRAME.search(said)
                first = -1 if skipped else index
        return max(first, 0)


def _counts(clause: Clause) -> bool:
    """Return whether a clause says an amount: 我弟借了四万."""
    return any(token.tag in ("m", "num") and _AMOUNT.search(token.text) for token in clause.tokens)


def _positions(parts: Iterable[Reduction]) -> set[int]:
    return {at for part in parts for at in range(part.begin, part.end)}
