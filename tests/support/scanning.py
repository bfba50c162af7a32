"""Search every byte that an agent left on disk, raw and decoded, as the owner of the disk could."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from ebbtide.store import layout
from ebbtide.store.codec import COMPRESSED, INVALID
from ebbtide.store.lmdb.lmdb_store import LmdbStore

MAP: dict[str, Any] = {"map_bytes": 1 << 20, "max_map_bytes": 1 << 30}


@dataclass
class Traces:
    """The traces of texts in a store: the texts, their compressed frames, and the keys derived from them."""

    texts: list[str]
    frames: list[bytes] = field(default_factory=list)
    keys: list[bytes] = field(default_factory=list)

    @classmethod
    def noted(cls, directory: Path, texts: Iterable[str]) -> Traces:
        """Record the frames and keys of every chunk that contains one of the texts. The store must be closed."""
        traces = cls(list(texts))
        store = LmdbStore.open(directory, **MAP)
        try:
            for key, value in store.read(lambda txn: list(_items(txn, layout.CHUNKS))):
                text = COMPRESSED.decode(value).decode(errors="replace")
                if any(one in text for one in traces.texts):
                    traces.frames.append(value)
                    traces.keys.append(key)
        finally:
            store.close()
        assert traces.frames, "nothing was there to be noted"
        return traces

    def found_in(self, directory: Path) -> list[str]:
        """Return the places of all traces: in the bytes of a file, or in a decoded value."""
        found = []
        for path in sorted(one for one in directory.rglob("*") if one.is_file()):
            content = path.read_bytes()
            found += [f"{path.name}: {text}" for text in self.texts if text.encode() in content]
            found += [f"{path.name}: a frame" for frame in self.frames if frame in content]
            found += [f"{path.name}: a key" for key in self.keys if key in content]
        return found + self._decoded(directory)

    def _decoded(self, directory: Path) -> list[str]:
        store = LmdbStore.open(directory, **MAP)
        try:
            told = store.read(lambda txn: [(t, k, v) for t in layout.TABLES for k, v in _items(txn, t)])
        finally:
            store.close()
        found = []
        for table, key, value in told:
            for text in self.texts:
                if any(text in one for one in (*_strings(key), *_strings(value))):
                    found.append(f"{table.name.decode()} {key.hex()}: {text}")
        return found


def _items(txn: Any, table: layout.Table[Any]) -> list[tuple[bytes, bytes]]:
    return [(bytes(key), bytes(value)) for key, value in txn.tables.items(table)]


def _strings(value: bytes) -> list[str]:
    """Return every text that the bytes may encode."""
    found = [value.decode(errors="replace")]
    with contextlib.suppress(*INVALID):
        found.append(COMPRESSED.decode(value).decode(errors="replace"))
    with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError):
        found += _texts_in(msgspec.msgpack.decode(value))
    return found


def _texts_in(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, bytes):
        return [value.decode(errors="replace")]
    if isinstance(value, dict):
        return [text for pair in value.items() for part in pair for text in _texts_in(part)]
    if isinstance(value, list | tuple):
        return [text for item in value for text in _texts_in(item)]
    return []
