"""Preferences: statements before questions, replies and echoes, and the newer message of a restated matter first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from ebbtide.retrieval.analysis import term_of, words_of
from ebbtide.retrieval.features import Fused
from ebbtide.retrieval.passages import IndexedPassage, PassageIndex, entries_of
from ebbtide.retrieval.preferences import QUESTION, in_preferred_order, is_echo
from ebbtide.retrieval.preferences import REPLY as REPLY_LESS
from ebbtide.retrieval.ranking_request import RankingRequest
from ebbtide.retrieval.restating import RESTATING, SMALL, announces_change

OLD, OTHER, NEW, REPLY = range(4)
TEXTS = [
    "I live in Leeds",
    "The boiler is out again",
    "I moved to York",
    "York has good trams",
]
REPLIED = TEXTS[REPLY]
ALIKE = np.eye(4)
ALIKE[OLD, NEW] = ALIKE[NEW, OLD] = 0.5
WORTHS = np.array([3.0, 2.9, 2.5, 3.1])


def preferred(
    texts: list[str] = TEXTS,
    worths: np.ndarray = WORTHS,
    query: str = "",
    *,
    more: Sequence[str] = (),
    speakers_of: Sequence[str] = ("",) * 4,
    **fields: Any,
) -> list[int]:
    """Return four messages, a day apart, in the preferred order; the last one is a reply. `more` are no candidates."""
    index = PassageIndex()
    for number, text in enumerate([*texts, *more]):
        role = "assistant" if number == REPLY else "user"
        speaker = speakers_of[number] if number < len(speakers_of) else ""
        index.add(
            IndexedPassage(number, entry, number * 86_400_000, speaker, f"b{number}", role=role)
            for entry in entries_of(text, "")
        )
    fields.setdefault("alike", lambda passages, others: ALIKE[np.ix_(passages, others)])
    words = {term_of(word): 1.0 for word in words_of(query)}
    request = RankingRequest(terms=words, whole_words=words, texts=texts.__getitem__, **fields)
    order = np.lexsort((-np.arange(4), -worths))
    found = np.ones(4, dtype=np.bool_)
    fused = Fused(index, request, {}, worths, found, order)
    return in_preferred_order(fused, worths[order]).tolist()


def test_statements_of_the_user_precede_replies() -> None:
    """Promise: a reply ranks after statements of similar worth, unless the question addresses the assistant."""
    assert preferred() == [OLD, OTHER, NEW, REPLY]
    assert preferred(addresses_assistant=True) == [REPLY, OLD, OTHER, NEW]


def test_statements_precede_questions() -> None:
    """Promise: a message that only asks ranks after statements of similar worth, but before much worse ones."""
    texts = ["Where do I live?", *TEXTS[1:]]
    assert preferred(texts) == [OTHER, NEW, OLD, REPLY]
    assert preferred(texts, np.array([4.5, 2.9, 2.5, 3.1])) == [OLD, OTHER, NEW, REPLY]


def test_the_query_asked_before_is_last() -> None:
    """Promise: a message that only asks the query follows all others, however much it resembles the query."""
    texts = ["Where do I live?", *TEXTS[1:]]
    assert preferred(texts, np.array([4.5, 2.9, 2.5, 3.1]), "Where do I live now?") == [
        OTHER,
        NEW,
        REPLY,
        OLD,
    ]


def test_statements_on_the_topic_come_first() -> None:
    """Promise: a statement with a word of the topic rises, but no reply, no question, and no word of most messages."""
    texts = ["I like tea", "a flat near the sea", "Is it a flat?", "a flat"]
    worths = np.array([3.0, 2.5, 2.5 + QUESTION, 2.5 + REPLY_LESS])
    flat, sea, tea = ([frozenset([term_of(word)])] for word in ("flat", "sea", "tea"))
    assert preferred(texts, worths, alike=None)[0] == 0
    assert preferred(texts, worths, alike=None, topics=sea) == [1, 0, 3, 2]
    assert preferred(texts, worths, alike=None, topics=flat) == [1, 0, 3, 2]
    assert preferred(texts, worths, alike=None, topics=tea)[0] == 0
    assert preferred(texts, worths, alike=None, topics=flat, more=["a flat"] * 4)[0] == 0


def test_statements_on_record_come_first() -> None:
    """Promise: a message that supports a true statement on the topic precedes more relevant ones."""
    assert preferred(on_record=np.array([NEW])) == [NEW, OLD, OTHER, REPLY]


def test_a_statement_that_is_not_true_restates_nothing() -> None:
    """Promise: a plan that was said later stays behind the true value; without a record, the newer one comes first."""
    texts, asks = ["I live in Leeds", TEXTS[1], "I will move to York", REPLIED], {"recency": "explicit"}
    assert preferred(texts, **asks)[:2] == [NEW, OLD]
    known = {"on_record": np.array([OLD]), "off_record": np.array([NEW])}
    assert preferred(texts, **asks, **known)[0] == OLD


def test_a_withdrawn_statement_comes_last() -> None:
    """Promise: a message whose statement was retracted follows the others, however much it resembles the query."""
    worths = np.array([3.0, 2.9, 6.0, 3.1])
    assert preferred(worths=worths)[0] == NEW
    withdrawn = {"off_record": np.array([NEW]), "withdrawn": np.array([NEW])}
    assert preferred(worths=worths, **withdrawn)[:2] == [OLD, OTHER]


def test_an_echo_never_precedes_what_it_repeats() -> None:
    """Promise: a reply that repeats the user ranks after the statement, even if the query addresses the assistant."""
    said = ["I moved to York", "You moved to York", "Try the trams of York"]
    index = PassageIndex()
    for number, text in enumerate(said):
        role = "user" if number == 0 else "assistant"
        index.add(
            IndexedPassage(number, entry, number, "", "b0", role=role) for entry in entries_of(text, "")
        )
    worths = np.array([3.0, 3.2, 3.1])
    for addresses_assistant, expected in ((True, [2, 0, 1]), (False, [0, 1, 2])):
        request = RankingRequest(terms={}, texts=said.__getitem__, addresses_assistant=addresses_assistant)
        order = np.array([1, 2, 0])
        fused = Fused(index, request, {}, worths, np.ones(3, dtype=np.bool_), order)
        assert in_preferred_order(fused, worths[order]).tolist() == expected


def test_a_message_that_states_nothing_of_the_query_is_a_question() -> None:
    """Promise: a statement behind a question counts only if it contains words of the query."""
    for text, expected in (
        ("Where do I live? Filling in a form", [OTHER, NEW, OLD, REPLY]),
        ("Do you know it? I live in Leeds", [OLD, OTHER, NEW, REPLY]),
    ):
        assert preferred([text, *TEXTS[1:]], query="Where do I live?") == expected, text


def test_texts_of_late_candidates_are_not_read() -> None:
    """Promise: a query reads the questions among the first candidates only, and their order is that of all."""
    said = [f"Where is the box {number}? It is in room {number}" for number in range(60)]
    index = PassageIndex()
    for number, text in enumerate(said):
        entry = entries_of(text, "")[0]
        index.add([IndexedPassage(number, entry, number, "", "b0", role="user")])
    dice = np.random.default_rng(1)
    for _ in range(20):
        read: list[int] = []
        terms = dict.fromkeys(map(term_of, dice.choice([*"0123456789", "box"], 3).tolist()), 1.0)
        request = RankingRequest(terms, texts=lambda number, read=read: read.append(number) or said[number])  # type: ignore[misc,func-returns-value]
        worths = np.sort(dice.normal(size=60))[::-1]
        fused = Fused(index, request, {}, worths, np.ones(60, dtype=np.bool_), np.arange(60))
        index.marks(fused.first, said.__getitem__)
        first = in_preferred_order(fused, worths, 20).tolist()[:20]
        assert len(read) < 60
        assert first == in_preferred_order(fused, worths).tolist()[:20]


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("So the landlord wants 950 euros for the flat.", True),
        ("The landlord wants 950 euros, that is 11400 a year for the flat.", False),
        ("You can negotiate: ask him for a longer contract.", False),
    ],
)
def test_an_echo_adds_nothing(reply: str, expected: bool) -> None:
    """Promise: a reply with another number, or mostly new words, is no echo."""
    assert is_echo(reply, "The landlord wants 950 euros for the flat.") is expected


@pytest.mark.parametrize("recency", RESTATING)
def test_the_newer_message_of_a_restated_matter_is_first(recency: Any) -> None:
    """Promise: the newer of two messages that resemble each other comes directly before the older one."""
    assert preferred(recency=recency) == [NEW, OLD, OTHER, REPLY]
    swapped = np.array([2.5, 2.9, 3.0, 3.1])
    assert preferred(worths=swapped, recency=recency) == [NEW, OTHER, OLD, REPLY], (
        "the order is right already"
    )


def test_other_questions_keep_the_order_of_worth() -> None:
    """Promise: a question that does not expect the newest message is not changed."""
    assert preferred(recency="") == [OLD, OTHER, NEW, REPLY]


def test_a_less_relevant_message_restates_only_if_something_says_so() -> None:
    """Promise: a newer message that is much less relevant moves up only for "now" and the like, or if it says so."""
    worths = np.array([3.0, 2.9, 0.5, -1.0])
    texts = [*TEXTS[:2], "I live in York", REPLIED]
    assert preferred(texts, worths, recency="implied") == [OLD, OTHER, NEW, REPLY]
    assert preferred(texts, worths, recency="explicit") == [NEW, OLD, OTHER, REPLY]
    assert preferred(worths=worths, recency="implied") == [NEW, OLD, OTHER, REPLY]


def test_any_present_question_gets_the_announced_change_first_in_a_small_memory() -> None:
    """Promise: a question about others gets only a message that announces a change first."""
    assert preferred(recency="possible") == [NEW, OLD, OTHER, REPLY]
    assert preferred([*TEXTS[:2], "I live in York", REPLIED], recency="possible") == [OLD, OTHER, NEW, REPLY]


def test_in_a_larger_memory_such_a_change_must_be_as_relevant() -> None:
    """Promise: among many messages, only a change of nearly the same worth precedes, unless the user is meant."""
    fillers = [f"Filler {number}" for number in range(SMALL)]
    for recency, gap, is_first in (("possible", 0.4, True), ("possible", 0.9, False), ("implied", 0.9, True)):
        worths = np.array([3.0, 0.0, 3.0 - gap, 0.0])
        order = preferred(worths=worths, recency=recency, more=fillers)
        assert (order[0] == NEW) is is_first, (recency, gap)


def test_words_show_what_restates_without_vectors() -> None:
    """Promise: without vectors, a message that announces a change precedes an earlier one with the same words."""
    texts = ["We use JWT for the login", "The boiler is out again", "We moved the login to OAuth", REPLIED]
    fields: dict[str, Any] = {"query": "What is our login?", "recency": "possible", "alike": None}
    assert preferred(texts, **fields) == [NEW, OLD, OTHER, REPLY]
    texts[NEW] = "We moved the stairs"
    assert preferred(texts, **fields) == [OLD, OTHER, NEW, REPLY]


def test_another_speaker_restates_nothing() -> None:
    """Promise: what one person says later does not replace what another one said."""
    assert preferred(recency="implied", speakers_of=["Ann", "Ann", "Bob", "Bob"])[0] == OLD


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("We moved the login to OAuth", True),
        ("I'm not any more at the bakery", True),
        ("Crete is off, far too hot", True),
        ("我换号了", True),
        ("我妹妹不当护士了", True),
        ("I live in Leeds", False),
        ("我住在厦门，离海边很近", False),
    ],
)
def test_a_change_is_announced(text: str, expected: bool) -> None:
    """A message announces a change if it contains a word of change, on any subject."""
    assert announces_change(text) is expected


def test_a_question_restates_nothing() -> None:
    """Promise: what the user asked later does not move before what the user said."""
    texts = ["I live in Leeds", "The boiler is out again", "where do I live?", "York has good trams"]
    assert preferred(texts=texts, recency="explicit")[0] == OLD


def test_a_reply_restates_nothing() -> None:
    """Promise: an assistant's newer message does not move before the user's statement."""
    alike = np.full((4, 4), 0.9)
    fields = {"recency": "explicit", "alike": lambda passages, others: alike[np.ix_(passages, others)]}
    index = PassageIndex()
    for number, role in enumerate(["user", "assistant"]):
        entry = entries_of("I live in Leeds", "")[0]
        index.add([IndexedPassage(number, entry, number, "", "b0", role=role)])
    request = RankingRequest(terms={}, **fields)
    worths = np.array([3.0, 3.5])
    fused = Fused(index, request, {}, worths, np.ones(2, dtype=np.bool_), np.array([1, 0]))
    assert in_preferred_order(fused, worths[[1, 0]]).tolist() == [0, 1]
