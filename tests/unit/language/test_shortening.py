"""A shortened text keeps the main statements of the text."""

from __future__ import annotations

import pytest

from benchmarks.labels import read_shortenings
from ebbtide.language.builtin import english_shortening
from ebbtide.language.builtin.model import process
from ebbtide.language.builtin.shortening import shorten


def test_a_text_that_fits_comes_back_unchanged() -> None:
    """A text that fits is returned unchanged."""
    assert shorten("  a b ", 6) == "  a b "
    assert shorten("我喜欢你。", 5) == "我喜欢你。"


def test_no_room_gives_nothing() -> None:
    """A target of 0 yields an empty text."""
    assert shorten("我喜欢你。", 0) == ""
    assert shorten("我喜欢你。", -3) == ""


@pytest.mark.parametrize(
    ("text", "target", "expected"),
    [
        ("我不喜欢吃香菜，也不能吃海鲜，因为对虾过敏。", 17, "我不喜欢吃香菜，也不能吃海鲜"),
        ("我爷爷今年81岁了。", 6, "爷爷81岁了"),
        ("我妹妹的婚礼是在9月12号。", 10, "妹妹的婚礼9月12号"),
        ("我想去看电影，但是工作太忙了没时间。", 12, "工作太忙了没时间。"),
        (
            "My daughter Ella is allergic to peanuts, so please never suggest recipes with peanut butter.",
            46,
            "My daughter Ella is allergic to peanuts",
        ),
        (
            "The payment service throws ERR_CONN_TIMEOUT when Redis restarts; we fixed it by "
            "raising the limit.",
            70,
            "The payment service throws ERR_CONN_TIMEOUT when Redis restarts",
        ),
    ],
)
def test_the_telling_clause_stays(text: str, target: int, expected: str) -> None:
    """Names and numbers are kept, in the words of the text, with a clean end."""
    assert shorten(text, target) == expected


@pytest.mark.parametrize("target", range(1, 45))
def test_a_condition_is_not_lost(target: int) -> None:
    """A conditional order keeps its condition."""
    result = shorten("If the build is red, do not merge the branch.", target)
    assert "merge" not in result or result.startswith("If")


@pytest.mark.parametrize("target", range(1, 60))
def test_a_negation_is_not_lost(target: int) -> None:
    """A negated statement keeps its negation."""
    english = shorten("My neighbour does not eat shellfish at any of the harbour restaurants.", target)
    assert "eat" not in english.split() or "not" in english.split()
    chinese = shorten("医生说外公千万不能吃海鲜和任何辛辣油炸的东西。", target)
    assert "吃" not in chinese or "不能" in chinese


@pytest.mark.parametrize("target", range(5, 40))
def test_ends_are_clean(target: int) -> None:
    """No comma, unpaired quote or conjunction remains at the end."""
    for text in (
        "她说：“明早八点在南门集合，”然后挂了电话，我们只好改签车票，而且多付了两百块。",
        'He said "meet me at the south gate at eight", hung up, and we paid $200 to change the tickets.',
    ):
        result = shorten(text, target)
        assert result
        assert result[-1] not in "，,、；;：:“（("
        assert result.count("“") == result.count("”")
        assert result.count('"') % 2 == 0


def test_key_words_where_no_clause_fits() -> None:
    """A tiny target yields a noun, not a truncated clause."""
    assert shorten("我们周末在莫干山的民宿里住了两个晚上。", 4) in {"莫干山", "民宿"}
    assert shorten("The regression in the billing dashboard took hours.", 18) in {
        "billing dashboard",
        "regression",
    }


def test_a_generous_target_is_used() -> None:
    """A target of three quarters is mostly used if the clauses allow it."""
    text = (
        "We took the night train to Vienna, changed at Linz, left one suitcase behind, "
        "found it a day later at the lost property office, and paid eight euros for it."
    )
    assert len(shorten(text, 120)) > 70


def test_process_takes_words_from_what_is_left() -> None:
    """Keywords come from the shortened content, which fits the target and has a phrase."""
    text = "我在青岛买了一把二手大提琴，卖家是位退休的音乐老师，下周六去取。"
    for target in (None, 30, 20, 10):
        memory = process(text, target)
        assert len(memory.content) <= (target or len(text))
        assert all(word in memory.content for word in memory.keywords)
        assert memory.phrase


GOLDEN_TEXTS = {golden.id: golden.text for golden in read_shortenings() if golden.source == "specification"}


@pytest.mark.parametrize(
    ("number", "half", "quarter"),
    [
        (1, "我们决定采用JWT方案，不再用session了。", "我们决定采用JWT方案"),
        (2, "张伟提到需要支持微信和支付宝第三方登录，优先级没定", "张伟提到支持第三方登录"),
        (3, "她对青霉素过敏，差点休克", "对青霉素过敏"),
        (4, "登录模块的数据库我们从MySQL 5.7迁到了PostgreSQL 15", "数据库迁到了PostgreSQL 15"),
        (5, "我失眠了，今天很困", "我失眠了"),
        (6, "妹妹克拉拉在波尔图拉大提琴", "克拉拉拉大提琴"),
        (7, "我对花生过敏", "花生"),
        (8, "B轮融资要在12月15日之前完成，目标是5000万人民币", "B轮融资12月15日之前完成"),
        (9, "I'm allergic to peanuts", "allergic to peanuts"),
        (10, "My sister Clara plays the cello in Porto", "Clara plays the cello"),
        (11, "we chose PostgreSQL because the team already knows it.", "we chose PostgreSQL"),
        (12, "Anil wants $28 an hour, more than I pay Priya.", "Anil wants $28 an hour"),
        (13, "I chose the Miwe because its warranty is longer.", "I chose the Miwe"),
        (14, "Marcus borrowed $25,000 and never paid it back.", "Marcus borrowed $25,000"),
        (15, "Dana was diagnosed with celiac disease in March", "Dana, celiac disease, March"),
    ],
)
def test_the_examples_of_the_memory_model(number: int, half: str, quarter: str) -> None:
    """The examples keep subject, predicate and object, within half and a quarter of their length."""
    text = GOLDEN_TEXTS[f"golden-{number:02}"]
    assert shorten(text, len(text) // 2) == half
    assert shorten(half, len(text) // 4, text) == quarter


def test_a_name_replaces_the_pronoun_of_its_sentence() -> None:
    """A clause that begins with a pronoun takes the name before it, until both clauses are kept."""
    text = "Anil has worked with me for three years; he wants $28 an hour, which is more than I pay Priya."
    assert shorten(text, 24) == "Anil wants $28 an hour"
    assert "he wants $28" in shorten(text, len(text) - 5)
    chinese = "王芳以前在公司上班，她决定搬到青岛。"
    assert shorten(chinese, 9) == "王芳决定搬到青岛。"


@pytest.mark.parametrize(
    "text",
    [
        "Anil met Priya in May; she decided on the piano for 300 euros.",
        "My sister called Anil; she decided on the piano for 300 euros.",
        "Anil called. She decided on the piano for 300 euros.",
    ],
)
def test_a_pronoun_does_not_take_a_doubtful_name(text: str) -> None:
    """A pronoun keeps its place if two persons are mentioned or the sentence has ended."""
    for target in range(10, len(text)):
        result = shorten(text, target)
        assert "Anil decided" not in result
        assert "Priya decided" not in result


@pytest.mark.parametrize(
    ("text", "target", "expected"),
    [
        (
            "I'm keeping the weight off, by the way. Eighty-nine this morning.",
            32,
            "I'm keeping the weight off",
        ),
        ("Farrukh's only here the one week. 7th to 11th we've no one", 29, "7th to 11th we've no one"),
        ("she's on short time at the plant since may. i've my own money.", 32, "she's on short time"),
        ("我六月二号就上冷链了 跟冉小子搭班 他倒车不如我 我不说", 14, "我六月二号就上冷链了"),
        ("这只鸡又没有猪那么油，一次吃两碗。", 8, "鸡又没有猪那么油"),
        ("跟他说我给他申请，一个月二百。别说是我说的，就说店里", 13, "别说是我说的，就说店里"),
    ],
)
def test_a_phrase_is_not_torn_apart(text: str, target: int, expected: str) -> None:
    """Particles, ranges, dates in words, comparisons and negations stay with their verb."""
    assert shorten(text, target) == expected


@pytest.mark.parametrize(
    ("text", "target", "expected"),
    [
        ("The bus comes at six pm on Fridays.", 24, "The bus comes at six pm"),
        (
            "Every Monday, we meet Dr. Okafor at the clinic in Leeds.",
            30,
            "we meet Dr. Okafor in Leeds.",
        ),
    ],
)
def test_a_time_in_words_is_read_as_one(text: str, target: int, expected: str) -> None:
    """A time with `pm` belongs to its statement, and a time before the subject can be left out."""
    assert shorten(text, target) == expected


@pytest.mark.parametrize("target", range(3, 36))
def test_a_condition_behind_a_person_is_not_lost(target: int) -> None:
    """A consequence keeps its condition, also if a person precedes the condition."""
    result = shorten("上回坐的是绿皮，这回是高铁，到南站。你要是去北站，我就在南站变成腊肉。", target)
    assert "变成腊肉" not in result or "要是" in result


@pytest.mark.parametrize("target", range(3, 30))
def test_a_clause_takes_the_nearest_subject(target: int) -> None:
    """A clause without its own subject keeps the subject of the clause before it, not an earlier one."""
    result = shorten("董事长过世了，她很难过，所以我弟替她装了铁网，花了四千多。", target)
    assert "花了四千多" not in result or "我弟" in result


def test_a_cut_never_splits_a_word() -> None:
    """A verb loses the phrase after it before the subject is lost. Nothing is cut within a word."""
    text = "The old cat sleeps on it."
    assert shorten(text, 20) == "The old cat sleeps"
    words = set(text.removesuffix(".").split())
    assert all(set(shorten(text, target).split()) <= words for target in range(3, len(text)))
    assert shorten("Grandma landed at the airport, early.", 5) == "Grandma"


@pytest.mark.parametrize("text", ["She was upset about it.", "79, ex chief engineer, deaf in the left ear."])
def test_a_bare_pronoun_or_number_is_no_memory(text: str) -> None:
    """A shortening never consists of one pronoun or one number if a longer piece fits."""
    assert all(shorten(text, target) not in {"She", "it", "79"} for target in range(8, len(text)))


@pytest.mark.parametrize("verb", ["I'm", "I am", "I am severely"])
def test_a_statement_outlives_its_pronoun(verb: str) -> None:
    """`allergic to peanuts` is kept while it fits, with and without a contracted verb."""
    text = f"{verb} allergic to peanuts."
    for target in range(len("allergic to peanuts"), len(text)):
        assert "allergic to peanuts" in shorten(text, target, text)
    assert shorten(text, len("allergic"), text) == "peanuts"


def test_a_leading_time_does_not_outlive_its_statement() -> None:
    """Subject and predicate come before a phrase that only says when."""
    text = "At 3:14 in the morning, the payment service charged a tiny bakery in Porto eleven times."
    assert shorten(text, len(text) - 20) == "the payment service charged a tiny bakery in Porto eleven times."
    assert shorten(text, len(text) // 2) == "the payment service charged a tiny bakery"


@pytest.mark.parametrize(
    ("text", "target", "expected"),
    [
        ("The bakery oven exploded and set off the fire alarm.", 9, "oven"),
        ("We should be kind to Grandmother Rose.", 8, "Rose"),
    ],
)
def test_a_bare_verb_or_half_a_word_never_replaces_a_name(text: str, target: int, expected: str) -> None:
    """Where only one word fits, it is a word of a name."""
    assert shorten(text, target) == expected


@pytest.mark.parametrize(
    ("text", "target", "expected"),
    [
        (
            "There's a vet in Tobermory who's sixty-six and whose knees have gone, and he wants to sell.",
            30,
            "There's a vet in Tobermory",
        ),
        ("I want to marry that man from the ferry.", 30, "I want to marry that man"),
        ("I couldn't have done it without them, honestly.", 37, "I couldn't have done it without them"),
        ("tile is my brother in law Chuy he bills himself.", 20, "tile, law Chuy"),
        ("My break is over. They have me on the fryer.", 33, "My break is over."),
        ("I made a leek and cawl supper in March.", 30, "I made a leek and cawl supper"),
        ("I told you about that pill.", 22, "that pill"),
        ("Tell me about the house, tell me about the job.", 30, "Tell me about the house"),
    ],
)
def test_a_statement_keeps_what_its_verb_needs(text: str, target: int, expected: str) -> None:
    """A statement keeps its object, complement and particle, and `without`; otherwise a list remains."""
    assert shorten(text, target) == expected


@pytest.mark.parametrize(
    ("text", "target", "lost"),
    [
        ("The bank lady rang. They sanctioned 68, not 71. Because of your car loan.", 49, "Because"),
        ("The starter's dead. Somebody put the heater on. It's forty degrees in there.", 50, "It's"),
        (
            "He's single. Surgery is on the 23rd of April. Four days in, six weeks no lifting.",
            60,
            "Four days",
        ),
        (
            "And money. If we take 94, and bank gives eighty per cent, we need nineteen. I made a sheet.",
            60,
            "If",
        ),
    ],
)
def test_a_sentence_is_not_joined_with_another_than_its_own(text: str, target: int, lost: str) -> None:
    """A sentence that refers to the one before is dropped with it, and a condition with its consequence."""
    assert lost not in shorten(text, target)


@pytest.mark.parametrize(
    ("text", "target", "expected"),
    [
        ("Tuesdays and Fridays Philomena Durkan and Mrs Probert", 30, "Fridays, Philomena Durkan"),
        ("We went to see old Mrs Probert", 6, "Probert"),
        (
            "I love that it teaches me to accept the beauty of imperfections.",
            48,
            "love, beauty of imperfections",
        ),
        ("They saw it in the first week of September.", 27, "first week of September"),
        ("Noted, no coconut for the delicate dutchman", 24, "delicate dutchman"),
        ("He has been gone for twelve to fifteen months of the year", 14, "fifteen months"),
    ],
)
def test_a_list_has_whole_phrases(text: str, target: int, expected: str) -> None:
    """A list has whole names and noun phrases, no title, number or possessive alone, and nothing that was denied."""
    assert shorten(text, target) == expected


def test_a_list_stays_a_list() -> None:
    """Adjacent items of a list are not read as a statement when it is shortened again."""
    text = "They collected 25,000 from every flat, so the terrace and the society are saved."
    present = text
    for target in range(len(text) - 5, 4, -5):
        present = shorten(present, target, text)
        assert "terrace collected" not in present
        assert not {"the", "and", "are"} & {present.split()[-1]}


def test_a_short_text_without_a_noun_stays() -> None:
    """A text of up to 24 characters of which no part says something stays, although it is longer than the target."""
    text = "I'm not crying"
    assert all(shorten(text, target) == text for target in range(5, 11))


def test_verbs_and_adjectives_replace_a_statement_without_a_noun() -> None:
    """Verbs and adjectives that fit make a list if no statement and no noun fits."""
    text = "It was expensive and slow"
    assert [shorten(text, target) for target in (20, 12, 5)] == ["expensive, slow", "expensive", "slow"]


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("and you told me not to tell her", "not to tell her"),
        ("He said never to ask them about it", "never to ask them about it"),
        ("It's not what they thought.", "not what they thought"),
        ("I'm no longer allergic to peanuts.", "no longer allergic to peanuts"),
    ],
)
def test_what_a_negation_denies_is_not_lost(text: str, whole: str) -> None:
    """A short text keeps a negated infinitive and the clause behind a negation to its end."""
    present = text
    for target in range(len(text) - 1, 4, -1):
        present = shorten(present, target, text)
        assert whole in present


@pytest.mark.parametrize("target", range(5, 50))
def test_an_exception_is_not_lost(target: int) -> None:
    """A denied noun keeps its exception."""
    result = shorten("She is Yoruba, she has no fear except of the dark.", target)
    assert "fear" not in result or "no fear except of the dark" in result


@pytest.mark.parametrize(
    ("text", "target", "expected"),
    [
        ("It has my name all over it bc I have none.", 30, "It has my name all over it"),
        (
            "Listen, I wanted to tell you but I can't find you so. Then we left.",
            30,
            "I can't find you. Then we left",
        ),
        ("He was sick in a bin after.", 20, "He was sick in a bin"),
        ("He's wearing a shirt again.", 22, "He's wearing a shirt"),
    ],
)
def test_no_link_or_adverb_dangles_at_the_end(text: str, target: int, expected: str) -> None:
    """A link whose clause is missing and an adverb at the end are dropped before the statement."""
    assert shorten(text, target) == expected


@pytest.mark.parametrize("target", range(5, 45))
def test_an_address_never_replaces_its_question(target: int) -> None:
    """A question is kept without the address before it, not the reverse."""
    assert not shorten("Ate Joy, are you near the lot? Can you video?", target).startswith("Ate Joy?")


@pytest.mark.parametrize(
    ("text", "target", "expected"),
    [
        ("Now the serious part since you have a card soon.", 36, "you have a card soon."),
        ("I was keeping the sweet for the last.", 27, "I was keeping the sweet"),
        ("I'll sit in the small corner and wait for Moss.", 12, "corner, Moss"),
        ("The survey starts again with Moss in the small corner.", 14, "survey, Moss"),
        ("Bring the machine. No arguments.", 24, "Bring the machine."),
        ("doc at the VA says no more attic. or surgery in the fall", 26, "doc, VA, surgery, fall"),
        ("They found Herb & Vi 1971 on the ring.", 18, "Herb & Vi 1971"),
        ("I'm a match for Mak.", 7, "Mak"),
    ],
)
def test_a_list_says_what_the_text_is_about(text: str, target: int, expected: str) -> None:
    """Verbs in -s and -ing, adjectives of a noun and empty words are no items; a clause that fits comes first."""
    assert shorten(text, target) == expected


@pytest.mark.parametrize(
    ("text", "target", "expected"),
    [
        (
            "There's news, sit down. They are selling the boat in Cork.",
            36,
            "They are selling the boat in Cork.",
        ),
        ("Linda called. They're coming for Easter.", 29, "They're coming for Easter."),
        ("There's news. Anna is selling the boat in Cork.", 18, "Anna, boat, Cork"),
    ],
)
def test_news_outlives_its_announcement(text: str, target: int, expected: str) -> None:
    """A statement that only introduces others is dropped before them."""
    assert shorten(text, target) == expected


@pytest.mark.parametrize("target", range(5, 70))
def test_a_denied_fragment_is_no_item(target: int) -> None:
    """A list does not contain the nouns of a fragment that begins with a negation."""
    text = "Not in the blue folder. Only the title for the old pickup and the warranty."
    result = shorten(text, target)
    assert "folder" not in result or result.startswith("Not in")


def test_dropped_intentions_are_found_in_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each statement of a row of dropped intentions is read a few times, not once per statement behind it."""
    statements = 400
    text = "".join(f"I wanted to go {number}, but " for number in range(statements))
    judge, judged = english_shortening.is_dropped_intention, []
    monkeypatch.setattr(
        english_shortening, "is_dropped_intention", lambda *one: judged.append(one) or judge(*one)
    )
    shorten(text, len(text) // 2)
    assert 0 < len(judged) < 5 * statements
