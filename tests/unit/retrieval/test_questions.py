"""Questions are recognised with and without a question mark."""

from __future__ import annotations

import pytest

from ebbtide.retrieval.marks import ONLY_ASKS, marks_of
from ebbtide.retrieval.questions import only_asks, split_questions


@pytest.mark.parametrize(
    "text",
    [
        "What is my rent?",
        "我住在哪里？你还记得吗？",
        'Did she say "yes?"',
        "what's my address again, the form wants it",
        "so how long does the dough rest",
        "how often do I water it",
        "which days are free",
        "is there a bakery nearby",
        "我的新号码多少，我自己都记不住",
        "那个小区在几路来着，叫车要填",
        "查一下去上海要多久",
    ],
)
def test_a_question_is_recognised(text: str) -> None:
    """Promise: a text of which each sentence asks is a question, with or without the mark."""
    assert marks_of(text) & ONLY_ASKS


@pytest.mark.parametrize(
    "text",
    [
        "I moved to Hamburg. Did I tell you?",
        "I moved to Hamburg.",
        "…?",
        "What a day!",
        "What we can do is wait.",
        "How nice!",
        "Do your research",
        "can you send HR my number 07700 900142",
        "没什么",
        "我表弟在杭州工作呢。",
        "你知道吗，我上周搬到了城南的一间小公寓里。",
    ],
)
def test_a_statement_or_a_request_is_no_question(text: str) -> None:
    """Promise: statements, exclamations and requests with content are no questions."""
    assert not marks_of(text) & ONLY_ASKS


def test_questions_are_separated_from_the_rest() -> None:
    """Promise: each sentence is on one side, and punctuation alone on none."""
    asked, said = split_questions("Did I tell you? I moved to Hamburg. …")
    assert (asked, said) == (["Did I tell you? "], ["I moved to Hamburg. "])


ALSO_STATE = """
I am vegan, what should I cook tonight?
我女儿今年5岁了，送什么礼物好呢？
My name is Ann and I live in Oslo, what about you?
I quit my job at Siemens yesterday :( what now?
My mother lives in Accra, how is the weather there?
我妈妈住在西安,那里天气怎么样?
Can you believe it, I won the marathon in Oslo?
Since I moved to Berlin I feel lonely, any tips?
What should I cook, given I am vegan?
I have diabetes - can I eat mango?
我有糖尿病，可以吃芒果吗？
FYI: my flight is on Monday at 9, right?
Tom is allergic to nuts and what can he eat?
Did you know that I moved to Oslo?
Can you note that I am vegan?
Hello, Tom is vegan, ok?
I should know my way by now?
我下个月和林月去日本\\n有什么推荐吗
我不知道他叫什么名字
Is it ok if I bring my dog Bo?
Can I bring my dog Bo?
Would my younger sister Clara like it?
What should I cook if my guests are vegan?
我带我的狗小白去可以吗？
如果我周五带儿子来，可以吗？
What is my name and my birthday is in May?
Where is my lead, my dog Bo?
What is my name? My dog died.
我的生日是几号？我的脚疼。
thanks
Some people are nice
"""

ONLY_ASK = """
What is my rent?
我住在哪里？你还记得吗？
我叫什么名字
我最喜欢什么颜色
我的生日是几月几号？
我该不该吃药？
请问我的房东是谁？
tell me what you know about me
Hello, what is my name?
When is the train, at 9:30?
Where do I work and where do I live?
Okay, so what is my name?
Do you know my name?
What is my name and my birthday?
What's my address, my phone number and my blood type?
Do you remember my name? My birthday?
我的名字是什么，我的生日？
我的名字和生日是什么？
Do you know if I have a flight tomorrow?
What if I lose my key?
Can I bring my dog?
Can I pay with my old Visa Card?
Does my doctor know?
这样可以吗？
我可以吃什么？哪天去可以吗？
…?
"""


def test_only_a_message_of_which_every_clause_asks_only_asks() -> None:
    """A message is kept if one of its clauses states something, and left out if each of them asks."""
    lines = {
        expected: [line.replace("\\n", "\n") for line in given.strip().splitlines()]
        for expected, given in ((False, ALSO_STATE), (True, ONLY_ASK))
    }
    assert [line for line in lines[False] if only_asks(line)] == []
    assert [line for line in lines[True] if not only_asks(line)] == []
