"""Turns a backup or an export into a staged agent: a verified store in a directory of its own.

An agent is only replaced by a verified one. The file must be whole, in a known format, and of the expected agent; its
parameters must be valid, and its store must pass the checker. Then only a rename is left. A refused file leaves nothing
behind.

Where new agents are encrypted, restored ones are too. An unencrypted store is rewritten under a new key, and so is one
of another agent, since agents never share a key. Opening an encrypted backup is reading it, so a caller who restores it
under a new id needs access to the original agent.

The first byte identifies the file: an export starts with `{`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import msgspec
from pydantic import ValidationError

from ebbtide.actor import NO_ACTOR
from ebbtide.errors import Corrupted, EbbtideError, Forbidden, InvalidRequest, Precondition
from ebbtide.ids import AgentId, parse_agent_id
from ebbtide.parameters import AgentParameters
from ebbtide.records import AgentCounts, Identity
from ebbtide.store import layout
from ebbtide.store.chain import RENAMED, RESTORED, AuditEntry
from ebbtide.store.directory.agent_meta import write_meta
from ebbtide.store.directory.data_directory import STAGED, DataDirectory
from ebbtide.store.integrity.check import check_store
from ebbtide.store.integrity.entries import is_near_its_end
from ebbtide.store.lmdb.environment import DATA_FILE
from ebbtide.store.lmdb.lmdb_store import LmdbStore
from ebbtide.store.lmdb.probe import copy_foreign
from ebbtide.store.lmdb.transaction import WriteTransaction
from ebbtide.store.lmdb.upgrade import OLD_VALUE_SIZES
from ebbtide.store.transfer.backup_file import Manifest, damaged, read_backup, read_manifest
from ebbtide.store.transfer.importing import read_agent, read_export
from ebbtide.store.transfer.rewrite import seal_staged
from ebbtide.store.translation import translated
from ebbtide.store.yielding import Pause


@dataclass(frozen=True, slots=True)
class Staged:
    """An agent that is ready to be installed."""

    agent_id: AgentId
    path: Path
    counts: AgentCounts
    entry: AuditEntry
    """The audit entry: the caller, the time, and the kind of file."""


def receive(
    data: DataDirectory,
    source: BinaryIO,
    folder: Path,
    *,
    expected: AgentId | None,
    rename: bool,
    defaults: AgentParameters,
    now_ms: int = 0,
    actor: str = NO_ACTOR,
    covers: Callable[[str], bool] = lambda _: True,
    pause: Pause = lambda: None,
) -> Staged:
    """Create the agent of a backup or an export in an empty folder, and verify it.

    `expected` is the agent id that the file must have, or that the agent gets with `rename`; its audit log records the
    change. `covers` returns whether the caller has access to an agent. `pause` is called between small steps.

    Raise BACKUP_UNREADABLE, BACKUP_OF_ANOTHER_AGENT, FORMAT_TOO_NEW, INVALID_PARAMETERS or STORE_FULL; for an
    encrypted backup also DATA_KEY_MISSING, MASTER_KEY_REFUSED or KEY_NOT_FOR_AGENT.
    """
    path = folder / STAGED
    try:
        # Without the master key, an agent must not be stored unencrypted where others are encrypted.
        data.keys.admit()
        form = "export" if _is_export(source) else "backup"
        path.mkdir(mode=0o700)
        access = _Access(expected, rename, covers)
        store, key_owner = _store(data, source, path, access, pause)
        try:
            # Nothing is written to a store before it is verified.
            _verify(store, defaults, pause)
            identity = _identity(store, expected, now_ms, actor)
            counts, sealed_with = store.read(lambda txn: txn.counts()), store.sealed_with
            owner = AgentId(identity.agent_id)
            if data.keys.seals_new_agents and (not sealed_with or owner != key_owner):
                sealed_with = seal_staged(data, store, owner, pause)
        finally:
            store.close()
        with (path / DATA_FILE).open("rb") as file:
            os.fsync(file.fileno())
        write_meta(path, identity, counts, sealed_with)
        return Staged(owner, path, counts, AuditEntry(now_ms, actor, RESTORED, {"form": form}))
    except BaseException as error:
        data.end_transfer(path)
        if isinstance(error, OSError):
            raise translated(error, path) from error
        raise


def stage_empty(
    data: DataDirectory, folder: Path, identity: Identity, kept: Mapping[str, object], entry: AuditEntry
) -> Staged:
    """Create an agent without memories in an empty folder. `kept` are the values of its META table.

    Raise MASTER_KEY_REFUSED, DATA_KEY_MISSING or STORE_FULL.
    """
    path, owner = folder / STAGED, AgentId(identity.agent_id)
    try:
        data.keys.admit()
        path.mkdir(mode=0o700)
        store = data.create_staged(path, identity, owner)
        try:
            store.write(lambda txn: txn.meta.set(**kept))
            sealed_with = store.sealed_with
        finally:
            store.close()
        with (path / DATA_FILE).open("rb") as file:
            os.fsync(file.fileno())
        write_meta(path, identity, AgentCounts(), sealed_with)
        return Staged(owner, path, AgentCounts(), entry)
    except BaseException as error:
        data.end_transfer(path)
        if isinstance(error, OSError):
            raise translated(error, path) from error
        raise


def agent_id_of(source: BinaryIO) -> str:
    """Return the agent id that a backup or an export names. The position of the source stays."""
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
class _Access:
    """Which agent is expected, and whose keys may be used."""

    expected: AgentId | None
    rename: bool
    covers: Callable[[str], bool]

    def refuse_another(self, agent_id: str) -> None:
        """Raise BACKUP_OF_ANOTHER_AGENT unless the file is of the expected agent."""
        if self.expected is not None and not self.rename and agent_id != self.expected:
            raise Precondition(
                "This is a backup or export of another agent. Pass rename=true to restore it under this id.",
                reason="BACKUP_OF_ANOTHER_AGENT",
            )
        if self.expected is None:
            parse_agent_id(agent_id)

    def refuse_unreadable(self, agent_id: str) -> None:
        """Raise KEY_NOT_FOR_AGENT for an encrypted backup of an agent that the caller may not read."""
        if agent_id != self.expected and not self.covers(agent_id):
            raise Forbidden(
                "This is an encrypted backup of another agent, which the API key does not cover.",
                reason="KEY_NOT_FOR_AGENT",
            )


def _store(
    data: DataDirectory, source: BinaryIO, path: Path, access: _Access, pause: Pause
) -> tuple[LmdbStore, AgentId]:
    """Return the received store, and the agent whose keys encrypt it."""
    if _is_export(source):
        agent_id = read_agent(source).agent_id
        access.refuse_another(agent_id)
        owner = access.expected or AgentId(agent_id)
        return read_export(source, lambda identity: data.create_staged(path, identity, owner), pause), owner

    def check(manifest: Manifest) -> None:
        access.refuse_another(manifest.agent_id)

    foreign = path / "foreign.mdb"
    manifest = read_backup(source, foreign, max_bytes=data.max_map_bytes, check=check, pause=pause)
    owner = AgentId(manifest.agent_id)
    # LMDB trusts its files. A forged one may crash the process, so only a child process opens it.
    sizes = OLD_VALUE_SIZES if manifest.store_format == layout.OLDEST_FORMAT else layout.VALUE_SIZES
    if not copy_foreign(foreign, path / DATA_FILE, sizes, pause):
        damaged("its data cannot be read")
    foreign.unlink()
    try:
        store = data.open_unplaced(path, owner, lambda: access.refuse_unreadable(owner))
    except Corrupted:
        damaged("its data cannot be opened")
    if _agent_id_in(store) != manifest.agent_id:
        store.close()
        damaged("its data is of another agent than its manifest")
    return store, owner


def _agent_id_in(store: LmdbStore) -> str | None:
    """Return the agent id in a store, or None where it cannot be read."""
    try:
        identity = store.read(lambda txn: txn.meta.identity)
    except Corrupted:
        return None
    return None if identity is None else identity.agent_id


def _identity(store: LmdbStore, expected: AgentId | None, now_ms: int, actor: str) -> Identity:
    """Return the identity of the agent, changed to the expected id where it has another."""
    identity = store.read(lambda txn: txn.meta.identity)
    assert identity is not None
    if expected is None or identity.agent_id == expected:
        return identity
    renamed = msgspec.structs.replace(identity, agent_id=expected)
    entry = AuditEntry(now_ms, actor, RENAMED, {"from": identity.agent_id})

    def write(txn: WriteTransaction) -> None:
        txn.create(renamed)
        txn.audit.append(entry, expected)

    store.write(write)
    return renamed


def _verify(store: LmdbStore, defaults: AgentParameters, pause: Pause) -> None:
    try:
        _refuse_parameters(defaults, store.read(lambda txn: txn.meta.overrides))
        findings = check_store(store, pause)
        if findings:
            first = findings[0]
            damaged(f"{len(findings)} findings, the first: {first.table} {first.key} {first.problem}"[:200])
        is_near = store.read(is_near_its_end)
    except Exception as error:
        # A forged file may raise any error in the code below.
        if isinstance(error, EbbtideError) and not isinstance(error, Corrupted):
            raise
        damaged("its data cannot be read")
    if is_near:
        damaged("its numbers are nearly exhausted")


def _refuse_parameters(defaults: AgentParameters, overrides: Mapping[str, object]) -> None:
    try:
        AgentParameters.model_validate({**defaults.model_dump(), **overrides})
    except ValidationError:
        raise InvalidRequest(
            "The parameters of the agent are unknown, or conflict with the defaults of this daemon.",
            reason="INVALID_PARAMETERS",
        ) from None
