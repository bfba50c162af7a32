"""Recall measured through the product: a real daemon remembers a corpus, then answers its questions.

Each corpus is an agent of its own and each session a batch. Queries start when every batch is digested and every owed
pass is complete, so that forgetting has taken place. A memory in an answer counts as the messages that its sources
name.

Two conditions differ either in how the corpus was remembered (`Keeping`) or in the fields of a request. Conditions
with the same keeping query the same agent. The rule guarded here: nothing is measured on an agent that lost a batch,
or has not digested one.
"""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from benchmarks.clients import KeepAlive
from benchmarks.recall_data import Corpus, Question, Turn
from benchmarks.recall_measures import LONGEST_ANSWER, Result
from benchmarks.report import Progress
from benchmarks.texts import Writer
from ebbtide.retrieval.ranking_request import SIGNALS

MOST_MESSAGES = 500
"""Messages of one batch; a longer session is split."""

PARAGRAPHS = 100
"""This many sessions of one turn each form a batch, because they are not conversations and do not belong together."""

FLUSH_EACH = 50
"""Batches after which the benchmark waits for passes, because an agent merges passes above a limit."""

FLUSH_MS = 60_000
"""One wait, shorter than the timeout of the client."""
FLUSHES = 60

LATER_MESSAGES = 6
DAY_MS = 86_400_000
SEED = 7

ON: dict[str, Any] = {}
FORGETS_NOTHING = {
    "decay_rate": 1.0,
    "link_initial_strength": 1.0,
    "long_term_factor": 1.0,
    "delete_threshold": 0,
}
"""Links keep full strength, so whatever is linked to stays whole."""


@dataclass(frozen=True, slots=True)
class Keeping:
    """How a corpus is remembered: the agent's parameters, and unrelated batches that come afterwards."""

    name: str
    parameters: dict[str, Any]
    has_later: bool = False


PLAIN = Keeping("plain", ON)
RULES = Keeping("rules", {"extraction": "rules"})
LATER = Keeping("plain", ON, has_later=True)
KEPT = Keeping("kept", FORGETS_NOTHING)
KEPT_LATER = Keeping("kept", FORGETS_NOTHING, has_later=True)


@dataclass(frozen=True, slots=True)
class Condition:
    """One way to query; `asks` are fields of the request."""

    keeping: Keeping
    asks: dict[str, Any] = field(default_factory=dict)


ABLATIONS = {f"no-{signal}": Condition(PLAIN, {"without": [signal]}) for signal in SIGNALS}
ABLATIONS["no-vectors"] = Condition(PLAIN, {"without": ["semantic", "window"]})
FORGETTING = {
    "no-archive": Condition(PLAIN, {"archive": "never"}),
    "no-forgetting": Condition(KEPT),
    "no-forgetting-no-archive": Condition(KEPT, {"archive": "never"}),
    "later": Condition(LATER),
    "later-no-archive": Condition(LATER, {"archive": "never"}),
    "later-no-forgetting": Condition(KEPT_LATER),
    "later-no-forgetting-no-archive": Condition(KEPT_LATER, {"archive": "never"}),
}
CONDITIONS: dict[str, Condition] = {
    "product": Condition(PLAIN),
    "rules": Condition(RULES),
    **ABLATIONS,
    **FORGETTING,
}


@dataclass(frozen=True, slots=True)
class Told:
    """A daemon's answer: contents with their turns in order, the number of memories in each state, and the latency."""

    memories: Sequence[tuple[str, tuple[str, ...]]]
    states: dict[str, int]
    took_ms: float


def remember(client: KeepAlive, agent: str, corpus: Corpus, keeping: Keeping) -> None:
    """Create an agent and remember a whole corpus. `remember_later` adds the unrelated batches."""
    client.told("PUT", f"/v1/agents/{agent}", keeping.parameters)
    _remember_all(client, agent, list(batches_of(corpus)))


def remember_later(client: KeepAlive, agent: str, corpus: Corpus, count: int) -> None:
    """Remember batches that are unrelated to the corpus, after it."""
    said = Writer(SEED).turns(count * LATER_MESSAGES, chinese=corpus.is_chinese)
    latest = max((turn.timestamp_ms or 0 for turn in corpus.turns), default=0)
    turns = [
        Turn(
            turn_id=f"later-{place}",
            session_id=f"later-{place // LATER_MESSAGES}",
            speaker=f"Passer-by {place % 2}",
            text=text,
            # A day between batches: the more unrelated batches, the older is the evidence.
            timestamp_ms=latest + (place // LATER_MESSAGES + 1) * DAY_MS if latest else None,
        )
        for place, text in enumerate(said)
    ]
    _remember_all(client, agent, list(batches_of(replace(corpus, turns=tuple(turns)))))


def _remember_all(client: KeepAlive, agent: str, batches: Sequence[dict[str, Any]]) -> None:
    for begin in range(0, len(batches), FLUSH_EACH):
        for batch in batches[begin : begin + FLUSH_EACH]:
            client.told("POST", f"/v1/agents/{agent}/remember", batch)
        settle(client, agent)


def settle(client: KeepAlive, agent: str) -> None:
    """Wait for digests, passes and vectors. Raise RuntimeError if a batch was parked or on timeout."""
    asked = {"timeout_ms": FLUSH_MS, "passes": True, "vectors": True}
    for _ in range(FLUSHES):
        stands = client.told("POST", f"/v1/agents/{agent}/flush", asked)
        if stands["parked_batches"]:
            raise RuntimeError(f"{agent}: {stands['parked_batches']} batches were parked")
        if stands["digested"] and stands["passes_done"] and not stands["unembedded_messages"]:
            return
    raise RuntimeError(f"{agent} did not settle: {stands}")


def batches_of(corpus: Corpus) -> Iterator[dict[str, Any]]:
    """Return a corpus as bodies of remember requests: a batch per session, or per hundred independent paragraphs."""
    sessions = corpus.sessions
    if len(sessions) == len(corpus.turns):
        turns = iter(corpus.turns)
        while part := list(islice(turns, PARAGRAPHS)):
            yield {"messages": [_message(turn) for turn in part]}
        return
    for session_id, said in sessions.items():
        for begin in range(0, len(said), MOST_MESSAGES):
            messages = [_message(turn) for turn in said[begin : begin + MOST_MESSAGES]]
            yield {"messages": messages, "conversation_id": session_id}


def _message(turn: Turn) -> dict[str, Any]:
    message: dict[str, Any] = {
        "role": "user",
        "content": turn.text,
        "id": turn.turn_id,
        "speaker": turn.speaker,
    }
    return message if turn.timestamp_ms is None else {**message, "timestamp": turn.timestamp_ms}


def ask(client: KeepAlive, agent: str, query: str, condition: Condition) -> Told:
    """Run one query."""
    body = {
        "query": query,
        "max_results": LONGEST_ANSWER,
        "citations": True,
        "mode": "hybrid",
        "archive": "always",
        **condition.asks,
    }
    # Decoding is the client's work, so a decoded response would measure too much.
    answer, took_ms = client.ask("POST", f"/v1/agents/{agent}/recall", body)
    return told_of(answer, took_ms)


def told_of(answer: bytes, took_ms: float) -> Told:
    """Return an answer's memories, each with the ids of the messages that its sources name."""
    memories = json.loads(answer)["memories"]
    states = Counter(memory["state"] for memory in memories)
    return Told([(memory["content"], _turn_ids(memory)) for memory in memories], dict(states), took_ms)


def _turn_ids(memory: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(source["message_id"] for source in memory["sources"] if source["message_id"])


def results_of(told: Told, count_tokens: Callable[[str], int]) -> list[Result]:
    """Return the answer in the form that is measured. Every memory costs its tokens, even if it names no turn."""
    return [Result(turn_ids, count_tokens(content)) for content, turn_ids in told.memories]


def text_kept(told: Told, corpus: Corpus, question: Question) -> float | None:
    """Return the share of the evidence's text that the answer still contains; None if it contains no evidence.

    A shortened memory still names its source turn, so a turn may be found and say little.
    """
    wanted = frozenset().union(*question.gold)
    told_lengths: Counter[str] = Counter()
    for content, turn_ids in told.memories:
        for turn_id in wanted.intersection(turn_ids):
            told_lengths[turn_id] += len(content)
    whole = [turn for turn in corpus.turns if turn.turn_id in told_lengths]
    if not whole:
        return None
    return statistics.fmean(min(1.0, told_lengths[turn.turn_id] / len(turn.text)) for turn in whole)


def questioned(
    client: KeepAlive, corpora: Sequence[Corpus], names: Sequence[str], later_count: int, tell: Progress
) -> Iterator[tuple[str, Corpus, Question, Told]]:
    """Remember corpora and run all their questions under every named condition."""
    for keeping_name in dict.fromkeys(CONDITIONS[name].keeping.name for name in names):
        wanted = [name for name in names if CONDITIONS[name].keeping.name == keeping_name]
        later = [name for name in wanted if CONDITIONS[name].keeping.has_later]
        for number, corpus in enumerate(corpora):
            agent = f"{keeping_name}-{number}"
            tell(f"{corpus.set_name} {corpus.corpus_id}: remembering ({keeping_name})")
            remember(client, agent, corpus, CONDITIONS[wanted[0]].keeping)
            for name in wanted:
                if name not in later:
                    yield from _asked(client, agent, corpus, name)
            if later:
                tell(f"{corpus.set_name} {corpus.corpus_id}: {later_count} batches later ({keeping_name})")
                remember_later(client, agent, corpus, later_count)
                for name in later:
                    yield from _asked(client, agent, corpus, name)
            client.told("POST", f"/v1/agents/{agent}/close")


def _asked(
    client: KeepAlive, agent: str, corpus: Corpus, name: str
) -> Iterator[tuple[str, Corpus, Question, Told]]:
    for question in corpus.questions:
        yield name, corpus, question, ask(client, agent, question.text, CONDITIONS[name])
