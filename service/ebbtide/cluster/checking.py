"""Check the logs of a cluster: the chain of hashes, and whether each log leads to the file of its agent's owner.

The log is folded into a copy in a temporary directory, up to the record with which the owner's file ends. The owner
returns digests of its file over the port of the cluster. The entries of an encrypted agent need the master key: without
it only the hashes are checked. The copy is encrypted as the file is.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec

from ebbtide.cluster.jetstream import Servers
from ebbtide.cluster.key_documents import read_keys
from ebbtide.cluster.log import AgentLog, NoAnswer, Record, Stream, Timing
from ebbtide.cluster.names import Names
from ebbtide.cluster.owners import Owners
from ebbtide.cluster.slots import slot_of
from ebbtide.cluster.snapshots import Snapshots
from ebbtide.cluster.status import read_table
from ebbtide.errors import EbbtideError, Precondition
from ebbtide.forwarding.exchange import DIGEST_FILE
from ebbtide.ids import AgentId
from ebbtide.settings import ClusterSettings
from ebbtide.store.chain import ChainHead
from ebbtide.store.directory.data_directory import directory_name
from ebbtide.store.encryption.keys import DataKeys
from ebbtide.store.journal import Digests
from ebbtide.store.lmdb.replica import Replica

if TYPE_CHECKING:
    from ebbtide.store.encryption.seal import MasterKey

ATTEMPTS = 3
"""A fault counts if each attempt finds it: reads may be stale, and agents move."""

PAUSE_S = 5.0
"""Pause between two attempts. All of them take longer than an election of the log servers."""

ANSWER_S = 60.0
"""Longest wait for the digests of a file."""

FAULTS = ("LOG_BEHIND", "STORE_CORRUPTED", "AGENT_NOT_FOUND")
"""Errors of the owner of an existing agent that are faults."""

LOCKED = ("MASTER_KEY_REFUSED", "DATA_KEY_MISSING")
"""Errors of a log that cannot be decrypted here."""

NO_KEY = "Its log is encrypted. Pass the master key of the nodes (--master-key-file) to compare the file of its owner."

ENDLESS = 1 << 63

MAX_MAP_BYTES = 1 << 40


@dataclass(frozen=True, slots=True)
class Checked:
    """The outcome for one agent."""

    agent_id: str
    owner: str
    """The node that owns it; empty if none does."""
    exists: bool = True
    """False for an agent that was deleted; its log says so."""
    records: int = 0
    """Records since the latest rewrite of the log; it is rewritten when it becomes long."""
    size_bytes: int = 0
    last: int = 0
    """The sequence of the last record."""
    fault: str = ""
    """Empty if there is none."""
    not_compared: str = ""
    """Why the owner's file was not compared; empty if it was."""


class Hashes:
    """A copy of a log without its content: its hashes can be checked without keys."""

    def __init__(self) -> None:
        self.head = ChainHead()
        self.start = self.size = 0
        self.marks: tuple[bytes, ...] = ()

    def content(self) -> bytes:
        """Return nothing: no log is replaced by it."""
        return b""

    def apply(self, _: Sequence[bytes], head: ChainHead, start: int = 0, marks: Sequence[bytes] = ()) -> None:
        """Take note of the last record."""
        self.head = head

    def put_aside(self) -> None:
        """Begin again."""
        self.head = ChainHead()

    def remove(self, *, keeps_aside: bool = False) -> None:
        """Begin again."""
        self.head = ChainHead()


class Reading:
    """The records of one agent up to a sequence, counted."""

    def __init__(self, servers: Servers, until: int) -> None:
        self._servers = servers
        self.until = until
        self.records = self.size_bytes = self.last = 0

    def after(self, subject: str, sequence: int, most: int) -> Sequence[Record]:
        """Return the next records of the agent."""
        found = [one for one in self._servers.after(subject, sequence, most) if one.sequence <= self.until]
        for record in found:
            if record.sequence > self.last:
                self.records, self.size_bytes = self.records + 1, self.size_bytes + len(record.body)
                self.last = record.sequence
        return found


class Checker:
    """Checks agents of one cluster."""

    def __init__(
        self,
        servers: Servers,
        names: Names,
        settings: ClusterSettings,
        secret: bytes,
        master: MasterKey | None = None,
        snapshots: Snapshots | None = None,
    ) -> None:
        """`secret` is that of the nodes; empty: no file is compared. `master` decrypts the logs of encrypted agents."""
        self._servers = servers
        self._names = names
        self._settings = settings
        self._secret = secret
        self._owners = Owners(servers, names, settings, secret)
        self._master = master
        self._snapshots = snapshots

    async def check(self, agent_id: AgentId) -> Checked:
        """Check the log of an agent. May raise NoAnswer."""
        for attempt in range(ATTEMPTS):
            if attempt:
                await asyncio.sleep(PAUSE_S)
            found = await self._attempt(agent_id)
            if not found.fault:
                break
        return found

    async def _attempt(self, agent_id: AgentId) -> Checked:
        table, _ = await asyncio.to_thread(read_table, self._servers, self._names)
        owner = table.owners[slot_of(directory_name(agent_id), self._names.slot_count)]
        if not self._secret:
            found = Checked(
                agent_id, owner, not_compared="Pass --secret-file to compare the file of its owner."
            )
            return await asyncio.to_thread(self._compare, found, None)
        try:
            file = await self._file(agent_id, owner)
        except EbbtideError as error:
            found = Checked(agent_id, owner, not_compared=error.message)
            found = await asyncio.to_thread(self._compare, found, None)
            if error.reason in FAULTS and found.exists:
                return replace(found, fault=found.fault or error.message)
            return found if found.exists else replace(found, not_compared="")
        return await asyncio.to_thread(self._compare, Checked(agent_id, owner), file)

    async def _file(self, agent_id: AgentId, owner: str) -> Digests:
        """Return the digests of the file of an agent. Raise the error of its owner."""
        answer = await self._owners.ask(owner, agent_id, DIGEST_FILE, ANSWER_S)
        return msgspec.msgpack.decode(answer, type=Digests)

    def _compare(self, found: Checked, file: Digests | None) -> Checked:
        """Fold the log up to the last record of the owner's file, compare, and read the rest.

        A log that cannot be decrypted here is read for its hashes.
        """
        directory = directory_name(AgentId(found.agent_id))
        with tempfile.TemporaryDirectory(prefix="ebbtide-check-") as folder:
            keys = DataKeys(Path(folder) / "keys", self._master)
            keys.fetch = partial(read_keys, self._servers, self._names)
            copy = Replica(
                Path(folder) / "agent",
                map_bytes=1 << 20,
                max_map_bytes=MAX_MAP_BYTES,
                seal_of=partial(keys.seal_of, directory),
            )
            try:
                return self._folded(found, copy, file)
            except Precondition as error:
                if error.reason not in LOCKED:
                    raise
                found = self._folded(found, Hashes(), None)
                return replace(found, not_compared=found.not_compared or NO_KEY)

    def _folded(self, found: Checked, copy: Replica | Hashes, file: Digests | None) -> Checked:
        subject = self._names.subject_of(directory_name(AgentId(found.agent_id)))
        reading = Reading(self._servers, ENDLESS if file is None else file.number)
        timing = Timing(self._settings.append_timeout_s)
        log = AgentLog(
            cast(Stream, reading),
            subject,
            found.agent_id,
            "check",
            timing=timing,
            snapshots=self._snapshots,
        )
        fault = ""
        try:
            exists = log.fold(copy)
            if file is not None and isinstance(copy, Replica):
                fault = _difference(copy, file)
                reading.until = ENDLESS
                exists = log.fold(copy)
        except EbbtideError as error:
            if error.reason in LOCKED:
                raise
            if error.reason == "NOT_ENOUGH_LOG_SERVERS":
                raise NoAnswer from error
            exists, fault = True, error.message
        return replace(
            found,
            exists=exists,
            records=reading.records,
            size_bytes=reading.size_bytes,
            last=reading.last,
            fault=fault,
        )


def _difference(copy: Replica, file: Digests) -> str:
    """Return how the file of the owner differs from the log; empty if it does not."""
    if (copy.head.number, copy.head.hash) != (file.number, file.hash):
        return f"The log lacks record {file.number}, with which the owner's file ends."
    trees = copy.digests()
    different = sorted(
        name for name in file.trees.keys() | trees.keys() if file.trees.get(name) != trees.get(name)
    )
    return f"The owner's file differs from the log in: {', '.join(different)}." if different else ""
