"""Measure the detection of personal data on a labelled sample: `python -m benchmarks.privacy`.

The sample (`privacy_sample.jsonl`) was written from the requirement before the patterns, and its labels are not adapted
to them: the table shows what is missed and what is found wrongly. All numbers in it are invented: test cards,
documentation addresses, identity numbers of no real person.

A span is right if kind, begin and end all agree. *Left showing* is the share of labelled characters that no span of any
kind covers, which is what matters for redaction.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ebbtide.privacy.patterns import KINDS
from ebbtide.privacy.spans import Span, find

SAMPLE = Path(__file__).with_name("privacy_sample.jsonl")
LANGUAGES = {"en": "English", "zh": "Chinese"}


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the sample."""

    language: str
    text: str
    spans: Sequence[Span]


@dataclass(slots=True)
class Score:
    """The counts of one kind in one language."""

    labelled: int = 0
    found: int = 0
    right: int = 0
    characters: int = 0
    showing: int = 0

    @property
    def precision(self) -> float:
        """Return the share of found spans that are right."""
        return self.right / self.found if self.found else 1.0

    @property
    def recall(self) -> float:
        """Return the share of labelled spans that were found."""
        return self.right / self.labelled if self.labelled else 1.0

    @property
    def shown(self) -> float:
        """Return the share of labelled characters that stay readable."""
        return self.showing / self.characters if self.characters else 0.0

    def add(self, other: Score) -> None:
        """Add the counts of another score."""
        for name in Score.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


def read_sample(path: Path = SAMPLE) -> list[Line]:
    """Return the labelled sample."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [Line(row["language"], row["text"], [Span(**span) for span in row["spans"]]) for row in rows]


def scores(lines: Iterable[Line]) -> dict[tuple[str, str], Score]:
    """Return the score of each kind in each language."""
    found: dict[tuple[str, str], Score] = defaultdict(Score)
    for line in lines:
        spans = find(line.text)
        covered = {index for span in spans for index in range(span.begin, span.end)}
        for span in spans:
            score = found[span.kind, line.language]
            score.found += 1
            score.right += span in line.spans
        for span in line.spans:
            score = found[span.kind, line.language]
            score.labelled += 1
            score.characters += span.length
            score.showing += sum(index not in covered for index in range(span.begin, span.end))
    return found


def table(found: dict[tuple[str, str], Score]) -> str:
    """Return the scores as the table of docs/pii.md."""
    rows = [
        "| kind | language | labelled | found | precision | recall | left showing |",
        "|---|---|---|---|---|---|---|",
    ]
    total = Score()
    for kind in KINDS:
        for code, language in LANGUAGES.items():
            score = found.get((kind, code), Score())
            total.add(score)
            rows.append(_row(f"`{kind}`", language, score))
    return "\n".join([*rows, _row("**all**", "both", total)])


def _row(kind: str, language: str, score: Score) -> str:
    shares = f"{score.precision:.1%} | {score.recall:.1%} | {score.shown:.1%}"
    return f"| {kind} | {language} | {score.labelled} | {score.found} | {shares} |"


def wrong_spans(lines: Iterable[Line]) -> list[str]:
    """Return every wrong or missed span with its line."""
    faults = []
    for line in lines:
        spans = find(line.text)
        for sign, some in (("+", set(spans) - set(line.spans)), ("-", set(line.spans) - set(spans))):
            faults += [f"{sign} {s.kind:<12} {line.text[s.begin : s.end]!r} in {line.text!r}" for s in some]
    return faults


def main() -> None:
    """Print the table and the faults."""
    lines = read_sample()
    without = sum(not line.spans for line in lines)
    print(f"{len(lines)} lines, {without} of them with nothing to find\n")
    print(table(scores(lines)))
    print("\nfound wrongly (+), missed (-):")
    print("\n".join(wrong_spans(lines)) or "nothing")


if __name__ == "__main__":
    main()
