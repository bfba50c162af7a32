"""Any selection of any history is erased from store and answers; everything else stays consistent."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from ebbtide.fleet.deletion.removal import Tally
from ebbtide.fleet.deletion.selection import Selection, SelectionSearch
from ebbtide.fleet.recall.query import Query
from ebbtide.language.port import Segment
from ebbtide.memory.digestion import partners
from ebbtide.retrieval.sentences import sentences_of
from ebbtide.retrieval.topic import Topic
from tests.property.homes import Home

WORDS = (
    "harbour",
    "carpenter",
    "青岛",
    "oranges",
    "prototype",
    "外婆",
    "lighthouse",
    "陶艺",
    "violin",
    "market",
)
"""Each sentence is about one of these and contains a unique number."""


def sentence(dice: Random, number: int) -> str:
    word = dice.choice(WORDS)
    if word.isascii():
        return f"The {word} of zq{number}zq is old and well known. "
    return f"{word}的编号是zq{number}zq，大家都知道。"


def tell(home: Home, texts: list[str]) -> None:
    """Remember messages. Each sentence becomes a memory, linked to those before it."""
    home.accept(texts)
    task = home.task()
    placed = []
    for index, text in enumerate(texts):
        begin = 0
        for one in sentences_of(text):
            placed.append(Segment(one.strip(), (index,), begin))
            begin += len(one)
    focus = home.workspace.inbox.focus_texts()
    everyone = partners([node_id for node_id, _ in focus], len(placed), home.workspace.parameters.focus_limit)
    names = {(i, one.position): f"r{i}" for i, some in enumerate(everyone) for one in some}
    home.digest(task, home.drafts(task, placed, [["zq"]] * len(placed)), names)


def selection(dice: Random, home: Home) -> Selection:
    """Return a selection with criteria of one or several kinds."""
    nodes, messages = home.store.read(
        lambda txn: ([node.id for node in txn.nodes.all()], [record.number for record in txn.messages.all()])
    )
    kind = dice.randrange(5)
    if kind == 0:
        return Selection(nodes=frozenset(dice.sample(nodes, min(3, len(nodes)))))
    if kind == 1:
        return Selection(messages=frozenset(dice.sample(messages, min(3, len(messages)))))
    if kind == 2:
        return Selection(topic=Topic(dice.choice(WORDS)))
    if kind == 3:
        some = frozenset(dice.sample(messages, min(2, len(messages))))
        return Selection(topic=Topic(dice.choice(WORDS)), messages=some)
    return Selection(topic=Topic(dice.choice(WORDS)), nodes=frozenset(dice.sample(nodes, min(2, len(nodes)))))


def erased(home: Home, wanted: Selection) -> SelectionSearch:
    """Erase the selection in single steps and compact; the search predicts what is erased."""
    look = SelectionSearch(wanted, home.workspace.named_by(wanted))
    while not look.is_done:
        home.workspace.search_step(look, lambda: True)
    foretold = len(look.nodes), len(look.gone_whole), look.byte_count, home.workspace.unnamed_count(look)
    removal = home.workspace.found(look)
    tally = Tally()
    while not removal.is_done:
        tally.add(home.workspace.remove(removal, lambda: True, 10, "-").tally)
    assert (tally.nodes, tally.messages, tally.bytes, tally.relations) == foretold
    home.workspace.compact()
    return look


def numbers_left(home: Home) -> set[str]:
    """Return the numbers that any text or memory still contains."""

    def read(txn: Any) -> str:
        texts = [txn.messages.text(record) or "" for record in txn.messages.all()]
        return " ".join([*texts, *(node.content for node in txn.nodes.all())])

    return {part for part in home.store.read(read).replace("编号是", " ").split("zq") if part.isdigit()}


def found(home: Home, number: str) -> bool:
    recollected, _ = home.workspace.recollect(Query(f"zq{number}zq", 50), 10, len)
    return any(f"zq{number}zq" in one.content for one in recollected.memories)


@pytest.mark.parametrize("seed", range(20))
def test_only_selected_text_is_erased(seed: int) -> None:
    """Erased text is not found, all other text is, and files contain nothing else."""
    dice, home, said = Random(seed), Home({}), 0
    try:
        for _ in range(6):
            texts = []
            for _ in range(dice.randrange(1, 4)):
                count = dice.randrange(1, 4)
                texts.append("".join(sentence(dice, said + i) for i in range(count)).strip())
                said += count
            tell(home, texts)
            if dice.random() < 0.5:
                found(home, "0")
        before = numbers_left(home)
        look = erased(home, selection(dice, home))
        assert home.faults() == []
        after = numbers_left(home)
        assert after <= before and (look.nodes or look.whole or look.spans or after == before)
        for number in sorted(before, key=int):
            assert found(home, number) == (number in after), number
        content = b"".join(path.read_bytes() for path in home.store.path.iterdir() if path.is_file())
        for number in before - after:
            assert f"zq{number}zq".encode() not in content
        home.reopen()
        assert home.faults() == [] and all(found(home, number) for number in after)
    finally:
        home.close()
