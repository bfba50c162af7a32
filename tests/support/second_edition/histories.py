"""Short ways to drive the oracle in tests."""

from __future__ import annotations

from tests.support.second_edition.names import normalise
from tests.support.second_edition.oracle import SecondEdition, no_answer
from tests.support.second_edition.records import (
    Entity,
    Memory,
    Message,
    Parameters,
    Relate,
    Segment,
    Shortened,
)


def agent(**parameters: object) -> SecondEdition:
    """Return an agent that remembers nothing yet."""
    return SecondEdition(Parameters(**parameters))


def say(memory: SecondEdition, *said: tuple[str, list[str]] | str, relate: Relate = no_answer) -> list[int]:
    """Digest a batch of one user message per text, each with its keywords; return the ids."""
    pairs = [(text, []) if isinstance(text, str) else text for text in said]
    messages = [Message("user", text) for text, _ in pairs]
    segments = [Segment(text, words, messages=[number]) for number, (text, words) in enumerate(pairs)]
    return memory.digest(messages, segments, relate=relate)


def cut(memory: Memory, target: int) -> Shortened:
    """Shorten the present content to its first characters; keep phrase and keywords."""
    return Shortened(memory.content[:target], memory.phrase, memory.keywords)


def passes(memory: SecondEdition, count: int = 1) -> None:
    """Run complete passes."""
    for _ in range(count):
        memory.compress(cut)


def graph(contents: dict[int, str], entities: dict[int, str], **parameters: object) -> SecondEdition:
    """Return an agent with these memories and entities, without links and focus."""
    memory = agent(**parameters)
    for memory_id, content in contents.items():
        memory.memories[memory_id] = Memory(content, content, [], len(content))
    for entity_id, name in entities.items():
        memory.entities[entity_id] = Entity(name, normalise(name), named_by=0)
    memory.next_id = max([*contents, *entities]) + 1
    return memory
