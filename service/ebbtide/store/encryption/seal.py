"""What is sealed, and under which key: AES-256-GCM for values, HMAC-SHA256 for keys made from text.

A data key belongs to one agent. Two keys are derived from it, one that encrypts and one that stands in for texts, and
a fingerprint that tells it from others without telling anything of it. A value is sealed together with its place, the
table and the key it stands under, so that no value can stand for another. The data key itself is kept wrapped under
the master key, which is the daemon's; where wrapped keys lie is said in `keys`, what goes through a seal in `layout`.

Which values are older than others is not sealed: whoever can write the files can put back what stood there before.

The only module that imports `cryptography`; those that need a seal import this one when they need it, since a daemon
without encryption should not hold a library of 9 MB.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from ebbtide.errors import Corrupted, Precondition
from ebbtide.store import layout

KEY_BYTES = 32
NONCE_BYTES = 12
TAG_BYTES = 16
HEAD_BYTES = 1 + NONCE_BYTES
"""The number of the data key, then the nonce; the sealed value and its tag follow."""

OVERHEAD_BYTES = HEAD_BYTES + TAG_BYTES

MOST_KEY_IDS = 255
"""The number of a data key is one byte; after the last it begins again at 1."""


class Seal:
    """Seals and opens what one agent keeps."""

    def __init__(self, key_id: int, data_key: bytes) -> None:
        assert 0 < key_id <= MOST_KEY_IDS
        self.key_id = key_id
        self.fingerprint = _derived(data_key, b"fingerprint")[:8].hex()
        self._cipher = AESGCM(_derived(data_key, b"values"))
        self._text_keys = _derived(data_key, b"keys made from text")
        self._head = bytes([key_id])

    def key(self, table: bytes, key: bytes) -> bytes:
        """What stands for a key: its HMAC in a table that is keyed by text, elsewhere the key itself."""
        kind = layout.KEYED_BY_TEXT.get(table)
        return key if kind is None else hmac.digest(self._text_keys, kind + key, "sha256")

    def seal(self, table: bytes, key: bytes, value: bytes) -> bytes:
        """The value as it is kept under what stands for its key."""
        nonce = os.urandom(NONCE_BYTES)
        return self._head + nonce + self._cipher.encrypt(nonce, value, table + b"\0" + key)

    def open(self, table: bytes, key: bytes, value: bytes) -> bytes:
        """The value that was sealed for this place. STORE_CORRUPTED for whatever was not."""
        if value[:1] == self._head and len(value) >= OVERHEAD_BYTES:
            try:
                return self._cipher.decrypt(value[1:HEAD_BYTES], value[HEAD_BYTES:], table + b"\0" + key)
            except InvalidTag:
                pass
        raise Corrupted(
            f"an entry of {table.decode()} is not what was sealed there", reason="STORE_CORRUPTED"
        )


class MasterKey:
    """The key under which the daemon keeps the data keys of its agents."""

    def __init__(self, key: bytes) -> None:
        assert len(key) == KEY_BYTES
        self.fingerprint = _derived(key, b"fingerprint of a master key")[:8].hex()
        self._cipher = AESGCM(_derived(key, b"wrapping"))

    def wrap(self, directory: str, key_id: int, data_key: bytes) -> bytes:
        """A data key as it is kept: of no use without the master key, nor to an agent in another directory."""
        nonce = os.urandom(NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, data_key, _place(directory, key_id))

    def unwrap(self, directory: str, key_id: int, wrapped: bytes) -> bytes:
        """The data key. MASTER_KEY_REFUSED when it was wrapped under another master key, or was changed since."""
        try:
            return self._cipher.decrypt(
                wrapped[:NONCE_BYTES], wrapped[NONCE_BYTES:], _place(directory, key_id)
            )
        except (InvalidTag, ValueError) as error:
            raise Precondition(
                "the data key of this agent cannot be unwrapped: its file was changed, or is another agent's",
                reason="MASTER_KEY_REFUSED",
            ) from error


def new_data_key() -> bytes:
    """A data key that was never used."""
    return os.urandom(KEY_BYTES)


def parse_master_key(text: str) -> MasterKey:
    """The master key from 64 hexadecimal digits or the base64 of 32 bytes. MASTER_KEY_REFUSED for anything else."""
    text = text.strip()
    for decoded in (bytes.fromhex, _from_base64):
        try:
            key = decoded(text)
        except (ValueError, binascii.Error):
            continue
        if len(key) == KEY_BYTES:
            return MasterKey(key)
    raise Precondition(
        "the master key must be 32 bytes, written as 64 hexadecimal digits or as base64",
        reason="MASTER_KEY_REFUSED",
    )


def _from_base64(text: str) -> bytes:
    return base64.b64decode(text.replace("-", "+").replace("_", "/"), validate=True)


def _place(directory: str, key_id: int) -> bytes:
    return f"data key {key_id} of {directory}".encode()


def _derived(key: bytes, purpose: bytes) -> bytes:
    return HKDF(hashes.SHA256(), KEY_BYTES, salt=None, info=b"ebbtide " + purpose).derive(key)
