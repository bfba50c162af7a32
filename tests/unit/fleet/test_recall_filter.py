"""Recalled text is recognised when it comes back, and what a user says is never lost."""

from __future__ import annotations

import pytest

from ebbtide.fleet.state.recall_filter import FINGERPRINT_BYTES, MAX_FINGERPRINTS, RecallFilter

CAT = "I moved to Lisbon in May with my cat Miso."
JOB = "Bob repairs old sailing boats in the harbour."
CHINESE = "我五月搬到了青岛，住在海边的老房子里。"


@pytest.fixture
def recall_filter() -> RecallFilter:
    """A filter that contains two memories in English, one in Chinese, and a short one."""
    found = RecallFilter()
    found.note([f"[Memory] {CAT}", f"[Memory] {JOB}", f"[记忆] {CHINESE}", "[Memory] Yes."])
    return found


@pytest.mark.parametrize(
    ("text", "role", "left", "count"),
    [
        # a recalled answer as it was, alone, in a prompt, as a list
        (f"[Memory] {CAT}\n---\n[Memory] {JOB}", "user", "", 2),
        (f"[Memory] {CAT}", "user", "", 1),
        (
            f"Context:\n[Memory] {CAT}\n---\n[Memory] {JOB}\n\nWhere do I live?",
            "user",
            "Context:\n\nWhere do I live?",
            2,
        ),
        (f"- {CAT}\n- {JOB}\nWho repairs boats?", "user", "Who repairs boats?", 2),
        (f"1. {CAT}\nGo on.", "system", "Go on.", 1),
        (f"<memory>{CAT}</memory>\nGo on.", "user", "Go on.", 1),
        (f"  [MEMORY]  {CAT.upper()}\r\n", "user", "", 1),
        (f"[记忆] {CHINESE}", "user", "", 1),
        (f"背景：\n{CHINESE}\n我住在哪里？", "user", "背景：\n我住在哪里？", 1),
        # a short line only with its mark
        ("[Memory] Yes.", "user", "", 1),
        ("Yes.\nGo on.", "user", "Yes.\nGo on.", 0),
        # people repeat themselves; machines do not
        (CAT, "user", CAT, 0),
        (CAT, "assistant", "", 1),
        (CAT, "system", "", 1),
        # new text
        ("[Memory] Something nobody told.", "user", "[Memory] Something nobody told.", 0),
        (f"{CAT} And then to Porto.", "user", f"{CAT} And then to Porto.", 0),
        ("a\n---\nb", "user", "a\n---\nb", 0),
        ("", "user", "", 0),
    ],
)
def test_recalled_lines_are_removed(
    recall_filter: RecallFilter, text: str, role: str, left: str, count: int
) -> None:
    """Marked lines are removed; unmarked ones only if they are long and not a user's whole message."""
    assert recall_filter.without(text, role) == (left, count)


def test_nothing_is_recognised_before_a_recall() -> None:
    """Before any recall even a marked line is stored as it is."""
    assert RecallFilter().without(f"[Memory] {CAT}", "user") == (f"[Memory] {CAT}", 0)


def test_removed_memories_are_not_recognised(recall_filter: RecallFilter) -> None:
    """After memories were removed, no line counts as recalled."""
    recall_filter.clear()
    assert recall_filter.without(f"[Memory] {CAT}", "user") == (f"[Memory] {CAT}", 0)


def test_fingerprints_are_bounded_and_the_oldest_removed(recall_filter: RecallFilter) -> None:
    """The number of lines is bounded; a line that is recalled again is dropped later."""
    recall_filter.note([CAT])
    for number in range(MAX_FINGERPRINTS - 1):
        recall_filter.note([f"line {number} of many"])
    assert recall_filter.without(f"[Memory] {CAT}", "user") == ("", 1)
    assert recall_filter.without(f"[Memory] {JOB}", "user")[1] == 0
    assert recall_filter.resident_bytes == FINGERPRINT_BYTES * MAX_FINGERPRINTS
    recall_filter.note(["one more line"])
    assert recall_filter.without(f"[Memory] {CAT}", "user")[1] == 0


def test_an_echo_was_returned_before_the_message() -> None:
    """A long line is an echo if a recall returned it before the message was accepted; a marked one always is."""
    now = [100]
    recalled = RecallFilter(lambda: now[0])
    line = "I live in Lisbon, near the old river harbour."
    recalled.note([line, "I live in Lisbon."])
    now[0] = 300
    recalled.note([line])
    assert [recalled.is_echo(line, before) for before in (50, 100, 101, 400)] == [False, False, True, True]
    assert not recalled.is_echo("I live in Lisbon.", 400)
    assert recalled.is_echo("[Memory] [2026-03-02] I live in Rome.", 0)
