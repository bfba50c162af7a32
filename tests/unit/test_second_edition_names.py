"""The second edition's oracle: keys, names, labels and relation names (memory model 1, 4b)."""

from __future__ import annotations

import pytest

from tests.support.second_edition.digestion import label_of
from tests.support.second_edition.histories import agent, say
from tests.support.second_edition.names import is_name, names_key, normalise
from tests.support.second_edition.records import Message
from tests.support.second_edition.relations import memory_entity_rule, name_of_answer, relation_key


@pytest.mark.parametrize(
    ("said", "key"),
    [
        ("Cats", "cat"),
        ("stories", "story"),
        ("ties", "tie"),  # four letters: not ies → y
        ("glass", "glass"),
        ("campus", "campus"),
        ("thesis", "thesis"),
        ("gas", "gas"),  # three letters
        ("the Big Dogs", "the big dog"),
        ("Ann's", "ann"),
        ("Ann’s", "ann"),
        (" “Ann's” ", "ann"),
        ("Windows 10", "window 10"),
        ("《三体》", "三体"),
        ("ＪＷＴ方案", "jwt方案"),
        ("JWTs方案", "jwts方案"),  # no plural where there is Han
        ("New \n York", "new york"),
        ("Straße", "strasse"),
        ("...", ""),
    ],
)
def test_key(said: str, key: str) -> None:
    """A key is the name normalised as section 1 lists it, and the key of a key is the key."""
    assert normalise(said) == key
    assert normalise(key) == key


@pytest.mark.parametrize(
    ("keyword", "expected"),
    [
        ("花生", True),
        ("茶", False),
        ("JWT", True),
        ("AI", True),
        ("5G", True),
        ("Al", False),  # two letters, not all capitals
        ("A", False),
        ("x" * 30, True),
        ("x" * 31, False),
        ("我们", False),
        ("They", False),
        ("this", False),
        ("用户", False),
        ("Assistant", False),
        ("2024", False),
        ("3,141.59", False),
        ("12月15日", True),
        ("5000万", True),
        ("[email]", False),
        ("[email:3f0c9a5be1d27744]", False),
        ("email", True),
        ("", False),
    ],
)
def test_name(keyword: str, expected: bool) -> None:
    """Only what section 1 calls a name makes an entity."""
    assert is_name(keyword) is expected


def test_naming() -> None:
    """A keyword names a key that it equals or occurs in: Han as a substring, others as whole words (6)."""
    assert names_key("项目", "大项目组")
    assert names_key("Trees", "apple tree")
    assert not names_key("apple", "pineapple")
    assert not names_key("apple", "apple2 tree")
    assert names_key("apple", "apple2 apple")
    assert names_key("jwt", "jwt方案")
    assert not names_key("？", "jwt")


@pytest.mark.parametrize(
    ("prefix", "own", "is_mixed", "label"),
    [
        ("auto", [Message("user", "hi", "Ann")], False, "Ann: "),
        ("auto", [Message("user", "hi")], False, ""),
        ("auto", [Message("user", "hi")], True, "user: "),
        ("auto", [Message("assistant", "你好")], True, "助手："),
        ("auto", [Message("system", "你好")], True, "系统："),
        ("always", [Message("user", "你好")], False, "用户："),
        ("always", [Message("user", "hi", "Ann")], False, "Ann: "),
        ("never", [Message("user", "hi", "Ann")], True, ""),
        ("auto", [Message("user", "hi", "Ann"), Message("user", "ho", "Bob")], True, ""),
        ("auto", [Message("user", "hi"), Message("assistant", "ho")], True, ""),
        ("auto", [Message("user", "hi", "Ann"), Message("user", "ho", "Ann")], True, "Ann: "),
    ],
)
def test_label(prefix: str, own: list[Message], is_mixed: bool, label: str) -> None:
    """The label names the speaker or, where roles mix, the role; it is empty where messages differ (1)."""
    assert label_of(own, is_mixed, prefix) == label


@pytest.mark.parametrize(
    ("content", "keyword", "is_first", "relation"),
    [
        ("项目的进度很慢", "项目", False, "属于"),
        ("Ann's car broke down", "Ann", True, "属于"),
        ("这辆车属于张伟", "张伟", True, "属于"),
        ("Bob is a member of the Rowing Club", "Rowing Club", True, "属于"),
        ("These are parts of an Engine", "Engine", True, "属于"),
        ("我们讨论了登录模块", "登录模块", True, "讨论"),
        ("They were discussing Berlin", "Berlin", True, "讨论"),
        ("They talked over dinner in Berlin", "Berlin", True, "关于"),
        ("Clara plays the cello", "cello", False, "提到"),
        ("Clara plays the cello", "Clara", True, "关于"),
        ("决定采用 JWT方案", "JWT方案", False, "涉及"),
        ("最后改用PostgreSQL", "PostgreSQL", False, "涉及"),
        ("She needed an Umbrella", "Umbrella", False, "涉及"),
        ("He works with Priya", "Priya", False, "涉及"),
        ("a Priya, later with Priya", "Priya", False, "提到"),  # the first occurrence decides
        ("nothing of the kind", "Berlin", False, "提到"),
        ("pineapples need apple", "apple", False, "涉及"),
    ],
)
def test_rule_of_memory_and_entity(content: str, keyword: str, is_first: bool, relation: str) -> None:
    """The first rule of 4b that fits names the relation."""
    assert memory_entity_rule(content, keyword, is_first) == relation


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        ("讨论", "discusses"),
        (" About ", "about"),
        ("cause", "cause"),
        ("work place", "work place"),
        ("原因", "原因"),
        ("四个汉字", "四个汉字"),
        ("五个汉字呢", None),
        ("too many words", None),
        ("", None),
        ("之后", None),
        ("next", None),
        ("cause 1", None),
        ("because of!", None),
    ],
)
def test_answer_of_the_model(answer: str, name: str | None) -> None:
    """A model names a relation by one of the five or a short noun; else the rule does (4b)."""
    assert name_of_answer(answer, "en") == name


def test_equal_relations() -> None:
    """Chinese and English names of one relation are equal, in any letter case (6)."""
    pairs = "属于/belongs to 关于/about 涉及/involves 讨论/discusses 提到/mentions 下文/next 上文/previous"
    for pair in [*pairs.replace("belongs to", "belongs_to").split(), "之后/after", "之前/before"]:
        chinese, english = pair.replace("_", " ").split("/")
        assert relation_key(chinese) == relation_key(english.upper())
    assert relation_key("Straße") == relation_key("STRASSE") != relation_key("street")


def test_relations_between_memories() -> None:
    """Between memories the entities in common choose the name; none gives 之后 and 之前 (4b)."""
    memory = agent()
    say(memory, ("我喜欢花生", ["花生", "零食"]))
    say(memory, ("花生涨价了", ["花生", "价格"]))  # in common, and the first keyword of either
    say(memory, ("市场里价格高，零食也贵", ["市场", "零食"]))  # in common, the first keyword of neither
    say(memory, ("下雨了", ["天气"]))
    names = {(s, t): r for s, t, r in memory.links if s in memory.memories and t in memory.memories}
    first, second, third, fourth = sorted(memory.memories)
    assert names[first, second] == names[second, first] == "关于"
    assert names[first, third] == names[third, first] == "涉及"
    assert (names[third, fourth], names[fourth, third]) == ("之后", "之前")


def test_model_names_a_relation_for_both_directions() -> None:
    """A valid answer names both directions, towards memories and entities; an invalid one leaves it to the rule."""
    memory = agent()
    [first] = say(memory, ("tea is hot", ["tea"]))
    [second] = say(
        memory, ("rain falls", ["rain"]), relate=lambda _, other: "cause" if other == first else "??"
    )
    rain = memory.entity("rain")
    assert {(first, second, "cause"), (second, first, "cause")} <= set(memory.links)
    assert {(second, rain, "about"), (rain, second, "about")} <= set(memory.links)
