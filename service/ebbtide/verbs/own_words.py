"""The memories of found passages, each with its own words.

A search finds passages of messages, and a passage may be the source of several memories. A caller that corrects or
deletes by id needs the words of each id. Words that no living memory cites have the id of their message.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ebbtide.fleet.archive.reading import living_nodes
from ebbtide.fleet.deletion.words import Span, cut, outside, span_of
from ebbtide.fleet.recall.recollected import ARCHIVED, LIVING
from ebbtide.fleet.runtime.workspace import Workspace
from ebbtide.ids import AgentId, batch_text_id, message_text_id, node_text_id, parse_node_id
from ebbtide.records import EPISODE, Node
from ebbtide.retrieval.analysis import words_of
from ebbtide.statements import STATEMENT_KINDS
from ebbtide.store.lmdb.transaction import ReadTransaction
from ebbtide.verbs.inspect import NodeDetail
from ebbtide.verbs.recall import RecalledMemory, note_returned
from ebbtide.verbs.service import Service

CUT = "…"
"""Where a memory continues outside the passage."""


@dataclass(frozen=True, slots=True)
class OwnWords:
    """Words of a found passage, and the memories or the message that they belong to."""

    passage: int
    """The place of the passage among those found."""
    texts: dict[str, str]
    """The words of each id: a memory, the statements within its words; or the rest of a message."""
    kinds: dict[str, str]
    """The kind of each id."""
    state: str
    note: str = ""
    """When the statements that the query asks for are true."""
    block: str = ""
    """The block of its passage in the text of a recall, with these words only."""
    rank: int = 0
    """0 for the words that answer the query, 1 for the others of their passage."""

    @property
    def text(self) -> str:
        """The words of the first id, which contain those of the others."""
        return next(iter(self.texts.values()))


def whole_text(node: NodeDetail) -> str:
    """Return the text of a memory as it was before compression, if that is retained."""
    is_shortened = len(node.content) < node.original_length
    return (node.first_content if is_shortened and node.first_content else node.content).strip()


async def own_words(
    service: Service, agent_id: str, query: str, found: Sequence[RecalledMemory], blocks: Sequence[str] = ()
) -> list[OwnWords]:
    """Return the words of found passages by the ids that they belong to, the best first.

    `blocks` are those of the passages in the text of a recall.
    The words of a passage that share most with the query come first. Those that share nothing come last, if others of
    their passage do.
    """
    if not found:
        return []
    async with service.fleet.using(AgentId(agent_id)) as agent:
        return await agent.run(partial(_all_own_words, agent.workspace, query, found, blocks))


def _all_own_words(
    workspace: Workspace, query: str, found: Sequence[RecalledMemory], blocks: Sequence[str]
) -> list[OwnWords]:
    def read(txn: ReadTransaction) -> list[OwnWords]:
        return [
            one
            for passage, memory in enumerate(found)
            for one in _ranked(query, list(_of_passage(txn, passage, memory)))
        ]

    items = sorted(workspace.store.read(read), key=lambda one: one.rank)
    if blocks:
        items = [
            replace(one, block=_narrowed(blocks[one.passage], found[one.passage].content, one.text))
            for one in items
        ]
    # The caller shows these instead of whole passages.
    note_returned(workspace, (text for one in items for text in (one.block, *one.texts.values())))
    return items


def _narrowed(block: str, content: str, text: str) -> str:
    """Return the block of a passage with some of its words only; just these if the block has other words."""
    whole, own = " ".join(content.split()), " ".join(text.split())
    return block.replace(whole, own, 1) if whole and whole in block else own


def _ranked(query: str, items: list[OwnWords]) -> list[OwnWords]:
    """Return the words of a passage, those first that share most words with a query."""
    asked = {word.casefold() for word in words_of(query)}
    shares = [len(asked.intersection(word.casefold() for word in words_of(one.text))) for one in items]
    rank_of_none = int(any(shares))
    ranked = [
        replace(one, rank=0 if share else rank_of_none) for one, share in zip(items, shares, strict=True)
    ]
    order = sorted(range(len(items)), key=lambda place: -shares[place])
    ranked = [ranked[place] for place in order]
    # The note is about the statements that the query asks for, so about the best words only.
    noted = next((place for place, one in enumerate(ranked) if one.note), None)
    if noted is not None:
        one = ranked[noted]
        name, said = next(iter(one.texts.items()))
        ranked[noted] = replace(one, texts={**one.texts, name: f"{said}{one.note}"})
    return ranked


def _of_passage(txn: ReadTransaction, passage: int, memory: RecalledMemory) -> Iterator[OwnWords]:
    nodes = living_nodes(txn, map(parse_node_id, memory.node_ids))
    nodes.sort(key=lambda node: node.kind in STATEMENT_KINDS)
    [source] = memory.sources
    message = _message(txn, nodes, source.batch_id, source.message_index)
    record = None if message is None else txn.messages.get(message)
    text = None if record is None else txn.messages.text(record)
    if message is None or text is None:
        if not nodes:
            yield OwnWords(
                passage, {memory.id: memory.content.strip()}, {memory.id: memory.kind}, memory.state
            )
        for node in nodes:
            name = node_text_id(node.id)
            yield OwnWords(passage, {name: node.content.strip()}, {name: node.kind}, LIVING)
        return
    whole = (source.offset, source.offset + source.length)
    spans = {node.id: _spans(node, message, whole) for node in nodes}
    # The content ends with a note on the time of statements, which is no part of the message.
    quote = cut(text, whole)
    note = memory.content[len(quote) :] if memory.content.startswith(quote) else ""
    groups: list[list[Node]] = []
    for node in nodes:
        group = next((one for one in groups if _is_within(node, one[0], spans)), None)
        if group is None:
            groups.append([node])
        else:
            group.append(node)
    for group in groups:
        texts = {node_text_id(node.id): _words(text, spans[node.id], node, message) for node in group}
        if texts[node_text_id(group[0].id)]:
            is_stated = any(node.kind in STATEMENT_KINDS for node in group)
            kinds = {node_text_id(node.id): node.kind for node in group}
            yield OwnWords(passage, texts, kinds, memory.state, note if is_stated else "")
    cited = sorted(span for some in spans.values() for span in some)
    rest = _joined(text, outside([whole], cited))
    # All words of a living passage are in its memories, or the archive was not searched.
    if memory.state != LIVING and any(character.isalnum() for character in rest):
        name = message_text_id(message)
        yield OwnWords(passage, {name: rest}, {name: EPISODE}, ARCHIVED)


def _message(txn: ReadTransaction, nodes: Iterable[Node], batch_id: str, index: int) -> int | None:
    """Return the number of the message at a place that one of the memories cites."""
    for number in dict.fromkeys(source.message for node in nodes for source in node.sources):
        record = txn.messages.get(number)
        if record is not None and (batch_text_id(record.batch), record.index) == (batch_id, index):
            return number
    return None


def _spans(node: Node, message: int, whole: Span) -> list[Span]:
    """Return the sorted parts of a passage that a memory cites."""
    cited = sorted(span_of(source) for source in node.sources if source.message == message)
    inside = [(max(begin, whole[0]), min(end, whole[1])) for begin, end in cited]
    return [(begin, end) for begin, end in inside if begin < end]


def _is_within(node: Node, other: Node, spans: dict[int, list[Span]]) -> bool:
    """Whether a statement has no words that another memory does not have."""
    return node.kind in STATEMENT_KINDS and not list(outside(spans[node.id], spans[other.id]))


def _words(text: str, spans: Sequence[Span], node: Node, message: int) -> str:
    """Return the words of a memory within a passage, with marks where it continues outside."""
    cited = [span_of(source) for source in node.sources if source.message == message]
    said = _joined(text, outside(spans, []))
    if not said or not spans:
        return node.content.strip()
    before = any(begin < spans[0][0] for begin, _ in cited)
    after = any(end > spans[-1][1] for _, end in cited)
    return f"{CUT * before}{said}{CUT * after}"


def _joined(text: str, spans: Iterable[Span]) -> str:
    """Return parts of a text without the blanks around them."""
    parts = (cut(text, span).strip() for span in spans)
    return " ".join(part for part in parts if part)
