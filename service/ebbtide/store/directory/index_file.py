"""A file for an index that took long to build, beside the store: derived state that may be lost, never wrong.

It is written whole or not at all, and taken only when it is what was written, byte for byte, and belongs to what
is held now: of the same model and size, by the same version of the library, with the stamp of the same content.
Whatever else is found there counts as nothing, and the index is built anew. The check comes before the library
sees a byte, since one that reads garbage may take the process along.

What an index is, and what its stamp is made of, is for others to know.
"""

from __future__ import annotations

import hashlib
import struct
from pathlib import Path
from typing import Protocol

from ebbtide.store.durable import replace_file

INDEX_FILE = "vectors.index"
"""What the index over an agent's vectors is called."""

_MAGIC = b"ebbtide index 1\n"
_HEAD = struct.Struct("<16s32sQQ")
"""Magic, SHA-256 of all that follows the digest, bytes of the name, bytes of the image."""


class Indexed(Protocol):
    """What holds an index that can be kept."""

    @property
    def index_identity(self) -> str:
        """What an image fits to, beside its content."""

    def index_image(self) -> bytes | None:
        """The index as bytes; none where there is none."""

    def take_index(self, image: bytes) -> bool:
        """Goes on with an index from its image; whether it was taken."""


def save_index(path: Path, stamp: str, indexed: Indexed) -> None:
    """Keeps the index, atomically and durably, readable by its owner only; without one, the file goes.

    OSError when it cannot be written; then the file is as it was.
    """
    image = indexed.index_image()
    if image is None:
        path.unlink(missing_ok=True)
        return
    name = _name(stamp, indexed)
    head = _HEAD.pack(_MAGIC, _digest(name, image), len(name), len(image))
    replace_file(path, head, name, image)


def load_index(path: Path, stamp: str, indexed: Indexed) -> bool:
    """Takes up the index from its file; False, and nothing changed, where there is none that fits."""
    try:
        content = path.read_bytes()
    except OSError:
        return False
    if len(content) < _HEAD.size:
        return False
    magic, digest, name_length, image_length = _HEAD.unpack_from(content)
    if magic != _MAGIC or len(content) != _HEAD.size + name_length + image_length:
        return False
    begin = _HEAD.size + name_length
    name, image = content[_HEAD.size : begin], content[begin:]
    if name != _name(stamp, indexed) or digest != _digest(name, image):
        return False
    return indexed.take_index(image)


def _name(stamp: str, indexed: Indexed) -> bytes:
    return f"{indexed.index_identity}\n{stamp}".encode()


def _digest(name: bytes, image: bytes) -> bytes:
    digest = hashlib.sha256(struct.pack("<QQ", len(name), len(image)))
    digest.update(name)
    digest.update(image)
    return digest.digest()
