"""Which messages an agent has from earlier imports, as records of the agent.

The receipts of idempotency keys expire, and an import of years of conversations is larger than their number. So an
import writes a mark of each message into records, below the namespace `imports`, one or more for each conversation. The
records are part of the agent: a backup contains them, and a deletion of the agent deletes them. They outlive
`forget`, so that an import does not bring back what was forgotten.

The rule guarded here: **a mark is written after its message is stored.** What a kill separates is sent again with the
same idempotency key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from ebbtide.cli.failures import Failure
from ebbtide.cli.files.foreign.plan import letters

PART = 1000
"""Marks in a record."""

READ_AT_ONCE = 100
"""Records that are read in one request: at most 1.2 MB."""

Json = dict[str, Any]


class Records(Protocol):
    """The records of an agent."""

    def batch_records(self, agent_id: str, ops: list[Json]) -> list[Json]:
        """Read and write records. Return the result of each operation."""


class Ledger:
    """The marks of imported messages."""

    def __init__(self, records: Records, agent_id: str, form: str) -> None:
        self._records = records
        self._agent_id = agent_id
        self._namespace = ["imports", form]
        self._parts: dict[str, list[list[str]]] = {}
        self._marks: dict[str, set[str]] = {}
        self._changed: set[tuple[str, int]] = set()

    def load(self, conversation_ids: Sequence[str]) -> None:
        """Read the marks of these conversations. Drop those of others. Save first."""
        assert not self._changed
        self._parts = {name: self._parts.get(name, []) for name in conversation_ids}
        self._marks = {name: self._marks.get(name, set()) for name in conversation_ids}
        names = [name for name, parts in self._parts.items() if not parts]
        while names:
            gets = [self._op("get", name, len(self._parts[name])) for name in names]
            found = self._read(gets)
            following = []
            for name, record in zip(names, found, strict=True):
                marks = record["value"]["messages"] if record else []
                self._parts[name].append(marks)
                self._marks[name].update(marks)
                if len(marks) >= PART:
                    following.append(name)
            names = following

    def marks(self, conversation_id: str) -> set[str]:
        """Return the marks of a conversation that was loaded."""
        return self._marks[conversation_id]

    def add(self, conversation_id: str, marks: Sequence[str]) -> None:
        """Add the marks of messages that are stored."""
        parts = self._parts[conversation_id]
        self._marks[conversation_id].update(marks)
        for mark in marks:
            if len(parts[-1]) >= PART:
                parts.append([])
            parts[-1].append(mark)
            self._changed.add((conversation_id, len(parts) - 1))

    def save(self) -> None:
        """Write the marks that were added."""
        for part in _split([self._put(*one) for one in sorted(self._changed)]):
            self._records.batch_records(self._agent_id, part)
        self._changed.clear()

    def _put(self, conversation_id: str, part: int) -> Json:
        value = {"conversation": conversation_id, "messages": self._parts[conversation_id][part]}
        return {**self._op("put", conversation_id, part), "value": value, "no_index": True}

    def _op(self, op: str, conversation_id: str, part: int) -> Json:
        key = f"{letters(conversation_id, 24)}.{part}"
        return {"op": op, "namespace": self._namespace, "key": key}

    def _read(self, gets: list[Json]) -> list[Json | None]:
        found: list[Json | None] = []
        for part in _split(gets):
            try:
                found += [result["record"] for result in self._records.batch_records(self._agent_id, part)]
            except Failure as failure:
                if failure.reason != "AGENT_NOT_FOUND":
                    raise
                found += [None] * len(part)
        return found


def _split(ops: list[Json]) -> Iterator[list[Json]]:
    return (ops[at : at + READ_AT_ONCE] for at in range(0, len(ops), READ_AT_ONCE))
