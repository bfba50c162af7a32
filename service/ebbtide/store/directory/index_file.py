"""The file of a vector index, next to the store: derived state that may be lost, but is never wrong.

The file is written atomically. It is used only if its checksum is right and it belongs to the present content: the same
model and size, the same version of the library, and the same stamp. Otherwise the index is built again. The checksum is
verified before the library reads a byte, since invalid data may crash the process.
"""

from __future__ import annotations

import hashlib
import struct
from pathlib import Path
from typing import Protocol

from ebbtide.store.durable import replace_file

INDEX_FILE = "vectors.index"
"""The name of the index file of an agent."""

_MAGIC = b"ebbtide index 1\n"
_HEAD = struct.Struct("<16s32sQQ")
"""Magic, SHA-256 of all that follows, size of the name, size of the image."""


class Indexed(Protocol):
    """An object with an index that can be saved."""

    @property
    def index_identity(self) -> str:
        """The model, size and library version that an image depends on."""

    def index_image(self) -> bytes | None:
        """Return the index as bytes, or None where there is none."""

    def take_index(self, image: bytes) -> bool:
        """Load an index from its image. Return whether it was loaded."""


def save_index(path: Path, stamp: str, indexed: Indexed) -> None:
    """Save the index atomically and durably; without an index, remove the file.

    Raise OSError where that fails; the file is then unchanged.
    """
    image = indexed.index_image()
    if image is None:
        path.unlink(missing_ok=True)
        return
    name = _name(stamp, indexed)
    head = _HEAD.pack(_MAGIC, _digest(name, image), len(name), len(image))
    replace_file(path, head, name, image)


def load_index(path: Path, stamp: str, indexed: Indexed) -> bool:
    """Load the index from its file. Return False if it is missing or does not fit."""
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
