"""An agent on its way in: from a backup or an export to a directory beside the others, verified.

The rule guarded here: nothing takes an agent's place that was not looked at. The file must be whole, its format known,
the agent in it the one that is meant, its parameters such that it can be opened, and its store must pass the checker.
Then only a rename is left to do. Whatever is refused leaves nothing behind.

Where new agents are sealed, what comes in is: a plain store is written anew under a new key, and so is one that was
sealed for another agent, since no two share a key. Opening a sealed one is reading it, so whoever gives it a new id
must be allowed to read whose it was.

A file is taken for what its first byte says: an export begins with `{`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
from pydantic import ValidationError

from ebbtide.actor import NO_ACTOR
from ebbtide.errors import Corrupted, EbbtideError, Forbidden, InvalidRequest, Precondition
from ebbtide.ids import AgentId, parse_agent_id
from ebbtide.parameters import AgentParameters
from ebbtide.records import AgentCounts
from ebbtide.store import layout
from ebbtide.store.chain import RENAMED, RESTORED, AuditEntry
from ebbtide.store.directory.agent_meta import write_meta
from ebbtide.store.directory.data_directory import STAGED, DataDirectory
from ebbtide.store.integrity.check import check_store
from ebbtide.store.integrity.shape import is_near_its_end
from ebbtide.store.lmdb.lmdb_store import LmdbStore
from ebbtide.store.lmdb.probe import copy_foreign
from ebbtide.store.port import Identity
from ebbtide.store.transfer.backup_file import Manifest, damaged, read_backup, read_manifest
from ebbtide.store.transfer.importing import read_agent, read_export
from ebbtide.store.transfer.rewrite import seal_staged
from ebbtide.store.translation import translated
from ebbtide.store.yielding import Rest


@dataclass(frozen=True, slots=True)
class Staged:
    """An agent that is ready to take its place."""

    agent_id: AgentId
    path: Path
    counts: AgentCounts
    entry: AuditEntry
    """Who brings it back, when, and from what."""


def receive(
    data: DataDirectory,
    source: BinaryIO,
    folder: Path,
    *,
    wanted: AgentId | None,
    rename: bool,
    defaults: AgentParameters,
    now_ms: int = 0,
    asker: str = NO_ACTOR,
    covers: Callable[[str], bool] = lambda _: True,
    rest: Rest = lambda: None,
) -> Staged:
    """Make the agent of a backup or an export in an empty folder, and verify it.

    `wanted` is whose it must be, or, with `rename`, becomes, which its audit log tells; `covers` says whose keys may be
    used for that; `rest` is called now and then. Raises BACKUP_UNREADABLE, BACKUP_OF_ANOTHER_AGENT, FORMAT_TOO_NEW,
    INVALID_PARAMETERS, STORE_FULL, and of what is sealed DATA_KEY_MISSING, MASTER_KEY_REFUSED or KEY_NOT_FOR_AGENT.
    """
    path = folder / STAGED
    try:
        # Without the master key nothing may come in plain where agents are sealed.
        data.keys.admit()
        form = "export" if _is_export(source) else "backup"
        path.mkdir(mode=0o700)
        store, whose_keys = _store(data, source, path, wanted, _Meant(wanted, rename, covers), rest)
        try:
            # Nothing is written to what was not verified.
            _verify(store, defaults, rest)
            identity = _identity(store, wanted, now_ms, asker)
            counts, sealed_with = store.read(lambda txn: txn.counts()), store.sealed_with
            owner = AgentId(identity.agent_id)
            if data.keys.seals_new_agents and (not sealed_with or owner != whose_keys):
                sealed_with = seal_staged(data, store, owner, rest)
        finally:
            store.close()
        with (path / "data.mdb").open("rb") as file:
            os.fsync(file.fileno())
        write_meta(path, identity, counts, sealed_with)
        return Staged(owner, path, counts, AuditEntry(now_ms, asker, RESTORED, {"form": form}))
    except BaseException as error:
        data.end_transfer(path)
        if isinstance(error, OSError):
            raise translated(error, path) from error
        raise


def whose(source: BinaryIO) -> str:
    """Whose backup or export this is, by what it says; the source is then where it was."""
    begin = source.tell()
    try:
        if _is_export(source):
            return read_agent(source).agent_id
        return read_manifest(source).agent_id
    finally:
        source.seek(begin)


def _is_export(source: BinaryIO) -> bool:
    first = source.read(1)
    source.seek(-len(first), os.SEEK_CUR)
    return first == b"{"


@dataclass(frozen=True, slots=True)
class _Meant:
    """Who is meant, and whose keys may be used."""

    wanted: AgentId | None
    rename: bool
    covers: Callable[[str], bool]

    def refuse_another(self, told: str) -> None:
        """Refuse what is not the agent that is meant."""
        if self.wanted is not None and not self.rename and told != self.wanted:
            raise Precondition(
                "this is a backup or export of another agent; say so explicitly if it is to have a new id",
                reason="BACKUP_OF_ANOTHER_AGENT",
            )
        if self.wanted is None:
            parse_agent_id(told)

    def refuse_beyond_reach(self, told: str) -> None:
        """KEY_NOT_FOR_AGENT for a sealed backup of an agent that whoever asks may not read."""
        if told != self.wanted and not self.covers(told):
            raise Forbidden(
                "this is an encrypted backup of another agent, which the key is not for",
                reason="KEY_NOT_FOR_AGENT",
            )


def _store(
    data: DataDirectory, source: BinaryIO, path: Path, wanted: AgentId | None, meant: _Meant, rest: Rest
) -> tuple[LmdbStore, AgentId]:
    """The store that came in, and with whose keys it is sealed if it is."""
    if _is_export(source):
        told = read_agent(source).agent_id
        meant.refuse_another(told)
        owner = wanted or AgentId(told)
        return read_export(source, lambda identity: data.create_copy(path, identity, owner), rest), owner

    def check(manifest: Manifest) -> None:
        meant.refuse_another(manifest.agent_id)

    foreign = path / "foreign.mdb"
    manifest = read_backup(source, foreign, max_bytes=data.max_map_bytes, check=check, rest=rest)
    owner = AgentId(manifest.agent_id)
    # LMDB trusts its file. Only a process that may end over it opens this one.
    if not copy_foreign(foreign, path / "data.mdb", layout.VALUE_SIZES, rest):
        damaged("its data cannot be read")
    foreign.unlink()
    try:
        store = data.open_copy(path, owner, lambda: meant.refuse_beyond_reach(owner))
    except Corrupted:
        damaged("its data cannot be opened")
    if _agent_id_in(store) != manifest.agent_id:
        store.close()
        damaged("its data is of another agent than it says")
    return store, owner


def _agent_id_in(store: LmdbStore) -> str | None:
    """Whose a store is by what it says; None where that cannot be read."""
    try:
        identity = store.read(lambda txn: txn.identity())
    except Corrupted:
        return None
    return None if identity is None else identity.agent_id


def _identity(store: LmdbStore, wanted: AgentId | None, now_ms: int, asker: str) -> Identity:
    """Who the agent is; with a new id where it is to have one."""
    identity = store.read(lambda txn: txn.identity())
    assert identity is not None
    if wanted is None or identity.agent_id == wanted:
        return identity
    renamed = msgspec.structs.replace(identity, agent_id=wanted)
    entry = AuditEntry(now_ms, asker, RENAMED, {"from": identity.agent_id})

    def write(txn: Any) -> None:
        txn.create(renamed)
        txn.record(entry, wanted)

    store.write(write)
    return renamed


def _verify(store: LmdbStore, defaults: AgentParameters, rest: Rest) -> None:
    try:
        _refuse_parameters(defaults, store.read(lambda txn: txn.overrides()))
        findings = check_store(store, rest)
        if findings:
            first = findings[0]
            damaged(f"{len(findings)} findings, the first: {first.table} {first.key} {first.problem}"[:200])
        is_near = store.read(lambda txn: is_near_its_end(txn))  # type: ignore[arg-type]
    except Exception as error:
        # Whatever a forged file makes the code below us raise.
        if isinstance(error, EbbtideError) and not isinstance(error, Corrupted):
            raise
        damaged("its data cannot be read")
    if is_near:
        damaged("its numbers are nearly used up")


def _refuse_parameters(defaults: AgentParameters, overrides: Mapping[str, object]) -> None:
    try:
        AgentParameters.model_validate({**defaults.model_dump(), **overrides})
    except ValidationError:
        raise InvalidRequest(
            "the parameters of the agent do not fit this daemon's defaults, or are unknown to it",
            reason="INVALID_PARAMETERS",
        ) from None
