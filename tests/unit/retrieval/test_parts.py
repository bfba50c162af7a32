"""Queries with several parts are split, others are not."""

from __future__ import annotations

from time import process_time

import pytest

from ebbtide.retrieval.query import MAX_PARTS, parts_of


@pytest.mark.parametrize(
    ("query", "parts"),
    [
        ("When did Ann move, and what did Bob say of it?", ("When did Ann move", "what did Bob say of it")),
        ("Where does Tom live and how many cats has he?", ("Where does Tom live", "how many cats has he")),
        ("Who won? And who did she thank?", ("Who won", "who did she thank")),
        ("What did she buy; why?", ("What did she buy", "why")),
        ('Who wrote "Emma"? Did she like it?', ('Who wrote "Emma"', "Did she like it")),
        ("我叔叔在哪里上班？另外，音乐节的规模是什么？", ("我叔叔在哪里上班", "音乐节的规模是什么")),
        ("小明养了几只猫，还有，小红住在哪儿", ("小明养了几只猫", "小红住在哪儿")),
        ("你今天吃了吗？我姐姐的生日是几号来着？", ("你今天吃了吗", "我姐姐的生日是几号来着")),
    ],
)
def test_each_subquery_is_found(query: str, parts: tuple[str, ...]) -> None:
    """A part is verbatim, without its final mark and the joining word."""
    assert parts_of(query) == parts


@pytest.mark.parametrize(
    "query",
    [
        "Did Melanie make the black and white bowl?",
        "What did James and his friends do?",
        "What does the doctor say, and the nurse?",
        "What J.K. Rowling quote does Tim like?",
        "Who is younger, Isaac P. Walker or N. Mangala?",
        "Which singer who is known for her voice and who's from Wales was born first?",
        "I moved to Rome. I have a cat. Where is it?",
        "吴志远和张晓梅谁的身高更高？",
        "那个喜欢跑步的人，他叫什么？",
        "我今天很累。你还记得我住在哪里吗？",
        "harbour and boats",
        "",
        "?？?",
    ],
)
def test_single_queries_have_no_parts(query: str) -> None:
    """Lists, names, clauses and statements next to a question are no parts."""
    assert parts_of(query) == ()


def test_no_more_parts_than_a_question_may_have() -> None:
    """The number of parts is limited, and repetitions count once."""
    assert len(parts_of(" ".join(f"Who is number {place}?" for place in range(100)))) == MAX_PARTS
    assert parts_of("Who won? Who won? Where?") == ("Who won", "Where")


@pytest.mark.parametrize("piece", ["? ", " and ", "，另外", "，", ", and also ", "？」”", "who ", "; "])
def test_a_long_query_is_read_in_linear_time(piece: str) -> None:
    """Ten thousand characters of separators are split quickly."""
    begun = process_time()
    parts_of(piece * (10_000 // len(piece)))
    assert process_time() - begun < 5.0
