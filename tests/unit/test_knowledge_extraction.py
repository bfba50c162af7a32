"""The measures of extraction by rules count what they say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.knowledge import memdaily
from benchmarks.knowledge.extraction import Tally, outputs_of
from benchmarks.knowledge.sets import (
    LANGUAGES,
    MESSAGE_PARTS,
    digest_of,
    read_fresh_messages,
    read_public_verdicts,
    read_verdicts,
)
from benchmarks.recall_data import Corpus, Turn


def test_verdicts_are_about_words_of_their_messages() -> None:
    """Each verdict names a message that has its quote, and no output has two verdicts."""
    messages = {message.id: message for message in read_fresh_messages()}
    assert len({message.text for message in messages.values()}) == len(messages)
    assert {(message.lang, message.part) for message in messages.values()} <= {
        (lang, part) for lang in LANGUAGES for part in MESSAGE_PARTS
    }
    verdicts = read_verdicts()
    for output in verdicts:
        assert output.quote in messages[output.message].text, output
        assert output.object in output.quote, output
    assert {*verdicts.values()} == {True, False}
    assert read_public_verdicts()


def test_a_changed_output_is_unlabelled() -> None:
    """A verdict counts only for the same message and the same statement, also on a public set."""
    message = next(message for message in read_fresh_messages() if message.text == "I don't eat pork")
    [output] = outputs_of(message.id, message.text)
    verdicts = read_verdicts()
    assert verdicts[output]
    for changed in (
        replace(output, object="red meat"),
        replace(output, slot="likes"),
        replace(output, subject="my son"),
        replace(output, negated=False),
        replace(output, quote="eat pork"),
        replace(output, planned=True),
        replace(output, message="fresh-en-000"),
    ):
        assert changed not in verdicts
        assert digest_of("locomo", "a text", changed) != digest_of("locomo", "a text", output) or (
            changed.message != output.message
        )
    assert digest_of("locomo", "a text", output) != digest_of("locomo", "another text", output)


def test_an_unlabelled_output_is_not_right() -> None:
    """The share of right outputs counts unlabelled ones as not right, and names their number."""
    outputs = [*outputs_of("m", "I'm a nurse. I'm vegan. I speak Welsh.")]
    tally = Tally()
    tally.add(outputs, {outputs[0]: True, outputs[1]: False}.get)
    tally.add([], {}.get)
    assert str(tally.whole) == "33.3% (1 of 3, 1 unlabelled)"
    assert tally.per_hundred == 150
    assert tally.slots["language"].unlabelled == 1


def _corpus(*texts: str) -> Corpus:
    turns = tuple(Turn(f"t{at}", "s", "", text, at * 1000 + 1) for at, text in enumerate(texts))
    return Corpus("memdaily", "c", True, turns, ())


def test_a_retired_value_and_a_contested_one_are_seen() -> None:
    """A move retires a residence, two birthdays contest each other, and a detail does neither."""
    moved = {slot.name: slot for slot in memdaily.slots_of(_corpus("我住在苏州。", "我搬到了杭州。"))}
    assert moved["residence"].is_retired
    contested = {
        slot.name: slot for slot in memdaily.slots_of(_corpus("我的生日是5月7日。", "我的生日是8月1日。"))
    }
    assert contested["birthday"].is_contested
    assert not contested["birthday"].is_retired
    [detail] = memdaily.slots_of(_corpus("我的生日是5月7日。", "我的生日是5月7号。"))
    assert not detail.is_retired
    assert not detail.is_contested


def test_facts_of_relatives_are_kept_apart() -> None:
    """The birthday of the mother contests neither that of the speaker nor that of the father."""
    slots = [
        *memdaily.slots_of(_corpus("我的生日是5月7日。", "我妈的生日是8月1日。", "我爸的生日是9月2日。"))
    ]
    assert len({slot.subject for slot in slots}) == 3
    assert not any(slot.is_contested for slot in slots)


def test_a_missing_set_is_not_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the public data, the row says so, and counts neither as met nor as missed."""
    monkeypatch.setenv("EBBTIDE_BENCH_DATA", str(tmp_path))
    [row] = memdaily.rows(True)
    assert row.is_met is None
    assert "memdaily.jsonl" in row.measured
