"""Parsing a query: words, phrases, names, times, and what it asks for."""

from __future__ import annotations

from time import process_time

import pytest

from ebbtide.retrieval.query import MAX_PHRASES, AsksFor, ParsedQuery, Recency, parse_query

REFERENCE_MS = 1_686_755_000_000
SPEAKERS = ("Caroline", "Melanie", "Ann", "Ann Lee", "James", "O'Brien", "小明", "小明明", "小红")


def understood(query: str) -> ParsedQuery:
    """Parse a query among the speakers of these tests, in June 2023."""
    return parse_query(query, speakers=SPEAKERS, reference_ms=REFERENCE_MS)


def test_a_question_is_understood_whole() -> None:
    """Speaker, phrase, time, kind and content words are found in one query."""
    question = understood("What did Caroline say about 'late bloomers' in May 2023?")
    assert question.text == "Caroline say about 'late bloomers' in May 2023"
    assert question.phrases == ("late bloomers",)
    assert question.speakers == ("caroline",)
    assert [date.text for date in question.dates] == ["in May 2023"]
    assert question.asks_for == "what" and not question.has_code


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("When was Melanie's pottery class?", "Melanie's pottery class"),
        ("Can you please tell me about the dog?", "the dog"),
        ("How many times did Melanie go?", "Melanie go"),
        ("What kind of books does James read?", "books does James read"),
        ("Did she paint the barn?", "she paint the barn"),
        ("What's the job?", "the job"),
        ("请问小明什么时候去了北京？", "小明 去了北京"),
        ("小红最喜欢的颜色是什么？", "小红最喜欢的颜色"),
        ("为什么小红哭了呢？", "小红哭了"),
        ("小明养了几只猫？", "小明养了 猫"),
    ],
)
def test_question_words_go(query: str, text: str) -> None:
    """Polite phrases and question words are removed; other words keep their order."""
    assert understood(query).text == text


@pytest.mark.parametrize("query", ["what?", "谁", "Who was", "  什么 "])
def test_something_is_always_left(query: str) -> None:
    """A query of question words only keeps them."""
    assert understood(query).text == query.strip()


def test_question_words_in_phrases_stay() -> None:
    """Quoted phrases are not changed."""
    question = understood('Who wrote "What was lost" and “谁动了我的奶酪”?')
    assert question.phrases == ("What was lost", "谁动了我的奶酪")
    assert '"What was lost"' in question.text and "谁动了我的奶酪" in question.text


def test_an_apostrophe_is_no_quotation_mark() -> None:
    """Possessives and contractions are no quotations."""
    assert understood("Caroline's friends' dog didn't like James' cat").phrases == ()


@pytest.mark.parametrize(
    ("query", "speakers"),
    [
        ("Caroline's and MELANIE’s dogs", ("caroline", "melanie")),
        ("Carolines dog, Annie's cat", ()),
        ("James' sister", ("james",)),
        ("what did Ann Lee eat", ("ann lee",)),
        ("Ann and Ann Lee", ("ann", "ann lee")),
        ("where does O’Brien live", ("o'brien",)),
        ("Caroline去了哪里", ("caroline",)),
        ("小明明住在哪里", ("小明明",)),
        ("小明和小明明", ("小明", "小明明")),
        ("nobody", ()),
    ],
)
def test_speakers_are_named_whole(query: str, speakers: tuple[str, ...]) -> None:
    """A Latin name matches whole words, a Chinese one anywhere; a longer name does not match a part of it."""
    assert understood(query).speakers == speakers


def test_speakers_without_letters_are_never_named() -> None:
    """An empty name, or one of signs only, never matches."""
    assert parse_query("a b", speakers=["", " ", "--"], reference_ms=0).speakers == ()


@pytest.mark.parametrize(
    ("query", "asks_for"),
    [
        ("Who gave it?", "who"),
        ("Whose dog is it?", "who"),
        ("When did she move?", "when"),
        ("What year did she move?", "when"),
        ("When she moved, what did she buy?", "what"),
        ("What did she buy when she moved?", "what"),
        ("Where's the key?", "where"),
        ("Which city did she visit?", "where"),
        ("How many pets are there?", "how many"),
        ("Why did she quit?", "why"),
        ("How come she quit?", "why"),
        ("Tell me about the dog", ""),
        ("Whatever", ""),
        ("谁送了礼物", "who"),
        ("她什么时候搬家的", "when"),
        ("她哪年搬家的", "when"),
        ("他住在哪里", "where"),
        ("有几个孩子", "how many"),
        ("好几个孩子", ""),
        ("花了多少钱", "how many"),
        ("为什么哭", "why"),
        ("颜色是什么", "what"),
    ],
)
def test_the_kind_of_query_is_detected(query: str, asks_for: AsksFor) -> None:
    """The first question word decides; a clause that opens with "when" does not."""
    assert understood(query).asks_for == asks_for


@pytest.mark.parametrize(
    ("query", "recency"),
    [
        ("Where do I live now?", "explicit"),
        ("Do I still have a boyfriend?", "explicit"),
        ("我现在住哪儿？", "explicit"),
        ("我还有女朋友吗？", "explicit"),
        ("What is my salary?", "implied"),
        ("我的手机号是多少？", "implied"),
        ("What was my address before I moved to my current flat?", ""),
        ("我以前的公司叫什么？", ""),
        ("Where does Caroline live?", "possible"),
        ("What did I say in May 2023?", ""),
        ("What do I pay since 3 May 2023?", "possible"),
        ("Which lock do you recommend to me?", ""),
        ("It is hot now. Where does Ann work?", ""),
    ],
)
def test_a_question_for_the_newest_message_is_detected(query: str, recency: Recency) -> None:
    """The present, or a matter of the user, expects the newest message. Others and a date may, the past does not."""
    assert understood(query).recency == recency


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("Which bike lock did you recommend?", True),
        ("What did the assistant suggest?", True),
        ("你建议我送什么礼物？", True),
        ("助手说要煮多久？", True),
        ("Can you tell me where I live?", False),
        ("你还记得我的生日吗？", False),
        ("What does Ann want for her youth club?", False),
    ],
)
def test_a_question_to_the_assistant_about_itself_is_detected(query: str, expected: bool) -> None:
    """A query addresses the assistant by "you" or by its role; polite phrases do not count."""
    assert understood(query).addresses_assistant is expected


@pytest.mark.parametrize(
    "query",
    [
        "error E1234", "CVE-2023-1234", "ERR-42", "错误码 502", "status 404", "order 20231109", "see https://a.b/c",
        "/etc/hosts.conf", "in src/main.py", r"C:\temp", "my_variable", "getUserName", "NullPointerException", "f()",
        "std::vector", "run it with --force", "0xff", "v1.2.3", "mail a@b.com", "deadbeef42",
    ],
)  # fmt: skip
def test_code_is_seen(query: str) -> None:
    """Codes, paths, addresses and program names are detected."""
    assert understood(query).has_code


@pytest.mark.parametrize(
    "query",
    [
        "What did she do in 2023-05-07?",
        "my iPhone and YouTube",
        "him and/or her",
        "7.5.2023",
        "a 10-year-old",
        "小明3岁",
    ],
)
def test_plain_words_are_no_code(query: str) -> None:
    """Dates, brand names and slashes between words are not code."""
    assert not understood(query).has_code


@pytest.mark.parametrize(
    "piece",
    [
        "a",
        "1",
        "'",
        '"a',
        "' a",
        "什么",
        "aA",
        "Aa",
        "/a",
        "f",
        " ",
        "@a",
        "when ",
        "tell me ",
        "how ",
        "can you ",
        "「",
        "a.",
    ],
)
def test_hostile_queries_are_read_fast(piece: str) -> None:
    """Any query of ten thousand characters is parsed quickly."""
    understood("小明")  # Tables are made at the first call.
    query = (piece * 10_000)[:10_000]
    started = process_time()
    question = understood(query)
    assert process_time() - started < 5
    assert len(question.phrases) <= MAX_PHRASES
