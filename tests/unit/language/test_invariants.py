"""Invariants of the built-in model for every text, checked with generated ones.

The strategies mix words of several languages with marks, emoji, combining characters and control characters, because
random characters rarely form a sentence.
"""

from __future__ import annotations

import os
import subprocess
import sys

from hypothesis import given, settings
from hypothesis import strategies as st

from ebbtide.language.builtin.keywords import keywords, phrase
from ebbtide.language.builtin.model import process
from ebbtide.language.builtin.scripts import has_word
from ebbtide.language.builtin.segmentation import segment
from ebbtide.language.builtin.sentences import sentence_spans
from ebbtide.language.builtin.shortening import shorten
from ebbtide.language.port import MAX_WORD_CHARS, Utterance

_WORDS = (
    "我 不 喜欢 大提琴 在 北京 的 医院 因为 但是 如果 今天 三点 5岁 《红楼梦》 豆包 有限公司 没有 "
    "“ ” （ ） 、 ， 。 ！ …… ； "
    "the not payment service if but Ella Berlin ERR_42 3.5 $200 e.g. Dr. U.S. https://a.b/c?d. "
    "x@y.org /var/log/a.b v1.2 "
    "walks hiking because , . ! ? ... ; : \" ' ( ) - * ** ` # "
    "カフェ 行く 서울에서 гитару سوق 👍 👨‍👩‍👧 e\u0301 \u0301 \u200f \x00 ½ ①"
)
_PIECES = st.sampled_from(_WORDS.split())
_SPACES = st.sampled_from(["", "", " ", " ", "\n", "\n\n", "\t", "\u3000"])
_WOVEN = st.lists(st.tuples(_PIECES, _SPACES), max_size=40).map(
    lambda pairs: "".join(piece + space for piece, space in pairs)
)
TEXTS = st.one_of(_WOVEN, st.text(max_size=120))
PREFIXES = st.sampled_from(["", "Ann: ", "用户：", "a very long label indeed: "])

thorough = settings(max_examples=150, deadline=None, derandomize=True)


@thorough
@given(st.lists(TEXTS, max_size=4), PREFIXES, st.integers(0, 260))
def test_segments_are_exact_slices_in_order(texts: list[str], prefix: str, max_chars: int) -> None:
    """Segments are stripped slices of one message each, in order, apart, and within the limit."""
    found = segment([Utterance("user", "", text, prefix) for text in texts], max_chars)
    last = (-1, 0)
    for item in found:
        (index,) = item.messages
        assert item.start is not None
        assert texts[index][item.start : item.start + len(item.text)] == item.text
        assert item.text == item.text.strip()
        assert has_word(item.text)
        assert len(item.text) <= max(20, max_chars - len(prefix))
        assert (index, item.start) >= (last[0], last[1] if index == last[0] else 0)
        last = (index, item.start + len(item.text))


@thorough
@given(TEXTS, st.integers(20, 260))
def test_every_word_is_in_a_segment(text: str, max_chars: int) -> None:
    """Every letter, digit and ideograph of a message is covered by some segment."""
    covered: set[int] = set()
    for item in segment([Utterance("user", "", text)], max_chars):
        assert item.start is not None
        covered.update(range(item.start, item.start + len(item.text)))
    assert all(index in covered for index, char in enumerate(text) if char.isalnum())


@thorough
@given(TEXTS)
def test_sentences_cover_everything_visible(text: str) -> None:
    """Only white space lies between sentences."""
    end = 0
    for start, stop in sentence_spans(text):
        assert not text[end:start].strip()
        end = stop
    assert not text[end:].strip()


@thorough
@given(TEXTS)
def test_keywords_stand_in_the_text(text: str) -> None:
    """Keywords occur in the text, are unique and short, and have one line."""
    found = keywords(text)
    assert len(found) <= 5
    assert len({word.casefold() for word in found}) == len(found)
    for word in found:
        assert word.casefold() in text.casefold()
        assert 0 < len(word) <= 30
        assert "\n" not in word


@thorough
@given(TEXTS)
def test_phrases_are_short(text: str) -> None:
    """A phrase has one line and at most 20 characters or 8 words; a text with a word has a phrase."""
    found = phrase(text)
    assert "\n" not in found
    assert len(found) <= 20 or len(found.split()) <= 8
    assert len(found) <= 80


def _fits(shorter: str, text: str, target: int) -> bool:
    if len(shorter) <= max(target, 0):
        return True
    return target > 0 and (len(shorter) <= MAX_WORD_CHARS or shorter == text.strip())


@thorough
@given(TEXTS, st.integers(-1, 150))
def test_targets_are_never_exceeded(text: str, target: int) -> None:
    """A shortened text exceeds the target only as a short phrase or unchanged, and is not empty without need."""
    result = shorten(text, target)
    assert _fits(result, text, target)
    if len(text) <= target:
        assert result == text
    words = text.split()
    if target >= 5 and any(has_word(word) and len(word) <= 5 for word in words):
        assert result


def _letters(text: str) -> str:
    return "".join(char for char in text.casefold() if char.isalnum())


def _is_taken_from(part: str, whole: str) -> bool:
    rest = iter(whole)
    return all(char in rest for char in part)


@thorough
@given(TEXTS, st.lists(st.integers(1, 150), min_size=2, max_size=4))
def test_shortening_again_restores_nothing(text: str, targets: list[int]) -> None:
    """Each shortening takes its words, in order, from the one before."""
    present = text
    for target in sorted(targets, reverse=True):
        shorter = shorten(present, target, text)
        assert _fits(shorter, present, target)
        assert _is_taken_from(_letters(shorter), _letters(present))
        present = shorter


@thorough
@given(TEXTS, st.one_of(st.none(), st.integers(0, 150)))
def test_processing_holds_together(text: str, target: int | None) -> None:
    """Content, phrase and keywords of a memory are consistent for every text."""
    memory = process(text, target)
    if target is None:
        assert memory.content == text
    else:
        assert _fits(memory.content, text, target)
    assert all(word.casefold() in memory.content.casefold() for word in memory.keywords)


def test_results_do_not_depend_on_the_hash_seed() -> None:
    """Two processes with different hash seeds give the same results."""
    script = (
        "from ebbtide.language.builtin.model import process;"
        "a='我在青岛买了一把二手大提琴，但是 payment service 报错 ERR_42，没法付款。';"
        "a+=' Marta paid $20 in Berlin.';"
        "print([process(a, t) for t in (None, 60, 30, 15, 8)])"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={
                **os.environ,
                "PYTHONHASHSEED": seed,
                "PYTHONPATH": os.pathsep.join(sys.path),
                "PYTHONIOENCODING": "utf-8",
            },
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "77")
    }
    assert len(outputs) == 1


def test_dictionary_is_read_once_in_a_process() -> None:
    """The segmenter reads its dictionary once, when it is imported."""
    script = (
        "import rjieba;"
        "rjieba.Jieba = None;"
        "from ebbtide.language.builtin.model import process;"
        "assert '青岛' in process('我五月搬到了青岛。', None).keywords"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONIOENCODING": "utf-8"}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True)
