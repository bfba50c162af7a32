"""A store written anew under another key, under a first one, or under none, and put in the place of the old one.

    1. the new key is added to the agent's keys             both keys are known from here on
    2. a new store is written beside the old, and checked   `rewritten/` in the agent's directory
    3. its file takes the place of the old one              one rename: the old store, or the new one
    4. meta.json names the new key, the old key goes

Cut off at any moment, the agent's directory holds one whole store whose key is known; the next opening tidies up.
Tables are copied entry by entry through both seals. What is keyed by text stands under HMACs, from which no key can
be told: keys are made from the texts again. A store in which something is amiss is not rewritten, since an entry that
refers to nothing would be lost without a word.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import zstandard

from ebbtide.errors import Corrupted
from ebbtide.ids import AgentId
from ebbtide.records import AgentCounts
from ebbtide.store import layout
from ebbtide.store.directory.data_directory import REWRITTEN, DataDirectory, directory_name
from ebbtide.store.directory.index_file import INDEX_FILE
from ebbtide.store.durable import fresh_file, sync_directory
from ebbtide.store.integrity.check import check_store
from ebbtide.store.lmdb.lmdb_store import LmdbStore
from ebbtide.store.lmdb.transaction import LmdbReading
from ebbtide.store.port import Identity
from ebbtide.store.translation import translated
from ebbtide.store.yielding import Rest, resting

if TYPE_CHECKING:
    from ebbtide.store.encryption.seal import Seal

ENTRIES_PER_COMMIT = 4000
"""So that what a transaction holds in memory stays small."""

Entry = tuple[bytes, bytes, bytes]
"""Table, key as it is asked for, value."""


def seal_agent(data: DataDirectory, agent_id: AgentId) -> str:
    """Rewrite an agent's store under a new key, whether or not it had one; the fingerprint of the new key."""
    with data.marking(agent_id):
        return _seal(data, agent_id)


def _seal(data: DataDirectory, agent_id: AgentId) -> str:
    store = data.open_store(agent_id)
    try:
        _refuse_unsound(store)
        seal = data.keys.add(store.path.name)
        identity = _write_beside(data, store, seal)
    finally:
        store.close()
    _put_in_place(data, store, identity, seal.fingerprint)
    data.keys.keep_only(store.path.name, seal.fingerprint)
    return seal.fingerprint


def seal_staged(data: DataDirectory, store: LmdbStore, owner: AgentId, rest: Rest = lambda: None) -> str:
    """Rewrite a store that has no place yet under a new key of whom it is to be, and close it; the key's fingerprint.

    It was checked before. What it was in before is gone afterwards.
    """
    seal = data.keys.stage(directory_name(owner), store.path)
    try:
        _write_beside(data, store, seal, rest)
    finally:
        store.close()
    try:
        (store.path / REWRITTEN / "data.mdb").replace(store.path / "data.mdb")
        # Whose readers it lists, read the old file.
        (store.path / "lock.mdb").unlink(missing_ok=True)
        shutil.rmtree(store.path / REWRITTEN)
    except OSError as error:
        raise translated(error, store.path) from error
    return seal.fingerprint


def unseal_agent(data: DataDirectory, agent_id: AgentId) -> bool:
    """Rewrite an agent's store in plain and destroy its keys; whether it was sealed."""
    with data.marking(agent_id):
        return _unseal(data, agent_id)


def _unseal(data: DataDirectory, agent_id: AgentId) -> bool:
    store = data.open_store(agent_id)
    is_sealed = bool(store.sealed_with)
    try:
        if is_sealed:
            _refuse_unsound(store)
            identity = _write_beside(data, store, None)
    finally:
        store.close()
    if is_sealed:
        _put_in_place(data, store, identity, "")
    data.keys.destroy(store.path.name)
    return is_sealed


def _refuse_unsound(store: LmdbStore) -> None:
    findings = check_store(store)
    if findings:
        raise Corrupted(
            f"the store does not hold together ({len(findings)} findings, the first in {findings[0].table}: "
            f"{findings[0].problem}) and was left as it is; `ebbtide check` lists them all",
            reason="STORE_CORRUPTED",
        )


def _write_beside(
    data: DataDirectory, store: LmdbStore, seal: Seal | None, rest: Rest = lambda: None
) -> Identity:
    """Write the new store, whole and checked, into a directory within the old one's."""
    place = store.path / REWRITTEN
    identity = store.read(lambda txn: txn.identity())
    assert identity is not None, "an open store has its identity"
    try:
        place.mkdir(mode=0o700)
    except OSError as error:
        raise translated(error, store.path) from error
    try:
        fresh = data.create_beside(place, identity, seal)
        try:
            store.read(lambda txn: _copy(txn, fresh, rest))  # type: ignore[arg-type]
            _refuse_incomplete(store, fresh, rest)
        finally:
            fresh.close()
    except BaseException:
        # It may hold in plain what was sealed.
        shutil.rmtree(place, ignore_errors=True)
        raise
    return identity


def _copy(txn: LmdbReading, fresh: LmdbStore, rest: Rest) -> None:
    entries = resting(_entries(txn), rest)
    while portion := list(islice(entries, ENTRIES_PER_COMMIT)):
        fresh.write(lambda writing, portion=portion: _put_all(writing, resting(portion, rest)))  # type: ignore[misc]


def _put_all(txn: Any, entries: Iterable[Entry]) -> None:
    for table, key, value in entries:
        txn.put(table, key, value)


def _entries(txn: LmdbReading) -> Iterator[Entry]:
    """Everything that is kept, under the keys by which it is asked for."""
    for table in layout.TABLES:
        if table not in layout.KEYED_BY_TEXT:
            for key, value in txn.items(table):
                if (table, key) != (layout.META, layout.SEALED_WITH):
                    yield table, key, value
    yield from _chunks(txn)
    for relation_id, name in txn.items(layout.RELATIONS):
        yield layout.RELATION_IDS, layout.text_key(name.decode()), relation_id
    for batch in txn.batches():
        receipt = txn.receipt(batch.idempotency_key) if batch.idempotency_key else None
        if receipt is not None and receipt.batch == batch.number:
            yield layout.RECEIPTS, layout.text_key(batch.idempotency_key), layout.encode(receipt)


def _chunks(txn: LmdbReading) -> Iterator[Entry]:
    for _, compressed in txn.items(layout.CHUNKS):
        key = layout.text_key(zstandard.ZstdDecompressor().decompress(compressed).decode())
        references = txn.get(layout.CHUNK_REFERENCES, key)
        assert references is not None, "a chunk in use is counted"
        yield layout.CHUNKS, key, compressed
        yield layout.CHUNK_REFERENCES, key, references


def _refuse_incomplete(store: LmdbStore, fresh: LmdbStore, rest: Rest) -> None:
    """Hold the new store against the old one before it takes its place."""
    before, after = store.read(_sizes), fresh.read(_sizes)  # type: ignore[arg-type]
    if before != after or check_store(fresh, rest):
        differing = ", ".join(sorted(table.decode() for table in before if before[table] != after[table]))
        raise Corrupted(
            f"the store could not be written anew as it was ({differing or 'it does not hold together'}) "
            "and was left as it is",
            reason="STORE_CORRUPTED",
        )


def _sizes(txn: LmdbReading) -> dict[bytes, int]:
    return {table: txn.entry_count(table) for table in layout.TABLES if table != layout.META}


def _put_in_place(data: DataDirectory, store: LmdbStore, identity: Identity, sealed_with: str) -> None:
    """Let the new file take the place of the old one. The index goes first: it is made of texts, and not sealed."""
    path, fresh = store.path, store.path / REWRITTEN
    meta = data.meta(path.name)
    try:
        for index in (path / INDEX_FILE, fresh_file(path / INDEX_FILE)):
            index.unlink(missing_ok=True)
        sync_directory(fresh)
        (fresh / "data.mdb").replace(path / "data.mdb")
        sync_directory(path)
        # Whose readers it lists, read the old file.
        (path / "lock.mdb").unlink(missing_ok=True)
        data.write_meta(identity, AgentCounts() if meta is None else meta.counts, sealed_with)
        shutil.rmtree(fresh)
        sync_directory(path)
    except OSError as error:
        raise translated(error, path) from error
