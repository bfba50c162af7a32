"""Translates the errors of LMDB and of the operating system. A test checks that the table is complete.

The path of a store is logged, through `__cause__`, and never sent to a client.
"""

from __future__ import annotations

import errno
import shutil
import struct
import zlib
from pathlib import Path

import lmdb
import msgspec

from ebbtide.errors import Corrupted, EbbtideError, Exhausted, Internal, Unavailable
from ebbtide.store import zstd

TRANSLATION: dict[str, tuple[type[EbbtideError], str]] = {
    "Error": (Unavailable, "STORE_UNAVAILABLE"),  # a bare errno of the operating system
    "MapFullError": (Exhausted, "STORE_FULL"),
    "DiskError": (Unavailable, "STORE_UNAVAILABLE"),
    "LockError": (Unavailable, "STORE_UNAVAILABLE"),
    "ReadersFullError": (Unavailable, "STORE_UNAVAILABLE"),
    "MapResizedError": (Unavailable, "STORE_UNAVAILABLE"),
    "MemoryError": (Unavailable, "STORE_UNAVAILABLE"),
    "TlsFullError": (Unavailable, "STORE_UNAVAILABLE"),
    "ReadonlyError": (Unavailable, "STORE_UNAVAILABLE"),
    "CorruptedError": (Corrupted, "STORE_CORRUPTED"),
    "PageNotFoundError": (Corrupted, "STORE_CORRUPTED"),
    "PanicError": (Corrupted, "STORE_CORRUPTED"),
    "InvalidError": (Corrupted, "STORE_CORRUPTED"),
    "BadChecksumError": (Corrupted, "STORE_CORRUPTED"),
    "VersionMismatchError": (Corrupted, "STORE_CORRUPTED"),
    "IncompatibleError": (Corrupted, "STORE_CORRUPTED"),
    "CursorFullError": (Corrupted, "STORE_CORRUPTED"),  # pages that refer to each other in a circle
    "PageFullError": (Corrupted, "STORE_CORRUPTED"),
    "TxnFullError": (Internal, "INTERNAL"),
    "BadTxnError": (Corrupted, "STORE_CORRUPTED"),  # follows a page that could not be read
    "BadRslotError": (Internal, "INTERNAL"),
    "BadDbiError": (Internal, "INTERNAL"),
    "BadValsizeError": (Internal, "INTERNAL"),
    "DbsFullError": (Internal, "INTERNAL"),
    "KeyExistsError": (Internal, "INTERNAL"),
    "NotFoundError": (Corrupted, "STORE_CORRUPTED"),  # a missing table
    "InvalidParameterError": (Internal, "INTERNAL"),
    "EnvEncryptionError": (Internal, "INTERNAL"),
    "CryptoFailError": (Internal, "INTERNAL"),
    "ProblemError": (Internal, "INTERNAL"),
}
"""The error of each exception of lmdb, by name."""

UNREADABLE = (msgspec.DecodeError, zstd.ZstdError, zlib.error, UnicodeDecodeError, struct.error)
"""Errors that a damaged value raises when it is decoded, or has a wrong size."""

FOREIGN = (lmdb.Error, OSError, *UNREADABLE)

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

LARGEST_WRITE_BYTES = 1 << 20
"""LMDB writes at most this much at once; with less free space, a short write is a full disk."""


def translated(error: Exception, path: Path) -> EbbtideError:
    """Return the error for an exception of lmdb or the operating system."""
    if _says_no_room(error, path):
        return Exhausted("The disk is full. Nothing was stored.", reason="STORE_FULL")
    family, reason = TRANSLATION.get(type(error).__name__, (Internal, "INTERNAL"))
    if isinstance(error, OSError):
        family, reason = Unavailable, "STORE_UNAVAILABLE"
    elif isinstance(error, UNREADABLE):
        family, reason = Corrupted, "STORE_CORRUPTED"
    return family(f"The store of this agent failed: {type(error).__name__}.", reason=reason)


def _says_no_room(error: Exception, path: Path) -> bool:
    if isinstance(error, OSError):
        return error.errno in NO_ROOM
    if not isinstance(error, lmdb.Error):
        return False
    if "No space left" in str(error):
        return True
    # A nearly full disk writes less than requested, which LMDB reports as an I/O error.
    return "Input/output error" in str(error) and _free_bytes(path) < LARGEST_WRITE_BYTES


def _free_bytes(path: Path) -> int:
    try:
        return shutil.disk_usage(path).free
    except OSError:
        return LARGEST_WRITE_BYTES
