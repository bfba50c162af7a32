"""The second edition's oracle: held links, digest, focus, pins, passes, deletion (memory model 2-5, 8)."""

from __future__ import annotations

from random import Random

import pytest

from tests.support.second_edition.histories import agent, cut, graph, passes, say
from tests.support.second_edition.records import (
    Message,
    NotFoundError,
    Parameters,
    Segment,
    TooManyPinnedError,
)


def test_entities_of_a_batch() -> None:
    """The first keywords that are names make entities after the batch's memories, linked both ways at 1.0 (3b)."""
    memory = agent()
    assert say(
        memory, ("Ann sings", ["Ann", "they", "song", "stage", "light"]), ("ann's tea", ["Ann's"])
    ) == [1, 2]
    assert {i: entity.name for i, entity in memory.entities.items()} == {3: "Ann", 4: "song", 5: "stage"}
    assert {key for key in memory.links if 3 in key[:2]} == {
        (1, 3, "about"),
        (3, 1, "about"),
        (2, 3, "belongs to"),
        (3, 2, "belongs to"),
    }
    assert memory.links[1, 3, "about"].strength_written == 1.0
    assert memory.next_id == 6


def test_mention_order_and_passing_through() -> None:
    """Entities enter focus in order of their last mention; those without a place pass through and are rehearsed."""
    memory = agent(focus_limit=2)
    say(memory, ("one", ["aaa", "bbb"]), ("two", ["ccc", "aaa"]))
    assert [memory.entities[i].name for i in memory.entity_focus] == ["aaa", "ccc"]
    passes(memory, 3)
    say(memory, ("three", ["bbb"]), ("four", ["ddd"]), ("five", ["eee"]))
    bbb = memory.entity("bbb")
    assert [memory.entities[i].name for i in memory.entity_focus] == ["eee", "ddd"]
    assert {memory.strength(key) for key in memory.links_from(bbb)} == {1.0}
    assert memory.entities[bbb].scan_count == 3


def test_entity_in_focus_holds_its_newest_memories() -> None:
    """Of an entity in focus the links to its newest living memories are held, the older ones fade (3)."""
    memory = agent(entity_memories=2, focus_limit=1, decay_rate=0.5, delete_threshold=0)
    for text in ["one", "two", "three"]:
        say(memory, (text, ["topic"]))
        passes(memory)
    topic = memory.entity("topic")
    first, second, third = sorted(memory.memories)
    assert memory.entities[topic].scan_count == 3  # entities in focus are scanned
    held = {key[1]: memory.strength(key) for key in memory.links_from(topic)}
    assert held == {first: 0.5**3, second: 1.0, third: 1.0}
    memory.unfocus(topic)
    assert memory.strength((topic, second, "about")) == 1.0
    passes(memory)
    assert memory.strength((topic, second, "about")) == 0.5


def test_nothing_broken_comes_back() -> None:
    """Broken links of an entity are deleted when it enters focus, and do not return when a newer memory goes (3)."""
    memory = graph({1: "a", 2: "b", 3: "c"}, {9: "topic"}, entity_memories=1)
    memory.put_link((9, 1, ""), 0.001)
    memory.put_link((9, 2, ""), 0.02)
    memory.put_link((9, 3, ""), 0.5)
    memory.focus(9)
    assert (9, 1, "") not in memory.links and memory.strength((9, 3, "")) == 1.0
    memory.links[9, 2, ""].strength_written = 0.001
    memory.delete(3)
    assert memory.links_from(9) == []


def test_links_of_a_memory_focused_by_hand() -> None:
    """All links of a memory in focus are held, except those that were broken (3)."""
    memory = graph({1: "a", 2: "b"}, {9: "topic"})
    memory.put_link((1, 2, "x"), 0.3)
    memory.put_link((1, 9, "y"), 0.001)
    memory.put_link((2, 1, "x"), 0.3)
    memory.focus(1)
    assert memory.memory_focus == [1]
    assert memory.links_from(1) == [(1, 2, "x")]
    assert memory.strength((1, 2, "x")) == 1.0 and memory.strength((2, 1, "x")) == 0.3
    memory.unfocus(1)
    assert memory.links[1, 2, "x"].strength_written == 1.0
    with pytest.raises(NotFoundError):
        memory.focus(77)


def test_batch_is_linked_to_memories_in_focus_only() -> None:
    """New memories are linked with every memory in focus, never with an entity that they do not name (4)."""
    memory = agent()
    say(memory, ("one", ["aaa"]))
    [new] = say(memory, ("two", ["bbb"]))
    assert {key[1] for key in memory.links_from(new)} == {1, memory.entity("bbb")}


@pytest.mark.parametrize(
    ("kind", "remembered"), [("courtesy", False), ("question", False), ("statement", True)]
)
def test_filler(kind: str, remembered: bool) -> None:
    """Filler makes no memory and owes no pass, but brings existing entities to mind; it makes none (4.1)."""
    memory = agent(focus_limit=1)
    say(memory, ("JWT is chosen", ["JWT"]))
    say(memory, ("rain", ["rain"]))
    owed = memory.owed
    memory.digest([Message("user", "JWT or SAML?")], [Segment("JWT or SAML?", ["JWT", "SAML"], kind=kind)])
    assert (memory.owed > owed) is remembered
    assert (memory.entity("SAML") is not None) is remembered
    assert memory.entity_focus == [memory.entity("SAML" if remembered else "JWT")]


def test_pure_questions_can_be_remembered() -> None:
    """With `remember_questions` a pure question is a memory (4.1)."""
    memory = agent(remember_questions=True)
    assert memory.digest([Message("user", "Why?")], [Segment("Why?", kind="question")]) == [1]
    assert memory.digest([Message("user", "Thanks")], [Segment("Thanks", kind="courtesy")]) == []


@pytest.mark.parametrize(
    ("role", "text", "pinned"),
    [
        ("user", "我对花生过敏，千万别忘了", "by_request"),
        ("user", "Please REMEMBER: Ann is allergic", "by_request"),
        ("user", "Remember that, no need to remember this", ""),
        ("user", "不用记住", ""),
        ("user", "I remember Ann", ""),
        ("user", "Don’t forget that Ann is allergic", "by_request"),
        ("assistant", "记住这个", ""),
    ],
)
def test_pin_on_request(role: str, text: str, pinned: str) -> None:
    """A user's memory that asks for it in words is pinned, unless denied (3c)."""
    memory = agent()
    [new] = memory.digest([Message(role, text)], [Segment(text, ["thing"])])
    assert memory.memories[new].pinned == pinned
    assert agent(pin_on_request=False).digest([Message(role, text)], [Segment(text)]) == [1]


def test_limit_of_pins() -> None:
    """At the limit a request unpins the oldest request; a pin by hand is refused and never taken away (3c, by hand)."""
    memory = agent(max_pinned=2)
    say(memory, "记住一", "记住二", "记住三")
    assert [m.pinned for m in memory.memories.values()] == ["", "by_request", "by_request"]
    with pytest.raises(TooManyPinnedError):
        memory.pin(1)
    memory.pin(2)
    memory.pin(3)
    [new] = say(memory, "记住四")
    assert memory.memories[new].pinned == ""
    memory.unpin(2)
    [new] = say(memory, "记住五")
    assert memory.memories[new].pinned == "by_request"


def test_pin_holds_links_with_entities() -> None:
    """Links between a pinned memory and its entities count 1.0 both ways; unpinning writes them as 1.0."""
    memory = agent(focus_limit=1, decay_rate=0.5)
    [first] = say(memory, ("Ann sings", ["Ann"]))
    say(memory, ("rain", ["rain"]))
    memory.pin(first)
    passes(memory, 6)
    ann = memory.entity("Ann")
    assert memory.memories[first].scan_count == 6
    assert memory.stored_strength((ann, first, "about")) < 0.05
    assert memory.strength((ann, first, "about")) == memory.strength((first, ann, "about")) == 1.0
    memory.unpin(first)
    assert (
        memory.stored_strength((ann, first, "about")) == memory.stored_strength((first, ann, "about")) == 1.0
    )


def test_pinned_memory_is_neither_shortened_nor_forgotten() -> None:
    """A pass only scans a pinned memory; a shortened one stays as short as it is (5, by hand)."""
    memory = graph({1: "x" * 40, 2: "y" * 40}, {})
    memory.put_link((2, 1, ""), 0.5)
    passes(memory)
    assert len(memory.memories[1].content) == 20 and 2 not in memory.memories
    memory.pin(1)
    passes(memory, 50)
    assert len(memory.memories[1].content) == 20
    memory.unpin(1)
    passes(memory)
    assert 1 not in memory.memories


def test_forgotten_memory_leaves_a_loose_end_at_full_strength() -> None:
    """An entity's live link to a memory is written as 1.0 when that is forgotten; a broken one is not (3)."""
    memory = graph({1: "x" * 40}, {8: "topic", 9: "other"})
    memory.put_link((8, 1, "about"), 0.05)
    memory.put_link((9, 1, "about"), 0.001)
    memory.memories[1].scan_count = -1  # visited before the entities
    passes(memory)
    assert memory.forgotten == {1}
    assert memory.strength((8, 1, "about")) == 0.97
    assert memory.loose_ends(8) == [(8, 1, "about")] and 9 not in memory.entities


def test_trace_lives_until_its_loose_end_breaks() -> None:
    """An entity without memories stays while its loose end is live, then it is deleted (5)."""
    memory = graph({1: "x"}, {9: "topic"})
    memory.put_link((9, 1, "about"), 1.0)
    memory.forget(1)
    scans = 0
    while 9 in memory.entities:
        scans = memory.entities[9].scan_count
        passes(memory)
    assert scans == 152  # 0.97 ** 152 < 0.01
    assert memory.pass_number == 1 + sum(min(1 + k // 50, 3) for k in range(1, 153))


def test_trace_mentioned_again_keeps_its_loose_end() -> None:
    """A trace is the same entity when it is mentioned again (8)."""
    memory = graph({1: "x"}, {9: "topic"})
    memory.put_link((9, 1, "about"), 1.0)
    memory.forget(1)
    say(memory, ("new", ["topics"]))
    assert memory.entity("topic") == 9 and memory.loose_ends(9) == [(9, 1, "about")]


def test_entity_waits_at_most_three_passes() -> None:
    """A memory waits longer with every scan; an entity never longer than `entity_wait_max` (5.2)."""
    memory = graph({1: "x"}, {9: "topic"}, long_term_factor=0.5)
    memory.put_link((1, 9, ""), 1.0)
    memory.put_link((9, 1, ""), 1.0)
    memory.patch(decay_rate=1.0)
    passes(memory, 60)
    assert memory.entities[9].scan_count >= 20
    assert memory.memories[1].scan_count < 15


def test_entity_in_focus_stays_without_memories() -> None:
    """An entity in focus whose last memory is forgotten stays until it falls off (8)."""
    memory = graph({1: "x"}, {9: "topic"}, decay_rate=1e-9)
    memory.put_link((9, 1, ""), 1.0)
    memory.focus(9)
    memory.forget(1)
    passes(memory, 3)
    assert memory.entities[9].scan_count == 3
    memory.unfocus(9)
    passes(memory)
    assert memory.entities == {}


def test_importance_counts_entities_and_what_was_scanned_before() -> None:
    """Entities are sources of importance; those already scanned in a pass count decayed (2, 5)."""
    memory = graph({5: "x" * 100}, {3: "topic"}, decay_rate=0.5)
    memory.put_link((3, 5, ""), 0.8)
    memory.put_link((5, 3, ""), 1.0)
    assert memory.importance(5) == 0.8
    passes(memory)
    assert len(memory.memories[5].content) == 40


def test_deletion_leaves_no_loose_end() -> None:
    """A deleted memory takes its links at both ends, and an entity left with nothing, in or out of focus (8)."""
    memory = agent()
    one, two = say(memory, ("tea in Rome", ["tea", "Rome"]), ("tea at home", ["Teas", "home"]))
    memory.delete(one)
    assert all(one not in key[:2] for key in memory.links)
    assert memory.entity("Rome") is None and memory.erased == {one}
    assert memory.entities[memory.entity("tea")].name == "Teas"  # the oldest memory left gives the name
    memory.delete(two)
    assert memory.entities == {} and memory.entity_focus == [] and memory.links == {}


def test_deletion_keeps_a_trace_with_another_loose_end() -> None:
    """An entity with a loose end of a forgotten memory stays, unless the deleted memory gave its name (8)."""
    for named_by, stays in [(1, True), (2, False)]:
        memory = graph({1: "a", 2: "b"}, {9: "topic"})
        memory.entities[9].named_by = named_by
        for target in (1, 2):
            memory.put_link((9, target, ""), 1.0)
        memory.forget(1)
        memory.delete(2)
        assert (9 in memory.entities) is stays


def test_correction_moves_entities() -> None:
    """A corrected memory is linked with the entities of its new keywords only, without a loose end (8)."""
    memory = agent()
    [one] = say(memory, ("Ann likes tea", ["Ann", "tea"]))
    tea = memory.entity("tea")
    memory.correct(one, "Bob likes tea", ["Bob", "tea"])
    assert memory.entity("Ann") is None
    assert memory.entities_of(one) == [tea, memory.entity("Bob")]
    assert memory.loose_ends(memory.entity("Bob")) == []


def test_nodes_policy_empties_the_entity_list() -> None:
    """`focus_policy` set to `nodes` empties the entity list at the next batch or pass and makes no entity (7, 8)."""
    for next_thing in [passes, lambda memory: say(memory, ("new", ["fresh"]))]:
        memory = agent()
        say(memory, ("old", ["topic"]))
        memory.patch(focus_policy="nodes")
        assert memory.entity_focus
        next_thing(memory)
        assert memory.entity_focus == [] and memory.entity("fresh") is None


def test_changed_entity_memories_waits_for_the_next_pass() -> None:
    """`entity_memories` takes effect at the next pass (8)."""
    memory = agent()
    say(memory, ("one", ["topic"]), ("two", ["topic"]))
    topic = memory.entity("topic")
    memory.patch(entity_memories=1)
    assert len(memory.window(topic)) == 2
    passes(memory)
    assert memory.window(topic) == [2]


def test_changed_decay_rate_keeps_present_strengths() -> None:
    """A new rate starts from the stored strength of the moment, for links of entities too (3)."""
    memory = graph({1: "x" * 9}, {9: "topic"}, decay_rate=0.9)
    memory.put_link((9, 1, ""), 0.8)
    memory.entities[9].scan_count = 2
    memory.patch(decay_rate=0.5)
    assert memory.links[9, 1, ""].strength_written == 0.8 * 0.9**2
    memory.entities[9].scan_count = 3
    assert memory.strength((9, 1, "")) == 0.8 * 0.9**2 * 0.5


def test_slots_evict_memories_only() -> None:
    """Under `slots`, entities and pinned memories are never evicted; an evicted memory leaves loose ends (5.2, 8)."""
    memory = agent(strategy="slots", max_nodes=2, focus_limit=1, slot_sample_size=9)
    say(memory, ("one", ["aaa"]))
    memory.pin(1)
    say(memory, ("two", ["bbb"]))
    say(memory, ("three", ["ccc"]))
    assert sorted(m.content for m in memory.memories.values()) == [
        "one",
        "three",
        "two",
    ]  # no candidate: exceeded
    say(memory, ("four", ["ddd"]))
    assert sorted(m.content for m in memory.memories.values()) == ["four", "one", "three"]
    assert memory.loose_ends(memory.entity("bbb")) and len(memory.entities) == 4


def test_slots_pass_visits_due_entities_after_the_drawn_memories() -> None:
    """A pass under `slots` scans a draw of memories, then the entities that are due (5.2)."""
    memory = agent(strategy="slots", compression_batch_size=1, focus_limit=1)
    say(memory, ("one " * 5, ["aaa"]), ("two " * 5, ["bbb"]), ("three " * 5, ["ccc"]))
    memory.compress(cut, Random(1))
    assert sum(m.scan_count for m in memory.memories.values()) == 1
    assert [entity.scan_count for entity in memory.entities.values()] == [1, 1, 1]


def test_dates_and_speaker_of_a_memory() -> None:
    """A memory takes its time from its message, else from acceptance; the speaker is kept without a label (1)."""
    memory = agent(speaker_prefix="never")
    messages = [Message("user", "a", "Ann", 5), Message("user", "b", "Bob")]
    segments = [Segment("a", messages=[0]), Segment("b", messages=[1]), Segment("c", messages=[0, 1])]
    memory.digest(messages, segments, accepted_at=9)
    assert [(m.speaker, m.label, m.created_at) for m in memory.memories.values()] == [
        ("Ann", "", 5),
        ("Bob", "", 9),
        ("", "", 5),
    ]


def test_defaults_are_those_of_the_page() -> None:
    """The defaults of section 7."""
    defaults = Parameters()
    assert (defaults.entities_per_memory, defaults.entity_memories, defaults.entity_wait_max) == (3, 32, 3)
    assert (defaults.cue_memories, defaults.max_pinned, defaults.focus_policy) == (32, 100, "both")
