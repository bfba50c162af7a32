"""Synthetic memories on disk, written in bulk and kept for the next run.

A store is filled by appending sorted entries to LMDB's tables with the codecs of `store/layout.py`, a hundred times
faster than by digests. A test with the consistency checker shows that it is as consistent as a grown one. Each node
is word for word in a message of its own. Pages are fuller than those of a grown store, so sizes on disk are also
measured on a grown one (`rows_footprint.py`).

The results are kept below the folder of the benchmarks, under a name that includes everything they depend on.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import lmdb
import msgspec
import numpy as np

from benchmarks.synthetic import (
    DECAY_RATE,
    FINISHED_PASSES,
    RELATIONS,
    Array,
    Graph,
    Scale,
    Topology,
    make_graph,
)
from benchmarks.texts import Writer
from ebbtide.changes import Change
from ebbtide.records import AgentCounts, Identity, MessageRecord, Node, Source
from ebbtide.store import layout
from ebbtide.store.directory.data_directory import AgentMeta
from ebbtide.store.lmdb.lmdb_store import LmdbStore
from ebbtide.store.lmdb.transaction import WriteTransaction

GENERATOR_VERSION = 2
"""Increase this whenever the same seed produces different data."""

MAP_BYTES = 1 << 36
"""Room for any scale; only what is used takes disk."""

MESSAGES_PER_BATCH = 10
LINKS_PER_PUT = 500_000
BEGUN_MS = 1_700_000_000_000

Tables = Mapping[layout.Table[Any], Any]
Entries = Iterable[tuple[bytes, bytes]]


def kept_store(scale: Scale, seed: int, folder: Path) -> Path:
    """Return the directory of a store of this scale, created now or by an earlier run. Copy it; do not change it."""

    def write(fresh: Path) -> None:
        graph = make_graph(scale, seed)
        graph.save(fresh / "graph.npz")
        write_store(fresh, graph, seed)

    return kept(folder, f"{scale.name}-seed{seed}", write)


def kept(folder: Path, name: str, write: Callable[[Path], None]) -> Path:
    """Return the directory of a store of this name, written now or by an earlier run."""
    place = folder / f"{name}-layout{_layout()}-generator{GENERATOR_VERSION}"
    if not place.exists():
        with _made_whole(place) as fresh:
            write(fresh)
    return place


def _layout() -> str:
    """Return a fingerprint of the tables. Stores written with other tables are not comparable with today's."""
    return f"{layout.FORMAT_VERSION}.{zlib.crc32(b' '.join(table.name for table in layout.TABLES)):08x}"


def kept_graph(store: Path) -> Graph:
    """Return the topology of a kept store."""
    return Graph.load(store / "graph.npz")


@contextlib.contextmanager
def _made_whole(place: Path) -> Iterator[Path]:
    """Yield a directory that gets its name only when it is complete."""
    place.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=".making-", dir=place.parent))
    try:
        yield fresh
        with contextlib.suppress(FileExistsError, OSError):
            fresh.rename(place)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def write_store(path: Path, graph: Graph, seed: int) -> None:
    """Write a memory with this topology into an empty directory."""
    count = len(graph.ids)
    store = LmdbStore.create(path, identity("synthetic", seed), map_bytes=1 << 20, max_map_bytes=MAP_BYTES)
    [focus] = Topology(graph).focus_sets(1, seed)
    change = Change(focus=focus, next_node_id=graph.next_node_id, finished_passes=FINISHED_PASSES)

    def begin(txn: WriteTransaction) -> None:
        txn.meta.set(overrides={}, decay_rate=DECAY_RATE, citings_due=True, has_lives=False)
        txn.apply(change)

    store.write(begin)
    store.close()
    with _bulk(path) as (environment, tables):
        _write_nodes(environment, tables, graph.ids.tolist(), seed)
        _write_links(environment, tables, graph)
        _put(environment, tables, layout.SCANS, _scan_blocks(graph))
        relations = ((layout.u32(number), name.encode()) for number, name in _relations())
        _put(environment, tables, layout.RELATIONS, relations)
        names = ((layout.text_key(name), layout.u32(number)) for number, name in _relations())
        _put(environment, tables, layout.RELATION_IDS, names)
        numbers = {
            b"next_message_number": count + 1,
            b"next_batch_number": count // MESSAGES_PER_BATCH + 2,
            b"next_relation_id": len(RELATIONS) + 1,
        }
        _put(environment, tables, layout.META, ((name, layout.u64(n)) for name, n in numbers.items()))
    # The first opening derives the nodes that cite each message, and the lives.
    open_store(path).close()


def identity(agent_id: str, seed: int) -> Identity:
    return Identity(agent_id, BEGUN_MS, seed, layout.FORMAT_VERSION)


@contextlib.contextmanager
def _bulk(path: Path) -> Iterator[tuple[Any, Tables]]:
    """Open an existing store without its rules and without an fsync per commit; fsync once, at the end."""
    environment = lmdb.open(
        str(path), map_size=MAP_BYTES, max_dbs=len(layout.TABLES) + 16, sync=False, create=False
    )
    try:
        yield environment, {table: environment.open_db(table.tree, create=False) for table in layout.TABLES}
        environment.sync(True)
    finally:
        environment.close()


def _append(environment: Any, table: Any, entries: Entries) -> None:
    """Write sorted entries at the end of a table."""
    with environment.begin(write=True) as txn:
        txn.cursor(db=table).putmulti(entries, dupdata=True, append=True)


def _put(environment: Any, tables: Tables, table: layout.Table[Any], entries: Entries) -> None:
    """Write entries of a table that shares a tree."""
    with environment.begin(write=True, db=tables[table]) as txn:
        for key, value in entries:
            txn.put(table.prefix + key, value)


# --- nodes, and what they came from ----------------------------------------------------------------------


def _write_nodes(environment: Any, tables: Tables, ids: list[int], seed: int) -> None:
    """Write each node with its message; then every text once, in the order of its key."""
    chunks: dict[bytes, bytes] = {}
    references: Counter[bytes] = Counter()
    messages: list[tuple[bytes, bytes]] = []

    def nodes() -> Iterator[tuple[bytes, bytes]]:
        for number, (node_id, text) in enumerate(
            zip(ids, Writer(seed).texts(len(ids)), strict=True), start=1
        ):
            said = text.content.encode()
            key = hashlib.sha256(said).digest()
            chunks[key] = layout.CHUNKS.value.encode(text.content.encode())
            references[key] += 1
            batch, index = (number - 1) // MESSAGES_PER_BATCH + 1, (number - 1) % MESSAGES_PER_BATCH
            told_ms = BEGUN_MS + number * 60_000
            role = "user" if number % 2 else "assistant"
            record = MessageRecord(number, batch, index, role, "", "", told_ms, told_ms, "talk", key)
            messages.append((layout.u64(number), layout.encode(record)))
            node = Node(
                node_id,
                text.content,
                text.phrase,
                text.keywords,
                told_ms,
                len(text.content),
                sources=(Source(number, 0, len(said)),),
                batch=batch,
            )
            yield layout.u64(node_id), layout.encode(node)

    _append(environment, tables[layout.NODES], nodes())
    _append(environment, tables[layout.MESSAGES], messages)
    keys = sorted(chunks)
    _append(environment, tables[layout.CHUNKS], ((key, chunks[key]) for key in keys))
    counted = ((key, layout.u32(references[key])) for key in keys if references[key] > 1)
    _put(environment, tables, layout.CHUNK_REFERENCES, counted)


# --- links and scans -------------------------------------------------------------------------------------


def _relations() -> Iterator[tuple[int, str]]:
    """Return the (id, name) of every relation, as they are stored."""
    return enumerate(RELATIONS, start=1)


def _write_links(environment: Any, tables: Tables, graph: Graph) -> None:
    fields = [("target", ">u8"), ("relation", ">u4"), ("strength", ">f8"), ("anchor", ">u4")]
    links = np.zeros(len(graph.sources), fields)
    links["target"], links["relation"] = graph.targets, graph.relations + 1
    links["strength"], links["anchor"] = graph.strengths, graph.anchors
    assert links.itemsize == layout.LINK_SIZE
    _append_rows(environment, tables[layout.LINKS], graph.sources, links)


def _append_rows(environment: Any, table: Any, keys: Array, values: Array) -> None:
    for begin in range(0, len(keys), LINKS_PER_PUT):
        some = slice(begin, begin + LINKS_PER_PUT)
        rows = values[some].view(f"V{values.itemsize}").tolist()
        _append(environment, table, zip(keys[some].astype(">u8").view("V8").tolist(), rows, strict=True))


def _scan_blocks(graph: Graph) -> Iterator[tuple[bytes, bytes]]:
    size = layout.SCANS_PER_BLOCK
    block_count = graph.next_node_id // size + 1
    scans = np.zeros((block_count * size, 2), ">u4")
    scans[graph.ids] = np.stack([graph.scan_counts, graph.last_passes], axis=1)
    for number, block in enumerate(scans.reshape(block_count, size, 2)):
        if block.any():
            yield layout.u64(number), layout.scan_block(block)


# --- agents of a daemon ----------------------------------------------------------------------------------


def install(store: Path, data_dir: Path, agent_id: str) -> Path:
    """Copy a kept store into a data directory, as the memory of an agent of that name."""
    place = data_dir / "agents" / agent_id
    place.mkdir(parents=True)
    shutil.copyfile(store / "data.mdb", place / "data.mdb")
    own = identity(agent_id, 1)
    with _bulk(place) as (environment, tables), environment.begin(write=True) as txn:
        txn.put(layout.META.prefix + b"identity", layout.encode(own), db=tables[layout.META])
    meta = AgentMeta(agent_id, layout.FORMAT_VERSION, layout.LMDB_ENGINE, BEGUN_MS, AgentCounts())
    (place / "meta.json").write_bytes(msgspec.json.encode(meta))
    return place


def kept_fleet(agent_count: int, filled: Path, folder: Path) -> Path:
    """Return a data directory with this many agents, one in ten a copy of `filled`, the others nearly empty."""
    place = folder / f"fleet-{agent_count}-{filled.name}"
    if not place.exists():
        with _made_whole(place) as fresh:
            empty = fresh / "empty"
            empty.mkdir()
            LmdbStore.create(empty, identity("empty", 1), map_bytes=1 << 20, max_map_bytes=1 << 20).close()
            for number in range(agent_count):
                install(empty if number % 10 else filled, fresh, agent_name(number))
            shutil.rmtree(empty)
            os.sync()
    return place


def agent_name(number: int) -> str:
    """Return the name of an agent of a kept fleet; every tenth one has memories."""
    return f"agent-{number:05}"


def open_store(path: Path) -> LmdbStore:
    """Open a store as the daemon does."""
    return LmdbStore.open(path, map_bytes=1 << 20, max_map_bytes=MAP_BYTES)


def copied(store: Path, folder: Path) -> Path:
    """Copy a kept store for modification."""
    place = Path(tempfile.mkdtemp(prefix="copy-", dir=folder))
    shutil.copyfile(store / "data.mdb", place / "data.mdb")
    return place
