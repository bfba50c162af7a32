"""The labelled sets for structured memory are complete and agree with their own texts."""

from __future__ import annotations

from collections import Counter

import pytest

from benchmarks.knowledge.sets import (
    LANGUAGES,
    OUTCOMES,
    PARTS,
    QUESTION_KINDS,
    SEARCH_TIME,
    TOOLS,
    TimeCase,
    milliseconds,
    read_bank,
    read_messages,
    read_names,
    read_questions,
    read_times,
    read_tool_forms,
    read_updates,
    read_wordings,
)
from benchmarks.question_topics import read_examples


def test_times_are_balanced_and_their_words_occur() -> None:
    """Each language and part has its share, words occur in their text, and intervals are not empty."""
    cases = read_times()
    assert len({case.id for case in cases}) == len({(case.text, case.reference) for case in cases}) == 200
    assert Counter((case.lang, case.part) for case in cases) == {
        (lang, part): 50 for lang in LANGUAGES for part in PARTS
    }
    assert Counter(case.lang for case in cases if case.words is None) == {"en": 10, "zh": 10}
    for case in cases:
        assert case.reading in ("event", "plan", "question")
        for since, until in (case.interval, *case.also):
            assert (since is None and until is None) == (case.words is None), case.id
            assert since is None or until is None or since < until, case.id
        assert case.words is None or case.words in case.text, case.id


def test_an_answer_is_judged_as_the_case_says() -> None:
    """A clock time compares its start, a part of a day its bounds, and a trap accepts nothing but no time."""
    cases = {case.text: case for case in read_times()}

    def answer(text: str, since: str | None, until: str | None) -> bool:
        case: TimeCase = cases[text]
        return case.accepts((milliseconds(since), milliseconds(until)))

    assert answer("The call with Tokyo is at 5 pm.", "2024-03-13T17:00", "2024-03-13T17:01")
    assert not answer("The call with Tokyo is at 5 pm.", "2024-03-13T05:00", "2024-03-13T18:00")
    night = "We watched the fireworks from the roof last night."
    assert answer(night, "2024-12-31T18:00", "2025-01-01")
    assert not answer(night, "2024-12-30", "2025-01-01")
    assert answer("我家的猫是2021年5月3日走的。", "2021-05-03", "2021-05-04")
    assert not answer("我家的猫是2021年5月3日走的。", "2021-05-01", "2021-06-01")
    assert not cases["我家的猫是2021年5月3日走的。"].accepts(None)
    assert cases["从家走到车站要二十分钟。"].accepts(None)
    assert not answer("从家走到车站要二十分钟。", "2025-08-31", "2025-09-01")


def test_tool_forms_are_balanced_and_say_what_must_come_out() -> None:
    """Each part has its share of every tool, and each form has either arguments or a reason."""
    forms = read_tool_forms()
    assert len({form.id for form in forms}) == len({(form.tool, repr(form.sent)) for form in forms}) == 200
    assert Counter((form.lang, form.part) for form in forms) == {
        (lang, part): {"dev": 60, "held_out": 40}[part] for lang in LANGUAGES for part in PARTS
    }
    for part in PARTS:
        assert {form.tool for form in forms if form.part == part} == {*TOOLS}
    for form in forms:
        assert form.outcome in ("accepted", "refused", "either"), form.id
        assert bool(form.arguments) == (form.outcome != "refused") == (form.reason is None), form.id
        assert not {*form.arguments} & {*form.any_of}, form.id


def test_a_reading_of_a_form_is_judged_by_all_its_arguments() -> None:
    """An argument that is wrong, missing or too much fails a form; a free one does not."""
    forms = {(form.tool, form.lang, form.form): form for form in read_tool_forms()}
    percent = forms["create_memory", "en", "importance in per cent"]
    right = {"subject": "user", "memory_type": "fact", "topic": "allergy", "object": "penicillin"}
    assert percent.accepts({**right, "importance": 0.95, "attributes": {}, "replaces": None})
    assert not percent.accepts({**right, "importance": 0.5})
    assert not percent.accepts({**right, "importance": 0.95, "replaces": "n1"})
    assert not percent.accepts(None)
    ranged = forms["search_memories", "en", "start and end"]
    since, until = milliseconds("2026-03-01"), milliseconds("2026-04-01")
    assert ranged.accepts({"query": "expenses", "time_range": (since, until), "max_results": 10})
    assert not ranged.accepts({"query": "expenses", "time_range": (until, until)})
    assert forms["create_memory", "zh", "importance as a word"].accepts(
        {"subject": "我", "memory_type": "fact", "topic": "过敏", "object": "青霉素", "importance": 1.0}
    )
    refused = forms["create_memory", "en", "trailing comma"]
    assert refused.accepts(None)
    assert not refused.accepts(right)


def test_updates_are_balanced_and_their_objects_are_said() -> None:
    """Both languages have the same outcomes, the objects occur in the quotes, and the times fit the outcome."""
    updates = read_updates()
    assert len({update.id for update in updates}) == 200
    assert len({(update.first.quote, update.second.quote) for update in updates}) == 200
    counts = Counter((update.lang, update.expected) for update in updates)
    for outcome in OUTCOMES:
        assert counts["en", outcome] == counts["zh", outcome] >= 10
    assert counts.total() == 200
    for update in updates:
        first, second = update.first, update.second
        assert first.object in first.quote, update.id
        assert second.object in second.quote, update.id
        assert (first.subject, first.slot) == (second.subject, second.slot), update.id
        assert first.told_at < second.told_at, update.id
        assert (first.modality, second.modality) in {
            ("asserted", kind) for kind in ("asserted", "planned", "reported")
        }, update.id
        if update.expected == "late":
            assert (second.since or second.told_at) < (first.since or first.told_at), update.id
        assert (first.negated != second.negated) <= (update.expected in ("contested", "superseded")), (
            update.id
        )


def test_a_wrong_retirement_is_more_than_a_wrong_answer() -> None:
    """A plan may be kept or set aside, but the present statement must stay current."""
    update = next(update for update in read_updates() if update.second.quote == "we'll move to York in May")
    assert update.accepts("both", frozenset({"first"}))
    assert update.accepts("both", frozenset({"first", "second"}))
    assert not update.accepts("contested", frozenset({"first", "second"}))
    assert not update.retires_wrongly(frozenset({"first"}))
    assert update.retires_wrongly(frozenset({"second"}))


def test_names_occur_in_their_quotes() -> None:
    """There are 40 pairs that differ and 25 that do not, each name is said, and an alias is said by a quote."""
    pairs = read_names()
    assert len({pair.id for pair in pairs}) == 65
    assert Counter((pair.lang, pair.same) for pair in pairs) == {
        ("en", False): 20,
        ("zh", False): 20,
        ("en", True): 13,
        ("zh", True): 12,
    }
    for pair in pairs:
        for side in (pair.first, pair.second):
            assert side.name.casefold() in side.quote.casefold(), pair.id
        assert (pair.by is not None) == pair.same, pair.id
        assert (pair.said is not None) == (pair.by == "alias"), pair.id
        assert pair.said in (None, pair.first.quote, pair.second.quote), pair.id


def test_wordings_state_their_fact() -> None:
    """Five facts of each language have three different wordings that contain the object."""
    facts = read_wordings()
    assert Counter(fact.lang for fact in facts) == {"en": 5, "zh": 5}
    for fact in facts:
        assert len({*fact.wordings}) == 3, fact.id
        assert all(fact.object.removeprefix("a ") in wording for wording in fact.wordings), fact.id


@pytest.mark.parametrize(
    ("name", "sizes", "questions_per_language"),
    [
        ("relevance", {25: 6}, {"en": 50, "zh": 50}),
        ("relevance_second", {32: 5, 34: 1}, {"en": 95, "zh": 98}),
        ("relevance_held_out", {25: 4}, {"en": 50, "zh": 50}),
    ],
)
def test_questions_are_answered_by_statements_of_their_agent(
    name: str, sizes: dict[int, int], questions_per_language: dict[str, int]
) -> None:
    """Each agent has its statements, and every answer is a statement of the agent of the question."""
    bank = {statement.id: statement for statement in read_bank(name)}
    assert Counter(Counter(statement.agent for statement in bank.values()).values()) == sizes
    assert len({statement.quote for statement in bank.values()}) == len(bank)
    for statement in bank.values():
        if name != "relevance_second":
            assert (statement.object or "").casefold() in statement.quote.casefold(), statement.id
        assert statement.told_at < SEARCH_TIME.timestamp() * 1000, statement.id
        assert statement.since is None or statement.since <= statement.told_at, statement.id
        if statement.link:
            assert bank[statement.link.target].agent == statement.agent, statement.id
    questions = read_questions(name)
    assert Counter(question.lang for question in questions) == questions_per_language
    assert len({(question.agent, question.query) for question in questions}) == len(questions)
    assert {question.kind for question in questions} == {*QUESTION_KINDS}
    for question in questions:
        assert (question.kind == "none") == (not question.answers), question.id
        assert {bank[one].agent for one in question.answers} <= {question.agent}, question.id
        assert {bank[one].lang for one in question.answers} <= {question.lang}, question.id


def test_questions_without_answer_are_new() -> None:
    """The questions without an answer are questions to agents that exist, and are in no other set."""
    questions = read_questions("relevance_unanswerable")
    assert Counter(question.lang for question in questions) == {"en": 20, "zh": 20}
    assert {question.kind for question in questions} == {"none"}
    assert {question.agent for question in questions} <= {one.agent for one in read_bank()}
    assert not {question.query for question in questions} & {one.query for one in read_questions()}


def test_precision_counts_what_could_be_right() -> None:
    """A current state must come first, and a question without answer is answered by nothing."""
    questions = {question.query: question for question in read_questions()}
    now = questions["Where do I live now?"]
    assert now.precision(["maeve-02", "maeve-01"]) == 1
    assert now.precision(["maeve-01", "maeve-02"]) == 0
    assert now.precision([]) == 0
    both = questions["What languages do I speak?"]
    assert both.precision(["priya-01", "priya-10"]) == 0.5
    assert both.precision(["priya-01", "priya-02", "priya-03", "priya-04", "priya-05", "priya-09"]) == 0
    assert questions["我的狗多大了？"].precision([]) == 1
    assert questions["我的狗多大了？"].precision(["ajie-01"]) == 0


def test_messages_contain_the_objects_of_their_statements() -> None:
    """Half of the messages of each language state nothing, and the others say the object of each statement."""
    messages = read_messages()
    assert len({message.text for message in messages}) == 60
    counts = Counter((message.lang, bool(message.statements)) for message in messages)
    assert counts == {(lang, states): 15 for lang in LANGUAGES for states in (True, False)}
    for message in messages:
        assert all(statement.object in message.text for statement in message.statements), message.id


def test_examples_of_topics_are_no_questions_of_the_sets() -> None:
    """The regression of topics has seen no question on which the search is measured."""

    def letters(text: str) -> str:
        return "".join(one for one in text.casefold() if one.isalnum())

    examples = {letters(question) for _, question in read_examples()}
    sets = ("relevance", "relevance_second", "relevance_held_out", "relevance_unanswerable")
    asked = {letters(question.query) for name in sets for question in read_questions(name)}
    assert not examples & asked
