"""Questions understood: words, phrases, names, times, what is asked for."""

from __future__ import annotations

from time import perf_counter

import pytest

from ebbtide.retrieval.query import MAX_PHRASES, AsksFor, ParsedQuery, parse_query

REFERENCE_MS = 1_686_755_000_000
SPEAKERS = ("Caroline", "Melanie", "Ann", "Ann Lee", "James", "O'Brien", "小明", "小明明", "小红")


def understood(query: str) -> ParsedQuery:
    """A query among the speakers of these tests, in June 2023."""
    return parse_query(query, speakers=SPEAKERS, reference_ms=REFERENCE_MS)


def test_a_question_is_understood_whole() -> None:
    """Speaker, phrase, time and what is asked for come out of one sentence, and its telling words are left."""
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
    """Courtesies and question words do not reach the words index; everything else does, in its order."""
    assert understood(query).text == text


@pytest.mark.parametrize("query", ["what?", "谁", "Who was", "  什么 "])
def test_something_is_always_left(query: str) -> None:
    """A query of nothing but question words keeps them."""
    assert understood(query).text == query.strip()


def test_question_words_in_phrases_stay() -> None:
    """What stands in quotation marks is left as it was written."""
    question = understood('Who wrote "What was lost" and “谁动了我的奶酪”?')
    assert question.phrases == ("What was lost", "谁动了我的奶酪")
    assert '"What was lost"' in question.text and "谁动了我的奶酪" in question.text


def test_an_apostrophe_is_no_quotation_mark() -> None:
    """Possessives and shortened words quote nothing."""
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
    """A Latin name is whole words, a Chinese one any part; a longer name does not name who shares a piece of it."""
    assert understood(query).speakers == speakers


def test_speakers_without_letters_are_never_named() -> None:
    """An empty name or one of signs alone is in no query."""
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
def test_what_is_asked_for(query: str, asks_for: AsksFor) -> None:
    """The first question word tells; a clause that opens with "when" leaves it to the main one."""
    assert understood(query).asks_for == asks_for


@pytest.mark.parametrize(
    "query",
    [
        "error E1234", "CVE-2023-1234", "ERR-42", "错误码 502", "status 404", "order 20231109", "see https://a.b/c",
        "/etc/hosts.conf", "in src/main.py", r"C:\temp", "my_variable", "getUserName", "NullPointerException", "f()",
        "std::vector", "run it with --force", "0xff", "v1.2.3", "mail a@b.com", "deadbeef42",
    ],
)  # fmt: skip
def test_code_is_seen(query: str) -> None:
    """Whoever asks with a code, a path, an address or a name of a program is looking for those characters."""
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
    """Dates, brand names and slashes between words are everyday language."""
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
    """However a query of ten thousand characters is made, it is understood at once."""
    understood("小明")  # Tables are made at the first call.
    query = (piece * 10_000)[:10_000]
    started = perf_counter()
    question = understood(query)
    assert perf_counter() - started < 5
    assert len(question.phrases) <= MAX_PHRASES
