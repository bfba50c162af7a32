"""Texts on disk: short ones are compressed with zlib, long ones with Zstandard."""

from __future__ import annotations

import tracemalloc
import zlib

import pytest
import zstandard

from ebbtide.store.codec import COMPRESSED, INVALID, MAX_DEFLATED_BYTES, is_within

SENTENCE = "The harbour master keeps tea. 团岛的灯塔。 "
GIGABYTE = 1 << 30


@pytest.mark.parametrize("size", [0, 1, 40, 500, MAX_DEFLATED_BYTES, MAX_DEFLATED_BYTES + 1, 300_000])
def test_a_text_of_any_size_is_read_back(size: int) -> None:
    """A text is read back as it was written, below and above the size at which the method changes."""
    text = (SENTENCE * (size // len(SENTENCE) + 1)).encode()[:size].decode(errors="ignore")
    text += "x" * (size - len(text.encode()))
    packed = COMPRESSED.encode(text.encode())
    assert COMPRESSED.decode(packed).decode() == text
    assert packed.startswith(zstandard.FRAME_HEADER) == (size > MAX_DEFLATED_BYTES)


def test_texts_of_another_implementation_are_read() -> None:
    """Frames of another Zstandard library, as earlier versions wrote them, are read."""
    content = (SENTENCE * 5).encode()
    frames = [
        zstandard.ZstdCompressor().compress(content),
        zstandard.ZstdCompressor(write_checksum=True, level=19).compress(content),
    ]
    assert [COMPRESSED.decode(frame) for frame in frames] == [content] * 2


@pytest.mark.parametrize("size", [200, 20_000])
def test_a_damaged_text_is_refused(size: int) -> None:
    """A text that is cut off raises one of the errors of a codec, as do other bytes."""
    packed = COMPRESSED.encode("".join(map(str, range(size)))[:size].encode())
    for damaged in (packed[:-1], packed[: len(packed) // 2], packed[:4], b"", bytes(20)):
        with pytest.raises(INVALID):
            COMPRESSED.decode(damaged)


def test_a_second_frame_is_refused() -> None:
    """A frame behind a text is refused, because the check of the size does not see it."""
    with pytest.raises(INVALID):
        COMPRESSED.decode(zstandard.compress(b"small") + zstandard.compress(bytes(1 << 20)))


def test_a_bomb_is_found_without_unpacking_it() -> None:
    """The check of the size needs little memory for data that unpacks to gigabytes."""
    deflating, writer = zlib.compressobj(1), zstandard.ZstdCompressor().compressobj(size=GIGABYTE)
    piece = bytes(1 << 20)
    bombs = [
        b"".join(deflating.compress(piece) for _ in range(256)) + deflating.flush(),
        b"".join(writer.compress(piece) for _ in range(GIGABYTE >> 20)) + writer.flush(),
    ]
    tracemalloc.start()
    try:
        assert not any(is_within(100_000, bomb) for bomb in bombs)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
    assert is_within(5000, COMPRESSED.encode(b"x" * 100))
    assert is_within(5000, COMPRESSED.encode(b"x" * 5000))
    assert not is_within(5000, COMPRESSED.encode(b"x" * 5001))
