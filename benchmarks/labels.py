"""Read the labelled data for the built-in language model and for the relevance floor.

`benchmarks/README.md` describes the four files and how they were written. The functions below define what a label
means: when a keyword is right, when a shortening keeps the statement, and when it misleads.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
LANGUAGES = ("en", "zh")

RELATION_NAMES = {
    "en": ("belongs to", "about", "involves", "discusses", "mentions"),
    "zh": ("属于", "关于", "涉及", "讨论", "提到"),
}
"""The closed list of relation names between a memory and an entity."""

QUESTION_KINDS = ("world knowledge", "never told", "unknown person", "task", "small talk")

_WORD = re.compile(r"[\u3400-\u9fff]|[^\W_\u3400-\u9fff]+(?:['’.,:/&-][^\W_\u3400-\u9fff]+)*")


@dataclass(frozen=True, slots=True)
class Misleading:
    """Strings that make a shortening wrong: all of `has` in this order, and none of `lacks`."""

    has: tuple[str, ...]
    lacks: tuple[str, ...]

    def matches(self, text: str) -> bool:
        """Whether the text contains every string of `has` in order and no string of `lacks`."""
        return contains_in_order(text, self.has) and not any(
            contains_in_order(text, [word]) for word in self.lacks
        )


@dataclass(frozen=True, slots=True)
class Relation:
    """The name of the link between the segment and an entity."""

    entity: str
    name: str


@dataclass(frozen=True, slots=True)
class LabelledSegment:
    """A segment with the keywords, the statement and the relation names that a reader chose."""

    id: str
    lang: str
    text: str
    keywords: tuple[tuple[str, ...], ...]
    never: tuple[str, ...]
    statement: tuple[str, ...]
    misleading: tuple[Misleading, ...]
    is_filler: bool
    relations: tuple[Relation, ...]

    def keyword_index(self, keyword: str) -> int | None:
        """Return the index of the label that accepts this keyword, ignoring case, or None."""
        folded = keyword.casefold()
        for index, spellings in enumerate(self.keywords):
            if folded in (spelling.casefold() for spelling in spellings):
                return index
        return None

    def keeps_statement(self, shortening: str) -> bool:
        """Whether the shortening contains every part of the statement, in order."""
        return contains_in_order(shortening, self.statement)

    def misleads(self, shortening: str) -> bool:
        """Whether the shortening says something that the segment does not say."""
        return any(case.matches(shortening) for case in self.misleading)


@dataclass(frozen=True, slots=True)
class Shortening:
    """A text with a version of at most half and one of at most a quarter of its length.

    An empty `quarter` means that the memory is forgotten at this length.
    """

    id: str
    lang: str
    source: str
    text: str
    half: str
    quarter: str


@dataclass(frozen=True, slots=True)
class Segmentation:
    """A message and the segments that a reader cuts it into."""

    id: str
    lang: str
    text: str
    segments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UnanswerableQuestion:
    """A question that no personal conversation about everyday life answers."""

    qid: str
    lang: str
    question: str
    kind: str


def read_segments() -> list[LabelledSegment]:
    """Return the labelled segments."""
    return [_segment(row) for row in _rows("model_sample.jsonl")]


def read_shortenings() -> list[Shortening]:
    """Return the golden shortenings of the specification, then the others."""
    return [Shortening(**row) for row in _rows("shortenings.jsonl")]


def read_segmentations() -> list[Segmentation]:
    """Return the messages with their segments."""
    return [
        Segmentation(**{**row, "segments": tuple(row["segments"])}) for row in _rows("segmentation.jsonl")
    ]


def read_unanswerable() -> list[UnanswerableQuestion]:
    """Return the unanswerable questions."""
    return [UnanswerableQuestion(**row) for row in _rows("unanswerable.jsonl")]


def words_of(text: str) -> list[str]:
    """Return the words of a text, casefolded: Latin words and single Han characters, without punctuation."""
    return [word.casefold() for word in _WORD.findall(text)]


def is_within(part: Sequence[str], whole: Sequence[str]) -> bool:
    """Whether the words of `part` occur in `whole` in this order, possibly with gaps."""
    rest = iter(whole)
    return all(word in rest for word in part)


def contains_in_order(text: str, parts: Sequence[str]) -> bool:
    """Whether the text contains the parts one after the other, as whole words where they are Latin."""
    position = 0
    folded = text.casefold()
    for part in parts:
        found = _bounded(part).search(folded, position)
        if found is None:
            return False
        position = found.end()
    return True


def _bounded(part: str) -> re.Pattern[str]:
    before = r"(?<![a-z0-9])" if part[0].isascii() and part[0].isalnum() else ""
    after = r"(?![a-z0-9])" if part[-1].isascii() and part[-1].isalnum() else ""
    return re.compile(before + re.escape(part.casefold()) + after)


def _segment(row: dict[str, Any]) -> LabelledSegment:
    return LabelledSegment(
        id=row["id"],
        lang=row["lang"],
        text=row["text"],
        keywords=tuple(tuple(spellings) for spellings in row["keywords"]),
        never=tuple(row["never"]),
        statement=tuple(row["statement"]),
        misleading=tuple(Misleading(tuple(case["has"]), tuple(case["lacks"])) for case in row["misleading"]),
        is_filler=row["is_filler"],
        relations=tuple(Relation(**relation) for relation in row["relations"]),
    )


def _rows(file: str) -> Iterator[dict[str, Any]]:
    with (FOLDER / file).open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)
