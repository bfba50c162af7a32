"""The subject of a question: topics, persons, times and reasons."""

from __future__ import annotations

import pytest

from ebbtide.memory.slot_names import slot_of
from ebbtide.memory.topic_words import (
    are_same_relative,
    asked,
    asks_for_everything,
    asks_for_the_past,
    asks_only_for_the_past,
    asks_why,
    names,
    topics_of_value,
)


@pytest.mark.parametrize("question", ["Am I afraid of snakes?", "What did I read about birds?"])
def test_a_question_about_animals_need_not_be_about_pets(question: str) -> None:
    """Only a question for animals that are kept, or for their names or ages, is on pets."""
    assert asked(question).topics == {}


@pytest.mark.parametrize(
    ("question", "topic"),
    [
        ("Where do I live now?", "residence"),
        ("我现在住在哪里？", "residence"),
        ("What is my job these days?", "occupation"),
        ("Where do I work?", "employer"),
        ("我在哪家医院上班？", "employer"),
        ("我在跟谁谈恋爱？", "partner"),
        ("What do I still have to do?", "task"),
        ("How do I get around?", "vehicle"),
        ("Who am I?", "name"),
        ("你知道我是谁吗？", "name"),
        ("Do I have any dogs?", "pet"),
        ("How old is my hamster?", "pet"),
        ("我养乌龟吗？", "pet"),
    ],
)
def test_a_question_names_a_topic(question: str, topic: str) -> None:
    """The topic that a reader would name has the highest weight."""
    found = asked(question).topics
    assert found[topic] == max(found.values()), found


@pytest.mark.parametrize(
    ("question", "topic"),
    [
        *(("Where do I live?", "residence"), ("What am I allergic to?", "allergy"), ("How old am I?", "age")),
        *(
            ("My phone number?", "phone"),
            ("What is my current job?", "occupation"),
            ("我对什么过敏？", "allergy"),
        ),
        *(("我多大了？", "age"), ("我的电话是多少？", "phone"), ("Who do I work for?", "employer")),
    ],
)
def test_a_question_asks_for_a_topic_of_the_user(question: str, topic: str) -> None:
    """A topic next to "I" or "my" is one of the user alone."""
    assert topic in asked(question).own_topics


@pytest.mark.parametrize(
    "question",
    [
        *("Who lives where I live?", "Do I have a friend who lives in Porto?", "Do I know a vegetarian?"),
        *(
            "What is the phone number of the hotel I booked?",
            "What is my gym's address?",
            "Where do we live?",
        ),
        *("Where does my sister live?", "我同事住在哪里？", "我们住在哪里？", "我去的那家餐厅电话是多少？"),
        *("What are my tasks?", "我认识谁住在巴黎？", "Does anyone I know live in Paris?"),
    ],
)
def test_a_question_may_be_about_others(question: str) -> None:
    """A question that names or may mean other persons or things asks for no topic of the user alone."""
    assert asked(question).own_topics == frozenset()


def test_words_within_longer_words_do_not_count() -> None:
    """The characters of a longer word name no topic of their own, and Latin words count as whole words."""
    assert "likes" not in asked("我在跟谁谈恋爱？").topics
    assert asked("Who painted the caramel workshop?").topics == {}
    assert "age" not in asked("How old is my dog?").topics


@pytest.mark.parametrize(
    ("question", "relatives", "is_in_first_person"),
    [
        ("Where does my brother work?", {"brother"}, False),
        ("我哥什么时候结的婚？", {"elder_brother"}, False),
        ("老伴哪天过生日？", {"partner"}, False),
        ("What did I give my son?", {"son"}, True),
        ("Where is the son of my boss?", set(), True),
        ("我父母做什么工作？", {"parents"}, False),
        ("Where is my daughter-in-law from?", {"daughter_in_law"}, False),
        ("When is my granny's birthday?", {"grandmother"}, False),
        ("大哥，王太太住在哪里？", set(), False),
    ],
)
def test_a_question_names_relatives(question: str, relatives: set[str], is_in_first_person: bool) -> None:
    """Only relatives of the user are named, and their owner is no first person of its own."""
    found = asked(question)
    assert found.relatives == relatives
    assert found.is_in_first_person == is_in_first_person


@pytest.mark.parametrize(
    ("question", "person"),
    [
        ("我闺蜜住在哪里？", "friend"),
        ("我室友是做什么的？", "roommate"),
        ("Where does my flatmate work?", "roommate"),
    ],
)
def test_a_question_names_persons(question: str, person: str) -> None:
    """Words for other persons of the user mean the same relation in both languages, which is a topic too."""
    found = asked(question)
    assert found.persons == {person} and found.is_about_others
    assert slot_of(person).range == "person"


def test_relatives_are_stated_in_other_words() -> None:
    """An elder sister is a sister in both languages, and no brother."""
    assert are_same_relative("姐姐", "sister")
    assert are_same_relative("sister", "elder_sister")
    assert are_same_relative("mother", "parents")
    assert not are_same_relative("sister", "brother")
    assert not are_same_relative("Lisbon", "sister")


def test_times_reasons_values_and_names() -> None:
    """Questions for the past and for reasons are known in both languages; values name topics; names are whole words."""
    assert asks_for_the_past("Where did I live before?") and asks_for_the_past("我以前住哪里？")
    assert not asks_for_the_past("Where do I live now?")
    for question in (
        "Where did I live before?",
        "我以前住哪里？",
        "Where did I use to work?",
        "搬到这里之前我住在哪里？",
    ):
        assert asks_only_for_the_past(question)
    for question in (
        "Where did I leave my keys?",
        "What was my first job?",
        "What should I do before my trip?",
    ):
        assert not asks_only_for_the_past(question)
    assert asks_why("Why did I move?") and asks_why("我为什么搬家？") and not asks_why("Who is Ida?")
    assert "vehicle" in topics_of_value("a cargo bike") and "vehicle" in topics_of_value("电动三轮车")
    assert names("Ida", asked("Who is Ida?")) and not names("Ida", asked("Who is Idalia?"))


@pytest.mark.parametrize(
    "question",
    [
        "What do you know about me?",
        "what have you learned about me so far",
        "Tell me everything you know about me.",
        "What is known about the user?",
        "Who am I?",
        "你知道我什么？",
        "你对我了解多少？",
        "你都记得我哪些事？",
        "關於我，你知道些什麼？",
        "你对用户有什么了解？",
    ],
)
def test_a_question_asks_for_everything_about_the_user(question: str) -> None:
    """A question without a topic about what is known of the user is one for all of it."""
    assert asks_for_everything(question)


@pytest.mark.parametrize(
    "question",
    [
        "What do you know about my sister?",
        "What do you know about me and tea?",
        "What did Anna know about me?",
        "Where do I live?",
        "你知道我喜欢什么？",
        "你知道我的生日吗？",
        "你记得我买了什么吗？",
        "我知道什么？",
        "你知道我们什么时候出发吗？",
    ],
)
def test_a_question_with_a_topic_does_not_ask_for_everything(question: str) -> None:
    """A topic, another person or another speaker limits a question."""
    assert not asks_for_everything(question)
