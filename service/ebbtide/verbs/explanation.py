"""The explanation of an answer: what was read from the question, what each signal gave, what was left out and why.

It stands beside the text and never in it. Deliberately not here: anything that decides
(`fleet/recall/recollection.py`).
"""

from __future__ import annotations

from pydantic import Field

from ebbtide.fleet.recall.recollected import Hit, Recollected
from ebbtide.verbs.requests import Response


class SignalShare(Response):
    """What one signal gave a memory."""

    signal: str
    score: float


class SignalOff(Response):
    """A signal that did not take part."""

    signal: str
    why: str


class ExplainedMemory(Response):
    """Why a memory stands where it stands, or was left out."""

    id: str
    score: float
    signals: list[SignalShare]
    dropped: str = Field(description="Why it is not in the answer; empty for those that are.")
    shortened: bool = Field(description="Whether only its key sentences are told.")


class TimeSpoken(Response):
    """A time that the query speaks of."""

    words: str
    begin: int
    end: int


class Explanation(Response):
    """How an answer came about."""

    looked_for: str = Field(description="What was left of the query for the words index.")
    phrases: list[str] = Field(description="What was quoted in the query.")
    speakers: list[str] = Field(description="Speakers named in the query.")
    times: list[TimeSpoken]
    signals_off: list[SignalOff]
    archive: str = Field(
        description="Whether the archive took part: always, never, not needed, or why it was needed: "
        "code in the query, few results, no clear top. Empty for an agent that never heard anything."
    )
    memories: list[ExplainedMemory]


def explained(found: Recollected) -> Explanation | None:
    """How an answer came about; nothing where no question was looked at."""
    question, ranking = found.question, found.ranking
    if question is None:
        return None
    places = {} if ranking is None else {p: place for place, p in enumerate(ranking.passages.tolist())}
    signals = {} if ranking is None else ranking.signals
    off = {} if ranking is None else ranking.off

    def told(one: Hit, why: str) -> ExplainedMemory:
        place = places[one.passage]
        shares = [
            SignalShare(signal=name, score=round(float(scores[place]), 6)) for name, scores in signals.items()
        ]
        return ExplainedMemory(
            id=one.text_id, score=round(one.score, 6), signals=shares, dropped=why, shortened=one.is_shortened
        )

    return Explanation(
        looked_for=question.text,
        phrases=list(question.phrases),
        speakers=list(question.speakers),
        times=[TimeSpoken(words=span.text, begin=span.begin_ms, end=span.end_ms) for span in question.dates],
        signals_off=[SignalOff(signal=name, why=why) for name, why in off.items()],
        archive=found.archive,
        memories=[
            *(told(one, "") for one in found.memories),
            *(told(one, why) for one, why in found.dropped),
        ],
    )
