"""Importance, decay, focus: the rules of the memory model in examples computed by hand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ebbtide.changes import Change
from ebbtide.memory import network as memory_network
from ebbtide.memory.association import fold_relation, recall
from ebbtide.memory.compression import nodes_to_visit, visit
from ebbtide.memory.draft import Draft
from ebbtide.memory.network import Network
from ebbtide.memory.strength import target_length
from ebbtide.memory.wording import joined, one_line, speaker_labels, word_dangling, word_memory
from ebbtide.parameters import AgentParameters
from ebbtide.records import Cue, Link, Node, PassState
from tests.support.networks import reach


def network(
    *links: tuple[int, int, str, float], focus: tuple[int, ...] = (), lengths: int = 100, **parameters: object
) -> Network:
    """Return a network of the nodes that these links name, all living."""
    made = Network(AgentParameters(**parameters))  # type: ignore[arg-type]
    ids = sorted({n for source, target, _, _ in links for n in (source, target)} | set(focus))
    made.apply(
        Change(
            nodes=[Node(n, "x" * lengths, "p", (), 1, lengths) for n in ids],
            links=[
                Link(source, target, relation, strength, 0) for source, target, relation, strength in links
            ],
            focus=focus,
            next_node_id=max(ids, default=0) + 1,
        )
    )
    return made


def says(made: Network, texts: dict[int, tuple[str, tuple[str, ...]]]) -> Callable[[int], Node]:
    """Set (content, keywords) of nodes; return a function that looks them up."""
    nodes = {n: Node(n, content, "p", own, 1, len(content)) for n, (content, own) in texts.items()}
    made.apply(Change(nodes=list(nodes.values())))
    return nodes.__getitem__


def visited(made: Network, node_id: int) -> str:
    """Return what a visit of a pass does to one node."""
    draft = Draft(made)
    _, shortening = visit(draft, [node_id], PassState(1, "scan", made.next_node_id))
    if shortening is not None:
        return "shorten"
    if node_id in draft.change.forgotten:
        return "forget"
    return "keep" if node_id in draft.change.scanned else "skip"


def is_due(scan_count: int, last_pass: int, pass_number: int, factor: float) -> bool:
    """Whether a pass visits a node with this scan count and last pass."""
    made = network((1, 2, "", 1.0), long_term_factor=factor)
    slot = made.slot_of(2)
    made.slots["scan_count"][slot], made.slots["last_pass"][slot] = scan_count, last_pass
    return 2 in nodes_to_visit(made, PassState(pass_number, "scan", made.next_node_id))


def test_importance_is_what_points_at_a_memory() -> None:
    """Incoming links support a node; its outgoing links do not."""
    made = network((1, 2, "", 0.5), (3, 2, "", 0.25), (2, 1, "", 0.125))
    assert Draft(made).importance(2) == 0.75
    assert Draft(made).importance(1) == 0.125
    assert Draft(made).importance(3) == 0


def test_a_focus_holds_what_it_points_at() -> None:
    """While its source is in focus, a link counts 1.0 whatever its strength."""
    made = network((1, 2, "", 0.03), focus=(1,))
    assert Draft(made).importance(2) == 1.0


def test_a_broken_link_supports_nothing() -> None:
    """A link below link_break_threshold does not count."""
    made = network((1, 2, "", 0.009))
    assert Draft(made).importance(2) == 0
    assert list(made.links_from(1)) == []


def test_the_nodes_to_which_a_node_is_linked() -> None:
    """Living nodes at the end of live links, those of the strongest links first."""
    made = network((1, 2, "", 0.3), (1, 3, "", 0.9), (1, 4, "", 0.3), (1, 5, "", 0.009), (2, 1, "", 0.5))
    assert made.linked_from(1).tolist() == [3, 2, 4]
    made.apply(Change(forgotten=[3]))
    assert made.linked_from(1).tolist() == [2, 4]


def test_links_decay_with_the_scans_of_their_source() -> None:
    """Each scan of the source multiplies the link by decay_rate; scans of the target do nothing."""
    made = network((1, 2, "", 0.5), (2, 1, "", 0.5), decay_rate=0.5)
    made.apply(Change(scanned=np.array([1]), scanned_in=1))
    made.apply(Change(scanned=np.array([1]), scanned_in=2))
    assert Draft(made).importance(2) == 0.125
    assert Draft(made).importance(1) == 0.5


def test_leaving_focus_writes_the_links_as_one() -> None:
    """When a node leaves focus, its links are written as 1.0 and decay from the next scan on."""
    made = network((1, 2, "", 0.5), focus=(1,), decay_rate=0.5)
    draft = Draft(made)
    draft.set_focus(())
    assert draft.change.links == [Link(1, 2, "", 1.0, 0)]
    made.apply(draft.change)
    assert Draft(made).importance(2) == 1.0
    made.apply(Change(scanned=np.array([1]), scanned_in=1))
    assert Draft(made).importance(2) == 0.5


def test_forgetting_a_supporter_removes_its_support() -> None:
    """A forgotten node loses its outgoing links; links that point at it dangle."""
    made = network((1, 2, "朋友", 0.5), (2, 1, "", 0.5))
    made.apply(Change(forgotten=[1]))
    assert Draft(made).importance(2) == 0
    assert made.dangling(2) == [(1, "")]
    assert made.link_count == 1


def test_slots_of_forgotten_nodes_are_dropped_but_not_sought_at_every_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Many unreferenced slots are dropped at once; slots with dangling links stay and are not re-examined each time."""
    monkeypatch.setattr(memory_network, "MIN_DEAD", 4)
    drops = 0
    plain = Network._drop_dead

    def counted(self: Network) -> None:
        nonlocal drops
        drops += 1
        plain(self)

    monkeypatch.setattr(Network, "_drop_dead", counted)
    made = network(*((1, n, "", 1.0) for n in range(2, 40)), focus=(1,))
    made.apply(Change(forgotten=list(range(2, 40))))
    assert drops == 1
    for n in range(40, 60):
        made.apply(Change(nodes=[Node(n, "x", "p", (), 1, 1)], forgotten=[n]))
    assert drops < 6
    assert made.slots.count < 39 + 1 + 20
    assert len(made.dangling(1)) == 38
    assert made.node_ids() == [1]


def test_a_draft_sees_what_it_is_about_to_change() -> None:
    """Within a pass, links of sources visited earlier count decayed, and those of forgotten ones do not count."""
    made = network((1, 3, "", 0.5), (2, 3, "", 0.25), decay_rate=0.5)
    draft = Draft(made)
    draft.scan([1], 1)
    assert draft.importance(3) == 0.5
    draft.forget(2)
    assert draft.importance(3) == 0.25
    assert Draft(made).importance(3) == 0.75


@pytest.mark.parametrize(
    ("length", "importance", "target"),
    [(60, 1.0, 60), (60, 2.5, 60), (60, 0.5, 30), (60, 0.25, 15), (10, 0.7, 7), (3, 1 / 3, 1), (60, 0.0, 0)],
)
def test_target_length(length: int, importance: float, target: int) -> None:
    """The target is the share of the original length; rounding errors do not cost a character."""
    assert target_length(length, importance) == target


@pytest.mark.parametrize(
    ("strength", "verdict"),
    [
        (1.0, "keep"),
        (0.8, "keep"),
        (0.75, "shorten"),
        (0.05, "shorten"),
        (0.049, "forget"),
        (0.001, "forget"),
    ],
)
def test_a_visit_keeps_shortens_or_forgets(strength: float, verdict: str) -> None:
    """At 100 characters: whole at 1, shortened if it loses a quarter, forgotten below five characters."""
    made = network((1, 2, "", strength))
    assert visited(made, 2) == verdict


def test_a_short_memory_with_full_support_lives() -> None:
    """The threshold applies only if the content would shrink."""
    made = network((1, 2, "", 1.0), lengths=2)
    assert visited(made, 2) == "keep"


def test_nodes_in_focus_are_never_visited() -> None:
    """A node in focus is neither scanned nor decayed, even without support."""
    made = network((1, 2, "", 0.001), focus=(2,))
    assert visited(made, 2) == "skip"


def test_often_scanned_is_rarely_scanned() -> None:
    """After its k-th scan a node is due 1 + floor(k x factor) passes later."""
    assert is_due(0, 0, 1, 0.5)
    assert is_due(1, 1, 2, 0.5)
    assert not is_due(2, 2, 3, 0.5)
    assert is_due(2, 2, 4, 0.5)
    assert is_due(1000, 7, 8, 0)


def test_a_longer_stronger_path_does_not_hide_what_a_shorter_one_reaches() -> None:
    """Node 3 is near by a weak link; the strong detour to 2 takes one more hop and cannot reach it."""
    made = network(
        (1, 2, "", 0.1), (1, 4, "", 0.9), (4, 2, "", 0.9), (2, 3, "", 0.5), focus=(1,), link_break_threshold=0
    )
    made.apply(Change(focus=()))
    made.focus = ()
    made.apply(Change(focus=(9,), nodes=[Node(9, "x", "p", (), 1, 1)], links=[Link(9, 1, "", 1.0, 0)]))
    by_id = {r.node_id: r.strength for r in reach(made, (), 3)}
    assert by_id[2] == 0.81
    assert by_id[3] == 0.05
    assert {r.node_id: r.strength for r in reach(made, (), 4)}[3] == 0.405


def test_equal_paths_go_by_the_newest_focus_then_the_newest_node() -> None:
    """Ties are broken by the newest focus, then by the higher id."""
    made = network((7, 1, "", 1.0), (8, 2, "", 1.0), (8, 3, "", 1.0), focus=(8, 7))
    assert [r.node_id for r in reach(made, (), 1)] == [8, 3, 2, 7, 1]


def test_cycles_are_harmless_and_depth_zero_is_the_focus() -> None:
    """Each node occurs once, newer ids first; depth 0 is the focus; without a focus there is nothing."""
    made = network((1, 2, "", 1.0), (2, 1, "", 1.0), focus=(1,))
    assert [r.node_id for r in reach(made, (), 8)] == [2, 1]
    assert [r.node_id for r in reach(made, (), 0)] == [1]
    assert reach(network((1, 2, "", 1.0)), (), 8) == []


def test_a_relation_filter_follows_names_in_both_languages() -> None:
    """下文 and next are the same; the focus itself is then no result."""
    made = network((1, 2, "下文", 1.0), (1, 3, "朋友", 1.0), focus=(1,))
    content_of = says(made, {1: ("one", ()), 2: ("two", ()), 3: ("three", ())})
    answer = recall(made, Cue(relations=("NEXT",)), content_of, "auto")
    assert [node.content for _, node in answer.memories] == ["two"]
    assert fold_relation("Previous") == fold_relation("上文")


def test_never_knew_and_once_knew_differ() -> None:
    """Sentences concern what matching memories were linked to or, without a match, what the others were."""
    made = network((1, 2, "生日", 1.0), (1, 3, "", 1.0), (3, 4, "", 1.0), focus=(3, 1))
    made.apply(Change(forgotten=[2, 4]))
    content_of = says(made, {1: ("小明的生日会", ("小明",)), 3: ("The beach", ("beach",))})
    one = recall(made, Cue(keywords=("小明",)), content_of, "auto")
    assert one.loose_ends == ("[记忆] 它有个生日，但我想不起来了",)
    none = recall(made, Cue(keywords=("zebra",)), content_of, "auto")
    assert none.memories == ()
    assert none.loose_ends == (
        "[Memory] It was linked to something now forgotten",
        "[记忆] 它有个生日，但我想不起来了",
    )


def test_the_text_form_is_fixed_byte_for_byte() -> None:
    """Marks, separator, white space and both languages are as specified; nothing is the empty string."""
    assert joined([]) == ""
    assert (
        joined([word_memory("a\n---\nb", "auto"), word_memory("中文", "auto"), "x"])
        == "[Memory] a --- b\n---\n[记忆] 中文\n---\nx"
    )
    assert word_memory("中文", "en") == "[Memory] 中文"
    assert word_memory("plain", "zh") == "[记忆] plain"
    assert word_dangling("", "中", "auto") == "[记忆] 与某个已遗忘的事物有关联"
    assert word_dangling("生日", "中", "auto") == "[记忆] 它有个生日，但我想不起来了"
    assert word_dangling("", "x", "auto") == "[Memory] It was linked to something now forgotten"
    assert word_dangling("pet", "x", "auto") == '[Memory] It had to do with "pet", but I can\'t recall how'
    assert one_line("a \t\r\n\u3000b\u2028c") == "a b c"


@pytest.mark.parametrize(
    ("setting", "spoken", "labels"),
    [
        ("auto", [("user", "", "hi"), ("user", "", "you")], ["", ""]),
        ("auto", [("user", "", "hi"), ("assistant", "", "你好")], ["user: ", "助手："]),
        ("auto", [("user", "Ann", "hi"), ("user", "", "you")], ["Ann: ", ""]),
        ("always", [("user", "", "你好")], ["用户："]),
        ("always", [("system", " 林\n月 ", "你好")], ["林 月: "]),
        ("never", [("user", "Ann", "hi"), ("assistant", "", "yo")], ["", ""]),
    ],
)
def test_speaker_labels(setting: str, spoken: list[tuple[str, str, str]], labels: list[str]) -> None:
    """The speaker if given, the role if a batch mixes roles, in the language of the text."""
    assert speaker_labels(spoken, setting, "auto") == labels
