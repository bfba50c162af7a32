"""Texts and queries have the same terms, whatever their language, case, form or script."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbtide.retrieval.analysis import (
    MAX_CHARACTERS,
    REMEMBERED_CHARS,
    WORDS_REMEMBERED,
    _Remembered,
    analysed,
    normalised,
    term_of,
    words_of,
)


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("She adopted two kittens.", "adopting a kitten"),
        ("The RUNNERS were running", "run"),
        ("Ｆｕｌｌ　ｗｉｄｔｈ", "full width"),
        ("Caroline's LGBTQ group", "caroline lgbtq"),
        ("我喜歡臺灣的記憶體", "台湾"),
        ("小明硕士毕业于中国科学院", "科学院"),
        ("外婆住在团岛。", "团岛"),
        ("我的猫叫豆包", "豆包"),
        ("on 2023-05-07 at 14:30", "2023-05-07"),
        ("error ERR_CONN-104 came back", "err_conn-104"),
        ("see /etc/hosts for it", "/etc/hosts"),
        ("用Python写了一个脚本", "python 脚本"),
        ("カタカナの言葉", "カタカナ"),
    ],
)
def test_every_word_of_the_query_is_found_in_the_text(text: str, query: str) -> None:
    """The words of a query match the text despite small differences."""
    looked_for = set(words_of(query))
    assert looked_for
    assert looked_for <= set(words_of(text))


def test_words_that_say_nothing_are_left_out() -> None:
    """Stop words are no terms, in either language."""
    assert list(words_of("what is it that you are to be")) == []
    assert "的是" not in set(words_of("我的是红的"))


def test_a_code_is_one_term_and_so_are_its_parts() -> None:
    """A code is found as a whole and by its parts."""
    assert list(words_of("user@example.org")) == ["user@example.org", "user", "exampl", "org"]


def test_two_characters_match_however_the_segmenter_cuts() -> None:
    """Every pair of adjacent characters is a term, unless both are stop characters."""
    words = set(words_of("北京大学生前来应聘"))
    assert {"北京", "京大", "大学", "学生", "生前", "前来", "来应", "应聘"} <= words


def test_a_word_of_one_character_is_a_term_however_the_segmenter_cuts() -> None:
    """Every character that is not a stop character is a term."""
    for text in ("我有一只狗叫旺财。", "谁养狗？", "狗"):
        assert "狗" in set(words_of(text))
    assert not {"的", "了"} & set(words_of("我买了一本新的书"))


def test_terms_are_ascending_once_each_and_counted() -> None:
    """Terms are unique, ascending and counted."""
    terms, counts, word_count = analysed("tea and tea and more tea, 茶")
    assert terms.tolist() == sorted({term_of(word) for word in ("tea", "more", "茶")})
    assert dict(zip(terms.tolist(), counts.tolist(), strict=True))[term_of("tea")] == 3
    assert word_count == 5
    many = analysed("tea " * 1000)
    assert (many[1].tolist(), many[2]) == ([255], 1000)


def test_hostile_texts_are_read_to_a_bound() -> None:
    """Lone surrogates, controls and endless words are handled, and reading is bounded."""
    assert analysed("\ud800 \x00 \u202e")[2] <= 2
    assert analysed("x" * (2 * MAX_CHARACTERS))[2] == 1
    assert analysed("a-" * MAX_CHARACTERS)[2] < MAX_CHARACTERS
    assert normalised("ẞ") == "ss"


@given(st.text(st.characters(max_codepoint=127)))
def test_english_texts_have_the_same_words_in_mixed_ones(text: str) -> None:
    """Promise: the fast search for words in ASCII texts finds the words that the general one finds."""
    assert [*words_of(text), "猫"] == list(words_of(f"{text} 猫"))


def test_long_words_are_not_cached() -> None:
    """Promise: texts of endless words do not fill the memory."""
    cache: _Remembered[int] = _Remembered(len)
    for length in (*range(1, WORDS_REMEMBERED + 10), 5):
        assert cache["a" * (length % (2 * REMEMBERED_CHARS))] == length % (2 * REMEMBERED_CHARS)
        assert cache[f"word {length}"] == len(f"word {length}")
    assert 0 < len(cache) <= WORDS_REMEMBERED
    assert max(map(len, cache)) <= REMEMBERED_CHARS
