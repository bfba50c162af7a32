"""A topic is found in the texts that name it, as whole sentences."""

from __future__ import annotations

import unicodedata

import pytest

from ebbtide.retrieval.topic import Topic

NAMED = [
    ("Zephyrine", "The zephyrines' hats are red.", True),
    ("Zephyrines", "Zephyrine came.", True),
    ("Zephyrine’s", "Zephyrine came.", True),
    ("Zephyrine", "A Zephyrinese hat.", False),
    ("city", "Two cities.", True),
    ("project heron", "Projects Heron.", False),
    ("boss", "The bosses left.", False),
    ("café", "Die Cafés schließen.", True),
    ("art", "Modern ART, she said.", True),
    ("art", "The party starts at noon.", False),
    ("project heron", "All about Project \n Heron today.", True),
    ("project heron", "Project Blue Heron.", False),
    ("C++", "She writes C++, mostly.", True),
    ("straße", "Die STRASSE ist lang.", True),
    ("青岛", "我外婆住在青岛海边。", True),
    ("龙", "一條龍在天上。", True),
    ("小雯", "小文来了。", False),
    ("cafe", "Ｃａｆｅ Central", True),
    ("a.c", "abc", False),
    ("café", "The Cafe\u0301 Central.", True),
    ("cafe\u0301", "The café Central.", True),
    ("red house", "The red\u200b house, and no other.", True),
    ("redhouse", "The red\u200bhouse.", True),
    ("red house", "The r\u00aded\u2060 hou\ufeffse.", True),
    ("red\u200b house", "The red house.", True),
    ("red house", "The red\u200bhouse.", True),
    ("house", "The\u200bred\u200bhouse.", True),
    ("red\u200bhouse", "The red house.", True),
    ("red\u200bhouse", "The redhouse.", True),
    ("hous", "The\u200bred\u200bhouse.", False),
    ("red house", "the\u200br\u200bed house", True),
    ("red house", "The re\u200bd\u200bhouse stands.", True),
    ("red house", "r\u200be\u200b\u200bd\u200bh\u200bo\u200bu\u200bs\u200be", True),
    ("redhouse", "a\u200bred\u200bhouse", True),
    ("redhouse boat", "The red\u200bhouse\u200bboat", True),
    ("red\u200bhouse\u200bboat", "The redhouse boat", True),
    ("cafe\u0301", "the\u200bcafe\u200b\u0301\u200bbar", True),
    ("art \u200b", "arty", False),
    ("\u00ad art", "smart", False),
    ("ann's boat", "It was Ann’s boat.", True),
    ("ann’s boat", "It was Ann's boat.", True),
    ('"blue" team', "The “Blue” team.", True),
    ("re-entry", "The re\u2011entry.", True),
    ("프로젝트", "프로젝트는 늦었다.", True),
    ("프로젝트", unicodedata.normalize("NFD", "프로젝트는 늦었다."), True),
    (unicodedata.normalize("NFD", "프로젝트"), "새 프로젝트를 본다.", True),
    ("heron", "heron은 새다.", True),
    ("heron", "我们在做heron项目。", True),
    ("ヘロン", "プロジェクトヘロンは遅い。", True),
    ("ガス", "\uff76\uff9e\uff7d\u3067\u3059", True),
    ("เรือ", "นี่คือเรือของฉัน", True),
    ("наука", "научная наука", True),
    ("наук", "наука", False),
    ("straße", "STRASSENBAHN", False),
    ("cafe", "The café.", False),
]


@pytest.mark.parametrize(("words", "text", "is_named"), NAMED)
def test_a_text_names_a_topic_or_not(words: str, text: str, is_named: bool) -> None:
    """Any case, any white space, either script of Chinese, whole words where there are words."""
    assert Topic(words).is_named_in(text) == is_named
    assert bool(Topic(words).stretches(text)) == is_named


def test_ranges_are_whole_sentences_in_bytes() -> None:
    """Each sentence that names the topic is returned in UTF-8 bytes, adjacent ones merged."""
    text = "Ann sails. 小雯说她喜欢茶。Clara builds boats! 小雯也来了。小雯走了。The end."
    raw = text.encode()
    found = [raw[begin:end].decode() for begin, end in Topic("小雯").stretches(text)]
    assert found == ["小雯说她喜欢茶。", "小雯也来了。小雯走了。"]
    assert Topic("nobody").stretches(text) == []
    parted = "It rains. The red\u200bboat sails. Red boaters do. The red boat, and a r\u200bed boat."
    raw = parted.encode()
    found = [raw[begin:end].decode() for begin, end in Topic("red boat").stretches(parted)]
    assert found == ["The red\u200bboat sails. ", "The red boat, and a r\u200bed boat."]


def test_ranges_refer_to_the_original_bytes() -> None:
    """Bounds refer to the original bytes, in every composition, and with invisible characters."""
    for named in ("Cafe\u0301 Nero is ne\u200bw. ", unicodedata.normalize("NFD", "카페는 café Nero다. ")):
        text = f"A\u0301nna\u200b sails. {named}ﬁnis, she said."
        raw = text.encode()
        found = [raw[begin:end].decode() for begin, end in Topic("café nero").stretches(text)]
        assert found == [named]


def test_a_topic_has_words() -> None:
    """A topic of white space or punctuation is rejected."""
    for nothing in (" \t", "\u200b", " \u200b\u00ad ", ".", "……", "“ ”"):
        with pytest.raises(ValueError, match="words"):
            Topic(nothing)
