"""One LMDB transaction read as an agent's ground state, and written to as one.

Its parts have modules of their own: `texts`, `inbox`, `network` and `events`, all on `tables`. Here they become one,
together with what belongs to the agent as a whole and what touches several parts at once. Everything derived that
lives on disk is derived by them, so that one transaction is one consistent state. No rule of the memory model stands
here; a `Change` arrives ready made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from ebbtide.bounds import DecayRate, Focus, Overrides
from ebbtide.changes import Change
from ebbtide.records import AgentCounts, Batch, MessageRecord, PassageEntry, PassState, Receipt
from ebbtide.store import layout
from ebbtide.store.lmdb.audit import AuditReading, AuditWriting
from ebbtide.store.lmdb.events import EventReading, EventWriting
from ebbtide.store.lmdb.inbox import InboxReading, InboxWriting
from ebbtide.store.lmdb.network import NetworkReading, NetworkWriting
from ebbtide.store.port import Identity


class LmdbReading(NetworkReading, InboxReading, AuditReading, EventReading):
    """A consistent view of one agent's ground state."""

    def identity(self) -> Identity | None:
        """Who this store belongs to; None while it is being created."""
        value = self.get(layout.META, b"identity")
        return None if value is None else layout.decode(value, type=Identity)

    def sealed_with(self) -> str:
        """The fingerprint of the key that seals this store; empty where nothing is sealed."""
        value = self.get(layout.META, layout.SEALED_WITH)
        return "" if value is None else value.decode()

    def overrides(self) -> dict[str, Any]:
        """The parameters that were set for this agent, apart from the daemon's defaults."""
        value = self.get(layout.META, b"overrides")
        return {} if value is None else dict(layout.decode(value, type=Overrides))

    def decay_rate(self) -> float | None:
        """The rate at which the links on disk decay since they were written; None before the first open."""
        value = self.get(layout.META, b"decay_rate")
        return None if value is None else layout.decode(value, type=DecayRate)

    def counts(self) -> AgentCounts:
        """How much the agent holds."""
        return AgentCounts(
            node_count=self._entries(layout.NODES),
            link_count=self._entries(layout.LINKS),
            message_count=self._entries(layout.MESSAGES),
            pending_batches=self._entries(layout.INBOX),
            parked_batches=self._entries(layout.PARKED),
            owed_passes=self.owed_passes(),
        )

    def used_bytes(self) -> int:
        """Bytes of the pages that its tables take: what was removed is free again, though the file keeps it."""
        return sum(self._page_bytes(table) for table in self._tables)

    def focus(self) -> tuple[int, ...]:
        """Node ids in focus, newest first."""
        value = self.get(layout.META, b"focus")
        return () if value is None else layout.decode(value, type=Focus)

    def next_node_id(self) -> int:
        """The id the next node will get."""
        return self._number(b"next_node_id", 1)

    def owed_passes(self) -> int:
        """Compression passes the agent owes, the one under way included."""
        return self._number(b"owed_passes")

    def finished_passes(self) -> int:
        """Number of the latest pass that is through."""
        return self._number(b"finished_passes")

    def pass_state(self) -> PassState | None:
        """The pass under way."""
        value = self.get(layout.META, b"pass_state")
        return None if value is None else layout.decode(value, type=PassState)

    def metadata(self, record: MessageRecord) -> dict[str, object]:
        """What a message was remembered with; of one stored before messages had any, its batch's while it is kept."""
        if record.metadata_key is None:
            batch = self.batch(record.batch)
            text = "" if batch is None else batch.metadata
        else:
            text = (self.chunk(record.metadata_key) if record.metadata_key else None) or ""
        return msgspec.json.decode(text, type=dict[str, object]) if text else {}


class LmdbWriting(LmdbReading, NetworkWriting, InboxWriting, AuditWriting, EventWriting):
    """A change of one agent's ground state."""

    def create(self, identity: Identity, sealed_with: str = "") -> None:
        """Write who a store belongs to, a new one or one that gets a new id; and which key seals it, if one does."""
        self.put(layout.META, b"identity", layout.encode(identity))
        if sealed_with:
            self.put(layout.META, layout.SEALED_WITH, sealed_with.encode())

    def set_overrides(self, overrides: Mapping[str, object], decay_rate: float) -> None:
        """Keep the agent's own parameters, and the decay rate in force from now on."""
        self.put(layout.META, b"overrides", layout.encode(dict(overrides)))
        self.put(layout.META, b"decay_rate", layout.encode(decay_rate))

    def apply(self, change: Change) -> None:
        """Write a change with all its index entries."""
        self._change_network(change)
        if change.focus is not None:
            self.put(layout.META, b"focus", layout.encode(change.focus))
        if change.next_node_id is not None:
            self._set_number(b"next_node_id", change.next_node_id)
        if change.owed_passes is not None:
            self._set_number(b"owed_passes", change.owed_passes)
        if change.finished_passes is not None:
            self._set_number(b"finished_passes", change.finished_passes)
        if change.pass_ended:
            self.delete(layout.META, b"pass_state")
        elif change.pass_state is not None:
            self.put(layout.META, b"pass_state", layout.encode(change.pass_state))

    def accept(
        self,
        batch: Batch,
        records: list[MessageRecord],
        texts: list[str],
        receipt: Receipt | None,
        passages: Sequence[list[PassageEntry]] = (),
        metadata: Mapping[bytes, str] = MappingProxyType({}),
    ) -> Batch:
        """Keep a batch with its messages and their passages, and put it at the tail of the inbox."""
        self._keep_messages(records, texts, passages, metadata)
        self._set_number(b"next_message_number", batch.first_message + batch.message_count)
        return self._take_in(batch, receipt)
