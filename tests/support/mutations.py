"""Mutations of exports and backups: extreme numbers, swapped types, parts that are dropped, doubled, moved or huge.

A seed chooses a mutation, so that it can be repeated. Line counts and checksums of a mutated file are correct,
because a reader that stops there never sees the mutation.
"""

from __future__ import annotations

import io
import json
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import lmdb
import msgspec
import zstandard

from ebbtide.store import layout
from ebbtide.store.codec import UNDECODABLE
from ebbtide.store.transfer.backup_file import DATA, MANIFEST, Manifest, write_backup

NUMBERS: tuple[Any, ...] = (
    0, -1, 1, 2, 63, 2**31 - 1, 2**31, 2**32, 2**51, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1,
    10**30, -(10**30), 1e308, -1e308, 5e-324, 0.5, 1.5, -0.0, 253_402_300_800_000, -62_135_596_800_001,
)  # fmt: skip

TEXTS: tuple[str, ...] = (
    "", " ", "\0", "a" * 70_000, "é" * 20_000, "e\u0301" * 5_000, "\u202e", "😀" * 999, "\ufeff", "中" * 9_999,
    "n1", "NaN", "-1", "9" * 30, "../../etc", "scan", "slots", "waiting", "parked", "digested", "user", "keep",
    "[" * 500, "\u2028", "AAAA", "/+8=", "�",
)  # fmt: skip

OTHERS: tuple[Any, ...] = (
    None,
    True,
    False,
    [],
    {},
    [[]],
    [None],
    {"": 0},
    [1] * 2000,
    [0, 0],
    {"type": "end"},
)

Path_ = tuple[Any, ...]


# --- values --------------------------------------------------------------------------------------------


def _leaves(value: Any, path: Path_ = ()) -> Iterator[Path_]:
    """Yield the positions of all values within a value, including itself."""
    yield path
    if isinstance(value, dict):
        for key in value:
            yield from _leaves(value[key], (*path, key))
    elif isinstance(value, list):
        for index in range(min(len(value), 40)):
            yield from _leaves(value[index], (*path, index))


def _at(value: Any, path: Path_) -> Any:
    for step in path:
        value = value[step]
    return value


def mutated_value(dice: Random, value: Any) -> Any:
    """Change one position within a value, possibly in place, and return the value."""
    paths = [path for path in _leaves(value) if path]
    if not paths:
        return other_value(dice, value)
    path = dice.choice(paths)
    holder, key = _at(value, path[:-1]), path[-1]
    roll = dice.random()
    if roll < 0.12 and isinstance(holder, dict | list):
        del holder[key]
    elif roll < 0.2 and isinstance(holder, list):
        holder.insert(key, holder[key])
    elif roll < 0.25 and isinstance(holder, dict):
        holder[dice.choice(("colour", "", "type", key + "s"))] = dice.choice((*NUMBERS, *TEXTS, *OTHERS))
    else:
        holder[key] = other_value(dice, holder[key])
    return value


def other_value(dice: Random, value: Any) -> Any:
    """Return a replacement of a value, mostly of the same type."""
    roll = dice.random()
    if roll < 0.15:
        return dice.choice((*NUMBERS, *TEXTS, *OTHERS))
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + dice.choice((-1, 1, 1000)) if roll < 0.45 else dice.choice(NUMBERS)
    if isinstance(value, float):
        return value * dice.choice((-1, 1.01, 1e300)) if roll < 0.45 else dice.choice(NUMBERS)
    if isinstance(value, str):
        cut = dice.randrange(len(value) + 1)
        changed = (value[:cut] + dice.choice(TEXTS) + value[cut:], value[:cut], value[::-1], value * 2)
        return dice.choice(TEXTS) if roll < 0.5 else dice.choice(changed)
    if isinstance(value, bytes):
        cut = dice.randrange(len(value) + 1)
        flipped = bytes(b ^ (1 << dice.randrange(8)) if i == cut else b for i, b in enumerate(value))
        return dice.choice((b"", value[:cut], value * 2, flipped, b"\xff" * len(value), bytes(len(value))))
    if isinstance(value, list):
        return dice.choice(([], value[::-1], value * 2, value * 50, [value], value[:1]))
    return dice.choice((*NUMBERS, *TEXTS, *OTHERS))


# --- exports -------------------------------------------------------------------------------------------


def mutated_export(dice: Random, export: bytes) -> bytes:
    """Return an export with one to three mutations and a correct last line."""
    lines: list[Any] = [json.loads(line) for line in export.splitlines()[:-1]]
    for _ in range(dice.choice((1, 1, 1, 2, 3))):
        lines = _mutated_lines(dice, lines)
    encoded = [line if isinstance(line, str) else json.dumps(line, ensure_ascii=False) for line in lines]
    if dice.random() < 0.04:
        place = dice.randrange(len(encoded))
        encoded[place] = _mutated_text(dice, encoded[place])
    end = json.dumps({"type": "end", "lines": len(encoded)})
    return "\n".join([*encoded, end, ""]).encode("utf-8", "surrogatepass")


def _mutated_lines(dice: Random, lines: list[Any]) -> list[Any]:
    places = [place for place, line in enumerate(lines) if isinstance(line, dict)]
    kinds = sorted({str(lines[place].get("type")) for place in places})
    # The agent has one line among hundreds, but the most numbers.
    kind = dice.choice([*kinds, "agent", "agent", "batch", "node"])
    place = dice.choice([p for p in places if lines[p].get("type") == kind] or places)
    roll, other = dice.random(), dice.randrange(len(lines))
    if roll < 0.05:
        return lines[:place] + lines[place + 1 :]
    if roll < 0.1:
        return [*lines[:other], lines[place], *lines[other:]]
    if roll < 0.14:
        lines[place], lines[other] = lines[other], lines[place]
        return lines
    lines[place] = mutated_value(dice, lines[place])
    return lines


def _mutated_text(dice: Random, line: str) -> str:
    cut = dice.randrange(len(line) + 1)
    return dice.choice(
        (
            line[:cut],
            line[:cut]
            + dice.choice(("NaN", "1e999", '"', "\\ud800", "\ud800", "[" * 3000, "\0"))
            + line[cut:],
            line.replace("0", dice.choice(("NaN", "-0", "00", "1e5", "0.0"))),
            line[:-1] + "," + line[1:],
        )
    )


# --- backups -------------------------------------------------------------------------------------------


def unpacked(backup: bytes) -> tuple[Manifest, bytes]:
    """Return the manifest and the LMDB file of a backup."""
    with tarfile.open(fileobj=io.BytesIO(backup)) as archive:
        told, packed = (archive.extractfile(name) for name in (MANIFEST, DATA))
        assert told is not None and packed is not None
        manifest = msgspec.json.decode(told.read(), type=Manifest)
        return manifest, zstandard.ZstdDecompressor().decompressobj().decompress(packed.read())


def packed(manifest: Manifest, data: bytes) -> bytes:
    """Return a backup of an LMDB file, with correct checksums."""
    into = io.BytesIO()
    told = msgspec.structs.replace(manifest, data_bytes=len(data))
    write_backup(into, told, io.BytesIO(zstandard.compress(data)))
    return into.getvalue()


def mutated_backup(dice: Random, backup: bytes) -> bytes:
    """Return a backup with some changed entries in its store or, in one of ten, some changed bytes of its file."""
    manifest, data = unpacked(backup)
    if dice.random() < 0.1:
        flipped = bytearray(data)
        for _ in range(dice.choice((1, 1, 4, 40))):
            flipped[dice.randrange(len(flipped))] ^= 1 << dice.randrange(8)
        return packed(manifest, bytes(flipped))
    return packed(manifest, with_entries(data, lambda txn, tables: _mutate_entries(dice, txn, tables)))


def with_entries(data: bytes, change: Callable[[Any, dict[layout.Table[Any], Any]], None]) -> bytes:
    """Return an LMDB file with changed entries."""
    fast = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=fast) as folder:
        file = Path(folder) / "data.mdb"
        file.write_bytes(data)
        environment = lmdb.open(str(file), subdir=False, lock=False, sync=False, max_dbs=64, map_size=1 << 28)
        try:
            tables = {table: environment.open_db(table.tree, create=False) for table in layout.TABLES}
            with environment.begin(write=True) as txn:
                change(txn, tables)
        finally:
            environment.close()
        return file.read_bytes()


def _mutate_entries(dice: Random, txn: Any, tables: dict[layout.Table[Any], Any]) -> None:
    for _ in range(dice.choice((1, 1, 1, 2))):
        full = [name for name in tables if txn.stat(tables[name])["entries"]]
        name = dice.choice([*full, layout.META, layout.META])
        key, value = dice.choice(list(txn.cursor(db=tables[name]).iternext()))
        _mutate_entry(dice, txn, tables[name], name.has_duplicates, bytes(key), bytes(value))


def _mutate_entry(dice: Random, txn: Any, table: Any, is_sorted: bool, key: bytes, value: bytes) -> None:
    roll = dice.random()
    if roll < 0.08:
        txn.delete(key, value if is_sorted else b"", db=table)
        return
    if roll < 0.16:
        other = _other_key(dice, key)
        if roll < 0.12:
            txn.delete(key, value if is_sorted else b"", db=table)
        txn.put(other, value, db=table)
        return
    changed = _other_bytes(dice, value) if is_sorted else _other_record(dice, value)
    if is_sorted:
        txn.delete(key, value, db=table)
        changed = changed[: len(value)].ljust(len(value), b"\0")
    txn.put(key, changed, db=table)


def _other_key(dice: Random, key: bytes) -> bytes:
    if len(key) == 8 and dice.random() < 0.8:
        return layout.u64(dice.choice([n for n in NUMBERS if isinstance(n, int) and 0 <= n < 1 << 64]))
    return (_other_bytes(dice, key) or b"\0")[:500]


def _other_record(dice: Random, value: bytes) -> bytes:
    """Return the value with one field changed if it is an encoded record, else with other bytes."""
    try:
        record = msgspec.msgpack.decode(value)
    except UNDECODABLE:
        record = None
    if not isinstance(record, list | dict) or dice.random() < 0.1:
        return _other_bytes(dice, value)
    try:
        return msgspec.msgpack.encode(mutated_value(dice, record))
    except (OverflowError, TypeError):
        return _other_bytes(dice, value)


def _other_bytes(dice: Random, value: bytes) -> bytes:
    if len(value) % 8 == 0 and value and dice.random() < 0.6:
        place = dice.randrange(len(value) // 8) * 8
        number = dice.choice([n for n in NUMBERS if isinstance(n, int) and 0 <= n < 1 << 64])
        return value[:place] + layout.u64(number) + value[place + 8 :]
    found = other_value(dice, value)
    return found if isinstance(found, bytes) else str(found)[:1000].encode("utf-8", "surrogatepass")
