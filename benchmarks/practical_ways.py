"""The ways in which the practical set is stored and asked: by requests, or through the tools of a language model.

A way creates an agent for a persona, stores its messages, forgets what the person asks to forget, and answers
questions as memories with the turns that they cite. `Tools` is a script in place of a model: it stores every message
in its own words with `remember`, and asks the question as it is with `recall`. It knows no answer and chooses nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from benchmarks.clients import KeepAlive
from benchmarks.practical_data import Persona, Utterance
from benchmarks.recall_daemon import settle

MAX_MEMORIES = 5
"""Memories of a response that count."""

SEPARATOR = "\n---\n"
"""The text between two memories of a response."""


@dataclass(frozen=True, slots=True)
class Memory:
    """One memory of a response: its text, and the ids of the turns that it cites."""

    text: str
    turn_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Requests:
    """Each message with its reply is one batch, and a question is one recall."""

    client: KeepAlive
    agent: str
    parameters: Mapping[str, Any]
    options: Mapping[str, Any]
    """Fields of every recall."""
    is_cited: bool = False
    """Whether the text with citations is judged, which has dates."""

    def remember(self, persona: Persona) -> None:
        """Store a persona's messages in the order in which they were sent, and delete what it asks to forget."""
        self.client.told("PUT", f"/v1/agents/{self.agent}", self.parameters)
        for pair in persona.pairs:
            self.store(pair)
            # The next message comes hours later, when the daemon has digested this one.
            settle(self.client, self.agent)
            for turn in pair:
                for body in persona.forgets.get(turn.turn_id, ()):
                    self.forget(body)
        settle(self.client, self.agent)

    def store(self, pair: Sequence[Utterance]) -> None:
        """Store a message and its reply."""
        self._told("remember", {"messages": [_message(turn) for turn in pair]})

    def forget(self, body: Mapping[str, Any]) -> None:
        """Delete a topic, or what was said at a time."""
        forgotten = self._told("forget", body)
        if not forgotten["messages"] and not forgotten["partly"]:
            raise RuntimeError(f"{self.agent}: nothing was forgotten for {body}")

    def ask(self, query: str, _: Persona) -> list[Memory]:
        """Return the memories of a response, with the text that a language model would read.

        The sources of the memories come from a second request, because citations change the text.
        """
        body = {"query": query, "max_results": MAX_MEMORIES, **self.options}
        with_sources = self._told("recall", {**body, "citations": True})
        text = with_sources["text"] if self.is_cited else self._told("recall", body)["text"]
        return self._with_sources(text, with_sources["memories"], "message_id", str)

    def _with_sources(
        self, text: str, memories: Sequence[Mapping[str, Any]], field: str, turn_id: Any
    ) -> list[Memory]:
        blocks = text.split(SEPARATOR) if text else []
        if len(blocks) != len(memories):
            raise RuntimeError(f"{self.agent}: {len(blocks)} blocks of text for {len(memories)} memories")
        return [
            Memory(block, tuple(turn_id(one[field]) for one in memory["sources"] if one[field]))
            for block, memory in zip(blocks, memories, strict=True)
        ]

    def _told(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return self.client.told("POST", f"/v1/agents/{self.agent}/{path}", body)


class Tools(Requests):
    """Each message is one call of `remember`, and a question is one call of `recall`."""

    def store(self, pair: Sequence[Utterance]) -> None:
        """Store a message and its reply, a call for each."""
        for turn in pair:
            said_at = datetime.fromtimestamp(turn.timestamp_ms / 1000, UTC)
            arguments = {"content": turn.text, "role": turn.role, "time": said_at.isoformat()}
            self._call("remember", arguments)

    def forget(self, body: Mapping[str, Any]) -> None:
        """Delete a topic with the tool, or what was said at a time with a request of the user's program."""
        if "topic" not in body:
            super().forget(body)
        else:
            self._call("forget", {**body, "dry_run": False})

    def ask(self, query: str, persona: Persona) -> list[Memory]:
        """Return the memories of a call. A second request returns their sources, and their times name the turns."""
        turn_ids = {turn.timestamp_ms: turn.turn_id for turn in persona.turns}
        text = self._call("recall", {"query": query, "max_results": MAX_MEMORIES})["text"]
        cited = self._told("recall", {"query": query, "max_results": MAX_MEMORIES, "citations": True})
        return self._with_sources(text, cited["memories"], "timestamp", turn_ids.__getitem__)

    def _call(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        result: dict[str, Any] = self._told(f"tools/{name}", {"arguments": arguments})["result"]
        return result


WAYS: Mapping[str, type[Requests]] = {"requests": Requests, "tools": Tools}
"""By the value of `--through`."""


def _message(turn: Utterance) -> dict[str, Any]:
    return {"role": turn.role, "content": turn.text, "id": turn.turn_id, "timestamp": turn.timestamp_ms}
