"""The explanation of a recall: what was read from the query, what each signal contributed, what was left out and why.

It is returned next to the text and is never part of it. Deliberately not here: any decision
(`fleet/recall/recollection.py`).
"""

from __future__ import annotations

from pydantic import Field

from ebbtide.fleet.recall.recollected import Hit, Recollected
from ebbtide.verbs.requests import Response


class SignalShare(Response):
    """The contribution of one signal to a memory's score."""

    signal: str = Field(description="Name of the signal.")
    score: float = Field(description="Contribution of the signal to the score of the memory.")


class SignalOff(Response):
    """A signal that was not used."""

    signal: str = Field(description="Name of the signal.")
    why: str = Field(description="Why it was not used.")


class ExplainedMemory(Response):
    """Why a memory has its rank, or was left out."""

    id: str = Field(description="Id of its node, or of its message if no node of it lives.")
    score: float = Field(description="The combined score of the signals.")
    signals: list[SignalShare] = Field(description="The contribution of each signal.")
    dropped: str = Field(description="Why the response does not contain it; empty if it does.")
    shortened: bool = Field(description="Whether it was shortened to its key sentences.")


class TimeSpoken(Response):
    """A time named in the query."""

    words: str = Field(description="The words in the query that name it.")
    begin: int = Field(description="Its begin, ms since the epoch.")
    end: int = Field(description="Its end, which does not belong to it; ms since the epoch.")


class Explanation(Response):
    """How a recall was ranked."""

    looked_for: str = Field(description="The words of the query that the word index searches.")
    phrases: list[str] = Field(description="Quoted phrases in the query.")
    speakers: list[str] = Field(description="Speakers named in the query.")
    times: list[TimeSpoken] = Field(description="Times named in the query.")
    signals_off: list[SignalOff] = Field(description="Signals that were not used.")
    archive: str = Field(
        description="Whether the archive took part: always, never, not needed, or why it was needed: "
        "code in the query, few results, no clear top. Empty for an agent without messages."
    )
    memories: list[ExplainedMemory] = Field(description="The memories of the response, then those left out.")


def explained(found: Recollected) -> Explanation | None:
    """Return how a recall was ranked; None if there was no query."""
    question, ranking = found.question, found.ranking
    if question is None:
        return None
    places = {} if ranking is None else {p: place for place, p in enumerate(ranking.passages.tolist())}
    signals = {} if ranking is None else ranking.signals
    off = {} if ranking is None else ranking.off

    def explain(one: Hit, why: str) -> ExplainedMemory:
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
            *(explain(one, "") for one in found.memories),
            *(explain(one, why) for one, why in found.dropped),
        ],
    )
