"""The labelled sets for structured memory are complete and agree with their own texts."""

from __future__ import annotations

from collections import Counter

from benchmarks.knowledge.sets import LANGUAGES, PARTS, TimeCase, milliseconds, read_times


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
