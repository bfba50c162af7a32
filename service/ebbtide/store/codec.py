"""How values become bytes: MessagePack records, numbers of a fixed size, compressed text.

msgspec builds the decoder of a type on first use. Two threads that build the same decoder at once crash the process
(seen with msgspec 0.22, at a start that opens several agents). So every decoder is built when a module is imported:
tables do this through their codecs, other modules call `make_known`.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import msgspec

from ebbtide.store import zstd

V = TypeVar("V")

UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Errors that msgspec raises for bytes that are no valid value."""

INVALID = (*UNDECODABLE, zstd.ZstdError, zlib.error, struct.error)
"""Errors that any codec raises for bytes that are no valid value."""

encode = msgspec.msgpack.encode
decode = msgspec.msgpack.decode


KNOWN: list[Any] = []
"""The types whose decoders were built on import."""


def make_known(*kinds: Any) -> None:
    """Build the decoders of some types. Call it on import, which runs on one thread."""
    KNOWN.extend(kinds)
    for kind in kinds:
        msgspec.msgpack.Decoder(kind)
        msgspec.json.Decoder(kind)


@dataclass(frozen=True)
class Codec(Generic[V]):
    """How values of one type become bytes."""

    encode: Callable[[V], bytes]
    decode: Callable[[bytes], V]
    size: int | None = None
    """Bytes of every value; None where they differ."""
    kind: Any = None
    """The type with its bounds, for `check`."""
    is_record: bool = False
    """Whether `decode` checks the bounds itself."""

    def check(self, data: bytes) -> V:
        """Decode a value within its bounds. Raises one of INVALID."""
        value = self.decode(data)
        return value if self.is_record or self.kind is None else msgspec.convert(value, self.kind)


def record(kind: Any) -> Codec[Any]:
    """Return the codec of a type that MessagePack encodes."""
    make_known(kind)
    return Codec(encode, msgspec.msgpack.Decoder(kind).decode, kind=kind, is_record=True)


_U64 = struct.Struct(">Q")
_U32 = struct.Struct(">I")

u64 = _U64.pack
u32 = _U32.pack


def from_u64(value: bytes) -> int:
    """Return the number in eight bytes."""
    number: int = _U64.unpack(value)[0]
    return number


def from_u32(value: bytes) -> int:
    """Return the number in four bytes."""
    number: int = _U32.unpack(value)[0]
    return number


def number(kind: Any = None) -> Codec[int]:
    """Return the codec of a number in eight bytes, big-endian: the byte order of keys is numeric order."""
    return Codec(u64, from_u64, 8, kind)


def small_number(kind: Any = None) -> Codec[int]:
    """Return the codec of a number in four bytes, big-endian."""
    return Codec(u32, from_u32, 4, kind)


def fixed(size: int | None = None) -> Codec[bytes]:
    """Return the codec of plain bytes, all of one size if one is given."""
    return Codec(bytes, bytes, size)


def text(kind: Any = None) -> Codec[str]:
    """Return the codec of text in UTF-8."""
    return Codec(str.encode, bytes.decode, kind=kind)


MAX_DEFLATED_BYTES = 4096
"""A longer text is compressed with Zstandard.

For a short text, zlib is faster: creating a decompressor of Zstandard takes 8 µs on a virtual machine, because it
queries the features of the processor.
"""

_ZSTANDARD = b"\x28\xb5\x2f\xfd"
"""The first bytes of a frame of Zstandard. Data of zlib never begins with them."""


def _compress(content: bytes) -> bytes:
    return zlib.compress(content) if len(content) <= MAX_DEFLATED_BYTES else zstd.compress(content)


def _decompress(value: bytes) -> bytes:
    return unpacked(value) if value.startswith(_ZSTANDARD) else zlib.decompress(value)


def unpacked(value: bytes) -> bytes:
    """Return the content of one frame of Zstandard. Raise ZstdError for anything else."""
    # Not `zstd.decompress`: it reads further frames, whose size `is_within` does not see.
    frame = zstd.ZstdDecompressor()
    content = frame.decompress(value)
    if not frame.eof or frame.unused_data:
        raise zstd.ZstdError("not one frame")
    return content


def is_within(most: int, value: bytes) -> bool:
    """Return whether a compressed chunk has at most `most` bytes, without unpacking a long one."""
    if value.startswith(_ZSTANDARD):
        size = zstd.get_frame_info(value).decompressed_size
        return size is not None and size <= most
    return len(zlib.decompressobj().decompress(value, MAX_DEFLATED_BYTES + 1)) <= MAX_DEFLATED_BYTES


COMPRESSED: Final = Codec(_compress, _decompress)
"""Bytes, compressed with zlib or, if there are many, with Zstandard."""

FLAG: Final = Codec[bool](lambda _: b"1", lambda _: True)
"""A note that is present or absent."""
