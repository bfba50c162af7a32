"""Measure the built-in model on the labelled data.

Items with an odd number are for tuning, items with an even number are held out. `benchmarks/README.md` describes the
labels. A golden shortening counts as equal if the result fits the length, is taken from the one before in order, and
keeps the words of the golden quarter, or of the golden half if the quarter is empty.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from benchmarks.labels import (
    LANGUAGES,
    LabelledSegment,
    is_within,
    read_segmentations,
    read_segments,
    read_shortenings,
    words_of,
)
from ebbtide.entity_names import entity_key
from ebbtide.language.builtin.keywords import keywords
from ebbtide.language.builtin.segmentation import segment
from ebbtide.language.builtin.shortening import shorten
from ebbtide.language.builtin.small_talk import is_filler
from ebbtide.language.port import Utterance
from ebbtide.memory.naming import Locale, entity_link_name

HALVES = ("odd", "even")

# Words without which a golden shortening says the same.
_FUNCTION_WORDS = {
    *["a", "an", "the", "my", "our", "his", "her", "their", "its", "is", "was", "are"],
    *"我的了们",
}


class Tally:
    """Successes and cases of each measure, by language and half."""

    def __init__(self) -> None:
        """Start without cases."""
        self.counts: dict[tuple[str, str, str], list[int]] = defaultdict(lambda: [0, 0])

    def add(self, measure: str, item: str, lang: str, successes: int, cases: int = 1) -> None:
        """Add the cases of one item."""
        count = self.counts[measure, lang, "odd" if int(item.rpartition("-")[2]) % 2 else "even"]
        count[0] += successes
        count[1] += cases

    def measures(self) -> Iterable[str]:
        """Return the measures in the order of their first case."""
        return dict.fromkeys(measure for measure, _, _ in self.counts)


def measure() -> Tally:
    """Measure every task of the built-in model."""
    tally = Tally()
    for labelled in read_segments():
        _keywords(tally, labelled)
        if labelled.statement:
            _statement(tally, labelled)
        _filler(tally, labelled)
        _relations(tally, labelled)
    for golden in read_shortenings():
        present = golden.text
        wanted = [w for w in words_of(golden.quarter or golden.half) if w not in _FUNCTION_WORDS]
        for share, name in ((2, "half"), (4, "quarter")):
            if share == 4 and not golden.quarter:
                continue
            short = shorten(golden.text, len(golden.text) // share)
            in_order = is_within(words_of(short), words_of(present))
            fits = len(short) <= len(golden.text) // share
            good = fits and in_order and is_within(wanted, words_of(short))
            tally.add(f"golden {name} equal", golden.id, golden.lang, good)
            present = short
    for cut in read_segmentations():
        found = [piece.text for piece in segment([Utterance("user", "", cut.text)], 200)]
        tally.add("segmentation exact", cut.id, cut.lang, found == list(cut.segments))
    return tally


def _keywords(tally: Tally, labelled: LabelledSegment) -> None:
    found = keywords(labelled.text)
    matched = {labelled.keyword_index(word) for word in found} - {None}
    right = sum(labelled.keyword_index(word) is not None for word in found)
    never = {word.casefold() for word in labelled.never}
    if labelled.keywords:
        tally.add("keyword precision", labelled.id, labelled.lang, right, len(found))
        tally.add("keyword recall", labelled.id, labelled.lang, len(matched), len(labelled.keywords))
        first = bool(found) and labelled.keyword_index(found[0]) is not None
        tally.add("first keyword right", labelled.id, labelled.lang, first)
    wrong = sum(word.casefold() in never for word in found)
    tally.add("never-words among keywords", labelled.id, labelled.lang, wrong, len(found))


def _statement(tally: Tally, labelled: LabelledSegment) -> None:
    for share in (2, 4):
        short = shorten(labelled.text, len(labelled.text) // share)
        kept = labelled.keeps_statement(short)
        tally.add(f"statement kept at 1/{share}", labelled.id, labelled.lang, kept)
        tally.add(f"misleading at 1/{share}", labelled.id, labelled.lang, labelled.misleads(short))


def _filler(tally: Tally, labelled: LabelledSegment) -> None:
    found = is_filler(labelled.text)
    if found:
        tally.add("filler precision", labelled.id, labelled.lang, labelled.is_filler)
    if labelled.is_filler:
        tally.add("filler recall", labelled.id, labelled.lang, found)


def _relations(tally: Tally, labelled: LabelledSegment) -> None:
    found = keywords(labelled.text)
    locale: Locale = "zh" if labelled.lang == "zh" else "en"
    for relation in labelled.relations:
        is_first = bool(found) and entity_key(found[0]) == entity_key(relation.entity)
        name = entity_link_name(labelled.text, relation.entity, is_first=is_first, locale=locale)
        tally.add("relation name right", labelled.id, labelled.lang, name == relation.name)


def report() -> str:
    """Return the table: one row per measure, one column per language and half."""
    tally = measure()
    columns = [(lang, half) for lang in LANGUAGES for half in HALVES]
    lines = [f"{'':28}" + "".join(f"{lang + ' ' + half:>16}" for lang, half in columns)]
    for name in tally.measures():
        cells = (tally.counts[name, lang, half] for lang, half in columns)
        lines.append(f"{name:28}" + "".join(f"{_cell(*cell):>16}" for cell in cells))
    return "\n".join(lines)


def _cell(successes: int, cases: int) -> str:
    return f"{successes}/{cases} {successes / cases:4.0%}" if cases else "-"
