"""The second edition's oracle: recall and its text form (memory model 6)."""

from __future__ import annotations

import copy

import pytest

from tests.support.second_edition.histories import agent, graph, passes, say
from tests.support.second_edition.oracle import SecondEdition
from tests.support.second_edition.records import Message, Segment

DAY = 86_400_000


def ids(answer) -> list[int]:
    return [memory_id for memory_id, _ in answer.results]


def fading(contents: dict[int, str], entities: dict[int, str], links: dict, **parameters) -> SecondEdition:
    """Return an agent with these links, the memories of `contents` in focus, lowest id newest."""
    memory = graph(contents, entities, **parameters)
    for key, strength in links.items():
        memory.put_link(key, strength)
    memory.memory_focus = sorted(contents)[:5]
    return memory


def test_nothing_known() -> None:
    """Without a start the answer is empty (6, 8)."""
    assert agent().recall(["tea"], [], 2).text == ""
    memory = agent()
    say(memory, ("rain", ["rain"]))
    assert memory.recall(["tea"], [], 2).text == ""


def test_cue_reaches_what_focus_does_not() -> None:
    """A keyword starts at the entities it names and at the newest memories that contain it (cue)."""
    memory = agent()
    say(memory, ("我喜欢吃苹果", ["苹果"]))
    for number in range(60):
        say(memory, (f"第{number}天下雨", [f"雨{number}"]))
        passes(memory)
    say(memory, ("我喜欢吃苹果", ["苹果"]))
    apples = [i for i, m in memory.memories.items() if "苹果" in m.content]
    assert ids(memory.recall(["苹果"], [], 2)) == apples[::-1]
    assert ids(memory.recall(["苹果"], [], 0)) == apples[::-1]
    assert len(apples) == 2
    assert set(apples) <= set(ids(memory.recall([], [], 2)))  # the entity is in focus
    memory.patch(focus_policy="nodes")
    assert ids(memory.recall(["苹果"], [], 0)) == apples[1:]  # no cue: the memory in focus only


def test_cue_memories_and_entities_are_limited() -> None:
    """A keyword names the newest `cue_memories` memories and at most 16 entities, equal and short ones first."""
    memory = graph(
        dict.fromkeys(range(1, 6), "tea"), {i: f"tea {'x' * (30 - i)}" for i in range(10, 28)}, cue_memories=2
    )
    memory.entities[10].key = "tea"
    starts = memory.recall(["tea"], [], 0).starts
    assert starts == [[10, *range(27, 12, -1), 5, 4]]
    assert ids(memory.recall(["tea"], [], 0)) == [5, 4]


def test_positions() -> None:
    """Nodes that the keywords name come first, then memories in focus, then entities in focus (starts)."""
    memory = fading({1: "one", 2: "two", 3: "tea"}, {9: "topic", 10: "other"}, {})
    memory.memory_focus, memory.entity_focus = [2, 1], [10, 9]
    answer = memory.recall(["tea"], [], 2)
    assert answer.starts == [[3], [2], [1], [10], [9]]


def test_strongest_path_of_at_most_depth_hops() -> None:
    """A stronger but longer path does not hide what a weaker, shorter one still reaches (walk)."""
    links = {(9, 2, ""): 0.9, (2, 3, ""): 0.9, (9, 3, ""): 0.5, (3, 4, ""): 1.0}
    memory = fading({2: "b", 3: "c", 4: "d"}, {9: "topic"}, links)
    memory.memory_focus = []
    for hops, reached in [
        (0, {}),
        (1, {2: 0.9, 3: 0.5}),
        (2, {2: 0.9, 3: 0.81, 4: 0.5}),
        (3, {2: 0.9, 3: 0.81, 4: 0.81}),
    ]:
        # The walk from the entity alone: every memory contains "", which matches but is no cue.
        memory.patch(cue_memories=0)
        assert dict(memory.recall(["topic", ""], [], hops).results) == pytest.approx(reached)


def test_walk_leaves_an_entity_by_its_strongest_links() -> None:
    """A walk follows at most 256 links of an entity, the strongest, of equal ones the newest."""
    memory = graph(dict.fromkeys(range(1, 301), "x"), {900: "topic"}, max_search_results=0)
    for i in range(1, 301):
        memory.put_link((900, i, ""), 0.9 if i <= 10 else 0.5)
    memory.put_link((900, 888, ""), 1.0)  # a loose end takes no place
    assert set(ids(memory.recall(["topic"], [], 1))) == {*range(1, 11), *range(55, 301)}


def test_match_by_link_speaker_and_keyword() -> None:
    """A keyword matches by content, keyword, speaker or a live link with an entity that it names; never by role."""
    memory = agent()
    memory.digest(
        [Message("user", "a", "Zoe"), Message("assistant", "b")],
        [Segment("short", ["topic"], messages=[0]), Segment("other", messages=[1])],
    )
    memory.memories[1].keywords = []  # lost by shortening
    memory.memories[2].label = "assistant: "
    assert ids(memory.recall(["TOPICS"], [], 2)) == [1]
    assert ids(memory.recall(["zo"], [], 2)) == [1]
    assert ids(memory.recall(["assistant"], [], 2)) == []
    assert memory.recall(["topic", "Zoe", "ZOE"], [], 2).matched_keywords == {1: ["topic", "Zoe"]}


def test_order_by_keywords_matched() -> None:
    """More keywords matched come first, then the stronger path, then position, then the newer memory (order)."""
    memory = fading({1: "tea milk", 2: "tea", 3: "tea", 4: "milk"}, {}, {})
    memory.memory_focus = [2, 1, 3]
    assert ids(memory.recall(["tea", "milk"], [], 0)) == [1, 4, 3, 2]
    memory.patch(cue_memories=0)
    assert ids(memory.recall(["tea", "milk"], [], 0)) == [1, 2, 3]
    assert ids(memory.recall(["tea", "TEA"], [], 0, max_results=2)) == [2, 1]


def test_relation_filter() -> None:
    """Only links of these names, or at an entity of that name, are followed; a start needs one (relations)."""
    links = {
        (1, 2, "cause"): 1.0,
        (2, 1, "place"): 1.0,
        (2, 3, "Cause"): 1.0,
        (1, 9, "about"): 1.0,
        (9, 4, "x"): 1.0,
    }
    memory = fading({1: "a", 2: "b", 3: "c", 4: "d"}, {9: "同事"}, links)
    memory.memory_focus = [1]
    assert ids(memory.recall([], ["CAUSE"], 2)) == [3, 2]
    assert ids(memory.recall([], ["cause", "place"], 2)) == [3, 2, 1][:3]
    assert ids(memory.recall([], ["同事"], 2)) == [4]
    assert ids(memory.recall([], ["place"], 2)) == []


def test_unknown_relations_are_dropped_and_reported() -> None:
    """The page's example: where nothing bears 同事 or 负责, the filter is dropped and reported (9)."""
    memory = agent()
    say(memory, ("项目的进度慢了", ["项目", "进度"]))
    answer = memory.recall(["项目", "进度"], ["同事", "负责"], 2)
    assert answer.relations_unknown == ["同事", "负责"]
    assert answer.text == "[记忆] 项目的进度慢了"
    assert memory.recall(["项目"], ["同事", "belongs to"], 2).relations_unknown == ["同事"]


def test_time_range() -> None:
    """Memories out of the range do not match and are no cue, but the walk passes through them (time_range)."""
    memory = graph({1: "tea a", 2: "tea b", 3: "tea c"}, {}, cue_memories=1)
    for memory_id in memory.memories:
        memory.memories[memory_id].created_at = memory_id * 10
    memory.put_link((3, 2, ""), 0.5)
    memory.put_link((2, 1, ""), 0.5)
    memory.memory_focus = [3]
    assert ids(memory.recall(["tea"], [], 2, time_range=(10, 20))) == [1]
    assert ids(memory.recall([], [], 2, time_range=(None, 30))) == [2, 1]
    assert ids(memory.recall([], [], 2, time_range=(30, None))) == [3]


@pytest.mark.parametrize(
    ("relation", "zh", "en"),
    [
        ("属于", "它属于某个已遗忘的事物", "It belonged to something now forgotten"),
        ("involves", "它涉及某个已遗忘的事物", "It involved something now forgotten"),
        ("讨论", "它讨论过某个已遗忘的事物", "It discussed something now forgotten"),
        ("mentions", "它提到过某个已遗忘的事物", "It mentioned something now forgotten"),
        ("关于", "与某个已遗忘的事物有关联", "It was linked to something now forgotten"),
        ("", "与某个已遗忘的事物有关联", "It was linked to something now forgotten"),
        (
            "previous",
            "在它之前还有一件事，但我想不起来了",
            "Something came before it, but I can't recall what",
        ),
        ("之前", "在它之前还有一件事，但我想不起来了", "Something came before it, but I can't recall what"),
        ("下文", "在它之后还有一件事，但我想不起来了", "Something came after it, but I can't recall what"),
        ("after", "在它之后还有一件事，但我想不起来了", "Something came after it, but I can't recall what"),
        ("原因", "它有个原因，但我想不起来了", 'It had to do with "原因", but I can\'t recall how'),
    ],
)
def test_text_of_dangling_links(relation: str, zh: str, en: str) -> None:
    """Each row of the table, in the language of the memory that has the link."""
    for content, sentence in [("中文", "[记忆] " + zh), ("english", "[Memory] " + en)]:
        memory = fading({1: content}, {}, {(1, 90, relation): 1.0})
        assert memory.recall(["nothing"], [], 2).text == sentence
        is_order = relation in ("", "previous", "之前", "下文", "after")
        matching = memory.recall([], [], 2).text.split("\n---\n")
        assert matching[1:] == ([] if is_order else [sentence])


@pytest.mark.parametrize(
    ("name", "keyword", "zh", "sentence"),
    [
        ("花生", "花生", True, "关于花生，我曾经知道些什么，但想不起来了"),
        ("Rome", "rome", False, "I once knew something about Rome, but I can't recall it"),
        ("Rome 罗马", "rome", True, "关于Rome 罗马，我曾经知道些什么，但想不起来了"),
    ],
)
def test_something(name: str, keyword: str, zh: bool, sentence: str) -> None:
    """A keyword that names a trace only is answered with *something* (loose ends 1, 8)."""
    memory = fading({}, {9: name}, {(9, 1, "about"): 1.0})
    assert memory.recall([keyword], [], 2).text == ("[记忆] " if zh else "[Memory] ") + sentence
    memory.patch(locale="en")
    assert (
        memory.recall([keyword], [], 2).text
        == f"[Memory] I once knew something about {name}, but I can't recall it"
    )
    assert memory.recall(["other"], [], 2).text == ""
    memory.entity_focus = [9]
    assert "I once knew something" in memory.recall([], [], 0).text


def test_more() -> None:
    """*More* is said once, with fewer than 3 memories, of an entity that a keyword names (loose ends 1)."""
    links = {(9, 70, "about"): 1.0, (9, 1, "about"): 1.0, (10, 70, "about"): 1.0, (10, 1, "about"): 1.0}
    memory = fading({1: "tea", 2: "rain", 3: "tea", 4: "tea"}, {9: "tea", 10: "tea house"}, links)
    memory.memory_focus = [2]
    memory.patch(cue_memories=0)
    more = "[Memory] I once knew more about tea, but I can't recall it"
    assert memory.recall(["tea"], [], 1).text == f"[Memory] tea\n---\n{more}"
    memory.patch(cue_memories=32)
    assert memory.recall(["tea"], [], 1).text == "\n---\n".join(["[Memory] tea"] * 3)
    assert memory.recall(["tea"], [], 1, max_results=2).text.endswith(more)
    memory.entity_focus = [9]
    assert "more" not in memory.recall([], [], 1, max_results=1).text


def test_language_of_something_follows_the_answer() -> None:
    """*Something* is Chinese where a memory of the answer, a keyword or the name has Han (text form)."""
    memory = fading({1: "去罗马 tea"}, {9: "tea"}, {(9, 70, "about"): 1.0})
    assert (
        memory.recall(["tea"], [], 1).text
        == "[记忆] 去罗马 tea\n---\n[记忆] 关于tea，我曾经知道些什么，但想不起来了"
    )


def test_never_knew_and_once_knew_differ() -> None:
    """Others' loose ends are said only where nothing matches and no keyword names an entity (loose ends 3)."""
    links = {(2, 90, "cause"): 1.0, (1, 2, ""): 1.0, (3, 91, "place"): 1.0}
    memory = fading({1: "aa", 2: "bb", 3: "cc"}, {9: "known"}, links)
    memory.memory_focus = [1]
    sentence = '[Memory] It had to do with "cause", but I can\'t recall how'
    assert memory.recall(["q"], [], 2).text == sentence
    assert memory.recall(["q"], [], 0).text == ""  # not visited
    assert memory.recall(["known"], [], 2).text == ""
    assert memory.recall(["aa"], [], 2).text == "[Memory] aa"
    assert memory.recall(["q"], ["place"], 2).text == ""  # the filter applies to loose ends too


def test_loose_ends_are_at_most_three_and_in_order() -> None:
    """Entities first, then links of matching memories, strongest and newest first, equal sentences once."""
    links = {(9, 60, "about"): 1.0, (1, 90, "属于"): 1.0, (1, 91, "cause"): 1.0, (1, 92, "place"): 1.0}
    links |= {(1, 93, "place"): 0.5, (1, 94, "原因"): 0.1}
    memory = fading({1: "aa tea"}, {9: "tea"}, links)
    memory.memory_focus = []
    assert memory.recall(["tea"], [], 1, max_results=1).text.split("\n---\n") == [
        "[Memory] aa tea",
        "[Memory] I once knew something about tea, but I can't recall it",
        '[Memory] It had to do with "place", but I can\'t recall how',
        '[Memory] It had to do with "cause", but I can\'t recall how',
    ]


def test_text_of_memories() -> None:
    """Label and content, white space folded, dates only on request (text form)."""
    memory = graph({1: "hello\n---\n world", 2: " 你好\u3000\n世界"}, {})
    memory.memories[1].label, memory.memories[1].created_at = "Ann: ", 20_524 * DAY
    memory.memories[2].label, memory.memories[2].created_at = "用户：", 20_525 * DAY - 1
    memory.memory_focus = [1, 2]
    assert memory.recall([], [], 0).text == "[Memory] Ann: hello --- world\n---\n[记忆] 用户： 你好 世界"
    dated = memory.recall([], [], 0, dates=True).text.split("\n---\n")
    assert dated == ["[Memory] [2026-03-12] Ann: hello --- world", "[记忆] [2026-03-12] 用户： 你好 世界"]


def test_recall_changes_nothing() -> None:
    """Recall changes no focus, strength or scan count (6)."""
    memory = agent(focus_limit=2)
    for number in range(9):
        say(memory, (f"tea {number}", ["tea", f"thing {number}"]))
        passes(memory)
    before = copy.deepcopy(vars(memory))
    memory.recall(["tea", "thing"], ["about", "nothing"], 3, dates=True, time_range=(0, 5))
    assert vars(memory) == before
