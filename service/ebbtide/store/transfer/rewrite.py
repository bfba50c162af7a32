"""Rewrites a store under a new key, or without encryption, and replaces the old store with it.

    1. The new key is added to the agent's keys.             From here on both keys are known.
    2. A new store is written and checked.                   `rewritten/` in the agent's directory.
    3. In a cluster, its content replaces the agent's log.   One record: the old store, or the new one.
    4. Its file replaces the old one.                        One rename: the old store, or the new one.
    5. meta.json names the new key; the old key is removed.

After an interruption at any step the agent's directory has one whole store whose key is known, and the next opening
removes what is left. In a cluster, that opening completes the file from the log first. Entries are decrypted and
encrypted one by one. A store does not contain the texts of hashed keys, so these are computed again from the texts. A
store with findings is not rewritten: an entry that refers to nothing would be lost silently.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from ebbtide.errors import Corrupted
from ebbtide.ids import AgentId
from ebbtide.records import AgentCounts, Identity
from ebbtide.store import layout
from ebbtide.store.directory.data_directory import REWRITTEN, DataDirectory, directory_name
from ebbtide.store.directory.index_file import INDEX_FILE
from ebbtide.store.durable import fresh_file, sync_directory
from ebbtide.store.integrity.check import check_store
from ebbtide.store.layout import META, TABLES, Table, text_key
from ebbtide.store.lmdb.environment import DATA_FILE
from ebbtide.store.lmdb.lmdb_store import LmdbStore
from ebbtide.store.lmdb.transaction import ReadTransaction, WriteTransaction
from ebbtide.store.translation import translated
from ebbtide.store.yielding import Pause, with_pauses

if TYPE_CHECKING:
    from ebbtide.store.encryption.seal import Seal

COMMIT_ENTRIES = 4000
"""Entries of one transaction, so it needs little memory."""

Entry = tuple[Table[Any], bytes, bytes]
"""Table, key and value, not encrypted."""


def seal_agent(data: DataDirectory, agent_id: AgentId, pause: Pause = lambda: None) -> str:
    """Rewrite an agent's store under a new key. Return the fingerprint of the key.

    `pause` is called between small steps, and may raise.
    """
    with data.marking(agent_id):
        store = data.open_store(agent_id)
        try:
            _refuse_unsound(store, pause)
            seal = data.keys.add(store.path.name)
            data.share_keys(agent_id)
            identity = _write_fresh(data, store, seal, pause)
        finally:
            store.close()
        data.append_content(agent_id, store.path / REWRITTEN)
        _put_in_place(data, store, identity, seal.fingerprint)
        data.keys.keep_only(store.path.name, seal.fingerprint)
        data.share_keys(agent_id)
        return seal.fingerprint


def unseal_agent(data: DataDirectory, agent_id: AgentId) -> bool:
    """Rewrite an agent's store without encryption and destroy its keys. Return whether it was encrypted."""
    with data.marking(agent_id):
        store = data.open_store(agent_id)
        is_sealed = bool(store.sealed_with)
        try:
            if is_sealed:
                _refuse_unsound(store)
                identity = _write_fresh(data, store, None)
        finally:
            store.close()
        if is_sealed:
            _put_in_place(data, store, identity, "")
        data.keys.destroy(store.path.name)
        return is_sealed


def seal_staged(data: DataDirectory, store: LmdbStore, owner: AgentId, pause: Pause = lambda: None) -> str:
    """Rewrite a staged store, which was checked, under a new key of its future owner, and close it.

    Return the fingerprint of the key. The old file is removed.
    """
    seal = data.keys.stage(directory_name(owner), store.path)
    try:
        _write_fresh(data, store, seal, pause)
    finally:
        store.close()
    try:
        (store.path / REWRITTEN / DATA_FILE).replace(store.path / DATA_FILE)
        # It lists the readers of the old file.
        (store.path / "lock.mdb").unlink(missing_ok=True)
        shutil.rmtree(store.path / REWRITTEN)
    except OSError as error:
        raise translated(error, store.path) from error
    return seal.fingerprint


def _refuse_unsound(store: LmdbStore, pause: Pause = lambda: None) -> None:
    findings = check_store(store, pause)
    if findings:
        raise Corrupted(
            f"The store is inconsistent ({len(findings)} findings, the first in {findings[0].table}: "
            f"{findings[0].problem}). Nothing was changed. `ebbtide check` lists all findings.",
            reason="STORE_CORRUPTED",
        )


def _write_fresh(
    data: DataDirectory, store: LmdbStore, seal: Seal | None, pause: Pause = lambda: None
) -> Identity:
    """Write the new store and check it, in a directory within that of the old one."""
    place = store.path / REWRITTEN
    identity = store.read(lambda txn: txn.meta.identity)
    assert identity is not None, "an open store has its identity"
    try:
        place.mkdir(mode=0o700)
    except OSError as error:
        raise translated(error, store.path) from error
    try:
        fresh = data.create_unplaced(place, identity, seal)
        try:
            store.read(lambda txn: _copy(txn, fresh, pause))
            _refuse_incomplete(store, fresh, pause)
        finally:
            fresh.close()
    except BaseException:
        # It may contain unencrypted what was encrypted.
        shutil.rmtree(place, ignore_errors=True)
        raise
    return identity


def _copy(txn: ReadTransaction, fresh: LmdbStore, pause: Pause) -> None:
    entries = with_pauses(_entries(txn), pause)
    while portion := list(islice(entries, COMMIT_ENTRIES)):
        fresh.write(lambda writing, portion=portion: _put_all(writing, with_pauses(portion, pause)))  # type: ignore[misc]


def _put_all(txn: WriteTransaction, entries: Iterable[Entry]) -> None:
    for table, key, value in entries:
        txn.tables.put(table, key, value)


def _entries(txn: ReadTransaction) -> Iterator[Entry]:
    """Yield every entry with its original key."""
    for table in TABLES:
        if not table.text_kind:
            for key, value in txn.tables.items(table):
                if (table, key) != (META, layout.MetaEntries.sealed_with.name):
                    yield table, key, value
    for _, value in txn.tables.items(layout.CHUNKS):
        key = layout.chunk_key(layout.CHUNKS.value.decode(value))
        references = txn.tables.get(layout.CHUNK_REFERENCES, key)
        yield layout.CHUNKS, key, value
        if references is not None:
            yield layout.CHUNK_REFERENCES, key, references
    for relation_id, name in txn.tables.items(layout.RELATIONS):
        yield layout.RELATION_IDS, text_key(name.decode()), relation_id
    for batch in txn.inbox.all():
        receipt = txn.inbox.receipt(batch.idempotency_key) if batch.idempotency_key else None
        if receipt is not None and receipt.batch == batch.number:
            yield layout.RECEIPTS, text_key(batch.idempotency_key), layout.encode(receipt)
    for record in txn.records.all():
        yield layout.RECORDS, layout.record_key(record.namespace, record.key), layout.encode(record)


def _refuse_incomplete(store: LmdbStore, fresh: LmdbStore, pause: Pause) -> None:
    """Compare the new store with the old one."""
    before, after = store.read(_sizes), fresh.read(_sizes)
    if before != after or check_store(fresh, pause):
        differing = ", ".join(sorted(name for name in before if before[name] != after[name]))
        raise Corrupted(
            f"The rewritten store differs ({differing or 'it is inconsistent'}). Nothing was changed.",
            reason="STORE_CORRUPTED",
        )


def _sizes(txn: ReadTransaction) -> dict[str, int]:
    return {table.name.decode(): txn.tables.count(table) for table in TABLES if table is not META}


def _put_in_place(data: DataDirectory, store: LmdbStore, identity: Identity, sealed_with: str) -> None:
    """Replace the old file. The index file is removed first: it is derived from texts, and not encrypted."""
    path, fresh = store.path, store.path / REWRITTEN
    meta = data.meta(path.name)
    try:
        for index in (path / INDEX_FILE, fresh_file(path / INDEX_FILE)):
            index.unlink(missing_ok=True)
        sync_directory(fresh)
        (fresh / DATA_FILE).replace(path / DATA_FILE)
        sync_directory(path)
        # It lists the readers of the old file.
        (path / "lock.mdb").unlink(missing_ok=True)
        data.write_meta(identity, AgentCounts() if meta is None else meta.counts, sealed_with)
        shutil.rmtree(fresh)
        sync_directory(path)
    except OSError as error:
        raise translated(error, path) from error
