"""Upgrade of a store of format 2 or 3, in one transaction: a kill leaves the old store or the new one, whole.

* Format 2 had a tree for each table, and two tables more: links by target, and entities by key. Every stored text had
  its reference count, and events were stored as 64-bit numbers.
* Format 3 had no statements, and no table of the nodes that cite each message. The upgrade notes that the latter is
  due, and the next opening with the key of the store writes it.
* A store of format 4 may lack the table of lives. The next opening with the key writes it from the stored events.

Encrypted values are copied as they are: they depend on the names of tables and on keys, which are the same. So an
upgrade needs no key.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import lmdb
import msgspec

from ebbtide.errors import Corrupted
from ebbtide.events import EventRecord
from ebbtide.records import Life
from ebbtide.store.codec import INVALID, UNDECODABLE, record, u32
from ebbtide.store.layout import (
    ASSERTIONS,
    CHUNK_REFERENCES,
    CITINGS,
    CONCEPTS,
    EVENTS,
    FORMAT_VERSION,
    LINK_SIZE,
    LIVES,
    META,
    OLDEST_FORMAT,
    RECORDS,
    RULINGS,
    SCANS,
    TABLES,
    MetaEntries,
    Table,
)
from ebbtide.store.lmdb.environment import open_tables, refuse_other_format
from ebbtide.store.lmdb.transaction import ReadTransaction, WriteTransaction

_DROPPED: Final = {"backlinks": 12, "entity_ids": 0}
"""The tables that only format 2 has, as in OLD_VALUE_SIZES."""

_ADDED: Final = (ASSERTIONS, RULINGS, CONCEPTS, CITINGS, RECORDS, LIVES)
"""The tables that format 2 and 3 do not have."""

_SAME_TREES: Final = 3
"""The oldest format with the trees of the present one."""

OLD_VALUE_SIZES: Final = {
    "links": LINK_SIZE,
    **_DROPPED,
    **{table.name.decode(): 0 for table in TABLES if not table.has_duplicates and table not in _ADDED},
}
"""The name of each tree of format 2, with the size of its values where they are sorted duplicates, else 0."""

_OLD_EVENTS: Final = record(EventRecord)

Entries = Iterator[tuple[bytes, bytes]]


def upgrade(environment: Any) -> None:
    """Upgrade a store whose trees are not those of the present format.

    Raise FORMAT_TOO_OLD or FORMAT_TOO_NEW for a store that cannot be upgraded, and STORE_CORRUPTED where its format is
    unknown or a tree is missing.
    """
    version = _stored_format(environment)
    refuse_other_format(version)
    if version != OLDEST_FORMAT:
        raise _incomplete()
    try:
        with environment.begin(write=True) as txn:
            _upgrade(environment, txn)
    except (lmdb.NotFoundError, lmdb.BadValsizeError) as error:
        raise _incomplete() from error


def _incomplete() -> Corrupted:
    return Corrupted("The store lacks a table.", reason="STORE_CORRUPTED")


def _stored_format(environment: Any) -> int:
    """Return the format version that the identity of a store states; the present one if it is unknown."""
    name = MetaEntries.identity.name
    for tree, key in ((META.tree, META.prefix + name), (META.name, name)):
        try:
            meta = environment.open_db(tree, create=False)
            with environment.begin() as txn:
                value = txn.get(key, db=meta)
            return int(MetaEntries.identity.codec.decode(value).format_version)
        except (lmdb.Error, TypeError, *INVALID):
            continue
    return FORMAT_VERSION


def _upgrade(environment: Any, txn: Any) -> None:
    old = {
        name: environment.open_db(name.encode(), txn=txn, create=False, dupsort=size > 0, dupfixed=size > 0)
        for name, size in OLD_VALUE_SIZES.items()
    }
    new = open_tables(environment, txn)
    for table in TABLES:
        if table.prefix and table not in _ADDED:
            for key, value in list(_converted(table, txn.cursor(db=old[table.name.decode()]).iternext())):
                txn.put(table.prefix + key, value, db=new[table])
    events = [(key, _packed(value)) for key, value in txn.cursor(db=new[EVENTS]).iternext()]
    txn.drop(new[EVENTS], delete=False)
    txn.cursor(db=new[EVENTS]).putmulti(events, append=True)
    place = META.prefix + MetaEntries.identity.name
    identity = MetaEntries.identity.codec.decode(txn.get(place, db=new[META]))
    upgraded = msgspec.structs.replace(identity, format_version=FORMAT_VERSION)
    txn.put(place, MetaEntries.identity.codec.encode(upgraded), db=new[META])
    due = MetaEntries.citings_due
    txn.put(META.prefix + due.name, due.codec.encode(True), db=new[META])
    for name in (
        *_DROPPED,
        *(table.name.decode() for table in TABLES if table.prefix and table not in _ADDED),
    ):
        txn.drop(old[name])


def has_trees_of_present_format(txn: ReadTransaction) -> bool:
    """Return whether a store is of an older format that has the same trees."""
    identity = txn.meta.identity
    return identity is not None and _SAME_TREES <= identity.format_version < FORMAT_VERSION


def upgrade_entries(txn: WriteTransaction) -> None:
    """Upgrade a store of an older format that has the same trees."""
    identity = txn.meta.identity
    assert identity is not None, "it states the older format"
    txn.meta.set(identity=msgspec.structs.replace(identity, format_version=FORMAT_VERSION), citings_due=True)


def write_citings(txn: WriteTransaction) -> None:
    """Write the nodes that cite each message, which an upgrade has left."""
    txn.citings.rebuild(txn.nodes.all())
    txn.meta.set(citings_due=False)


def write_lives(txn: WriteTransaction) -> None:
    """Write the lives that the events still tell.

    A living memory whose birth they no longer contain counts as made before the first pass.
    """
    found = txn.events.lives()
    for node_id, life in found.items():
        txn.lives.put(node_id, life)
    for node in txn.nodes.all():
        born = found.get(node.id)
        txn.lives.put(node.id, Life(0 if born is None else born.after, node.original_length))
    txn.meta.set(has_lives=True)


def _converted(table: Table[Any], entries: Entries) -> Entries:
    """Return the entries of a table that now shares a tree."""
    if table is CHUNK_REFERENCES:
        return ((key, value) for key, value in entries if value != u32(1))
    if table is SCANS:
        return ((key, value.rstrip(b"\0")) for key, value in entries)
    return entries


def _packed(value: bytes) -> bytes:
    """Return a record of events in the present format. One that is invalid stays as it is: the checker finds it."""
    try:
        return EVENTS.value.encode(_OLD_EVENTS.decode(value))
    except (*UNDECODABLE, ValueError, KeyError):
        return value
