"""Normalisation: bounded runs of combining marks, and nothing else changed."""

from __future__ import annotations

import sys
import unicodedata

from hypothesis import given, settings
from hypothesis import strategies as st

from ebbtide.normalisation import MAX_MARKS, nfkc, simplified, stream_safe
from tests.tidy import generate_simplified

MARKS = "\u0301\u0323\u0327"


@settings(deadline=None)  # the first text compiles a pattern
@given(st.text(max_size=200))
def test_ordinary_text_is_normalised_as_usual(text: str) -> None:
    """Without a long run of marks the result is that of the standard library."""
    assert nfkc(text) == unicodedata.normalize("NFKC", text)


def test_long_runs_of_marks_are_divided() -> None:
    """A joiner follows every 30 marks that another one follows; no character is lost; a run of 30 stays whole."""
    run = MARKS * 30
    assert stream_safe("e" + run).replace("\u034f", "") == "e" + run
    assert all(len(part) <= MAX_MARKS for part in stream_safe(run).split("\u034f"))
    assert stream_safe("e" + run[:MAX_MARKS]) == "e" + run[:MAX_MARKS]


def test_no_character_escapes_the_bound() -> None:
    """Every character that is a combining mark, or decomposes to one first, counts as a mark, also next to others."""
    for point in range(sys.maxunicode + 1):
        if 0xD800 <= point < 0xE000:
            continue
        first = unicodedata.normalize("NFKD", chr(point))[0]
        if unicodedata.combining(first):
            assert "\u034f" in stream_safe(chr(point) * (MAX_MARKS + 1)), hex(point)


def test_the_table_of_simplified_characters_is_opencc_s() -> None:
    """The packaged table is what OpenCC generates, and folds a traditional character to its simplified form."""
    assert generate_simplified.FILE.read_text(encoding="utf-8") == generate_simplified.table()
    assert "花園裡".translate(simplified()) == "花园里"
