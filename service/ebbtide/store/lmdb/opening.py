"""What opening and creating a store needs: the seal of its key, what it begins with, and whether it may be read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ebbtide.errors import Corrupted, Precondition
from ebbtide.store import layout
from ebbtide.store.lmdb.probe import is_in_doubt, is_sound
from ebbtide.store.port import ReadTransaction, WriteTransaction

if TYPE_CHECKING:
    from ebbtide.store.encryption.seal import Seal

SealOf = Callable[[str], "Seal"]
"""The seal of the key with this fingerprint; raises where there is no such key."""

Beginning = Callable[[WriteTransaction], None]
"""What a new store has from its first commit on."""


def without_keys(fingerprint: str) -> Seal:
    """Refuse a sealed store: the caller has no keys."""
    raise Precondition(f"the store is sealed with key {fingerprint}", reason="MASTER_KEY_REFUSED")


def begin_empty(_: WriteTransaction) -> None:
    """Write nothing: the new store is empty."""


def refuse_unsound(path: Path) -> None:
    """STORE_CORRUPTED where the process ended while the store was open, and would end over it again."""
    if is_in_doubt(path) and not is_sound(path):
        raise Corrupted("the store cannot be read through", reason="STORE_CORRUPTED")


def fingerprint_in(txn: ReadTransaction) -> str:
    """The fingerprint of the key that seals a store. FORMAT_TOO_NEW when a newer Ebbtide wrote it."""
    identity = txn.identity()
    version = layout.FORMAT_VERSION if identity is None else identity.format_version
    if version > layout.FORMAT_VERSION:
        raise Precondition(
            f"the data has format {version}, this Ebbtide reads up to {layout.FORMAT_VERSION}; "
            "use a newer Ebbtide",
            reason="FORMAT_TOO_NEW",
        )
    return txn.sealed_with()
