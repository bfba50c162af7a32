"""The explanation of a recall: where it started, what each memory matched or scored, what was left out and why.

It is returned next to the text and is never part of it. Deliberately not here: any decision
(`memory/association.py`, `fleet/recall/recollection.py`).
"""

from __future__ import annotations

from pydantic import Field

from ebbtide.fleet.recall.recollected import Hit, Recollected
from ebbtide.ids import NodeId, node_text_id
from ebbtide.memory.association import Answer
from ebbtide.memory.network import Network
from ebbtide.verbs.requests import Response


class SignalShare(Response):
    """The contribution of one signal to a memory's score."""

    signal: str = Field(description="Name of the signal.")
    score: float = Field(description="Contribution of the signal to the score of the memory.")


class SignalOff(Response):
    """A signal that was not used."""

    signal: str = Field(description="Name of the signal.")
    why: str = Field(description="Why it was not used.")


class PathStep(Response):
    """A node of a path, and the link that leads to it."""

    id: str = Field(description="Id of the node.")
    name: str = Field(description="Name of the entity; empty for a memory.")
    relation: str = Field(description="Name of the link to it; empty for the start of the path.")


class RecallStart(Response):
    """A node at which an associative recall started."""

    id: str = Field(description="Id of the node.")
    name: str = Field(description="Name of the entity; empty for a memory.")
    position: int = Field(description="0: a keyword names it; from 1: its position in the focus.")
    keyword: str = Field(description="The keyword that names it; empty for the focus.")


class ExplainedMemory(Response):
    """Why a memory has its rank, or was left out."""

    id: str = Field(description="Id of its node, or of its message if no node of it lives.")
    score: float = Field(
        description="The combined score of the signals; in associative mode the strength of its path."
    )
    signals: list[SignalShare] = Field(description="The contribution of each signal; in hybrid mode.")
    matched_keywords: list[str] = Field(description="The keywords that it matches; in associative mode.")
    path: list[PathStep] = Field(description="The strongest path to it, from its start; in associative mode.")
    dropped: str = Field(description="Why the response does not contain it; empty if it does.")
    shortened: bool = Field(description="Whether it was shortened to its key sentences.")


class TimeSpoken(Response):
    """A time named in the query."""

    words: str = Field(description="The words in the query that name it.")
    begin: int = Field(description="Its begin, ms since the epoch.")
    end: int = Field(description="Its end, which does not belong to it; ms since the epoch.")


class Explanation(Response):
    """How a recall was ranked."""

    starts: list[RecallStart] = Field(
        description="Where an associative recall started: what the keywords name, then the focus."
    )
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
            id=one.text_id,
            score=round(one.score, 6),
            signals=shares,
            matched_keywords=[],
            path=[],
            dropped=why,
            shortened=one.is_shortened,
        )

    return Explanation(
        starts=[],
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


def explain_association(answer: Answer, network: Network) -> Explanation:
    """Return how an associative recall was ranked."""

    def name_of(node_id: NodeId) -> str:
        entity = network.entities.get(node_id)
        return "" if entity is None else entity.name

    starts = [
        RecallStart(
            id=node_text_id(start.node_id),
            name=name_of(start.node_id),
            position=start.position,
            keyword=start.keyword,
        )
        for start in answer.starts
    ]
    memories = [
        ExplainedMemory(
            id=node_text_id(reached.node_id),
            score=reached.strength,
            signals=[],
            matched_keywords=list(reached.keywords),
            path=[
                PathStep(id=node_text_id(node_id), name=name_of(node_id), relation=relation)
                for node_id, relation in reached.path
            ],
            dropped="",
            shortened=False,
        )
        for reached, _ in answer.memories
    ]
    return Explanation(
        starts=starts,
        looked_for="",
        phrases=[],
        speakers=[],
        times=[],
        signals_off=[],
        archive="",
        memories=memories,
    )
