"""Links between memories and entities in rare orders of events (memory model, 3)."""

from __future__ import annotations

import pytest

from ebbtide.changes import Change
from ebbtide.memory.association import recall
from ebbtide.memory.draft import Draft
from ebbtide.memory.focus import pin_by_hand
from ebbtide.memory.network import Network
from ebbtide.memory.wording import word_entity
from ebbtide.parameters import AgentParameters
from ebbtide.records import Cue, Entity, Link, Node

TEA = Node(id=1, content="green tea", phrase="", keywords=("tea",), created_at_ms=0, original_length=9)
ENTITY = Entity(2, "tea", "tea", 1)


def network(*links: Link) -> Network:
    """Return a memory about tea, the entity, and these links."""
    made = Network(AgentParameters())
    made.apply(Change(nodes=[TEA], entities={2: ENTITY}, links=list(links), next_node_id=3))
    return made


@pytest.mark.parametrize("is_entity_first", [True, False])
def test_no_link_of_a_deleted_entity_is_written(is_entity_first: bool) -> None:
    """A pass that deletes an entity and forgets a memory of its broken link writes no link of the entity."""
    draft = Draft(network(Link(2, 1, "about", 0.001, 0)))
    if is_entity_first:
        draft.drop_entities([2])
        draft.forget(1)
    else:
        draft.forget(1)
        draft.drop_entities([2])
    assert (draft.change.forgotten, draft.change.deleted_entities, draft.change.links) == ([1], [2], [])


def test_pin_writes_a_link_that_the_entity_lost() -> None:
    """The entity finds a pinned memory again to which only the memory's own link was left; a broken one stays lost."""
    made = network(Link(1, 2, "about", 0.5, 0), Link(1, 2, "mentions", 0.001, 0))
    change = pin_by_hand(made, 1)
    assert change.links == [Link(2, 1, "about", 1.0, 0)]
    made.apply(change)
    assert [strength for _, _, strength in made.links_from(2)] == [1.0]
    answer = recall(made, Cue(["TEA"], ["about"], 1, 10), lambda _: TEA, "en")
    assert [one.node_id for one, _ in answer.memories] == [1]


def test_pin_leaves_present_links_as_they_are() -> None:
    """A pin writes nothing where the entity has a link, even a broken one; being pinned makes it count 1.0."""
    made = network(Link(1, 2, "about", 0.5, 0), Link(2, 1, "about", 0.001, 0))
    change = pin_by_hand(made, 1)
    assert change.links == []
    made.apply(change)
    assert [strength for _, _, strength in made.links_from(2)] == [1.0]


def test_sentence_about_a_name_with_outer_white_space() -> None:
    """White space runs of the whole sentence become one space, also where the name begins with one."""
    sentence = word_entity(" tea \n house", knows_more=True, is_chinese=False)
    assert sentence == "[Memory] I once knew more about tea house, but I can't recall it"
