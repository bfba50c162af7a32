"""Segmentation of sentences written for the purpose. Invariants for every text are in test_invariants.py."""

from __future__ import annotations

import time

import pytest

from ebbtide.language.builtin.segmentation import segment
from ebbtide.language.builtin.sentences import sentence_spans
from ebbtide.language.port import Utterance


def cut(text: str, max_chars: int = 200, prefix: str = "") -> list[str]:
    return [s.text for s in segment([Utterance("user", "", text, prefix)], max_chars)]


def sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text)]


@pytest.mark.parametrize(
    "text",
    [
        "Dr. Okafor charges $3.5 for the kit, e.g. the U.S. model.",
        "Open config.yaml at https://docs.example.org/a.b?c=1 before v1.2.3 ships.",
        "Write to jo.bloggs@example.co.uk or call ext. 12.",
        "他说：“好的。没问题。”",
        "我觉得……还是算了吧。",
        "圆周率是3.1415，不是3.2。",
    ],
)
def test_stops_inside_words_and_quotes_end_nothing(text: str) -> None:
    """Decimals, abbreviations, addresses, file names, versions and short quotations are not split."""
    assert sentences(text) == [text]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It rained. We stayed in.", ["It rained.", "We stayed in."]),
        ("Really?! Yes!!! Go.", ["Really?!", "Yes!!!", "Go."]),
        ("我到家了。你呢？？快说！", ["我到家了。", "你呢？？", "快说！"]),
        ("昨日は雨だった。今日は晴れ。", ["昨日は雨だった。", "今日は晴れ。"]),
        ("Он ушёл. Она осталась.", ["Он ушёл.", "Она осталась."]),
        ("هل وصلت؟ نعم وصلت.", ["هل وصلت؟", "نعم وصلت."]),
        ("I left at 5 p.m. The shop was shut.", ["I left at 5 p.m.", "The shop was shut."]),
        ("走了.明天见！", ["走了.", "明天见！"]),
    ],
)
def test_sentences_end_where_a_reader_stops(text: str, expected: list[str]) -> None:
    """The marks of each script end sentences, alone or repeated."""
    assert sentences(text) == expected


def test_short_sentences_join_and_long_thoughts_part() -> None:
    """A greeting is a segment of its own, as it makes no memory; two long sentences are two segments."""
    text = (
        "Hi Noor! My sister opened a small bakery in Porto last spring and sells rye bread there. "
        "On a different note, the boiler in our flat broke again and the plumber cannot come "
        "until Friday."
    )
    greeting, first, second = cut(text)
    assert greeting == "Hi Noor!"
    assert first.startswith("My sister")
    assert first.endswith("rye bread there.")
    assert second.startswith("On a different note")


def test_chinese_short_sentences_join() -> None:
    """A few short Chinese sentences of one message are one segment."""
    assert cut("今天好冷。我穿了羽绒服。") == ["今天好冷。我穿了羽绒服。"]


def test_never_across_messages() -> None:
    """Two messages never share a segment, however short they are."""
    found = segment([Utterance("user", "", "好。"), Utterance("user", "", "行。")], 200)
    assert [(s.text, s.messages, s.start) for s in found] == [("好。", (0,), 0), ("行。", (1,), 0)]


@pytest.mark.parametrize("text", ["", "  \n ", "👍👍", "……！！", "---", "\u0301", "\x00"])
def test_nothing_to_say_gives_nothing(text: str) -> None:
    """A message without letter, digit or ideograph has no segment."""
    assert cut(text) == []


def test_emoji_stay_with_their_sentence() -> None:
    """A fragment without words joins the neighbouring sentence."""
    assert cut("项目上线了！🎉🎉") == ["项目上线了！🎉🎉"]
    assert cut("🎉 We won the regional final!") == ["🎉 We won the regional final!"]


def test_shopping_list_is_one_thought() -> None:
    """Lines of one or two words stay together under their heading."""
    text = "购物清单：\n- 牛奶\n- 鸡蛋\n- 全麦面包"
    assert cut(text) == [text]


def test_list_of_sentences_parts_at_items() -> None:
    """Items with full sentences are separate segments."""
    text = (
        "1. Book the ferry to Gozo before the end of June because it fills up quickly.\n"
        "2. Renew both passports at the town hall, which is closed on Wednesdays."
    )
    assert len(cut(text)) == 2


def test_long_sentence_is_cut_at_a_pause() -> None:
    """An over-long sentence is cut after a comma, into pieces of similar length."""
    text = "我们先去了海边的老灯塔，" * 12 + "最后回家。"
    pieces = cut(text, 60)
    assert all(len(piece) <= 60 for piece in pieces)
    assert all(piece.endswith(("，", "。")) for piece in pieces)


def test_cut_between_words_where_there_is_no_pause() -> None:
    """English without punctuation is cut between words."""
    text = "alpha beta gamma delta " * 20
    assert {word for piece in cut(text, 50) for word in piece.split()} == {
        "alpha",
        "beta",
        "gamma",
        "delta",
    }


def test_visible_characters_are_not_torn() -> None:
    """A family emoji or an accented letter is never split."""
    family = "👨‍👩‍👧"
    pieces = cut("a" + family * 60, 40)
    assert all(len(piece.replace("a", "", 1)) % len(family) == 0 for piece in pieces)
    assert all(piece[0] != "\u0301" for piece in cut("e\u0301" * 200, 41))


def test_a_long_label_leaves_room_for_the_text() -> None:
    """At least twenty characters of text fit after any label."""
    assert max(map(len, cut("word " * 50, 30, prefix="x" * 28))) > 10


@pytest.mark.parametrize(
    "text",
    [
        "x" * 1_000_000,
        "\n" * 100_000 + "x",
        "!" * 100_000 + "a",
        "(" * 100_000 + "a",
        "a. " * 40_000,
        "a@" * 50_000,
        "`" * 100_000 + "b",
        "\u0301" * 100_000 + "a",
        "如果" * 50_000,
        "The tram was late again, as it often is. " * 2_500,
    ],
    ids=lambda text: repr(text[:6]),
)
def test_hostile_text_is_linear(text: str) -> None:
    """A text of a megabyte is segmented in linear time."""
    began = time.process_time()
    cut(text)
    assert time.process_time() - began < 1.5


@pytest.mark.parametrize(
    "segments",
    [
        ["我今天去了公园，看到了很多花。", "然后去了图书馆。"],
        ["The deploy failed at 14:05.", "By the way, lunch with the Madrid team is on Wednesday."],
        ["妈妈5月11号在仁爱医院做白内障手术。", "你能替她买几天菜吗？"],
        ["谢谢，帮大忙了！", "我们三月起房租涨到四千三。"],
    ],
)
def test_another_topic_a_question_and_a_courtesy_begin_a_segment(segments: list[str]) -> None:
    """A turn of topic, a question and a courtesy are not joined to a statement."""
    gap = " " if segments[0].isascii() else ""
    assert cut(gap.join(segments)) == segments
