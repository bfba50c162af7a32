"""Variants: traditional Chinese characters as simplified ones, character by character, for matching only.

The table is OpenCC's; it is made when the first text that is not ASCII is read, in 40 ms.
"""

from __future__ import annotations

from functools import lru_cache

FIRST, LAST = 0x3400, 0x9FFF
"""The ideographs of everyday texts; those beyond have no simplified form that anybody types."""


@lru_cache(1)
def simplified() -> dict[int, int]:
    """From a traditional character to its simplified form, by code point, as `str.translate` takes it."""
    import opencc

    characters = [chr(point) for point in range(FIRST, LAST + 1)]
    converted = opencc.OpenCC("t2s").convert("\n".join(characters)).split("\n")
    pairs = zip(characters, converted, strict=True)
    return {ord(one): ord(other) for one, other in pairs if one != other and len(other) == 1}
