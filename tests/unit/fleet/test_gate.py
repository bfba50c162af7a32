"""The acceptance gate: each lie of a model is refused for its reason, and what the words support passes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ebbtide.fleet.ingest.gate import REASONS, Gate, Said
from ebbtide.language.port import ProposedStatement

HOME = ProposedStatement(0, "I live in Lisbon", "I", "fact", "residence", "Lisbon")


def judged(text: str, *proposed: ProposedStatement, said: Said | None = None, **options: object) -> Gate:
    """Return the gate after it judged statements about a message of a user."""
    gate = Gate(**options)  # type: ignore[arg-type]
    gate.judge(said or Said("user", "", text), proposed)
    return gate


def outcome(text: str, **fields: object) -> str:
    """Return the reason why a statement about a message is refused; empty if it passes."""
    gate = judged(text, replace(HOME, **fields))  # type: ignore[arg-type]
    assert len(gate.accepted) + gate.rejected.total() == 1
    return next(iter(gate.rejected), "")


TRUE = [
    ("I live in Lisbon, near the river.", {}),
    ("i’ve lived here since May: I   live\nin LISBON now", {"quote": "I live in Lisbon"}),
    ("No, I live in Lisbon.", {}),
    (
        "Well! I'm allergic to penicillin.",
        {"quote": "I'm allergic to penicillin", "topic": "allergy", "object": "penicillin"},
    ),
    ("I do not live in Lisbon.", {"quote": "I do not live in Lisbon", "negated": True}),
    ("I no longer live in Lisbon", {"quote": "no longer live in Lisbon", "negated": True}),
    (
        "I hate cilantro.",
        {"quote": "I hate cilantro", "topic": "likes", "object": "cilantro", "negated": True},
    ),
    ("My birthday is 7 May.", {"quote": "My birthday is 7 May", "topic": "birthday", "object": "7 May"}),
    (
        "My sister is called Clara.",
        {"quote": "My sister is called Clara", "topic": "sister", "object": "Clara", "kind": "relation"},
    ),
    (
        "My sister Clara lives in Porto.",
        {"quote": "My sister Clara lives in Porto", "subject": "Clara", "object": "Porto"},
    ),
    (
        "My sister lives in Porto.",
        {"quote": "My sister lives in Porto", "subject": "my sister", "object": "Porto"},
    ),
    (
        "Clara is here. She works as a vet.",
        {"quote": "She works as a vet", "subject": "Clara", "topic": "occupation", "object": "vet"},
    ),
    (
        "Please remind me to plan the trip.",
        {
            "quote": "remind me to plan the trip",
            "kind": "task",
            "topic": "reminder",
            "object": "plan the trip",
        },
    ),
    (
        "我住在青岛，离公司很近。",
        {"quote": "我住在青岛", "subject": "我", "topic": "居住地", "object": "青岛"},
    ),
    (
        "我五月离职了，搬到了青岛。",
        {"quote": "搬到了青岛", "subject": "我", "topic": "居住地", "object": "青岛"},
    ),
    (
        "我不喜欢香菜。",
        {"quote": "我不喜欢香菜", "subject": "我", "topic": "喜欢", "object": "香菜", "negated": True},
    ),
    ("我特别喜欢香菜。", {"quote": "我特别喜欢香菜", "subject": "我", "topic": "喜欢", "object": "香菜"}),
    (
        "我妹妹叫小雨。",
        {"quote": "我妹妹叫小雨", "subject": "我", "topic": "妹妹", "object": "小雨", "kind": "relation"},
    ),
    ("小雨对花生过敏。", {"quote": "小雨对花生过敏", "subject": "小雨", "topic": "过敏", "object": "花生"}),
    ("我住在無錫。", {"quote": "我住在无锡", "subject": "我", "topic": "住在", "object": "无锡"}),
]


@pytest.mark.parametrize(("text", "fields"), TRUE)
def test_what_the_words_support_passes(text: str, fields: dict[str, object]) -> None:
    """A copied statement passes in both languages, in any case, white space, quotes and script."""
    assert outcome(text, **fields) == ""


LIES = [
    (
        "我对猫毛不过敏。",
        {"quote": "我对猫毛不过敏", "subject": "我", "topic": "过敏", "object": "猫毛"},
        "negation",
    ),
    ("Thanks.", {"quote": "Thanks", "object": "Thanks"}, "subject"),
    ("That is what I thought of Lisbon.", {"quote": "what I thought of Lisbon"}, "subject"),
    (
        "帮我找青岛的酒店。",
        {"quote": "帮我找青岛的酒店", "subject": "我", "topic": "居住地", "object": "青岛"},
        "subject",
    ),
    ("I live in Lisbon.", {"quote": "I live in Porto", "object": "Porto"}, "quote"),
    ("I live in Lisbon.", {"quote": ""}, "quote"),
    ("I live in Lisbon.", {"quote": "live in Lis", "object": "Lis"}, "quote"),
    ("I live in Lisbon.", {"object": "Portugal"}, "object"),
    ("I live in Lisbon.", {"object": "Lisb"}, "object"),
    ("I live in Lisbon.", {"object": ""}, "object"),
    ("I live in Lisbon.", {"object": "I live in Lisbon"}, "object"),
    ("I live in New York.", {"quote": "I live in New York", "object": "New"}, "object"),
    ("I live in New York.", {"quote": "I live in New York", "object": "York"}, "object"),
    ("I am 1.85 tall.", {"quote": "I am 1.85 tall", "object": "85", "topic": "height"}, "object"),
    ("I live in my old flat.", {"quote": "I live in my old flat", "object": "my old flat"}, "object"),
    ("I live in Lisbon.", {"kind": "secret"}, "kind"),
    ("I live in Lisbon.", {"topic": "where the user has been living"}, "topic"),
    ("I live in Lisbon.", {"topic": ""}, "topic"),
    ("I live in Lisbon.", {"topic": "用户目前长期居住的城市"}, "topic"),
    ("I live in Lisbon.", {"subject": "Clara"}, "subject"),
    ("Clara is here. I live in Lisbon.", {"subject": "Clara"}, "subject"),
    ("I live in Lisbon.", {"subject": "I live in Lisbon"}, "subject"),
    ("I live in Lisbon.", {"subject": "Lisbon"}, "subject"),
    ("I live in Lisbon.", {"subject": "you"}, "subject"),
    ("She lives in Lisbon.", {"quote": "She lives in Lisbon", "subject": "she"}, "subject"),
    ("The river is in Lisbon.", {"quote": "The river is in Lisbon", "subject": "river"}, "subject"),
    ("My sister lives in Lisbon.", {"quote": "My sister lives in Lisbon"}, "subject"),
    ("My sister lives in Lisbon.", {"quote": "lives in Lisbon"}, "subject"),
    ("Clara lives in Lisbon.", {"quote": "Clara lives in Lisbon"}, "subject"),
    ("I do not live in Lisbon.", {"quote": "I do not live in Lisbon"}, "negation"),
    ("I do not live in Lisbon.", {"quote": "live in Lisbon"}, "negation"),
    ("I've never, ever lived in Lisbon.", {"quote": "lived in Lisbon"}, "negation"),
    ("I live in Lisbon.", {"negated": True}, "negation"),
    ("I hate cilantro.", {"quote": "I hate cilantro", "topic": "likes", "object": "cilantro"}, "negation"),
    ("I like cilantro.", {"quote": "I like cilantro", "topic": "dislikes", "object": "cilantro"}, "negation"),
    ("Do you think I live in Lisbon?", {}, "question"),
    ("do I live in Lisbon", {"quote": "I live in Lisbon"}, "question"),
    ("Maybe I live in Lisbon by then.", {}, "unsaid"),
    ("If I live in Lisbon I will swim.", {}, "unsaid"),
    ("She said I live in Lisbon.", {}, "unsaid"),
    ("I wish I live in Lisbon.", {}, "unsaid"),
    ('He wrote "I live in Lisbon" on it.', {}, "quotation"),
    ("> I live in Lisbon\nIs that so.", {}, "quotation"),
    (
        "我不住在青岛。",
        {"quote": "住在青岛", "subject": "我", "topic": "居住地", "object": "青岛"},
        "negation",
    ),
    (
        "我妹妹住在青岛。",
        {"quote": "住在青岛", "subject": "我", "topic": "居住地", "object": "青岛"},
        "subject",
    ),
    ("我讨厌香菜。", {"quote": "我讨厌香菜", "subject": "我", "topic": "喜欢", "object": "香菜"}, "negation"),
    ("我住在哪里", {"quote": "我住在哪里", "subject": "我", "topic": "居住地", "object": "哪里"}, "question"),
    (
        "如果我住在青岛就好了。",
        {"quote": "我住在青岛", "subject": "我", "topic": "居住地", "object": "青岛"},
        "unsaid",
    ),
    (
        "他说我住在青岛。",
        {"quote": "我住在青岛", "subject": "我", "topic": "居住地", "object": "青岛"},
        "unsaid",
    ),
]


@pytest.mark.parametrize(("text", "fields", "reason"), LIES)
def test_lies_are_refused(text: str, fields: dict[str, object], reason: str) -> None:
    """An invented, cut, reversed or misattributed statement is refused for its reason."""
    assert outcome(text, **fields) == reason


def test_statements_of_other_messages_are_refused() -> None:
    """A message that does not exist, and one of the assistant, give nothing."""
    gate = Gate()
    gate.judge(None, [HOME])
    gate.judge(Said("assistant", "", "I live in Lisbon."), [HOME])
    assert gate.accepted == []
    assert gate.rejected == {"message": 1, "role": 1}


def test_a_subject_of_an_earlier_message_lowers_the_confidence() -> None:
    """A name may occur in the two messages before; then the statement is less certain."""
    said = "She works as a vet."
    about = replace(HOME, quote="She works as a vet", subject="Clara", topic="occupation", object="vet")
    here = judged("", about, said=Said("user", "", f"Clara is here. {said}")).accepted
    before = judged("", about, said=Said("user", "", said, ("Clara is here.",))).accepted
    assert [one.confidence for one in (*here, *before)] == [0.6, 0.4]
    assert judged("", about, said=Said("user", "", said, ("Bob is here.",))).rejected == {"subject": 1}


def test_a_short_answer_needs_a_question() -> None:
    """A name alone is a statement about the speaker only if the message before asks."""
    answer = replace(HOME, quote="Lisbon")
    for before, count in (("Where do you live?", 1), ("It rains.", 0)):
        assert len(judged("", answer, said=Said("user", "", "Lisbon.", (before,))).accepted) == count


def test_the_speaker_is_the_subject() -> None:
    """With a named speaker, the speaker is meant by "I" and by the name."""
    for subject in ("I", "Ann"):
        [one] = judged(
            "", replace(HOME, subject=subject), said=Said("user", "Ann", "I live in Lisbon.")
        ).accepted
        assert one.subject == "Ann"


def test_the_stored_words_are_those_of_the_message() -> None:
    """Quote and object are slices of the message, not the model's spelling of them."""
    text = "Well,  I live\u00a0in LISBON now."
    [one] = judged(text, HOME).accepted
    assert text[one.begin : one.end] == "I live\u00a0in LISBON"
    assert one.object == "LISBON"


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        (
            "My password is hunter2xZ9 by the way.",
            {"quote": "My password is hunter2xZ9", "topic": "password", "object": "hunter2xZ9"},
        ),
        ("I live in Lisbon. My password is hunter2xZ9.", {"topic": "hunter2xZ9"}),
        (
            "我的密码是hunter2xZ9。",
            {"quote": "我的密码是hunter2xZ9", "subject": "我", "topic": "密码", "object": "hunter2xZ9"},
        ),
    ],
)
def test_secrets_are_never_stored(text: str, fields: dict[str, object]) -> None:
    """A statement with a secret in any field is refused under every policy."""
    assert outcome(text, **fields) == "secret"


def test_personal_data_is_not_stored_under_redact() -> None:
    """Under `redact`, personal data of an older message, and what redaction leaves, gives no statement."""
    text = "My phone is +351 912 345 678."
    phone = replace(HOME, quote="My phone is +351 912 345 678", topic="phone", object="+351 912 345 678")
    assert len(judged(text, phone).accepted) == 1
    assert judged(text, phone, redacts=True).rejected == {"personal": 1}
    mail = replace(HOME, quote="My email is [email]", topic="email", object="[email]")
    assert judged("My email is [email].", mail, redacts=True).rejected == {"personal": 1}


def test_recalled_lines_are_no_statements() -> None:
    """A quote in a line that a recall returned before is refused; other lines of the message are not."""
    text = "As I heard:\nI live in Lisbon, near the river.\nI'm allergic to nuts."
    nuts = replace(HOME, quote="I'm allergic to nuts", topic="allergy", object="nuts")
    gate = judged(text, HOME, nuts, is_echo=lambda line: "river" in line)
    assert [one.object for one in gate.accepted] == ["nuts"]
    assert gate.rejected == {"echo": 1}


def test_a_message_gives_at_most_four_statements_each_once() -> None:
    """A model that repeats itself, or lists everything, stores four different statements."""
    names = ["tea", "milk", "rice", "bread", "jam", "salt"]
    text = " ".join(f"I like {name}." for name in names)
    likes = [replace(HOME, quote=f"I like {name}", topic="likes", object=name) for name in names]
    gate = judged(text, *likes, *likes)
    assert [one.object for one in gate.accepted] == names[:4]
    assert gate.rejected == {"too_many": 4, "repeated": 4}


def test_statements_by_rules_pass_only_what_rules_do_not_guarantee() -> None:
    """Rules know what they read; a secret, an echo and a fifth statement are refused nevertheless."""
    gate = Gate()
    secret = replace(HOME, quote="My name is Bob, my password is hunter2xZ9", topic="name", object="Bob")
    gate.judge(Said("user", "", "My name is Bob, my password is hunter2xZ9."), [secret], by_rules=True)
    assert gate.rejected == {"secret": 1}
    assert judged("I live in Lisbon.", HOME).accepted[0].is_by_rules is False


def test_every_reason_is_known() -> None:
    """The reasons of the tests are labels of the metric."""
    assert {reason for *_, reason in LIES} < set(REASONS)
