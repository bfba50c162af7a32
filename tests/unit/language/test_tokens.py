"""Tokens are exact slices in order, and units such as URLs are one token."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbtide.language.builtin import tokens
from ebbtide.language.builtin.tokens import tokenize

WORDS = (
    "word It May Mel don’t I'd http ftp :// @ a.b . … ' - / \\ C:\\x 12 3.5kg x_y C++ # ， ！ ねこ 고양이 é \u0301 "
    '5月3日 : ) "'
)
PIECES = [
    *WORDS.split(),
    "5 km",
    "\n",
    " ",
    " ",
    "\t",
]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Mail bob.smith@sea.org by May 5.", ["Mail", "bob.smith@sea.org", "by", "May 5", "."]),
        (
            "Open C:\\x\\y or http://sea.org/a please",
            ["Open", "C:\\x\\y", "or", "http://sea.org/a", "please"],
        ),
        ("Isn't Node.js rock-n-roll?", ["Isn't", "Node.js", "rock-n-roll", "?"]),
        (" We ran 5 km (in C++)\n", ["We", "ran", "5 km", "(", "in", "C++", ")"]),
    ],
)
def test_units_are_one_token(text: str, said: list[str]) -> None:
    """Addresses, paths, dates, amounts and compounds are one token; marks are separate."""
    assert [token.text for token in tokenize(text)] == said


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_plain_words_are_what_the_full_pattern_says(text: str) -> None:
    """The fast path for plain words gives the same tokens as the full pattern."""
    slow = re.compile(tokens._TOKEN.pattern.replace(tokens._PLAIN, "(?!)"), re.VERBOSE | re.DOTALL)
    assert slow.pattern != tokens._TOKEN.pattern
    told = [
        (match.group(kind), match.start(kind))
        for match in slow.finditer(text)
        if (kind := match.lastgroup or "") != "space"
    ]
    assert [(token.text, token.start) for token in tokenize(text)] == told
