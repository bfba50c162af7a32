"""The content of a store as a value to compare, and backup, export and restore without a daemon."""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from ebbtide.parameters import AgentParameters
from ebbtide.store import layout
from ebbtide.store.directory.data_directory import DataDirectory
from ebbtide.store.lmdb.lmdb_store import LmdbStore
from ebbtide.store.transfer.receiving import Staged, receive
from ebbtide.store.transfer.sending import Sending

MAPS = {"initial_map_bytes": 1 << 18, "max_map_bytes": 1 << 28}
NOW_MS = 1_795_000_000_000


def content_of(store: Any) -> dict[str, Any]:
    """Return the content of a store: tables as bytes, META decoded."""

    def read(txn: Any) -> dict[str, Any]:
        found: dict[str, Any] = {
            table.name.decode(): [(bytes(key), bytes(value)) for key, value in txn.tables.items(table)]
            for table in layout.TABLES
            if table != layout.META
        }
        for name in ("identity", "overrides", "decay_rate", "focus", "next_node_id", "owed_passes"):
            found[name] = getattr(txn.meta, name)
        for name in ("finished_passes", "pass_state", "next_message_number", "next_batch_number"):
            found[name] = getattr(txn.meta, name)
        for name in ("texts_from", "withdrawn", "embedding", "ledger"):
            found[name] = getattr(txn.meta, name)
        for name in ("next_position", "next_digested", "next_relation_id", "next_record_version"):
            found[name] = getattr(txn.meta, name)
        return found

    return store.read(read)


@contextlib.contextmanager
def directory(path: Path | None = None) -> Iterator[DataDirectory]:
    """Lock a data directory for the length of a block. Without a place it is temporary."""
    with contextlib.ExitStack() as life:
        if path is None:
            fast = "/dev/shm" if Path("/dev/shm").is_dir() else None
            path = Path(life.enter_context(tempfile.TemporaryDirectory(dir=fast)))
        data = DataDirectory(path, **MAPS)
        data.acquire()
        life.callback(data.release)
        yield data


def sent(data: DataDirectory, store: Any, form: str) -> bytes:
    """Return the backup or the export of a store."""
    how = Sending(data, "0", NOW_MS)
    identity = store.read(lambda txn: txn.meta.identity)
    with how.export(store, identity) if form == "export" else how.backup(store, identity) as file:
        return file.read()


def received(
    data: DataDirectory, content: bytes | BinaryIO, wanted: Any = None, *, rename: bool = False
) -> Staged:
    """Receive the agent of a backup or an export, ready to be put in place."""
    source = io.BytesIO(content) if isinstance(content, bytes) else content
    return receive(
        data, source, data.make_transfer(), expected=wanted, rename=rename, defaults=AgentParameters()
    )


@contextlib.contextmanager
def staged_store(staged: Staged) -> Iterator[LmdbStore]:
    """Open the store of a received agent for the length of a block."""
    store = LmdbStore.open(staged.path, map_bytes=1 << 18, max_map_bytes=1 << 28)
    try:
        yield store
    finally:
        store.close()
