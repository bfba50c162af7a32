"""Small talk is dropped before content, and kept if there is nothing else."""

from __future__ import annotations

import pytest

from ebbtide.language.builtin.phrasing import phrase
from ebbtide.language.builtin.shortening import shorten
from ebbtide.language.builtin.small_talk import is_courtesy, is_filler, is_small_talk
from ebbtide.language.builtin.tokens import tokenize


@pytest.mark.parametrize(
    "text",
    [
        "Hey Ingrid!",
        "Thanks so much, Ingrid.",
        "That sounds amazing!",
        "Sorry to hear that, Ravi.",
        "I totally agree.",
        "What do you think about it?",
        "你好，陆小曼。",
        "抱歉，张志强。",
        "哦，我明白了。",
        "谢谢你的推荐！",
        "听起来很不错啊。",
        "不客气，加油！",
    ],
)
def test_small_talk_is_recognised(text: str) -> None:
    """Greetings, thanks, apologies, praise and assent are small talk, including the addressed name."""
    assert is_small_talk(tokenize(text))


@pytest.mark.parametrize(
    "text",
    [
        "Ingrid sold the orchard.",
        "I feel exhausted.",
        "I won't see you.",
        "Thanks for the 40 euros.",
        "我失业了。",
        "我不能去。",
        "陆小曼搬走了。",
    ],
)
def test_statements_are_not_small_talk(text: str) -> None:
    """A word of content, a number or a negation makes a statement."""
    assert not is_small_talk(tokenize(text))


@pytest.mark.parametrize(
    ("text", "target", "gone", "kept"),
    [
        (
            "Wow, Ravi! Sounds awesome! We rowed across the fjord in a rented canoe before dawn.",
            60,
            "Wow",
            "rowed",
        ),
        ("Thanks for understanding. I only want to teach children to read.", 45, "Thanks", "teach children"),
        ("That's a good idea! I will sell the tandem on Saturday. Thanks, Ingrid!", 40, "idea", "tandem"),
        ("I moved to Porto in May. Have you ever been there?", 30, "Have you", "Porto"),
        ("你好，陆小曼。我在旧书摊上买到一本民国的菜谱。", 18, "你好", "菜谱"),
        ("哦，我明白了。我爸爸在码头修了三十年的船。", 16, "明白", "修了三十年"),
        ("我养了两只鹦鹉。你看过吗？", 9, "看过", "鹦鹉"),
        ("太好了！恭喜你！我通过了律师资格考试。", 13, "恭喜", "律师"),
    ],
)
def test_content_outlives_small_talk(text: str, target: int, gone: str, kept: str) -> None:
    """Small talk is dropped first, wherever it occurs."""
    result = shorten(text, target)
    assert gone not in result
    assert kept in result


@pytest.mark.parametrize(
    ("text", "target"),
    [("Thanks, Ingrid! Sounds great. See you soon!", 30), ("谢谢你！真的太感谢了！再见！", 8)],
)
def test_small_talk_stays_if_there_is_nothing_else(text: str, target: int) -> None:
    """A text of small talk only is not empty after shortening."""
    assert len(shorten(text, target)) >= 4


def test_a_phrase_contains_the_topic() -> None:
    """A phrase contains neither the greeting nor the addressed name."""
    assert phrase("哦，我明白了。你打算去敦煌看壁画。") == "你打算去敦煌看壁画"
    sold = phrase("Congrats on selling your orchard, Ingrid! Did the neighbour buy it from you?")
    assert "orchard" in sold
    assert "Ingrid" not in sold
    assert "barn" in phrase("That sounds so nice, Ravi! We finally painted the old barn red last weekend.")


@pytest.mark.parametrize(
    "text",
    [
        "好的，谢谢你！",
        "You're right, my mistake, never mind.",
        "那今天先这样吧，晚安，明天见！",
        "Sounds good",
        "好的",
        "That's great to hear",
        "I agree with you.",
        "They look great!",
        "Not at all",
        "她太厉害了",
    ],
)
def test_a_courtesy_makes_no_memory(text: str) -> None:
    """Courtesy, praise and assent are filler, whether or not questions are remembered."""
    assert is_courtesy(text)
    assert is_filler(text, remember_questions=True)


@pytest.mark.parametrize("text", ["Do you still remember Sigrid?", "航班改动超过四个小时能退票吗？"])
def test_a_pure_question_makes_no_memory_by_default(text: str) -> None:
    """One sentence that asks is filler unless questions are remembered."""
    assert is_filler(text)
    assert not is_filler(text, remember_questions=True)


@pytest.mark.parametrize(
    "text",
    [
        "我对花生过敏。",
        "I moved to Porto. Have you been there?",
        "谢谢，我周五到北京。",
        "She said yes.",
        "We did it.",
        "Everybody looks elsewhere now.",
        "Not any more.",
        "他同意了。",
    ],
)
def test_a_statement_is_no_filler(text: str) -> None:
    """A statement makes a memory, also next to a question or a courtesy."""
    assert not is_filler(text)
